/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/runs.h"
#include "cli/stopping.h"
#include "supervise/keeper.h"

static int kill_command(const struct invocation *in) {
    static const struct stopping stopping = { .signal = KEEPER_KILL, .timeout_s = -1 };

    return stopping_main(in, &stopping);
}

static const struct option options[] = {
    { .name = "json", .help = "print what came of it as a list of JSON objects" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "the runs are over, also those that were before" },
    { "1", "there is no such run, or one of them cannot be killed" },
    { "2", "the command line is wrong" },
    STOPPING_INTERRUPTED_STATUS,
    { 0 },
};

const struct command command_kill = {
    .name = "kill",
    .arguments = "RUN...",
    .summary = "end runs at once, without grace",
    .description =
        "Kills all tasks of each run (SIGKILL), with what they have started, and returns "
        "when the run is over. `myelin stop` lets them finish. " STOPPING_INTERRUPTED "\n"
        "\n" LIVING_RUN_NAMES,
    .options = options,
    .examples = "myelin kill @    # the newest run that goes on\n",
    .statuses = statuses,
    .run = kill_command,
};
