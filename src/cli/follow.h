/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows what the tasks of a run write as it comes: whole lines, each behind the padded name
 * of its task, coloured on a terminal.
 *
 * On a terminal the lines are made harmless; elsewhere they are passed on byte for byte. A
 * reader that is slow slows only this: the run goes on, and its logs are whole.
 */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include <stdio.h>

#include "cli/lines.h"
#include "model/plan.h"

struct follow {
    const struct plan *plan;
    FILE *out;
    bool is_terminal, is_coloured;
    bool is_broken; /* nobody reads any more */
    int width;      /* of the longest name */
    uint32_t rank;  /* whose lines are being shown */
    struct buf shown;
    struct lines *lines; /* by rank */
};

enum follow_style {
    FOLLOW_AS_IT_IS, /* as the output takes it */
    FOLLOW_PLAIN,    /* as to a pipe, even on a terminal */
};

void follow_init(struct follow *follow, const struct plan *plan, enum follow_style style,
                 FILE *out);
void follow_output(struct follow *follow, uint32_t rank, const char *bytes, size_t n);
/* The task is over: its last line may have no end. */
void follow_ended(struct follow *follow, uint32_t rank);
void follow_release(struct follow *follow);

#endif
