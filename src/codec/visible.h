/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes text that others wrote safe to show: nothing in it can control a terminal or change the
 * direction of reading. Pure. The only place that decides what a reader gets to see of a control.
 *
 * Printable characters of valid UTF-8 and tabs pass; colour sequences (SGR, "ESC [ 1;31 m") and
 * newlines pass if the flags allow them. A colour sequence has at most 16 numbers of 3 digits,
 * which is enough for all that terminals know; a longer one is shown as text. All else is shown as
 * text: a control as ^X (ESC is ^[), a byte that is no UTF-8 as \xNN, a hidden character
 * (utf8_is_hidden) as <U+202E>.
 *
 * Laws:
 *   1. The output is valid UTF-8 without hidden characters, except for tabs, newlines if allowed,
 *      and ESC as the first byte of a complete colour sequence if allowed.
 *   2. A colour that is on at the end of a line, or of the text, is switched off there.
 *   3. Applied to its own output with the same flags, it changes nothing.
 *   4. The output has at most VISIBLE_GROWTH bytes for each byte of input, and VISIBLE_EXTRA.
 *   5. Of a stream, the output does not depend on where the input is cut into pieces.
 */
#ifndef CODEC_VISIBLE_H
#define CODEC_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"

enum visible_flags {
    VISIBLE_COLOURS = 1, /* colour sequences pass */
    VISIBLE_LINES = 2,   /* newlines pass */
    /* With VISIBLE_COLOURS: what stands for a control is dim, so that it differs from text that
     * looks the same. */
    VISIBLE_DIM = 4,
    VISIBLE_BARE = 32, /* colour sequences are left out */
    /* For readers whose character set is not UTF-8: lines, bars and dots of charts become ASCII,
     * of the same width; with VISIBLE_ASCII every other character too, as <U+00E9>. */
    VISIBLE_ASCII_DRAWINGS = 8,
    VISIBLE_ASCII = 16 | VISIBLE_ASCII_DRAWINGS,
};

enum {
    VISIBLE_GROWTH = 9,
    VISIBLE_EXTRA = 16,
    VISIBLE_PENDING_MOST = 72,
};

/* Appends the text. On failure the buffer stays as it was. */
MUST_CHECK int visible_append(struct buf *out, const char *text, size_t n, unsigned flags,
                              struct error *err);

/* The same for a text that comes in pieces. Zeroed except for the flags it is ready; what may be
 * the beginning of a sequence or a character is kept until the rest comes, or the end. */
struct visible_stream {
    unsigned flags;
    char pending[VISIBLE_PENDING_MOST];
    size_t n_pending;
    bool is_coloured, is_dim;
};
MUST_CHECK int visible_feed(struct visible_stream *stream, const char *bytes, size_t n,
                            struct buf *out, struct error *err);
MUST_CHECK int visible_end(struct visible_stream *stream, struct buf *out, struct error *err);

/* A text for one line of a table or a message: blanks for newlines and tabs, no colours; at most
 * `columns` columns, the last of which is an ellipsis if the text is cut. 0: all of it. "" for
 * NULL. */
const char *visible_text(struct arena *arena, const char *text, size_t columns);

/* Of text that is visible already: its columns, without the colour sequences in it; and how many
 * bytes of it fit into so many columns. */
size_t visible_columns(const char *text);
size_t visible_fit(const char *text, size_t n, size_t columns);

/* The length of the colour sequence at the start, or 0. */
size_t visible_colour_length(const char *text, size_t n);

#endif
