/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

/* What the C library takes when PATH is not set at all. */
static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

const char *program_path(char *const *envp) {
    for (; envp && *envp; envp++)
        if (strncmp(*envp, "PATH=", 5) == 0)
            return *envp + 5;
    return default_path;
}

/* A descriptor for the *at calls, which take absolute paths as they are. */
static int open_directory(const char *directory) {
    return directory ? open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
}

static void close_directory(int fd) {
    if (fd >= 0)
        close(fd);
}

enum { HEAD_SIZE = 256 }; /* of a script: the kernel looks at as much */

enum match { MATCH_NONE, MATCH_NOT_EXECUTABLE, MATCH_EXECUTABLE };

static enum match look_at(int directory, const char *path) {
    struct stat st;

    if (faccessat(directory, path, X_OK, AT_EACCESS) < 0 && errno != EACCES)
        return MATCH_NONE;
    if (fstatat(directory, path, &st, 0) < 0 || !S_ISREG(st.st_mode))
        return MATCH_NONE;
    return faccessat(directory, path, X_OK, AT_EACCESS) == 0 ? MATCH_EXECUTABLE
                                                             : MATCH_NOT_EXECUTABLE;
}

int program_find(const char *name, char *const *envp, const char *directory, char *found,
                 int *errnum, struct error *err) {
    const int at = open_directory(directory);
    char candidate[PATH_MAX], refused[PATH_MAX] = "";

    for (const char *entry = program_path(envp), *next; entry; entry = next) {
        const char *colon = strchrnul(entry, ':');
        const int n = (int)(colon - entry);
        enum match match;

        next = *colon ? colon + 1 : NULL;
        /* An empty entry is the current directory. */
        if (snprintf(candidate, sizeof candidate, "%.*s%s%s", n, entry, n ? "/" : "./", name) >=
            (int)sizeof candidate)
            continue;
        match = look_at(at, candidate);
        if (match == MATCH_EXECUTABLE) {
            close_directory(at);
            memcpy(found, candidate, sizeof candidate);
            return 0;
        }
        if (match == MATCH_NOT_EXECUTABLE && !refused[0])
            memcpy(refused, candidate, sizeof refused);
    }
    close_directory(at);
    *errnum = refused[0] ? EACCES : ENOENT;
    if (refused[0])
        return error_set(err, ERROR_DENIED, "'%.300s' is not executable (chmod +x)", refused);
    return error_set(err, ERROR_NOT_FOUND, "'%.300s' was not found in PATH", name);
}

static char *copy(const char *text) {
    char *made = text ? strdup(text) : NULL;

    if (text && !made)
        abort();
    return made;
}

void program_forget(struct program_cache *cache) {
    free(cache->name);
    free(cache->path);
    free(cache->directory);
    free(cache->found);
    *cache = (struct program_cache){ 0 };
}

int program_find_cached(struct program_cache *cache, const char *name, char *const *envp,
                        const char *directory, char *found, int *errnum, struct error *err) {
    const char *path = program_path(envp);

    if (cache->found && text_is_same(cache->name, name) && text_is_same(cache->path, path) &&
        text_is_same(cache->directory, directory)) {
        memcpy(found, cache->found, strlen(cache->found) + 1);
        return 0;
    }
    if (program_find(name, envp, directory, found, errnum, err))
        return -1;
    program_forget(cache);
    *cache = (struct program_cache){ copy(name), copy(path), copy(directory), copy(found) };
    return 0;
}

/* The beginning of a script, ended by NUL; false when the file has no "#!" line. */
static bool read_head(int at, const char *path, char head[static HEAD_SIZE]) {
    ssize_t n;
    int fd = openat(at, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return false;
    n = read(fd, head, HEAD_SIZE - 1);
    close(fd);
    head[n < 0 ? 0 : n] = '\0';
    return strncmp(head, "#!", 2) == 0;
}

/* The interpreter of a "#!" line; false when the file has none. */
static bool read_interpreter(int at, const char *path, char *out, size_t size) {
    char head[HEAD_SIZE];
    const char *start;

    if (!read_head(at, path, head))
        return false;
    start = head + 2 + strspn(head + 2, " \t");
    snprintf(out, size, "%.*s", (int)strcspn(start, " \t\r\n"), start);
    return true;
}

/* "#!/bin/sh\r": the kernel looks for an interpreter whose name ends in CR. */
static bool has_dos_line(int at, const char *path) {
    char head[HEAD_SIZE];

    return read_head(at, path, head) && head[strcspn(head, "\r\n")] == '\r';
}

static int explain_missing(int at, const char *path, struct error *err) {
    char interpreter[256];

    if (faccessat(at, path, F_OK, 0) < 0)
        return error_set(err, ERROR_NOT_FOUND, "'%.300s' does not exist", path);
    if (has_dos_line(at, path))
        return error_set(err, ERROR_NOT_FOUND,
                         "'%.300s' has Windows line ends (CR LF), so its interpreter is not "
                         "found (mend it with sed -i 's/\\r$//')",
                         path);
    if (read_interpreter(at, path, interpreter, sizeof interpreter))
        return error_set(err, ERROR_NOT_FOUND,
                         "'%.200s' wants the interpreter %s, which does not exist", path,
                         interpreter);
    return error_set(err, ERROR_NOT_FOUND,
                     "'%.300s' wants a dynamic loader that does not exist (is it built for "
                     "this system?)",
                     path);
}

static int explain_denied(int at, const char *path, struct error *err) {
    char interpreter[256];
    struct stat st;

    if (fstatat(at, path, &st, 0) == 0 && S_ISDIR(st.st_mode))
        return error_set(err, ERROR_DENIED, "'%.300s' is a directory", path);
    if (faccessat(at, path, X_OK, AT_EACCESS) < 0 && fstatat(at, path, &st, 0) == 0)
        return error_set(err, ERROR_DENIED, "'%.300s' is not executable (chmod +x)", path);
    if (read_interpreter(at, path, interpreter, sizeof interpreter))
        return error_set(err, ERROR_DENIED,
                         "'%.200s' wants the interpreter %s, which cannot be executed", path,
                         interpreter);
    return error_set(err, ERROR_DENIED,
                     "'%.300s' may not be executed (a directory above it is closed, or its file "
                     "system is mounted noexec)",
                     path);
}

int program_explain(const char *path, const char *directory, int *errnum, struct error *err) {
    const int at = open_directory(directory);

    switch (*errnum) {
    case ENOENT: explain_missing(at, path, err); break;
    case EACCES:
    case EPERM:
        *errnum = EACCES;
        explain_denied(at, path, err);
        break;
    case ENOEXEC:
        error_set(err, ERROR_INVALID,
                  "'%.300s' is neither a program of this machine nor a script that begins with "
                  "'#!'",
                  path);
        break;
    case E2BIG:
        error_set(err, ERROR_EXHAUSTED,
                  "the arguments and environment of '%.300s' are larger than the kernel takes",
                  path);
        break;
    default: error_set_errno(err, *errnum, "cannot execute '%.300s'", path); break;
    }
    close_directory(at);
    return -1;
}
