/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as requests to a shim: heads, bodies and the lines in them. Beyond "no crash":
 * how they are cut into pieces changes neither what is content nor where it ends, and no more is
 * content than came.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct told {
    uint64_t n, sum;
    size_t used;
    enum body_state state;
};

static struct told read_body(const struct request *request, const char *bytes, size_t n,
                             size_t piece) {
    struct told told = { 0 };
    struct body body;

    body_begin(&body, request);
    while (told.used < n && body.state < BODY_DONE) {
        const size_t left = n - told.used;
        const char *content;
        size_t got;

        told.used +=
            body_take(&body, bytes + told.used, left < piece ? left : piece, &content, &got);
        for (size_t i = 0; i < got; i++)
            told.sum = told.sum * 31 + (unsigned char)content[i];
        told.n += got;
    }
    told.state = body.state;
    return told;
}

static void read_lines(const char *bytes, size_t n) {
    const char *at = bytes, *const end = bytes + n;
    struct offset_line line;

    while (offset_line_next(&at, end, &line) > 0)
        if (line.name_n == 0 || line.name < bytes || line.name + line.name_n >= end)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *bytes = (const char *)data;
    struct request request;
    const int head = request_read(bytes, size, 0, &request);

    read_lines(bytes, size);
    if (head > (int)size || head < -599)
        abort();
    if (head > 0) {
        const size_t rest = size - (size_t)head;
        const struct told whole = read_body(&request, bytes + head, rest, size + 1);
        const struct told pieces = read_body(&request, bytes + head, rest, 1 + size % 7);
        struct request again;

        if (strlen(request.target) > REQUEST_TARGET_MAX || strlen(request.key) > REQUEST_KEY_MAX ||
            request_number(&request) < -1)
            abort();
        if (whole.n != pieces.n || whole.sum != pieces.sum || whole.used != pieces.used ||
            whole.state != pieces.state || whole.n > rest)
            abort();
        if (request_read(bytes, size, (size_t)head - 1, &again) != head)
            abort();
    }
    return 0;
}
