/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows what the tasks of a run write as it comes: whole lines, each behind the padded name
 * of its task, coloured on a terminal. Keeps the last lines of each task for the report.
 *
 * On a terminal the lines are made harmless; elsewhere they are passed on byte for byte.
 */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include <stdio.h>

#include "cli/lines.h"
#include "cli/outlet.h"
#include "model/plan.h"

enum follow_style {
    FOLLOW_NAMED, /* each line behind its task's name */
    FOLLOW_PLAIN, /* the lines alone */
};

struct follow {
    const struct plan *plan;
    enum follow_style style;
    bool is_terminal, is_coloured;
    int width; /* of the longest name */
    struct outlet outlet;
    struct buf shown;    /* the lines of one piece of output, written together */
    uint32_t rank;       /* whose piece it is */
    struct lines *lines; /* by rank */
    struct tail *tails;  /* by rank */
};

void follow_init(struct follow *follow, const struct plan *plan, enum follow_style style, FILE *out,
                 struct event_base *base);
void follow_output(struct follow *follow, uint32_t rank, const char *bytes, size_t n);
/* The task is over: its last line may have no end. */
void follow_ended(struct follow *follow, uint32_t rank);
void follow_release(struct follow *follow);

#endif
