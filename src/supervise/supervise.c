/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/supervise.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/local/inventory.h"
#include "backend/local/listeners.h"
#include "backend/local/local.h"
#include "backend/local/program.h"
#include "base/clock.h"
#include "base/file.h"
#include "plan/environment.h"
#include "supervise/merge.h"
#include "supervise/rendezvous.h"
#include "supervise/tasklog.h"

static const char local_host[] = "127.0.0.1";

enum { DIAGNOSED_OUTPUT = TAIL_MOST, LEFT_MOST = 640, LOG_TROUBLES_TOLD = 8 };

/* Written once: a gang of n asks n * n times, as each task is told all addresses. */
struct port_text {
    char digits[8];
};

struct run {
    struct run_status state;
    char left[LEFT_MOST]; /* the first of those sentences */
    struct run_options options;
    struct run_observer observer;
    struct event_base *base;
    struct backend *backend;
    struct arena arena;

    struct ports ports; /* one a task; Horovod's rendezvous has the one behind them */
    struct port_text *port_texts;
    struct rendezvous *rendezvous;
    struct run_facts facts;
    struct wiring wiring;

    char **argv; /* the same for all tasks */
    struct merge merge;
    struct environment environment; /* of the task being described */
    struct task_name name;
    char attempt_text[16];
    struct attempt_facts attempt; /* of a gang elsewhere */

    struct task_state *tasks;
    struct tasklog *logs;
    struct tasklog_place log_place;
    uint32_t n_log_troubles; /* tasks that have lost output */
    uint32_t n_started, n_ended;
    struct event linger_event, doubt_event;
};

static void enter(struct run *run, enum run_phase phase) {
    if (run->state.phase == phase)
        return;
    run->state.phase = phase;
    run->observer.phase(run->observer.context, phase);
}

static void fact_host(const struct run_facts *facts, const struct plan *plan, uint32_t rank,
                      char *out, size_t size) {
    (void)facts, (void)plan, (void)rank;
    assert(size >= sizeof local_host);
    memcpy(out, local_host, sizeof local_host);
}

static void fact_port(const struct run_facts *facts, const struct plan *plan, uint32_t rank,
                      char *out, size_t size) {
    const struct run *run = facts->context;

    (void)plan;
    assert(size >= sizeof run->port_texts[rank]);
    memcpy(out, run->port_texts[rank].digits, sizeof run->port_texts[rank]);
}

/* A task sees the GPUs that it was granted and no others, numbered as the ledger has them. */
static void show_gpus(struct run *run, uint32_t rank) {
    AUTO(buf) list = BUF_INIT(4 * GPUS_MAX);
    struct error err;

    if (!run->options.gpus)
        return;
    for (int i = 0; i < GPUS_MAX; i++)
        if (run->options.gpus[rank] >> i & 1 &&
            buf_printf(&list, &err, "%s%d", list.len ? "," : "", i))
            assert(!"the list fits");
    environment_set(&run->environment, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    environment_set(&run->environment, "CUDA_VISIBLE_DEVICES", list.data);
}

/* Where the task runs; it is told of CPUs that are its own. */
static const struct cpus *place_on_cpus(struct run *run, uint32_t rank) {
    const struct pinning *pinning = run->options.pinning;
    const struct cpus *own = pinning ? pinning_of(pinning, rank) : NULL;
    AUTO(buf) list = BUF_INIT(CPUS_TEXT_MOST);
    struct error err;

    if (own && cpus_write(own, &list, &err) == 0)
        environment_set(&run->environment, "MYELIN_CPUS", list.data);
    return pinning ? pinning_place(pinning, rank) : NULL;
}

static int describe(void *context, uint32_t rank, struct task_start *start, struct error *err) {
    struct run *run = context;
    const struct plan *plan = run->state.plan;
    const struct cpus *cpus;

    environment_release(&run->environment);
    run->environment = (struct environment){ 0 };
    if (wiring_environment(&run->wiring, rank, &run->environment, err))
        return -1;
    show_gpus(run, rank);
    cpus = place_on_cpus(run, rank);
    run->name = task_name(&plan->tasks[rank]);
    *start = (struct task_start){
        .name = run->name.text,
        .argv = run->argv,
        .envp = merge_environment(&run->merge, run->environment.items),
        .directory = run->options.working_directory,
        .resources = &plan->tasks[rank].profile->resources,
        .cpus = cpus,
    };
    return 0;
}

static void on_started(void *context, uint32_t rank, int64_t id) {
    struct run *run = context;

    run->observer.started(run->observer.context, rank, id);
    if (++run->n_started == run->state.plan->n_tasks && run->state.phase < RUN_RUNNING)
        enter(run, RUN_RUNNING);
}

/* ---- a gang elsewhere ---- */

static void on_submitted(void *context) {
    struct run *run = context;

    if (run->state.phase == RUN_LAUNCHING)
        enter(run, RUN_SUBMITTED);
}

static void on_waits(void *context, const char *sentence) {
    struct run *run = context;

    if (run->state.phase < RUN_RUNNING)
        run->observer.waits(run->observer.context, sentence);
}

static uint64_t delivered(void *context, uint32_t rank) {
    struct run *run = context;
    const struct task_name name = task_name(&run->state.plan->tasks[rank]);

    return tasklog_size(run->options.logs, name.text);
}

/* Of each task, once, up to a number: a full disk is the same for all of a thousand. */
static void tell_log_trouble(struct run *run, const char *task, const struct tasklog *log) {
    const uint64_t limit = run->options.log_limit;
    char sentence[256];

    if (run->n_log_troubles++ > LOG_TROUBLES_TOLD)
        return;
    if (run->n_log_troubles > LOG_TROUBLES_TOLD)
        snprintf(sentence, sizeof sentence,
                 "more logs cannot be kept whole: 'myelin status' tells how much each task lost");
    else if (log->kept >= limit)
        snprintf(sentence, sizeof sentence,
                 "the log of %s has reached its limit of %" PRIu64
                 " bytes (--log-limit): what comes is counted, not kept; the run goes on",
                 task, limit);
    else if (log->errnum == ENOENT && log->fd >= 0)
        snprintf(sentence, sizeof sentence,
                 "the log of %s was removed: what was in it is lost, and it begins again", task);
    else
        snprintf(sentence, sizeof sentence,
                 "the log of %s cannot be written (%s): output is being lost, the run goes on",
                 task,
                 log->errnum == FILE_IS_NOT_REGULAR || log->errnum == ELOOP
                     ? "something else is in its place"
                     : strerror(log->errnum));
    run->observer.notice(run->observer.context, sentence);
}

static void on_output(void *context, uint32_t rank, const char *bytes, size_t n) {
    struct run *run = context;
    struct tasklog *log = &run->logs[rank];
    const struct task_name name = task_name(&run->state.plan->tasks[rank]);
    const bool was_whole = log->lost == 0;

    tasklog_write(log, &run->log_place, name.text, tasklog_now(run->log_place.origin_us), bytes, n);
    run->tasks[rank].log_lost = log->lost;
    run->observer.output(run->observer.context, rank);
    if (was_whole && log->lost)
        tell_log_trouble(run, name.text, log);
}

static void stop_gang(struct run *run, enum stop_manner manner) {
    evtimer_del(&run->linger_event);
    evtimer_del(&run->doubt_event);
    run->backend->ops->stop(run->backend, manner, run->options.grace_ms);
}

static void on_linger_over(evutil_socket_t fd, short what, void *arg) {
    struct run *run = arg;

    (void)fd, (void)what;
    verdict_stopping(&run->state.verdict);
    enter(run, RUN_STOPPING);
    stop_gang(run, STOP_GRACEFULLY);
}

/* A program of this machine whose name is near: what `python` was meant to be is mostly python3. */
static void suggest_program(const struct run *run, struct diagnosis *why) {
    char near[NAME_MAX + 1];

    if (why->program[0] && !run->options.elsewhere &&
        program_nearest(why->program, run->options.environment, near))
        snprintf(why->hint, sizeof why->hint,
                 "did you mean '%.80s'? Else install '%s', or add its directory to PATH", near,
                 why->program);
}

static void diagnose_task(const struct run *run, uint32_t rank, struct diagnosis *why) {
    const struct task_name name = task_name(&run->state.plan->tasks[rank]);
    const struct tasklog *log = &run->logs[rank];
    AUTO(buf) output = BUF_INIT(DIAGNOSED_OUTPUT);

    tasklog_tail(log, run->options.logs, name.text, &output);
    diagnose(name.text, &run->tasks[rank].end, output.data, output.len,
             tasklog_lost_tail(log) ? OUTPUT_LOST : OUTPUT_WHOLE, why);
    suggest_program(run, why);
}

static void stop_after_failure(struct run *run) {
    verdict_stopping(&run->state.verdict);
    enter(run, RUN_STOPPING);
    stop_gang(run, STOP_GRACEFULLY);
}

static void on_doubt_over(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    stop_after_failure(arg);
}

/* A task that says that it lost a peer is rarely the cause: the peer is given a moment to end,
 * before it would be told to. */
static void act_on_failure(struct run *run) {
    const struct timeval doubt = clock_timeval(RUN_DOUBT_MS);

    diagnose_task(run, run->state.verdict.first_failed, &run->state.why);
    if (run->state.why.blame != BLAMES_NOBODY && run->n_ended < run->state.plan->n_tasks)
        evtimer_add(&run->doubt_event, &doubt);
    else
        stop_after_failure(run);
}

/* While it is in doubt who failed: is this the one? */
static void reconsider(struct run *run, uint32_t rank) {
    struct diagnosis why;

    if (run->tasks[rank].fate == FATE_FAILED) {
        diagnose_task(run, rank, &why);
        if (diagnosis_is_echo(&why, &run->state.why)) {
            verdict_blame(&run->state.verdict, rank, &run->tasks[rank].end);
            run->state.why = why;
        }
    }
    if (run->state.why.blame == BLAMES_NOBODY || run->n_ended == run->state.plan->n_tasks)
        stop_after_failure(run);
}

/* What the verdict, right after it has fallen, leads to. */
static void act_on_verdict(struct run *run) {
    const struct timeval linger = clock_timeval(run->options.linger_ms);

    switch (run->state.verdict.state) {
    case VERDICT_SUCCEEDED:
        enter(run, RUN_LINGERING);
        evtimer_add(&run->linger_event, &linger);
        break;
    case VERDICT_FAILED: act_on_failure(run); break;
    case VERDICT_STOPPED:
    case VERDICT_RUNNING:
    case VERDICT_STATE_COUNT: break;
    }
}

enum telling { TELL_OBSERVER, KNOWN_BEFORE };

static void take_end(struct run *run, uint32_t rank, const struct task_end *end,
                     enum telling telling) {
    struct task_state *task = &run->tasks[rank];
    const bool was_running = run->state.verdict.state == VERDICT_RUNNING;

    if (task->fate != FATE_RUNNING)
        return; /* known before it was taken over */
    tasklog_end(&run->logs[rank]);
    task->fate = verdict_ended(&run->state.verdict, rank, end);
    task->end = *end;
    task->was_started = end->kind != TASK_NOT_STARTED;
    if (end->message)
        task->end.message = arena_text(&run->arena, end->message, strlen(end->message));
    run->n_ended++;
    if (telling == TELL_OBSERVER)
        run->observer.ended(run->observer.context, rank, task);
    if (was_running && run->state.verdict.state != VERDICT_RUNNING)
        act_on_verdict(run);
    else if (evtimer_pending(&run->doubt_event, NULL))
        reconsider(run, rank);
    tasklog_close(&run->logs[rank]); /* the diagnosis has read it */
}

static void on_ended(void *context, uint32_t rank, const struct task_end *end) {
    take_end(context, rank, end, TELL_OBSERVER);
}

/* What was seen before leads to the verdict that it would have led to, or had. */
static void take_over(struct run *run, const struct run_past *past) {
    for (size_t i = 0; i < past->n_ends; i++)
        if (!past->ends[i].was_stopped)
            take_end(run, past->ends[i].rank, &past->ends[i].end, KNOWN_BEFORE);
    if (past->was_stopping && run->state.verdict.state == VERDICT_RUNNING)
        run_stop(run, STOP_GRACEFULLY);
    else if (past->was_stopping && evtimer_pending(&run->doubt_event, NULL))
        stop_after_failure(run);
    for (size_t i = 0; i < past->n_ends; i++)
        if (past->ends[i].was_stopped)
            take_end(run, past->ends[i].rank, &past->ends[i].end, KNOWN_BEFORE);
}

static void on_notice(void *context, const char *sentence) {
    struct run *run = context;

    run->observer.notice(run->observer.context, sentence);
}

static void on_left(void *context, enum left_manner manner, const char *sentence) {
    struct run *run = context;

    run->state.is_left |= manner == LEFT_RUNNING;
    if (!run->state.left) {
        snprintf(run->left, sizeof run->left, "%s", sentence);
        run->state.left = run->left;
    }
    run->observer.notice(run->observer.context, sentence);
}

static void on_gone(void *context) {
    struct run *run = context;

    evtimer_del(&run->linger_event);
    evtimer_del(&run->doubt_event);
    rendezvous_free(run->rendezvous);
    run->rendezvous = NULL;
    enter(run, RUN_OVER);
}

/* The words of the command, or the shell with the command as one word. */
static void prepare_command(struct run *run) {
    const struct plan *plan = run->state.plan;
    char *text = arena_text(&run->arena, plan->command, strlen(plan->command));
    char *rest = NULL;
    size_t n = 0;

    if (plan->command_manner == COMMAND_SHELL) {
        char found[4096];
        struct error ignored;
        int errnum;
        const bool has_bash =
            program_find("bash", run->options.environment, NULL, found, &errnum, &ignored) == 0;

        run->argv = ARENA_ARRAY(&run->arena, char *, 4);
        run->argv[0] = arena_text(&run->arena, has_bash ? "bash" : "sh", has_bash ? 4 : 2);
        run->argv[1] = arena_text(&run->arena, "-c", 2);
        run->argv[2] = text;
        return;
    }
    run->argv = ARENA_ARRAY(&run->arena, char *, strlen(text) / 2 + 2);
    for (char *word = strtok_r(text, " \t\r\n", &rest); word;
         word = strtok_r(NULL, " \t\r\n", &rest))
        run->argv[n++] = word;
}

static int prepare_rendezvous(struct run *run, struct error *err) {
    const uint32_t n = run->state.plan->n_tasks;
    const struct meeting_limits limits = meeting_limits_for(n);
    const uint16_t port = run->ports.list.items[n];

    return rendezvous_new(run->base, port, &limits, &run->rendezvous, err);
}

static int prepare_elsewhere(struct run *run, struct error *err) {
    const struct backend_maker *maker = run->options.elsewhere;

    run->attempt = (struct attempt_facts){
        .run_id = run->options.rundir->id,
        .uuid = run->options.uuid,
        .owner = run->options.owner,
        .logs = run->options.logs,
        .spool = run->options.rundir->spool,
        .outputs = run->options.rundir->outputs,
        .number = run->options.attempt,
        .grace_ms = run->options.grace_ms,
        .was_submitted = run->options.past != NULL,
    };
    return maker->make(maker->context, run->base, &run->attempt, &run->backend, err);
}

/* Why a task might find its port taken, told before it does. Where tasks of a framework do not meet
 * on ports nobody will miss one. */
static void tell_of_ports(struct run *run) {
    char sentence[256];

    if (run->ports.n_ephemeral == 0 || run->state.plan->n_tasks < 2)
        return;
    snprintf(sentence, sizeof sentence,
             "%zu of the tasks' ports are in the range from which the kernel picks ports for any "
             "connection (net.ipv4.ip_local_port_range): one may be taken before its task listens",
             run->ports.n_ephemeral);
    run->observer.notice(run->observer.context, sentence);
}

static int prepare_here(struct run *run, struct error *err) {
    const struct plan *plan = run->state.plan;
    const bool is_horovod = plan->framework == FRAMEWORK_HOROVOD;

    if (ports_lease(&run->ports, plan->n_tasks + (is_horovod ? 1u : 0u), err))
        return -1;
    tell_of_ports(run);
    run->port_texts = ARENA_ARRAY(&run->arena, struct port_text, run->ports.list.len);
    for (size_t i = 0; i < run->ports.list.len; i++)
        snprintf(run->port_texts[i].digits, sizeof run->port_texts[i].digits, "%u",
                 run->ports.list.items[i]);
    if (is_horovod && prepare_rendezvous(run, err))
        return -1;
    if (local_backend_new(run->base, &run->backend, err))
        return -1;
    snprintf(run->attempt_text, sizeof run->attempt_text, "%" PRIu32, run->options.attempt);
    run->facts = (struct run_facts){
        .run_id = run->options.rundir->id,
        .run_uuid = run->options.uuid,
        .owner = run->options.owner,
        .project = "default",
        .outputs_path = run->options.rundir->outputs,
        .earlier_outputs = run->options.earlier_outputs,
        .spool_path = run->options.rundir->spool,
        .logs_path = run->options.logs,
        .attempt = run->attempt_text,
        .rendezvous_host = is_horovod ? local_host : NULL,
        .rendezvous_port = is_horovod ? run->port_texts[plan->n_tasks].digits : NULL,
        .host = fact_host,
        .shared_cpus = plan->n_tasks > 1 ? inventory_cpus() : 0,
        .port = fact_port,
        .context = run,
    };
    prepare_command(run);
    merge_init(&run->merge, run->options.environment);
    return wiring_init(&run->wiring, plan, &run->facts, err);
}

static int launch(struct run *run, struct error *err) {
    const struct gang gang = {
        .id = run->options.uuid,
        .n_tasks = run->state.plan->n_tasks,
        .processes = run->options.processes,
        .describe = describe,
        .started = on_started,
        .output = on_output,
        .ended = on_ended,
        .notice = on_notice,
        .gone = on_gone,
        .submitted = on_submitted,
        .waits = on_waits,
        .delivered = delivered,
        .left = on_left,
        .context = run,
    };

    return run->backend->ops->launch(run->backend, &gang, err);
}

int run_start(const struct plan *plan, const struct run_options *options, struct event_base *base,
              const struct run_observer *observer, struct run **out, struct error *err) {
    struct run *run = calloc(1, sizeof *run);

    if (!run)
        abort();
    run->options = *options;
    run->observer = *observer;
    run->base = base;
    run->tasks = calloc(plan->n_tasks, sizeof *run->tasks);
    run->logs = calloc(plan->n_tasks, sizeof *run->logs);
    if (!run->tasks || !run->logs)
        abort();
    for (uint32_t rank = 0; rank < plan->n_tasks; rank++)
        run->logs[rank] = (struct tasklog)TASKLOG_INIT;
    run->log_place = (struct tasklog_place){ .directory = options->logs,
                                             .limit = options->log_limit,
                                             .origin_us = options->log_origin_us };
    run->state.plan = plan;
    run->state.tasks = run->tasks;
    verdict_init(&run->state.verdict, framework_facts(plan->framework)->success, plan->n_role);
    evtimer_assign(&run->linger_event, base, on_linger_over, run);
    evtimer_assign(&run->doubt_event, base, on_doubt_over, run);
    if ((options->elsewhere ? prepare_elsewhere(run, err) : prepare_here(run, err)) ||
        launch(run, err)) {
        run_free(run);
        return -1;
    }
    *out = run;
    if (options->past)
        take_over(run, options->past);
    return 0;
}

void run_stop(struct run *run, enum stop_manner manner) {
    if (run->state.phase == RUN_OVER)
        return;
    verdict_stop(&run->state.verdict);
    enter(run, RUN_STOPPING);
    stop_gang(run, manner);
}

const struct run_status *run_status(const struct run *run) {
    return &run->state;
}

size_t run_listeners(const struct run *run) {
    return listeners_count(run->ports.list.items, run->ports.list.len);
}

struct ports run_take_ports(struct run *run) {
    const struct ports taken = run->ports;

    assert(run->state.phase == RUN_OVER);
    run->ports = (struct ports){ 0 };
    return taken;
}

void run_free(struct run *run) {
    if (!run)
        return;
    for (uint32_t rank = 0; rank < run->state.plan->n_tasks; rank++)
        tasklog_close(&run->logs[rank]);
    evtimer_del(&run->linger_event);
    evtimer_del(&run->doubt_event);
    if (run->backend)
        run->backend->ops->free(run->backend);
    rendezvous_free(run->rendezvous);
    ports_release(&run->ports);
    merge_release(&run->merge);
    wiring_release(&run->wiring);
    environment_release(&run->environment);
    arena_release(&run->arena);
    free(run->tasks);
    free(run->logs);
    free(run);
}
