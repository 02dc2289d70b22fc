/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up the code of a run while the run starts, in a process of its own.
 *
 * A small tree is compared in a few milliseconds, a large one, or one that no cache holds, may take
 * minutes; and who starts a run waits for its first line. So the lookup begins before anything of
 * the run is started, and the start waits for it a moment (RECORDER_GRACE_MS): nearly always the
 * facts are then those of the tree that the tasks find. Where it takes longer the run starts, the
 * lookup goes on beside it, and its facts say that they are late. It never outlasts the run by more
 * than RECORDER_END_MS, nor lives longer than RECORDER_LIFE_S: what was found by then is told
 * (commit and branch nearly always are), the rest is not known.
 *
 * It is a process because that can be ended at any moment, whatever libgit2 is about, and because
 * what goes wrong in it, as running out of memory over a broken repository, is no matter of the
 * run's. Where the working directory lies in no repository there is none: then all that it costs is
 * a few calls of stat.
 */
#ifndef CODE_RECORDER_H
#define CODE_RECORDER_H

#include <sys/types.h>

#include "base/buf.h"
#include "store/code_facts.h"
#include "store/rundir.h"

enum {
    RECORDER_GRACE_MS = 150, /* less than who waits for a run notices */
    RECORDER_END_MS = 2000,
    RECORDER_LIFE_S = 60,
};

struct recorder {
    int fd;      /* lines of facts, the last one counts; -1: there is none, or all is read */
    int process; /* a pidfd, or -1 */
    pid_t pid;   /* of the process that started it, to wait for */
    struct buf text;
};
#define RECORDER_NONE                                                                              \
    { .fd = -1, .process = -1, .text = BUF_INIT(1 << 20) }

/* Starts it where the directory is in a repository; changes are kept in the run's directory. Does
 * nothing where there is none, or no process can be made. */
void recorder_start(struct recorder *recorder, const char *directory, const struct rundir *rundir);

/* Where it was started, and once it is done: nothing of it is left among the processes. */
void recorder_reap(struct recorder *recorder);

/* Reads what there is, and waits so long for more. Whether it is done: also where there is none. */
bool recorder_wait(struct recorder *recorder, int timeout_ms);
/* Ends it, done or not. */
void recorder_end(struct recorder *recorder);

/* What it has told so far; false: nothing. The repository's part of *out alone is changed. */
bool recorder_facts(const struct recorder *recorder, struct arena *arena, struct code_facts *out);

/* For a copy in another process, which lets go of it. */
void recorder_release(struct recorder *recorder);

#endif
