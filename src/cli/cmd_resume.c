/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/anew.h"
#include "cli/runs.h"

static int resume(const struct invocation *in) {
    return anew(in, ORIGIN_RESUMED);
}

static const struct option options[] = { LAUNCH_OPTIONS, { 0 } };

const struct command command_resume = {
    .name = "resume",
    .arguments = "RUN",
    .summary = "go on with the outputs of an earlier run",
    .description = "Makes a new run from an earlier one, whose outputs it goes on with: its tasks "
                   "find there what "
                   "those of the original left, and `MYELIN_OUTPUTS_PATH` is the same. It is "
                   "refused while the "
                   "original, or another run that resumed it, goes on. A run that was resumed "
                   "is not removed before those that resumed it. A run that resumed another can "
                   "be resumed in its turn: all of them have the outputs of the first."
                   "\n"
                   "\n" ANEW_NAMES "\n"
                   "\n" RUN_NAMES,
    .options = options,
    .examples = "myelin resume 12              # go on where run 12 ended\n"
                "myelin resume @ -P epochs=20  # the newest run, for longer\n",
    .statuses = launch_statuses,
    .misuse_status = STATUS_RUN_OWN_FAILURE,
    .run = resume,
};
