/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/transcript.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/utf8.h"

/* The length of an escape sequence at the start: "ESC [ … letter", "ESC ] … BEL", "ESC x". */
static size_t escape_length(const char *text, size_t n) {
    size_t i = 2;

    if (n < 2)
        return 1;
    if (text[1] == '[') {
        while (i < n && text[i] >= ' ' && text[i] <= '?')
            i++;
        return i < n && text[i] >= '@' && text[i] <= '~' ? i + 1 : i;
    }
    if (text[1] == ']') {
        while (i < n && text[i] != '\a' && text[i] != '\x1b' && text[i] != '\n' && text[i] != '\r')
            i++;
        return i < n && text[i] == '\a' ? i + 1 : i;
    }
    return text[1] >= '0' && text[1] <= '~' ? 2 : 1;
}

/* Also what only joins or parts its neighbours: a cause is looked for in words. */
static bool is_left_out(uint32_t point) {
    return utf8_is_hidden(point) || (point >= 0x200b && point <= 0x200d) || point == 0xfeff;
}

/* Copies one harmless character, or none; returns how many bytes of the input it stood for. */
static size_t take_character(const char *text, size_t n, char *out, size_t *made) {
    const unsigned char byte = (unsigned char)text[0];
    size_t length;

    *made = 1;
    if (byte >= ' ' && byte < 0x7f) {
        *out = text[0];
        return 1;
    }
    if (byte == '\t') {
        *out = ' ';
        return 1;
    }
    if (byte < 0x80) {
        *made = 0;
        return byte == 0x1b ? escape_length(text, n) : 1;
    }
    length = utf8_length(text, n);
    if (length == 0) {
        *out = '?';
        return 1;
    }
    *made = is_left_out(utf8_point(text, length)) ? 0 : length;
    memcpy(out, text, *made);
    return length;
}

static size_t count_line_ends(const char *bytes, size_t n) {
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += bytes[i] == '\n' || bytes[i] == '\r';
    return count;
}

static void end_line(struct transcript *transcript, const char *start, const char *end) {
    while (end > start && end[-1] == ' ')
        end--;
    transcript->lines[transcript->n_lines++] = (struct slice){ start, (size_t)(end - start) };
}

void transcript_init(struct transcript *transcript, const char *bytes, size_t n) {
    const size_t left_out = n > TRANSCRIPT_BYTES ? n - TRANSCRIPT_BYTES : 0;
    char *out, *start;
    size_t made;

    bytes = n ? bytes + left_out : "";
    n -= left_out;
    *transcript = (struct transcript){
        .text = malloc(n + 1),
        .lines = malloc((count_line_ends(bytes, n) + 1) * sizeof *transcript->lines),
    };
    if (!transcript->text || !transcript->lines)
        abort();
    out = start = transcript->text;
    for (size_t i = 0; i < n;) {
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            end_line(transcript, start, out);
            start = out;
            i += bytes[i] == '\r' && i + 1 < n && bytes[i + 1] == '\n' ? 2 : 1;
            continue;
        }
        i += take_character(bytes + i, n - i, out, &made);
        out += made;
    }
    if (out > start)
        end_line(transcript, start, out);
    *out = '\0';
}

void transcript_release(struct transcript *transcript) {
    free(transcript->text);
    free(transcript->lines);
    *transcript = (struct transcript){ 0 };
}

struct slice slice_of(const char *text) {
    return (struct slice){ text, strlen(text) };
}

bool slice_equal(struct slice a, struct slice b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.text, b.text, a.n) == 0);
}

bool slice_is(struct slice slice, const char *text) {
    return slice_equal(slice, slice_of(text));
}

bool slice_starts(struct slice slice, const char *text) {
    return slice_is(slice_head(slice, strlen(text)), text);
}

bool slice_ends(struct slice slice, const char *text) {
    const size_t n = strlen(text);

    return slice.n >= n && slice_is(slice_skip(slice, slice.n - n), text);
}

ptrdiff_t slice_find(struct slice slice, const char *text) {
    const char *found = slice.n ? memmem(slice.text, slice.n, text, strlen(text)) : NULL;

    return found ? found - slice.text : SLICE_NOWHERE;
}

ptrdiff_t slice_find_last(struct slice slice, const char *text) {
    const size_t n = strlen(text);

    for (size_t i = slice.n + 1; n && i-- > n;)
        if (memcmp(slice.text + i - n, text, n) == 0)
            return (ptrdiff_t)(i - n);
    return SLICE_NOWHERE;
}

bool slice_has(struct slice slice, const char *text) {
    return slice_find(slice, text) != SLICE_NOWHERE;
}

struct slice slice_skip(struct slice slice, size_t n) {
    if (n > slice.n)
        n = slice.n;
    return n ? (struct slice){ slice.text + n, slice.n - n } : slice;
}

struct slice slice_head(struct slice slice, size_t n) {
    return (struct slice){ slice.text, n < slice.n ? n : slice.n };
}

struct slice slice_trim(struct slice slice) {
    while (slice.n && slice.text[0] == ' ')
        slice = slice_skip(slice, 1);
    while (slice.n && slice.text[slice.n - 1] == ' ')
        slice.n--;
    return slice;
}
