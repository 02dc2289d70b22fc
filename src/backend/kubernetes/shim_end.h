/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a shim says of the end of its task: the frame ENDED, and the termination message of its
 * container (docs/shim.md). Pure, and ready for any bytes: where there is no shim, a message is
 * whatever a program wrote.
 */
#ifndef BACKEND_KUBERNETES_SHIM_END_H
#define BACKEND_KUBERNETES_SHIM_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHIM_END_MAX = 4096, SHIM_END_WHY = 240 };

enum shim_end_kind {
    SHIM_EXITED,      /* detail: the exit code */
    SHIM_SIGNALLED,   /* detail: the signal */
    SHIM_NOT_STARTED, /* detail: errno, or 0; why says what failed */
    SHIM_GAVE_UP,     /* the shim ended the task; why says what for */
};

struct shim_end {
    enum shim_end_kind kind;
    int detail;
    char why[SHIM_END_WHY];
    uint64_t log;    /* bytes of the whole log */
    uint64_t lost;   /* of those, that the pod could not keep: never more */
    uint64_t unsent; /* of log, spool and outputs, that nobody has confirmed to have */
};

/* False: it is no such message, and *out is unchanged. */
bool shim_end_read(const char *bytes, size_t n, struct shim_end *out);

#endif
