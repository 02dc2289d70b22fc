/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/takeover.h"
#include "cli/watch.h"
#include "store/owner.h"

/* The watching ended before the run did; returns the exit status. */
static int report_left(const struct rundir *rundir) {
    pid_t pid;

    if (!owner_lives(rundir, &pid)) {
        complain("run %s has no supervisor on this host", rundir->id);
        return STATUS_RUN_OWN_FAILURE;
    }
    fprintf(stderr,
            "myelin: left run %s, which goes on; 'myelin attach %s' follows it again, "
            "'myelin stop %s' stops it\n",
            rundir->id, rundir->id, rundir->id);
    return STATUS_OK;
}

static int follow(const struct invocation *in, const struct rundir *rundir, struct error *err) {
    const bool as_json = invocation_has(in, "json");
    const struct watch_options options = {
        .listener = -1,
        .out = as_json ? stderr : stdout,
        .style = invocation_has(in, "plain") ? FOLLOW_PLAIN : FOLLOW_AS_IT_IS,
        .q_leaves = true,
        .from_end = !invocation_has(in, "from-start"),
    };
    struct watch_end end;
    struct run_record run;
    struct plan plan;
    int status;

    if (runs_read(rundir, &run, err))
        return -1;
    plan = record_plan(&run);
    report_start(stderr, &plan, rundir);
    status = take_over_if_alone(&run, err);
    record_release(&run);
    if (status)
        return -1;
    if (watch_run(rundir, &options, &run, &end, err)) {
        record_release(&run);
        return -1;
    }
    if (end.outcome == WATCH_LEFT) {
        status = report_left(rundir);
    } else if (end.outcome == WATCH_GONE) {
        report_gone(stderr, rundir);
        status = STATUS_RUN_OWN_FAILURE;
    } else {
        report_end(stderr, &run, report_lines_after(stderr, options.out, end.has_shown_all));
        status = run.exit_status != EXIT_STATUS_NONE ? run.exit_status
                 : run.state == STATE_SUCCEEDED      ? STATUS_OK
                                                     : STATUS_RUN_OWN_FAILURE;
    }
    if (as_json && runs_print_json(&run))
        status = STATUS_RUN_OWN_FAILURE;
    record_release(&run);
    return status;
}

static int attach(const struct invocation *in) {
    AUTO(arena) arena = ARENA_INIT;
    struct rundir rundir;
    struct error err;
    int status;

    if (in->n_operands != 1)
        return invocation_misuse(in, "one RUN is followed at a time; 'myelin ps' lists them");
    if (runs_find_living(in->operands[0], &arena, &rundir, &err) ||
        (status = follow(in, &rundir, &err)) < 0) {
        complain("%s", runs_text(&arena, err.message, 0));
        return STATUS_RUN_OWN_FAILURE;
    }
    return status;
}

static const struct option options[] = {
    { .name = "from-start", .help = "show all that the tasks have written, not only what comes" },
    { .name = "plain",
      .help = "print as to a pipe, even on a terminal; controls are still shown as text" },
    { .name = "json", .help = "print the outcome as JSON; the tasks' lines go to standard error" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "the run succeeded, or was left by Ctrl-C or q" },
    { "125", "there is no such run, it cannot be followed, or myelin itself failed" },
    { "other", "as of `myelin run`" },
    { 0 },
};

const struct command command_attach = {
    .name = "attach",
    .arguments = "RUN",
    .summary = "follow a run that is going on",
    .description =
        "Prints what the tasks write from now on, each line behind the name of its "
        "task, until the run is over; then reports how it ended, as `myelin run` does. "
        "Ctrl-C or the key q ends the following and leaves the run alone. Any number of terminals "
        "can follow one run.\n"
        "\n" LIVING_RUN_NAMES,
    .options = options,
    .examples = "myelin attach @                 # the newest run that goes on\n"
                "myelin attach 12 --from-start   # with all that was written before\n",
    .statuses = statuses,
    .misuse_status = STATUS_RUN_OWN_FAILURE,
    .run = attach,
};
