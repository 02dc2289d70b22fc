/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sharing.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum {
    OTHERS = S_IRWXG | S_IRWXO,
    OTHERS_WRITE = S_IWGRP | S_IWOTH,
    FILE_BITS = S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH,
};

/* Which of the bits of others the home gives; false: it is one user's. */
static bool find_mode(const char *home, enum sharing sharing, mode_t *out) {
    static const mode_t allowed[] = {
        [SHARED_TO_WRITE] = OTHERS,
        [SHARED_TO_READ] = OTHERS & ~OTHERS_WRITE,
        [SHARED_TO_ENTER] = S_IXGRP | S_IXOTH,
    };
    struct stat st;

    if (stat(home, &st) < 0 || !(st.st_mode & OTHERS_WRITE))
        return false;
    *out = st.st_mode & allowed[sharing];
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
        return file_open_regular(path, flags, usual);
    before = umask(0);
    fd = file_open_regular(path, flags, S_IRUSR | S_IWUSR | (mode & FILE_BITS));
    umask(before);
    return fd;
}

void shared_let_read(const char *home, int fd) {
    mode_t mode;

    if (find_mode(home, SHARED_TO_READ, &mode))
        (void)fchmod(fd, S_IRUSR | S_IWUSR | (mode & FILE_BITS));
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

struct user_text user_text(uid_t user) {
    const struct passwd *found = getpwuid(user);
    struct user_text out;

    if (found)
        snprintf(out.text, sizeof out.text, "%s", found->pw_name);
    else
        snprintf(out.text, sizeof out.text, "user %u", (unsigned)user);
    return out;
}

struct user_text file_owner(const char *path) {
    struct stat st;

    return lstat(path, &st) < 0 ? (struct user_text){ "another user" } : user_text(st.st_uid);
}

/* ---- whether a shared home is safe ---- */

int home_check_maker(const char *home, struct error *err) {
    const struct group *group;
    struct stat st;

    if (stat(home, &st) < 0 || !(st.st_mode & OTHERS_WRITE) || st.st_uid == geteuid() ||
        geteuid() == 0)
        return 0;
    group = getgrgid(st.st_gid);
    return error_set(err, ERROR_DENIED,
                     "the home '%.120s' is shared and has no directory for runs: its owner, %s, "
                     "makes it with `install -d -m %04o -g %.32s %.120s/runs`",
                     home, user_text(st.st_uid).text,
                     (unsigned)(S_ISVTX | (st.st_mode & (S_ISGID | S_IRWXU | OTHERS))),
                     group ? group->gr_name : "GROUP", home);
}

int home_check_safe(const char *home, const char *runs, struct error *err) {
    struct stat st, inner;

    if (stat(home, &st) < 0 || stat(runs, &inner) < 0)
        return error_set_errno(err, errno, "cannot look at '%.300s'", runs);
    if (st.st_mode & OTHERS_WRITE && !(st.st_mode & S_ISVTX))
        return error_set(err, ERROR_DENIED,
                         "the home '%.120s' is shared, and every member could replace what the "
                         "others have in it: `chmod +t %.120s` prevents that",
                         home, home);
    if (inner.st_mode & OTHERS_WRITE && !(inner.st_mode & S_ISVTX))
        return error_set(err, ERROR_DENIED,
                         "'%.120s' is shared, and every member could replace the runs of others: "
                         "`chmod +t %.120s` prevents that",
                         runs, runs);
    if ((st.st_mode | inner.st_mode) & OTHERS_WRITE && inner.st_uid != 0 &&
        inner.st_uid != st.st_uid && inner.st_uid != geteuid())
        return error_set(err, ERROR_DENIED,
                         "'%.120s' is shared and belongs to %s, who could replace the runs of "
                         "others: `chown root %.120s` (as root) prevents that",
                         runs, user_text(inner.st_uid).text, runs);
    return 0;
}
