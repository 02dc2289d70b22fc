/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as frames of a shim; what is one is written again as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *at = (const char *)data, *const end = at + size;
    struct frame frame;
    long n;

    while ((n = frame_read(at, (size_t)(end - at), &frame)) > 0) {
        unsigned char header[FRAME_HEADER];

        frame_write(header, &frame);
        if (memcmp(header, at, sizeof header) != 0 || n > end - at ||
            frame.bytes + frame.length != at + n || frame.name + frame.name_length != frame.bytes)
            abort();
        at += n;
    }
    return 0;
}
