/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/amounts.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

#define SPAN_MOST_S 1e11 /* three thousand years */

/* A number from 0, as people write it: no sign, no hexadecimal digits, no "inf". */
static bool read_number(const char *text, double *out, const char **unit) {
    char *end;

    if (!isdigit((unsigned char)text[text[0] == '.']) || text[1] == 'x' || text[1] == 'X')
        return false;
    errno = 0;
    *out = strtod(text, &end);
    *unit = end;
    return !errno && isfinite(*out);
}

bool amount_lacks_unit(const char *text) {
    const char *unit;
    double number;

    return read_number(text, &number, &unit) && *unit == '\0' && number > 0;
}

bool amount_bytes(const char *text, double most, uint64_t *out) {
    static const char units[] = "BKMGT";
    const char *unit, *end;
    double size;

    if (!read_number(text, &size, &end) || amount_lacks_unit(text))
        return false;
    unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        for (const char *u = units + 1; u <= unit; u++)
            size *= 1024;
        end += unit > units && strcmp(end + 1, "iB") == 0 ? 3 : 1;
    }
    if (*end || size > most)
        return false;
    *out = (uint64_t)size;
    return true;
}

/* Seconds of a number with a unit. */
static bool read_span(const char *text, double *seconds) {
    static const struct {
        char unit;
        double seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 7 * 86400 } };
    const char *end;
    double number;

    if (!read_number(text, &number, &end) || amount_lacks_unit(text))
        return false;
    if (*end == '\0') {
        *seconds = 0;
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (*end == units[i].unit && end[1] == '\0' && number * units[i].seconds <= SPAN_MOST_S) {
            *seconds = number * units[i].seconds;
            return true;
        }
    return false;
}

bool amount_span(const char *text, int64_t *out_us) {
    double seconds;

    if (!read_span(text, &seconds))
        return false;
    *out_us = (int64_t)(seconds * 1e6);
    return true;
}

int amount_seconds(const struct invocation *in, const char *option, double most_s, double *out) {
    const char *text = invocation_value(in, option), *unit;
    double seconds;

    if (!text)
        return 0;
    if ((amount_lacks_unit(text) ? !read_number(text, &seconds, &unit)
                                 : !read_span(text, &seconds)) ||
        seconds > most_s)
        return invocation_misuse(in,
                                 "--%s takes seconds from 0 to %.0f, or a time such as 90s, 5m or "
                                 "1h, not '%s'",
                                 option, most_s, text);
    *out = seconds;
    return 0;
}
