/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracebacks of CPython (3.7 to 3.13) in what a task wrote. Pure.
 *
 *   worker 1: Traceback (most recent call last):           the prefix "worker 1: " is that of a log
 *   worker 1:   File "/home/ada/train.py", line 41, in step
 *   worker 1:     loss = model(x)
 *   worker 1:            ^^^^^^^^
 *   worker 1: ValueError: shapes do not match              the exception
 *
 * A prefix may hold numbers that change (a time); lines without it are someone else's and are
 * passed over. A traceback whose head was cut off is read from its first whole frame. One without
 * its last line, the exception, is none.
 */
#ifndef SUPERVISE_TRACEBACK_H
#define SUPERVISE_TRACEBACK_H

#include <stdint.h>

#include "supervise/transcript.h"

/* Of more tracebacks than this the last are kept. */
enum { TRACEBACKS_MOST = 16 };

struct frame {
    struct slice file, function; /* no function: the place of a syntax error */
    uint32_t line;               /* 0: there is no frame */
};

/* Whose end the exception was. */
enum traceback_owner {
    TRACEBACK_OF_PROGRAM,
    TRACEBACK_OF_THREAD, /* the program went on */
    TRACEBACK_OF_CHILD,  /* of a process that multiprocessing made: the program went on */
    TRACEBACK_OF_NOBODY, /* "Exception ignored in", a logging error, a callback */
};

enum traceback_link {
    LINK_NONE,
    LINK_CAUSED, /* raised from the one before */
    LINK_DURING, /* raised while the one before was handled */
    LINK_MEMBER, /* one of those in the exception group before */
};

struct traceback {
    enum traceback_owner owner;
    struct slice owner_name; /* of the thread or child */
    enum traceback_link link;
    int linked; /* the index of the one that `link` speaks of, or -1 */

    struct slice type;         /* "json.decoder.JSONDecodeError" */
    struct slice message;      /* its first line; may be empty */
    struct slice message_more; /* the next line, where the first promises one ("…:") */
    struct frame user;         /* the innermost frame that is neither library nor made text */
    struct frame raised;       /* the innermost frame */

    struct slice prefix;
    size_t head, end; /* lines: where it begins; the exception's line */
};

struct tracebacks {
    struct traceback list[TRACEBACKS_MOST]; /* in the order of their heads */
    int n;
};

void tracebacks_find(const struct transcript *transcript, struct tracebacks *out);

/* The frame of a line such as `File "train.py", line 41, in step` (faulthandler leaves out the
 * second comma); false if it is none. */
bool call_site_read(struct slice line, struct frame *out);

/* Is it a file that the user did not write: the standard library, an installed package, text that
 * was compiled in memory? */
bool frame_is_library(const struct frame *frame);

#endif
