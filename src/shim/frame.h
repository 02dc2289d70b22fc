/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ends of a shim's connection agree on (docs/shim.md): the frames that it sends, its port
 * and its bounds. Pure, and without a library: the shim is linked with nothing else.
 */
#ifndef SHIM_FRAME_H
#define SHIM_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum {
    SHIM_PORT = 7746,
    SHIM_LINGER_S = 600, /* unless said */
    SHIM_LINGER_MAX_S = 30 * 24 * 3600,
    FRAME_HEADER = 16,
    FRAME_NAME_MAX = 4096,
    FRAME_BYTES_MAX = 65536,
};

enum frame_kind {
    FRAME_DATA = 1,
    FRAME_STARTED,
    FRAME_LOST,
    FRAME_WHOLE,
    FRAME_ENDED,
    FRAME_IDLE,
    FRAME_DONE,
};

struct frame {
    enum frame_kind kind;
    uint64_t offset;
    const char *name; /* not ended by NUL */
    uint16_t name_length;
    const char *bytes;
    uint32_t length;
};

/* Writes the header; name and bytes follow it as they are. */
void frame_write(unsigned char out[static FRAME_HEADER], const struct frame *frame);

/* Reads a frame at the start of the bytes, into which it points. Returns how many bytes it has,
 * 0: more are needed, -1: this is no frame. */
long frame_read(const char *bytes, size_t n, struct frame *out);

#endif
