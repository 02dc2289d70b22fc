/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a run from outside: by its journal and its logs, as they grow on the disk. Any number
 * of processes can watch a run, from its start or from later; the run does not notice. Who started
 * it is told by its bell (supervise/bell.h), the others by inotify, or where the system has no
 * more of that by a look once a second.
 *
 * SIGINT and SIGTERM to the watching process become a stop of the run, a second one kills it,
 * where the options say so; SIGHUP leaves the run alone unless they say otherwise.
 */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include <stdio.h>

#include "cli/follow.h"
#include "cli/logread.h"
#include "store/record.h"

struct watch_options {
    FILE *out; /* for the tasks' lines; NULL: they are not shown */
    enum follow_style style;
    int listener;      /* of the run's bell; -1: the files are watched. The watcher closes it. */
    bool from_end;     /* shows only what is written from now on */
    bool signals_stop; /* an interrupt stops the run; else it ends the watching */
    bool hangup_stops; /* so does a hangup */
    bool q_leaves;     /* on a terminal, the key q ends the watching; the run goes on */
    bool ends_unread;  /* the watching ends when nobody reads what is shown any more */
    /* Who has begun to show the logs hands over how far it came: both by the tasks of the run, and
     * still its own afterwards. NULL: the watcher begins, by `out` and `style`. */
    struct follow *follow;
    struct logread *logs;
    uint32_t attempt; /* that the logs are of; those before it have been shown */
};

enum watch_outcome {
    WATCH_OVER, /* the run is over: the record says how */
    WATCH_LEFT, /* the watcher was told to go; the run goes on */
    WATCH_GONE, /* the run's directory was removed, and nobody is there to say how it ended */
};

struct watch_end {
    enum watch_outcome outcome;
    bool has_shown_all; /* every line that the tasks wrote in the last attempt was shown */
};

/* Holds back (SIG_BLOCK) the signals that watching answers, from before a run is started until
 * it is watched: else an interrupt in between would end the follower and not the run. watch_run
 * takes them again. */
void watch_hold_signals(int how);

/* Watches until the run is over. `record` is filled in anew; released by the caller. */
MUST_CHECK int watch_run(const struct rundir *rundir, const struct watch_options *options,
                         struct run_record *record, struct watch_end *end, struct error *err);

#endif
