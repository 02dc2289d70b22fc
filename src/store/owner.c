/* SPDX-License-Identifier: Apache-2.0 */
#include "store/owner.h"

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
#include "base/file.h"
#include "store/presence.h"
#include "store/sharing.h"

enum { ANNOUNCEMENT_BYTES = 16 }; /* any process number, and at least one newline */

/* errno of open_lock: a FIFO, a directory or a link is in the place of the lock. */
enum { NOT_A_LOCK = FILE_IS_NOT_REGULAR };

static int open_lock(const struct rundir *rundir, int flags) {
    AUTO(arena) arena = ARENA_INIT;
    const char *home = flags & O_CREAT ? rundir_home_of(rundir, &arena) : NULL;
    char path[PATH_MAX];
    struct stat st;
    int fd;

    if (snprintf(path, sizeof path, "%s/lock", rundir->path) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = shared_open(home, path, flags | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, SHARED_TO_READ, 0666);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || errno == EISDIR || errno == ENXIO || errno == ELOOP)
        errno = NOT_A_LOCK;
    return -1;
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
    else if (lock < 0 && errno == NOT_A_LOCK)
        error_set(err, ERROR_INVALID,
                  "cannot lock run %s: '%.300s/lock' is not a regular file; remove it", rundir->id,
                  rundir->path);
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

/* Whether the owner lives though its lock is free: a task has put another file in its place. Leaves
 * errno as a lock that is held would. */
static bool is_present(const struct rundir *rundir) {
    const bool is_held = presence_is_held(rundir);

    if (is_held)
        errno = EAGAIN;
    return is_held;
}

int owner_take(const struct rundir *rundir, int *fd, struct error *err) {
    int lock = open_lock(rundir, O_RDWR | O_CREAT);

    if (lock < 0 || take_part(lock, PART_OWNER))
        return cannot_take(lock, rundir, "is still running", err);
    if (wait_for_rest(lock, OWNER_PASSING_MS))
        return cannot_take(lock, rundir, "is just looked at by another command: try again", err);
    if (is_present(rundir))
        return cannot_take(lock, rundir, "is still running", err);
    forget_announced(lock);
    *fd = lock;
    return 0;
}

int owner_pass(const struct rundir *rundir, unsigned most_ms, int *fd, struct error *err) {
    int lock = open_lock(rundir, O_RDWR | O_CREAT);

    if (lock < 0 || wait_for_rest(lock, most_ms) || is_present(rundir))
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

int owner_put_back(const struct rundir *rundir, int *fd, pid_t pid, struct error *err) {
    char path[PATH_MAX], part[FILE_PART_NAME];
    struct stat st;
    int lock;

    if (fstat(*fd, &st) < 0 ||
        snprintf(path, sizeof path, "%s/lock", rundir->path) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, "the lock of run %s is gone", rundir->id);
    lock = file_make_part(path, st.st_mode, part);
    if (lock < 0 || take_part(lock, PART_OWNER) || take_part(lock, PART_REST))
        return cannot_take(lock, rundir, "has a lock that another process holds", err);
    owner_announce(lock, pid);
    if (file_replace(part, path)) {
        error_set_errno(err, errno, "cannot put back '%.300s'", path);
        unlink(part);
        close(lock);
        return -1;
    }
    close(*fd);
    *fd = lock;
    return 0;
}

bool owner_lives(const struct rundir *rundir, pid_t *pid) {
    int fd = open_lock(rundir, O_RDONLY);
    char text[32] = "";
    bool is_locked;

    *pid = 0;
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != NOT_A_LOCK)
        return true;
    is_locked = fd >= 0 && has_owner(fd);
    if (is_locked && pread(fd, text, sizeof text - 1, 0) > 0)
        *pid = (pid_t)atoi(text);
    if (fd >= 0)
        close(fd);
    /* What an unlocked file names is not believed: the owner puts its own back within a second. */
    return is_locked || presence_is_held(rundir);
}

/* Why the supervisor cannot be reached, as errno tells. */
static int cannot_reach(const struct rundir *rundir, int errnum, struct error *err) {
    if (errnum == EPERM || errnum == EACCES)
        return error_set(err, ERROR_DENIED, "run %s is not yours: it belongs to %s", rundir->id,
                         file_owner(rundir->path).text);
    return error_set_errno(err, errnum, "cannot reach the supervisor of run %s", rundir->id);
}

int owner_signal(const struct rundir *rundir, int number, struct error *err) {
    pid_t pid;
    int pidfd, status, fd = open_lock(rundir, O_RDONLY);

    if (fd < 0 && errno != ENOENT && errno != NOT_A_LOCK)
        return cannot_reach(rundir, errno, err);
    if (fd >= 0)
        close(fd);
    if (!owner_lives(rundir, &pid))
        return error_set(err, ERROR_NOT_FOUND, "run %s is not running", rundir->id);
    if (pid <= 0)
        return error_set(err, ERROR_UNAVAILABLE,
                         "run %s is running, but its lock does not name the process that takes "
                         "orders: it is just starting, or the disk was full when it started",
                         rundir->id);
    /* The descriptor is of the process that has the number now; it is the owner's as long as
     * the lock is still held after it was opened. */
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return cannot_reach(rundir, errno, err);
    if (!owner_lives(rundir, &pid)) {
        close(pidfd);
        return error_set(err, ERROR_NOT_FOUND, "run %s is not running", rundir->id);
    }
    status = (int)syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
    if (status < 0)
        cannot_reach(rundir, errno, err);
    else
        syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0); /* one that sleeps hears nothing */
    close(pidfd);
    return status;
}
