/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP request, from bytes that anybody may have sent. Pure.
 *
 * Only what is asked for here is understood: a body has a Content-Length, or there is none. What is
 * ambiguous (two lengths, a transfer coding) is no request.
 */
#ifndef SHIM_HEAD_H
#define SHIM_HEAD_H

#include <stddef.h>
#include <stdint.h>

enum {
    HEAD_MAX = 8192,
    HEAD_METHOD_MAX = 15,
    HEAD_PATH_MAX = 1023,
};

struct head {
    char method[HEAD_METHOD_MAX + 1];
    char path[HEAD_PATH_MAX + 1];
    uint64_t body; /* bytes that follow the head */
};

/* Reads the head at the start of the bytes. Returns how many bytes it has, 0: more are needed, or
 * the negative of a status of HTTP: it is refused with that. */
long head_read(const char *bytes, size_t n, struct head *out);

#endif
