/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a run waits, or whether a file would have to: worked out once, and told to people and to
 * programs (docs/json.md). Every answer comes from the function that places the runs.
 */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "cli/answer_cluster.h"
#include "cli/reserve.h"
#include "codec/json.h"
#include "model/state.h"
#include "sched/remedy.h"
#include "supervise/blocked.h"

enum answer_kind {
    ANSWER_WAITS,   /* for what others hold, or for those ahead of it */
    ANSWER_STARTS,  /* now, or at any moment */
    ANSWER_NEVER,   /* not on this machine */
    ANSWER_AWAY,    /* of a file: it would go to a cluster, whose queue decides */
    ANSWER_GOES_ON, /* of a run: it has started */
    ANSWER_OVER,    /* of a run */
    ANSWER_KIND_COUNT,
};

struct answer {
    enum answer_kind kind;
    uint64_t run;       /* 0: of a file */
    const char *file;   /* of a file: as it was named, or NULL */
    enum state state;   /* of a run */
    const char *reason; /* one sentence, or NULL */

    /* Of what waits or starts. */
    size_t position, n_queue; /* its place, from 1; 0: it stands in no queue */
    double waits_s;           /* since it came; negative: not yet */
    struct decision decision; /* needs nothing where nothing is reserved */
    uint64_t starts_after;    /* the one run whose end would be enough, or 0 */

    /* Of what waits, as far as its file is known. */
    const char *blocked_task; /* the first that finds no room, or NULL */
    bool has_remedy;
    struct remedy remedy;   /* the smallest change to the file with which it would start now */
    uint32_t fewer_workers; /* with so many it would start now, or 0 */
    bool oversubscribing_helps;

    milli holds[RESOURCE_COUNT];          /* of a run that goes on */
    const struct cluster_answer *cluster; /* of a run whose tasks are there; else NULL */
};

/* What is looked at once for all answers. The answers point into it. */
struct answering {
    struct arena arena;
    struct ledger_view view;
    struct machine machine;
    struct gpus gpus;
};

void answering_release(struct answering *answering);
/* Looks at the queue and the machine. */
MUST_CHECK int answering_look(struct answering *answering, const char *home, struct error *err);

MUST_CHECK int answer_for_run(struct answering *answering, const struct rundir *rundir,
                              struct answer *out, struct error *err);
/* As if the file came to the end of the queue now. It looks by itself. */
MUST_CHECK int answer_for_file(struct answering *answering, struct reserving *reserving,
                               const char *home, const char *file, struct answer *out,
                               struct error *err);

void answer_print(const struct answering *answering, const struct answer *answer);
void answer_write_json(struct json *json, const struct answering *answering,
                       const struct answer *answer);

#endif
