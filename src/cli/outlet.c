/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/outlet.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes what goes without waiting. Returns the count; -1 with errno, EAGAIN for none. */
static ssize_t write_some(const struct outlet *outlet, const char *bytes, size_t n) {
    struct pollfd poller = { .fd = outlet->fd, .events = POLLOUT };

    if (outlet->is_socket)
        return send(outlet->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (outlet->is_own || outlet->is_file)
        return write(outlet->fd, bytes, n);
    /* A description shared with others stays as it is; a pipe that polls writable takes
     * this much. */
    if (poll(&poller, 1, 0) != 1) {
        errno = EAGAIN;
        return -1;
    }
    return write(outlet->fd, bytes, n < PIPE_BUF ? n : PIPE_BUF);
}

static void lose(struct outlet *outlet, int errnum, size_t n) {
    outlet->errnum = errnum;
    outlet->dropped += n + evbuffer_get_length(outlet->pending);
    evbuffer_drain(outlet->pending, evbuffer_get_length(outlet->pending));
    if (outlet->writable)
        event_del(outlet->writable);
}

/* Returns how many bytes were written before it would have to wait. */
static size_t write_now(struct outlet *outlet, const char *bytes, size_t n) {
    size_t done = 0;

    while (done < n && !outlet->errnum) {
        const ssize_t written = write_some(outlet, bytes + done, n - done);

        if (written >= 0)
            done += (size_t)written;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            lose(outlet, errno, n - done);
    }
    return done;
}

static void write_pending(struct outlet *outlet) {
    while (!outlet->errnum && evbuffer_get_length(outlet->pending)) {
        const size_t n = evbuffer_get_contiguous_space(outlet->pending);
        const size_t done =
            write_now(outlet, (char *)evbuffer_pullup(outlet->pending, (ev_ssize_t)n), n);

        if (outlet->errnum)
            return;
        evbuffer_drain(outlet->pending, done);
        if (done < n)
            return;
    }
}

static void on_writable(evutil_socket_t fd, short what, void *arg) {
    struct outlet *outlet = arg;

    (void)fd, (void)what;
    write_pending(outlet);
    if (!evbuffer_get_length(outlet->pending))
        event_del(outlet->writable);
}

void outlet_init(struct outlet *outlet, int fd, struct event_base *base) {
    struct stat st = { 0 };
    char path[32];

    *outlet = (struct outlet){ .fd = fd, .pending = evbuffer_new() };
    if (!outlet->pending)
        abort();
    if (fstat(fd, &st) < 0) {
        outlet->errnum = errno;
        return;
    }
    outlet->is_socket = S_ISSOCK(st.st_mode);
    outlet->is_file = S_ISREG(st.st_mode);
    if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
        int own;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (own >= 0) {
            outlet->fd = own;
            outlet->is_own = true;
        }
    }
    outlet->writable = event_new(base, outlet->fd, EV_WRITE | EV_PERSIST, on_writable, outlet);
}

void outlet_write(struct outlet *outlet, const char *bytes, size_t n) {
    size_t done = 0;

    if (outlet->errnum) {
        outlet->dropped += n;
        return;
    }
    if (evbuffer_get_length(outlet->pending) + n > OUTLET_PENDING) {
        outlet->dropped += n;
        return;
    }
    if (!evbuffer_get_length(outlet->pending))
        done = write_now(outlet, bytes, n);
    if (outlet->errnum || done == n)
        return;
    if (!evbuffer_get_length(outlet->pending) && outlet->writable)
        event_add(outlet->writable, NULL);
    evbuffer_add(outlet->pending, bytes + done, n - done);
}

void outlet_finish(struct outlet *outlet) {
    while (!outlet->errnum && evbuffer_get_length(outlet->pending)) {
        struct pollfd poller = { .fd = outlet->fd, .events = POLLOUT };

        poll(&poller, 1, -1);
        write_pending(outlet);
    }
}

void outlet_release(struct outlet *outlet) {
    if (outlet->writable)
        event_free(outlet->writable);
    if (outlet->pending)
        evbuffer_free(outlet->pending);
    if (outlet->is_own)
        close(outlet->fd);
    *outlet = (struct outlet){ .fd = -1 };
}
