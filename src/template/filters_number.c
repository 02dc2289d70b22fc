/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that make or change numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/filters.h"

enum { DIGITS_MOST = 323, DIGITS_LEAST = -308 }; /* beyond them rounding changes nothing, or all */

static int give_whole(struct render *render, int64_t value, struct value *out) {
    *out = known(node_int(value, render->place));
    return 0;
}

static int give_float(struct render *render, double value, struct value *out) {
    *out = known(node_float(value, render->place));
    return 0;
}

/* A text may spell a fraction: '42.7' gives 42. What is no number at all gives the default. */
FILTER(filter_int) {
    const struct node *input = &call->input.node;
    int64_t base, whole;
    double number = NAN;

    if (argument_whole(render, call, 1, 10, &base))
        return -1;
    if (base < 2 || base > 36)
        return fail(render, call->span, "the base of `int` is 2 to 36");
    if (value_is_whole(input))
        return give_whole(render, value_whole(input), out);
    if (input->kind == NODE_TEXT &&
        text_to_whole(input->text, input->count, (int)base, &whole) == 0)
        return give_whole(render, whole, out);
    if (input->kind == NODE_FLOAT)
        number = input->number;
    else if (input->kind == NODE_TEXT && text_to_double(input->text, input->count, &number))
        number = NAN;
    if (isnan(number)) {
        *out = known(call->args[0] ? *call->args[0] : node_int(0, render->place));
        return 0;
    }
    if (!(fabs(number) < 0x1p63))
        return fail(render, call->span, "this number is beyond 64 bits as a whole number");
    return give_whole(render, (int64_t)number, out);
}

FILTER(filter_float) {
    const struct node *input = &call->input.node;
    double number;

    if (value_is_number(input))
        return give_float(render, value_double(input), out);
    if (input->kind == NODE_TEXT && text_to_double(input->text, input->count, &number) == 0)
        return give_float(render, number, out);
    *out = known(call->args[0] ? *call->args[0] : node_float(0, render->place));
    return 0;
}

static double round_common(double number, int64_t precision) {
    char text[800];
    double unit;

    if (!isfinite(number) || precision > DIGITS_MOST)
        return number;
    if (precision < DIGITS_LEAST)
        return copysign(0.0, number);
    if (precision < 0) {
        unit = pow(10, (double)-precision);
        return nearbyint(number / unit) * unit;
    }
    /* printf rounds the exact value to the nearest, halves to even, as Python does */
    snprintf(text, sizeof text, "%.*f", (int)precision, number);
    return strtod(text, NULL);
}

/* A whole number to tens, hundreds …, halves to even. */
static int64_t round_whole(int64_t number, int64_t precision) {
    int64_t unit = 1, rest, lower;

    if (precision >= 0)
        return number;
    if (precision < -18)
        return 0;
    for (; precision < 0; precision++)
        unit *= 10;
    rest = number % unit;
    lower = number - rest;
    if (2 * llabs(rest) > unit || (2 * llabs(rest) == unit && lower / unit % 2 != 0))
        if (__builtin_add_overflow(lower, rest < 0 ? -unit : unit, &lower))
            return number - rest;
    return lower;
}

FILTER(filter_round) {
    const struct node *input = &call->input.node;
    struct node method;
    int64_t precision;
    double scale, scaled;

    if (argument_whole(render, call, 0, 0, &precision) ||
        argument_text(render, call, 1, "common", &method))
        return -1;
    if (!value_is_number(input))
        return fail(render, call->span, "`round` takes a number, and this is %s",
                    node_kind_name(input));
    if (strcmp(method.text, "common") == 0)
        return value_is_whole(input)
                   ? give_whole(render, round_whole(value_whole(input), precision), out)
                   : give_float(render, round_common(input->number, precision), out);
    scale = pow(10, (double)precision);
    scaled = value_double(input) * scale;
    if (!isfinite(scaled) || !(scale > 0) || !isfinite(scale))
        return fail(render, call->span, "this number cannot be rounded so");
    if (strcmp(method.text, "floor") == 0)
        return give_float(render, (floor(scaled) + 0.0) / scale, out);
    if (strcmp(method.text, "ceil") == 0)
        return give_float(render, (ceil(scaled) + 0.0) / scale, out);
    return fail(render, call->span, "the method of `round` is common, ceil or floor");
}

FILTER(filter_abs) {
    const struct node *input = &call->input.node;

    if (!value_is_number(input))
        return fail(render, call->span, "`abs` takes a number, and this is %s",
                    node_kind_name(input));
    if (input->kind == NODE_FLOAT)
        return give_float(render, fabs(input->number), out);
    if (value_whole(input) == INT64_MIN)
        return fail(render, call->span, "the result is a whole number beyond 64 bits");
    return give_whole(render, llabs(value_whole(input)), out);
}
