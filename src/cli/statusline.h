/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line at the bottom of a terminal while a run is followed: its phase, how many tasks run,
 * what its processes use, how long it has been going on.
 *
 *   worker.0 │  62%|██████▏   | 620/1000
 *   running · 8/8 tasks · CPU 187% · 1.2 GiB · 12s
 *
 * Above it can stand a line that a task has not ended yet, as a progress bar never does.
 *
 * Processor time and memory are summed over all that descends from the owner of the run, by one
 * look over /proc a second at most; where /proc is so full that a look is dear, more rarely.
 * Memory is what is resident: what processes share is counted for each.
 *
 * The module prints nothing: it gives the bytes that erase the line and draw it, for the one
 * who writes to the terminal. A terminal that is too narrow for all of it gets as much as fits; the
 * phase stays longest. The cursor stands at the beginning of the line: when a terminal that becomes
 * narrower folds it, all of it is still below the cursor, and is erased with it.
 */
#ifndef CLI_STATUSLINE_H
#define CLI_STATUSLINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "store/record.h"

enum { STATUSLINE_BYTES = 1024, STATUSLINE_UNENDED = 512 };

enum status_field {
    STATUS_PHASE,
    STATUS_TASKS,
    STATUS_CPU,
    STATUS_MEMORY,
    STATUS_ELAPSED,
    STATUS_FIELDS,
};

struct statusline {
    int fd; /* the terminal */
    bool is_drawn;
    char fields[STATUS_FIELDS][40];   /* "": not known yet */
    char unended[STATUSLINE_UNENDED]; /* "": there is none */

    uint64_t cpu_ticks; /* at the last look */
    int64_t looked_us, next_look_us;
    double cpu_percent; /* negative: not known yet */
    uint64_t memory;
};

void statusline_init(struct statusline *status, int fd);

/* Looks at the run, when it is time, and words the line anew. */
void statusline_update(struct statusline *status, const struct run_record *record, pid_t owner);

/* The line that a task has not ended, behind its name: of harmless text the beginning, without
 * colours. NULL: none. */
void statusline_set_unended(struct statusline *status, const char *name, const char *text);

/* What takes the line away, and what puts it there: the number of bytes in `out`. */
size_t statusline_erase(struct statusline *status, char out[static STATUSLINE_BYTES]);
size_t statusline_draw(struct statusline *status, char out[static STATUSLINE_BYTES]);

#endif
