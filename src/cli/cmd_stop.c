/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/amounts.h"
#include "cli/runs.h"
#include "cli/stopping.h"
#include "supervise/keeper.h"

enum { TIMEOUT_MOST_S = 24 * 3600 };

static int stop(const struct invocation *in) {
    struct stopping stopping = { .signal = KEEPER_STOP, .timeout_s = -1 };
    int status = amount_seconds(in, "timeout", TIMEOUT_MOST_S, &stopping.timeout_s);

    return status ? status : stopping_main(in, &stopping);
}

static const struct option options[] = {
    { .name = "timeout",
      .argument = "SECONDS",
      .help = "kill what is left after this time; the run's own grace time unless said" },
    { .name = "json", .help = "print what came of it as a list of JSON objects" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "the runs are over, also those that were before" },
    { "1", "there is no such run, or one of them cannot be stopped" },
    { "2", "the command line is wrong" },
    STOPPING_INTERRUPTED_STATUS,
    { 0 },
};

const struct command command_stop = {
    .name = "stop",
    .arguments = "RUN...",
    .summary = "stop runs, and wait until nothing of them is left",
    .description = "Tells the tasks of each run to end (SIGTERM), kills those that are left after "
                   "the grace time, and returns when the run is over. " STOPPING_INTERRUPTED "\n"
                   "\n" LIVING_RUN_NAMES,
    .options = options,
    .examples = "myelin stop @               # the newest run that goes on\n"
                "myelin stop 12 mnist        # two runs at once\n"
                "myelin stop 12 --timeout 2  # kill what is left after two seconds\n",
    .statuses = statuses,
    .run = stop,
};
