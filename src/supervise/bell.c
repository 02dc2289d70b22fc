/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/bell.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int bell_make(struct bell *bell, int *listener, struct error *err) {
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_set_errno(err, errno, "cannot make a pipe");
    *bell = (struct bell){ .fd = ends[1] };
    *listener = ends[0];
    return 0;
}

void bell_release(struct bell *bell) {
    if (bell->fd >= 0)
        close(bell->fd);
    bell->fd = -1;
}

void bell_ring(struct bell *bell, uint32_t what) {
    if (bell->fd < 0)
        return;
    if (bell->has_missed)
        what = BELL_ALL;
    if (write(bell->fd, &what, sizeof what) == sizeof what)
        bell->has_missed = false;
    else if (errno == EPIPE)
        bell_release(bell); /* whoever listened has gone */
    else
        bell->has_missed = true;
}

int bell_hear(int listener, uint32_t *heard, size_t most) {
    const ssize_t n = read(listener, heard, most * sizeof *heard);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    return n == 0 ? -1 : (int)((size_t)n / sizeof *heard);
}
