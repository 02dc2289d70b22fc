/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that a shim gets, from its supervisor and from Horovod's ranks: their head, their
 * body and the lines in it. Pure, bounded, and ready for any bytes; what is doubtful in a head
 * (two lengths, a bare line feed) is refused, because a proxy in front may have read it otherwise.
 */
#ifndef SHIM_REQUEST_H
#define SHIM_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REQUEST_HEAD_MAX = 16 << 10,
    REQUEST_BODY_MAX = 1 << 20, /* of a request to the supervisor's port, and of a chunk */
    REQUEST_METHOD_MAX = 15,
    REQUEST_TARGET_MAX = 1023,
    REQUEST_KEY_MAX = 64,
};

struct request {
    char method[REQUEST_METHOD_MAX + 1];
    char target[REQUEST_TARGET_MAX + 1]; /* the path, and after it the query */
    const char *query;                   /* in target; "" where there is none */
    char key[REQUEST_KEY_MAX + 1];       /* "" where there is none */
    bool is_chunked, wants_continue, closes;
    uint64_t length; /* of the body, where it is not chunked; who takes it has the bound */
};

/* Reads a head at the start of the bytes, of which `seen` were there the last time. Returns how
 * many bytes it has, 0: more are needed; or minus the status to answer with, after which the
 * connection is of no use. */
int request_read(const char *bytes, size_t n, size_t seen, struct request *out);

/* The number of "number=<digits>" in the query; -1 if there is none. */
int request_number(const struct request *request);

/* A body, as its bytes come. */
struct body {
    enum body_state {
        BODY_DATA,
        BODY_SIZE,     /* the size of a chunk */
        BODY_SIZE_END, /* the rest of that line */
        BODY_DATA_END, /* the line end after a chunk */
        BODY_TRAILER,
        BODY_DONE,
        BODY_WRONG,
    } state;
    bool is_chunked;
    uint64_t left;
    unsigned line; /* bytes of the present line */
};

void body_begin(struct body *body, const struct request *request);

/* Takes bytes, and gives the part of them that is content, which may be empty. Returns how many it
 * took: all but at the end, and after what is wrong. */
size_t body_take(struct body *body, const char *bytes, size_t n, const char **content,
                 size_t *content_n);

/* A line of a body: NAME OFFSET. */
struct offset_line {
    const char *name; /* into the body; not ended by NUL */
    size_t name_n;
    uint64_t offset;
};

/* Takes the line at *at, which moves behind it. Returns 1, 0: there is none, -1: that is none. */
int offset_line_next(const char **at, const char *end, struct offset_line *out);

#endif
