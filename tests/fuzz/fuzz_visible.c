/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes any bytes visible, with the flags that the first byte says, whole and in pieces whose size
 * the second byte says. Holds the laws of codec/visible.h: what comes out cannot control a
 * terminal, stays the same when it is made visible again, does not depend on the pieces, and is
 * bounded. The line of a task (cli/lines.h) is held to the first of them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lines.h"
#include "codec/utf8.h"
#include "codec/visible.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MOST = 1 << 16, OUT_MOST = INPUT_MOST * VISIBLE_GROWTH + VISIBLE_EXTRA };

static void require(bool law) {
    if (!law)
        abort();
}

static void require_visible(const struct buf *text, unsigned flags) {
    require(utf8_valid_prefix(text->data, text->len) == text->len);
    for (size_t i = 0, length; i < text->len; i += length) {
        const char c = text->data[i];

        length = visible_colour_length(text->data + i, text->len - i);
        require(!length || flags & VISIBLE_COLOURS);
        if (length)
            continue;
        length = utf8_length(text->data + i, text->len - i);
        require(c == '\t' || (c == '\n' && flags & VISIBLE_LINES) ||
                !utf8_is_hidden(utf8_point(text->data + i, length)));
    }
}

static void require_same(const struct buf *a, const struct buf *b) {
    require(a->len == b->len && memcmp(a->data, b->data, a->len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO(buf) out = BUF_INIT(OUT_MOST), pieces = BUF_INIT(OUT_MOST), line = BUF_INIT(OUT_MOST);
    AUTO(buf) twice = BUF_INIT((size_t)OUT_MOST * VISIBLE_GROWTH);
    const char *text = (const char *)data + 2;
    struct visible_stream stream = { 0 };
    size_t n, step;
    unsigned flags;
    struct error err;

    if (size < 2 || size > INPUT_MOST)
        return 0;
    n = size - 2;
    flags = stream.flags = data[0] & 63;
    step = 1 + data[1] % 80;
    require(visible_append(&out, text, n, flags, &err) == 0);
    require(out.len <= n * VISIBLE_GROWTH + VISIBLE_EXTRA);
    require_visible(&out, flags);
    require(visible_append(&twice, out.data, out.len, flags, &err) == 0);
    require_same(&out, &twice);
    for (size_t i = 0; i < n; i += step)
        require(visible_feed(&stream, text + i, n - i < step ? n - i : step, &pieces, &err) == 0);
    require(visible_end(&stream, &pieces, &err) == 0);
    require_same(&out, &pieces);
    require(line_append_harmless(&line, text, n, flags, &err) == 0);
    require_visible(&line, flags);
    return 0;
}
