/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of a run: $MYELIN_HOME/runs/<id>/, with outputs/ for the tasks and
 * logs/<task>.log. Its id is the next free number; mkdir makes it the run's alone, also
 * between processes.
 */
#ifndef SUPERVISE_RUNDIR_H
#define SUPERVISE_RUNDIR_H

#include "base/arena.h"
#include "base/error.h"

struct rundir {
    const char *id;                    /* "12" */
    const char *path, *outputs, *logs; /* absolute */
};

/* $MYELIN_HOME, else ~/.myelin; lives in the arena. */
MUST_CHECK int rundir_home(struct arena *arena, const char **out, struct error *err);

/* The home is made when it is missing, with mode 0700. */
MUST_CHECK int rundir_make(const char *home, struct arena *arena, struct rundir *out,
                           struct error *err);
/* For a run that never began. Removes nothing that a task could have written. */
void rundir_remove(const struct rundir *rundir);

/* Writes a file into the directory, whole or not at all. */
MUST_CHECK int rundir_write(const struct rundir *rundir, const char *name, const char *bytes,
                            size_t n, struct error *err);

#endif
