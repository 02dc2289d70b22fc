/* SPDX-License-Identifier: Apache-2.0 */
/* The operators between two values, as rows. Numbers follow Python: / is a fraction, // and % round
 * down, a whole number beyond 64 bits is an error and never wraps. */
#include <math.h>
#include <string.h>

#include "template/syntax.h"

static int fail_operands(struct render *render, struct span span, const char *sign,
                         const struct node *a, const struct node *b) {
    fail(render, span, "`%s` does not work between %s and %s", sign, node_kind_name(a),
         node_kind_name(b));
    if (strcmp(sign, "+") == 0 && (a->kind == NODE_TEXT || b->kind == NODE_TEXT))
        return fail_help(render, "`~` joins values of any kind as text");
    if (a->kind == NODE_TEXT || b->kind == NODE_TEXT)
        return fail_help(render, "make a number of a text with `| int` or `| float`");
    return -1;
}

static int fail_overflow(struct render *render, struct span span) {
    fail(render, span, "the result is a whole number beyond 64 bits");
    return fail_help(render, "write one side as a float, such as 2.0");
}

static int fail_zero(struct render *render, struct span span) {
    return fail(render, span, "division by zero");
}

static bool both_numbers(const struct node *a, const struct node *b) {
    return value_is_number(a) && value_is_number(b);
}

static bool both_whole(const struct node *a, const struct node *b) {
    return value_is_whole(a) && value_is_whole(b);
}

static int whole(struct render *render, int64_t value, struct node *out) {
    *out = node_int(value, render->place);
    return 0;
}

static int fraction(struct render *render, double value, struct node *out) {
    *out = node_float(value, render->place);
    return 0;
}

static int truth(struct render *render, bool value, struct node *out) {
    *out = node_bool(value, render->place);
    return 0;
}

static int join_texts(struct render *render, struct span span, const struct node *a,
                      const struct node *b, struct node *out) {
    AUTO(buf) joined = BUF_INIT(render->output_max);
    struct error err;

    if (buf_append(&joined, a->text, a->count, &err) ||
        buf_append(&joined, b->text, b->count, &err))
        return fail(render, span, "the text grows beyond the %zu bytes allowed",
                    render->output_max);
    return make_text(render, span, joined.data, joined.len, out);
}

static int join_lists(struct render *render, struct span span, const struct node *a,
                      const struct node *b, struct node *out) {
    if (make_list(render, span, (size_t)a->count + b->count, out))
        return -1;
    if (a->count)
        memcpy(out->items, a->items, a->count * sizeof *a->items);
    if (b->count)
        memcpy(out->items + a->count, b->items, b->count * sizeof *b->items);
    out->flags = a->flags & b->flags & VALUE_TUPLE;
    return 0;
}

int operator_add(struct render *render, struct span span, const struct node *a,
                 const struct node *b, struct node *out) {
    int64_t sum;

    if (a->kind == NODE_TEXT && b->kind == NODE_TEXT)
        return join_texts(render, span, a, b, out);
    if (a->kind == NODE_LIST && b->kind == NODE_LIST)
        return join_lists(render, span, a, b, out);
    if (!both_numbers(a, b))
        return fail_operands(render, span, "+", a, b);
    if (!both_whole(a, b))
        return fraction(render, value_double(a) + value_double(b), out);
    if (__builtin_add_overflow(value_whole(a), value_whole(b), &sum))
        return fail_overflow(render, span);
    return whole(render, sum, out);
}

static int subtract(struct render *render, struct span span, const struct node *a,
                    const struct node *b, struct node *out) {
    int64_t difference;

    if (!both_numbers(a, b))
        return fail_operands(render, span, "-", a, b);
    if (!both_whole(a, b))
        return fraction(render, value_double(a) - value_double(b), out);
    if (__builtin_sub_overflow(value_whole(a), value_whole(b), &difference))
        return fail_overflow(render, span);
    return whole(render, difference, out);
}

/* A text or a list, n times over. */
static int repeat(struct render *render, struct span span, const struct node *what, int64_t n,
                  struct node *out) {
    size_t times = n < 0 ? 0 : (size_t)n, count = what->count, most;
    char *text;

    most = what->kind == NODE_TEXT ? render->output_max : render->steps_left;
    if (count && times > most / count)
        return fail(render, span, "repeated to more than the limit of %zu %s", most,
                    what->kind == NODE_TEXT ? "bytes" : "steps");
    if (what->kind == NODE_LIST) {
        if (make_list(render, span, count * times, out))
            return -1;
        for (size_t i = 0; i < count * times; i++)
            out->items[i] = what->items[i % count];
        out->flags = what->flags & VALUE_TUPLE;
        return 0;
    }
    if (spend_text(render, span, count * times) ||
        scratch_array(render, span, count * times + 1, 1, &text))
        return -1;
    for (size_t i = 0; count && i < times; i++)
        memcpy(text + i * count, what->text, count);
    *out = node_text(text, count * times, render->place);
    return 0;
}

static bool is_sequence(const struct node *value) {
    return value->kind == NODE_TEXT || value->kind == NODE_LIST;
}

static int multiply(struct render *render, struct span span, const struct node *a,
                    const struct node *b, struct node *out) {
    int64_t product;

    if (is_sequence(a) && value_is_whole(b))
        return repeat(render, span, a, value_whole(b), out);
    if (is_sequence(b) && value_is_whole(a))
        return repeat(render, span, b, value_whole(a), out);
    if (!both_numbers(a, b))
        return fail_operands(render, span, "*", a, b);
    if (!both_whole(a, b))
        return fraction(render, value_double(a) * value_double(b), out);
    if (__builtin_mul_overflow(value_whole(a), value_whole(b), &product))
        return fail_overflow(render, span);
    return whole(render, product, out);
}

static bool is_zero(const struct node *number) {
    return !value_truth(number);
}

static int divide(struct render *render, struct span span, const struct node *a,
                  const struct node *b, struct node *out) {
    if (!both_numbers(a, b))
        return fail_operands(render, span, "/", a, b);
    if (is_zero(b))
        return fail_zero(render, span);
    if (both_whole(a, b)) /* whole numbers beyond 53 bits are rounded once, at the end */
        return fraction(render, (double)((long double)value_whole(a) / (long double)value_whole(b)),
                        out);
    return fraction(render, value_double(a) / value_double(b), out);
}

/* The remainder takes the sign of the divisor, and the quotient is rounded down. */
static double float_modulo(double a, double b) {
    double rest = fmod(a, b);

    if (rest < 0 || rest > 0)
        return (b < 0) != (rest < 0) ? rest + b : rest;
    return isnan(rest) ? rest : copysign(0.0, b);
}

static double float_floor_divide(double a, double b) {
    double quotient, floored, rest = fmod(a, b);

    if (isnan(rest))
        return rest;
    quotient = (a - rest) / b;
    if ((rest < 0 || rest > 0) && (b < 0) != (rest < 0))
        quotient -= 1.0;
    if (!(quotient < 0 || quotient > 0))
        return copysign(0.0, a / b);
    floored = floor(quotient);
    return quotient - floored > 0.5 ? floored + 1.0 : floored;
}

static int floor_divide(struct render *render, struct span span, const struct node *a,
                        const struct node *b, struct node *out) {
    int64_t x, y;

    if (!both_numbers(a, b))
        return fail_operands(render, span, "//", a, b);
    if (is_zero(b))
        return fail_zero(render, span);
    if (!both_whole(a, b))
        return fraction(render, float_floor_divide(value_double(a), value_double(b)), out);
    x = value_whole(a);
    y = value_whole(b);
    if (x == INT64_MIN && y == -1)
        return fail_overflow(render, span);
    return whole(render, x / y - (x % y != 0 && (x < 0) != (y < 0)), out);
}

static int modulo(struct render *render, struct span span, const struct node *a,
                  const struct node *b, struct node *out) {
    int64_t rest;

    if (a->kind == NODE_TEXT) {
        bool tuple = b->kind == NODE_LIST && b->flags & VALUE_TUPLE;

        return text_format(render, span, a, tuple ? b->items : b, tuple ? b->count : 1, out);
    }
    if (!both_numbers(a, b))
        return fail_operands(render, span, "%", a, b);
    if (is_zero(b))
        return fail_zero(render, span);
    if (!both_whole(a, b))
        return fraction(render, float_modulo(value_double(a), value_double(b)), out);
    rest = value_whole(b) == -1 ? 0 : value_whole(a) % value_whole(b);
    return whole(render, rest && (rest < 0) != (value_whole(b) < 0) ? rest + value_whole(b) : rest,
                 out);
}

static int whole_power(struct render *render, struct span span, int64_t base, int64_t exponent,
                       struct node *out) {
    int64_t result = 1;

    while (exponent > 0) {
        if (exponent & 1 && __builtin_mul_overflow(result, base, &result))
            return fail_overflow(render, span);
        exponent >>= 1;
        if (exponent && __builtin_mul_overflow(base, base, &base))
            return fail_overflow(render, span);
    }
    return whole(render, result, out);
}

static int power(struct render *render, struct span span, const struct node *a,
                 const struct node *b, struct node *out) {
    double base, exponent, result;

    if (!both_numbers(a, b))
        return fail_operands(render, span, "**", a, b);
    if (both_whole(a, b) && value_whole(b) >= 0)
        return whole_power(render, span, value_whole(a), value_whole(b), out);
    base = value_double(a);
    exponent = value_double(b);
    if (is_zero(a) && exponent < 0)
        return fail_zero(render, span);
    result = pow(base, exponent);
    if (isnan(result) && !isnan(base) && !isnan(exponent))
        return fail(render, span, "a fractional power of a negative number is not a real number");
    if (isinf(result) && isfinite(base) && isfinite(exponent))
        return fail(render, span, "the result is too large");
    return fraction(render, result, out);
}

static int concatenate(struct render *render, struct span span, const struct node *a,
                       const struct node *b, struct node *out) {
    struct node left, right;

    if (value_text(render, span, a, &left) || value_text(render, span, b, &right))
        return -1;
    return join_texts(render, span, &left, &right, out);
}

static int equal(struct render *render, struct span span, const struct node *a,
                 const struct node *b, struct node *out) {
    bool result;

    if (value_equal(render, span, a, b, &result))
        return -1;
    return truth(render, result, out);
}

static int not_equal(struct render *render, struct span span, const struct node *a,
                     const struct node *b, struct node *out) {
    if (equal(render, span, a, b, out))
        return -1;
    out->truth = !out->truth;
    return 0;
}

static int less(struct render *render, struct span span, const struct node *a, const struct node *b,
                struct node *out) {
    int sign;

    return value_order(render, span, a, b, &sign) ? -1 : truth(render, sign == -1, out);
}

static int less_or_equal(struct render *render, struct span span, const struct node *a,
                         const struct node *b, struct node *out) {
    int sign;

    return value_order(render, span, a, b, &sign) ? -1 : truth(render, sign <= 0, out);
}

static int greater(struct render *render, struct span span, const struct node *a,
                   const struct node *b, struct node *out) {
    return less(render, span, b, a, out);
}

static int greater_or_equal(struct render *render, struct span span, const struct node *a,
                            const struct node *b, struct node *out) {
    return less_or_equal(render, span, b, a, out);
}

static int is_in(struct render *render, struct span span, const struct node *a,
                 const struct node *b, struct node *out) {
    bool result;

    return value_contains(render, span, b, a, &result) ? -1 : truth(render, result, out);
}

static int is_not_in(struct render *render, struct span span, const struct node *a,
                     const struct node *b, struct node *out) {
    bool result;

    return value_contains(render, span, b, a, &result) ? -1 : truth(render, !result, out);
}

static const struct operator_row rows[] = {
    { "or", PRECEDENCE_LOWEST, EXPR_OR, NULL },
    { "and", 2, EXPR_AND, NULL },
    { "==", PRECEDENCE_COMPARE, EXPR_COMPARE, equal },
    { "!=", PRECEDENCE_COMPARE, EXPR_COMPARE, not_equal },
    { "<", PRECEDENCE_COMPARE, EXPR_COMPARE, less },
    { "<=", PRECEDENCE_COMPARE, EXPR_COMPARE, less_or_equal },
    { ">", PRECEDENCE_COMPARE, EXPR_COMPARE, greater },
    { ">=", PRECEDENCE_COMPARE, EXPR_COMPARE, greater_or_equal },
    { "in", PRECEDENCE_COMPARE, EXPR_COMPARE, is_in },
    { "not in", PRECEDENCE_COMPARE, EXPR_COMPARE, is_not_in },
    { "+", 5, EXPR_BINARY, operator_add },
    { "-", 5, EXPR_BINARY, subtract },
    { "~", 6, EXPR_BINARY, concatenate },
    { "*", 7, EXPR_BINARY, multiply },
    { "/", 7, EXPR_BINARY, divide },
    { "//", 7, EXPR_BINARY, floor_divide },
    { "%", 7, EXPR_BINARY, modulo },
    { "**", 8, EXPR_BINARY, power },
};

const struct operator_row *operator_find(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}
