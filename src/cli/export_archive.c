/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export_archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/export.h"
#include "cli/failure.h"
#include "cli/progress.h"
#include "cli/runs.h"
#include "store/inventory.h"
#include "store/owner.h"

/* The runs that go out, and the locks of those that have their outputs. */
struct going {
    struct arena arena;
    struct export export;
    VEC(struct run_record) records; /* by the index of the export's runs */
    VEC(struct held_lock {
        const char *id;
        int fd;
    })
    locks;
    const char *path; /* of the archive; NULL: standard output */
    uint64_t size;    /* of the archive */
};

static void release(struct going *going) {
    for (size_t i = 0; i < going->locks.len; i++)
        close(going->locks.items[i].fd);
    for (size_t i = 0; i < going->records.len; i++)
        record_release(&going->records.items[i]);
    VEC_RELEASE(&going->locks);
    VEC_RELEASE(&going->records);
    export_release(&going->export);
    arena_release(&going->arena);
}

/* ---- the runs ---- */

static int read_run(struct going *going, const char *named, struct error *err) {
    struct rundir rundir;
    struct run_record record;
    struct error ignored;
    bool is_done;
    pid_t pid;

    if (runs_find(named, &going->arena, &rundir, err))
        return -1;
    /* What its artifacts are goes with it; a home that cannot be written stays as it is. */
    if (inventory_settle(&rundir, &is_done, &ignored))
        is_done = false;
    if (runs_read(&rundir, &record, err))
        return -1;
    if (!record.uuid || !state_is_final(record.state) || owner_lives(&rundir, &pid)) {
        record_release(&record);
        return error_set(err, ERROR_CONFLICT,
                         "run %s is not over: an archive has whole runs alone; wait for its end "
                         "(myelin attach %s), or stop it (myelin stop %s)",
                         rundir.id, rundir.id, rundir.id);
    }
    *VEC_PUSH(&going->records) = record;
    return 0;
}

static bool is_locked(const struct going *going, const char *id) {
    for (size_t i = 0; i < going->locks.len; i++)
        if (strcmp(going->locks.items[i].id, id) == 0)
            return true;
    return false;
}

/* While the lock of the run that has the outputs is held nobody resumes it, removes it, or adds to
 * it (store/origin.h). In a home that cannot be written nobody does so anyway. */
static int lock_outputs(struct going *going, const struct rundir *rundir, struct error *err) {
    const char *home = rundir_home_of(rundir, &going->arena), *user = NULL;
    struct rundir keeper;
    struct error why;
    int fd;

    if (rundir_open(home, strtoul(rundir->outputs_of, NULL, 10), &going->arena, &keeper, err))
        return error_wrap(err, "the outputs of run %s are gone", rundir->id);
    if (is_locked(going, keeper.id))
        return 0;
    if (owner_take(&keeper, &fd, &why) == 0)
        *VEC_PUSH(&going->locks) = (struct held_lock){ .id = keeper.id, .fd = fd };
    else if (why.code == ERROR_CONFLICT)
        return error_set(err, ERROR_CONFLICT,
                         "run %s is used by another process: try again when that is done",
                         keeper.id);
    if (outputs_user(home, &keeper, OUTPUTS_USERS_LIVING, &going->arena, &user, err))
        return -1;
    if (user)
        return error_set(err, ERROR_CONFLICT,
                         "run %s goes on with the outputs of run %s: wait for its end", user,
                         rundir->id);
    return 0;
}

static int gather(struct going *going, const struct invocation *in, struct error *err) {
    for (size_t i = 0; i < in->n_operands; i++)
        if (read_run(going, in->operands[i], err))
            return -1;
    for (size_t i = 0; i < going->records.len; i++)
        if (lock_outputs(going, &going->records.items[i].rundir, err))
            return -1;
    for (size_t i = 0; i < going->records.len; i++)
        if (export_add(&going->export, &going->records.items[i], err))
            return -1;
    return 0;
}

/* ---- the archive ---- */

static int write_archive(struct going *going, bool is_forced, struct error *err) {
    struct progress progress = progress_begin("packing");
    const struct archive_progress tell = { progress_tell, &progress };
    struct pack *pack;
    int status;

    progress.total = going->export.bytes;
    if (going->path ? pack_begin(going->path, is_forced ? PACK_REPLACE : PACK_NEW_ONLY, &pack, err)
                    : pack_begin_at(STDOUT_FILENO, &pack, err)) {
        return err->code == ERROR_CONFLICT && !is_forced
                   ? error_set(err, ERROR_CONFLICT,
                               "'%.300s' exists: name another file with -o, or replace it with "
                               "--force",
                               going->path)
                   : -1;
    }
    pack_tell(pack, &tell);
    status = export_write(&going->export, pack, err);
    if (status)
        pack_discard(pack);
    else
        status = pack_finish(pack, &going->size, err);
    progress_end(&progress);
    return status;
}

/* ---- what is said ---- */

static void write_going_json(struct json *json, const struct contents_run *run,
                             const struct run_record *record) {
    json_object(json);
    json_key(json, "id");
    json_int(json, run->id);
    json_key(json, "uuid");
    json_text(json, run->uuid);
    json_key(json, "name");
    json_text(json, record->name);
    json_key(json, "files");
    json_int(json, (int64_t)run->files);
    json_key(json, "bytes");
    json_int(json, (int64_t)run->bytes);
    json_end(json);
}

static int print_json(const struct going *going) {
    const struct contents *contents = &going->export.contents;
    struct json json;
    struct error err;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_object(&json);
    json_key(&json, "path");
    json_text(&json, going->path);
    json_key(&json, "size");
    json_int(&json, (int64_t)going->size);
    json_key(&json, "left_out");
    json_int(&json, (int64_t)going->export.left_out);
    json_key(&json, "runs");
    json_array(&json);
    for (size_t i = 0; i < contents->runs.len; i++)
        write_going_json(&json, &contents->runs.items[i], &going->records.items[i]);
    json_end(&json);
    json_end(&json);
    return json_finish(&json, &err) ? STATUS_INVALID : STATUS_OK;
}

static int say(struct going *going, bool as_json) {
    const size_t n = going->records.len;

    if (going->export.left_out > 0)
        fprintf(stderr,
                "myelin: note: %llu links that lead out of their run, sockets and pipes are left "
                "out\n",
                (unsigned long long)going->export.left_out);
    if (as_json)
        return print_json(going);
    if (!going->path)
        return STATUS_OK;
    if (n == 1)
        printf("wrote run %s to %s", going->records.items[0].rundir.id,
               runs_text(&going->arena, going->path, 0));
    else
        printf("wrote %zu runs to %s", n, runs_text(&going->arena, going->path, 0));
    printf(": %s, packed from %s\n", runs_bytes(&going->arena, going->size),
           runs_bytes(&going->arena, going->export.bytes));
    return STATUS_OK;
}

/* ---- all of it ---- */

/* Where it goes: -o, else a file here that is named after the run. */
static const char *choose_path(struct going *going, const char *given) {
    if (given)
        return strcmp(given, "-") == 0 ? NULL : given;
    if (going->records.len == 1)
        return arena_printf(&going->arena, "run-%s.tar.zst", going->records.items[0].rundir.id);
    return "runs.tar.zst";
}

static int export_runs(struct going *going, const struct invocation *in, struct error *err) {
    if (gather(going, in, err))
        return -1;
    going->path = choose_path(going, invocation_value(in, "output"));
    return write_archive(going, invocation_has(in, "force"), err);
}

int export_archive(const struct invocation *in) {
    const char *output = invocation_value(in, "output");
    const bool to_stdout = output && strcmp(output, "-") == 0, as_json = invocation_has(in, "json");
    struct going going = { 0 };
    struct interrupts held;
    struct error err;
    bool was_interrupted;
    int status;

    if (to_stdout && as_json)
        return invocation_misuse(in, "--json does not go with -o -");
    if (to_stdout && isatty(STDOUT_FILENO))
        return invocation_misuse(in, "an archive is not for a terminal: name a file with -o");
    held = interrupts_hold();
    status = export_runs(&going, in, &err);
    was_interrupted = status && interrupts_came();
    interrupts_release(&held);
    if (status == 0) {
        status = say(&going, as_json);
    } else {
        complain("%s", runs_text(&going.arena, err.message, 0));
        status = was_interrupted ? STATUS_INTERRUPTED : STATUS_INVALID;
    }
    release(&going);
    return status;
}
