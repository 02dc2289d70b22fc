/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/launch.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/local/unenforced.h"
#include "cli/amounts.h"
#include "cli/answer.h"
#include "cli/failure.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/watch.h"
#include "code/snapshot.h"
#include "plan/environment.h"
#include "plan/plan.h"
#include "store/owner.h"
#include "store/request.h"
#include "supervise/again.h"
#include "supervise/supervise.h"
#include "supervise/tasklog.h"

enum {
    GRACE_MOST_S = 24 * 3600,
    TIMEOUT_MOST_S = 30 * 24 * 3600,
    PROCESSES_MOST = 4 * 1024 * 1024, /* the kernel has no more */
};
#define LOG_MOST_BYTES 0x1p60

/* A time from an option, in milliseconds; *out stays as it is if the option is not given. */
static int read_ms(const struct invocation *in, const char *option, int most_s, int64_t *out_ms) {
    double seconds = -1;
    const int status = amount_seconds(in, option, most_s, &seconds);

    if (status == 0 && seconds >= 0)
        *out_ms = (int64_t)(seconds * 1000 + 0.5);
    return status;
}

static int read_max_processes(const struct invocation *in, struct process_ceiling *out) {
    const char *text = invocation_value(in, "max-processes");
    char *end;
    long number;

    *out = (struct process_ceiling){ LIMIT_OF_RUN, RUN_PROCESSES_EACH };
    if (!text)
        return 0;
    errno = 0;
    number = strtol(text, &end, 10);
    if (end == text || *end || errno || number < 0 || number > PROCESSES_MOST)
        return invocation_misuse(in, "--max-processes takes a number from 0 to %d, not '%s'",
                                 PROCESSES_MOST, text);
    *out = (struct process_ceiling){ LIMIT_OF_TASK, (uint32_t)number };
    return 0;
}

static int read_log_limit(const struct invocation *in, uint64_t *limit) {
    const char *text = invocation_value(in, "log-limit");

    *limit = TASKLOG_LIMIT;
    if (text && !amount_bytes(text, LOG_MOST_BYTES, limit))
        return invocation_misuse(in,
                                 "--log-limit takes a size with a unit (B, K, M, G or T), such as "
                                 "500M, up to %.0fT, not '%s'",
                                 LOG_MOST_BYTES / (1ull << 40), text);
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
    struct watch_end end;
    struct error err;
    pid_t owner;
    int status;

    report_start(stderr, plan, rundir);
    if (watch_run(rundir, &options, &record, &end, &err)) {
        complain("the run goes on, but cannot be followed: %s", err.message);
        record_release(&record);
        return STATUS_RUN_OWN_FAILURE;
    }
    status = end.outcome == WATCH_LEFT ? STATUS_INTERRUPTED : record.exit_status;
    if (end.outcome == WATCH_LEFT && !owner_lives(rundir, &owner)) {
        fprintf(stderr,
                record.backend ? "myelin: nobody watches run %s here any more; it goes on, and "
                                 "'myelin attach %s' watches it again\n"
                               : "myelin: the supervisor of run %s is gone, and its end could not "
                                 "be recorded; 'myelin status %s' tries again\n",
                rundir->id, rundir->id);
        status = STATUS_RUN_OWN_FAILURE;
    }
    if (end.outcome == WATCH_GONE) {
        report_gone(stderr, rundir);
        status = STATUS_RUN_OWN_FAILURE;
    }
    if (end.outcome == WATCH_OVER)
        report_end(stderr, &record, report_lines_after(stderr, options.out, end.has_shown_all));
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
        complain("the run goes on, but cannot be shown: %s", err.message);
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
static int rehearse_start(const struct invocation *in, const struct launch *launch,
                          struct reserving *reserving, const char *home) {
    const char *file = launch->file ? launch->file : invocation_value(in, "file");
    struct answering answering = { 0 };
    struct answer answer;
    struct error err;
    struct json json;
    int status = STATUS_OK;

    if (answer_for_file(&answering, reserving, home, file, &answer, &err)) {
        complain("cannot run: %s", err.message);
        answering_release(&answering);
        return STATUS_RUN_OWN_FAILURE;
    }
    if (answer.kind == ANSWER_WAITS)
        status = STATUS_INVALID;
    if (invocation_has(in, "json")) {
        json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
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

/* ---- what is kept of the request ---- */

/* How this one command line is to be served, not what is asked for. */
static const char *const passing_options[] = { "detach",  "stop-on-hangup", "timeout",
                                               "dry-run", "plain",          "json" };

static bool is_passing(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(passing_options); i++)
        if (strcmp(passing_options[i], name) == 0)
            return true;
    return false;
}

/* The files that the plan came from, in their order, and last the request itself. */
struct kept {
    struct arena arena;
    struct request request;
    struct buf text; /* of the request */
    VEC(struct kept_file) files;
};

static void kept_release(struct kept *kept) {
    VEC_RELEASE(&kept->files);
    buf_release(&kept->text);
    request_release(&kept->request);
    arena_release(&kept->arena);
}

static void keep_files(struct kept *kept, const struct loaded *loaded) {
    for (size_t i = 0; i < loaded->n_given; i++) {
        const struct source *source = &loaded->sources.list.items[i];
        const size_t n = kept->files.len;
        const char *name = "polyaxonfile.yml";

        if (strcmp(source->name, "-P") == 0)
            continue;
        if (n > 0)
            name = arena_printf(&kept->arena, "polyaxonfile.%zu.yml", n + 1);
        *VEC_PUSH(&kept->files) = (struct kept_file){ name, source->text, source->len };
        *VEC_PUSH(&kept->request.options) = (struct request_pair){ "file", name };
    }
}

static int keep(const struct invocation *in, const struct loaded *loaded, struct kept *out,
                struct error *err) {
    *out = (struct kept){ .text = BUF_INIT(REQUEST_MAX) };
    keep_files(out, loaded);
    for (size_t i = 0; i < in->n_given; i++) {
        const struct given_option *given = &in->given[i];

        if (strcmp(given->option->name, "file") != 0 && !is_passing(given->option->name))
            *VEC_PUSH(&out->request.options) =
                (struct request_pair){ given->option->name, given->value };
    }
    for (size_t i = 0; request_variable(i); i++)
        *VEC_PUSH(&out->request.environment) =
            (struct request_pair){ request_variable(i), getenv(request_variable(i)) };
    if (request_format(&out->request, &out->text, err))
        return -1;
    *VEC_PUSH(&out->files) = (struct kept_file){ REQUEST_FILE, out->text.data, out->text.len };
    return 0;
}

/* ---- what is in its directory before it starts ---- */

struct preparing {
    const struct launch *launch;
    bool takes_snapshot;
    struct arena arena;
};

static int prepare(void *context, const struct rundir *rundir, struct supervisor_prepared *out,
                   struct error *err) {
    const struct archive_progress progress = { .tell = progress_unseen };
    struct preparing *preparing = context;
    const struct launch *launch = preparing->launch;
    char directory[PATH_MAX];

    if (launch->prepare && launch->prepare(launch->context, rundir, out, err))
        return -1;
    if (!preparing->takes_snapshot)
        return 0;
    if (!getcwd(directory, sizeof directory))
        return error_set_errno(err, errno, "the working directory is gone");
    return snapshot_take(directory, rundir_home_of(rundir, &preparing->arena), rundir, &progress,
                         &preparing->arena, &out->code, err);
}

/* ---- the start ---- */

/* Files were read where the user stands; the tasks run where they did the first time. */
static int go_to(const char *directory, struct error *err) {
    if (!directory)
        return 0;
    if (chdir(directory) < 0)
        return error_set_errno(err, errno, "the tasks are to run in '%.300s'", directory);
    setenv("PWD", directory, 1);
    return 0;
}

/* What is to be known of it where it goes. */
static void say_notes(const struct loaded *loaded, const struct venue *venue) {
    if (!venue->is_chosen)
        plan_local_notes(loaded->plan, say_note, NULL);
    for (size_t i = 0; i < venue->n_notes; i++)
        say_note(NULL, venue->notes[i]);
}

/* Starts it for good; prints its id, or follows it. Returns the exit status. */
static int start(const struct invocation *in, const struct loaded *loaded,
                 const struct venue *venue, struct supervisor_options *options,
                 struct arena *arena) {
    const bool detaches = invocation_has(in, "detach");
    struct rundir rundir;
    struct kept kept;
    struct error err;
    int status, listener = -1;

    /* An interrupt from here on is answered by who follows the run, or fills its outputs. */
    watch_hold_signals(SIG_BLOCK);
    status = keep(in, loaded, &kept, &err);
    options->listener = detaches ? NULL : &listener;
    options->files = kept.files.items;
    options->n_files = kept.files.len;
    if (status == 0)
        status = supervisor_start(loaded->plan, options, arena, &rundir, &err);
    kept_release(&kept);
    if (status) {
        watch_hold_signals(SIG_UNBLOCK);
        complain("cannot run: %s", err.message);
        return STATUS_RUN_OWN_FAILURE;
    }
    say_notes(loaded, venue);
    if (!detaches)
        return follow_run(in, loaded->plan, &rundir, listener);
    status = leave_run(in, &rundir);
    fflush(stdout); /* before an interrupt that was held back */
    watch_hold_signals(SIG_UNBLOCK);
    return status;
}

/* Where the outputs of an earlier run are that the file names. */
static int find_outputs(void *context, const char *run, const char **out, struct error *err) {
    struct arena *arena = context;
    struct rundir rundir;

    if (runs_find(run, arena, &rundir, err))
        return error_wrap(err, "`environment.outputs` names run %.100s", run);
    *out = rundir.outputs;
    return 0;
}

static int find_earlier(const struct plan *plan, const char **out, struct arena *arena,
                        struct error *err) {
    AUTO(buf) text = BUF_INIT(ENVIRONMENT_STRING_MAX);

    if (!plan->earlier.jobs && !plan->earlier.experiments)
        return 0;
    if (earlier_outputs_write(&plan->earlier, find_outputs, arena, &text, err))
        return -1;
    *out = arena_text(arena, text.data, text.len);
    return 0;
}

static int check_here(const struct plan *plan, const struct reserving *reserving,
                      struct supervisor_options *options, struct arena *arena, struct error *err) {
    const struct unenforced_text unenforced = unenforced_foresee(plan);

    options->demand = reserving->demand.n_tasks > 0 ? &reserving->demand : NULL;
    options->notice = rehearsal_notice(reserving);
    if (unenforced.text[0])
        options->unenforced = arena_text(arena, unenforced.text, strlen(unenforced.text));
    options->hides_gpus = reserving->terms.leaves_out[RESOURCE_GPU];
    return plan_check_local(plan, err) || reserving_check(reserving, err) ||
                   find_earlier(plan, &options->earlier_outputs, arena, err)
               ? -1
               : 0;
}

/* The cluster's own queue decides when it starts; nothing is reserved here. */
static void go_there(struct venue *venue, struct supervisor_options *options) {
    venue->options.timeout_ms = options->timeout_ms;
    options->elsewhere = &venue->maker;
}

static int rehearse_there(const struct loaded *loaded, const struct venue *venue) {
    printf("it would be submitted to %s, namespace %s; whether it starts at once is for the "
           "cluster to say\n",
           venue->maker.cluster, venue->maker.namespace);
    say_notes(loaded, venue);
    return STATUS_OK;
}

/* Returns the exit status. */
static int check_and_start(const struct invocation *in, const struct launch *launch,
                           struct loaded *loaded, struct reserving *reserving,
                           struct supervisor_options *options) {
    AUTO(arena) arena = ARENA_INIT;
    struct venue venue = { 0 };
    struct error err;
    int status = runs_home(&arena, &options->home, &err) ||
                 venue_choose(in, loaded, options->home, launch->original, &venue, &err);

    print_diags(loaded);
    if (status == 0 && launch->original)
        status =
            venue_inherit(&venue, options->home, launch->original, launch->origin->manner, &err);
    if (status == 0 && venue.is_chosen)
        go_there(&venue, options);
    else if (status == 0)
        status = check_here(loaded->plan, reserving, options, &arena, &err);
    if (status == 0)
        status = go_to(launch->directory, &err);
    if (status) {
        if (err.message[0])
            complain("cannot run: %s", err.message);
        status = STATUS_RUN_OWN_FAILURE;
    } else if (!invocation_has(in, "dry-run")) {
        status = start(in, loaded, &venue, options, &arena);
    } else {
        if (options->unenforced)
            fprintf(stderr, "myelin: %s\n", options->unenforced);
        status = venue.is_chosen ? rehearse_there(loaded, &venue)
                                 : rehearse_start(in, launch, reserving, options->home);
    }
    venue_release(&venue);
    return status;
}

int launch_read_options(const struct invocation *in, struct supervisor_options *out) {
    int64_t grace_ms = RUN_GRACE_MS, timeout_ms = QUEUE_NO_TIMEOUT;
    int64_t backoff_ms = AGAIN_DELAY_FIRST_MS;
    struct process_ceiling processes = { 0 };
    uint64_t log_limit = 0;
    int status = read_ms(in, "grace", GRACE_MOST_S, &grace_ms);

    if (status == 0)
        status = read_ms(in, "timeout", TIMEOUT_MOST_S, &timeout_ms);
    if (status == 0)
        status = read_ms(in, "backoff", AGAIN_DELAY_MOST_MS / 1000, &backoff_ms);
    if (status == 0)
        status = read_max_processes(in, &processes);
    if (status == 0)
        status = read_log_limit(in, &log_limit);
    *out = (struct supervisor_options){ .grace_ms = (uint32_t)grace_ms,
                                        .linger_ms = RUN_LINGER_MS,
                                        .timeout_ms = timeout_ms,
                                        .backoff_ms = (uint32_t)backoff_ms,
                                        .processes = processes,
                                        .log_limit = log_limit };
    return status;
}

int launch_run(const struct invocation *in, const struct launch *launch) {
    struct supervisor_options options;
    struct reserving reserving;
    struct loaded loaded;
    struct preparing preparing = { .launch = launch,
                                   .takes_snapshot = launch->code == LAUNCH_CODE_FOUND &&
                                                     invocation_has(in, "snapshot") };
    int status = launch_read_options(in, &options);

    if (status)
        return status;
    options.origin = launch->origin;
    options.prepare = prepare;
    options.prepare_context = &preparing;
    load(in, launch->file, &loaded);
    status = STATUS_RUN_OWN_FAILURE;
    if (!loaded.plan) {
        print_diags(&loaded);
    } else {
        reserving_init(&reserving, in, loaded.plan);
        status = check_and_start(in, launch, &loaded, &reserving, &options);
        reserving_release(&reserving);
    }
    loaded_release(&loaded);
    arena_release(&preparing.arena);
    return status;
}

const struct status_help launch_statuses[] = {
    { "0", "the run succeeded" },
    { "N", "the code that the first failing task exited with" },
    { "126, 127", "a task's command cannot be executed, or was not found" },
    { "128+N", "the first failing task was ended by signal N" },
    { "125", "the file or the command line is wrong, or myelin itself failed" },
    { "130",
      "the run was stopped, also while it waited; or the terminal was closed and it goes on" },
    { "1", "of --dry-run: it would have to wait" },
    { 0 },
};
