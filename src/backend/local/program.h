/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the program that a command names, and says in words why one cannot be executed:
 * execve tells "no such file" for a missing interpreter too, which misleads everybody.
 *
 * Relative paths are taken from `directory` (NULL: where this process stands).
 */
#ifndef BACKEND_LOCAL_PROGRAM_H
#define BACKEND_LOCAL_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

/* The PATH of envp, or what the C library takes without one. */
const char *program_path(char *const *envp);

/* Looks a name without '/' up in the PATH of envp. `found` has room for PATH_MAX bytes.
 * On failure *errnum is ENOENT, or EACCES when only files that are not executable match. */
MUST_CHECK int program_find(const char *name, char *const *envp, const char *directory, char *found,
                            int *errnum, struct error *err);

/* The program of the PATH whose name is nearest to one that is not there: python3 for python. False
 * if none is near enough (codec/nearest.h). */
bool program_nearest(const char *name, char *const *envp, char found[static NAME_MAX + 1]);

/* The same as program_find, remembering the last that was found. A zeroed cache is empty. Who fails
 * to execute what was found forgets it, as it may have moved. */
struct program_cache {
    char *name, *path, *directory; /* what was asked */
    char *found;                   /* NULL: nothing is remembered */
};

MUST_CHECK int program_find_cached(struct program_cache *cache, const char *name, char *const *envp,
                                   const char *directory, char *found, int *errnum,
                                   struct error *err);
void program_forget(struct program_cache *cache);

/* The sentence for an execve of path that failed with *errnum, which is corrected where
 * the kernel's number says less than the file does. Always returns -1. */
int program_explain(const char *path, const char *directory, int *errnum, struct error *err);

#endif
