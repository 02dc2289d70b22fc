/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Amounts as people write them on the command line.
 *
 * An amount that decides what is removed, kept or shown has a unit: `gc --older 30` would otherwise
 * mean seconds to the program and days to the user. Only 0 needs none. An option whose help says
 * SECONDS takes plain numbers as such, and units too.
 */
#ifndef CLI_AMOUNTS_H
#define CLI_AMOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"

/* "500B", "64K", "64KiB", "1.5G", "0": bytes, up to so many. */
bool amount_bytes(const char *text, double most, uint64_t *out);

/* "10s", "5m", "1.5h", "2d", "3w", "0": a span of time, in microseconds. */
bool amount_span(const char *text, int64_t *out_us);

/* Whether the text is a number that only lacks its unit: for the message. */
bool amount_lacks_unit(const char *text);

/* An option that takes SECONDS: "90", or a span as above, from 0 to `most_s`. *out stays as it is
 * if the option is not given. Returns 0, or the exit status of misuse. */
MUST_CHECK int amount_seconds(const struct invocation *in, const char *option, double most_s,
                              double *out);

#endif
