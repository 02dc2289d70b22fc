/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/frame.h"

static void put(unsigned char *out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        out[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const char *in, int bytes) {
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)(unsigned char)in[i] << (8 * i);
    return value;
}

void frame_write(unsigned char out[static FRAME_HEADER], const struct frame *frame) {
    put(out, frame->kind, 1);
    put(out + 1, 0, 1);
    put(out + 2, frame->name_length, 2);
    put(out + 4, frame->length, 4);
    put(out + 8, frame->offset, 8);
}

long frame_read(const char *bytes, size_t n, struct frame *out) {
    uint64_t kind, name, length;

    if (n < FRAME_HEADER)
        return 0;
    kind = get(bytes, 1);
    name = get(bytes + 2, 2);
    length = get(bytes + 4, 4);
    if (kind < FRAME_DATA || kind > FRAME_DONE || bytes[1] != 0 || name > FRAME_NAME_MAX ||
        length > FRAME_BYTES_MAX)
        return -1;
    if (n < FRAME_HEADER + name + length)
        return 0;
    *out = (struct frame){ .kind = (enum frame_kind)kind,
                           .offset = get(bytes + 8, 8),
                           .name = bytes + FRAME_HEADER,
                           .name_length = (uint16_t)name,
                           .bytes = bytes + FRAME_HEADER + name,
                           .length = (uint32_t)length };
    return (long)(FRAME_HEADER + name + length);
}
