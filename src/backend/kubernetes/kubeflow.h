/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gang as a job of Kubeflow's operators: one object, whose pods are the tasks.
 *
 * The backend has no truth of its own. The object is named after the run and the attempt, so that
 * making it twice is making it once; its pods are found by their labels, and what they are is read
 * from them, by whichever process looks. How far the log of each was read is kept beside the logs,
 * so that a process that takes over goes on with the next line.
 *
 *   launch ─► the kinds of the cluster ─► create ─► watch the job and its pods ─► ... ─► delete ─►
 * gone
 *
 * Ends are told in the order in which they were seen, each after the last of its log: else an
 * operator that clears up after a failure would have the others blamed for it.
 */
#ifndef BACKEND_KUBERNETES_KUBEFLOW_H
#define BACKEND_KUBERNETES_KUBEFLOW_H

#include "backend/backend.h"
#include "manifest/manifest.h"

struct kubeflow_options {
    const struct plan *plan;
    const struct settings *settings;
    const char *kubeconfig, *context; /* as of kubeconfig.h; NULL: as the settings or kubectl say */
    const char *namespace;            /* NULL: of the settings, else of the context */
    const char *image;                /* NULL: of the file, else of the settings */
    int64_t timeout_ms;               /* for all pods to run; negative: as long as it takes */
};

/* For backend_maker's `make`; its context is the options. They outlive the backend. */
int kubeflow_make(void *options, struct event_base *base, const struct attempt_facts *facts,
                  struct backend **out, struct error *err);

#endif
