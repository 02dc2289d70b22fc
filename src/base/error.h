/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: what went wrong, in words the user can act on, and of which kind.
 *
 * A function that can fail returns int, takes `struct error *err` last, and
 * keeps one promise:
 *
 *   returns  0: it did what it says; *err was not touched.
 *   returns -1: it had no effect; *err says why; out-parameters are unchanged.
 *
 * There is no third outcome. "Not found" that the caller expects is an answer,
 * not an error: return it through an out-parameter or an enum.
 *
 * The text lives inside the struct, so failing never allocates and an error
 * needs no cleanup. `err` is never NULL.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/attr.h"

enum error_code {
    ERROR_NONE,
    ERROR_INVALID, /* the request is wrong; retrying it unchanged is useless */
    ERROR_NOT_FOUND,
    ERROR_CONFLICT, /* right request, wrong moment: someone changed it first */
    ERROR_DENIED,
    ERROR_EXHAUSTED,   /* a limit of ours was hit: size, quota, depth */
    ERROR_UNAVAILABLE, /* the other side is down or slow; retrying may work */
    ERROR_IO,
};

struct error {
    enum error_code code;
    char message[480];
};

/* All three return -1, so that `return error_set(…)` is the whole error path. */
int error_set(struct error *err, enum error_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
int error_set_errno(struct error *err, int errnum, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts context in front: "cannot load job.yaml: line 7: gpus: not a number". */
int error_wrap(struct error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
