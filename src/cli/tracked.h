/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run has logged, in few words: the last values of its metrics, and what its tasks said
 * of it (params, tags, summary, artifacts). For `status` and `ps`; `metrics` shows all.
 */
#ifndef CLI_TRACKED_H
#define CLI_TRACKED_H

#include "codec/json.h"
#include "store/artifact.h"
#include "store/record.h"

/* The last value that the task with the least rank has logged under a name. */
struct last_value {
    const char *name;
    int64_t step;
    double value;
};

struct last_values {
    struct last_value *list; /* by name; in the arena */
    size_t n;
};

/* Of system metrics none. Nothing where nothing was logged, or cannot be read. */
struct last_values last_values_read(const struct rundir *rundir, struct arena *arena);

/* "acc=0.98 loss=0.031", at most so many. "" for none. */
const char *last_values_text(const struct last_values *values, size_t most, struct arena *arena);

/* "lr=0.1 layers=[1,2]"; "" for none. */
const char *tracked_text(const struct tracked *tracked, struct arena *arena);

/* "config.json mnist:3": the names, with the version of models. "" for none. */
const char *artifacts_text(const struct run_record *run, struct arena *arena);
void json_artifact(struct json *json, const struct artifact *artifact);

/* Members of a run's object: `params`, `tags`, `summary`, `artifacts` and `metrics`. */
void json_tracked(struct json *json, const struct run_record *run);
void json_last_values(struct json *json, const struct rundir *rundir);
void json_metric_values(struct json *json,
                        const struct last_values *values); /* the member `metrics` */

/* What tasks have logged and the series do not have, and what to do: for a line of text. */
const char *losses_text(const struct losses *losses, struct arena *arena);
void json_losses(struct json *json, const struct losses *losses);

#endif
