/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sharing.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHERS = S_IRWXG | S_IRWXO, OTHERS_WRITE = S_IWGRP | S_IWOTH };

/* Which of the bits of others the home gives; false: it is one user's. */
static bool find_mode(const char *home, enum sharing sharing, mode_t *out) {
    struct stat st;

    if (stat(home, &st) < 0 || !(st.st_mode & OTHERS_WRITE))
        return false;
    *out = st.st_mode & OTHERS & (sharing == SHARED_TO_WRITE ? OTHERS : ~(mode_t)OTHERS_WRITE);
    return true;
}

bool home_is_shared(const char *home) {
    mode_t ignored;

    return find_mode(home, SHARED_TO_READ, &ignored);
}

/* A directory passes its group on by itself (setgid). */
int shared_mkdir(const char *home, const char *path, enum sharing sharing, mode_t usual) {
    mode_t mode, before;
    int status;

    if (!find_mode(home, sharing, &mode))
        return mkdir(path, usual);
    before = umask(0);
    status = mkdir(path, S_IRWXU | mode | (sharing == SHARED_TO_WRITE ? S_ISVTX : 0));
    umask(before);
    return status;
}

int shared_open(const char *home, const char *path, int flags, enum sharing sharing, mode_t usual) {
    mode_t mode, before;
    int fd;

    if (!(flags & O_CREAT) || !find_mode(home, sharing, &mode))
        return open(path, flags, usual);
    before = umask(0);
    fd = open(path, flags, S_IRUSR | S_IWUSR | (mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH)));
    umask(before);
    return fd;
}

void shared_prepare_database(const char *home, const char *path) {
    mode_t ignored;
    int fd;

    if (!find_mode(home, SHARED_TO_WRITE, &ignored))
        return;
    fd = shared_open(home, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, SHARED_TO_WRITE, 0666);
    if (fd >= 0)
        close(fd);
}

struct owner_text file_owner(const char *path) {
    struct owner_text out = { "somebody else" };
    const struct passwd *user;
    struct stat st;

    if (lstat(path, &st) < 0)
        return out;
    user = getpwuid(st.st_uid);
    if (user)
        snprintf(out.text, sizeof out.text, "%s", user->pw_name);
    else
        snprintf(out.text, sizeof out.text, "user %u", (unsigned)st.st_uid);
    return out;
}
