/* SPDX-License-Identifier: Apache-2.0 */
#include "store/presence.h"

#include <fcntl.h>
#include <unistd.h>

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
