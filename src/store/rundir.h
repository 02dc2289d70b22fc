/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of a run: $MYELIN_HOME/runs/<id>/, with outputs/ for the tasks and
 * logs/<task>.log, and spool/<task>/ for what they log. A run that resumes another has no outputs
 * of its own: `outputs` is then the symbolic link ../<other id>/outputs, and struct rundir has the
 * path that it stands for. Its id is the next number; mkdir makes it the run's alone, also between
 * processes. An id is not given again after its run was removed: $MYELIN_HOME/last-run keeps the
 * highest id that was removed, a lower bound beside the directories themselves. A directory with
 * the highest possible number does not block the home: then the highest number whose successor is
 * free counts. docs/run-directory.md describes what is in it.
 *
 * The path is canonical, so that files below it can be opened without following links
 * (base/file.h). A symbolic link in `runs` is not a run.
 */
#ifndef STORE_RUNDIR_H
#define STORE_RUNDIR_H

#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

enum { RUNDIR_ID_LAST = 999999999 }; /* the highest id of a run */

struct rundir {
    const char *id;                              /* "12" */
    const char *path, *outputs, *logs, *journal; /* absolute */
    const char *spool, *series;                  /* what tasks log, before and after the fold */
    const char *outputs_of;                      /* the id of the run that has the outputs */
    uid_t owner; /* of the directory: who may act on it (rights.h) */
    gid_t group;
};

/* $MYELIN_HOME, else ~/.myelin; lives in the arena. */
MUST_CHECK int rundir_home(struct arena *arena, const char **out, struct error *err);

/* Makes the home and the directory of its runs where they are missing, with mode 0700; in a home
 * that is shared as sharing.h says. */
MUST_CHECK int rundir_make_home(const char *home, struct error *err);

/* Moves a directory that is a run to the next id of a home: it is a run from one moment to the
 * next. It lies on the same file system. */
MUST_CHECK int rundir_adopt(const char *home, const char *directory, struct arena *arena,
                            struct rundir *out, struct error *err);

/* The home is made when it is missing, with mode 0700. */
MUST_CHECK int rundir_make(const char *home, struct arena *arena, struct rundir *out,
                           struct error *err);
struct rundir rundir_copy(const struct rundir *rundir, struct arena *arena);

/* The directory of an existing run. Fails with ERROR_NOT_FOUND; with any other code it is not known
 * whether there is one. */
MUST_CHECK int rundir_open(const char *home, unsigned long id, struct arena *arena,
                           struct rundir *out, struct error *err);

/* The ids of all runs, ascending; none where there is no home yet. */
MUST_CHECK int rundir_list(const char *home, struct arena *arena, unsigned long **ids, size_t *n,
                           struct error *err);

/* Gives the run the outputs of another of the same home in the place of its own, which are still
 * empty; the caller opens the run's directory anew. */
MUST_CHECK int rundir_share_outputs(const struct rundir *rundir, const struct rundir *other,
                                    struct error *err);

/* Where the logs of an attempt are: logs/ of the first, logs/attempt-<n>/ of the others. */
const char *rundir_attempt_logs(const struct rundir *rundir, uint32_t attempt, struct arena *arena);

/* The umask that the run was made with, as the mode of its logs shows; 077 if there are none. What
 * is added to a run later is made with it: a command may have another umask, and root's is not the
 * owner's. */
mode_t rundir_umask(const struct rundir *rundir);

/* The highest id that was given so far, as far as the home knows; 0: none. */
unsigned long rundir_last(const char *home);
/* The id after which to look for a free one, if `ids` (ascending) exist and ids up to `last` were
 * removed: the highest of them, unless no id follows it. Pure. */
unsigned long rundir_id_before_next(const unsigned long *ids, size_t n, unsigned long last);
/* Sees to it that neither the id nor one below it is given again. Before a run is removed. */
MUST_CHECK int rundir_retire(const char *home, unsigned long id, struct error *err);

/* The home that a run is in. Lives in the arena. */
const char *rundir_home_of(const struct rundir *rundir, struct arena *arena);

/* For a run that never began. Removes nothing that a task could have written. */
void rundir_remove(const struct rundir *rundir);

/* Writes a file into the directory, whole or not at all. */
MUST_CHECK int rundir_write(const struct rundir *rundir, const char *name, const char *bytes,
                            size_t n, struct error *err);

#endif
