/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task sees: the environment variables of docs/contract.md, rendered on demand
 * for one task at a time, so that a plan of 100,000 tasks stays small.
 *
 * Hosts, ports, ids and paths exist only when a run does: they are asked from the
 * facts. facts_symbolic answers with symbols such as <worker.0.port>, for people who
 * read a plan.
 */
#ifndef PLAN_ENVIRONMENT_H
#define PLAN_ENVIRONMENT_H

#include "model/plan.h"

enum {
    ENVIRONMENT_STRING_MAX = 128 * 1024 - 1, /* the kernel's limit for one NAME=value with its NUL */
};

struct run_facts {
    const char *run_id, *run_uuid; /* uuid: 32 hexadecimal digits */
    const char *owner, *project;
    const char *outputs_path, *logs_path;
    const char *rendezvous_host, *rendezvous_port; /* Horovod's; NULL for the others */
    const char *interface; /* the network interface that all tasks share, or NULL */

    /* Writes the host or port of a task; each task owns one port. */
    void (*host)(const struct run_facts *facts, const struct plan *plan, uint32_t rank,
                 char *out, size_t size);
    void (*port)(const struct run_facts *facts, const struct plan *plan, uint32_t rank,
                 char *out, size_t size);
    const void *context; /* for host and port */
};

extern const struct run_facts facts_symbolic;

/* A growing list of NAME=value, in the order they were set. */
struct environment {
    struct arena arena;
    char **items; /* NULL-terminated */
    size_t len, capacity;
};

void environment_release(struct environment *environment);

/* Appends the variables of one task. Fails with ERROR_EXHAUSTED when one is longer than
 * the kernel takes: about 5,000 TensorFlow tasks. */
MUST_CHECK int plan_environment(const struct plan *plan, uint32_t rank,
                                const struct run_facts *facts, struct environment *out,
                                struct error *err);

#endif
