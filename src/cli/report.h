/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of a run: the line at its start, the sentences at its end, and the same as
 * JSON (docs/json.md).
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <stdio.h>

#include "cli/lines.h"
#include "supervise/supervise.h"

void report_start(FILE *out, const struct run_state *run);

/* `tails` holds the last output of each task, by rank. */
void report_end(FILE *out, const struct run_state *run, const struct tail *tails);

MUST_CHECK int report_json(FILE *out, const struct run_state *run, const struct tail *tails,
                           struct error *err);

#endif
