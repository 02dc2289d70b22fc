/* SPDX-License-Identifier: Apache-2.0 */
/* Brings the index of a home up to date. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "search/facts.h"
#include "search/search.h"
#include "store/database.h"
#include "store/owner.h"

enum {
    COMMIT_EVERY = 512, /* runs: what was read is kept, whatever ends this process */
    /* A directory that was changed so lately may change again within the same tick of its clock. */
    SETTLED_US = 2 * 1000 * 1000,
};

struct refresh {
    struct search_index *index;
    const char *home;
    run_reader *read;
    struct index_ids wanted; /* ascending */
    struct index_ids gone;
    uint64_t n_read;
};

static int compare_ids(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* ---- which runs ---- */

/* When the directory of runs was last changed; 0 where there is none. */
static int64_t changed_ns(const char *home) {
    char path[PATH_MAX];
    struct stat st;

    if (snprintf(path, sizeof path, "%s/runs", home) >= (int)sizeof path || stat(path, &st) < 0)
        return 0;
    return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

/* The ids that the index has, ascending. */
static int known_runs(struct search_index *index, struct index_ids *out, struct error *err) {
    struct index_blocks blocks = { 0 };
    cell *cells = NULL;
    uint32_t field;
    int status = -1;

    if (index_field(index, "status", &field, err) == 0 &&
        index_blocks(index, field, &blocks, err) == 0) {
        cells = calloc(blocks.numbers.len * INDEX_BLOCK + 1, sizeof *cells);
        if (!cells)
            abort();
        status = index_column(index, field, &blocks, cells, err);
    }
    for (size_t i = 0; status == 0 && i < blocks.numbers.len * INDEX_BLOCK; i++)
        if (cell_kind(cells[i]) != CELL_NONE)
            *VEC_PUSH(&out->list) =
                blocks.numbers.items[i / INDEX_BLOCK] * INDEX_BLOCK + i % INDEX_BLOCK;
    free(cells);
    VEC_RELEASE(&blocks.numbers);
    return status;
}

static bool has_id(const struct index_ids *ids, uint64_t id) {
    return ids->list.len && bsearch(&id, ids->list.items, ids->list.len, sizeof id, compare_ids);
}

/* Compares what there is with what the index has; both ascend. */
static int compare_directory(struct refresh *refresh, struct error *err) {
    struct index_ids known = { 0 }, watched = { 0 };
    AUTO(arena) arena = ARENA_INIT;
    unsigned long *ids;
    size_t n, at = 0;
    int status = -1;

    if (rundir_list(refresh->home, &arena, &ids, &n, err) == 0 &&
        known_runs(refresh->index, &known, err) == 0 &&
        index_watched(refresh->index, &watched, err) == 0) {
        for (size_t i = 0; i < n; i++) {
            for (; at < known.list.len && known.list.items[at] < ids[i]; at++)
                *VEC_PUSH(&refresh->gone.list) = known.list.items[at];
            if (at < known.list.len && known.list.items[at] == ids[i])
                at++;
            else if (!has_id(&watched, ids[i]))
                *VEC_PUSH(&refresh->wanted.list) = ids[i];
        }
        for (; at < known.list.len; at++)
            *VEC_PUSH(&refresh->gone.list) = known.list.items[at];
        status = 0;
    }
    VEC_RELEASE(&known.list);
    VEC_RELEASE(&watched.list);
    return status;
}

/* ---- reading them ---- */

static int read_run(struct refresh *refresh, uint64_t id, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    AUTO(facts) facts = { 0 };
    struct run_record record;
    struct rundir rundir;
    struct error ignored;
    bool has_owner, is_final;
    pid_t pid;
    int status;

    refresh->n_read++;
    if (rundir_open(refresh->home, id, &arena, &rundir, &ignored))
        return index_put(refresh->index, id, NULL, 0, err) ||
                       index_watch(refresh->index, id, false, err)
                   ? -1
                   : 0;
    /* Who still has the lock may add to it after it was read. */
    has_owner = owner_lives(&rundir, &pid);

    /* One that cannot be read now is tried again by the next search. */
    if (refresh->read(&rundir, &record, &ignored))
        return index_watch(refresh->index, id, true, err);
    if (record.uuid)
        facts_gather(&facts, &record);
    is_final = state_is_final(record.state) && !has_owner;
    status = index_put(refresh->index, id, facts.list.items, facts.list.len, err);
    record_release(&record); /* the facts are texts of it */
    return status ? status : index_watch(refresh->index, id, !is_final, err);
}

static int apply(struct refresh *refresh, struct error *err) {
    size_t n = 0;

    for (size_t i = 0; i < refresh->gone.list.len; i++)
        if (index_put(refresh->index, refresh->gone.list.items[i], NULL, 0, err) ||
            index_watch(refresh->index, refresh->gone.list.items[i], false, err))
            return -1;
    for (size_t i = 0; i < refresh->wanted.list.len; i++) {
        if (read_run(refresh, refresh->wanted.list.items[i], err))
            return -1;
        if (++n % COMMIT_EVERY == 0 &&
            (index_commit(refresh->index, err) || index_begin(refresh->index, err)))
            return -1;
    }
    return 0;
}

static int bring_up_to_date(struct refresh *refresh, struct error *err) {
    const int64_t now_us = clock_wall_us(), changed = changed_ns(refresh->home);
    const bool is_settled = changed / 1000 < now_us - SETTLED_US;
    int64_t seen;

    if (index_seen(refresh->index, &seen, err) ||
        index_watched(refresh->index, &refresh->wanted, err))
        return -1;
    if ((changed != seen || changed == 0) && compare_directory(refresh, err))
        return -1;
    if (refresh->wanted.list.len == 0 && refresh->gone.list.len == 0 &&
        (changed == seen || !is_settled))
        return 0;
    if (refresh->wanted.list.len)
        qsort(refresh->wanted.list.items, refresh->wanted.list.len, sizeof(uint64_t), compare_ids);
    if (index_begin(refresh->index, err))
        return -1;
    if (apply(refresh, err) || index_see(refresh->index, is_settled ? changed : 0, err) ||
        index_commit(refresh->index, err)) {
        index_rollback(refresh->index);
        return -1;
    }
    return 0;
}

static int open_at(enum index_place place, struct refresh *refresh, struct error *err) {
    bool is_damaged;
    int status;

    refresh->n_read = 0;
    if (index_open(refresh->home, place, &refresh->index, err))
        return -1;
    status = bring_up_to_date(refresh, err);
    VEC_RELEASE(&refresh->wanted.list);
    VEC_RELEASE(&refresh->gone.list);
    if (status == 0)
        return 0;
    is_damaged = index_is_damaged(refresh->index);
    index_free(refresh->index);
    if (is_damaged)
        index_discard(refresh->home);
    return is_damaged ? 1 : -1;
}

/* Whether the user should hear why the index was not used: something is wrong with it. A home on a
 * network file system, one that can only be read and a full disk are as they are. */
static bool is_worth_a_note(const char *home, const struct error *why) {
    return why->code == ERROR_UNAVAILABLE || why->code == ERROR_IO ||
           (why->code == ERROR_DENIED && faccessat(AT_FDCWD, home, W_OK, AT_EACCESS) == 0);
}

int search_open(const char *home, enum index_place place, run_reader *read,
                struct search_opened *out, struct error *err) {
    struct refresh refresh = { .home = home, .read = read };
    struct error unused = { .code = ERROR_NONE };
    struct stat st;
    int status;

    /* A home that does not exist is not made by looking for runs. */
    if (stat(home, &st) < 0 && errno == ENOENT)
        place = INDEX_IN_MEMORY;
    status = open_at(place, &refresh, err);
    if (status == 1)
        status = open_at(place, &refresh, err);
    if (status && place == INDEX_IN_HOME) {
        database_blame(home, &database_index, err);
        if (is_worth_a_note(home, err))
            unused = *err;
        status = open_at(INDEX_IN_MEMORY, &refresh, err);
    }
    if (status)
        return -1;
    *out = (struct search_opened){ .index = refresh.index,
                                   .n_read = refresh.n_read,
                                   .unused = unused };
    return 0;
}
