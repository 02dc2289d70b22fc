/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgit2, loaded when it is needed: it takes tens of milliseconds, and most commands never ask.
 * The functions have the types that its headers give them. Without the library all that is lost is
 * what would have been asked of it.
 *
 * What comes out of a repository is never run: libgit2 knows no hooks, and the filters that it
 * has are its own. One that belongs to another user is refused all the same, as git does.
 */
#ifndef CODE_GIT_H
#define CODE_GIT_H

#include <git2.h>
#include <git2/sys/mempack.h>

#include "base/buf.h"

/* name of the member, name of the function */
#define GIT_FUNCTIONS(X)                                                                           \
    X(init, git_libgit2_init)                                                                      \
    X(shutdown, git_libgit2_shutdown)                                                              \
    X(error_last, git_error_last)                                                                  \
    X(repository_open_ext, git_repository_open_ext)                                                \
    X(repository_free, git_repository_free)                                                        \
    X(repository_workdir, git_repository_workdir)                                                  \
    X(repository_path, git_repository_path)                                                        \
    X(repository_head_detached, git_repository_head_detached)                                      \
    X(repository_odb, git_repository_odb)                                                          \
    X(repository_config_snapshot, git_repository_config_snapshot)                                  \
    X(config_get_string, git_config_get_string)                                                    \
    X(config_free, git_config_free)                                                                \
    X(remote_list, git_remote_list)                                                                \
    X(strarray_dispose, git_strarray_dispose)                                                      \
    X(reference_lookup, git_reference_lookup)                                                      \
    X(reference_symbolic_target, git_reference_symbolic_target)                                    \
    X(reference_name_to_id, git_reference_name_to_id)                                              \
    X(reference_free, git_reference_free)                                                          \
    X(oid_tostr, git_oid_tostr)                                                                    \
    X(oid_fromstr, git_oid_fromstr)                                                                \
    X(commit_lookup, git_commit_lookup)                                                            \
    X(commit_tree, git_commit_tree)                                                                \
    X(commit_free, git_commit_free)                                                                \
    X(tree_lookup, git_tree_lookup)                                                                \
    X(tree_free, git_tree_free)                                                                    \
    X(treebuilder_new, git_treebuilder_new)                                                        \
    X(treebuilder_write, git_treebuilder_write)                                                    \
    X(treebuilder_free, git_treebuilder_free)                                                      \
    X(diff_options_init, git_diff_options_init)                                                    \
    X(diff_tree_to_workdir_with_index, git_diff_tree_to_workdir_with_index)                        \
    X(diff_index_to_index, git_diff_index_to_index)                                                \
    X(diff_from_buffer, git_diff_from_buffer)                                                      \
    X(diff_num_deltas, git_diff_num_deltas)                                                        \
    X(diff_get_delta, git_diff_get_delta)                                                          \
    X(diff_print, git_diff_print)                                                                  \
    X(diff_get_stats, git_diff_get_stats)                                                          \
    X(diff_stats_to_buf, git_diff_stats_to_buf)                                                    \
    X(diff_stats_free, git_diff_stats_free)                                                        \
    X(diff_free, git_diff_free)                                                                    \
    X(buf_dispose, git_buf_dispose)                                                                \
    X(patch_from_diff, git_patch_from_diff)                                                        \
    X(patch_print, git_patch_print)                                                                \
    X(patch_free, git_patch_free)                                                                  \
    X(apply_to_tree, git_apply_to_tree)                                                            \
    X(index_new, git_index_new)                                                                    \
    X(index_read_tree, git_index_read_tree)                                                        \
    X(index_entrycount, git_index_entrycount)                                                      \
    X(index_get_byindex, git_index_get_byindex)                                                    \
    X(index_free, git_index_free)                                                                  \
    X(checkout_options_init, git_checkout_options_init)                                            \
    X(checkout_index, git_checkout_index)                                                          \
    X(odb_add_backend, git_odb_add_backend)                                                        \
    X(odb_free, git_odb_free)                                                                      \
    X(mempack_new, git_mempack_new)

struct git {
    void *library;
#define GIT_MEMBER(member, function) __typeof__(function) *member;
    GIT_FUNCTIONS(GIT_MEMBER)
#undef GIT_MEMBER
};

/* Fails with ERROR_UNAVAILABLE where there is no library. */
MUST_CHECK int git_load(struct git *out, struct error *err);
void git_release(struct git *git);

/* What the library says of its last failure. */
const char *git_trouble(const struct git *git);

/* Opens the repository whose tree has this top. Fails with ERROR_DENIED where it belongs to
 * another user, with ERROR_NOT_FOUND where there is none. */
MUST_CHECK int git_open(const struct git *git, const char *top, git_repository **out,
                        struct error *err);

/* Puts a line of a diff into a buffer; for patch_print and diff_print. */
struct git_printing {
    struct buf *out;
    struct error *err;
};
int git_print_line(const git_diff_delta *delta, const git_diff_hunk *hunk,
                   const git_diff_line *line, void *printing);

#endif
