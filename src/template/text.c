/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as Python has them: characters, escapes, and the numbers they spell. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/utf8.h"
#include "template/render.h"

bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

size_t character_length(const char *text, size_t n) {
    size_t len = utf8_length(text, n);

    return len ? len : 1;
}

size_t value_characters(const struct node *text) {
    size_t characters = 0;

    for (size_t i = 0; i < text->count; i += character_length(text->text + i, text->count - i))
        characters++;
    return characters;
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'Z')
        return c - 'A' + 10;
    return 99;
}

static size_t utf8_encode(uint32_t code, char out[4]) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Escapes of one letter: what they stand for. */
static const struct {
    char letter, meaning;
} short_escapes[] = {
    { '\\', '\\' }, { '\'', '\'' }, { '"', '"' },  { 'a', '\a' }, { 'b', '\b' },
    { 'f', '\f' },  { 'n', '\n' },  { 'r', '\r' }, { 't', '\t' }, { 'v', '\v' },
};

/* Escapes that spell a number: the letter, its base and how many digits follow. */
static const struct {
    char letter;
    int base;
    size_t least, most;
} code_escapes[] = { { 'x', 16, 2, 2 }, { 'u', 16, 4, 4 }, { 'U', 16, 8, 8 } };

/* Reads digits at text[*i]; a code that is no character, or NUL, is refused. */
static int read_code(const char *text, size_t n, size_t *i, int base, size_t least, size_t most,
                     uint32_t *code) {
    size_t digits = 0;

    for (*code = 0; digits < most && *i < n && digit_value(text[*i]) < base; digits++, (*i)++)
        *code = *code * (uint32_t)base + (uint32_t)digit_value(text[*i]);
    if (digits < least || *code == 0 || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
        return -1;
    return 0;
}

/* One escape whose backslash stands before text[*i]. */
static int unescape_one(const char *text, size_t n, size_t *i, char *out, size_t *len) {
    char letter = text[*i];
    uint32_t code;

    for (size_t k = 0; k < ARRAY_LEN(short_escapes); k++)
        if (short_escapes[k].letter == letter) {
            out[(*len)++] = short_escapes[k].meaning;
            (*i)++;
            return 0;
        }
    for (size_t k = 0; k < ARRAY_LEN(code_escapes); k++)
        if (code_escapes[k].letter == letter) {
            (*i)++;
            if (read_code(text, n, i, code_escapes[k].base, code_escapes[k].least,
                          code_escapes[k].most, &code))
                return -1;
            *len += utf8_encode(code, out + *len);
            return 0;
        }
    if (letter >= '0' && letter <= '7') {
        if (read_code(text, n, i, 8, 1, 3, &code))
            return -1;
        *len += utf8_encode(code, out + *len);
        return 0;
    }
    if (letter == 'N') /* \N{NAME} needs the table of all names */
        return -1;
    if (letter == '\n') {
        (*i)++;
        return 0;
    }
    out[(*len)++] = '\\'; /* no escape: Python keeps the backslash */
    return 0;
}

int text_unescape(const char *text, size_t n, char *out, size_t *out_len, size_t *bad) {
    size_t len = 0;

    for (size_t i = 0; i < n;) {
        size_t at = i;

        if (text[i] != '\\') {
            out[len++] = text[i++];
            continue;
        }
        if (++i == n || unescape_one(text, n, &i, out, &len)) {
            *bad = at;
            return -1;
        }
    }
    *out_len = len;
    return 0;
}

static void trim_blanks(const char **text, size_t *n) {
    while (*n && is_blank(**text)) {
        (*text)++;
        (*n)--;
    }
    while (*n && is_blank((*text)[*n - 1]))
        (*n)--;
}

/* 0x, 0o, 0b where the base is the one they say. */
static bool has_prefix(const char *text, size_t n, int base) {
    char letter = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : '\0';

    return letter && n > 2 && text[0] == '0' && (text[1] | ' ') == letter;
}

int text_to_whole(const char *text, size_t n, int base, int64_t *out) {
    bool negative = false, after_digit = false;
    int64_t value = 0;

    trim_blanks(&text, &n);
    if (n && (*text == '-' || *text == '+')) {
        negative = *text == '-';
        text++;
        n--;
    }
    if (has_prefix(text, n, base)) {
        text += 2;
        n -= 2;
        after_digit = true; /* 0x_1 is allowed */
    }
    if (n == 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int digit = digit_value(text[i]);

        if (text[i] == '_' && after_digit && i + 1 < n) {
            after_digit = false;
            continue;
        }
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_sub_overflow(value, digit, &value)) /* downwards: INT64_MIN fits */
            return -1;
        after_digit = true;
    }
    if (!negative && __builtin_sub_overflow((int64_t)0, value, &value))
        return -1;
    *out = value;
    return 0;
}

static bool is_word(const char *text, size_t n, const char *word) {
    return strlen(word) == n && strncasecmp(text, word, n) == 0;
}

int text_to_double(const char *text, size_t n, double *out) {
    char copy[512];
    size_t len = 0, digits = 0;
    double sign = 1;
    char *end;

    trim_blanks(&text, &n);
    if (n && (*text == '-' || *text == '+')) {
        sign = *text == '-' ? -1 : 1;
        text++;
        n--;
    }
    if (is_word(text, n, "inf") || is_word(text, n, "infinity") || is_word(text, n, "nan")) {
        *out = sign * (digit_value(*text) == 'n' - 'a' + 10 ? (double)NAN : (double)INFINITY);
        return 0;
    }
    if (n == 0 || n >= sizeof copy || text[0] == '_' || text[n - 1] == '_')
        return -1;
    for (size_t i = 0; i < n; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';

        if (text[i] == '_') {
            if (digit_value(text[i - 1]) > 9 || digit_value(text[i + 1]) > 9)
                return -1;
            continue;
        }
        if (!digit && !strchr(".eE+-", text[i]))
            return -1;
        digits += digit;
        copy[len++] = text[i];
    }
    if (digits == 0 || copy[0] == '+' || copy[0] == '-')
        return -1;
    copy[len] = '\0';
    *out = sign * strtod(copy, &end);
    return *end ? -1 : 0;
}
