/* SPDX-License-Identifier: Apache-2.0 */
#include "store/presence.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "store/public_line.h"
#include "store/sharing.h"

/* ---- the directory ---- */

int presence_open(const struct rundir *rundir) {
    return open(rundir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int presence_hold(const struct rundir *rundir) {
    /* A directory cannot be open for writing, which an exclusive lock would need. */
    struct flock shared = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
    const int directory = presence_open(rundir);

    if (directory >= 0)
        (void)fcntl(directory, F_OFD_SETLK, &shared); /* it may be one that cannot be locked */
    return directory;
}

bool presence_is_held_at(int directory) {
    struct flock any = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return directory >= 0 && fcntl(directory, F_OFD_GETLK, &any) == 0 && any.l_type != F_UNLCK;
}

bool presence_is_held(const struct rundir *rundir) {
    const int directory = presence_open(rundir);
    const bool is_held = presence_is_held_at(directory);

    if (directory >= 0)
        close(directory);
    return is_held;
}

/* ---- the public lines ---- */

static int open_public(const struct rundir *rundir, int flags) {
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/" PUBLIC_FILE, rundir->path) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return file_open_linkless(path, flags, 0);
}

int presence_hold_public(const struct rundir *rundir) {
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    AUTO(arena) arena = ARENA_INIT;
    const char *home = rundir_home_of(rundir, &arena);
    const int fd = home_is_shared(home) ? open_public(rundir, O_RDWR) : -1;

    if (fd < 0)
        return -1;
    /* Locked before others can open it: else one of them could be first. */
    (void)fcntl(fd, F_OFD_SETLK, &whole);
    shared_let_read(home, fd);
    return fd;
}

bool presence_is_public(const struct rundir *rundir) {
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    const int fd = open_public(rundir, O_RDONLY);
    bool is_held;

    if (fd < 0)
        return errno != ENOENT && errno != ENOTDIR && errno != ELOOP &&
               errno != FILE_IS_NOT_REGULAR;
    is_held = fcntl(fd, F_OFD_GETLK, &whole) < 0 || whole.l_type == F_WRLCK;
    close(fd);
    return is_held;
}
