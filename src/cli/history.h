/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run came from and how often it was attempted: in words, as a table and as JSON. */
#ifndef CLI_HISTORY_H
#define CLI_HISTORY_H

#include <stdio.h>

#include "codec/json.h"
#include "store/record.h"

/* "resumed from run 12"; NULL of a run that was not made from another. */
const char *history_origin(const struct run_record *run, struct arena *arena);

/* "after 3 attempts (4.2s)", "in 4.2s, at attempt 2", "after 4.2s", "for 4.2s": what follows the
 * state of a run. */
const char *history_span(const struct run_record *run, struct arena *arena);

/* One line for each attempt; nothing where there was only one. */
void history_print(FILE *out, const struct run_record *run);

/* The members `origin` and `attempts` of a run's object (docs/json.md). */
void history_json(struct json *json, const struct run_record *run);

#endif
