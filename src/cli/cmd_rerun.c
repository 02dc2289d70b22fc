/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/anew.h"
#include "cli/runs.h"

static int rerun(const struct invocation *in) {
    return anew(in, ORIGIN_RERUN);
}

static const struct option options[] = { LAUNCH_OPTIONS, { 0 } };

const struct command command_rerun = {
    .name = "rerun",
    .arguments = "RUN",
    .summary = "run the code of an earlier run again, as it was then",
    .description =
        "Makes a new run from an earlier one, with the code that it ran and empty outputs. The "
        "code is put into the directory of the new run, as `code`, and the tasks run there, in the "
        "place that stands for the directory of the original: nothing of the present files is "
        "touched or used.\n"
        "\n"
        "The code comes from the snapshot of the run where it has one (`run --snapshot`), else "
        "from its repository, which has to be where it was: its commit, and the changes that were "
        "kept. Files that git did not know are missing then, and so is what is in submodules: a "
        "line says which. What was changed too much to be kept is refused.\n"
        "\n"
        "What the run was started with is kept with it: files, `-P` and the options that are about "
        "the run. Those given here come after them, so a later `-P` or `-f` wins. The environment "
        "of the tasks is that of this shell.\n"
        "\n" RUN_NAMES,
    .options = options,
    .examples = "myelin rerun 12              # exactly that again\n"
                "myelin rerun 12 -P lr=0.01   # the same code, with a parameter changed\n",
    .statuses = launch_statuses,
    .misuse_status = STATUS_RUN_OWN_FAILURE,
    .run = rerun,
};
