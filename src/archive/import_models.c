/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/import_models.h"

#include <stdlib.h>
#include <string.h>

#include "store/inventory.h"
#include "store/models.h"

/* A run with its journal open. */
struct opened {
    struct run_record record;
    struct journal journal;
    struct arena arena;
    struct artifacts artifacts;
};

static int open_run(struct opened *run, const struct rundir *rundir, struct error *err) {
    if (record_read(&run->record, rundir, err))
        return -1;
    if (journal_reopen(&run->journal, rundir, run->record.seq, run->record.elapsed_s, err)) {
        record_release(&run->record);
        return -1;
    }
    run->artifacts = artifacts_read(&run->record, &run->arena);
    return 0;
}

static int close_run(struct opened *run, struct error *err) {
    int status = 0;

    journal_flush(&run->journal);
    if (run->journal.lost > 0)
        status = error_set(err, ERROR_IO, "cannot write to the journal of the run");
    journal_close(&run->journal);
    record_release(&run->record);
    arena_release(&run->arena);
    return status;
}

static bool is_model(const struct artifact *artifact) {
    struct error ignored;

    return artifact->type && strcmp(artifact->type, ARTIFACT_MODEL) == 0 && artifact->sha256 &&
           !artifact->problem && model_name_check(artifact->name, &ignored) == 0;
}

int import_models_forget(const struct rundir *rundir, struct error *err) {
    struct opened run = { 0 };

    if (open_run(&run, rundir, err))
        return -1;
    for (size_t i = 0; i < run.artifacts.n; i++)
        if (run.artifacts.list[i].version > 0)
            inventory_write(&run.journal, &run.artifacts.list[i], 0);
    return close_run(&run, err);
}

/* ---- versions ---- */

static const struct contents_model *told_of(const struct contents_run *told, const char *name) {
    for (size_t i = 0; i < told->models.len; i++)
        if (strcmp(told->models.items[i].name, name) == 0)
            return &told->models.items[i];
    return NULL;
}

/* The number that it had goes on where nothing here was given that or a higher one: so a home that
 * is moved whole keeps its numbers, and none is ever given twice. */
static int assign(struct models *models, struct model_row *row, int64_t there, struct error *err) {
    int64_t last;

    if (models_last(models, row->name, &last, err))
        return -1;
    row->version = there > last ? there : 0;
    return models_assign(models, row, &row->version, err);
}

static int give_version(struct models *models, struct opened *run, const struct artifact *artifact,
                        struct model_row *row, int64_t there, struct error *err) {
    if (models_begin(models, err))
        return -1;
    if (assign(models, row, there, err) == 0) {
        inventory_write(&run->journal, artifact, row->version);
        if (models_commit(models, err) == 0)
            return 0;
    }
    models_rollback(models);
    return -1;
}

/* ---- aliases ---- */

static bool is_taken(const struct model_row *rows, size_t n, const char *alias) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; rows[i].aliases[j]; j++)
            if (strcmp(rows[i].aliases[j], alias) == 0)
                return true;
    return false;
}

static int give_aliases(struct models *models, const struct model_row *row,
                        const struct contents_model *told, struct arena *arena,
                        struct imported_model *out, struct error *err) {
    const size_t most = told ? told->n_aliases : 0;
    size_t given = 0, kept_back = 0, n;
    struct model_row *rows;
    int64_t before;

    out->aliases = ARENA_ARRAY(arena, const char *, most + 1);
    out->aliases_kept_back = ARENA_ARRAY(arena, const char *, most + 1);
    if (most > 0 && models_list(models, row->name, arena, &rows, &n, err))
        return -1;
    for (size_t i = 0; i < most; i++) {
        const char *alias = arena_text(arena, told->aliases[i], strlen(told->aliases[i]));

        if (is_taken(rows, n, alias))
            out->aliases_kept_back[kept_back++] = alias;
        else if (models_alias(models, row, alias, &before, err))
            return -1;
        else
            out->aliases[given++] = alias;
    }
    return 0;
}

/* ---- all of them ---- */

static int adopt_one(struct models *models, struct opened *run, const struct artifact *artifact,
                     const struct contents_run *told, struct arena *arena, struct imported *out,
                     struct error *err) {
    const struct contents_model *model = told_of(told, artifact->name);
    struct model_row row = { .name = artifact->name,
                             .run = strtoull(run->record.rundir.id, NULL, 10),
                             .path = artifact->path,
                             .sha256 = artifact->sha256,
                             .size = artifact->size,
                             .files = artifact->files };
    struct imported_model *it;

    if (give_version(models, run, artifact, &row, model ? model->version : 0, err))
        return -1;
    it = VEC_PUSH(&out->models);
    it->name = arena_text(arena, row.name, strlen(row.name));
    it->version_there = model ? model->version : 0;
    it->version = row.version;
    return give_aliases(models, &row, model, arena, it, err);
}

int import_models_adopt(const char *home, const struct rundir *rundir,
                        const struct contents_run *told, struct arena *arena, struct imported *out,
                        struct error *err) {
    struct opened run = { 0 };
    struct models *models = NULL;
    struct error ignored;
    int status = 0;

    if (open_run(&run, rundir, err))
        return -1;
    for (size_t i = 0; status == 0 && i < run.artifacts.n; i++) {
        if (!is_model(&run.artifacts.list[i]))
            continue;
        if (!models)
            status = models_open(home, LEDGER_TO_WRITE, &models, err);
        if (status == 0)
            status = adopt_one(models, &run, &run.artifacts.list[i], told, arena, out, err);
    }
    models_close(models);
    return close_run(&run, status ? &ignored : err) || status ? -1 : 0;
}
