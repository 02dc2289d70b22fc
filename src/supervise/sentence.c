/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/sentence.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"

enum { FRAME_MOST = 128 /* bytes of a file or function in a sentence */ };

static const char ellipsis[] = "…";

/* The last byte that can be kept of n, so that no character is cut and "…" still fits. */
static size_t cut(const char *text, size_t n, size_t most) {
    size_t kept = most;

    if (n <= most)
        return n;
    while (kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80)
        kept--;
    return kept;
}

void text_copy(char *out, size_t size, struct slice text) {
    size_t n;

    assert(size >= sizeof ellipsis);
    n = text.n < size ? text.n : cut(text.text, text.n, size - sizeof ellipsis);
    if (n)
        memcpy(out, text.text, n);
    memcpy(out + n, n < text.n ? ellipsis : "", n < text.n ? sizeof ellipsis : 1);
}

/* The last piece, of which no more fits than the room there is: "…" takes the place of its end, or,
 * where there is less room than that takes, of what stands before. */
static void say_last(struct sentence *sentence, struct slice text) {
    const size_t end = sentence->size - 1;

    assert(sentence->size >= sizeof ellipsis);
    memcpy(sentence->text + sentence->len, text.text, end - sentence->len);
    sentence->len = cut(sentence->text, end, sentence->size - sizeof ellipsis);
    memcpy(sentence->text + sentence->len, ellipsis, sizeof ellipsis);
    sentence->len += strlen(ellipsis);
    sentence->is_full = true;
}

/* Adds at most `most` bytes of the text to the sentence. */
void say_most(struct sentence *sentence, struct slice text, size_t most) {
    const size_t room = sentence->size - sentence->len;
    const size_t want = most + sizeof ellipsis;

    if (sentence->is_full)
        return;
    if (text.n >= room && want > room) {
        say_last(sentence, text);
        return;
    }
    text_copy(sentence->text + sentence->len, want, text);
    sentence->len += strlen(sentence->text + sentence->len);
}

void say(struct sentence *sentence, const char *text) {
    say_most(sentence, slice_of(text), sentence->size);
}

void say_number(struct sentence *sentence, const char *before, long number) {
    char text[64];

    snprintf(text, sizeof text, "%s%ld", before, number);
    say(sentence, text);
}

/* The file as the sentence shows it: its name; of a package's the path within the library. */
static struct slice short_file(struct slice file) {
    static const char *const roots[] = { "/site-packages/", "/dist-packages/", "lib/python3" };
    ptrdiff_t at = SLICE_NOWHERE;

    for (size_t i = 0; i < ARRAY_LEN(roots) && at == SLICE_NOWHERE; i++) {
        at = slice_find_last(file, roots[i]);
        if (at != SLICE_NOWHERE)
            file = slice_skip(file, (size_t)at + strlen(roots[i]));
    }
    if (at != SLICE_NOWHERE) {
        /* of "lib/python3.11/json/decoder.py" there is ".11/" left */
        const ptrdiff_t slash = slice_starts(file, ".") ? slice_find(file, "/") : SLICE_NOWHERE;

        return slash == SLICE_NOWHERE ? file : slice_skip(file, (size_t)slash + 1);
    }
    at = slice_find_last(file, "/");
    if (at > 0 && slice_starts(slice_skip(file, (size_t)at), "/__")) /* pkg/__init__.py */
        at = slice_find_last(slice_head(file, (size_t)at), "/");
    return slice_starts(file, "<") ? file : slice_skip(file, (size_t)(at + 1));
}

static void say_frame(struct sentence *sentence, const struct frame *frame) {
    say_most(sentence, short_file(frame->file), FRAME_MOST);
    say_number(sentence, ", line ", frame->line);
    if (frame->function.n && !slice_is(frame->function, "<module>")) {
        say(sentence, ", in ");
        say_most(sentence, frame->function, FRAME_MOST);
    }
}

/* " (train.py, line 41, in step; raised in json/decoder.py, line 355, in raw_decode)" */
void say_place(struct sentence *sentence, const struct frame *user, const struct frame *raised) {
    if (!user->line && !raised->line)
        return;
    say(sentence, " (");
    say_frame(sentence, user->line ? user : raised);
    if (user->line && raised->line &&
        (user->line != raised->line || !slice_equal(user->file, raised->file))) {
        say(sentence, "; raised in ");
        say_frame(sentence, raised);
    }
    say(sentence, ")");
}
