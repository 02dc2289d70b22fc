/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, enum error_code code, const char *fmt, ...) {
    va_list args;

    err->code = code;
    va_start(args, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    return -1;
}

static enum error_code code_from_errno(int errnum) {
    switch (errnum) {
    case ENOENT:
    case ESRCH: return ERROR_NOT_FOUND;
    case EACCES:
    case EPERM: return ERROR_DENIED;
    case EEXIST:
    case EBUSY: return ERROR_CONFLICT;
    case ENOSPC:
    case EMFILE:
    case ENFILE: return ERROR_EXHAUSTED;
    case ECONNREFUSED:
    case ETIMEDOUT: return ERROR_UNAVAILABLE;
    default: return ERROR_IO;
    }
}

/* Cuts what does not fit; a message is for reading, not for parsing. */
static void append(struct error *err, const char *text) {
    size_t used = strlen(err->message);
    size_t n = strnlen(text, sizeof err->message - 1 - used);

    memcpy(err->message + used, text, n);
    err->message[used + n] = '\0';
}

int error_set_errno(struct error *err, int errnum, const char *fmt, ...) {
    va_list args;

    err->code = code_from_errno(errnum);
    va_start(args, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    append(err, ": ");
    append(err, strerror(errnum));
    return -1;
}

int error_wrap(struct error *err, const char *fmt, ...) {
    const struct error cause = *err;
    va_list args;

    va_start(args, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    append(err, ": ");
    append(err, cause.message);
    return -1;
}
