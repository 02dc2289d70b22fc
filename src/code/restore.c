/* SPDX-License-Identifier: Apache-2.0 */
#include "code/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/tree.h"
#include "code/facts.h"
#include "code/git.h"
#include "code/snapshot.h"

enum { STAT_WIDTH = 80, ODB_FIRST = 1000 };

/* ---- the tree of a run, as git knows it ---- */

/* A repository that nothing is written to: new objects stay in memory. */
struct depot {
    struct git git;
    git_repository *repository;
};

static int depot_open(struct depot *depot, const char *top, struct error *err) {
    git_odb_backend *memory;
    git_odb *odb;

    *depot = (struct depot){ 0 };
    if (git_load(&depot->git, err))
        return -1;
    if (git_open(&depot->git, top, &depot->repository, err)) {
        git_release(&depot->git);
        return -1;
    }
    if (depot->git.repository_odb(&odb, depot->repository) == 0) {
        if (depot->git.mempack_new(&memory) == 0)
            depot->git.odb_add_backend(odb, memory, ODB_FIRST); /* which owns it */
        depot->git.odb_free(odb);
    }
    return 0;
}

static void depot_release(struct depot *depot) {
    if (depot->repository)
        depot->git.repository_free(depot->repository);
    git_release(&depot->git);
}

static int git_failed(const struct depot *depot, const char *what, struct error *err) {
    return error_set(err, ERROR_INVALID, "%s: %.300s", what, git_trouble(&depot->git));
}

static int empty_tree(const struct depot *depot, git_tree **out, struct error *err) {
    git_treebuilder *builder;
    git_oid id;
    int status;

    if (depot->git.treebuilder_new(&builder, depot->repository, NULL) != 0)
        return git_failed(depot, "git cannot make a tree", err);
    status = depot->git.treebuilder_write(&id, builder);
    depot->git.treebuilder_free(builder);
    if (status != 0 || depot->git.tree_lookup(out, depot->repository, &id) != 0)
        return git_failed(depot, "git cannot make a tree", err);
    return 0;
}

static int commit_tree(const struct depot *depot, const struct code_run *run, git_tree **out,
                       struct error *err) {
    git_commit *commit;
    git_oid id;
    int status;

    if (!run->facts->commit)
        return empty_tree(depot, out, err);
    if (depot->git.oid_fromstr(&id, run->facts->commit) != 0 ||
        depot->git.commit_lookup(&commit, depot->repository, &id) != 0)
        return error_set(err, ERROR_NOT_FOUND,
                         "commit %.12s of run %s is not in the repository '%.200s' any more: fetch "
                         "it there%s%.100s",
                         run->facts->commit, run->rundir->id, run->facts->repository,
                         run->facts->remote ? " from " : "",
                         run->facts->remote ? run->facts->remote : "");
    status = depot->git.commit_tree(out, commit);
    depot->git.commit_free(commit);
    return status == 0 ? 0 : git_failed(depot, "git cannot read the commit", err);
}

/* The recorded changes as they are on the disk, held against what the journal says of them. */
static int read_changes(const struct code_run *run, struct buf *out, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;

    if (file_read_linkless(arena_printf(&arena, "%s/%s", run->rundir->path, CODE_DIFF_FILE), out,
                           err))
        return error_wrap(err, "the changes of run %s are gone", run->rundir->id);
    if (out->len != run->facts->diff_bytes)
        return error_set(err, ERROR_INVALID, "%s of run %s was changed since: it has %zu bytes",
                         CODE_DIFF_FILE, run->rundir->id, out->len);
    return 0;
}

static int apply_changes(const struct depot *depot, const struct code_run *run, git_tree *tree,
                         git_index **out, struct error *err) {
    AUTO(buf) text = BUF_INIT(CODE_DIFF_MOST);
    git_diff *diff;
    int status;

    if (read_changes(run, &text, err))
        return -1;
    if (depot->git.diff_from_buffer(&diff, text.data, text.len) != 0)
        return git_failed(depot, "the recorded changes cannot be read", err);
    status = depot->git.apply_to_tree(out, depot->repository, tree, diff, NULL);
    depot->git.diff_free(diff);
    return status == 0 ? 0 : git_failed(depot, "the recorded changes cannot be applied", err);
}

/* The tree with the changes, as an index that is the caller's. */
static int run_index(const struct depot *depot, const struct code_run *run, git_index **out,
                     struct error *err) {
    git_tree *tree;
    int status;

    if (commit_tree(depot, run, &tree, err))
        return -1;
    if (run->facts->diff_bytes) {
        status = apply_changes(depot, run, tree, out, err);
    } else if (depot->git.index_new(out) != 0) {
        status = git_failed(depot, "git cannot make an index", err);
    } else if (depot->git.index_read_tree(*out, tree) != 0) {
        depot->git.index_free(*out);
        status = git_failed(depot, "git cannot read the tree", err);
    } else {
        status = 0;
    }
    depot->git.tree_free(tree);
    return status;
}

static int check_known(const struct code_run *run, struct error *err) {
    if (!run->facts->repository)
        return error_set(
            err, ERROR_NOT_FOUND,
            "run %s has no record of its code: its directory lay in no repository, and "
            "it was started without --snapshot ('myelin restart %s' runs what is there "
            "now)",
            run->rundir->id, run->rundir->id);
    if (!run->facts->is_read || run->facts->is_diff_cut)
        return error_set(err, ERROR_NOT_FOUND,
                         "the changes of run %s are not known as a whole%s%.150s ('myelin restart "
                         "%s' runs what is there now; --snapshot keeps everything)",
                         run->rundir->id, run->facts->trouble ? ": " : "",
                         run->facts->trouble ? run->facts->trouble : "", run->rundir->id);
    return 0;
}

/* ---- a tree again ---- */

static int check_out(const struct depot *depot, git_index *index, const char *path,
                     struct error *err) {
    git_checkout_options options;

    if (mkdir(path, 0777) < 0)
        return error_set_errno(err, errno, "cannot make '%.300s'", path);
    depot->git.checkout_options_init(&options, GIT_CHECKOUT_OPTIONS_VERSION);
    options.checkout_strategy = GIT_CHECKOUT_FORCE | GIT_CHECKOUT_DONT_UPDATE_INDEX |
                                GIT_CHECKOUT_DONT_WRITE_INDEX | GIT_CHECKOUT_NO_REFRESH;
    options.target_directory = path;
    if (depot->git.checkout_index(depot->repository, index, &options) != 0)
        return git_failed(depot, "git cannot write the tree", err);
    return 0;
}

static int from_repository(const struct code_run *run, const char *path, struct error *err) {
    struct depot depot;
    git_index *index;
    int status;

    if (check_known(run, err) || depot_open(&depot, run->facts->repository, err))
        return -1;
    status = run_index(&depot, run, &index, err);
    if (status == 0) {
        status = check_out(&depot, index, path, err);
        depot.git.index_free(index);
    }
    depot_release(&depot);
    return status;
}

/* The names come out of a journal, which may be another's: no link is followed on the way. */
static int make_link(int tree, const char *name, const char *target) {
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
    const char *slash = strrchr(name, '/');
    char folder[PATH_MAX];
    int fd, status;

    if (snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - name) : 1,
                 slash ? name : ".") >= (int)sizeof folder)
        return -1;
    fd = (int)syscall(SYS_openat2, tree, folder, &how, sizeof how);
    if (fd < 0)
        return -1;
    status = symlinkat(target, fd, slash ? slash + 1 : name);
    close(fd);
    return status;
}

static int make_links(const struct code_links *links, const char *path, struct error *err) {
    const int tree = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int status = 0;

    for (uint32_t i = 0; status == 0 && i < links->n; i++)
        if (tree < 0 || make_link(tree, links->names[i], links->targets[i]) < 0)
            status = error_set_errno(err, errno, "cannot make the link '%.300s'", links->names[i]);
    if (tree >= 0)
        close(tree);
    return status;
}

static int from_snapshot(const struct code_run *run, const char *path,
                         const struct archive_progress *progress, struct arena *arena,
                         struct error *err) {
    const struct unpack_terms terms = { .entries_most = 2 * (uint64_t)SNAPSHOT_FILES_MOST + 2,
                                        .bytes_most = SNAPSHOT_BYTES_MOST + (1 << 20),
                                        .seal = UNPACK_SEALED_ONLY,
                                        .progress = progress };
    const char *archive = arena_printf(arena, "%s/%s", run->rundir->path, CODE_SNAPSHOT_FILE);
    const int fd = file_open_linkless(archive, O_RDONLY, 0);
    int status;

    if (fd < 0)
        return error_set_errno(err, errno, "the snapshot of run %s is gone", run->rundir->id);
    status = unpack(fd, archive, path, &terms, err);
    close(fd);
    if (status == 0)
        status =
            make_links(&run->facts->links, arena_printf(arena, "%s/%s", path, SNAPSHOT_TOP), err);
    return status;
}

/* What git did not have: the names of some of it. */
static const char *missing_text(const struct code_facts *facts, struct arena *arena) {
    const char *text = NULL;

    for (uint32_t i = 0; i < facts->untracked.n && i < 5; i++)
        text = arena_printf(arena, "%s%s%s",
                            text ? text : "untracked files were not kept: ", text ? ", " : "",
                            facts->untracked.list[i]);
    if (facts->untracked.all > 5)
        text = arena_printf(arena, "%s and %llu more", text,
                            (unsigned long long)facts->untracked.all - 5);
    if (facts->has_submodules)
        text = arena_printf(arena, "%s%sthe folders of submodules are empty", text ? text : "",
                            text ? "; " : "");
    return text;
}

/* The place in the new tree that stands for the old working directory. */
static int map_directory(const struct code_run *run, const char *tree, struct arena *arena,
                         const char **out, struct error *err) {
    const char *place = run->facts->place ? run->facts->place : ".";
    char real[PATH_MAX], top[PATH_MAX];
    size_t n;

    if (!realpath(tree, top) || !realpath(arena_printf(arena, "%s/%s", tree, place), real))
        return error_set(err, ERROR_NOT_FOUND,
                         "the directory of run %s, '%.200s', holds nothing that was kept of its "
                         "code",
                         run->rundir->id, place);
    n = strlen(top);
    if (strncmp(real, top, n) != 0 || (real[n] != '/' && real[n] != '\0'))
        return error_set(err, ERROR_INVALID,
                         "the directory of run %s, '%.200s', leads out of its "
                         "code",
                         run->rundir->id, place);
    *out = arena_text(arena, real, strlen(real));
    return 0;
}

int code_restore(const struct code_run *run, const struct rundir *into, struct arena *arena,
                 const struct archive_progress *progress, struct code_restored *out,
                 struct error *err) {
    const struct code_facts *facts = run->facts;
    const bool has_snapshot = facts->snapshot_root != NULL;
    const char *path = arena_printf(arena, "%s/%s", into->path, CODE_DIRECTORY);
    const char *tree = has_snapshot ? arena_printf(arena, "%s/%s", path, SNAPSHOT_TOP) : path;
    struct code_restored made = { 0 };
    int status = has_snapshot ? from_snapshot(run, path, progress, arena, err)
                              : from_repository(run, path, err);

    if (status == 0)
        status = map_directory(run, tree, arena, &made.directory, err);
    if (status) {
        tree_remove(path);
        return -1;
    }
    made.missing = has_snapshot ? NULL : missing_text(facts, arena);
    made.from = has_snapshot ? "its snapshot"
                : facts->commit
                    ? arena_printf(arena, "commit %.12s%s", facts->commit,
                                   facts->diff_bytes ? " and the changes that were kept" : "")
                    : "the changes that were kept";
    *out = made;
    return 0;
}

/* ---- two trees ---- */

static int print_stat(const struct depot *depot, git_diff *diff, struct buf *out,
                      struct error *err) {
    git_buf text = { 0 };
    git_diff_stats *stats;
    int status;

    if (depot->git.diff_num_deltas(diff) == 0)
        return 0;
    if (depot->git.diff_get_stats(&stats, diff) != 0)
        return git_failed(depot, "git cannot compare the trees", err);
    status = depot->git.diff_stats_to_buf(&text, stats, GIT_DIFF_STATS_FULL, STAT_WIDTH);
    depot->git.diff_stats_free(stats);
    if (status != 0)
        return git_failed(depot, "git cannot compare the trees", err);
    status = buf_append(out, text.ptr, text.size, err);
    depot->git.buf_dispose(&text);
    return status;
}

static int print_diff(const struct depot *depot, git_index *here, git_index *there,
                      enum code_diff_manner manner, struct buf *out, struct error *err) {
    struct git_printing printing = { out, err };
    git_diff_options options;
    git_diff *diff;
    int status;

    depot->git.diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    options.old_prefix = "a";
    options.new_prefix = "b";
    if (depot->git.diff_index_to_index(&diff, depot->repository, here, there, &options) != 0)
        return git_failed(depot, "git cannot compare the trees", err);
    if (manner == CODE_DIFF_STAT) {
        status = print_stat(depot, diff, out, err);
    } else {
        *err = (struct error){ 0 };
        status = depot->git.diff_print(diff, GIT_DIFF_FORMAT_PATCH, git_print_line, &printing);
        if (status != 0 && err->code == ERROR_NONE)
            git_failed(depot, "git cannot compare the trees", err);
    }
    depot->git.diff_free(diff);
    return status == 0 ? 0 : -1;
}

int code_diff(const struct code_run *here, const struct code_run *there,
              enum code_diff_manner manner, struct buf *out, struct error *err) {
    git_index *of_here, *of_there;
    struct depot depot;
    int status;

    if (check_known(here, err) || check_known(there, err) ||
        depot_open(&depot, here->facts->repository, err))
        return -1;
    status = run_index(&depot, here, &of_here, err);
    if (status == 0) {
        status = run_index(&depot, there, &of_there, err);
        if (status == 0) {
            status = print_diff(&depot, of_here, of_there, manner, out, err);
            depot.git.index_free(of_there);
        }
        depot.git.index_free(of_here);
    }
    depot_release(&depot);
    return status;
}
