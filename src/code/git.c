/* SPDX-License-Identifier: Apache-2.0 */
#include "code/git.h"

#include <stdbool.h>

#include "base/library.h"

/* Its structs differ from version to version: the one that it was compiled for, or none. */
#define LIBRARY "libgit2.so." LIBGIT2_SOVERSION

int git_load(struct git *out, struct error *err) {
    struct git git = { 0 };
    const struct library_symbol functions[] = {
#define GIT_SYMBOL(member, function) { #function, &git.member },
        GIT_FUNCTIONS(GIT_SYMBOL)
#undef GIT_SYMBOL
    };

    if (library_load(LIBRARY, functions, ARRAY_LEN(functions), &git.library, err)) {
        if (err->code == ERROR_UNAVAILABLE)
            error_wrap(err, "the repository cannot be read without libgit2");
        return -1;
    }
    if (git.init() < 0) {
        library_unload(git.library);
        return error_set(err, ERROR_UNAVAILABLE, "libgit2 cannot be started");
    }
    *out = git;
    return 0;
}

void git_release(struct git *git) {
    if (!git->library)
        return;
    git->shutdown();
    library_unload(git->library);
    *git = (struct git){ 0 };
}

const char *git_trouble(const struct git *git) {
    const git_error *last = git->error_last();

    return last && last->message ? last->message : "the reason is not known";
}

int git_open(const struct git *git, const char *top, git_repository **out, struct error *err) {
    const int code = git->repository_open_ext(out, top, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);

    if (code == 0)
        return 0;
    if (code == GIT_EOWNER)
        return error_set(err, ERROR_DENIED,
                         "the repository belongs to another user, and git does not trust it: "
                         "git config --global --add safe.directory '%.300s'",
                         top);
    return error_set(err, code == GIT_ENOTFOUND ? ERROR_NOT_FOUND : ERROR_INVALID,
                     "the repository '%.200s' cannot be opened: %.200s", top, git_trouble(git));
}

int git_print_line(const git_diff_delta *delta, const git_diff_hunk *hunk,
                   const git_diff_line *line, void *context) {
    const struct git_printing *printing = context;
    const bool has_sign = line->origin == GIT_DIFF_LINE_CONTEXT ||
                          line->origin == GIT_DIFF_LINE_ADDITION ||
                          line->origin == GIT_DIFF_LINE_DELETION;

    (void)delta, (void)hunk;
    if (has_sign && buf_append(printing->out, &line->origin, 1, printing->err))
        return -1;
    return buf_append(printing->out, line->content, line->content_len, printing->err);
}
