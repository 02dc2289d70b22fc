/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/cursors.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

struct slot {
    struct logstream_cursor at;
    uint64_t check;
};

/* Of words, and part of the file: not the hash of base/hash.h. */
static uint64_t check_of(const struct logstream_cursor *at, uint32_t rank) {
    const uint64_t words[] = { (uint64_t)at->time_ns, at->lines, at->part, at->offset, rank };
    uint64_t sum = 0xcbf29ce484222325;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        sum = (sum ^ words[i]) * 0x100000001b3;
    return sum;
}

enum cursors_origin cursors_open(struct cursors *cursors, const char *directory, const char *name) {
    char path[PATH_MAX];

    cursors->fd = -1;
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return CURSORS_NEW;
    cursors->fd = open(path, O_RDWR | O_CLOEXEC);
    if (cursors->fd >= 0)
        return CURSORS_OF_BEFORE;
    cursors->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return CURSORS_NEW;
}

void cursors_close(struct cursors *cursors) {
    if (cursors->fd >= 0)
        close(cursors->fd);
    cursors->fd = -1;
}

struct logstream_cursor cursors_read(const struct cursors *cursors, uint32_t rank) {
    struct slot slot;

    if (cursors->fd < 0 ||
        pread(cursors->fd, &slot, sizeof slot, (off_t)(rank * sizeof slot)) != sizeof slot ||
        slot.check != check_of(&slot.at, rank))
        return (struct logstream_cursor){ 0 };
    return slot.at;
}

void cursors_write(const struct cursors *cursors, uint32_t rank,
                   const struct logstream_cursor *at) {
    const struct slot slot = { *at, check_of(at, rank) };

    /* On a full disk the old slot stays: more is compared then, nothing is lost. */
    if (cursors->fd >= 0 &&
        pwrite(cursors->fd, &slot, sizeof slot, (off_t)(rank * sizeof slot)) != sizeof slot)
        return;
}
