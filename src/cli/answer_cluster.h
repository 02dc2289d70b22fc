/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a run on a cluster waits: what its supervisor has told, which is the reason in its record,
 * and what the cluster says when it is asked now: how far its pods are, what trouble they have, and
 * whose turn it is. A cluster that cannot be asked is no failure: what is recorded is told.
 */
#ifndef CLI_ANSWER_CLUSTER_H
#define CLI_ANSWER_CLUSTER_H

#include "backend/kubernetes/inquiry.h"
#include "codec/json.h"
#include "store/record.h"

struct cluster_answer {
    const char *cluster, *namespace;
    const char *trouble; /* why the cluster could not be asked; NULL: it was */
    bool has_turns;      /* its pods may have to wait for a turn */
    struct inquiry inquiry;
};

/* Whether not all of its tasks have been started. */
bool cluster_run_waits(const struct run_record *run);

/* Asks the cluster that the run went to. What it returns lives in the arena. */
const struct cluster_answer *cluster_answer_for(const struct run_record *run, struct arena *arena);

/* Lines below the first, for people. */
void cluster_answer_print(const struct cluster_answer *answer);
/* The object of docs/json.md, or null for NULL. */
void cluster_answer_write_json(struct json *json, const struct cluster_answer *answer);

#endif
