/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as the log of a pod: in one piece, in pieces, and once broken off and resumed.
 * Beyond "no crash": how it is cut into pieces changes nothing in what is told, and no more is told
 * than came.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/logstream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct told {
    uint64_t n, sum;
};

static void on_told(void *context, const char *bytes, size_t n) {
    struct told *told = context;

    for (size_t i = 0; i < n; i++)
        told->sum = told->sum * 31 + (unsigned char)bytes[i];
    told->n += n;
}

static struct told read_in_pieces(const char *bytes, size_t n, size_t piece) {
    struct told told = { 0 };
    struct logstream log;

    logstream_init(&log, &(struct logstream_cursor){ 0 }, 0);
    for (size_t i = 0; i < n; i += piece)
        logstream_feed(&log, bytes + i, n - i < piece ? n - i : piece, on_told, &told);
    logstream_finish(&log, on_told, &told);
    logstream_release(&log);
    return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *bytes = (const char *)data;
    const struct told whole = read_in_pieces(bytes, size, size + 1);
    const struct told pieces = read_in_pieces(bytes, size, 1 + size % 7);
    struct told told = { 0 };
    struct logstream log;

    if (whole.n != pieces.n || whole.sum != pieces.sum || whole.n > size)
        abort();
    logstream_init(&log, &(struct logstream_cursor){ 0 }, 0);
    logstream_feed(&log, bytes, size / 2, on_told, &told);
    logstream_begin(&log);
    logstream_feed(&log, bytes, size, on_told, &told);
    logstream_finish(&log, on_told, &told);
    logstream_release(&log);
    return 0;
}
