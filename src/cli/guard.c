/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/guard.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/terminal.h"
#include "codec/visible.h"

enum { PIPE_BUFFER = 64 * 1024 };

struct guard {
    FILE **stream;
    int fd;
    bool is_on, passes_data;
    struct visible_stream visible;
};

static struct guard guards[] = {
    { .stream = &stdout, .fd = STDOUT_FILENO },
    { .stream = &stderr, .fd = STDERR_FILENO },
};

static bool write_all(int fd, const char *bytes, size_t n) {
    while (n > 0) {
        const ssize_t written = write(fd, bytes, n);

        if (written < 0 && errno == EAGAIN)
            poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
        else if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        }
    }
    return true;
}

static ssize_t write_guarded(void *cookie, const char *bytes, size_t n) {
    struct guard *guard = cookie;
    AUTO(buf) out = BUF_INIT((n + VISIBLE_PENDING_MOST) * VISIBLE_GROWTH + VISIBLE_EXTRA);
    struct error err;

    if (guard->passes_data && !terminal_is(*guard->stream))
        return write_all(guard->fd, bytes, n) ? (ssize_t)n : 0;
    guard->visible.flags = terminal_visible(*guard->stream) | VISIBLE_LINES;
    if (visible_feed(&guard->visible, bytes, n, &out, &err))
        abort(); /* the buffer is as large as the text can become */
    return write_all(guard->fd, out.data, out.len) ? (ssize_t)n : 0;
}

static void guard_stream(struct guard *guard, int mode) {
    FILE *guarded = fopencookie(guard, "w", (cookie_io_functions_t){ .write = write_guarded });

    if (!guarded)
        abort();
    fflush(*guard->stream);
    setvbuf(guarded, NULL, mode, PIPE_BUFFER);
    *guard->stream = guarded;
    guard->is_on = true;
}

void guard_streams(void) {
    guard_stream(&guards[0], isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
    guard_stream(&guards[1], _IONBF);
}

void guard_pass_data(void) {
    guards[0].passes_data = true;
}

void guard_control(FILE *out, const char *sequence) {
    fflush(out);
    (void)!write_all(terminal_fd(out), sequence, strlen(sequence));
}

void guard_end(void) {
    for (size_t i = 0; i < ARRAY_LEN(guards); i++) {
        AUTO(buf) out = BUF_INIT(VISIBLE_PENDING_MOST * VISIBLE_GROWTH + VISIBLE_EXTRA);
        struct error err;

        if (!guards[i].is_on)
            continue;
        fflush(*guards[i].stream);
        if (visible_end(&guards[i].visible, &out, &err) == 0)
            (void)!write_all(guards[i].fd, out.data, out.len);
    }
}
