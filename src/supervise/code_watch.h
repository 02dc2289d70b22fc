/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of a run, from its start to its end: what is known of it when the run is made, and what
 * its recorder (code/recorder.h) finds, as lines of the journal.
 *
 *   code_watch_look_up    before anything starts: waits a moment for what can be found
 *   code_watch_await      in the supervisor: what comes later is told when it comes
 *   code_watch_finish     at the end: what has not come by then never does
 */
#ifndef SUPERVISE_CODE_WATCH_H
#define SUPERVISE_CODE_WATCH_H

#include "code/recorder.h"
#include "store/journal.h"

struct event;
struct event_base;

struct code_watch {
    struct code_facts facts; /* what is known so far */
    bool has_started;        /* tasks may have changed the tree: what is found now is late */
    struct recorder recorder;
    struct event *event; /* NULL: nothing more is to come */
    struct journal *journal;
    struct arena arena;
};
#define CODE_WATCH_NONE                                                                            \
    { .recorder = RECORDER_NONE }
void code_watch_release(struct code_watch *watch);

/* Facts that are known already are copied; a repository among them is not looked up. */
void code_watch_know(struct code_watch *watch, const struct code_facts *facts);
void code_watch_look_up(struct code_watch *watch, const char *directory,
                        const struct rundir *rundir);
/* Tells what is known, where there is something. */
void code_watch_tell(const struct code_watch *watch, struct journal *journal);

void code_watch_await(struct code_watch *watch, struct event_base *base, struct journal *journal);
void code_watch_finish(struct code_watch *watch);

#endif
