/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes into lines, within bounded memory: the splitter behind `follow`, the tail that is
 * shown of a task that failed, and the text that a terminal can take.
 */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum {
    LINE_MOST = 64 * 1024, /* a longer line is cut into pieces of about this size */
    TAIL_BYTES = 8 * 1024,
    TAIL_LINES = 20,
};

/* Called with each line, without its line end. */
typedef void line_sink(void *context, const char *line, size_t n);

/* Keeps the beginning of a line until the rest comes. A zeroed struct is ready. */
struct lines {
    char *partial;
    size_t len, capacity;
    bool goes_on; /* while the sink is called: it has a piece, and more of the line comes */
};

void lines_feed(struct lines *lines, const char *bytes, size_t n, line_sink *sink, void *context);
/* Gives out what has no line end yet. */
void lines_flush(struct lines *lines, line_sink *sink, void *context);
void lines_release(struct lines *lines);

/* Copies whole lines, each behind the prefix, as many as fit; returns the bytes written and sets
 * *taken to those read. A line that has no end yet or is longer than LINE_MOST stops it. For
 * speed it copies more than it counts: LINES_SLACK bytes can be read from the prefix, and be
 * written behind the room. */
enum { LINES_SLACK = 64 };
size_t lines_prefix(const char *bytes, size_t n, const char *prefix, size_t prefix_len, char *out,
                    size_t room, size_t *taken);

/* The last TAIL_LINES lines of a text. */
void tail_lines(const char *text, size_t n, line_sink *sink, void *context);

/* Appends the line as a terminal would show it in the end, without what could control the terminal:
 * of parts that overwrite each other by CR the last one is shown, a backspace takes the character
 * before it away (never one before the line), and the rest is as of codec/visible.h, with those
 * flags. Grows at most as that does. */
MUST_CHECK int line_append_harmless(struct buf *out, const char *line, size_t n, unsigned flags,
                                    struct error *err);

#endif
