/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/anew.h"
#include "cli/runs.h"

static int copy(const struct invocation *in) {
    return anew(in, ORIGIN_COPIED);
}

static const struct option options[] = { LAUNCH_OPTIONS, { 0 } };

const struct command command_copy = {
    .name = "copy",
    .arguments = "RUN",
    .summary = "run an earlier run again, with a copy of its outputs",
    .description =
        "Makes a new run from an earlier one, with a copy of its outputs to begin with: the "
        "original "
        "stays as it is. It is refused while the original goes on. Files are copied byte for "
        "byte with their rights and times; links that lead out of the outputs, and "
        "empty directories, are left out. An interrupt during the copy leaves no run behind."
        "\n"
        "\n" ANEW_NAMES "\n"
        "\n" RUN_NAMES,
    .options = options,
    .examples = "myelin copy 12              # start from what run 12 left\n"
                "myelin copy 12 -P lr=0.01   # with a parameter changed\n",
    .statuses = launch_statuses,
    .misuse_status = STATUS_RUN_OWN_FAILURE,
    .run = copy,
};
