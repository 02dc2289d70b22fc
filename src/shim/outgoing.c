/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/outgoing.h"

#include <stdio.h>
#include <string.h>

unsigned char *outgoing_bytes(struct outgoing *out, size_t name_n) {
    return out->bytes + OUTGOING_HEAD + FRAME_HEADER + name_n;
}

void outgoing_frame(struct outgoing *out, const struct frame *frame) {
    const size_t n = FRAME_HEADER + (size_t)frame->name_length + frame->length;
    char size[OUTGOING_HEAD + 1];

    snprintf(size, sizeof size, "%08x\r\n", (unsigned)n);
    memcpy(out->bytes, size, OUTGOING_HEAD);
    frame_write(out->bytes + OUTGOING_HEAD, frame);
    memcpy(outgoing_bytes(out, 0), frame->name, frame->name_length);
    if (frame->bytes)
        memcpy(outgoing_bytes(out, frame->name_length), frame->bytes, frame->length);
    memcpy(out->bytes + OUTGOING_HEAD + n, "\r\n", OUTGOING_TAIL);
    out->at = 0;
    out->end = OUTGOING_HEAD + n + OUTGOING_TAIL;
}

void outgoing_file(struct outgoing *out, enum frame_kind kind, const char *name, uint64_t offset,
                   uint32_t length) {
    outgoing_frame(out, &(struct frame){ .kind = kind,
                                         .offset = offset,
                                         .name = name,
                                         .name_length = (uint16_t)strlen(name),
                                         .length = length });
}
