/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a command fails: said on standard error, and remembered, so that a command with `--json` that
 * fails before it prints its result prints one JSON object with the error instead (docs/json.md).
 * A script then always has JSON to read.
 */
#ifndef CLI_FAILURE_H
#define CLI_FAILURE_H

#include <stdbool.h>

#include "codec/diag.h"

/* Prints "myelin: <what>" to standard error. The first one that is said is the error. */
void complain(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Prints diagnostics to standard error, in colours on a terminal. */
void complain_diags(const struct diags *diags, const struct sources *sources);

/* The sink of every JSON value for standard output (codec/json.h): it notes that there is one. */
int json_to_stdout(void *unused, const char *bytes, size_t n, struct error *err);

/* The error as JSON to standard output, unless a value has been printed there. */
void failure_print_json(int exit_status);

#endif
