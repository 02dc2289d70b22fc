/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/tracker.h"

#include <dirent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/nvml.h"
#include "backend/local/usage.h"
#include "base/clock.h"
#include "base/file.h"
#include "store/owner.h"
#include "store/rights.h"
#include "supervise/chronicle.h"
#include "track/events_follow.h"
#include "track/fold.h"
#include "track/query.h"

enum {
    FOLD_EVERY_MS = 1000,
    LOOK_EVERY_US = 2 * 1000 * 1000, /* at what tasks use */
    LOOK_SHARE = 200,                /* a look takes at most one part in so many of the time */
    STEPS_MOST = 100000,             /* of one settling: each reads some of what is there */
    RECORDS_MOST = 32 << 20,         /* bytes of JSON that go into the journal of one run */
    KINDS = MYELIN_ARTIFACT + 1,
};

struct tracker {
    struct tracker_options options;
    struct series_store *store; /* NULL: there was nothing to keep yet */
    struct fold *fold;
    struct events_follow *events;
    bool is_held_up; /* there was something to keep, and no store for it */
    struct event *timer;
    uint64_t record_bytes;
    struct buf last[KINDS]; /* the last record of each kind */
    bool has_told_trouble, has_told_records, has_told_room, has_told_loss, has_told_events,
        has_told_damage, has_told_names, has_told_others, has_told_remade, has_told_dropped;
    struct losses losses; /* as the journal says */

    uint32_t attempt;
    pid_t *pids;     /* by rank; 0: not running */
    pid_t *had_pids; /* by rank, also of those that ended */
    struct task_usage *before, *now;
    int64_t looked_us, next_look_us; /* monotonic */
    int64_t started_us;
    const gpu_set *granted; /* by rank; NULL: none */
    struct nvml *nvml;
    bool has_no_gpus;
};

/* ---- the store ---- */

static void tell(struct tracker *tracker, bool *has_told, const char *sentence) {
    if (*has_told)
        return;
    *has_told = true;
    if (tracker->options.notice)
        tracker->options.notice(tracker->options.context, sentence);
}

static void tell_trouble(struct tracker *tracker, const struct error *err) {
    char sentence[640];

    snprintf(sentence, sizeof sentence,
             "metrics cannot be kept at present: %.400s; what tasks log waits in the spool",
             err->message);
    tell(tracker, &tracker->has_told_trouble, sentence);
}

static int64_t rank_of(void *context, const char *task) {
    const struct tracker *tracker = context;

    return plan_find_named(tracker->options.plan, task);
}

static int on_record(void *context, const struct fold_record *record) {
    struct tracker *tracker = context;
    struct buf *last = &tracker->last[(int)record->kind < KINDS ? record->kind : 0];
    enum chronicle_outcome outcome = CHRONICLE_WRITTEN;
    struct error err;

    /* All ranks of a training say the same: it is written once. */
    if (last->len == record->n && record->n > 0 && memcmp(last->data, record->json, record->n) == 0)
        return 0;
    if (tracker->record_bytes + record->n > RECORDS_MOST)
        tell(tracker, &tracker->has_told_records,
             "the tasks log more params, tags and summaries than a run keeps (32 MiB): the rest is "
             "left out");
    else
        outcome = chronicle_tracked(tracker->options.journal, record);
    if (outcome == CHRONICLE_NO_ROOM) {
        tell(tracker, &tracker->has_told_room,
             "the disk is full: params, tags and summaries that tasks log wait in the spool, with "
             "what they log behind them");
        return -1;
    }
    if (outcome == CHRONICLE_NO_OBJECT)
        tell(tracker, &tracker->has_told_records, "a task logged what is no JSON object: left out");
    if (outcome == CHRONICLE_LOST)
        tell(tracker, &tracker->has_told_loss,
             "params, tags or a summary that a task logged at once could not be recorded: they are "
             "longer than a line of the journal, 256 KiB, or the disk did not take them");
    tracker->record_bytes += record->n;
    buf_clear(last);
    if (buf_append(last, record->json, record->n, &err))
        buf_clear(last);
    return 0;
}

static void close_store(struct tracker *tracker) {
    fold_free(tracker->fold);
    series_store_close(tracker->store);
    tracker->fold = NULL;
    tracker->store = NULL;
    events_follow_forget(tracker->events);
}

static bool open_store(struct tracker *tracker) {
    struct fold_given given = { .directory = tracker->options.rundir->spool,
                                .is_mirror = tracker->options.is_elsewhere,
                                .rank = rank_of,
                                .record = on_record,
                                .context = tracker };
    struct error err;

    if (tracker->store && series_is_broken(tracker->store))
        close_store(tracker);
    if (tracker->store)
        return true;
    if (series_store_open(tracker->options.rundir->series, NULL, &tracker->store, &err)) {
        tracker->store = NULL;
        if (err.code != ERROR_CONFLICT) /* somebody who looks at the run folds it: next time */
            tell_trouble(tracker, &err);
        return false;
    }
    given.store = tracker->store;
    tracker->fold = fold_new(&given);
    return true;
}

static bool has_entries(const char *directory) {
    DIR *dir = file_list_linkless(directory);
    const struct dirent *entry;
    bool has = false;

    while (dir && !has && (entry = readdir(dir)))
        has = entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return has;
}

static int64_t rank_of_process(void *context, int64_t pid) {
    const struct tracker *tracker = context;

    for (uint32_t rank = 0; rank < tracker->options.plan->n_tasks; rank++)
        if (tracker->had_pids[rank] == pid)
            return rank;
    return -1;
}

/* ---- what is not kept ---- */

/* Without a store the spool itself says what was dropped: what it says is counted when there is
 * one.
 */
static struct losses losses_now(const struct tracker *tracker) {
    struct fold_totals totals = { 0 };
    struct losses losses;
    struct fold_left left;

    fold_look(tracker->options.rundir->spool, &left);
    if (tracker->store)
        totals = fold_totals(tracker->store);
    losses = (struct losses){ .dropped = tracker->store ? totals.dropped : left.dropped,
                              .refused = totals.refused,
                              .lost = totals.lost,
                              .damaged = left.damaged,
                              .others = left.others,
                              .version = left.version,
                              .waiting = left.segments };
    if (!tracker->store && losses.dropped < tracker->losses.dropped)
        losses.dropped = tracker->losses.dropped;
    return losses;
}

/* Nothing of the tasks is left: what was not kept becomes a line of the journal, once. The line may
 * take of the journal's reserve, so that a full disk does not cost the count. */
static void tell_losses(struct tracker *tracker) {
    const struct losses now = losses_now(tracker);

    if (memcmp(&now, &tracker->losses, sizeof now) == 0)
        return;
    chronicle_losses(tracker->options.journal, &now);
    tracker->losses = now;
}

static void tell_others(struct tracker *tracker) {
    struct fold_left left;
    char sentence[400];

    if (tracker->has_told_others)
        return;
    fold_look(tracker->options.rundir->spool, &left);
    snprintf(sentence, sizeof sentence,
             "a task tracks with the SDK of another version: its spool has version %u, and this "
             "program reads version %d. What it logs is kept there, unread: install the SDK of "
             "this version (sdk/python, or sdk/c), or look at the run with the myelin of that one",
             left.version, MYELIN_SPOOL_VERSION);
    tell(tracker, &tracker->has_told_others, sentence);
}

static void tell_of_step(struct tracker *tracker, const struct fold_result *result) {
    if (result->others > 0)
        tell_others(tracker);
    if (result->dropped > 0)
        tell(tracker, &tracker->has_told_dropped,
             "points that tasks log are dropped (no room on the disk, or not a number): they are "
             "counted, and the end of the run says how many");
    if (series_refused(tracker->store) > 0)
        tell(
            tracker, &tracker->has_told_names,
            "the tasks log more different metrics than a run keeps (262144): the points of further "
            "ones are left out");
    if (series_remade(tracker->store) > 0)
        tell(tracker, &tracker->has_told_remade,
             "somebody removed the series of the run while it went on: they were made anew, with "
             "all that they held");
}

/* Reads what is new. Returns whether there is more at once. */
static bool step(struct tracker *tracker, enum fold_extent extent) {
    const enum events_extent events = extent == FOLD_OVER ? EVENTS_OVER : EVENTS_LIVING;
    const bool has_events = events_follow_look(tracker->events, events);
    struct events_result followed = { 0 };
    struct fold_result result;
    struct error err;

    if (events_follow_is_full(tracker->events))
        tell(tracker, &tracker->has_told_events,
             "the outputs have as many event files or folders as are followed: of more the numbers "
             "are left out");
    if (!(tracker->store || has_events || has_entries(tracker->options.rundir->spool)))
        return false;
    tracker->is_held_up = !open_store(tracker);
    if (tracker->is_held_up)
        return false;
    /* The commit of the fold is that of the events, too. */
    if ((has_events && events_follow_read(tracker->events, events, tracker->store, tracker->attempt,
                                          &followed, &err)) ||
        fold_step(tracker->fold, extent, &result, &err)) {
        tell_trouble(tracker, &err);
        return false;
    }
    tracker->has_told_trouble = false;
    tell_of_step(tracker, &result);
    return result.more || followed.more;
}

/* ---- what tasks use ---- */

static void add_value(struct tracker *tracker, uint32_t rank, const char *name, int64_t time_us,
                      double value) {
    const uint32_t series = series_find(tracker->store, name, strlen(name), rank, tracker->attempt);
    const int64_t seconds = (clock_monotonic_us() - tracker->started_us) / 1000000;

    series_add(tracker->store, series, seconds, time_us, value);
}

static void add_usage(struct tracker *tracker, uint32_t rank, int64_t time_us, double span_s) {
    const struct task_usage *now = &tracker->now[rank], *before = &tracker->before[rank];

    if (!now->is_known)
        return;
    add_value(tracker, rank, "system/memory_bytes", time_us, (double)now->memory_bytes);
    add_value(tracker, rank, "system/processes", time_us, (double)now->n_processes);
    if (!before->is_known || span_s <= 0 || now->cpu_seconds < before->cpu_seconds)
        return;
    add_value(tracker, rank, "system/cpu_percent", time_us,
              (now->cpu_seconds - before->cpu_seconds) / span_s * 100);
    if (now->read_bytes >= before->read_bytes)
        add_value(tracker, rank, "system/read_bytes_per_second", time_us,
                  (double)(now->read_bytes - before->read_bytes) / span_s);
    if (now->written_bytes >= before->written_bytes)
        add_value(tracker, rank, "system/written_bytes_per_second", time_us,
                  (double)(now->written_bytes - before->written_bytes) / span_s);
}

static void add_gpu(struct tracker *tracker, uint32_t rank, unsigned index, const struct gpu *gpu,
                    int64_t time_us) {
    char name[64];

    if (gpu->busy_percent >= 0) {
        snprintf(name, sizeof name, "system/gpu%u_percent", index);
        add_value(tracker, rank, name, time_us, gpu->busy_percent);
    }
    if (gpu->memory_bytes > 0) {
        snprintf(name, sizeof name, "system/gpu%u_memory_bytes", index);
        add_value(tracker, rank, name, time_us, (double)gpu->used_bytes);
    }
}

/* Each task is told of the GPUs that it was granted. A run that was granted none is not told of
 * any: they may be another's. */
static void add_gpus(struct tracker *tracker, int64_t time_us) {
    struct gpus gpus;

    if (!tracker->granted || tracker->has_no_gpus)
        return;
    if (!tracker->nvml)
        tracker->nvml = nvml_open();
    tracker->has_no_gpus = !tracker->nvml;
    if (tracker->has_no_gpus)
        return;
    nvml_look(tracker->nvml, &gpus);
    for (uint32_t rank = 0; rank < tracker->options.plan->n_tasks; rank++)
        for (unsigned i = 0; tracker->now[rank].is_known && i < gpus.n; i++)
            if (tracker->granted[rank] >> i & 1)
                add_gpu(tracker, rank, i, &gpus.list[i], time_us);
}

void tracker_grant(struct tracker *tracker, const gpu_set *gpus) {
    tracker->granted = gpus;
}

static void look_at_usage(struct tracker *tracker) {
    const uint32_t n = tracker->options.plan->n_tasks;
    const int64_t now_us = clock_monotonic_us();
    const double span_s = (double)(now_us - tracker->looked_us) / 1e6;
    struct task_usage *swapped = tracker->before;
    const int64_t time_us = clock_wall_us();
    int64_t cost_us;

    /* The first look is only what the next is compared with: a short run keeps nothing of it. */
    const bool is_first = tracker->next_look_us == tracker->started_us;

    if (now_us < tracker->next_look_us ||
        (!is_first && (!open_store(tracker) || series_is_full(tracker->store))))
        return;
    tracker->before = tracker->now;
    tracker->now = swapped;
    usage_look(tracker->pids, n, tracker->now);
    for (uint32_t rank = 0; !is_first && rank < n; rank++)
        add_usage(tracker, rank, time_us, span_s);
    if (!is_first)
        add_gpus(tracker, time_us);
    tracker->looked_us = now_us;
    cost_us = (clock_monotonic_us() - now_us) * LOOK_SHARE;
    tracker->next_look_us = now_us + (cost_us > LOOK_EVERY_US ? cost_us : LOOK_EVERY_US);
}

void tracker_attempt(struct tracker *tracker, uint32_t attempt, enum tracker_begin begin) {
    tracker->attempt = attempt;
    /* Outputs that come from another run may have its event files. */
    if (begin == TRACKER_NEW && attempt == 0 && events_follow_look(tracker->events, EVENTS_OVER)) {
        events_follow_skip(tracker->events);
        step(tracker, FOLD_LIVING);
    }
}

void tracker_task_started(struct tracker *tracker, uint32_t rank, int64_t pid) {
    tracker->pids[rank] = tracker->had_pids[rank] = (pid_t)pid;
}

void tracker_task_ended(struct tracker *tracker, uint32_t rank) {
    tracker->pids[rank] = 0;
    tracker->now[rank].is_known = false;
}

/* ---- its life ---- */

static void arm(struct tracker *tracker, int ms) {
    const struct timeval delay = clock_timeval(ms);

    evtimer_add(tracker->timer, &delay);
}

static void on_timer(evutil_socket_t fd, short what, void *context) {
    struct tracker *tracker = context;
    bool has_more;

    (void)fd, (void)what;
    look_at_usage(tracker);
    has_more = step(tracker, FOLD_LIVING);
    arm(tracker, has_more ? 0 : FOLD_EVERY_MS);
}

static struct tracker *make(const struct tracker_options *options) {
    struct tracker *tracker = calloc(1, sizeof *tracker);
    const size_t n = options->plan->n_tasks ? options->plan->n_tasks : 1;

    if (!tracker)
        abort();
    tracker->options = *options;
    tracker->pids = calloc(n, sizeof *tracker->pids);
    tracker->had_pids = calloc(n, sizeof *tracker->had_pids);
    tracker->before = calloc(n, sizeof *tracker->before);
    tracker->now = calloc(n, sizeof *tracker->now);
    if (!tracker->pids || !tracker->had_pids || !tracker->before || !tracker->now)
        abort();
    for (size_t i = 0; i < KINDS; i++)
        tracker->last[i] = (struct buf)BUF_INIT(MYELIN_RECORD_MAX);
    tracker->events = events_follow_new(&(struct events_given){
        .directory = options->rundir->outputs, .rank = rank_of_process, .context = tracker });
    tracker->started_us = tracker->looked_us = clock_monotonic_us();
    tracker->next_look_us = tracker->started_us;
    return tracker;
}

struct tracker *tracker_new(struct event_base *base, const struct tracker_options *options) {
    struct tracker *tracker = make(options);

    tracker->timer = evtimer_new(base, on_timer, tracker);
    if (!tracker->timer)
        abort();
    arm(tracker, FOLD_EVERY_MS);
    return tracker;
}

void tracker_free(struct tracker *tracker) {
    if (!tracker)
        return;
    if (tracker->timer)
        event_free(tracker->timer);
    close_store(tracker);
    nvml_close(tracker->nvml);
    for (size_t i = 0; i < KINDS; i++)
        buf_release(&tracker->last[i]);
    events_follow_free(tracker->events);
    free(tracker->pids);
    free(tracker->had_pids);
    free(tracker->before);
    free(tracker->now);
    free(tracker);
}

void tracker_gang_over(struct tracker *tracker) {
    char sentence[160];

    for (int i = 0; i < STEPS_MOST && step(tracker, FOLD_OVER); i++)
        continue;
    tell_losses(tracker);
    if (!tracker->store || events_bad_total(tracker->store) == 0)
        return;
    snprintf(sentence, sizeof sentence,
             "damaged or cut records in event files of the outputs: %llu; they were passed over",
             (unsigned long long)events_bad_total(tracker->store));
    tell(tracker, &tracker->has_told_damage, sentence);
}

bool tracker_has_artifacts(const struct tracker *tracker) {
    return tracker->last[MYELIN_ARTIFACT].len > 0;
}

/* Takes away the folders of a spool that is empty: a run that has one has something to fold. */
static void remove_spool(const struct tracker *tracker) {
    DIR *dir = file_list_linkless(tracker->options.rundir->spool);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    if (dir)
        closedir(dir);
    rmdir(tracker->options.rundir->spool);
}

void tracker_finish(struct tracker *tracker) {
    struct error err;

    if (tracker->store && series_finish(tracker->store, &err)) {
        tell_trouble(tracker, &err);
        return; /* the spool that is left says that something is to be done */
    }
    remove_spool(tracker);
}

/* ---- without a supervisor ---- */

/* A supervisor that lives does it itself. */
static bool is_left_to_others(const struct run_record *record) {
    pid_t pid;

    return (record->made_by && strcmp(record->made_by, "init") == 0) ||
           !owner_lives(&record->rundir, &pid);
}

static void settle_record(const struct run_record *record) {
    const struct plan plan = record_plan(record);
    struct journal journal;
    struct tracker *tracker;
    struct error err;
    pid_t pid;
    /* Pods go on without a supervisor, and whoever takes over goes on with their spool. */
    const bool is_over =
        !owner_lives(&record->rundir, &pid) && (!record->backend || state_is_final(record->state));

    if (journal_reopen(&journal, &record->rundir, record->seq, record->elapsed_s, &err))
        return;
    tracker = make(&(struct tracker_options){ .rundir = &record->rundir,
                                              .plan = &plan,
                                              .journal = &journal,
                                              .is_elsewhere = record->backend != NULL });
    tracker->attempt = record->n_attempts ? record->n_attempts - 1 : 0;
    tracker->losses = record->losses;
    for (int i = 0; i < STEPS_MOST && step(tracker, is_over ? FOLD_OVER : FOLD_LIVING); i++)
        continue;
    if (is_over)
        tell_losses(tracker);
    /* Also where nothing was logged: later the outputs may be those of a run that goes on. */
    if (is_over && !tracker->is_held_up && !tracker->has_told_trouble)
        tracker_finish(tracker);
    tracker_free(tracker);
    journal_close(&journal);
}

void tracker_settle(const struct rundir *rundir) {
    struct run_record record;
    struct error err;
    mode_t before;

    if (!rights_has(rundir) || access(rundir->spool, F_OK) < 0 ||
        record_read(&record, rundir, &err))
        return;
    before = umask(rundir_umask(rundir));
    if (record.uuid && is_left_to_others(&record))
        settle_record(&record);
    umask(before);
    record_release(&record);
}

/* By the wall clock; 0 where nothing was. */
static int64_t last_logged_us(const struct rundir *rundir) {
    struct series_reader *reader;
    struct error err;
    int64_t last_us = 0;

    if (series_reader_open(rundir->series, &reader, &err))
        return 0;
    for (uint32_t i = 0; i < series_reader_count(reader); i++) {
        const struct series_info info = series_reader_info(reader, i);

        if (info.all.count > 0 && info.all.max_time_us > last_us)
            last_us = info.all.max_time_us;
    }
    series_reader_free(reader);
    return last_us;
}

double tracker_elapsed_s(const struct run_record *record) {
    const int64_t last_us = last_logged_us(&record->rundir);
    int64_t created_us;
    double seconds;

    if (!record->created_at || !time_read(record->created_at, &created_us) ||
        last_us > clock_wall_us())
        return record->elapsed_s;
    seconds = (double)(last_us - created_us) / 1e6 + record->created_s;
    return seconds > record->elapsed_s ? seconds : record->elapsed_s;
}
