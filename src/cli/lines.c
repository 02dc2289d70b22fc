/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lines.h"

#include <stdlib.h>
#include <string.h>

#include "codec/utf8.h"
#include "codec/visible.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

static void keep(struct lines *lines, const char *bytes, size_t n) {
    if (lines->len + n > lines->capacity) {
        size_t capacity = lines->capacity ? lines->capacity : 256;

        while (capacity < lines->len + n)
            capacity *= 2;
        lines->partial = realloc(lines->partial, capacity);
        if (!lines->partial)
            abort();
        lines->capacity = capacity;
    }
    memcpy(lines->partial + lines->len, bytes, n);
    lines->len += n;
}

/* Gives out one line or piece: what was kept, then n bytes. */
static void give(struct lines *lines, const char *bytes, size_t n, line_sink *sink, void *context) {
    if (lines->len == 0) {
        sink(context, bytes, n);
        return;
    }
    keep(lines, bytes, n);
    sink(context, lines->partial, lines->len);
    lines->len = 0;
}

/* Where a text that goes on can be cut without parting the bytes of a character. */
static size_t cut_before_character(const char *text, size_t n) {
    size_t back = 1;

    while (back < 4 && ((unsigned char)text[n - back] & 0xc0) == 0x80)
        back++;
    return (unsigned char)text[n - back] >= 0xc0 && utf8_length(text + n - back, back) == 0
               ? n - back
               : n;
}

/* Gives out a piece of a line that is too long. */
static void give_piece(struct lines *lines, line_sink *sink, void *context) {
    const size_t n = cut_before_character(lines->partial, lines->len);

    lines->goes_on = true;
    sink(context, lines->partial, n);
    lines->goes_on = false;
    lines->len -= n;
    memmove(lines->partial, lines->partial + n, lines->len);
}

void lines_feed(struct lines *lines, const char *bytes, size_t n, line_sink *sink, void *context) {
    while (n) {
        const size_t room = LINE_MOST - lines->len;
        const char *end = memchr(bytes, '\n', n < room + 1 ? n : room + 1);
        size_t taken;

        if (end) {
            give(lines, bytes, (size_t)(end - bytes), sink, context);
            taken = (size_t)(end - bytes) + 1;
        } else if (n > room) {
            keep(lines, bytes, room);
            give_piece(lines, sink, context);
            taken = room;
        } else {
            keep(lines, bytes, n);
            taken = n;
        }
        bytes += taken;
        n -= taken;
    }
}

void lines_flush(struct lines *lines, line_sink *sink, void *context) {
    if (lines->len)
        give(lines, "", 0, sink, context);
}

void lines_release(struct lines *lines) {
    free(lines->partial);
    *lines = (struct lines){ 0 };
}

/* A bit for each line end among BLOCK bytes. */
#ifdef __SSE2__
enum { BLOCK = 16 };
static unsigned line_ends(const char *bytes) {
    const __m128i block = _mm_loadu_si128((const void *)bytes);

    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8('\n')));
}
#else
enum { BLOCK = 8 };
static unsigned line_ends(const char *bytes) {
    unsigned ends = 0;

    for (unsigned i = 0; i < BLOCK; i++)
        ends |= (unsigned)(bytes[i] == '\n') << i;
    return ends;
}
#endif

size_t lines_prefix(const char *bytes, size_t n, const char *prefix, size_t prefix_len, char *out,
                    size_t room, size_t *taken) {
    size_t start = 0, used = 0;

    for (size_t at = 0; at < n; at += BLOCK) {
        char last[BLOCK] = { 0 };
        unsigned ends;

        if (n - at < BLOCK)
            memcpy(last, bytes + at, n - at);
        ends = line_ends(n - at < BLOCK ? last : bytes + at);
        for (; ends; ends &= ends - 1) {
            const size_t len = at + (size_t)__builtin_ctz(ends) + 1 - start;

            if (len > LINE_MOST + 1 || used + prefix_len + len > room)
                goto out;
            memcpy(out + used, prefix, LINES_SLACK); /* of a constant size: no call */
            used += prefix_len;
            if (len <= 32 && n - start >= 32)
                memcpy(out + used, bytes + start, 32);
            else
                memcpy(out + used, bytes + start, len);
            used += len;
            start += len;
        }
    }
out:
    *taken = start;
    return used;
}

void tail_lines(const char *text, size_t n, line_sink *sink, void *context) {
    size_t end = n, start, lines = 1;

    if (end == 0)
        return;
    if (text[end - 1] == '\n')
        end--;
    for (start = end; start > 0; start--)
        if (text[start - 1] == '\n' && lines++ == TAIL_LINES)
            break;
    while (start <= end) {
        const char *stop = memchr(text + start, '\n', end - start);
        const size_t len = stop ? (size_t)(stop - text) - start : end - start;

        sink(context, text + start, len);
        start += len + 1;
    }
}

/* The length of the colour sequence that the text ends in, or 0. */
static size_t colour_before(const char *text, size_t n) {
    for (size_t back = 3; n > 0 && text[n - 1] == 'm' && back <= n && back < VISIBLE_PENDING_MOST;
         back++)
        if (visible_colour_length(text + n - back, back) == back)
            return back;
    return 0;
}

/* Copies the line without what its backspaces take away. Colours between a character and the
 * backspace go with the character: each step back makes the copy shorter, so all of them together
 * cost no more than the line is long. */
static size_t apply_backspaces(const char *line, size_t n, char *out) {
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        size_t colour;

        if (line[i] != '\b') {
            out[len++] = line[i];
            continue;
        }
        while ((colour = colour_before(out, len)) > 0)
            len -= colour;
        while (len > 0 && ((unsigned char)out[len - 1] & 0xc0) == 0x80)
            len--;
        len -= len > 0;
    }
    return len;
}

int line_append_harmless(struct buf *out, const char *line, size_t n, unsigned flags,
                         struct error *err) {
    const char *last;
    char *applied;
    int status;

    while (n && line[n - 1] == '\r')
        n--;
    last = n ? memrchr(line, '\r', n) : NULL;
    if (last) {
        n -= (size_t)(last + 1 - line);
        line = last + 1;
    }
    if (n == 0 || !memchr(line, '\b', n))
        return visible_append(out, line, n, flags, err);
    applied = malloc(n);
    if (!applied)
        abort();
    status = visible_append(out, applied, apply_backspaces(line, n, applied), flags, err);
    free(applied);
    return status;
}
