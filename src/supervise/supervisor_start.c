/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/signals.h"
#include "store/claim.h"
#include "store/owner.h"
#include "store/presence.h"
#include "store/remove.h"
#include "supervise/chronicle.h"
#include "supervise/keeper.h"
#include "supervise/queue.h"
#include "supervise/run_guard.h"
#include "supervise/supervisor_state.h"
#include "supervise/tasklog.h"

enum {
    REVIVALS_MOST = 20,
    REVIVAL_PAUSE_S = 1, /* one that dies of what it finds is not started in a tight loop */
    /* Of a run with one task. With fewer, the supervisor cannot start it, and with fewer than ten
     * the keeper cannot even record that. */
    DESCRIPTORS_OF_RUN = 14,
};

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

/* ---- the keeper ---- */

static bool revives(void *context, int wait_status) {
    struct supervisor *supervisor = context;

    (void)wait_status;
    if (!supervisor->options->elsewhere || supervisor->n_revivals++ == REVIVALS_MOST)
        return false;
    if (supervisor->n_revivals > 1)
        clock_pause_ms(REVIVAL_PAUSE_S * 1000);
    supervisor->takes_over = true;
    return true;
}

static void orphaned(void *context, int wait_status, enum keeper_loss loss) {
    struct supervisor *supervisor = context;
    char reason[160];

    if (supervisor->options->elsewhere)
        return; /* it goes on: whoever attaches watches it again */
    if (loss == KEEPER_SUSPENDED)
        snprintf(
            reason, sizeof reason,
            "the supervisor was suspended (SIGSTOP) again and again and could not end the run; "
            "it was killed, and its tasks were ended");
    else if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGABRT)
        snprintf(reason, sizeof reason,
                 "the supervisor aborted (SIGABRT), as it does when it is out of memory; its tasks "
                 "were ended");
    else if (WIFSIGNALED(wait_status))
        snprintf(reason, sizeof reason, "the supervisor was ended by %s; its tasks were ended",
                 signal_text(WTERMSIG(wait_status)).text);
    else
        snprintf(reason, sizeof reason, "the supervisor failed; its tasks were ended");
    run_guard_save_journal(&supervisor->rundir, &supervisor->journal);
    supervisor_write_lost_end(&supervisor->rundir, reason, true);
}

static int start_keeper(struct supervisor *supervisor, struct error *err) {
    const struct keeper_work work = { .supervise = supervisor_supervise,
                                      .orphaned = orphaned,
                                      .revives = revives,
                                      .context = supervisor };
    pid_t keeper;
    int status;

    supervisor->directory = presence_hold(&supervisor->rundir);
    supervisor->public_lines = presence_hold_public(&supervisor->rundir);
    status = keeper_start(&work, &keeper, err);
    /* The keeper and its children hold them. */
    if (supervisor->directory >= 0)
        close(supervisor->directory);
    if (supervisor->public_lines >= 0)
        close(supervisor->public_lines);
    if (status == 0)
        owner_announce(supervisor->lock, keeper);
    return status;
}

/* ---- the start ---- */

static int start_in(struct supervisor *supervisor, struct error *err) {
    uint64_t too_long;
    int status;

    if (keep_files(supervisor->options, &supervisor->rundir, err) ||
        journal_create(&supervisor->journal, &supervisor->rundir, supervisor->plan->n_tasks, err))
        return -1;
    if (supervisor->options->demand && queue_enter(supervisor->options->home, &supervisor->rundir,
                                                   supervisor->options->demand, err)) {
        journal_close(&supervisor->journal);
        return -1;
    }
    supervisor->has_begun = true;
    chronicle_created(&supervisor->journal,
                      &(struct chronicle_birth){ .plan = supervisor->plan,
                                                 .uuid = supervisor->uuid,
                                                 .owner = supervisor->owner,
                                                 .directory = supervisor->working_directory,
                                                 .origin = supervisor->options->origin,
                                                 .elsewhere = supervisor->options->elsewhere });
    too_long = supervisor->journal.too_long;
    chronicle_given(&supervisor->journal, supervisor->plan);
    supervisor->is_given_too_long = supervisor->journal.too_long > too_long;
    code_watch_tell(&supervisor->code, &supervisor->journal);
    supervisor->log_origin_us = tasklog_origin(); /* readers of logs find it by this line */
    if (supervisor->options->demand)
        claim_write_queued(&supervisor->journal, supervisor->options->demand);
    supervisor->journal.written = supervisor_journal_written;
    supervisor->journal.context = supervisor;
    /* What the file gives may be long, and has taken of the room. */
    status = journal_reserve(&supervisor->journal, err);
    if (status == 0)
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

    if (owner_reserve(supervisor->lock, &supervisor->rundir, err) ||
        prepare(supervisor, arena, err))
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
    if (descriptors_check(DESCRIPTORS_OF_RUN, err) ||
        rundir_make(options->home, arena, &supervisor.rundir, err))
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
    /* The ledger may know the id of a run that has begun: it must not come again. */
    is_left = status && (supervisor.has_begun ? remove_run : remove_unbegun_run)(&supervisor.rundir,
                                                                                 &freed, &ignored);
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

/* As the one whom the journal tells of. */
static int go_on(struct supervisor *supervisor, struct error *err) {
    struct run_record record;
    int status;

    if (record_read(&record, &supervisor->rundir, err))
        return -1;
    if (record.uuid) {
        snprintf(supervisor->uuid, sizeof supervisor->uuid, "%s", record.uuid);
        supervisor->owner = record.owner;
        supervisor->working_directory = record.directory;
        status = start_keeper(supervisor, err);
    } else {
        status = error_set(err, ERROR_INVALID, "the journal of run %s does not tell how it began",
                           supervisor->rundir.id);
    }
    record_release(&record);
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
    int status;

    if (descriptors_check(DESCRIPTORS_OF_RUN, err) || owner_take(rundir, &supervisor.lock, err))
        return -1;
    status = owner_reserve(supervisor.lock, rundir, err);
    if (status == 0)
        status = go_on(&supervisor, err);
    close(supervisor.lock);
    return status;
}
