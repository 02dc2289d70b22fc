/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a command line to a run: what `run`, `restart`, `resume` and `copy` share. The file is
 * compiled, the run is started here, and followed unless it is left alone. What was asked for is
 * kept with the run (store/request.h), so that it can be asked for again.
 */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/load.h"
#include "cli/reserve.h"
#include "cli/venue.h"
#include "store/origin.h"
#include "supervise/supervisor.h"

/* Rows for a command's table of options. */
/* clang-format off */
#define LAUNCH_OPTIONS                                                                             \
    LOAD_OPTIONS,                                                                                  \
    { .name = "grace", .argument = "SECONDS",                                                      \
      .help = "time that tasks get to finish when they are stopped; 10 unless said" },             \
    { .name = "backoff", .argument = "SECONDS",                                                    \
      .help = "time before the first restart by `max_restarts`, doubled for each one that "        \
              "follows; 2 unless said" },                                                          \
    { .name = "max-processes", .argument = "N",                                                    \
      .help = "most processes and threads of each task that has limits, 0: any number; unless "    \
              "said, all of them share 8192 for each task of the run, or half of what the "        \
              "machine can have" },                                                                \
    { .name = "log-limit", .argument = "SIZE",                                                     \
      .help = "most that is kept of what each task writes, with a unit (500M, 2G); default: 10G; " \
              "the rest is counted" },                                                             \
    { .name = "snapshot",                                                                          \
      .help = "keep an archive of the code with the run, without what .gitignore and "             \
              ".polyaxonignore name" },                                                            \
    { .name = "detach", .letter = 'd', .help = "print the run's id and leave it to itself" },      \
    { .name = "stop-on-hangup", .help = "stop the run when the terminal is closed" },              \
    RESERVE_OPTIONS,                                                                               \
    VENUE_OPTIONS,                                                                                 \
    { .name = "timeout", .argument = "SECONDS",                                                    \
      .help = "give up when its turn has not come by then; it waits as long as it takes unless "   \
              "said" },                                                                            \
    { .name = "dry-run", .help = "say whether it would start now, and start nothing" },            \
    { .name = "plain", .help = "print as to a pipe, even on a terminal; controls are still shown as text" },                         \
    { .name = "json",                                                                              \
      .help = "print the outcome as JSON; the tasks' lines go to standard error" }
/* clang-format on */

/* What a command adds to its options. */
struct launch {
    const char *file;      /* the polyaxonfile, beside those of the options; NULL: none */
    const char *directory; /* where the tasks run; NULL: where the user stands */
    const struct run_record *original; /* which it is made from; NULL: none */
    const struct origin *origin;       /* as of supervisor.h, like the two below */
    supervisor_prepare *prepare;
    void *context;
    enum launch_code {
        LAUNCH_CODE_FOUND, /* the code of the working directory, --snapshot included */
        LAUNCH_CODE_GIVEN, /* `prepare` puts it there, and says what it is */
    } code;
};

/* Returns the exit status. */
int launch_run(const struct invocation *in, const struct launch *launch);

/* The options that are about the supervisor. Returns 0, or the exit status of a misuse. */
MUST_CHECK int launch_read_options(const struct invocation *in, struct supervisor_options *out);

/* Rows for a command's exit statuses. */
extern const struct status_help launch_statuses[];

#endif
