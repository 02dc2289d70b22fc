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
#include "base/file.h"
#include "store/presence.h"
#include "store/rights.h"
#include "store/sharing.h"

enum { ANNOUNCEMENT_BYTES = 16 }; /* any process number, and at least one newline */

/* Nobody else may read it: who may read a file can put a lock on it (presence.h). */
static int open_lock(const struct rundir *rundir, int flags) {
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/lock", rundir->path) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return file_open_linkless(path, flags, S_IRUSR | S_IWUSR);
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
    else if (lock < 0 && (errno == FILE_IS_NOT_REGULAR || errno == ELOOP))
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
    int lock;

    if (rights_check(rundir, err))
        return -1;
    lock = open_lock(rundir, O_RDWR | O_CREAT);
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
    int lock;

    if (rights_check(rundir, err))
        return -1;
    lock = open_lock(rundir, O_RDWR | O_CREAT);
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

/* Whether the lock could not be looked at, though there may be one. What is not a regular file is
 * no lock of ours. */
static bool is_hidden(int errnum) {
    return errnum != ENOENT && errnum != ENOTDIR && errnum != ELOOP &&
           errnum != FILE_IS_NOT_REGULAR;
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

enum owner_sight owner_look(const struct rundir *rundir, pid_t *pid) {
    int fd = open_lock(rundir, O_RDONLY);
    bool is_locked;

    *pid = 0;
    if (fd < 0 && errno == EACCES) /* it is another user's */
        return presence_is_public(rundir) ? OWNER_LIVES : OWNER_IS_GONE;
    if (fd < 0 && is_hidden(errno))
        return OWNER_IS_HIDDEN;
    is_locked = fd >= 0 && has_owner(fd);
    if (is_locked)
        *pid = announced(fd);
    if (fd >= 0)
        close(fd);
    /* What an unlocked file names is not believed: the owner puts its own back within a second. */
    return is_locked || (rights_has(rundir) && presence_is_held(rundir)) ? OWNER_LIVES
                                                                         : OWNER_IS_GONE;
}

bool owner_lives(const struct rundir *rundir, pid_t *pid) {
    return owner_look(rundir, pid) != OWNER_IS_GONE;
}

bool owner_was_announced(const struct rundir *rundir) {
    const int fd = open_lock(rundir, O_RDONLY);
    const bool was = fd >= 0 && announced(fd) != 0;

    if (fd >= 0)
        close(fd);
    return was;
}

/* ---- signals ---- */

/* Why the supervisor cannot be reached, as errno tells. */
static int cannot_reach(const struct rundir *rundir, int errnum, struct error *err) {
    if (errnum == EPERM || errnum == EACCES)
        return error_set(err, ERROR_DENIED, "run %s is not yours: it belongs to %s", rundir->id,
                         user_text(rundir->owner).text);
    return error_set_errno(err, errnum, "cannot reach the supervisor of run %s", rundir->id);
}

static bool is_same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether one of the descriptors is of the lock, or of the run's directory: a lock that was put
 * back is open in the supervisor alone. True also if the kernel does not show it. */
static bool may_have_open(DIR *descriptors, int lock, const char *directory) {
    struct stat file, folder, st;
    const struct dirent *entry;
    bool found = false;

    if (fstat(lock, &file) < 0 || lstat(directory, &folder) < 0)
        return false;
    while (!found && (entry = readdir(descriptors)))
        found = fstatat(dirfd(descriptors), entry->d_name, &st, 0) < 0
                    ? errno == EACCES
                    : is_same_file(&st, &file) || is_same_file(&st, &folder);
    return found;
}

/* Whether the process is the run's owner: it is of the same user, and has the lock open. The number
 * in the lock alone is only what somebody has written there. The kernel shows the descriptors of a
 * process only to one with the same group too (newgrp changes it): then the user has to do, whose
 * processes are all that can be signalled. */
static bool is_owner(pid_t pid, int lock, const struct rundir *rundir) {
    char path[64];
    struct stat st;
    bool found;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    if (stat(path, &st) < 0 || st.st_uid != rundir->owner)
        return false;
    dir = opendir(path);
    if (!dir)
        return errno == EACCES;
    found = may_have_open(dir, lock, rundir->path);
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
    if (is_owner(pid, lock, rundir))
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
