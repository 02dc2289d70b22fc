/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts as people write them on the command line. */
#ifndef CLI_AMOUNTS_H
#define CLI_AMOUNTS_H

#include <stdbool.h>
#include <stdint.h>

/* "500", "64K", "64KiB", "1.5G": bytes, up to so many. */
bool amount_bytes(const char *text, double most, uint64_t *out);

/* "90", "10s", "5m", "1.5h", "2d", "3w": a span of time, in microseconds. */
bool amount_span(const char *text, int64_t *out_us);

#endif
