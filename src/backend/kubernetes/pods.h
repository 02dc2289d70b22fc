/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gang as pods of a cluster. Two forms, which differ in who makes the pods:
 *
 *   pods_kubeflow   one object of Kubeflow's operators, which makes the pods and wires them
 *   pods_native     a ConfigMap that owns the rest, a headless Service, and a Pod for each task
 *
 * The backend has no truth of its own. Objects are named after the run and the attempt, so that
 * making them twice is making them once; pods are found by their labels, and what they are is read
 * from them, by whichever process looks. How far the log of each was read is kept beside the logs,
 * so that a process that takes over goes on with the next line.
 *
 *   launch ─► make (as the form does) ─► watch the owner and the pods ─► ... ─► delete ─► gone
 *
 * Nothing is told of a task before all is made: until then a process that dies leaves an attempt
 * that the next one makes again, and finds what is there.
 *
 * Ends are told in the order in which they were seen, each after the last of its log: else an
 * operator that clears up after a failure would have the others blamed for it.
 *
 * Deleting the owner deletes all, by the cluster's own garbage collection.
 */
#ifndef BACKEND_KUBERNETES_PODS_H
#define BACKEND_KUBERNETES_PODS_H

#include "backend/backend.h"
#include "backend/kubernetes/kubeconfig.h"
#include "manifest/manifest.h"

struct pods_form; /* backend/kubernetes/gang.h */

extern const struct pods_form pods_kubeflow, pods_native;

/* What is made for a target; its name, "kubeflow" or "native", is what a run's record calls it. */
const struct pods_form *pods_form_of(enum manifest_target target);
/* NULL: there is none of that name. */
const struct pods_form *pods_form_named(const char *name);
const char *pods_form_name(const struct pods_form *form);
enum manifest_target pods_form_target(const struct pods_form *form);

struct pods_options {
    const struct pods_form *form;
    const struct plan *plan;
    const struct settings *settings;
    const char *kubeconfig, *context; /* as of kubeconfig.h; NULL: as the settings or kubectl say */
    const char *namespace;            /* NULL: of the settings, else of the context */
    const char *image;                /* NULL: of the file, else of the settings */
    const char *outputs_of;           /* the uuid of the run that has its outputs; NULL: it has */
    int64_t timeout_ms;               /* for all pods to run; negative: as long as it takes */
};

/* How the cluster is found: as the command line says, else the settings, else kubectl's rules. */
struct kubeconfig_request pods_way_in(const struct pods_options *options);

/* For backend_maker's `make`; its context is the options. They outlive the backend. */
int pods_make(void *options, struct event_base *base, const struct attempt_facts *facts,
              struct backend **out, struct error *err);

#endif
