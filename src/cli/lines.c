/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lines.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/utf8.h"

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

/* The length of a colour sequence "ESC [ 1;31 m" at the start, or 0. */
static size_t colour_length(const char *text, size_t n) {
    size_t i = 2;

    if (n < 3 || text[0] != '\x1b' || text[1] != '[')
        return 0;
    while (i < n && i < 32 && ((text[i] >= '0' && text[i] <= '9') || text[i] == ';'))
        i++;
    return i < n && text[i] == 'm' ? i + 1 : 0;
}

/* The length of the printable UTF-8 character at the start, or 0. */
static size_t character_length(const char *text, size_t n) {
    const size_t length = utf8_length(text, n);
    uint32_t point = (unsigned char)text[0];

    if (length <= 1)
        return length && point >= ' ' && point != 0x7f;
    point &= 0x7fu >> length; /* the bits that the first byte has of it */
    for (size_t i = 1; i < length; i++)
        point = point << 6 | ((unsigned char)text[i] & 0x3fu);
    if (point < 0xa0) /* the C1 controls */
        return 0;
    /* Marks that turn the direction of what follows, and line separators. */
    if ((point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) ||
        point == 0x2028 || point == 0x2029)
        return 0;
    return length;
}

int line_append_harmless(struct buf *out, const char *line, size_t n, struct error *err) {
    const size_t before = out->len;
    const char *last;
    int failed = 0;

    while (n && line[n - 1] == '\r')
        n--;
    last = n ? memrchr(line, '\r', n) : NULL;
    if (last) {
        n -= (size_t)(last + 1 - line);
        line = last + 1;
    }
    for (size_t i = 0; i < n && !failed;) {
        const unsigned char byte = (unsigned char)line[i];
        size_t run = 0, step;

        /* Plain stretches go out in one piece. */
        while (i + run < n) {
            step = character_length(line + i + run, n - i - run);
            if (step == 0)
                step = line[i + run] == '\t' ? 1 : colour_length(line + i + run, n - i - run);
            if (step == 0)
                break;
            run += step;
        }
        if (run)
            failed = buf_append(out, line + i, run, err);
        else if (byte < ' ' || byte == 0x7f)
            failed = buf_printf(out, err, "^%c", byte ^ 0x40);
        else
            failed = buf_printf(out, err, "\\x%02x", byte);
        i += run ? run : 1;
    }
    if (failed) {
        out->len = before;
        out->data[before] = '\0';
    }
    return failed;
}
