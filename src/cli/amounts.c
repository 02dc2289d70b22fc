/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/amounts.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

#define SPAN_MOST_S 1e11 /* three thousand years */

bool amount_bytes(const char *text, double most, uint64_t *out) {
    static const char units[] = "KMGT";
    const char *unit;
    double size;
    char *end;

    errno = 0;
    size = strtod(text, &end);
    if (!isdigit((unsigned char)text[0]) || errno || !isfinite(size))
        return false;
    unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        for (const char *u = units; u <= unit; u++)
            size *= 1024;
        end += strcmp(end + 1, "iB") == 0 ? 3 : 1;
    }
    if (*end || size > most)
        return false;
    *out = (uint64_t)size;
    return true;
}

bool amount_span(const char *text, int64_t *out_us) {
    static const struct {
        char unit;
        double seconds;
    } units[] = { { '\0', 1 },   { 's', 1 },     { 'm', 60 },
                  { 'h', 3600 }, { 'd', 86400 }, { 'w', 7 * 86400 } };
    char *end;
    const double number = strtod(text, &end);

    if (end == text || !isdigit((unsigned char)text[0]) || !isfinite(number))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (*end == units[i].unit && (*end == '\0' || end[1] == '\0') &&
            number * units[i].seconds <= SPAN_MOST_S) {
            *out_us = (int64_t)(number * units[i].seconds * 1e6);
            return true;
        }
    return false;
}
