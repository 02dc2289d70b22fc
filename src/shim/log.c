/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PIPE_BYTES = 1 << 20, /* what the kernel gives anybody; less is no harm */
    PIECE = 256 << 10,
};

static void on_input(struct loop_watch *watch, uint32_t events);
static void on_live(struct loop_watch *watch, uint32_t events);

void log_init(struct log *log, struct loop *loop, const char *path, uint64_t limit,
              void (*changed)(struct log *log)) {
    *log = (struct log){ .loop = loop,
                         .changed = changed,
                         .path = path,
                         .fd = -1,
                         .limit = limit,
                         .input = { .fd = -1, .ready = on_input },
                         .live = { .fd = STDOUT_FILENO, .ready = on_live } };
}

/* A file that is there already is of a container that was before this one in the same pod. */
static void open_file(struct log *log) {
    struct stat st;

    log->fd = open(log->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (log->fd < 0)
        return;
    if (fstat(log->fd, &st) || !S_ISREG(st.st_mode)) {
        close(log->fd);
        log->fd = -1;
        return;
    }
    if (log->size == 0)
        log->size = log->shown = (uint64_t)st.st_size;
}

int log_open(struct log *log) {
    const int flags = fcntl(log->live.fd, F_GETFL);
    int ends[2];

    if (flags < 0 || fcntl(log->live.fd, F_SETFL, flags | O_NONBLOCK))
        log->live.fd = -1;
    open_file(log);
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    log->input.fd = ends[0];
    if (loop_watch(log->loop, &log->input, EPOLLIN))
        return -1;
    return ends[1];
}

/* Returns how many bytes the file took. */
static size_t keep(struct log *log, const char *bytes, size_t n) {
    const uint64_t room = log->size < log->limit ? log->limit - log->size : 0;
    const size_t wanted = n < room ? n : (size_t)room;
    size_t done = 0;

    if (log->fd < 0 && wanted)
        open_file(log);
    while (log->fd >= 0 && done < wanted) {
        const ssize_t written = write(log->fd, bytes + done, wanted - done);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        done += (size_t)written;
    }
    log->size += done;
    log->lost += n - done;
    return done;
}

/* Returns how many bytes stdout took. A reader that is gone does not come back. */
static size_t show(struct log *log, const char *bytes, size_t n) {
    size_t done = 0;

    while (log->live.fd >= 0 && done < n) {
        const ssize_t written = write(log->live.fd, bytes + done, n - done);

        if (written > 0) {
            done += (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            if (loop_watch(log->loop, &log->live, EPOLLOUT))
                log->live.fd = -1;
            break;
        } else if (written == 0 || errno != EINTR) {
            loop_unwatch(log->loop, &log->live);
            log->live.fd = -1;
        }
    }
    return done;
}

static void on_live(struct loop_watch *watch, uint32_t events) {
    struct log *log = loop_owner(watch, struct log, live);
    static char bytes[PIECE];
    ssize_t n = 0;

    (void)events;
    if (log->shown < log->size && log->fd >= 0)
        n = pread(log->fd, bytes, sizeof bytes, (off_t)log->shown);
    if (n > 0)
        log->shown += show(log, bytes, (size_t)n);
    if (n <= 0 || log_is_shown(log))
        loop_unwatch(log->loop, &log->live);
}

static void finish(struct log *log) {
    loop_unwatch(log->loop, &log->input);
    close(log->input.fd);
    log->input.fd = -1;
    log->changed(log);
}

/* Returns false at the end, and when nothing is there now. */
static bool take(struct log *log, bool *is_end) {
    static char bytes[PIECE];
    const bool is_level = log_is_shown(log);
    const ssize_t n = read(log->input.fd, bytes, sizeof bytes);
    size_t kept, shown;

    *is_end = n == 0;
    if (n <= 0)
        return false;
    kept = keep(log, bytes, (size_t)n);
    if (is_level) {
        shown = show(log, bytes, (size_t)n);
        log->shown += shown < kept ? shown : kept;
    }
    return true;
}

static void on_input(struct loop_watch *watch, uint32_t events) {
    struct log *log = loop_owner(watch, struct log, input);
    bool is_end;

    (void)events;
    if (take(log, &is_end))
        log->changed(log);
    else if (is_end)
        finish(log);
}

void log_close(struct log *log) {
    bool is_end;

    if (log->input.fd < 0)
        return;
    for (int i = 0; i < 2 * PIPE_BYTES / PIECE && take(log, &is_end); i++)
        ;
    finish(log);
}

bool log_is_shown(const struct log *log) {
    return log->live.fd < 0 || log->shown >= log->size;
}
