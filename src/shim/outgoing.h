/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One frame on its way out, as a chunk of an answer of HTTP. Bytes of a file are read right into
 * their place:
 *
 *   n = pread(fd, outgoing_bytes(out, name_n), FRAME_BYTES_MAX, offset);
 *   outgoing_frame(out, &(struct frame){ ... .length = n });
 */
#ifndef SHIM_OUTGOING_H
#define SHIM_OUTGOING_H

#include "shim/frame.h"

enum { OUTGOING_HEAD = 10, OUTGOING_TAIL = 2 };

struct outgoing {
    unsigned char
        bytes[OUTGOING_HEAD + FRAME_HEADER + FRAME_NAME_MAX + FRAME_BYTES_MAX + OUTGOING_TAIL];
    size_t at, end; /* what is still to be written */
};

/* Where the bytes of a frame go that has a name of this length. */
unsigned char *outgoing_bytes(struct outgoing *out, size_t name_n);

/* Puts a header and the name around the bytes; where frame->bytes is not NULL, those are copied. */
void outgoing_frame(struct outgoing *out, const struct frame *frame);

/* A frame about a file whose name ends by NUL, without bytes or with those that are in place. */
void outgoing_file(struct outgoing *out, enum frame_kind kind, const char *name, uint64_t offset,
                   uint32_t length);

#endif
