/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/export.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/walk.h"
#include "store/models.h"

/* What one walk over a run is about: to count, or to write. */
struct going {
    const struct rundir *rundir;
    const char *below; /* "outputs/" in the walk of outputs that are another run's, else "" */
    struct contents_run *run;
    uint64_t *left_out;
    struct pack *pack; /* NULL: to count */
    const char *uuid;
};

void export_release(struct export *export) {
    VEC_RELEASE(&export->rundirs);
    contents_release(&export->contents);
}

/* ---- what belongs to a run ---- */

static bool is_in_outputs(const char *name) {
    return strncmp(name, "outputs/", 8) == 0;
}

/* Whether a link leads to somewhere in the run. Outside of the outputs there are none of ours. */
static bool link_belongs(const char *name, const char *path) {
    char target[PATH_MAX];
    const ssize_t n = readlink(path, target, sizeof target - 1);

    if (n < 0 || !is_in_outputs(name))
        return false;
    target[n] = '\0';
    return archive_link_stays(name, target);
}

static bool belongs(const char *name, const struct walk_entry *entry) {
    switch (entry->st->st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR: return true;
    case S_IFLNK: return link_belongs(name, entry->path);
    default: return false;
    }
}

static int visit(void *context, const struct walk_entry *entry, struct error *err) {
    struct going *going = context;
    char name[PATH_MAX], full[PATH_MAX];

    if (snprintf(name, sizeof name, "%s%s", going->below, entry->name) >= (int)sizeof name ||
        snprintf(full, sizeof full, "runs/%s/%s", going->uuid, name) >= (int)sizeof full)
        return error_set(err, ERROR_INVALID, "the path '%.200s...' is too long for an archive",
                         entry->name);
    if (strcmp(name, "lock") == 0)
        return 0;
    if (strcmp(name, "outputs") == 0 && S_ISLNK(entry->st->st_mode))
        return 0; /* go_over_outputs has them */
    if (!belongs(name, entry)) {
        *going->left_out += !going->pack;
        return 0;
    }
    if (!going->pack && S_ISREG(entry->st->st_mode)) {
        going->run->files++;
        going->run->bytes += (uint64_t)entry->st->st_size;
    }
    return going->pack ? pack_add(going->pack, full, AT_FDCWD, entry->path, err) : 0;
}

/* Those of another run come as this one's own. */
static int go_over_outputs(struct going *going, struct error *err) {
    char name[PATH_MAX];

    if (strcmp(going->rundir->outputs_of, going->rundir->id) == 0)
        return 0;
    snprintf(name, sizeof name, "runs/%s/outputs", going->uuid);
    if (going->pack && pack_add(going->pack, name, AT_FDCWD, going->rundir->outputs, err))
        return -1;
    going->below = "outputs/";
    return walk_linkless(going->rundir->outputs, visit, going, err);
}

static int go_over(struct going *going, struct error *err) {
    going->below = "";
    return walk_linkless(going->rundir->path, visit, going, err) || go_over_outputs(going, err) ? -1
                                                                                                : 0;
}

/* ---- what only the home knows ---- */

static int add_models(struct export *export, struct contents_run *run, const struct rundir *rundir,
                      struct error *err) {
    struct arena *arena = &export->contents.arena;
    struct models *models;
    struct model_row *rows;
    size_t n;
    int status;

    if (models_open(rundir_home_of(rundir, arena), LEDGER_TO_LOOK, &models, err))
        return -1;
    status = models_list(models, NULL, arena, &rows, &n, err);
    models_close(models);
    for (size_t i = 0; status == 0 && i < n; i++) {
        struct contents_model *model;

        if (rows[i].run != (uint64_t)run->id)
            continue;
        model = VEC_PUSH(&run->models);
        *model = (struct contents_model){ .name = rows[i].name,
                                          .version = rows[i].version,
                                          .aliases = rows[i].aliases };
        while (model->aliases[model->n_aliases])
            model->n_aliases++;
    }
    return status;
}

/* ---- all of it ---- */

int export_add(struct export *export, const struct run_record *record, struct error *err) {
    struct arena *arena = &export->contents.arena;
    struct contents_run run = { .id = strtoll(record->rundir.id, NULL, 10) };
    struct going going = {
        .rundir = &record->rundir, .run = &run, .left_out = &export->left_out, .uuid = record->uuid
    };

    if (!record->uuid || !state_is_final(record->state))
        return error_set(err, ERROR_INVALID, "run %s is not over", record->rundir.id);
    for (size_t i = 0; i < export->contents.runs.len; i++)
        if (strcmp(export->contents.runs.items[i].uuid, record->uuid) == 0)
            return error_set(err, ERROR_INVALID, "run %s is named twice", record->rundir.id);
    run.uuid = arena_text(arena, record->uuid, strlen(record->uuid));
    if (go_over(&going, err) || add_models(export, &run, &record->rundir, err)) {
        VEC_RELEASE(&run.models);
        return -1;
    }
    *VEC_PUSH(&export->contents.runs) = run;
    *VEC_PUSH(&export->rundirs) = rundir_copy(&record->rundir, arena);
    export->bytes += run.bytes;
    return 0;
}

int export_write(struct export *export, struct pack *pack, struct error *err) {
    AUTO(buf) text = BUF_INIT(CONTENTS_MOST);

    if (contents_format(&export->contents, &text, err) ||
        pack_add_bytes(pack, CONTENTS_FILE, text.data, text.len, 0, err))
        return -1;
    for (size_t i = 0; i < export->contents.runs.len; i++) {
        struct going going = { .rundir = &export->rundirs.items[i],
                               .left_out = &export->left_out,
                               .pack = pack,
                               .uuid = export->contents.runs.items[i].uuid };

        if (go_over(&going, err))
            return -1;
    }
    return 0;
}
