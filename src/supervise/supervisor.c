/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/cgroup.h"
#include "base/signals.h"
#include "store/host.h"
#include "store/journal.h"
#include "store/owner.h"
#include "store/record.h"
#include "supervise/bell.h"
#include "supervise/diagnosis.h"
#include "supervise/keeper.h"
#include "supervise/queue.h"
#include "supervise/supervise.h"

extern char **environ;

#define NOT_LOOKED_FOR SIZE_MAX /* the keeper does not know the run's ports */

enum {
    UUID_TEXT = 33,
    OWN_FAILURE = 125,
    STOPPED = 130,
    GATHER_US = 5000, /* lines of tasks wait so long for each other: nobody sees the difference */
};

/* What the three processes of a run share at the start; each has its copy after the fork. */
struct supervisor {
    const struct plan *plan;
    const struct supervisor_options *options;
    struct rundir rundir;
    struct journal journal;
    int lock;
    char uuid[UUID_TEXT];
    const char *owner, *working_directory;

    struct event_base *base;
    struct run *run;
    struct queue *queue;               /* of a run that reserves something */
    const struct placement *placement; /* the queue's, once it is the run's turn */
    gpu_set *no_gpus;
    bool has_ended; /* its end was written */
    struct event *gather_event;
    struct bell bell;
};

/* ---- lines of the journal ---- */

static void write_created(struct supervisor *supervisor) {
    const struct plan *plan = supervisor->plan;
    struct json *json = journal_begin(&supervisor->journal, "created");
    char host[HOST_TEXT], boot[BOOT_TEXT];
    const struct {
        const char *key, *value;
    } texts[] = {
        { "uuid", supervisor->uuid },   { "name", plan->name },
        { "owner", supervisor->owner }, { "host", host_name(host) },
        { "boot_id", boot_id(boot) },   { "framework", plan->framework_label },
        { "command", plan->command },   { "directory", supervisor->working_directory },
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_key(json, texts[i].key);
        json_text(json, texts[i].value);
    }
    json_key(json, "monotonic");
    json_number(json, (double)supervisor->journal.started_us / 1e6);
    json_key(json, "counts");
    json_object(json);
    for (enum role role = 0; role < ROLE_COUNT; role++) {
        json_key(json, role_name(role));
        json_int(json, plan->n_role[role]);
    }
    json_end(json);
    journal_end(&supervisor->journal, JOURNAL_SOON);
}

static struct json *begin_status(struct journal *journal, enum state state, const char *reason) {
    struct json *json = journal_begin(journal, "status");

    json_key(json, "status");
    json_text(json, state_name(state));
    if (reason && *reason) {
        json_key(json, "reason");
        json_text(json, reason);
    }
    return json;
}

static void write_status(struct supervisor *supervisor, enum state state) {
    begin_status(&supervisor->journal, state, NULL);
    journal_end(&supervisor->journal, JOURNAL_SOON);
}

/* The last line of a run: how it ended. */
static void write_end(struct journal *journal, enum state state, const char *reason,
                      const struct diagnosis *why, int64_t first_failed, int exit_status) {
    struct json *json = begin_status(journal, state, reason);

    if (first_failed >= 0) {
        json_key(json, "first_failed");
        json_int(json, first_failed);
    }
    if (why && why->place.line > 0) {
        char place[DIAGNOSIS_FILE_MOST + 16];

        snprintf(place, sizeof place, "%s:%u", why->place.file, why->place.line);
        json_key(json, "place");
        json_text(json, place);
    }
    if (why && why->hint[0]) {
        json_key(json, "hint");
        json_text(json, why->hint);
    }
    if (why) {
        json_key(json, "kind");
        json_text(json, diagnosis_kind_name(why->kind));
    }
    json_key(json, "exit_status");
    json_int(json, exit_status);
    journal_end(journal, JOURNAL_DURABLE);
}

/* Before the end is written: somebody has looked, and nothing of the run was left. */
static void write_checked(struct journal *journal, size_t listeners, unsigned cgroups) {
    struct json *json = journal_begin(journal, "checked");

    json_key(json, "processes");
    json_int(json, 0);
    if (listeners != NOT_LOOKED_FOR) {
        json_key(json, "listeners");
        json_int(json, (int64_t)listeners);
    }
    json_key(json, "cgroups");
    json_int(json, cgroups);
    journal_end(journal, JOURNAL_SOON);
}

static bool has_limits(const struct plan *plan) {
    return plan->totals.of[RESOURCE_CPU].limits > 0 || plan->totals.of[RESOURCE_MEMORY].limits > 0;
}

/* ---- what the run tells ---- */

/* Ends a line of which many may come in one turn: they are written together. */
static void gather(struct supervisor *supervisor) {
    const struct timeval delay = { .tv_usec = GATHER_US };

    journal_end(&supervisor->journal, JOURNAL_GATHERED);
    if (!evtimer_pending(supervisor->gather_event, NULL))
        evtimer_add(supervisor->gather_event, &delay);
}

static void on_gathered(evutil_socket_t fd, short what, void *context) {
    struct supervisor *supervisor = context;

    (void)fd, (void)what;
    journal_flush(&supervisor->journal);
}

/* The CPUs that are the task's own. */
static void write_cpus(struct supervisor *supervisor, struct json *json, uint32_t rank) {
    const struct placement *placement = supervisor->placement;
    const struct cpus *cpus = placement ? pinning_of(placement->pinning, rank) : NULL;
    AUTO(buf) list = BUF_INIT(CPUS_TEXT_MOST);
    struct error err;

    if (!cpus || cpus_write(cpus, &list, &err))
        return;
    json_key(json, "cpus");
    json_text(json, list.data);
}

static void on_started(void *context, uint32_t rank, int64_t id) {
    struct supervisor *supervisor = context;
    struct json *json = journal_begin(&supervisor->journal, "task");

    json_key(json, "rank");
    json_int(json, rank);
    json_key(json, "status");
    json_text(json, state_name(STATE_RUNNING));
    json_key(json, "pid");
    json_int(json, id);
    write_cpus(supervisor, json, rank);
    gather(supervisor);
}

static const enum state state_of_fate[] = {
    [FATE_RUNNING] = STATE_RUNNING,    [FATE_SUCCEEDED] = STATE_SUCCEEDED,
    [FATE_FAILED] = STATE_FAILED,      [FATE_STOPPED] = STATE_STOPPED,
    [FATE_NOT_STARTED] = STATE_FAILED,
};
static_assert(ARRAY_LEN(state_of_fate) == FATE_COUNT, "every fate has a state");

/* The limit that the task ran into. */
static void write_limit(struct json *json, const struct task_limit *limit) {
    json_key(json, "limit");
    json_object(json);
    json_key(json, "resource");
    json_text(json, limit->kind == TASK_LIMIT_MEMORY ? "memory" : "processes");
    json_key(json, "limit");
    json_int(json, limit->limit);
    json_key(json, "peak");
    json_int(json, limit->peak);
    json_end(json);
}

static void on_ended(void *context, uint32_t rank, const struct task_state *task) {
    struct supervisor *supervisor = context;
    struct json *json = journal_begin(&supervisor->journal, "task");
    const struct task_end *end = &task->end;

    json_key(json, "rank");
    json_int(json, rank);
    json_key(json, "status");
    json_text(json, state_name(state_of_fate[task->fate]));
    if (end->kind == TASK_EXITED) {
        json_key(json, "exit_code");
        json_int(json, end->detail);
    } else if (end->kind == TASK_SIGNALLED) {
        json_key(json, "signal");
        json_int(json, end->detail);
    } else {
        json_key(json, "reason");
        json_text(json, end->message);
    }
    if (end->limit.kind != TASK_LIMIT_NONE)
        write_limit(json, &end->limit);
    if (task->log_lost) {
        json_key(json, "log_lost");
        json_int(json, (int64_t)task->log_lost);
    }
    gather(supervisor);
}

static void on_output(void *context, uint32_t rank) {
    struct supervisor *supervisor = context;

    bell_ring(&supervisor->bell, rank);
}

static void on_journal_written(void *context) {
    struct supervisor *supervisor = context;

    bell_ring(&supervisor->bell, BELL_JOURNAL);
}

static void on_phase(void *context, enum run_phase phase) {
    static const char *const names[] = { [RUN_LAUNCHING] = "launching",
                                         [RUN_RUNNING] = "running",
                                         [RUN_LINGERING] = "lingering",
                                         [RUN_STOPPING] = "stopping" };
    struct supervisor *supervisor = context;
    struct json *json;

    if (phase == RUN_OVER) {
        event_base_loopbreak(supervisor->base);
        return;
    }
    if (phase == RUN_RUNNING)
        write_status(supervisor, STATE_RUNNING);
    json = journal_begin(&supervisor->journal, "phase");
    json_key(json, "phase");
    json_text(json, names[phase]);
    journal_end(&supervisor->journal, JOURNAL_SOON);
}

static void on_notice(void *context, const char *sentence) {
    struct supervisor *supervisor = context;
    struct json *json = journal_begin(&supervisor->journal, "notice");

    json_key(json, "message");
    json_text(json, sentence);
    journal_end(&supervisor->journal, JOURNAL_SOON);
}

/* ---- the verdict ---- */

static void write_verdict(struct supervisor *supervisor) {
    const struct run_status *status = run_status(supervisor->run);
    const struct verdict *verdict = &status->verdict;
    int exit_status = verdict_exit_status(verdict);
    const struct diagnosis *why = &status->why;

    switch (verdict->state) {
    case VERDICT_SUCCEEDED:
        write_end(&supervisor->journal, STATE_SUCCEEDED, NULL, NULL, -1, exit_status);
        return;
    case VERDICT_FAILED:
        write_end(&supervisor->journal, STATE_FAILED, why->sentence, why, verdict->first_failed,
                  exit_status);
        return;
    case VERDICT_STOPPED:
    case VERDICT_RUNNING:
    case VERDICT_STATE_COUNT: break;
    }
    write_end(&supervisor->journal, STATE_STOPPED, "it was stopped", NULL, -1, exit_status);
}

/* ---- the supervisor's process ---- */

static void end_early(struct supervisor *supervisor, enum state state, const char *reason,
                      int exit_status) {
    write_checked(&supervisor->journal, 0, 0); /* nothing was started */
    write_end(&supervisor->journal, state, reason, NULL, -1, exit_status);
    supervisor->has_ended = true;
    event_base_loopbreak(supervisor->base);
}

static void on_signal(evutil_socket_t number, short what, void *context) {
    struct supervisor *supervisor = context;

    (void)what;
    if (supervisor->run)
        run_stop(supervisor->run, number == KEEPER_KILL ? STOP_AT_ONCE : STOP_GRACEFULLY);
    else if (!supervisor->has_ended)
        end_early(supervisor, STATE_STOPPED, "it was stopped while it waited", STOPPED);
}

static void start_run(struct supervisor *supervisor) {
    const struct placement *placement = supervisor->placement;
    const struct run_observer observer = {
        .started = on_started,
        .ended = on_ended,
        .output = on_output,
        .phase = on_phase,
        .notice = on_notice,
        .context = supervisor,
    };
    const struct run_options options = {
        .rundir = &supervisor->rundir,
        .uuid = supervisor->uuid,
        .owner = supervisor->owner,
        .working_directory = supervisor->working_directory,
        .environment = environ,
        .grace_ms = supervisor->options->grace_ms,
        .linger_ms = supervisor->options->linger_ms,
        .max_processes = supervisor->options->max_processes,
        .gpus = placement && placement->gpus ? placement->gpus : supervisor->no_gpus,
        .pinning = placement ? placement->pinning : NULL,
    };
    struct error err;

    write_status(supervisor, STATE_STARTING);
    if (run_start(supervisor->plan, &options, supervisor->base, &observer, &supervisor->run, &err))
        end_early(supervisor, STATE_FAILED, err.message, OWN_FAILURE);
}

static void on_placed(void *context, const struct placement *placement) {
    struct supervisor *supervisor = context;

    supervisor->placement = placement;
    if (placement->pinning->trouble[0])
        on_notice(supervisor, placement->pinning->trouble);
    start_run(supervisor);
}

static void on_waits(void *context, const char *sentence) {
    struct supervisor *supervisor = context;

    begin_status(&supervisor->journal, STATE_SCHEDULED, sentence);
    journal_end(&supervisor->journal, JOURNAL_SOON);
    on_notice(supervisor, sentence);
}

static void on_refused(void *context, const char *sentence) {
    end_early(context, STATE_FAILED, sentence, OWN_FAILURE);
}

static void wait_for_turn(struct supervisor *supervisor) {
    const struct queue_options options = {
        .home = supervisor->options->home,
        .rundir = &supervisor->rundir,
        .plan = supervisor->plan,
        .demand = supervisor->options->demand,
        .timeout_ms = supervisor->options->timeout_ms,
    };
    const struct queue_observer observer = {
        .placed = on_placed,
        .waits = on_waits,
        .refused = on_refused,
        .context = supervisor,
    };

    supervisor->queue = queue_new(supervisor->base, &options, &observer);
}

/* The end of a run that came as far as its tasks: given back, then told. */
static void end_run(struct supervisor *supervisor) {
    /* Of processes the backend says `gone` only when it has looked. */
    write_checked(&supervisor->journal, run_listeners(supervisor->run),
                  has_limits(supervisor->plan) ? cgroups_count(supervisor->uuid) : 0);
    queue_free(supervisor->queue);
    supervisor->queue = NULL;
    write_verdict(supervisor);
}

static void begin(struct supervisor *supervisor) {
    if (supervisor->options->notice)
        on_notice(supervisor, supervisor->options->notice);
    if (supervisor->options->hides_gpus) {
        supervisor->no_gpus = calloc(supervisor->plan->n_tasks, sizeof *supervisor->no_gpus);
        if (!supervisor->no_gpus)
            abort();
    }
    if (supervisor->options->demand)
        wait_for_turn(supervisor);
    else
        start_run(supervisor);
}

static void supervise(void *context) {
    struct supervisor *supervisor = context;
    struct event *stop, *kill;

    supervisor->base = event_base_new();
    if (!supervisor->base)
        abort();
    supervisor->gather_event = evtimer_new(supervisor->base, on_gathered, supervisor);
    if (!supervisor->gather_event)
        abort();
    begin(supervisor);
    stop = evsignal_new(supervisor->base, KEEPER_STOP, on_signal, supervisor);
    kill = evsignal_new(supervisor->base, KEEPER_KILL, on_signal, supervisor);
    if (!stop || !kill)
        abort();
    event_add(stop, NULL);
    event_add(kill, NULL);
    keeper_take_orders();
    if (!supervisor->has_ended)
        event_base_dispatch(supervisor->base);
    if (!supervisor->has_ended)
        end_run(supervisor);
    event_free(stop);
    event_free(kill);
    event_free(supervisor->gather_event);
    queue_free(supervisor->queue);
    run_free(supervisor->run);
    free(supervisor->no_gpus);
    event_base_free(supervisor->base);
}

/* ---- ends without a supervisor ---- */

/* Writes the end of a run that cannot do so itself. */
static void write_lost_end(const struct rundir *rundir, const char *reason, bool was_swept) {
    unsigned cgroups;
    struct run_record record;
    struct journal journal;
    struct error err;

    if (record_read(&record, rundir, &err))
        return;
    if (!state_is_final(record.state) &&
        journal_reopen(&journal, rundir, record.seq, record.elapsed_s, &err) == 0) {
        cgroups = record.uuid ? cgroups_clear(record.uuid) : 0;
        if (was_swept)
            write_checked(&journal, NOT_LOOKED_FOR, cgroups);
        write_end(&journal, STATE_FAILED, reason, NULL, -1, OWN_FAILURE);
        journal_close(&journal);
    }
    record_release(&record);
}

static void orphaned(void *context, int wait_status) {
    struct supervisor *supervisor = context;
    char reason[160];

    if (WIFSIGNALED(wait_status))
        snprintf(reason, sizeof reason, "the supervisor was ended by %s; its tasks were ended",
                 signal_text(WTERMSIG(wait_status)).text);
    else
        snprintf(reason, sizeof reason, "the supervisor failed; its tasks were ended");
    write_lost_end(&supervisor->rundir, reason, true);
}

bool supervisor_settle(const struct rundir *rundir) {
    struct run_record record;
    struct error err;
    char host[HOST_TEXT], boot[BOOT_TEXT];
    bool settles = false;
    int lock;

    if (owner_take(rundir, &lock, &err))
        return false;
    if (record_read(&record, rundir, &err) == 0) {
        bool is_ours = record.host && strcmp(record.host, host_name(host)) == 0;
        bool same_boot = record.boot_id && strcmp(record.boot_id, boot_id(boot)) == 0;

        settles = is_ours && !state_is_final(record.state);
        if (settles)
            write_lost_end(rundir,
                           same_boot ? "the supervisor and its keeper were killed"
                                     : "the machine went down while the run was going on",
                           !same_boot);
        record_release(&record);
    }
    close(lock);
    return settles;
}

/* ---- the start ---- */

static void make_uuid(char uuid[static UUID_TEXT]) {
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        abort(); /* up to 256 bytes the kernel gives whole, once it has booted */
    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40); /* version 4 */
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(uuid + 2 * i, 3, "%02x", bytes[i]);
}

static const char *login(struct arena *arena) {
    const struct passwd *user = getpwuid(geteuid());

    if (user && user->pw_name[0])
        return arena_text(arena, user->pw_name, strlen(user->pw_name));
    return arena_printf(arena, "%u", (unsigned)geteuid());
}

static int keep_file(const struct supervisor_options *options, const struct rundir *rundir,
                     struct error *err) {
    if (!options->polyaxonfile)
        return 0;
    return rundir_write(rundir, "polyaxonfile.yml", options->polyaxonfile,
                        options->polyaxonfile_len, err);
}

static int start_in(struct supervisor *supervisor, struct error *err) {
    const struct keeper_work work = { .supervise = supervise,
                                      .orphaned = orphaned,
                                      .context = supervisor };
    pid_t keeper;
    int status;

    if (keep_file(supervisor->options, &supervisor->rundir, err) ||
        journal_create(&supervisor->journal, &supervisor->rundir, supervisor->plan->n_tasks, err))
        return -1;
    if (supervisor->options->demand && queue_enter(supervisor->options->home, &supervisor->rundir,
                                                   supervisor->options->demand, err)) {
        journal_close(&supervisor->journal);
        return -1;
    }
    write_created(supervisor);
    supervisor->journal.written = on_journal_written;
    supervisor->journal.context = supervisor;
    status = keeper_start(&work, &keeper, err);
    if (status == 0)
        owner_announce(supervisor->lock, keeper);
    journal_close(&supervisor->journal);
    return status;
}

int supervisor_start(const struct plan *plan, const struct supervisor_options *options,
                     struct arena *arena, struct rundir *out, struct error *err) {
    struct supervisor supervisor = {
        .plan = plan, .options = options, .owner = login(arena), .bell = BELL_NONE
    };
    char directory[PATH_MAX];
    struct error ignored;
    int status;

    if (!getcwd(directory, sizeof directory))
        return error_set_errno(err, errno, "the working directory is gone");
    supervisor.working_directory = directory;
    make_uuid(supervisor.uuid);
    if (rundir_make(options->home, arena, &supervisor.rundir, err))
        return -1;
    if (owner_take(&supervisor.rundir, &supervisor.lock, err)) {
        rundir_remove(&supervisor.rundir);
        return -1;
    }
    /* Without the bell the run is watched as by others. */
    if (options->listener && bell_make(&supervisor.bell, options->listener, &ignored))
        *options->listener = -1;
    status = start_in(&supervisor, err);
    if (status)
        rundir_remove(&supervisor.rundir);
    close(supervisor.lock);
    bell_release(&supervisor.bell);
    *out = supervisor.rundir;
    return status;
}
