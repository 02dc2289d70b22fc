/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new run from an old one: what `restart`, `resume` and `copy` share. The files, params and
 * options of the old run are taken as it kept them (store/request.h); those of the command line
 * come after them, and win. The tasks run where they ran before, with the environment of who
 * asks now.
 */
#ifndef CLI_ANEW_H
#define CLI_ANEW_H

#include "cli/launch.h"
#include "store/request.h"

#define ANEW_NAMES                                                                                 \
    "What the run was started with is kept with it: files, `-P` and the options that are about "   \
    "the run. Those given here come after them, so a later `-P` or `-f` wins. The tasks run in "   \
    "the directory of the original; their environment is that of this shell, and a note says so "  \
    "where `PATH` and the like have changed. `-d`, `--json` and the exit status are as of "        \
    "`myelin run`; `myelin status` tells where a run came from."

/* The options that a run kept, as rows of `command`; its files are named where they lie. All lives
 * in the arena or in the request. */
MUST_CHECK int anew_kept_options(const struct rundir *rundir, const struct request *request,
                                 const struct command *command, struct arena *arena,
                                 struct given_option **out, size_t *n, struct error *err);

/* What a run was started with, compiled again from what it kept. */
struct kept_run {
    struct arena arena;
    struct request request;
    struct invocation in; /* of `run`, with the options that were kept */
    struct loaded loaded; /* without a plan where the files say something else by now */
};
MUST_CHECK int kept_run_load(const struct rundir *rundir, struct kept_run *out, struct error *err);
void kept_run_release(struct kept_run *kept);

/* Returns the exit status. */
int anew(const struct invocation *in, enum origin_manner manner);

#endif
