/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/json_read.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codec/utf8.h"

struct cursor {
    const char *start, *at, *end;
    struct arena *arena;
    struct error *err;
    unsigned depth;
};

static int wrong(struct cursor *c, const char *what) {
    return error_set(c->err, ERROR_INVALID, "not JSON at byte %zu: %s", (size_t)(c->at - c->start),
                     what);
}

static void skip_blanks(struct cursor *c) {
    while (c->at < c->end && memchr(" \t\r\n", *c->at, 4))
        c->at++;
}

/* ---- texts ---- */

static int hex4(struct cursor *c, uint32_t *out) {
    uint32_t value = 0;

    if (c->end - c->at < 4)
        return wrong(c, "\\u needs four digits");
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *found = memchr(digits, tolower((unsigned char)c->at[i]), 16);

        if (!found)
            return wrong(c, "\\u needs four digits");
        value = value * 16 + (uint32_t)(found - digits);
    }
    c->at += 4;
    *out = value;
    return 0;
}

static char *put_utf8(char *out, uint32_t code) {
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        *out++ = (char)(0xf0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    return out;
}

/* After `\u`: a character, from two escapes where it needs a pair. */
static int read_unicode(struct cursor *c, uint32_t *out) {
    uint32_t low;

    if (hex4(c, out))
        return -1;
    if (*out >= 0xdc00 && *out < 0xe000)
        return wrong(c, "half of a surrogate pair");
    if (*out >= 0xd800 && *out < 0xdc00) {
        if (c->end - c->at < 6 || c->at[0] != '\\' || c->at[1] != 'u')
            return wrong(c, "half of a surrogate pair");
        c->at += 2;
        if (hex4(c, &low))
            return -1;
        if (low < 0xdc00 || low >= 0xe000)
            return wrong(c, "half of a surrogate pair");
        *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    }
    return *out == 0 ? wrong(c, "text may not hold NUL") : 0;
}

static int read_escape(struct cursor *c, char **out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found;
    uint32_t code;

    if (c->at == c->end)
        return wrong(c, "the text does not end");
    if (*c->at == 'u') {
        c->at++;
        if (read_unicode(c, &code))
            return -1;
        *out = put_utf8(*out, code);
        return 0;
    }
    found = memchr(from, *c->at, sizeof from - 1);
    if (!found)
        return wrong(c, "there is no such escape");
    *(*out)++ = to[found - from];
    c->at++;
    return 0;
}

/* At the opening quote. An escaped text is never longer than its source. */
static int read_text(struct cursor *c, const char **text, size_t *len) {
    const char *close;
    char *out, *start;

    for (close = ++c->at; close < c->end && *close != '"'; close++)
        if (*close == '\\')
            close++;
    if (close >= c->end)
        return wrong(c, "the text does not end");
    out = start = arena_alloc(c->arena, (size_t)(close - c->at) + 1);
    while (c->at < close) {
        size_t n = utf8_length(c->at, (size_t)(close - c->at));

        if (n == 0)
            return wrong(c, "not UTF-8");
        if (n == 1 && (unsigned char)*c->at < 0x20)
            return wrong(c, "a control character in a text");
        if (*c->at == '\\') {
            c->at++;
            if (read_escape(c, &out))
                return -1;
            continue;
        }
        memcpy(out, c->at, n);
        out += n;
        c->at += n;
    }
    c->at = close + 1;
    *text = start;
    *len = (size_t)(out - start);
    return 0;
}

/* ---- numbers ---- */

static size_t digits(const char *p, const char *end) {
    const char *start = p;

    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return (size_t)(p - start);
}

static int read_number(struct cursor *c, struct place place, struct node *out) {
    const char *p = c->at, *start = c->at;
    bool whole = true;
    char copy[64];
    size_t n;

    p += *p == '-';
    n = digits(p, c->end);
    if (n == 0 || (n > 1 && *p == '0'))
        return wrong(c, "not a number");
    p += n;
    if (p < c->end && *p == '.') {
        whole = false;
        n = digits(++p, c->end);
        if (n == 0)
            return wrong(c, "digits have to follow the point");
        p += n;
    }
    if (p < c->end && (*p == 'e' || *p == 'E')) {
        whole = false;
        p++;
        p += p < c->end && (*p == '+' || *p == '-');
        n = digits(p, c->end);
        if (n == 0)
            return wrong(c, "digits have to follow the exponent");
        p += n;
    }
    n = (size_t)(p - start);
    if (n >= sizeof copy)
        return wrong(c, "a number of this length is not taken");
    memcpy(copy, start, n);
    copy[n] = '\0';
    c->at = p;
    errno = 0;
    *out = node_int(strtoll(copy, NULL, 10), place);
    if (!whole || errno)
        *out = node_float(strtod(copy, NULL), place);
    return 0;
}

/* ---- lists and maps ---- */

static int read_value(struct cursor *c, struct node *out);

static int enter(struct cursor *c) {
    if (c->depth++ == JSON_READ_DEPTH_MAX)
        return wrong(c, "nested too deeply");
    c->at++;
    skip_blanks(c);
    return 0;
}

/* After a value: true with the next one ahead, or false behind the closer. */
static int next_item(struct cursor *c, char closer, bool *more) {
    skip_blanks(c);
    if (c->at < c->end && *c->at == closer) {
        c->at++;
        c->depth--;
        *more = false;
        return 0;
    }
    if (c->at == c->end || *c->at != ',')
        return wrong(c, "a comma is missing");
    c->at++;
    skip_blanks(c);
    *more = true;
    return 0;
}

static int read_list(struct cursor *c, struct place place, struct node *out) {
    VEC(struct node) items = { 0 };
    bool more = true;
    int status = enter(c);

    if (status == 0 && c->at < c->end && *c->at == ']') {
        c->at++;
        c->depth--;
        more = false;
    }
    while (status == 0 && more) {
        struct node item;

        status = read_value(c, &item);
        if (status == 0)
            *VEC_PUSH(&items) = item;
        if (status == 0)
            status = next_item(c, ']', &more);
    }
    if (status == 0)
        *out = node_list(arena_copy(c->arena, items.items, items.len * sizeof *items.items),
                         items.len, place);
    VEC_RELEASE(&items);
    return status;
}

static int read_member(struct cursor *c, struct member *out) {
    size_t len;

    if (c->at == c->end || *c->at != '"')
        return wrong(c, "a key has to be text");
    if (read_text(c, &out->key, &len))
        return -1;
    skip_blanks(c);
    if (c->at == c->end || *c->at != ':')
        return wrong(c, "a colon is missing");
    c->at++;
    skip_blanks(c);
    return read_value(c, &out->value);
}

static int by_key(const void *a, const void *b) {
    const struct member *const *x = a, *const *y = b;
    int order = strcmp((*x)->key, (*y)->key);

    return order ? order : (*x < *y ? -1 : 1);
}

/* Keys are unique in a node: of equal ones the last is kept. */
static size_t drop_duplicates(struct member *members, size_t n) {
    struct member **sorted = calloc(n ? n : 1, sizeof *sorted);
    size_t kept = 0;

    if (!sorted)
        abort();
    for (size_t i = 0; i < n; i++)
        sorted[i] = &members[i];
    qsort(sorted, n, sizeof *sorted, by_key);
    for (size_t i = 0; i + 1 < n; i++)
        if (strcmp(sorted[i]->key, sorted[i + 1]->key) == 0)
            sorted[i]->key_length = UINT16_MAX; /* marks what is dropped below */
    free(sorted);
    for (size_t i = 0; i < n; i++)
        if (members[i].key_length != UINT16_MAX)
            members[kept++] = members[i];
    return kept;
}

static int read_map(struct cursor *c, struct place place, struct node *out) {
    VEC(struct member) members = { 0 };
    bool more = true;
    int status = enter(c);

    if (status == 0 && c->at < c->end && *c->at == '}') {
        c->at++;
        c->depth--;
        more = false;
    }
    while (status == 0 && more) {
        struct member member = { 0 };

        status = read_member(c, &member);
        if (status == 0)
            *VEC_PUSH(&members) = member;
        if (status == 0)
            status = next_item(c, '}', &more);
    }
    if (status == 0) {
        size_t n = drop_duplicates(members.items, members.len);

        *out = node_map(arena_copy(c->arena, members.items, n * sizeof *members.items), n, place);
    }
    VEC_RELEASE(&members);
    return status;
}

/* ---- values ---- */

static bool read_word(struct cursor *c, const char *word) {
    size_t n = strlen(word);

    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

static int read_value(struct cursor *c, struct node *out) {
    struct place place = { .offset = (uint32_t)(c->at - c->start) };
    const char *text;
    size_t len;

    if (c->at == c->end)
        return wrong(c, "a value is missing");
    switch (*c->at) {
    case '{': return read_map(c, place, out);
    case '[': return read_list(c, place, out);
    case '"':
        if (read_text(c, &text, &len))
            return -1;
        *out = node_text(text, len, place);
        out->flags = NODE_QUOTED;
        return 0;
    default: break;
    }
    if (read_word(c, "null"))
        *out = node_null(place);
    else if (read_word(c, "true"))
        *out = node_bool(true, place);
    else if (read_word(c, "false"))
        *out = node_bool(false, place);
    else
        return read_number(c, place, out);
    return 0;
}

int json_read(const char *text, size_t len, struct arena *arena, struct node *root,
              struct error *err) {
    struct cursor c = { .start = text, .at = text, .end = text + len, .arena = arena, .err = err };
    struct node value;

    if (len >= UINT32_MAX)
        return error_set(err, ERROR_EXHAUSTED, "this JSON text is too large");
    skip_blanks(&c);
    if (read_value(&c, &value))
        return -1;
    skip_blanks(&c);
    if (c.at != c.end)
        return wrong(&c, "something follows the value");
    *root = value;
    return 0;
}
