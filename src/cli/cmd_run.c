/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/follow.h"
#include "cli/load.h"
#include "cli/report.h"
#include "supervise/supervise.h"

enum { GRACE_MOST_S = 24 * 3600 };

static const int stop_signals[] = { SIGINT, SIGTERM, SIGHUP };

/* What the callbacks of one run share. */
struct session {
    const struct plan *plan;
    struct event_base *base;
    struct run *run;
    struct follow follow;
    struct event *signals[ARRAY_LEN(stop_signals)];
    unsigned stops; /* signals so far: stop, kill, leave */
    uint32_t grace_ms;
    const struct source *only_file; /* the polyaxonfile, when it is one; else NULL */
};

static void on_output(void *context, uint32_t rank, const char *bytes, size_t n) {
    struct session *session = context;

    follow_output(&session->follow, rank, bytes, n);
}

static void on_ended(void *context, uint32_t rank, const struct task_record *task) {
    struct session *session = context;

    (void)task;
    follow_ended(&session->follow, rank);
}

static void on_phase(void *context, enum run_phase phase) {
    struct session *session = context;

    if (phase == RUN_OVER)
        event_base_loopbreak(session->base);
}

static void on_notice(void *context, const char *sentence) {
    (void)context;
    fprintf(stderr, "myelin: %s\n", sentence);
}

static void on_signal(evutil_socket_t number, short what, void *arg) {
    struct session *session = arg;

    (void)what;
    switch (session->stops++) {
    case 0:
        fprintf(stderr,
                "myelin: SIG%s: stopping the tasks (%g s to finish; once more kills them)\n",
                sigabbrev_np((int)number), session->grace_ms / 1000.0);
        run_stop(session->run, STOP_GRACEFULLY);
        break;
    case 1:
        fprintf(stderr, "myelin: SIG%s again: killing the tasks\n", sigabbrev_np((int)number));
        run_stop(session->run, STOP_AT_ONCE);
        break;
    default: /* something does not even die of SIGKILL */
        fprintf(stderr, "myelin: left while tasks are still ending\n");
        event_base_loopbreak(session->base);
        break;
    }
}

/* Keeps the polyaxonfile as it was read. A merge of several has no one text. */
static int keep_file(void *context, const struct rundir *directory, struct error *err) {
    const struct session *session = context;

    if (!session->only_file)
        return 0;
    return rundir_write(directory, "polyaxonfile.yml", session->only_file->text,
                        session->only_file->len, err);
}

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

static int read_grace(const struct invocation *in, uint32_t *grace_ms) {
    const char *text = invocation_value(in, "grace");
    char *end;
    double seconds;

    *grace_ms = RUN_GRACE_MS;
    if (!text)
        return 0;
    errno = 0;
    seconds = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(seconds) || seconds < 0 || seconds > GRACE_MOST_S)
        return invocation_misuse(in, "--grace takes seconds from 0 to %d, not '%s'", GRACE_MOST_S,
                                 text);
    *grace_ms = (uint32_t)(seconds * 1000 + 0.5);
    return 0;
}

/* Why `run` cannot take the plan, or NULL. */
static const char *refusal(const struct plan *plan) {
    static const char *const by_backend[] = {
        [BACKEND_NATIVE] = NULL,
        [BACKEND_KUBEFLOW] = "the file asks for `backend: kubeflow`, and no cluster is configured; "
                             "to run it here, say `backend: native`",
        [BACKEND_MPI] = "the file asks for `backend: mpi`, which is not supported yet; to run it "
                        "here without mpirun, say `backend: native`",
        [BACKEND_OTHER] = "the file asks for a backend of its own, which only its own tool can "
                          "run; to run it here, say `backend: native`",
    };

    static_assert(ARRAY_LEN(by_backend) == BACKEND_COUNT, "every backend has a row");
    if (by_backend[plan->backend])
        return by_backend[plan->backend];
    if (plan->command_manner == COMMAND_NONE)
        return "the file names no command: add `run: {cmd: ...}`";
    return NULL;
}

/* One line for all that the plan asks and that is not done here yet. */
static void warn_of_limits(const struct plan *plan) {
    const char *separator = "";

    for (int i = 0; i < RESOURCE_COUNT; i++) {
        const struct resource_range *total = &plan->totals.of[i];
        const bool is_device = i == RESOURCE_GPU || i == RESOURCE_TPU;

        if (total->limits == ABSENT && !(is_device && total->requests != ABSENT))
            continue;
        fprintf(stderr, "%s%s", *separator ? separator : "myelin: warning: not enforced yet: ",
                resource_name((enum resource)i));
        separator = ", ";
    }
    if (*separator)
        fputs(" (the tasks run without these limits and share all devices)\n", stderr);
}

static void watch_signals(struct session *session) {
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++) {
        struct sigaction now;

        /* What whoever started us ignores stays ignored: nohup, a script's background job. */
        if (sigaction(stop_signals[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            continue;
        session->signals[i] = evsignal_new(session->base, stop_signals[i], on_signal, session);
        if (!session->signals[i])
            abort();
        event_add(session->signals[i], NULL);
    }
}

static void unwatch_signals(struct session *session) {
    for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++)
        if (session->signals[i])
            event_free(session->signals[i]); /* a signal ends the program again */
}

static void tell_of_lost_output(const struct outlet *outlet) {
    if (outlet->errnum && outlet->errnum != EPIPE)
        fprintf(stderr, "myelin: output could not be shown (%s); all of it is in the logs\n",
                strerror(outlet->errnum));
    else if (outlet->dropped && !outlet->errnum)
        fprintf(stderr,
                "myelin: %llu bytes of output came faster than they were read and are "
                "not shown; all of it is in the logs\n",
                (unsigned long long)outlet->dropped);
}

/* Follows the run to its end; returns the exit status. */
static int follow_run(struct session *session, bool as_json) {
    const struct run_state *state = run_state(session->run);
    struct error err;

    report_start(stderr, state);
    event_base_dispatch(session->base);
    unwatch_signals(session);
    memset(session->signals, 0, sizeof session->signals);
    outlet_finish(&session->follow.outlet);
    tell_of_lost_output(&session->follow.outlet);
    report_end(stderr, state, session->follow.tails);
    if (as_json && report_json(stdout, state, session->follow.tails, &err)) {
        fprintf(stderr, "myelin: %s\n", err.message);
        return STATUS_RUN_OWN_FAILURE;
    }
    return state->phase == RUN_OVER ? verdict_exit_status(&state->verdict) : STATUS_RUN_STOPPED;
}

static int run_loaded(const struct invocation *in, const struct loaded *loaded, uint32_t grace_ms) {
    const struct plan *plan = loaded->plan;
    const bool as_json = invocation_has(in, "json");
    AUTO(arena) arena = ARENA_INIT;
    struct session session = {
        .plan = plan,
        .base = event_base_new(),
        .grace_ms = grace_ms,
        .only_file = only_file(&loaded->sources),
    };
    const struct run_observer observer = {
        .output = on_output,
        .ended = on_ended,
        .phase = on_phase,
        .notice = on_notice,
        .context = &session,
    };
    struct run_options options = {
        .working_directory = getcwd(NULL, 0),
        .environment = environ,
        .grace_ms = grace_ms,
        .linger_ms = RUN_LINGER_MS,
        .keep = keep_file,
        .keep_context = &session,
    };
    char *const working_directory = (char *)(uintptr_t)options.working_directory;
    int status = STATUS_RUN_OWN_FAILURE;
    struct error err;

    if (!session.base)
        abort();
    follow_init(&session.follow, plan, invocation_has(in, "plain") ? FOLLOW_PLAIN : FOLLOW_NAMED,
                as_json ? stderr : stdout, session.base);
    watch_signals(&session);
    if (!options.working_directory)
        error_set_errno(&err, errno, "the working directory is gone");
    if (!options.working_directory || rundir_home(&arena, &options.home, &err) ||
        run_start(plan, &options, session.base, &observer, &session.run, &err))
        fprintf(stderr, "myelin: cannot run: %s\n", err.message);
    else
        status = follow_run(&session, as_json);
    unwatch_signals(&session);
    run_free(session.run);
    follow_release(&session.follow);
    event_base_free(session.base);
    free(working_directory);
    return status;
}

static int run(const struct invocation *in) {
    AUTO(loaded) loaded = { 0 };
    const char *why_not;
    uint32_t grace_ms;
    int misuse = read_grace(in, &grace_ms);

    if (misuse)
        return misuse;
    if (in->n_operands > 1)
        return invocation_misuse(in, "'run' takes one file, not %zu; merge more with -f",
                                 in->n_operands);
    load(in, in->n_operands ? in->operands[0] : NULL, &loaded);
    print_diags(&loaded);
    if (!loaded.plan)
        return STATUS_RUN_OWN_FAILURE;
    why_not = refusal(loaded.plan);
    if (why_not) {
        fprintf(stderr, "myelin: cannot run: %s\n", why_not);
        return STATUS_RUN_OWN_FAILURE;
    }
    warn_of_limits(loaded.plan);
    return run_loaded(in, &loaded, grace_ms);
}

static const struct option options[] = {
    LOAD_OPTIONS,
    { .name = "grace",
      .argument = "SECONDS",
      .help = "time that tasks get to finish when they are stopped; 10 unless said" },
    { .name = "plain", .help = "print the tasks' lines without their names" },
    { .name = "json", .help = "print the outcome as JSON; the tasks' lines go to standard error" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "the run succeeded" },
    { "N", "the code that the first failing task exited with" },
    { "126, 127", "a task's command cannot be executed, or was not found" },
    { "128+N", "the first failing task was ended by signal N" },
    { "125", "the file or the command line is wrong, or myelin itself failed" },
    { "130", "the run was stopped" },
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
        "Ctrl-C stops the run, a second Ctrl-C kills it. The run is kept in "
        "`$MYELIN_HOME/runs/<id>` (`~/.myelin` unless set): the file, the logs and the outputs.",
    .options = options,
    .operand_kind = ARGUMENT_FILE,
    .examples = "myelin run                            # run ./polyaxonfile.yml\n"
                "myelin run train.yml -P lr=0.1        # run with a parameter changed\n"
                "myelin run train.yml --json 2>log     # for a script\n",
    .statuses = statuses,
    .misuse_status = STATUS_RUN_OWN_FAILURE,
    .run = run,
};
