/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as the stream of a watch, whole and cut at a place that the first byte chooses.
 * Beyond "no crash": both tell the same events and come to the same end, each event has what its
 * kind promises, and an error in the stream becomes a sentence.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/status.h"
#include "backend/kubernetes/watch_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool law) {
    if (!law)
        abort();
}

static bool note(void *context, const struct watch_line *line) {
    struct buf *told = context;
    struct error err = { .code = ERROR_NONE };

    require(line->object && line->object->kind == NODE_MAP);
    if (line->kind < WATCH_LINE_BOOKMARK)
        require(line->name[0] && line->uid[0]);
    if (line->kind == WATCH_LINE_ERROR) {
        status_explain(500, line->object, "watch", &err);
        require(err.code == ERROR_UNAVAILABLE && err.message[0]);
        require(status_retry_after_s(line->object) >= -1 && status_reason(line->object));
    } else
        require(line->version[0]);
    return buf_printf(told, &err, "%d %s/%s %s %s\n", (int)line->kind, line->namespace, line->name,
                      line->uid, line->version) == 0;
}

static int decode(const char *text, size_t n, size_t cut, struct buf *told) {
    struct watch_decoder decoder = WATCH_DECODER_INIT;
    struct error err = { .code = ERROR_NONE };
    int status = watch_decode(&decoder, text, cut, note, told, &err);

    if (status == 0)
        status = watch_decode(&decoder, text + cut, n - cut, note, told, &err);
    require((status == 0) == (err.code == ERROR_NONE));
    watch_decoder_release(&decoder);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO(buf) whole = BUF_INIT(1 << 20);
    AUTO(buf) parted = BUF_INIT(1 << 20);
    const char *text = (const char *)data + 1;

    if (size < 2 || size > 1 << 16)
        return 0;
    require(decode(text, size - 1, size - 1, &whole) ==
            decode(text, size - 1, data[0] * (size - 1) / 256, &parted));
    require(whole.len == parted.len && memcmp(whole.data, parted.data, whole.len) == 0);
    return 0;
}
