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
#include "store/claim.h"
#include "store/host.h"
#include "store/inventory.h"
#include "store/journal.h"
#include "store/owner.h"
#include "store/record.h"
#include "store/remove.h"
#include "supervise/attempts.h"
#include "supervise/bell.h"
#include "supervise/chronicle.h"
#include "supervise/code_watch.h"
#include "supervise/keeper.h"
#include "supervise/past.h"
#include "supervise/queue.h"
#include "supervise/tasklog.h"
#include "supervise/tracker.h"

extern char **environ;

enum {
    UUID_TEXT = 33,
    OWN_FAILURE = 125,
    STOPPED = 130,
    GATHER_US = 5000,  /* lines of tasks wait so long for each other: nobody sees the difference */
    GATHER_TASKS = 16, /* and only in gangs that are larger than this */
    REVIVALS_MOST = 20,
    REVIVAL_PAUSE_S = 1, /* one that dies of what it finds is not started in a tight loop */
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
    int64_t log_origin_us;

    struct event_base *base;
    struct attempts *attempts;         /* NULL before its turn came */
    struct queue *queue;               /* of a run that reserves something */
    const struct placement *placement; /* the queue's, once it is the run's turn */
    gpu_set *no_gpus;
    bool has_ended;         /* its end was written */
    int n_revivals;         /* how often a supervisor was followed by another */
    bool takes_over;        /* the run was begun by a supervisor before this one */
    struct run_record seen; /* by those before */
    struct past past;
    struct event *gather_event;
    struct tracker *tracker;
    struct bell bell;
    struct code_watch code;
    const char *notice; /* of who prepared it, or NULL */
};

static bool has_limits(const struct plan *plan) {
    return plan->totals.of[RESOURCE_CPU].limits > 0 || plan->totals.of[RESOURCE_MEMORY].limits > 0;
}

/* ---- what the run tells ---- */

/* Lines of which many may come in one turn are written together. */
static void gather(struct supervisor *supervisor) {
    const struct timeval delay = { .tv_usec = GATHER_US };

    if (supervisor->plan->n_tasks <= GATHER_TASKS)
        journal_flush(&supervisor->journal);
    else if (!evtimer_pending(supervisor->gather_event, NULL))
        evtimer_add(supervisor->gather_event, &delay);
}

static void on_gathered(evutil_socket_t fd, short what, void *context) {
    struct supervisor *supervisor = context;

    (void)fd, (void)what;
    journal_flush(&supervisor->journal);
}

static void on_started(void *context, uint32_t rank, int64_t id) {
    struct supervisor *supervisor = context;
    const struct placement *placement = supervisor->placement;

    if (supervisor->past.was_submitted && supervisor->seen.tasks[rank].started_s >= 0)
        return; /* it was told before */
    chronicle_task_started(&supervisor->journal, rank, id,
                           placement ? pinning_of(placement->pinning, rank) : NULL);
    gather(supervisor);
    tracker_task_started(supervisor->tracker, rank, id);
}

static void on_ended(void *context, uint32_t rank, const struct task_state *task) {
    struct supervisor *supervisor = context;

    chronicle_task_ended(&supervisor->journal, rank, task);
    gather(supervisor);
    tracker_task_ended(supervisor->tracker, rank);
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
                                         [RUN_SUBMITTED] = "submitted",
                                         [RUN_RUNNING] = "running",
                                         [RUN_LINGERING] = "lingering",
                                         [RUN_STOPPING] = "stopping" };
    struct supervisor *supervisor = context;

    if (phase == RUN_RUNNING)
        chronicle_status(&supervisor->journal, STATE_RUNNING, NULL);
    chronicle_phase(&supervisor->journal, names[phase]);
}

/* Nothing follows the end. */
static void on_notice(void *context, const char *sentence) {
    struct supervisor *supervisor = context;

    if (!supervisor->has_ended)
        chronicle_notice(&supervisor->journal, sentence);
}

/* The original showed what keeps a run from starting as a warning. */
static void on_waits(void *context, const char *sentence) {
    struct supervisor *supervisor = context;

    chronicle_status(&supervisor->journal, sentence ? STATE_WARNING : STATE_SCHEDULED, sentence);
    if (sentence)
        on_notice(supervisor, sentence);
}

/* ---- attempts ---- */

static void on_began(void *context, uint32_t attempt) {
    struct supervisor *supervisor = context;
    struct error ignored;

    if (supervisor->past.was_submitted && supervisor->past.attempt == attempt) {
        tracker_attempt(supervisor->tracker, attempt, TRACKER_TAKEN_OVER);
        return; /* it was told before */
    }
    if (attempt > 0 && journal_reserve(&supervisor->journal, &ignored))
        on_notice(supervisor, "the disk is full: how this attempt ends may not be recorded");
    tracker_attempt(supervisor->tracker, attempt, TRACKER_NEW);
    chronicle_attempt(&supervisor->journal, attempt);
    chronicle_status(&supervisor->journal,
                     supervisor->options->elsewhere ? STATE_SCHEDULED : STATE_STARTING, NULL);
}

/* Of processes the backend says `gone` only when it has looked. */
static void on_attempt_ended(void *context, uint32_t attempt, const struct run_status *status,
                             size_t listeners) {
    struct supervisor *supervisor = context;

    (void)attempt, (void)status;
    tracker_gang_over(supervisor->tracker);
    chronicle_checked(&supervisor->journal, listeners,
                      has_limits(supervisor->plan) ? cgroups_count(supervisor->uuid) : 0);
}

static struct chronicle_end end_of_failure(const struct run_status *status) {
    return (struct chronicle_end){ .state = STATE_FAILED,
                                   .reason = status->why.sentence,
                                   .why = &status->why,
                                   .first_failed = status->verdict.first_failed,
                                   .exit_status = verdict_exit_status(&status->verdict) };
}

static void on_again(void *context, const struct run_status *status,
                     const struct next_attempt *next) {
    struct supervisor *supervisor = context;
    const struct chronicle_end end = end_of_failure(status);
    char sentence[DIAGNOSIS_SENTENCE_MOST + 160], when[48] = "now";

    if (next->delay_ms > 0)
        snprintf(when, sizeof when, "in %gs", next->delay_ms / 1000.0);
    if (next->manner == AGAIN_OTHER_PORTS)
        snprintf(sentence, sizeof sentence,
                 "attempt %u failed: %s; attempt %u starts %s, on other ports", next->number - 1,
                 status->why.sentence, next->number, when);
    else
        snprintf(sentence, sizeof sentence,
                 "attempt %u failed: %s; attempt %u (restart %u of %u) starts %s", next->number - 1,
                 status->why.sentence, next->number, next->n_restarts,
                 supervisor->plan->max_restarts, when);
    chronicle_attempt_failed(&supervisor->journal, &end, next->delay_ms);
    chronicle_status(&supervisor->journal, STATE_WARNING, sentence);
    chronicle_phase(&supervisor->journal, "waiting");
    on_notice(supervisor, sentence);
}

/* ---- the supervisor's process ---- */

/* Hashes what was logged as artifacts and gives models their version, now that nothing changes
 * their files. What goes wrong here is left to the next who looks. */
static void take_inventory(struct supervisor *supervisor) {
    const struct inventory_terms terms = { .bytes_most = INVENTORY_AT_END,
                                           .tell = on_notice,
                                           .context = supervisor };
    struct run_record record;
    char sentence[640];
    struct error err;
    int status;

    if (!tracker_has_artifacts(supervisor->tracker))
        return;
    journal_flush(&supervisor->journal);
    status = record_read(&record, &supervisor->rundir, &err);
    if (status == 0) {
        status = inventory_take(&record, &supervisor->journal, &terms, &err);
        record_release(&record);
    }
    if (status) {
        snprintf(sentence, sizeof sentence, "artifacts are not recorded yet: %.400s", err.message);
        on_notice(supervisor, sentence);
    }
}

/* The end of the run: what it reserved is given back, then the end is told. Its series are made
 * compact afterwards, which takes a moment for millions of points: nobody waits for it, and who
 * reads them meanwhile reads them as they were. */
static void end_run(struct supervisor *supervisor, const struct chronicle_end *end) {
    queue_free(supervisor->queue);
    supervisor->queue = NULL;
    take_inventory(supervisor);
    code_watch_finish(&supervisor->code);
    chronicle_end(&supervisor->journal, end);
    supervisor->has_ended = true;
    tracker_finish(supervisor->tracker);
    event_base_loopbreak(supervisor->base);
}

/* Of a run that never came to its tasks. */
static void end_early(struct supervisor *supervisor, enum state state, const char *reason,
                      int exit_status) {
    const struct chronicle_end end = {
        .state = state, .reason = reason, .first_failed = -1, .exit_status = exit_status
    };

    chronicle_checked(&supervisor->journal, 0, 0);
    code_watch_finish(&supervisor->code);
    chronicle_end(&supervisor->journal, &end);
    supervisor->has_ended = true;
    event_base_loopbreak(supervisor->base);
}

static void on_over(void *context, const struct run_status *status, const char *trouble) {
    struct chronicle_end end = { .state = STATE_STOPPED,
                                 .reason = "it was stopped",
                                 .first_failed = -1,
                                 .exit_status = STOPPED };

    if (trouble)
        end = (struct chronicle_end){
            .state = STATE_FAILED, .reason = trouble, .first_failed = -1, .exit_status = OWN_FAILURE
        };
    else if (!status)
        end.reason = "it was stopped before the next attempt";
    else if (status->verdict.state == VERDICT_FAILED)
        end = end_of_failure(status);
    else if (status->verdict.state == VERDICT_SUCCEEDED)
        end = (struct chronicle_end){ .state = STATE_SUCCEEDED, .first_failed = -1 };
    end_run(context, &end);
}

static void on_signal(evutil_socket_t number, short what, void *context) {
    struct supervisor *supervisor = context;

    (void)what;
    if (supervisor->attempts)
        attempts_stop(supervisor->attempts, number == KEEPER_KILL ? STOP_AT_ONCE : STOP_GRACEFULLY);
    else if (!supervisor->has_ended)
        end_early(supervisor, STATE_STOPPED, "it was stopped while it waited", STOPPED);
}

static void start_run(struct supervisor *supervisor) {
    const struct placement *placement = supervisor->placement;
    const struct attempts_observer observer = {
        .run = { .started = on_started,
                 .ended = on_ended,
                 .output = on_output,
                 .phase = on_phase,
                 .notice = on_notice,
                 .waits = on_waits,
                 .context = supervisor },
        .began = on_began,
        .ended = on_attempt_ended,
        .again = on_again,
        .over = on_over,
        .context = supervisor,
    };
    const struct run_options options = {
        .rundir = &supervisor->rundir,
        .log_origin_us = supervisor->log_origin_us,
        .log_limit = supervisor->options->log_limit,
        .uuid = supervisor->uuid,
        .owner = supervisor->owner,
        .working_directory = supervisor->working_directory,
        .environment = environ,
        .grace_ms = supervisor->options->grace_ms,
        .linger_ms = supervisor->options->linger_ms,
        .max_processes = supervisor->options->max_processes,
        .gpus = placement && placement->gpus ? placement->gpus : supervisor->no_gpus,
        .pinning = placement ? placement->pinning : NULL,
        .attempt = supervisor->past.attempt,
        .elsewhere = supervisor->options->elsewhere,
        .past = supervisor->past.was_submitted ? &supervisor->past.run : NULL,
    };
    const struct again_terms terms = {
        .max_restarts = supervisor->plan->max_restarts,
        .first_delay_ms = supervisor->options->backoff_ms,
    };
    struct error err;

    supervisor->code.has_started = true;
    tracker_grant(supervisor->tracker, placement ? placement->gpus : NULL);
    if (attempts_start(supervisor->plan, &options, &terms, supervisor->base, &observer,
                       &supervisor->attempts, &err))
        end_early(supervisor, STATE_FAILED, err.message, OWN_FAILURE);
}

static void on_placed(void *context, const struct placement *placement) {
    struct supervisor *supervisor = context;

    supervisor->placement = placement;
    if (placement->pinning->trouble[0])
        on_notice(supervisor, placement->pinning->trouble);
    start_run(supervisor);
}

static void on_queued(void *context, const char *sentence) {
    struct supervisor *supervisor = context;

    chronicle_status(&supervisor->journal, STATE_SCHEDULED, sentence);
    on_notice(supervisor, sentence);
}

static void on_reserves(void *context, const struct hold *holds, size_t n) {
    struct supervisor *supervisor = context;

    claim_write_reserved(&supervisor->journal, holds, n);
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
        .waits = on_queued,
        .refused = on_refused,
        .reserves = on_reserves,
        .context = supervisor,
    };

    supervisor->queue = queue_new(supervisor->base, &options, &observer);
}

/* Reads what those before have seen, and goes on with their journal. */
static int take_over(struct supervisor *supervisor, struct arena *arena, struct error *err) {
    journal_close(&supervisor->journal);
    if (record_read(&supervisor->seen, &supervisor->rundir, err) ||
        journal_reopen(&supervisor->journal, &supervisor->rundir, supervisor->seen.seq,
                       record_elapsed(&supervisor->seen), err))
        return -1;
    past_read(&supervisor->seen, arena, &supervisor->past);
    supervisor->journal.attempt = record_attempt(&supervisor->seen);
    supervisor->journal.n_tasks = supervisor->plan->n_tasks;
    supervisor->journal.written = on_journal_written;
    supervisor->journal.context = supervisor;
    return 0;
}

static void begin(struct supervisor *supervisor) {
    if (supervisor->takes_over)
        on_notice(supervisor, "a new supervisor goes on with the run");
    else if (supervisor->options->notice)
        on_notice(supervisor, supervisor->options->notice);
    if (supervisor->notice)
        on_notice(supervisor, supervisor->notice);
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
    AUTO(arena) arena = ARENA_INIT;
    struct event *stop, *kill;
    struct error err;
    const struct tracker_options tracking = { .rundir = &supervisor->rundir,
                                              .plan = supervisor->plan,
                                              .journal = &supervisor->journal,
                                              .is_elsewhere = supervisor->options->elsewhere,
                                              .notice = on_notice,
                                              .context = supervisor };

    if (supervisor->takes_over && take_over(supervisor, &arena, &err))
        return; /* as long as the journal cannot be read, nothing can be told */
    if (state_is_final(supervisor->seen.state))
        return; /* the one before told the end, and died */
    supervisor->base = event_base_new();
    if (!supervisor->base)
        abort();
    supervisor->gather_event = evtimer_new(supervisor->base, on_gathered, supervisor);
    if (!supervisor->gather_event)
        abort();
    supervisor->tracker = tracker_new(supervisor->base, &tracking);
    code_watch_await(&supervisor->code, supervisor->base, &supervisor->journal);
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
    event_free(stop);
    event_free(kill);
    event_free(supervisor->gather_event);
    queue_free(supervisor->queue);
    tracker_free(supervisor->tracker);
    attempts_free(supervisor->attempts);
    free(supervisor->no_gpus);
    code_watch_release(&supervisor->code);
    event_base_free(supervisor->base);
    record_release(&supervisor->seen);
}

/* ---- ends without a supervisor ---- */

/* Writes the end of a run that cannot do so itself, once what is left of it has ended and nothing
 * is reserved for it: whoever reads the end may rely on both. */
static void write_lost_end(const struct rundir *rundir, const char *reason, bool was_swept) {
    unsigned cgroups;
    struct run_record record;
    struct journal journal;
    struct error err;

    if (record_read(&record, rundir, &err))
        return;
    if (!state_is_final(record.state) &&
        journal_reopen(&journal, rundir, record.seq, tracker_elapsed_s(&record), &err) == 0) {
        cgroups = record.uuid ? cgroups_clear(record.uuid) : 0;
        if (cgroups == 0)
            queue_forget(rundir); /* else what lives in them still uses it */
        journal.attempt = record_attempt(&record);
        if (was_swept)
            chronicle_checked(&journal, CHRONICLE_NOT_LOOKED_FOR, cgroups);
        chronicle_end(&journal, &(struct chronicle_end){ .state = STATE_FAILED,
                                                         .reason = reason,
                                                         .first_failed = -1,
                                                         .exit_status = OWN_FAILURE });
        journal_close(&journal);
    }
    record_release(&record);
}

static bool revives(void *context, int wait_status) {
    const struct timespec pause = { .tv_sec = REVIVAL_PAUSE_S };
    struct supervisor *supervisor = context;

    (void)wait_status;
    if (!supervisor->options->elsewhere || supervisor->n_revivals++ == REVIVALS_MOST)
        return false;
    if (supervisor->n_revivals > 1)
        nanosleep(&pause, NULL);
    supervisor->takes_over = true;
    return true;
}

static void orphaned(void *context, int wait_status) {
    struct supervisor *supervisor = context;
    char reason[160];

    if (supervisor->options->elsewhere)
        return; /* it goes on: whoever attaches watches it again */
    if (WIFSIGNALED(wait_status))
        snprintf(reason, sizeof reason, "the supervisor was ended by %s; its tasks were ended",
                 signal_text(WTERMSIG(wait_status)).text);
    else
        snprintf(reason, sizeof reason, "the supervisor failed; its tasks were ended");
    write_lost_end(&supervisor->rundir, reason, true);
}

/* Why a run of this machine lost its owner. */
static const char *loss_of(const struct run_record *record, bool same_boot) {
    if (!same_boot)
        return "the machine went down while the run was going on";
    if (record->made_by && strcmp(record->made_by, "init") == 0)
        return "the process that made the run was killed";
    return "the supervisor and its keeper were killed";
}

bool supervisor_settle(const struct rundir *rundir) {
    struct run_record record;
    struct error err;
    char host[HOST_TEXT], boot[BOOT_TEXT];
    bool settles = false;
    int lock;

    tracker_settle(rundir); /* how long it went on is known from what it logged */
    if (owner_take(rundir, &lock, &err))
        return false;
    if (record_read(&record, rundir, &err) == 0) {
        bool is_ours = record.host && strcmp(record.host, host_name(host)) == 0;
        bool same_boot = record.boot_id && strcmp(record.boot_id, boot_id(boot)) == 0;

        settles = is_ours && !state_is_final(record.state) && !record.backend;
        if (settles)
            write_lost_end(rundir, loss_of(&record, same_boot), !same_boot);
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

static int keep_files(const struct supervisor_options *options, const struct rundir *rundir,
                      struct error *err) {
    for (size_t i = 0; i < options->n_files; i++)
        if (rundir_write(rundir, options->files[i].name, options->files[i].bytes,
                         options->files[i].n, err))
            return -1;
    return 0;
}

static int start_keeper(struct supervisor *supervisor, struct error *err) {
    const struct keeper_work work = {
        .supervise = supervise, .orphaned = orphaned, .revives = revives, .context = supervisor
    };
    pid_t keeper;

    if (keeper_start(&work, &keeper, err))
        return -1;
    owner_announce(supervisor->lock, keeper);
    return 0;
}

static int start_in(struct supervisor *supervisor, struct error *err) {
    int status;

    if (keep_files(supervisor->options, &supervisor->rundir, err) ||
        journal_create(&supervisor->journal, &supervisor->rundir, supervisor->plan->n_tasks, err))
        return -1;
    if (supervisor->options->demand && queue_enter(supervisor->options->home, &supervisor->rundir,
                                                   supervisor->options->demand, err)) {
        journal_close(&supervisor->journal);
        return -1;
    }
    chronicle_created(&supervisor->journal,
                      &(struct chronicle_birth){ .plan = supervisor->plan,
                                                 .uuid = supervisor->uuid,
                                                 .owner = supervisor->owner,
                                                 .directory = supervisor->working_directory,
                                                 .origin = supervisor->options->origin,
                                                 .elsewhere = supervisor->options->elsewhere });
    chronicle_given(&supervisor->journal, supervisor->plan);
    code_watch_tell(&supervisor->code, &supervisor->journal);
    supervisor->log_origin_us = tasklog_origin(); /* readers of logs find it by this line */
    if (supervisor->options->demand)
        claim_write_queued(&supervisor->journal, supervisor->options->demand);
    supervisor->journal.written = on_journal_written;
    supervisor->journal.context = supervisor;
    status = start_keeper(supervisor, err);
    journal_close(&supervisor->journal);
    return status;
}

/* Whoever prepares it may have put other outputs in the place of its own. */
static int prepare(struct supervisor *supervisor, struct arena *arena, struct error *err) {
    const struct supervisor_options *options = supervisor->options;
    struct supervisor_prepared prepared = { 0 };

    if (!options->prepare)
        return 0;
    if (options->prepare(options->prepare_context, &supervisor->rundir, &prepared, err))
        return -1;
    supervisor->rundir = rundir_copy(&supervisor->rundir, arena);
    code_watch_know(&supervisor->code, &prepared.code);
    supervisor->notice = prepared.notice;
    return 0;
}

/* In the run's directory, which is locked. */
static int start_prepared(struct supervisor *supervisor, struct arena *arena, struct error *err) {
    char directory[PATH_MAX];

    if (prepare(supervisor, arena, err))
        return -1;
    if (!getcwd(directory, sizeof directory))
        return error_set_errno(err, errno, "the working directory is gone");
    supervisor->working_directory = directory;
    code_watch_look_up(&supervisor->code, directory, &supervisor->rundir);
    return start_in(supervisor, err);
}

int supervisor_start(const struct plan *plan, const struct supervisor_options *options,
                     struct arena *arena, struct rundir *out, struct error *err) {
    struct supervisor supervisor = { .plan = plan,
                                     .options = options,
                                     .owner = login(arena),
                                     .bell = BELL_NONE,
                                     .code = CODE_WATCH_NONE };
    struct error ignored;
    uint64_t freed;
    bool is_left;
    int status;

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
    status = start_prepared(&supervisor, arena, err);
    if (status)
        recorder_end(&supervisor.code.recorder);
    code_watch_release(&supervisor.code);
    is_left = status && remove_run(&supervisor.rundir, &freed, &ignored);
    close(supervisor.lock);
    /* NFS keeps a removed file in its directory as long as it is open, as the lock was. */
    if (is_left && rmdir(supervisor.rundir.path) < 0)
        error_wrap(err, "run %s, which never began, is left ('myelin rm %s')", supervisor.rundir.id,
                   supervisor.rundir.id);
    bell_release(&supervisor.bell);
    if (status == 0)
        *out = supervisor.rundir;
    return status;
}

int supervisor_take_over(const struct plan *plan, const struct supervisor_options *options,
                         const struct rundir *rundir, struct error *err) {
    struct supervisor supervisor = { .plan = plan,
                                     .options = options,
                                     .rundir = *rundir,
                                     .journal = { .fd = -1 },
                                     .takes_over = true,
                                     .log_origin_us = tasklog_origin(),
                                     .bell = BELL_NONE,
                                     .code = CODE_WATCH_NONE };
    struct run_record record;
    int status;

    if (owner_take(rundir, &supervisor.lock, err))
        return -1;
    status = record_read(&record, rundir, err);
    if (status == 0 && record.uuid) {
        snprintf(supervisor.uuid, sizeof supervisor.uuid, "%s", record.uuid);
        supervisor.owner = record.owner;
        supervisor.working_directory = record.directory;
        status = start_keeper(&supervisor, err);
    }
    if (status == 0)
        record_release(&record);
    close(supervisor.lock);
    return status;
}
