/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/anew.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/copying.h"
#include "cli/failure.h"
#include "cli/progress.h"
#include "cli/runs.h"
#include "code/restore.h"
#include "store/outputs.h"
#include "store/owner.h"
#include "store/request.h"
#include "store/rights.h"

extern const struct command command_run;

enum { RECORD_MOST = INT_MAX };

/* The old run, and what is needed of it. */
struct original {
    struct arena arena;
    const char *home;
    struct rundir rundir;
    struct run_record record;
    struct request request;
};

/* ---- its outputs ---- */

/* Pods go on when nobody here watches them. */
static int check_pods(const struct rundir *keeper, struct error *err) {
    struct run_record record;
    bool goes_on;

    if (runs_read(keeper, &record, err))
        return -1;
    goes_on = record.backend && !state_is_final(record.state);
    record_release(&record);
    if (!goes_on)
        return 0;
    return error_set(err, ERROR_CONFLICT,
                     "run %s goes on on its cluster, and nobody watches it ('myelin attach %s' "
                     "does so again, 'myelin stop %s' ends it)",
                     keeper->id, keeper->id, keeper->id);
}

/* Locks the run that has the outputs: nobody goes on with them, removes or resumes it meanwhile. */
static int lock_outputs(struct original *original, struct rundir *keeper, int *lock,
                        struct error *err) {
    const char *id = original->rundir.outputs_of, *user;

    if (rundir_open(original->home, strtoul(id, NULL, 10), &original->arena, keeper, err))
        return error_wrap(err, "the outputs of run %s are gone", original->rundir.id);
    if (owner_take(keeper, lock, err)) {
        if (err->code == ERROR_CONFLICT)
            error_set(err, ERROR_CONFLICT,
                      "run %s goes on, or is just being copied or removed: its outputs change "
                      "('myelin stop %s' ends it)",
                      id, id);
        return -1;
    }
    if (check_pods(keeper, err)) {
        close(*lock);
        return -1;
    }
    if (outputs_user(original->home, keeper, OUTPUTS_USERS_LIVING, &original->arena, &user, err) ==
            0 &&
        !user)
        return 0;
    if (user)
        error_set(err, ERROR_CONFLICT,
                  "run %s goes on with the outputs of run %s ('myelin stop %s' ends it)", user, id,
                  user);
    close(*lock);
    return -1;
}

/* How the outputs that `keeper` has, which is locked, become those of the new run. */
typedef int take_outputs(struct original *original, const struct rundir *keeper,
                         const struct rundir *rundir, struct error *err);

static int take(struct original *original, const struct rundir *rundir, take_outputs *how,
                struct error *err) {
    struct rundir keeper;
    int lock, status;

    if (lock_outputs(original, &keeper, &lock, err))
        return -1;
    status = how(original, &keeper, rundir, err);
    close(lock);
    return status;
}

static int share_from(struct original *original, const struct rundir *keeper,
                      const struct rundir *rundir, struct error *err) {
    (void)original;
    return rundir_share_outputs(rundir, keeper, err);
}

static int share_outputs(void *context, const struct rundir *rundir,
                         struct supervisor_prepared *prepared, struct error *err) {
    (void)prepared;
    return take(context, rundir, share_from, err);
}

static int copy_from(struct original *original, const struct rundir *keeper,
                     const struct rundir *rundir, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    struct outputs outputs = { 0 };
    size_t left_out = 0;
    int status = outputs_add(&outputs, keeper, NULL, err);

    if (status == 0)
        status = copying_outputs(
            arena_printf(&arena, "copying the outputs of run %s", original->rundir.id), &outputs,
            keeper, rundir->outputs, OUTPUTS_NEW_ONLY, &left_out, err);
    if (left_out > 0)
        fprintf(stderr, "myelin: note: %zu links that lead out of the outputs are not copied\n",
                left_out);
    outputs_release(&outputs);
    return status;
}

static int copy_outputs(void *context, const struct rundir *rundir,
                        struct supervisor_prepared *prepared, struct error *err) {
    (void)prepared;
    return take(context, rundir, copy_from, err);
}

/* ---- its code ---- */

/* What was recorded of the code is the new run's too: so it can be run again, and compared. */
static int keep_record(const struct rundir *from, const struct rundir *to, const char *name,
                       struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    AUTO(buf) bytes = BUF_INIT(RECORD_MOST);
    const char *there = arena_printf(&arena, "%s/%s", from->path, name);

    if (link(there, arena_printf(&arena, "%s/%s", to->path, name)) == 0)
        return 0;
    return file_read(there, &bytes, err) || rundir_write(to, name, bytes.data, bytes.len, err) ? -1
                                                                                               : 0;
}

/* Makes the code of the original in the directory of the new run, and goes there. */
static int restore_code(void *context, const struct rundir *rundir,
                        struct supervisor_prepared *prepared, struct error *err) {
    const struct archive_progress progress = { .tell = progress_unseen };
    struct original *original = context;
    const struct code_run run = { &original->rundir, &original->record.code };
    struct code_restored restored;

    if (code_restore(&run, rundir, &original->arena, &progress, &restored, err) ||
        (run.facts->diff_bytes && keep_record(run.rundir, rundir, CODE_DIFF_FILE, err)) ||
        (run.facts->snapshot_root && keep_record(run.rundir, rundir, CODE_SNAPSHOT_FILE, err)))
        return -1;
    if (chdir(restored.directory) < 0)
        return error_set_errno(err, errno, "the tasks are to run in '%.300s'", restored.directory);
    setenv("PWD", restored.directory, 1);
    prepared->code = *run.facts;
    prepared->notice = arena_printf(
        &original->arena, "it runs the code of run %s, from %s%s%s", original->rundir.id,
        restored.from, restored.missing ? "; " : "", restored.missing ? restored.missing : "");
    return 0;
}

/* ---- its request ---- */

static const struct option *find_option(const struct command *command, const char *name) {
    const struct option *option;

    for (size_t i = 0; (option = command_option(command, i)); i++)
        if (strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

int anew_kept_options(const struct rundir *rundir, const struct request *request,
                      const struct command *command, struct arena *arena, struct given_option **out,
                      size_t *n, struct error *err) {
    struct given_option *given = ARENA_ARRAY(arena, struct given_option, request->options.len + 1);

    for (size_t i = 0; i < request->options.len; i++) {
        const struct request_pair *kept = &request->options.items[i];

        given[i] = (struct given_option){ find_option(command, kept->name), kept->value };
        if (!given[i].option || !given[i].option->argument != !kept->value)
            return error_set(err, ERROR_INVALID,
                             "run %s was started with --%.60s, which is not known here", rundir->id,
                             kept->name);
        if (strcmp(kept->name, "file") == 0)
            given[i].value = arena_printf(arena, "%s/%s", rundir->path, kept->value);
    }
    *out = given;
    *n = request->options.len;
    return 0;
}

int kept_run_load(const struct rundir *rundir, struct kept_run *out, struct error *err) {
    struct kept_run kept = { .in = { .command = &command_run } };
    struct given_option *given;

    if (rights_trust(rundir, "read again what the run was started with", err) ||
        request_read(rundir, &kept.request, err))
        return -1;
    if (anew_kept_options(rundir, &kept.request, kept.in.command, &kept.arena, &given,
                          &kept.in.n_given, err)) {
        request_release(&kept.request);
        arena_release(&kept.arena);
        return -1;
    }
    kept.in.given = given;
    load(&kept.in, NULL, &kept.loaded);
    *out = kept;
    return 0;
}

void kept_run_release(struct kept_run *kept) {
    loaded_release(&kept->loaded);
    request_release(&kept->request);
    arena_release(&kept->arena);
}

/* The options that the old run kept, then those of the command line. */
static int join_options(struct original *original, const struct invocation *in,
                        struct invocation *out, struct error *err) {
    struct given_option *kept, *given;
    size_t n_kept;

    if (anew_kept_options(&original->rundir, &original->request, in->command, &original->arena,
                          &kept, &n_kept, err))
        return -1;
    given = ARENA_ARRAY(&original->arena, struct given_option, n_kept + in->n_given + 1);
    memcpy(given, kept, n_kept * sizeof *given);
    if (in->n_given)
        memcpy(given + n_kept, in->given, in->n_given * sizeof *given);
    *out = *in;
    out->given = given;
    out->n_given = n_kept + in->n_given;
    return 0;
}

static void note_environment(const struct original *original) {
    for (size_t i = 0; i < original->request.environment.len; i++) {
        const struct request_pair *before = &original->request.environment.items[i];
        const char *now = getenv(before->name);

        if (!before->value != !now || (now && strcmp(now, before->value) != 0))
            fprintf(stderr, "myelin: note: %s is not what it was when run %s was started\n",
                    before->name, original->rundir.id);
    }
}

/* ---- the new run ---- */

static int read_original(const char *name, struct original *out, struct error *err) {
    if (runs_home(&out->arena, &out->home, err) ||
        runs_find(name, &out->arena, &out->rundir, err) ||
        runs_read(&out->rundir, &out->record, err))
        return -1;
    if (rights_trust(&out->rundir,
                     arena_printf(&out->arena, "make a new run from run %s", out->rundir.id), err))
        return -1;
    if (!out->record.uuid)
        return error_set(err, ERROR_CONFLICT, "run %s has not begun: there is nothing to repeat",
                         out->rundir.id);
    return request_read(&out->rundir, &out->request, err);
}

static int launch_from(struct original *original, const struct invocation *in,
                       enum origin_manner manner, struct error *err) {
    static supervisor_prepare *const prepares[] = {
        [ORIGIN_RESTARTED] = NULL,
        [ORIGIN_RESUMED] = share_outputs,
        [ORIGIN_COPIED] = copy_outputs,
        [ORIGIN_RERUN] = restore_code,
    };
    const struct origin origin = { .manner = manner,
                                   .id = strtoul(original->rundir.id, NULL, 10),
                                   .uuid = original->record.uuid };
    const bool restores = manner == ORIGIN_RERUN;
    const struct launch launch = { .directory = restores ? NULL : original->record.directory,
                                   .code = restores ? LAUNCH_CODE_GIVEN : LAUNCH_CODE_FOUND,
                                   .original = &original->record,
                                   .origin = &origin,
                                   .prepare = prepares[manner],
                                   .context = original };
    struct invocation joined;

    if (join_options(original, in, &joined, err))
        return -1;
    note_environment(original);
    return launch_run(&joined, &launch);
}

int anew(const struct invocation *in, enum origin_manner manner) {
    struct original original = { 0 };
    struct error err;
    int status;

    if (in->n_operands != 1)
        return invocation_misuse(in, "which RUN? 'myelin ps -a' lists them; @ is the newest");
    status = read_original(in->operands[0], &original, &err);
    if (status == 0)
        status = launch_from(&original, in, manner, &err);
    if (status < 0) {
        complain("%s", runs_text(&original.arena, err.message, 0));
        status = STATUS_RUN_OWN_FAILURE;
    }
    request_release(&original.request);
    record_release(&original.record);
    arena_release(&original.arena);
    return status;
}
