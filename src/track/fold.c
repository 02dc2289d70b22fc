/* SPDX-License-Identifier: Apache-2.0 */
#include "track/fold.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/vec.h"
#include "track/chain.h"
#include "track/left.h"

enum {
    STEP_BYTES = 8 << 20, /* read in one step: some hundred thousand points */
    TICK_S = 2,           /* two changes of a directory this close may leave it the same time */
};

/* When a directory was listed; it is listed again only after a change. */
struct listing {
    struct timespec changed;
    bool is_settled; /* any later change gives it another time */
};

struct task_folder {
    char *name, *path;
    uint32_t rank;
    struct listing listing;
    VEC(struct chain) chains;
};

struct fold {
    struct fold_given given;
    char *directory;
    struct listing listing;
    VEC(struct task_folder) tasks;
    size_t turn; /* where to begin: a busy one does not keep the others waiting */
    bool is_swept;
    unsigned char *buffer;
};

struct fold *fold_new(const struct fold_given *given) {
    struct fold *fold = calloc(1, sizeof *fold);

    if (!fold)
        abort();
    fold->given = *given;
    fold->directory = strdup(given->directory);
    fold->buffer = malloc(MYELIN_SPOOL_SIZE_MAX);
    if (!fold->directory || !fold->buffer)
        abort();
    return fold;
}

void fold_free(struct fold *fold) {
    if (!fold)
        return;
    for (size_t i = 0; i < fold->tasks.len; i++) {
        struct task_folder *task = &fold->tasks.items[i];

        for (size_t k = 0; k < task->chains.len; k++)
            chain_release(&task->chains.items[k]);
        VEC_RELEASE(&task->chains);
        free(task->name);
        free(task->path);
    }
    VEC_RELEASE(&fold->tasks);
    free(fold->buffer);
    free(fold->directory);
    free(fold);
}

struct fold_totals fold_totals(const struct series_store *store) {
    return (struct fold_totals){ .bad = series_marked(store, TOTAL_BAD),
                                 .lost = series_marked(store, TOTAL_LOST),
                                 .dropped = series_marked(store, TOTAL_DROPPED),
                                 .refused = series_refused(store) };
}

/* ---- finding */

/* Opens a directory that may have changed since it was listed; NULL if it has not, or is not there.
 */
static DIR *listing_open(struct listing *listing, const char *path) {
    struct timespec now;
    struct stat st;
    DIR *directory;

    if (stat(path, &st))
        return NULL;
    if (listing->is_settled && st.st_mtim.tv_sec == listing->changed.tv_sec &&
        st.st_mtim.tv_nsec == listing->changed.tv_nsec)
        return NULL;
    clock_gettime(CLOCK_REALTIME, &now);
    directory = file_list_linkless(path);
    listing->changed = st.st_mtim;
    listing->is_settled = directory && (now.tv_sec - st.st_mtim.tv_sec > TICK_S ||
                                        st.st_mtim.tv_sec > now.tv_sec + TICK_S);
    return directory;
}

/* NULL: it is not a task. */
static struct task_folder *take_task(struct fold *fold, const char *name) {
    struct task_folder task = { .name = NULL };
    int64_t rank;

    for (size_t i = 0; i < fold->tasks.len; i++)
        if (!strcmp(fold->tasks.items[i].name, name))
            return &fold->tasks.items[i];
    rank = fold->given.rank(fold->given.context, name);
    if (rank < 0 || rank > UINT32_MAX)
        return NULL;
    task.rank = (uint32_t)rank;
    task.name = strdup(name);
    if (!task.name || asprintf(&task.path, "%s/%s", fold->directory, task.name) < 0)
        abort();
    *VEC_PUSH(&fold->tasks) = task;
    return &fold->tasks.items[fold->tasks.len - 1];
}

static struct chain *find_chain(struct task_folder *task, const char *name, size_t n) {
    for (size_t i = 0; i < task->chains.len; i++)
        if (strlen(task->chains.items[i].name) == n && !memcmp(task->chains.items[i].name, name, n))
            return &task->chains.items[i];
    return NULL;
}

static struct chain *take_chain(struct fold *fold, struct task_folder *task, const char *name,
                                size_t n, uint32_t number) {
    struct chain *chain = find_chain(task, name, n);

    if (!chain) {
        chain = VEC_PUSH(&task->chains);
        chain_init(chain, task->name, task->rank, name, n, number, fold->given.store);
        chain->kept = number;
    }
    return chain;
}

/* The count of a process without a segment belongs to its chain: the headers of segments that it
 * makes later go on from it. */
static void take_count(struct fold *fold, int directory, const char *name,
                       const struct spool_count *count) {
    char task_name[NAME_MAX + 1];
    struct task_folder *task;
    struct chain *chain;
    uint64_t dropped;

    snprintf(task_name, sizeof task_name, "%.*s", (int)count->task_n, name);
    task = take_task(fold, task_name);
    if (!task || !left_count(directory, name, &dropped))
        return;
    chain = take_chain(fold, task, count->chain, count->chain_n, 0);
    chain->has_link = true;
    chain->counted = dropped > chain->counted ? dropped : chain->counted;
}

static void find_tasks(struct fold *fold) {
    DIR *directory = listing_open(&fold->listing, fold->directory);
    struct spool_count count;
    struct dirent *entry;

    if (!directory)
        return;
    while ((entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        if (spool_count_parse(entry->d_name, &count))
            take_count(fold, dirfd(directory), entry->d_name, &count);
        else
            take_task(fold, entry->d_name);
    }
    closedir(directory);
}

static void find_chains(struct fold *fold, struct task_folder *task) {
    DIR *directory = listing_open(&task->listing, task->path);
    struct dirent *entry;

    if (!directory)
        return;
    while ((entry = readdir(directory))) {
        struct spool_file file;
        struct chain *chain;

        if (!spool_file_parse(entry->d_name, &file))
            continue;
        chain = take_chain(fold, task, entry->d_name, file.chain_n, file.number);
        if (file.number > chain->highest)
            chain->highest = file.number;
        if (file.number < chain->kept)
            chain->kept = file.number;
    }
    closedir(directory);
}

/* ---- removing */

/* Removes the segment, or sets it aside if something in it could not be read. */
static int dispose(struct fold *fold, struct chain *chain, const char *path, uint32_t number) {
    char source[PATH_MAX], aside[PATH_MAX + sizeof FOLD_ASIDE];

    if (!series_marked(fold->given.store, chain_aside_source(chain, number, source, sizeof source)))
        return file_remove_linkless(path);
    chain->has_set_aside = true;
    snprintf(aside, sizeof aside, "%s%s", path, FOLD_ASIDE);
    return file_rename_linkless(path, strrchr(aside, '/') + 1);
}

/* Removes the segments of a chain that a commit covers; false if one stays. */
static bool remove_covered(struct fold *fold, struct chain *chain, const struct task_folder *task) {
    char path[PATH_MAX];

    for (; chain->kept < chain->covered; chain->kept++)
        if (dispose(fold, chain, chain_path(chain, task->path, chain->kept, path, sizeof path),
                    chain->kept) &&
            errno != ENOENT)
            return false;
    return true;
}

static int sync_directory(const char *path) {
    const int fd = file_open_linkless_directory(path);
    int failed;

    if (fd < 0)
        return errno == ENOENT ? 0 : -1; /* of one that is gone nothing comes back */
    failed = fsync(fd);
    close(fd);
    return failed;
}

/* Removes the link with the count of a chain; -1 if it may come back. */
static int remove_link(const struct fold *fold, const struct task_folder *task,
                       const struct chain *chain) {
    char path[PATH_MAX], part[PATH_MAX];

    if (!chain->has_link)
        return 0;
    snprintf(path, sizeof path, "%s%s%s", task->path, MYELIN_SPOOL_DROPPED, chain->name);
    snprintf(part, sizeof part, "%s%s%s.part", task->path, MYELIN_SPOOL_DROPPED, chain->name);
    if ((file_remove_linkless(path) && errno != ENOENT) ||
        (file_remove_linkless(part) && errno != ENOENT))
        return -1;
    return sync_directory(fold->directory);
}

struct aside_marks {
    const char *source;
    VEC(char *) found;
};

static void note_aside(void *context, const char *source, uint64_t offset) {
    struct aside_marks *marks = context;
    const size_t n = strlen(marks->source);
    char *copy;

    (void)offset;
    if (strncmp(source, marks->source, n) != 0 || strncmp(source + n, " aside ", 7) != 0)
        return;
    copy = strdup(source);
    if (!copy)
        abort();
    *VEC_PUSH(&marks->found) = copy;
}

static void forget_marks(struct fold *fold, const struct chain *chain) {
    struct aside_marks marks = { .source = chain->source };
    char buffer[PATH_MAX];

    series_unmark(fold->given.store, chain->source);
    series_unmark(fold->given.store, chain_dropped_source(chain, buffer, sizeof buffer));
    if (chain->has_set_aside)
        series_each_mark(fold->given.store, note_aside, &marks);
    for (size_t i = 0; i < marks.found.len; i++) {
        series_unmark(fold->given.store, marks.found.items[i]);
        free(marks.found.items[i]);
    }
    VEC_RELEASE(&marks.found);
}

/* A chain is forgotten, with its marks, when none of its files can come back. The marks go with the
 * next commit. */
static void forget_ended(struct fold *fold, struct task_folder *task) {
    bool is_synced = false;
    size_t kept = 0;

    for (size_t i = 0; i < task->chains.len; i++) {
        struct chain chain = task->chains.items[i];

        if (!chain.is_over || chain.kept < chain.covered || chain.covered <= chain.highest ||
            (!is_synced && sync_directory(task->path)) || remove_link(fold, task, &chain)) {
            task->chains.items[kept++] = chain;
            continue;
        }
        is_synced = true;
        forget_marks(fold, &chain);
        chain_release(&chain);
    }
    task->chains.len = kept;
}

/* After a commit: all that has been read is covered by it. */
static void remove_done(struct fold *fold) {
    for (size_t i = 0; i < fold->tasks.len; i++) {
        struct task_folder *task = &fold->tasks.items[i];
        bool has_ended = false;

        for (size_t k = 0; k < task->chains.len; k++) {
            struct chain *chain = &task->chains.items[k];

            /* Nothing of a chain that is over will be read, also what was prepared ahead. */
            chain->covered = chain->is_over && chain->highest >= chain->number ? chain->highest + 1
                                                                               : chain->number;
            has_ended |= remove_covered(fold, chain, task) && chain->is_over;
        }
        if (has_ended)
            forget_ended(fold, task);
    }
}

/* ---- marks of chains that are gone: left by one who was killed between removing and forgetting */

struct stale {
    struct fold *fold;
    VEC(char *) sources;
};

static void note_stale(void *context, const char *source, uint64_t offset) {
    struct stale *stale = context;
    const char *slash = strchr(source, '/'), *end;

    (void)offset;
    if (!slash)
        return; /* a total */
    end = slash + 1 + strcspn(slash + 1, " ");
    for (size_t i = 0; i < stale->fold->tasks.len; i++) {
        struct task_folder *task = &stale->fold->tasks.items[i];

        if (strlen(task->name) == (size_t)(slash - source) &&
            !memcmp(task->name, source, (size_t)(slash - source)) &&
            !find_chain(task, slash + 1, (size_t)(end - slash - 1))) {
            char *copy = strdup(source);

            if (!copy)
                abort();
            *VEC_PUSH(&stale->sources) = copy;
        }
    }
}

static void sweep_marks(struct fold *fold) {
    struct stale stale = { .fold = fold };
    bool is_synced = true;

    series_each_mark(fold->given.store, note_stale, &stale);
    for (size_t i = 0; stale.sources.len > 0 && i < fold->tasks.len; i++)
        is_synced &= !sync_directory(fold->tasks.items[i].path);
    for (size_t i = 0; i < stale.sources.len; i++) {
        if (is_synced)
            series_unmark(fold->given.store, stale.sources.items[i]);
        free(stale.sources.items[i]);
    }
    VEC_RELEASE(&stale.sources);
    fold->is_swept = true;
}

/* ---- a step */

static int commit(struct fold *fold, struct error *err) {
    if (series_commit(fold->given.store, err))
        return error_wrap(err, "cannot keep what the tasks logged");
    remove_done(fold);
    return 0;
}

static int read_task(struct fold *fold, struct task_folder *task, struct chain_reading *reading,
                     struct error *err) {
    reading->directory = task->path;
    for (size_t i = 0; i < task->chains.len; i++) {
        struct chain *chain = &task->chains.items[(fold->turn + i) % task->chains.len];

        while (reading->budget > 0 && chain_read(chain, reading))
            if (series_is_full(fold->given.store) && series_commit(fold->given.store, err))
                return error_wrap(err, "cannot keep what the tasks logged");
    }
    return 0;
}

int fold_step(struct fold *fold, enum fold_extent extent, struct fold_result *out,
              struct error *err) {
    struct chain_reading reading = {
        .given = &fold->given,
        .extent = extent,
        .buffer = fold->buffer,
        .buffer_n = MYELIN_SPOOL_SIZE_MAX,
        .budget = STEP_BYTES,
        .result = out,
    };

    *out = (struct fold_result){ 0 };
    if (series_is_full(fold->given.store) && commit(fold, err))
        return -1;
    find_tasks(fold);
    for (size_t i = 0; i < fold->tasks.len; i++)
        find_chains(fold, &fold->tasks.items[i]);
    if (!fold->is_swept)
        sweep_marks(fold);
    for (size_t i = 0; i < fold->tasks.len && reading.budget > 0; i++) {
        struct task_folder *task = &fold->tasks.items[(fold->turn + i) % fold->tasks.len];

        if (read_task(fold, task, &reading, err))
            return -1;
    }
    fold->turn++;
    out->more = reading.budget <= 0;
    return commit(fold, err);
}
