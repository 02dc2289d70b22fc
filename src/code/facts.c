/* SPDX-License-Identifier: Apache-2.0 */
#include "code/facts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/sha256.h"
#include "code/git.h"
#include "code/remote.h"

struct gathering {
    struct git git;
    git_repository *repository;
    struct arena *arena;
    struct buf *diff;
    struct code_facts *facts;
};

const char *code_top(const char *directory, struct arena *arena) {
    char path[PATH_MAX];
    size_t n = strlen(directory);
    struct stat here, there, git;

    if (n == 0 || n + sizeof "/.git" > sizeof path || directory[0] != '/' ||
        stat(directory, &here) < 0)
        return NULL;
    memcpy(path, directory, n + 1);
    for (;;) {
        memcpy(path + n, "/.git", sizeof "/.git");
        if (stat(path, &git) == 0)
            return arena_text(arena, path, n > 0 ? n : 1);
        while (n > 0 && path[n - 1] != '/')
            n--;
        if (n == 0)
            return NULL;
        path[n] = '\0';
        if (stat(path, &there) < 0 || there.st_dev != here.st_dev)
            return NULL;
        n--;
    }
}

const char *code_place(const char *top, const char *directory, struct arena *arena) {
    const char *below = directory + (strcmp(top, "/") == 0 ? 0 : strlen(top));

    below += strspn(below, "/");
    return *below ? arena_text(arena, below, strlen(below)) : ".";
}

/* ---- where it stands in the history ---- */

static void read_commit(struct gathering *g) {
    char text[GIT_OID_HEXSZ + 1];
    git_oid id;

    if (g->git.reference_name_to_id(&id, g->repository, "HEAD") == 0) {
        g->git.oid_tostr(text, sizeof text, &id);
        g->facts->commit = arena_text(g->arena, text, strlen(text));
    }
}

/* HEAD names the branch, also one that has no commit yet. */
static void read_branch(struct gathering *g) {
    static const char heads[] = "refs/heads/";
    git_reference *head;
    const char *name;

    if (g->git.reference_lookup(&head, g->repository, "HEAD") != 0) {
        g->facts->trouble = arena_printf(g->arena, "HEAD cannot be read: %s", git_trouble(&g->git));
        return;
    }
    name = g->git.reference_symbolic_target(head);
    if (name && strncmp(name, heads, sizeof heads - 1) == 0)
        name += sizeof heads - 1;
    if (name)
        g->facts->branch = arena_text(g->arena, name, strlen(name));
    g->git.reference_free(head);
}

/* `origin`, else the first that there is. */
static void read_remote(struct gathering *g) {
    git_strarray names = { 0 };
    const char *name = NULL, *address;
    git_config *config;

    if (g->git.remote_list(&names, g->repository) != 0)
        return;
    for (size_t i = 0; i < names.count; i++)
        if (!name || strcmp(names.strings[i], "origin") == 0)
            name = names.strings[i];
    if (name && g->git.repository_config_snapshot(&config, g->repository) == 0) {
        const char *key = arena_printf(g->arena, "remote.%s.url", name);

        if (g->git.config_get_string(&address, config, key) == 0)
            g->facts->remote = remote_clean(address, g->arena);
        g->git.config_free(config);
    }
    g->git.strarray_dispose(&names);
}

/* ---- what was changed since ---- */

static int head_tree(struct gathering *g, git_tree **out) {
    git_commit *commit;
    git_oid id;
    int status;

    *out = NULL;
    if (!g->facts->commit)
        return 0; /* as of an empty tree */
    if (g->git.oid_fromstr(&id, g->facts->commit) != 0 ||
        g->git.commit_lookup(&commit, g->repository, &id) != 0)
        return -1;
    status = g->git.commit_tree(out, commit);
    g->git.commit_free(commit);
    return status;
}

/* All of the changes to a file, or none of them. */
static bool add_patch(struct gathering *g, git_diff *diff, size_t i) {
    const size_t before = g->diff->len;
    git_patch *patch = NULL;
    struct error full;
    int status;

    if (g->git.diff_get_delta(diff, i)->new_file.size > CODE_FILE_MOST)
        return false;
    status = g->git.patch_from_diff(&patch, diff, i);
    if (status == 0 && patch)
        status =
            g->git.patch_print(patch, git_print_line, &(struct git_printing){ g->diff, &full });
    g->git.patch_free(patch);
    if (status == 0)
        return true;
    g->diff->len = before;
    g->diff->data[before] = '\0';
    return false;
}

/* A file that was taken out of the index, and is still there: git does not know it any more. */
static bool is_there(const struct gathering *g, const char *name) {
    struct stat st;

    return lstat(arena_printf(g->arena, "%s/%s", g->facts->repository, name), &st) == 0;
}

static void take_delta(struct gathering *g, git_diff *diff, size_t i) {
    const git_diff_delta *delta = g->git.diff_get_delta(diff, i);
    const char *name = delta->new_file.path ? delta->new_file.path : delta->old_file.path;

    if (delta->status == GIT_DELTA_UNTRACKED) {
        code_names_add(&g->facts->untracked, g->facts->untracked.n < CODE_NAMES_MOST
                                                 ? arena_text(g->arena, name, strlen(name))
                                                 : name);
        return;
    }
    if (delta->status == GIT_DELTA_UNMODIFIED || delta->status == GIT_DELTA_IGNORED)
        return;
    g->facts->is_dirty = true;
    if (delta->status == GIT_DELTA_DELETED && is_there(g, name))
        code_names_add(&g->facts->untracked, arena_text(g->arena, name, strlen(name)));
    if (!add_patch(g, diff, i))
        g->facts->is_diff_cut = true;
}

static int compare_tree(struct gathering *g) {
    git_diff_options options;
    git_diff *diff = NULL;
    git_tree *tree = NULL;
    int status = head_tree(g, &tree);

    g->git.diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    options.flags = GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_INCLUDE_TYPECHANGE | GIT_DIFF_SHOW_BINARY;
    options.ignore_submodules = GIT_SUBMODULE_IGNORE_DIRTY;
    options.id_abbrev = GIT_OID_HEXSZ; /* else a binary patch cannot be applied */
    options.old_prefix = "a";          /* whatever the user has set for his eyes */
    options.new_prefix = "b";
    if (status == 0)
        status = g->git.diff_tree_to_workdir_with_index(&diff, g->repository, tree, &options);
    for (size_t i = 0; status == 0 && i < g->git.diff_num_deltas(diff); i++)
        take_delta(g, diff, i);
    if (diff)
        g->git.diff_free(diff);
    if (tree)
        g->git.tree_free(tree);
    return status;
}

static void tell_diff(struct gathering *g) {
    char digits[SHA256_TEXT];
    struct sha256 hash;

    g->facts->diff_bytes = g->diff->len;
    if (!g->diff->len)
        return;
    sha256_init(&hash);
    sha256_add(&hash, g->diff->data, g->diff->len);
    sha256_finish(&hash, digits);
    g->facts->diff_sha256 = arena_text(g->arena, digits, strlen(digits));
}

static void gather(struct gathering *g, const struct code_listener *listener) {
    struct code_facts *facts = g->facts;
    char modules[PATH_MAX];
    struct stat st;

    read_commit(g);
    read_branch(g);
    read_remote(g);
    if (listener)
        listener->head(listener->context, facts);
    if (facts->trouble)
        return;
    if (!g->git.repository_workdir(g->repository)) {
        facts->trouble = "the repository is bare: it has no tree to compare with";
        return;
    }
    facts->has_submodules = snprintf(modules, sizeof modules, "%s/.gitmodules", facts->repository) <
                                (int)sizeof modules &&
                            stat(modules, &st) == 0;
    if (compare_tree(g))
        facts->trouble = arena_printf(g->arena, "the tree cannot be compared with the commit: %s",
                                      git_trouble(&g->git));
    else
        facts->is_read = true;
    tell_diff(g);
}

void code_facts_gather(const char *top, const char *place, const struct code_listener *listener,
                       struct arena *arena, struct buf *diff, struct code_facts *out) {
    struct gathering g = { .arena = arena, .diff = diff, .facts = out };
    struct error err;

    *out = (struct code_facts){ .repository = top, .place = place };
    if (git_load(&g.git, &err) || git_open(&g.git, top, &g.repository, &err)) {
        out->trouble = arena_text(arena, err.message, strlen(err.message));
    } else {
        gather(&g, listener);
        g.git.repository_free(g.repository);
    }
    git_release(&g.git);
}
