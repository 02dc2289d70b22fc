/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sweeping.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "archive/import.h"
#include "base/clock.h"
#include "base/tree.h"
#include "cli/runs.h"
#include "search/search.h"
#include "store/find.h"
#include "store/models.h"
#include "store/origin.h"
#include "store/owner.h"
#include "store/rights.h"
#include "store/unbegun.h"

enum {
    NEVER_BEGAN_AFTER_S = 60, /* who makes a run needs a moment between directory and journal */
    COLUMN_NAME = 0,
    COLUMN_STATUS,
    COLUMN_FINISHED,
    COLUMNS
};

void sweeping_release(struct sweeping *sweeping) {
    VEC_RELEASE(&sweeping->runs);
    VEC_RELEASE(&sweeping->shown);
    VEC_RELEASE(&sweeping->leftovers);
    arena_release(&sweeping->arena);
}

/* ---- the runs ---- */

static int find_runs(const struct sweeping *sweeping, const struct query *query,
                     struct search_result *out, struct error *err) {
    static struct query_order by_id = { .field = { "id", QUERY_NUMBER } };
    static struct query_order columns[] = {
        [COLUMN_NAME] = { .field = { "name", QUERY_TEXT } },
        [COLUMN_STATUS] = { .field = { "status", QUERY_STATUS } },
        [COLUMN_FINISHED] = { .field = { "finished_at", QUERY_TIME } },
    };
    const struct query_sort sort = { &by_id, 1 }, wanted = { columns, COLUMNS };
    const struct search_wish wish = { .query = query, .sort = &sort, .columns = &wanted };

    return search(sweeping->home, INDEX_IN_HOME, runs_read, &wish, out, err);
}

static const char *text_of(struct arena *arena, const struct search_value *value) {
    return value->kind == CELL_WORD ? arena_text(arena, value->text, strlen(value->text)) : "";
}

/* Everybody removes only their own runs; root removes those of all. */
static bool may_remove(const struct rundir *rundir) {
    return rights_has(rundir) || geteuid() == 0;
}

static void add_run(struct sweeping *sweeping, uint64_t id, const struct search_value *values) {
    const double now_s = (double)clock_wall_us() / 1e6;
    struct rundir rundir;
    struct error gone;

    if (rundir_open(sweeping->home, (unsigned long)id, &sweeping->arena, &rundir, &gone) ||
        !may_remove(&rundir))
        return;
    *VEC_PUSH(&sweeping->runs) =
        (struct sweep_run){ .id = (unsigned long)id,
                            .outputs_of = strtoul(rundir.outputs_of, NULL, 10),
                            .age_s = values[COLUMN_FINISHED].kind == CELL_NUMBER
                                         ? now_s - values[COLUMN_FINISHED].number
                                         : 0 };
    *VEC_PUSH(&sweeping->shown) =
        (struct swept){ .rundir = rundir,
                        .name = text_of(&sweeping->arena, &values[COLUMN_NAME]),
                        .status = text_of(&sweeping->arena, &values[COLUMN_STATUS]) };
}

static int gather_runs(struct sweeping *sweeping, struct error *err) {
    const struct query all = { 0 };
    struct search_result found;

    if (find_runs(sweeping, &all, &found, err))
        return -1;
    for (size_t i = 0; i < found.n; i++)
        add_run(sweeping, found.runs[i], &found.values[i * COLUMNS]);
    search_result_release(&found);
    return 0;
}

/* Both lists ascend. */
static int mark_meant(struct sweeping *sweeping, const struct query *query, struct error *err) {
    struct search_result found;

    if (find_runs(sweeping, query, &found, err))
        return -1;
    for (size_t i = 0, at = 0; i < sweeping->runs.len; i++) {
        while (at < found.n && found.runs[at] < sweeping->runs.items[i].id)
            at++;
        sweeping->runs.items[i].is_meant =
            at < found.n && found.runs[at] == sweeping->runs.items[i].id;
    }
    search_result_release(&found);
    return 0;
}

/* ---- who needs them ---- */

static struct sweep_run *run_of(struct sweeping *sweeping, uint64_t id) {
    return sweep_find(sweeping->runs.items, sweeping->runs.len, id);
}

static int mark_aliased(struct sweeping *sweeping, struct error *err) {
    struct models *models;
    struct model_row *rows;
    size_t n;
    int status;

    if (models_open(sweeping->home, LEDGER_TO_LOOK, &models, err))
        return -1;
    status = models_list(models, NULL, &sweeping->arena, &rows, &n, err);
    models_close(models);
    for (size_t i = 0; status == 0 && i < n; i++) {
        struct sweep_run *run = rows[i].aliases[0] ? run_of(sweeping, rows[i].run) : NULL;

        if (run && !run->needed)
            run->needed = arena_printf(&sweeping->arena, "its model %s:%lld is '%s'", rows[i].name,
                                       (long long)rows[i].version, rows[i].aliases[0]);
    }
    return status;
}

/* The run that a living one was made from; its id may mean another run by now. */
static void mark_origin(struct sweeping *sweeping, const struct run_record *living) {
    struct sweep_run *run =
        living->origin.manner == ORIGIN_NONE ? NULL : run_of(sweeping, living->origin.id);
    const struct rundir *original;
    struct run_identity identity;

    if (!run || run->needed)
        return;
    original = &sweeping->shown.items[run - sweeping->runs.items].rundir;
    if (original->owner != living->rundir.owner)
        return; /* what another user's run claims does not count */
    identify_run(original, &sweeping->arena, &identity);
    if (identity.uuid && living->origin.uuid && strcmp(identity.uuid, living->origin.uuid) == 0)
        run->needed = arena_printf(&sweeping->arena, "run %s, which goes on, was made from it",
                                   living->rundir.id);
}

static void mark_living(struct sweeping *sweeping) {
    for (size_t i = 0; i < sweeping->runs.len; i++) {
        const struct rundir *rundir = &sweeping->shown.items[i].rundir;
        struct run_record record;
        enum state state;
        struct error gone;
        pid_t pid;
        const bool is_over =
            state_named(sweeping->shown.items[i].status, &state) && state_is_final(state);

        if (is_over && !owner_lives(rundir, &pid))
            continue;
        sweeping->runs.items[i].needed = "it goes on";
        if (is_over || record_read(&record, rundir, &gone))
            continue;
        if (!owner_lives(rundir, &pid) && record.host)
            sweeping->runs.items[i].needed =
                arena_printf(&sweeping->arena, "it may be going on at %s", record.host);
        mark_origin(sweeping, &record);
        record_release(&record);
    }
}

/* ---- what was left behind ---- */

static int gather_leftovers(struct sweeping *sweeping, struct error *err) {
    const char **paths;
    size_t n;

    if (import_leftovers(sweeping->home, &sweeping->arena, &paths, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        *VEC_PUSH(&sweeping->leftovers) = (struct leftover){ .path = paths[i],
                                                             .what = "an import that was cut short",
                                                             .bytes = tree_weigh(paths[i]) };
    return 0;
}

/* Directories of runs whose journal was never begun: whoever made them died. */
static int gather_unbegun(struct sweeping *sweeping, struct error *err) {
    unsigned long *ids;
    size_t n;

    if (rundir_list(sweeping->home, &sweeping->arena, &ids, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct rundir rundir;
        struct error gone;

        if (run_of(sweeping, ids[i]) ||
            rundir_open(sweeping->home, ids[i], &sweeping->arena, &rundir, &gone) ||
            !may_remove(&rundir) || unbegun_look(&rundir, NEVER_BEGAN_AFTER_S) != UNBEGUN_NEVER)
            continue;
        *VEC_PUSH(&sweeping->leftovers) = (struct leftover){ .path = rundir.path,
                                                             .what = "a run that never began",
                                                             .rundir = rundir,
                                                             .bytes = tree_weigh(rundir.path) };
    }
    return 0;
}

/* ---- all of it ---- */

static void weigh(struct sweeping *sweeping, bool only_going) {
    for (size_t i = 0; i < sweeping->runs.len; i++) {
        struct sweep_run *run = &sweeping->runs.items[i];

        if (!only_going || run->verdict == SWEEP_GOES)
            run->bytes = tree_weigh(sweeping->shown.items[i].rundir.path);
    }
}

int sweeping_look(struct sweeping *sweeping, const struct query *query,
                  const struct sweep_rules *rules, struct error *err) {
    if (runs_home(&sweeping->arena, &sweeping->home, err) || gather_runs(sweeping, err) ||
        mark_meant(sweeping, query, err))
        return -1;
    mark_living(sweeping);
    if (mark_aliased(sweeping, err) || gather_leftovers(sweeping, err) ||
        gather_unbegun(sweeping, err))
        return -1;
    /* Looking at every file of a home takes its time: only where it decides. */
    if (rules->has_size)
        weigh(sweeping, false);
    sweep_decide(sweeping->runs.items, sweeping->runs.len, rules);
    if (!rules->has_size)
        weigh(sweeping, true);
    return 0;
}
