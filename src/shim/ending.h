/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a task ended, and the termination message that says so (docs/shim.md). Pure but for
 * ending_write.
 */
#ifndef SHIM_ENDING_H
#define SHIM_ENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ENDING_MAX = 4096, ENDING_OWN_FAILURE = 125 };

struct ending {
    bool has_run;        /* else `refused` or `error` says why not */
    int status;          /* as wait gives it, where it has run */
    int error;           /* errno of a command that could not be executed */
    const char *refused; /* why it was not even tried; NULL */
    const char *gave_up; /* why the shim ended it; NULL */
    uint64_t log, lost, unsent;
};

/* The exit code of the shim. */
int ending_code(const struct ending *ending);

/* Writes one JSON object, ended by NUL; returns its length. */
size_t ending_print(const struct ending *ending, char out[static ENDING_MAX]);

/* Puts the message into the file; a file that does not take it is no reason to fail. */
void ending_write(const char *path, const char *message);

#endif
