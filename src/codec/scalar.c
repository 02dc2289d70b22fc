/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/scalar.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 400 }; /* of a number; longer ones are text */

static const struct {
    const char *word;
    enum node_kind kind;
    bool truth;
    double number;
} words[] = {
    { "", NODE_NULL, false, 0 },           { "~", NODE_NULL, false, 0 },
    { "null", NODE_NULL, false, 0 },       { "Null", NODE_NULL, false, 0 },
    { "NULL", NODE_NULL, false, 0 },       { "true", NODE_BOOL, true, 0 },
    { "True", NODE_BOOL, true, 0 },        { "TRUE", NODE_BOOL, true, 0 },
    { "yes", NODE_BOOL, true, 0 },         { "Yes", NODE_BOOL, true, 0 },
    { "YES", NODE_BOOL, true, 0 },         { "on", NODE_BOOL, true, 0 },
    { "On", NODE_BOOL, true, 0 },          { "ON", NODE_BOOL, true, 0 },
    { "false", NODE_BOOL, false, 0 },      { "False", NODE_BOOL, false, 0 },
    { "FALSE", NODE_BOOL, false, 0 },      { "no", NODE_BOOL, false, 0 },
    { "No", NODE_BOOL, false, 0 },         { "NO", NODE_BOOL, false, 0 },
    { "off", NODE_BOOL, false, 0 },        { "Off", NODE_BOOL, false, 0 },
    { "OFF", NODE_BOOL, false, 0 },        { ".inf", NODE_FLOAT, false, INFINITY },
    { ".Inf", NODE_FLOAT, false, INFINITY }, { ".INF", NODE_FLOAT, false, INFINITY },
    { "+.inf", NODE_FLOAT, false, INFINITY }, { "+.Inf", NODE_FLOAT, false, INFINITY },
    { "+.INF", NODE_FLOAT, false, INFINITY }, { "-.inf", NODE_FLOAT, false, -INFINITY },
    { "-.Inf", NODE_FLOAT, false, -INFINITY }, { "-.INF", NODE_FLOAT, false, -INFINITY },
    { ".nan", NODE_FLOAT, false, NAN },    { ".NaN", NODE_FLOAT, false, NAN },
    { ".NAN", NODE_FLOAT, false, NAN },
};

static bool resolve_word(const char *text, size_t len, struct place place, struct node *out) {
    if (len > 5)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].word) != len || memcmp(words[i].word, text, len) != 0)
            continue;
        if (words[i].kind == NODE_NULL)
            *out = node_null(place);
        else if (words[i].kind == NODE_BOOL)
            *out = node_bool(words[i].truth, place);
        else
            *out = node_float(words[i].number, place);
        return true;
    }
    return false;
}

/* A number's characters without sign and underscores. */
struct digits {
    char text[DIGITS_MAX + 1];
    size_t len;
    bool negative;
};

static bool strip(const char *text, size_t len, struct digits *out) {
    size_t i = 0;

    out->negative = text[0] == '-';
    if (text[0] == '-' || text[0] == '+')
        i++;
    out->len = 0;
    for (; i < len; i++) {
        if (text[i] == '_') {
            if (out->len == 0)
                return false;
            continue;
        }
        if (out->len == DIGITS_MAX)
            return false;
        out->text[out->len++] = text[i];
    }
    out->text[out->len] = '\0';
    return out->len > 0;
}

static bool all_in(const char *text, const char *set) {
    return *text && text[strspn(text, set)] == '\0';
}

static bool whole(const struct digits *digits, const char *text, int base, int64_t *out) {
    unsigned long long value;

    errno = 0;
    value = strtoull(text, NULL, base);
    if (errno || value > (unsigned long long)INT64_MAX + digits->negative)
        return false;
    *out = digits->negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* 0b1, 017, 0x1f, 12. */
static bool resolve_int(const struct digits *digits, int64_t *out) {
    const char *text = digits->text;

    if (text[0] == '0' && text[1] == 'b' && all_in(text + 2, "01"))
        return whole(digits, text + 2, 2, out);
    if (text[0] == '0' && text[1] == 'x' && all_in(text + 2, "0123456789abcdefABCDEF"))
        return whole(digits, text + 2, 16, out);
    if (text[0] == '0' && text[1] && all_in(text + 1, "01234567"))
        return whole(digits, text + 1, 8, out);
    if (all_in(text, "0123456789") && (text[0] != '0' || !text[1]))
        return whole(digits, text, 10, out);
    return false;
}

/* 1:30 and 1:30.5: numbers to the base sixty. Later groups have one or two digits, up to 59. */
static bool resolve_sixty(const struct digits *digits, struct place place, struct node *out) {
    double value = 0;
    const char *p = digits->text;
    bool fraction = false;

    for (int group = 0;; group++) {
        size_t n = strspn(p, "0123456789");

        if (n == 0 || (group > 0 && (n > 2 || (n == 2 && p[0] > '5'))) || n > 15)
            return false;
        value *= 60;
        value += (double)strtoll(p, NULL, 10); /* at most 15 digits */
        p += n;
        if (*p == ':') {
            p++;
            continue;
        }
        if (group == 0)
            return false;
        break;
    }
    if (*p == '.') {
        char *end;

        fraction = true;
        if (p[1]) {
            value += strtod(p, &end);
            p = end;
        } else {
            p++;
        }
    }
    if (*p || fabs(value) > 1e15 || (!fraction && digits->text[0] == '0'))
        return false;
    value = digits->negative ? -value : value;
    *out = fraction ? node_float(value, place) : node_int((int64_t)value, place);
    return true;
}

/* 1.5, 1., .5, 1.5e+3: a point is needed, and a sign in the exponent. */
static bool is_float(const char *text) {
    size_t before = strspn(text, "0123456789"), after;

    if (text[before] != '.')
        return false;
    after = strspn(text + before + 1, "0123456789");
    if (before + after == 0)
        return false;
    text += before + 1 + after;
    if (*text == '\0')
        return true;
    if ((*text != 'e' && *text != 'E') || (text[1] != '+' && text[1] != '-'))
        return false;
    return all_in(text + 2, "0123456789");
}

struct node scalar_resolve(const char *text, size_t len, struct place place) {
    struct node node;
    struct digits digits;
    int64_t integer;

    if (resolve_word(text, len, place, &node))
        return node;
    if (!(isdigit((unsigned char)text[0]) || strchr("+-.", text[0])) || !strip(text, len, &digits))
        return node_text(text, len, place);
    if (resolve_int(&digits, &integer))
        return node_int(integer, place);
    if (is_float(digits.text)) {
        double value = strtod(digits.text, NULL);

        return node_float(digits.negative ? -value : value, place);
    }
    if (memchr(digits.text, ':', digits.len) && resolve_sixty(&digits, place, &node))
        return node;
    return node_text(text, len, place);
}
