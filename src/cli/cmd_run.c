/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/launch.h"

static int run(const struct invocation *in) {
    const struct launch launch = { .file = in->n_operands ? in->operands[0] : NULL };

    if (in->n_operands > 1)
        return invocation_misuse(in, "one FILE is run at a time; use -f to merge several");
    return launch_run(in, &launch);
}

static const struct option options[] = { LAUNCH_OPTIONS, { 0 } };

const struct command command_run = {
    .name = "run",
    .arguments = "[FILE]",
    .summary = "run an experiment and follow it",
    .description =
        "Starts all tasks of the experiment as processes of this machine, each with the "
        "environment that its framework expects, and prints what they write, each line behind "
        "the name of its task.\n"
        "\n"
        "FILE is a polyaxonfile, or a directory that holds one under a usual name "
        "(polyaxonfile.yml, "
        "polyaxon.yml, or .yaml or .json); without FILE it is the one of the current directory. "
        "The "
        "tasks run in the current directory, wherever the file is.\n"
        "\n"
        "The first task that fails stops the others: they get SIGTERM, and after the grace time "
        "SIGKILL. The report names that task, how it ended and, unless they were just shown on the "
        "same "
        "terminal, its last lines. When the run is "
        "over nothing of it is left running, not even what the tasks detached.\n"
        "\n"
        "TensorFlow succeeds with its chief, MXNet with its workers, PyTorch and Horovod with "
        "every task. Tasks that are not needed any more get 3 seconds to finish by themselves.\n"
        "\n"
        "What the tasks request of CPU, memory and GPUs is reserved for the whole gang before "
        "anything starts, first come, first served; until then the run waits, and says for "
        "what. What this machine never has is refused at once. A task sees the GPUs that "
        "it was granted, by `CUDA_VISIBLE_DEVICES`. One whose limit of CPUs equals its request, in "
        "whole numbers, is pinned to CPUs of its own. A file that requests nothing reserves "
        "nothing. `myelin why` tells more.\n"
        "\n"
        "With `max_restarts` a gang that fails is ended and started again, in the same run and "
        "with "
        "the same outputs, but on fresh ports: after 2 seconds (`--backoff`), then after twice as "
        "long each time, up to 5 minutes. A command that is not found, cannot be executed, refuses "
        "its arguments or lacks a module fails the run at once. A gang that finds an address in "
        "use "
        "at its start is started again once, on other ports, even without `max_restarts`. The exit "
        "status is that of the last attempt.\n"
        "\n"
        "With `--on kubernetes` a file runs on a cluster: as pods of our own, one for each task, "
        "or, with `backend: kubeflow`, as a job of Kubeflow's operators (a TFJob, PyTorchJob, "
        "MXJob or MPIJob). 'myelin render' prints either. It looks like a run of this machine: its "
        "logs are kept here, a failure is explained, and stopping it deletes the pods. A "
        "supervisor that dies leaves them alone: 'myelin attach' goes on with them.\n"
        "\n"
        "Ctrl-C stops the run, a second Ctrl-C kills it. Closing the terminal leaves it running: "
        "it has a supervisor of its own. The run is kept in `$MYELIN_HOME/runs/<id>` (`~/.myelin` "
        "unless set): the file, the journal, the logs and the outputs.",
    .options = options,
    .operand_kind = ARGUMENT_FILE,
    .examples = "myelin run                            # run ./polyaxonfile.yml\n"
                "myelin run mnist                      # run mnist/polyaxonfile.yml, from here\n"
                "myelin run train.yml -P lr=0.1        # run with a parameter changed\n"
                "myelin run train.yml --json 2>log     # for a script\n",
    .statuses = launch_statuses,
    .misuse_status = STATUS_RUN_OWN_FAILURE,
    .run = run,
};
