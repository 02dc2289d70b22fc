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
    { "", NODE_NULL, false, 0 },
    { "~", NODE_NULL, false, 0 },
    { "null", NODE_NULL, false, 0 },
    { "Null", NODE_NULL, false, 0 },
    { "NULL", NODE_NULL, false, 0 },
    { "true", NODE_BOOL, true, 0 },
    { "True", NODE_BOOL, true, 0 },
    { "TRUE", NODE_BOOL, true, 0 },
    { "yes", NODE_BOOL, true, 0 },
    { "Yes", NODE_BOOL, true, 0 },
    { "YES", NODE_BOOL, true, 0 },
    { "on", NODE_BOOL, true, 0 },
    { "On", NODE_BOOL, true, 0 },
    { "ON", NODE_BOOL, true, 0 },
    { "false", NODE_BOOL, false, 0 },
    { "False", NODE_BOOL, false, 0 },
    { "FALSE", NODE_BOOL, false, 0 },
    { "no", NODE_BOOL, false, 0 },
    { "No", NODE_BOOL, false, 0 },
    { "NO", NODE_BOOL, false, 0 },
    { "off", NODE_BOOL, false, 0 },
    { "Off", NODE_BOOL, false, 0 },
    { "OFF", NODE_BOOL, false, 0 },
    { ".inf", NODE_FLOAT, false, INFINITY },
    { ".Inf", NODE_FLOAT, false, INFINITY },
    { ".INF", NODE_FLOAT, false, INFINITY },
    { "+.inf", NODE_FLOAT, false, INFINITY },
    { "+.Inf", NODE_FLOAT, false, INFINITY },
    { "+.INF", NODE_FLOAT, false, INFINITY },
    { "-.inf", NODE_FLOAT, false, -INFINITY },
    { "-.Inf", NODE_FLOAT, false, -INFINITY },
    { "-.INF", NODE_FLOAT, false, -INFINITY },
    { ".nan", NODE_FLOAT, false, NAN },
    { ".NaN", NODE_FLOAT, false, NAN },
    { ".NAN", NODE_FLOAT, false, NAN },
};

static bool resolve_word(const char *text, size_t len, struct place place, struct node *out) {
    if (len > 5 || (len > 0 && !strchr("~nNtTyYoOfF.+-", text[0])))
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

/* ---- numbers ---- */

#define DIGITS "0123456789"

enum shape {
    SHAPE_TEXT,
    SHAPE_BINARY,      /* 0b101 */
    SHAPE_OCTAL,       /* 017 */
    SHAPE_DECIMAL,     /* 12 */
    SHAPE_HEX,         /* 0x1f */
    SHAPE_FLOAT,       /* 1.5, 1., .5, 1.5e+3: a point is needed, and a sign in the exponent */
    SHAPE_SIXTY,       /* 1:30, to the base sixty */
    SHAPE_SIXTY_FLOAT, /* 1:30.5 */
};

static bool all_in(const char *text, const char *set) {
    return text[strspn(text, set)] == '\0';
}

static enum shape shape_of_point(const char *p) {
    p += strspn(p, DIGITS "_");
    if (*p == '\0')
        return SHAPE_FLOAT;
    if ((*p != 'e' && *p != 'E') || (p[1] != '+' && p[1] != '-'))
        return SHAPE_TEXT;
    return p[2] && all_in(p + 2, DIGITS) ? SHAPE_FLOAT : SHAPE_TEXT;
}

/* Groups after the first have one or two digits, up to 59, and no underscores. */
static enum shape shape_of_sixty(const char *text, const char *p) {
    while (*p == ':') {
        size_t n = strspn(++p, DIGITS);

        if (n == 0 || n > 2 || (n == 2 && p[0] > '5'))
            return SHAPE_TEXT;
        p += n;
    }
    if (*p == '\0')
        return text[0] != '0' ? SHAPE_SIXTY : SHAPE_TEXT;
    return *p == '.' && all_in(p + 1, DIGITS "_") ? SHAPE_SIXTY_FLOAT : SHAPE_TEXT;
}

/* Of a text without its sign. The alternatives are those of PyYAML's resolver. */
static enum shape shape_of(const char *text, bool has_sign) {
    const char *p = text;

    if (!isdigit((unsigned char)*p))
        return *p == '.' && isdigit((unsigned char)p[1]) && !has_sign ? shape_of_point(p + 1)
                                                                      : SHAPE_TEXT;
    if (p[0] == '0' && p[1] == 'b')
        return p[2] && all_in(p + 2, "01_") ? SHAPE_BINARY : SHAPE_TEXT;
    if (p[0] == '0' && p[1] == 'x')
        return p[2] && all_in(p + 2, DIGITS "abcdefABCDEF_") ? SHAPE_HEX : SHAPE_TEXT;
    if (p[0] == '0' && p[1] && all_in(p + 1, "01234567_"))
        return SHAPE_OCTAL;
    p += 1 + strspn(p + 1, DIGITS "_");
    if (*p == '\0')
        return text[0] != '0' || !text[1] ? SHAPE_DECIMAL : SHAPE_TEXT;
    return *p == '.' ? shape_of_point(p + 1) : shape_of_sixty(text, p);
}

static bool read_whole(const char *digits, int base, uint64_t *out) {
    errno = 0;
    *out = strtoull(digits, NULL, base);
    return *digits && errno == 0;
}

static bool read_sixty(const char *digits, uint64_t *out) {
    char *end;

    errno = 0;
    *out = strtoull(digits, &end, 10);
    while (*end == ':')
        if (__builtin_mul_overflow(*out, 60u, out) ||
            __builtin_add_overflow(*out, strtoull(end + 1, &end, 10), out))
            return false;
    return errno == 0;
}

/* Adds from the last group on, as PyYAML does: the sum is the same to the last bit. */
static double read_sixty_float(char *digits) {
    double value = 0, base = 1;

    for (char *colon; (colon = strrchr(digits, ':')); base *= 60) {
        value += strtod(colon + 1, NULL) * base;
        *colon = '\0';
    }
    return value + strtod(digits, NULL) * base;
}

/* Without the underscores, which only divide digits. */
static void strip(char *text) {
    char *to = text;

    for (const char *from = text; *from; from++)
        if (*from != '_')
            *to++ = *from;
    *to = '\0';
}

static bool resolve_number(const char *text, size_t len, struct place place, struct node *out) {
    bool negative = text[0] == '-', has_sign = negative || text[0] == '+', is_whole = false;
    char digits[DIGITS_MAX + 1];
    enum shape shape;
    uint64_t whole = 0;
    double number = 0;

    if (len - has_sign > DIGITS_MAX)
        return false;
    memcpy(digits, text + has_sign, len - has_sign);
    digits[len - has_sign] = '\0';
    shape = shape_of(digits, has_sign);
    strip(digits);
    switch (shape) {
    case SHAPE_TEXT: return false;
    case SHAPE_BINARY: is_whole = read_whole(digits + 2, 2, &whole); break;
    case SHAPE_OCTAL: is_whole = read_whole(digits, 8, &whole); break;
    case SHAPE_DECIMAL: is_whole = read_whole(digits, 10, &whole); break;
    case SHAPE_HEX: is_whole = read_whole(digits + 2, 16, &whole); break;
    case SHAPE_SIXTY: is_whole = read_sixty(digits, &whole); break;
    case SHAPE_FLOAT: number = strtod(digits, NULL); break;
    case SHAPE_SIXTY_FLOAT: number = read_sixty_float(digits); break;
    }
    if (shape == SHAPE_FLOAT || shape == SHAPE_SIXTY_FLOAT) {
        *out = node_float(negative ? -number : number, place);
        return true;
    }
    if (!is_whole || whole > (uint64_t)INT64_MAX + negative)
        return false;
    *out = node_int(negative ? (int64_t)(0 - whole) : (int64_t)whole, place);
    return true;
}

struct node scalar_resolve(const char *text, size_t len, struct place place) {
    struct node node;

    if (resolve_word(text, len, place, &node))
        return node;
    if ((isdigit((unsigned char)text[0]) || strchr("+-.", text[0])) &&
        resolve_number(text, len, place, &node))
        return node;
    return node_text(text, len, place);
}
