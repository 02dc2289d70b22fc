/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task sees: the environment variables of docs/contract.md. What all tasks share is
 * rendered once for a gang, the rest on demand for one task at a time, so that a plan of
 * 100,000 tasks stays small.
 *
 * Hosts, ports, ids and paths exist only when a run does: they are asked from the
 * facts. facts_symbolic answers with symbols such as <worker.0.port>, for people who
 * read a plan.
 */
#ifndef PLAN_ENVIRONMENT_H
#define PLAN_ENVIRONMENT_H

#include "base/buf.h"
#include "model/plan.h"

enum {
    ENVIRONMENT_STRING_MAX =
        128 * 1024 - 1, /* the kernel's limit for one NAME=value with its NUL */
};

struct run_facts {
    const char *run_id, *run_uuid; /* uuid: 32 hexadecimal digits */
    const char *owner, *project;
    const char *outputs_path, *logs_path;
    const char *earlier_outputs; /* of earlier runs that the plan names, as JSON; else NULL */
    const char *spool_path;      /* what the tasks log goes to a folder of each task below it */
    const char *attempt;         /* how often the gang was started before */
    const char *rendezvous_host, *rendezvous_port; /* Horovod's; NULL for the others */
    const char *interface; /* the network interface that all tasks share, or NULL */
    uint32_t shared_cpus;  /* that all tasks run on together; 0: not known, or each has its own */

    /* Writes the host or port of a task; each task owns one port. */
    void (*host)(const struct run_facts *facts, const struct plan *plan, uint32_t rank, char *out,
                 size_t size);
    void (*port)(const struct run_facts *facts, const struct plan *plan, uint32_t rank, char *out,
                 size_t size);
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
/* Appends one more, for what only a run knows. */
void environment_set(struct environment *environment, const char *name, const char *value);

/* {"jobs": [path, ...], "experiments": [...]} of the earlier runs that a plan names. */
typedef int earlier_path(void *context, const char *run, const char **out, struct error *err);
MUST_CHECK int earlier_outputs_write(const struct earlier_runs *earlier, earlier_path *path,
                                     void *context, struct buf *out, struct error *err);

/* What all tasks of a gang share, rendered once: with 512 tasks the addresses of all of them
 * would otherwise be written 512 times. */
struct wiring {
    const struct plan *plan;
    const struct run_facts *facts;
    struct environment shared;
    const char *tf_cluster, *tf_rest; /* the parts of TF_CONFIG around its task */
};

/* Fails with ERROR_EXHAUSTED when a variable is longer than the kernel takes. plan and facts
 * outlive the wiring. */
MUST_CHECK int wiring_init(struct wiring *wiring, const struct plan *plan,
                           const struct run_facts *facts, struct error *err);
void wiring_release(struct wiring *wiring);

/* Appends the variables of one task, each once. They live as long as wiring and `out`. */
MUST_CHECK int wiring_environment(const struct wiring *wiring, uint32_t rank,
                                  struct environment *out, struct error *err);

/* Both at once, for one task alone. */
MUST_CHECK int plan_environment(const struct plan *plan, uint32_t rank,
                                const struct run_facts *facts, struct environment *out,
                                struct error *err);

#endif
