/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task wrote, as lines of harmless text to look for causes in. Pure.
 *
 * The bytes may be anything: cut at the front, binary, coloured, drawn over by progress bars.
 * In the lines
 *   1. only printable UTF-8 is left: escape sequences and control bytes are gone, a tab is a blank,
 *      a byte that is no UTF-8 is a '?';
 *   2. a carriage return ends a line like a newline, so that a traceback which begins behind a
 *      progress bar is found;
 *   3. no line ends in a blank.
 * Only the last TRANSCRIPT_BYTES are looked at, so time and memory are bounded.
 */
#ifndef SUPERVISE_TRANSCRIPT_H
#define SUPERVISE_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>

enum { TRANSCRIPT_BYTES = 64 * 1024 };

/* A stretch of text that belongs to someone else; text[n] is not a NUL. */
struct slice {
    const char *text;
    size_t n;
};

struct transcript {
    char *text;
    struct slice *lines;
    size_t n_lines;
};

void transcript_init(struct transcript *transcript, const char *bytes, size_t n);
void transcript_release(struct transcript *transcript);

enum { SLICE_NOWHERE = -1 };

struct slice slice_of(const char *text);
bool slice_is(struct slice slice, const char *text);
bool slice_equal(struct slice a, struct slice b);
bool slice_starts(struct slice slice, const char *text);
bool slice_ends(struct slice slice, const char *text);
bool slice_has(struct slice slice, const char *text);
/* Where the text begins first or last, or SLICE_NOWHERE. */
ptrdiff_t slice_find(struct slice slice, const char *text);
ptrdiff_t slice_find_last(struct slice slice, const char *text);
/* Without the first n bytes, of which there may be fewer. */
struct slice slice_skip(struct slice slice, size_t n);
/* The first n bytes, of which there may be fewer. */
struct slice slice_head(struct slice slice, size_t n);
struct slice slice_trim(struct slice slice);

#endif
