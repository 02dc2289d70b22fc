/* SPDX-License-Identifier: Apache-2.0 */
#include "store/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/rights.h"
#include "store/sharing.h"

enum { ANNOUNCEMENT_BYTES = 16 }; /* any process number, and at least one newline */

static int open_lock(const struct rundir *rundir, int flags) {
    AUTO(arena) arena = ARENA_INIT;
    const char *home = flags & O_CREAT ? rundir_home_of(rundir, &arena) : NULL;
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/lock", rundir->path) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return shared_open_in_run(home, path, flags);
}

/* A lock of the open file, not of the process: children share it, the last one ends it, and it
 * can be asked for without being taken, so that looking never stands in the way of an owner.
 * An owner holds the whole file. The first byte says that the run has one; the rest is what keeps
 * two from acting on the run at once, and all that is held by who only passes by. */
enum part { PART_OWNER, PART_REST };

static struct flock part_of(enum part part) {
    return (struct flock){ .l_type = F_WRLCK,
                           .l_whence = SEEK_SET,
                           .l_start = part == PART_OWNER ? 0 : 1,
                           .l_len = part == PART_OWNER ? 1 : 0 };
}

static bool has_owner(int fd) {
    struct flock lock = part_of(PART_OWNER);

    return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

static int take_part(int fd, enum part part) {
    struct flock lock = part_of(part);

    return fcntl(fd, F_OFD_SETLK, &lock);
}

static bool is_held(int errnum) {
    return errnum == EAGAIN || errnum == EACCES;
}

/* There is no lock with a time limit, and a process that is stopped holds its own for ever. Who
 * passes by does not wait for an owner; an owner sees none but himself, which does not count. */
static int wait_for_rest(int fd, unsigned most_ms) {
    const int64_t until_us = clock_monotonic_us() + (int64_t)most_ms * 1000;

    while (take_part(fd, PART_REST) < 0) {
        int errnum = errno;

        if (!is_held(errnum) || clock_monotonic_us() >= until_us || has_owner(fd)) {
            errno = errnum;
            return -1;
        }
        clock_pause_ms(1);
    }
    return 0;
}

/* Ends what was begun with the lock. */
static int cannot_take(int lock, const struct rundir *rundir, const char *why_held,
                       struct error *err) {
    if (lock >= 0 && is_held(errno))
        error_set(err, ERROR_CONFLICT, "run %s %s", rundir->id, why_held);
    else
        error_set_errno(err, errno, "cannot lock run %s", rundir->id);
    if (lock >= 0)
        close(lock);
    return -1;
}

/* A number and newlines behind it, always of the same length: one takes the place of another
 * without a moment at which there is none, and without new room on the disk. */
static bool write_announcement(int fd, const char *number) {
    char text[ANNOUNCEMENT_BYTES];
    const size_t n = strlen(number);
    ssize_t written;

    memset(text, '\n', sizeof text);
    memcpy(text, number, n < sizeof text ? n : sizeof text - 1);
    written = pwrite(fd, text, sizeof text, 0);
    if (written >= 0 && written < (ssize_t)sizeof text)
        errno = ENOSPC;
    return written == (ssize_t)sizeof text;
}

/* Who was the owner before takes no orders any more. In a lock that names nobody there may be no
 * room for more. */
static void forget_announced(int lock) {
    char first;

    if (pread(lock, &first, 1, 0) == 1 && first != '\n')
        (void)write_announcement(lock, "");
}

int owner_take(const struct rundir *rundir, int *fd, struct error *err) {
    int lock;

    if (rights_check(rundir, err))
        return -1;
    lock = open_lock(rundir, O_RDWR | O_CREAT);
    if (lock < 0 || take_part(lock, PART_OWNER))
        return cannot_take(lock, rundir, "is still running", err);
    if (wait_for_rest(lock, OWNER_PASSING_MS))
        return cannot_take(lock, rundir, "is just looked at by another command: try again", err);
    forget_announced(lock);
    *fd = lock;
    return 0;
}

int owner_pass(const struct rundir *rundir, unsigned most_ms, int *fd, struct error *err) {
    int lock;

    if (rights_check(rundir, err))
        return -1;
    lock = open_lock(rundir, O_RDWR | O_CREAT);
    if (lock < 0 || wait_for_rest(lock, most_ms))
        return cannot_take(lock, rundir, "has an owner, or is just looked at", err);
    *fd = lock;
    return 0;
}

int owner_reserve(int fd, const struct rundir *rundir, struct error *err) {
    if (!write_announcement(fd, ""))
        return error_set_errno(err, errno, "cannot write '%.300s/lock'", rundir->path);
    return 0;
}

void owner_announce(int fd, pid_t pid) {
    char number[ANNOUNCEMENT_BYTES];

    snprintf(number, sizeof number, "%d", (int)pid);
    /* A disk that is full in spite of the reserve: nobody to send signals to, which
     * owner_signal says. */
    (void)write_announcement(fd, number);
}

/* Whether the lock could not be looked at. What is not a regular file is no lock of ours: nobody
 * owns the run then. */
static bool is_hidden(int errnum) {
    return errnum != ENOENT && errnum != ENOTDIR && errnum != ELOOP && errnum != ENXIO;
}

/* Who is announced in a lock that is open; 0: nobody. */
static pid_t announced(int lock) {
    char text[ANNOUNCEMENT_BYTES + 1] = "", *end;
    long number;

    if (pread(lock, text, sizeof text - 1, 0) <= 0)
        return 0;
    number = strtol(text, &end, 10);
    return end > text && *end == '\n' && number > 1 && number <= INT_MAX ? (pid_t)number : 0;
}

bool owner_lives(const struct rundir *rundir, pid_t *pid) {
    int fd = open_lock(rundir, O_RDONLY);
    bool lives;

    *pid = 0;
    if (fd < 0)
        return is_hidden(errno);
    lives = has_owner(fd);
    if (lives)
        *pid = announced(fd);
    close(fd);
    return lives;
}

/* ---- signals ---- */

/* Why the supervisor cannot be reached, as errno tells. */
static int cannot_reach(const struct rundir *rundir, int errnum, struct error *err) {
    if (errnum == EPERM || errnum == EACCES)
        return error_set(err, ERROR_DENIED, "run %s is not yours: it belongs to %s", rundir->id,
                         user_text(rundir->owner).text);
    return error_set_errno(err, errnum, "cannot reach the supervisor of run %s", rundir->id);
}

/* Whether the process is the run's owner: it is of the same user, and has the lock open. The number
 * in the lock alone is only what somebody has written there. */
static bool has_open(pid_t pid, int lock, uid_t user) {
    char path[64];
    struct stat wanted, st;
    const struct dirent *entry;
    bool found = false;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    if (!dir)
        return false;
    if (fstat(lock, &wanted) == 0 && fstat(dirfd(dir), &st) == 0 && st.st_uid == user)
        while (!found && (entry = readdir(dir)))
            found = fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && st.st_dev == wanted.st_dev &&
                    st.st_ino == wanted.st_ino;
    closedir(dir);
    return found;
}

/* The process that takes the orders of the run, as a descriptor that no other process can take the
 * place of. */
static int open_keeper(const struct rundir *rundir, int lock, int *pidfd, struct error *err) {
    const pid_t pid = announced(lock);

    if (!has_owner(lock))
        return error_set(err, ERROR_NOT_FOUND, "run %s is not running", rundir->id);
    if (pid == 0)
        return error_set(err, ERROR_UNAVAILABLE,
                         "run %s is running, but its lock does not name the process that takes "
                         "orders: it is just starting, or the disk was full when it started",
                         rundir->id);
    *pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (*pidfd < 0)
        return cannot_reach(rundir, errno, err);
    if (has_open(pid, lock, rundir->owner))
        return 0;
    close(*pidfd);
    return has_owner(lock) ? error_set(err, ERROR_UNAVAILABLE,
                                       "the lock of run %s names process %d, which does not hold "
                                       "it: nothing was sent to that process",
                                       rundir->id, (int)pid)
                           : error_set(err, ERROR_NOT_FOUND, "run %s is not running", rundir->id);
}

int owner_signal(const struct rundir *rundir, int number, struct error *err) {
    int pidfd = -1, status, lock;

    if (rights_check(rundir, err))
        return -1;
    lock = open_lock(rundir, O_RDONLY);
    if (lock < 0 && is_hidden(errno))
        return cannot_reach(rundir, errno, err);
    if (lock < 0)
        return error_set(err, ERROR_NOT_FOUND, "run %s is not running", rundir->id);
    status = open_keeper(rundir, lock, &pidfd, err);
    close(lock);
    if (status)
        return -1;
    status = (int)syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
    if (status < 0)
        cannot_reach(rundir, errno, err);
    else
        syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0); /* one that sleeps hears nothing */
    close(pidfd);
    return status;
}
