/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/anew.h"
#include "cli/runs.h"

static int restart(const struct invocation *in) {
    return anew(in, ORIGIN_RESTARTED);
}

static const struct option options[] = { LAUNCH_OPTIONS, { 0 } };

const struct command command_restart = {
    .name = "restart",
    .arguments = "RUN",
    .summary = "run an earlier run again, with outputs of its own",
    .description = "Makes a new run from an earlier one, with empty outputs."
                   "\n"
                   "\n" ANEW_NAMES "\n"
                   "\n" RUN_NAMES,
    .options = options,
    .examples = "myelin restart 12              # the same again\n"
                "myelin restart @ -P lr=0.01    # the newest run, with a parameter changed\n",
    .statuses = launch_statuses,
    .misuse_status = STATUS_RUN_OWN_FAILURE,
    .run = restart,
};
