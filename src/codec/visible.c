/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/visible.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "codec/utf8.h"

enum { COLOUR_NUMBERS_MOST = 16, COLOUR_DIGITS_MOST = 3 };

static const char colours_off[] = "\x1b[0m", dim_on[] = "\x1b[2m", dim_off[] = "\x1b[22m";

/* ---- what stands at a place of the text ---- */

enum unit_kind {
    UNIT_PLAIN,  /* shown as it is */
    UNIT_COLOUR, /* a colour sequence */
    UNIT_LINE,   /* the end of a line that may pass */
    UNIT_HIDDEN, /* shown in other characters */
    UNIT_CUT,    /* the rest is needed to know */
};

struct unit {
    enum unit_kind kind;
    size_t n;
    uint32_t point; /* of a character; a stray byte has none */
    bool is_stray;
};

/* Reads "ESC [ 1;38:5:9 m". Sets *is_cut if the text ends before the sequence does. */
static size_t read_colour(const char *text, size_t n, bool *is_cut) {
    size_t numbers = 1, digits = 0, i = 2;

    *is_cut = false;
    if (n < 2) {
        *is_cut = true;
        return 0;
    }
    if (text[1] != '[')
        return 0;
    for (; i < n && text[i] != 'm'; i++) {
        const bool is_digit = text[i] >= '0' && text[i] <= '9';

        digits = is_digit ? digits + 1 : 0;
        numbers += !is_digit;
        if ((!is_digit && text[i] != ';' && text[i] != ':') || digits > COLOUR_DIGITS_MOST ||
            numbers > COLOUR_NUMBERS_MOST)
            return 0;
    }
    *is_cut = i == n;
    return i < n ? i + 1 : 0;
}

static_assert(2 + COLOUR_NUMBERS_MOST * (COLOUR_DIGITS_MOST + 1) + 1 <= VISIBLE_PENDING_MOST,
              "a sequence that is cut fits into what is kept");

size_t visible_colour_length(const char *text, size_t n) {
    bool is_cut;

    return n && text[0] == '\x1b' ? read_colour(text, n, &is_cut) : 0;
}

/* The ASCII character that is drawn in place of one of ours, or 0. All have one column. */
static char drawing(uint32_t point) {
    static const char bars[] = "_.-~=+*#";
    static const struct {
        uint32_t point;
        char ascii;
    } rows[] = { { 0x2502, '|' }, { 0x2524, '+' }, { 0x2514, '+' }, { 0x2500, '-' },
                 { 0x2501, '-' }, { 0x00b7, '-' }, { 0x2026, '~' }, { 0x00d7, 'x' } };

    if (point >= 0x2581 && point <= 0x2588) /* bars of eight heights */
        return bars[point - 0x2581];
    if (point > 0x2800 && point <= 0x28ff) { /* a grid of dots: those above, those below, or both */
        const bool above = point & 0x1b, below = point & 0xe4;

        return above && below ? ':' : above ? '\'' : '.';
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].point == point)
            return rows[i].ascii;
    return 0;
}

static struct unit control_at(const char *text, size_t n, unsigned flags) {
    bool is_cut = false;
    size_t length = 0;

    if (text[0] == '\t')
        return (struct unit){ UNIT_PLAIN, 1, '\t', false };
    if (text[0] == '\n' && flags & VISIBLE_LINES)
        return (struct unit){ UNIT_LINE, 1, '\n', false };
    if (text[0] == '\x1b' && flags & (VISIBLE_COLOURS | VISIBLE_BARE))
        length = read_colour(text, n, &is_cut);
    if (is_cut)
        return (struct unit){ .kind = UNIT_CUT };
    if (length)
        return (struct unit){ UNIT_COLOUR, length, 0, false };
    return (struct unit){ UNIT_HIDDEN, 1, (unsigned char)text[0], false };
}

static struct unit unit_at(const char *text, size_t n, unsigned flags) {
    const unsigned char byte = (unsigned char)text[0];
    size_t length;
    uint32_t point;

    if (byte >= ' ' && byte < 0x7f)
        return (struct unit){ UNIT_PLAIN, 1, byte, false };
    if (byte < 0x80)
        return control_at(text, n, flags);
    length = utf8_length(text, n);
    if (length == 0)
        return utf8_is_cut(text, n) ? (struct unit){ .kind = UNIT_CUT }
                                    : (struct unit){ UNIT_HIDDEN, 1, byte, true };
    point = utf8_point(text, length);
    if (utf8_is_hidden(point) || (flags & VISIBLE_ASCII) == VISIBLE_ASCII ||
        (flags & VISIBLE_ASCII_DRAWINGS && drawing(point)))
        return (struct unit){ UNIT_HIDDEN, length, point, false };
    return (struct unit){ UNIT_PLAIN, length, point, false };
}

/* ---- how it is shown ---- */

static bool is_replaced(const struct unit *unit, unsigned flags) {
    return flags & VISIBLE_ASCII_DRAWINGS && !unit->is_stray && drawing(unit->point);
}

static int put_hidden(struct visible_stream *stream, const struct unit *unit, struct buf *out,
                      struct error *err) {
    const bool is_drawing = is_replaced(unit, stream->flags);
    const unsigned dims = VISIBLE_DIM | VISIBLE_COLOURS;

    if (!is_drawing && (stream->flags & dims) == dims && !stream->is_dim) {
        stream->is_dim = true;
        if (buf_append(out, dim_on, sizeof dim_on - 1, err))
            return -1;
    }
    if (is_drawing)
        return buf_printf(out, err, "%c", drawing(unit->point));
    if (unit->is_stray)
        return buf_printf(out, err, "\\x%02x", (unsigned)unit->point);
    if (unit->point < 0x80)
        return buf_printf(out, err, "^%c", (char)(unit->point ^ 0x40));
    return buf_printf(out, err, "<U+%04" PRIX32 ">", unit->point);
}

static int end_dim(struct visible_stream *stream, struct buf *out, struct error *err) {
    if (!stream->is_dim)
        return 0;
    stream->is_dim = false;
    stream->is_coloured = true; /* as when its own output is read again */
    return buf_append(out, dim_off, sizeof dim_off - 1, err);
}

static int end_colours(struct visible_stream *stream, struct buf *out, struct error *err) {
    if (!stream->is_coloured)
        return 0;
    stream->is_coloured = false;
    return buf_append(out, colours_off, sizeof colours_off - 1, err);
}

static bool switches_off(const char *sequence, size_t n) {
    return n == 3 || (n == 4 && sequence[2] == '0');
}

static int put_unit(struct visible_stream *stream, const char *text, const struct unit *unit,
                    struct buf *out, struct error *err) {
    if (unit->kind == UNIT_HIDDEN && !is_replaced(unit, stream->flags))
        return put_hidden(stream, unit, out, err);
    if (end_dim(stream, out, err))
        return -1;
    if (unit->kind == UNIT_HIDDEN)
        return put_hidden(stream, unit, out, err);
    if (unit->kind == UNIT_COLOUR && !(stream->flags & VISIBLE_COLOURS))
        return 0;
    if (unit->kind == UNIT_COLOUR)
        stream->is_coloured = !switches_off(text, unit->n);
    if (unit->kind == UNIT_LINE && end_colours(stream, out, err))
        return -1;
    return buf_append(out, text, unit->n, err);
}

/* Shows what is known of the text; returns how many bytes that was, or -1. */
static ptrdiff_t put_units(struct visible_stream *stream, const char *text, size_t n,
                           struct buf *out, struct error *err) {
    size_t i = 0;

    while (i < n) {
        struct unit unit = unit_at(text + i, n - i, stream->flags);

        if (unit.kind == UNIT_CUT)
            break;
        if (unit.kind == UNIT_PLAIN) { /* a stretch goes out in one piece */
            struct unit more;

            while (i + unit.n < n &&
                   (more = unit_at(text + i + unit.n, n - i - unit.n, stream->flags)).kind ==
                       UNIT_PLAIN)
                unit.n += more.n;
        }
        if (put_unit(stream, text + i, &unit, out, err))
            return -1;
        i += unit.n;
    }
    return (ptrdiff_t)i;
}

int visible_feed(struct visible_stream *stream, const char *bytes, size_t n, struct buf *out,
                 struct error *err) {
    ptrdiff_t taken;

    /* What was kept takes one byte after the other until it is known what it is. */
    while (stream->n_pending > 0 && n > 0) {
        stream->pending[stream->n_pending++] = *bytes++;
        n--;
        taken = put_units(stream, stream->pending, stream->n_pending, out, err);
        if (taken < 0)
            return -1;
        stream->n_pending -= (size_t)taken;
        memmove(stream->pending, stream->pending + taken, stream->n_pending);
    }
    if (n == 0)
        return 0;
    taken = put_units(stream, bytes, n, out, err);
    if (taken < 0)
        return -1;
    stream->n_pending = n - (size_t)taken;
    memcpy(stream->pending, bytes + taken, stream->n_pending);
    return 0;
}

int visible_end(struct visible_stream *stream, struct buf *out, struct error *err) {
    size_t i = 0;

    while (i < stream->n_pending) { /* the rest never comes: its first byte stands for itself */
        const unsigned char byte = (unsigned char)stream->pending[i];
        const struct unit unit = { UNIT_HIDDEN, 1, byte, byte >= 0x80 };
        ptrdiff_t taken;

        if (put_unit(stream, stream->pending + i, &unit, out, err))
            return -1;
        i++;
        taken = put_units(stream, stream->pending + i, stream->n_pending - i, out, err);
        if (taken < 0)
            return -1;
        i += (size_t)taken;
    }
    stream->n_pending = 0;
    return end_dim(stream, out, err) || end_colours(stream, out, err) ? -1 : 0;
}

int visible_append(struct buf *out, const char *text, size_t n, unsigned flags, struct error *err) {
    struct visible_stream stream = { .flags = flags };
    const size_t before = out->len;

    if (visible_feed(&stream, text, n, out, err) == 0 && visible_end(&stream, out, err) == 0)
        return 0;
    out->len = before;
    out->data[before] = '\0';
    return -1;
}

/* ---- columns ---- */

/* Tabs have the width of a blank here: what is measured has none. */
size_t visible_fit(const char *text, size_t n, size_t columns) {
    size_t i = 0;

    while (i < n) {
        size_t length = visible_colour_length(text + i, n - i), width = 0;

        if (length == 0) {
            length = utf8_length(text + i, n - i);
            width = length ? utf8_columns(utf8_point(text + i, length)) : 1;
            length = length ? length : 1;
        }
        if (width > columns)
            break;
        columns -= width;
        i += length;
    }
    return i;
}

size_t visible_columns(const char *text) {
    size_t columns = 0, n = strlen(text);

    for (size_t i = 0, length; i < n; i += length ? length : 1) {
        length = visible_colour_length(text + i, n - i);
        if (length == 0) {
            length = utf8_length(text + i, n - i);
            columns += length ? utf8_columns(utf8_point(text + i, length)) : 1;
        }
    }
    return columns;
}

const char *visible_text(struct arena *arena, const char *text, size_t columns) {
    static const char ellipsis[] = "\xe2\x80\xa6";
    const size_t n = text ? strlen(text) : 0;
    AUTO(buf) out = BUF_INIT(n * VISIBLE_GROWTH + VISIBLE_EXTRA);
    char *copy = arena_text(arena, text ? text : "", n);
    struct error err;
    size_t fits;

    for (char *c = copy; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
    if (visible_append(&out, copy, n, 0, &err))
        return ""; /* the buffer is as large as the text can become */
    fits = columns ? visible_fit(out.data, out.len, columns) : out.len;
    if (fits == out.len)
        return arena_text(arena, out.data, out.len);
    fits = visible_fit(out.data, out.len, columns - 1);
    return arena_printf(arena, "%.*s%s", (int)fits, out.data, ellipsis);
}
