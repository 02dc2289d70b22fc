/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sentence, written piece by piece into an array of the caller's. What does not fit is left out
 * and shown as "…", after which nothing follows; no character is ever cut in two. The text always
 * ends with a NUL.
 */
#ifndef SUPERVISE_SENTENCE_H
#define SUPERVISE_SENTENCE_H

#include "supervise/traceback.h"
#include "supervise/transcript.h"

struct sentence {
    char *text;
    size_t size, len; /* the size is at least 4 */
    bool is_full;     /* it ends with "…": more did not fit */
};

/* Puts the text into the array of `size` bytes, which is at least 4. */
void text_copy(char *out, size_t size, struct slice text);

void say(struct sentence *sentence, const char *text);
/* Of the text at most `most` bytes. */
void say_most(struct sentence *sentence, struct slice text, size_t most);
void say_number(struct sentence *sentence, const char *before, long number);
/* " (train.py, line 41, in step; raised in json/decoder.py, line 355, in raw_decode)"; nothing when
 * no frame is known. */
void say_place(struct sentence *sentence, const struct frame *user, const struct frame *raised);

#endif
