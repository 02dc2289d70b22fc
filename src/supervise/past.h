/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the record of a run tells whoever takes it over: a supervisor that follows one which died,
 * while the tasks went on elsewhere. Pure.
 */
#ifndef SUPERVISE_PAST_H
#define SUPERVISE_PAST_H

#include "store/record.h"
#include "supervise/supervise.h"

struct past {
    uint32_t attempt;   /* the one to go on with */
    bool was_submitted; /* it exists elsewhere, and `run` tells what was seen of it */
    struct run_past run;
};

/* All that *out points to lives in the arena or in the record. */
void past_read(const struct run_record *record, struct arena *arena, struct past *out);

#endif
