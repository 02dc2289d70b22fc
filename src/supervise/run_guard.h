/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the directory of a living run in order, from inside its supervisor. Tasks can write there,
 * and a task may remove more than it means to. Once a second, and when the run ends, the guard
 * compares what is at each path with what the supervisor has open:
 *
 *   lock, events.jsonl   put back when they were removed or replaced by anything else: another
 * file, a FIFO, a directory. No line of the journal is lost. the directory        cannot be put
 * back, as the outputs are gone with it: `gone` is called.
 *
 * It also continues a keeper that is suspended (keeper.h).
 */
#ifndef SUPERVISE_RUN_GUARD_H
#define SUPERVISE_RUN_GUARD_H

#include <event2/event.h>

#include "store/journal.h"

struct run_guard_options {
    const struct rundir *rundir;
    struct journal *journal;
    int *lock;       /* of owner_take; replaced when the file is put back */
    int directory;   /* of presence_hold; -1: the directory is not watched */
    pid_t announced; /* who takes orders, and is the parent of this process while it lives */
    void (*notice)(void *context, const char *sentence);
    void (*gone)(void *context, const char *sentence); /* once; the sentence says what and where */
    void *context;
};

struct run_guard;

struct run_guard *run_guard_new(struct event_base *base, const struct run_guard_options *options);
void run_guard_free(struct run_guard *guard);

/* Looks now, for who is about to write the end of the run. */
void run_guard_look(struct run_guard *guard);

/* Makes the journal again from its open descriptor when there is no regular file in its place.
 * Does nothing otherwise: another process may have put it back. */
void run_guard_save_journal(const struct rundir *rundir, struct journal *journal);

#endif
