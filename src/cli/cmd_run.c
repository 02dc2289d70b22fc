/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/answer.h"
#include "cli/command.h"
#include "cli/load.h"
#include "cli/report.h"
#include "cli/reserve.h"
#include "cli/runs.h"
#include "cli/watch.h"
#include "plan/plan.h"
#include "supervise/supervise.h"
#include "supervise/supervisor.h"

enum {
    GRACE_MOST_S = 24 * 3600,
    TIMEOUT_MOST_S = 30 * 24 * 3600,
    PROCESSES_MOST = 4 * 1024 * 1024, /* the kernel has no more */
};

/* The one text that the plan came from, or NULL. */
static const struct source *only_file(const struct sources *sources) {
    const struct source *found = NULL;

    for (size_t i = 0; i < sources->list.len; i++) {
        if (strcmp(sources->list.items[i].name, "-P") == 0)
            continue;
        if (found)
            return NULL;
        found = &sources->list.items[i];
    }
    return found;
}

/* A span of time from an option, in milliseconds; *out stays where it is not given. */
static int read_seconds(const struct invocation *in, const char *option, int most_s,
                        int64_t *out_ms) {
    const char *text = invocation_value(in, option);
    char *end;
    double seconds;

    if (!text)
        return 0;
    errno = 0;
    seconds = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(seconds) || seconds < 0 || seconds > most_s)
        return invocation_misuse(in, "--%s takes seconds from 0 to %d, not '%s'", option, most_s,
                                 text);
    *out_ms = (int64_t)(seconds * 1000 + 0.5);
    return 0;
}

static int read_max_processes(const struct invocation *in, uint32_t *max_processes) {
    const char *text = invocation_value(in, "max-processes");
    char *end;
    long number;

    *max_processes = RUN_MAX_PROCESSES;
    if (!text)
        return 0;
    errno = 0;
    number = strtol(text, &end, 10);
    if (end == text || *end || errno || number < 0 || number > PROCESSES_MOST)
        return invocation_misuse(in, "--max-processes takes a number from 0 to %d, not '%s'",
                                 PROCESSES_MOST, text);
    *max_processes = (uint32_t)number;
    return 0;
}

/* Follows the run to its end, or until the user goes; returns the exit status. */
static int follow_run(const struct invocation *in, const struct plan *plan,
                      const struct rundir *rundir, int listener) {
    const bool as_json = invocation_has(in, "json");
    const struct watch_options options = {
        .out = as_json ? stderr : stdout,
        .listener = listener,
        .style = invocation_has(in, "plain") ? FOLLOW_PLAIN : FOLLOW_AS_IT_IS,
        .signals_stop = true,
        .hangup_stops = invocation_has(in, "stop-on-hangup"),
    };
    struct run_record record;
    enum watch_outcome outcome;
    struct error err;
    int status;

    report_start(stderr, plan, rundir);
    if (watch_run(rundir, &options, &record, &outcome, &err)) {
        fprintf(stderr, "myelin: the run goes on, but cannot be followed: %s\n", err.message);
        record_release(&record);
        return STATUS_RUN_OWN_FAILURE;
    }
    status = outcome == WATCH_LEFT ? STATUS_INTERRUPTED : record.exit_status;
    if (outcome == WATCH_OVER)
        report_end(stderr, &record);
    if (as_json && runs_print_json(&record))
        status = STATUS_RUN_OWN_FAILURE;
    record_release(&record);
    return status;
}

/* Names the run that is left to itself; returns the exit status. */
static int leave_run(const struct invocation *in, const struct rundir *rundir) {
    struct run_record record;
    struct error err;
    int status = STATUS_OK;

    if (!invocation_has(in, "json")) {
        printf("%s\n", rundir->id);
        return STATUS_OK;
    }
    if (runs_read(rundir, &record, &err)) {
        fprintf(stderr, "myelin: the run goes on, but cannot be shown: %s\n", err.message);
        return STATUS_RUN_OWN_FAILURE;
    }
    if (runs_print_json(&record))
        status = STATUS_RUN_OWN_FAILURE;
    record_release(&record);
    return status;
}

static void say_note(void *context, const char *sentence) {
    (void)context;
    fprintf(stderr, "myelin: note: %s\n", sentence);
}

/* Which CPUs its tasks would have for themselves, if it started now. */
static void rehearse_pinning(const struct reserving *reserving, const struct ledger_view *view) {
    struct pinning pinning;

    reserving_pin(reserving, view, &pinning);
    if (pinning.trouble[0])
        puts(pinning.trouble);
    for (size_t i = 0; i < pinning.n_pins; i++) {
        AUTO(buf) list = BUF_INIT(CPUS_TEXT_MOST);
        struct error err;

        if (cpus_write(&pinning.pins[i].cpus, &list, &err) == 0)
            printf("%s on CPU%s %s\n",
                   task_name(&reserving->plan->tasks[pinning.pins[i].rank]).text,
                   pinning.pins[i].n == 1 ? "" : "s", list.data);
    }
    pinning_release(&pinning);
}

/* Says whether it would start now; returns the exit status. */
static int rehearse_start(const struct invocation *in, struct reserving *reserving,
                          const char *home) {
    const char *file = in->n_operands > 0 ? in->operands[0] : invocation_value(in, "file");
    struct answering answering = { 0 };
    struct answer answer;
    struct error err;
    struct json json;
    int status = STATUS_OK;

    if (answer_for_file(&answering, reserving, home, file, &answer, &err)) {
        fprintf(stderr, "myelin: cannot run: %s\n", err.message);
        answering_release(&answering);
        return STATUS_RUN_OWN_FAILURE;
    }
    if (answer.kind == ANSWER_WAITS)
        status = STATUS_INVALID;
    if (invocation_has(in, "json")) {
        json_init(&json, JSON_PRETTY, json_to_file, stdout);
        answer_write_json(&json, &answering, &answer);
        if (json_finish(&json, &err))
            status = STATUS_RUN_OWN_FAILURE;
    } else if (answer.kind == ANSWER_WAITS) {
        printf("it would be %s\n", answer.reason);
    } else {
        printf("it would start now%s\n", answer.position ? "" : ": it reserves nothing");
        if (answer.position)
            rehearse_pinning(reserving, &answering.view);
    }
    answering_release(&answering);
    return status;
}

static const char *rehearsal_notice(const struct reserving *reserving) {
    const struct demand_terms *terms = &reserving->terms;

    if (terms->leaves_out[RESOURCE_GPU] || terms->leaves_out[RESOURCE_TPU])
        return "a rehearsal: the tasks get none of the devices that the file asks for";
    return NULL;
}

static int start(const struct invocation *in, const struct loaded *loaded,
                 struct reserving *reserving, struct supervisor_options *options) {
    const struct source *file = only_file(&loaded->sources);
    AUTO(arena) arena = ARENA_INIT;
    struct rundir rundir;
    struct error err;
    int listener = -1;

    options->polyaxonfile = file ? file->text : NULL;
    options->polyaxonfile_len = file ? file->len : 0;
    options->demand = reserving->demand.n_tasks > 0 ? &reserving->demand : NULL;
    options->notice = rehearsal_notice(reserving);
    options->hides_gpus = reserving->terms.leaves_out[RESOURCE_GPU];
    if (plan_check_local(loaded->plan, &err) || reserving_check(reserving, &err) ||
        rundir_home(&arena, &options->home, &err)) {
        fprintf(stderr, "myelin: cannot run: %s\n", err.message);
        return STATUS_RUN_OWN_FAILURE;
    }
    if (invocation_has(in, "dry-run"))
        return rehearse_start(in, reserving, options->home);
    if (!invocation_has(in, "detach")) {
        watch_hold_signals(SIG_BLOCK);
        options->listener = &listener;
    }
    if (supervisor_start(loaded->plan, options, &arena, &rundir, &err)) {
        fprintf(stderr, "myelin: cannot run: %s\n", err.message);
        return STATUS_RUN_OWN_FAILURE;
    }
    plan_local_notes(loaded->plan, say_note, NULL);
    if (!invocation_has(in, "detach"))
        return follow_run(in, loaded->plan, &rundir, listener);
    return leave_run(in, &rundir);
}

static int run(const struct invocation *in) {
    int64_t grace_ms = RUN_GRACE_MS, timeout_ms = QUEUE_NO_TIMEOUT;
    struct reserving reserving;
    struct loaded loaded;
    uint32_t max_processes = 0;
    int status = read_seconds(in, "grace", GRACE_MOST_S, &grace_ms);

    if (status == 0)
        status = read_seconds(in, "timeout", TIMEOUT_MOST_S, &timeout_ms);
    if (status == 0)
        status = read_max_processes(in, &max_processes);
    if (status)
        return status;
    if (in->n_operands > 1)
        return invocation_misuse(in, "one FILE is run at a time; use -f to merge several");
    load(in, in->n_operands ? in->operands[0] : NULL, &loaded);
    print_diags(&loaded);
    status = STATUS_RUN_OWN_FAILURE;
    if (loaded.plan) {
        struct supervisor_options options = { .grace_ms = (uint32_t)grace_ms,
                                              .linger_ms = RUN_LINGER_MS,
                                              .timeout_ms = timeout_ms,
                                              .max_processes = max_processes };

        reserving_init(&reserving, in, loaded.plan);
        status = start(in, &loaded, &reserving, &options);
        reserving_release(&reserving);
    }
    loaded_release(&loaded);
    return status;
}

static const struct option options[] = {
    LOAD_OPTIONS,
    { .name = "grace",
      .argument = "SECONDS",
      .help = "time that tasks get to finish when they are stopped; 10 unless said" },
    { .name = "max-processes",
      .argument = "N",
      .help = "most processes and threads of a task that has limits; 8192 unless said, 0: any "
              "number" },
    { .name = "detach", .letter = 'd', .help = "print the run's id and leave it to itself" },
    { .name = "stop-on-hangup", .help = "stop the run when the terminal is closed" },
    RESERVE_OPTIONS,
    { .name = "timeout",
      .argument = "SECONDS",
      .help =
          "give up when its turn has not come by then; it waits as long as it takes unless said" },
    { .name = "dry-run", .help = "say whether it would start now, and start nothing" },
    { .name = "plain", .help = "print as to a pipe, even on a terminal" },
    { .name = "json", .help = "print the outcome as JSON; the tasks' lines go to standard error" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "the run succeeded" },
    { "N", "the code that the first failing task exited with" },
    { "126, 127", "a task's command cannot be executed, or was not found" },
    { "128+N", "the first failing task was ended by signal N" },
    { "125", "the file or the command line is wrong, or myelin itself failed" },
    { "130", "the run was stopped, also while it waited" },
    { "1", "of --dry-run: it would have to wait" },
    { 0 },
};

const struct command command_run = {
    .name = "run",
    .arguments = "[FILE]",
    .summary = "run an experiment here and follow it",
    .description =
        "Starts all tasks of the experiment as processes of this machine, each with the "
        "environment that its framework expects, and prints what they write, each line behind "
        "the name of its task.\n"
        "\n"
        "The first task that fails stops the others: they get SIGTERM, and after the grace time "
        "SIGKILL. The report names that task, how it ended and its last lines. When the run is "
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
        "Ctrl-C stops the run, a second Ctrl-C kills it. Closing the terminal leaves it running: "
        "it has a supervisor of its own. The run is kept in `$MYELIN_HOME/runs/<id>` (`~/.myelin` "
        "unless set): the file, the journal, the logs and the outputs.",
    .options = options,
    .operand_kind = ARGUMENT_FILE,
    .examples = "myelin run                            # run ./polyaxonfile.yml\n"
                "myelin run train.yml -P lr=0.1        # run with a parameter changed\n"
                "myelin run train.yml --json 2>log     # for a script\n",
    .statuses = statuses,
    .misuse_status = STATUS_RUN_OWN_FAILURE,
    .run = run,
};
