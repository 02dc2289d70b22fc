/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fewest digits that read back as value: "d.ddde±xx" taken apart. */
static int shortest_digits(double value, char digits[18], int *exponent) {
    char text[40];
    int n = 0;

    /* Fifteen digits always survive, save where a number has lost its own: below DBL_MIN. */
    for (int precision = value < DBL_MIN ? 0 : 14; precision <= 16; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    for (const char *p = text; *p != 'e'; p++)
        if (*p != '.')
            digits[n++] = *p;
    *exponent = atoi(strchr(text, 'e') + 1);
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return n;
}

size_t number_format(double value, char out[NUMBER_TEXT_MAX]) {
    const char *sign = signbit(value) ? "-" : "";
    char digits[18];
    int n, exponent, length;

    if (isnan(value))
        return (size_t)snprintf(out, NUMBER_TEXT_MAX, "nan");
    if (isinf(value))
        return (size_t)snprintf(out, NUMBER_TEXT_MAX, "%sinf", sign);
    n = shortest_digits(fabs(value), digits, &exponent);
    if (exponent < -4 || exponent >= 16)
        length = snprintf(out, NUMBER_TEXT_MAX, "%s%c%s%se%c%02d", sign, digits[0],
                          n > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+', abs(exponent));
    else if (exponent < 0)
        length = snprintf(out, NUMBER_TEXT_MAX, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
    else if (n <= exponent + 1)
        length = snprintf(out, NUMBER_TEXT_MAX, "%s%s%.*s.0", sign, digits, exponent + 1 - n,
                          "0000000000000000");
    else
        length = snprintf(out, NUMBER_TEXT_MAX, "%s%.*s.%s", sign, exponent + 1, digits,
                          digits + exponent + 1);
    return (size_t)length;
}
