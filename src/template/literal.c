/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's literals, as ast.literal_eval reads them: one value, blanks and a comment behind it, and
 * no blanks before it (Python takes those for an indentation).
 */
#include <stdlib.h>
#include <string.h>

#include "template/render.h"

struct reader {
    struct arena *arena;
    const char *at, *end;
    struct place place;
    unsigned brackets; /* newlines are blanks inside of them */
};

static int read_value(struct reader *reader, struct node *out);

/* Items are gathered in a list that grows twofold in the arena. */
struct items {
    struct node *list;
    uint32_t len, capacity;
};

static void add_item(struct reader *reader, struct items *items, struct node item) {
    if (items->len == items->capacity) {
        uint32_t capacity = items->capacity ? items->capacity * 2 : 4;
        struct node *grown = ARENA_ARRAY(reader->arena, struct node, capacity);

        if (items->len)
            memcpy(grown, items->list, items->len * sizeof *grown);
        items->list = grown;
        items->capacity = capacity;
    }
    items->list[items->len++] = item;
}

static void skip_blanks(struct reader *reader) {
    for (; reader->at < reader->end; reader->at++) {
        char c = *reader->at;

        if (c == '#')
            while (reader->at + 1 < reader->end && reader->at[1] != '\n')
                reader->at++;
        else if (c != ' ' && c != '\t' && c != '\f' &&
                 !((c == '\n' || c == '\r') && reader->brackets))
            return;
    }
}

static bool skip(struct reader *reader, char c) {
    skip_blanks(reader);
    if (reader->at == reader->end || *reader->at != c)
        return false;
    reader->at++;
    return true;
}

static bool is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static const struct {
    const char *word;
    enum node_kind kind;
    bool truth;
} constants[] = {
    { "True", NODE_BOOL, true },
    { "False", NODE_BOOL, false },
    { "None", NODE_NULL, false },
};

static int read_constant(struct reader *reader, struct node *out) {
    const char *from = reader->at;
    size_t n;

    while (reader->at < reader->end && is_word(*reader->at))
        reader->at++;
    n = (size_t)(reader->at - from);
    for (size_t i = 0; i < ARRAY_LEN(constants); i++)
        if (strlen(constants[i].word) == n && memcmp(constants[i].word, from, n) == 0) {
            *out = constants[i].kind == NODE_NULL ? node_null(reader->place)
                                                  : node_bool(constants[i].truth, reader->place);
            return 0;
        }
    return -1;
}

/* 0x1f, 0o17, 0b11: the base that the letter says, or 0. */
static int prefix_base(const char *text, size_t n) {
    if (n < 3 || text[0] != '0')
        return 0;
    switch (text[1] | ' ') {
    case 'x': return 16;
    case 'o': return 8;
    case 'b': return 2;
    default: return 0;
    }
}

/* 007 is no number in Python, though 000 is 0. */
static bool has_leading_zero(const char *text, size_t n) {
    bool zero = n > 1 && text[0] == '0';

    for (size_t i = 0; i < n && zero; i++)
        if (text[i] >= '1' && text[i] <= '9')
            return true;
    return false;
}

static int read_number(struct reader *reader, bool negative, struct node *out) {
    const char *from = reader->at;
    char copy[512] = "-";
    bool whole = true;
    size_t n;
    int base;

    while (reader->at < reader->end &&
           (is_word(*reader->at) || *reader->at == '.' ||
            ((*reader->at == '+' || *reader->at == '-') && (reader->at[-1] | ' ') == 'e' &&
             prefix_base(from, 3) != 16)))
        reader->at++;
    n = (size_t)(reader->at - from);
    if (n > sizeof copy - 2)
        return -1;
    memcpy(copy + 1, from, n); /* with its sign, so that the least whole number is one */
    base = prefix_base(from, n);
    for (size_t i = 0; i < n && !base; i++)
        whole = whole && from[i] != '.' && (from[i] | ' ') != 'e';
    if (!whole) {
        *out = node_float(0, reader->place);
        return is_digit(*from) || *from == '.'
                   ? text_to_double(copy + !negative, n + negative, &out->number)
                   : -1;
    }
    if (!base && has_leading_zero(from, n))
        return -1;
    *out = node_int(0, reader->place);
    return text_to_whole(copy + !negative, n + negative, base ? base : 10, &out->integer);
}

/* A sign belongs to a number only: '--1' and '-None' are no literals. */
static int read_signed(struct reader *reader, struct node *out) {
    bool negative = *reader->at++ == '-';

    skip_blanks(reader);
    if (reader->at == reader->end || !(is_digit(*reader->at) || *reader->at == '.'))
        return -1;
    return read_number(reader, negative, out);
}

/* What stands between quotes, which may be tripled, is [*from, *to). A backslash keeps a quote from
 * closing, in raw texts too. */
static int read_quotes(struct reader *reader, const char **from, const char **to) {
    const char *at = reader->at;
    char quote = *at;
    size_t width = reader->end - at >= 3 && at[1] == quote && at[2] == quote ? 3 : 1;

    for (*from = at += width; at < reader->end; at++) {
        if (*at == '\\') {
            at++;
            continue;
        }
        if (*at == '\n' && width == 1)
            return -1;
        if (*at != quote ||
            (width == 3 && (reader->end - at < 3 || at[1] != quote || at[2] != quote)))
            continue;
        *to = at;
        reader->at = at + width;
        return 0;
    }
    return -1;
}

struct piece {
    const char *from, *to;
    bool raw;
};

/* One text with its prefix, which may be r or u. */
static int read_piece(struct reader *reader, struct piece *piece) {
    char prefix = (char)(*reader->at | ' ');

    piece->raw = prefix == 'r';
    if (*reader->at != '\'' && *reader->at != '"') {
        if ((prefix != 'r' && prefix != 'u') || ++reader->at == reader->end ||
            (*reader->at != '\'' && *reader->at != '"'))
            return -1;
    }
    return read_quotes(reader, &piece->from, &piece->to);
}

/* Texts side by side are one. */
static int read_text(struct reader *reader, struct node *out) {
    size_t len = 0, capacity = 0, added, bad;
    char *joined = NULL;

    do {
        struct piece piece;
        size_t n;

        if (read_piece(reader, &piece))
            return -1;
        n = (size_t)(piece.to - piece.from);
        if (!joined || capacity - len <= n) {
            char *grown = arena_alloc(reader->arena, capacity = len * 2 + n + 1);

            if (len)
                memcpy(grown, joined, len);
            joined = grown;
        }
        if (piece.raw)
            memcpy(joined + len, piece.from, added = n);
        else if (text_unescape(piece.from, n, joined + len, &added, &bad))
            return -1;
        len += added;
        joined[len] = '\0';
        skip_blanks(reader);
    } while (reader->at < reader->end &&
             (*reader->at == '\'' || *reader->at == '"' || is_word(*reader->at)));
    *out = node_text(joined, len, reader->place);
    return 0;
}

/* Values with commas between, up to `closer`; *comma tells whether there was any. */
static int read_items(struct reader *reader, char closer, struct items *items, bool *comma) {
    *comma = false;
    while (!skip(reader, closer)) {
        struct node item;

        if ((items->len && !*comma) || read_value(reader, &item))
            return -1;
        add_item(reader, items, item);
        *comma = skip(reader, ',');
    }
    *comma = *comma || items->len > 1;
    return 0;
}

static int read_list(struct reader *reader, char closer, struct node *out) {
    struct items items = { 0 };
    bool comma;

    reader->at++;
    if (read_items(reader, closer, &items, &comma))
        return -1;
    if (closer == ')' && items.len == 1 && !comma) {
        *out = items.list[0]; /* brackets around one value */
        return 0;
    }
    *out = node_list(items.list, items.len, reader->place);
    out->flags = closer == ')' ? VALUE_TUPLE : 0;
    return 0;
}

struct entry {
    const char *key;
    uint32_t at;
};

static int by_key_and_place(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    int sign = strcmp(a->key, b->key);

    return sign ? sign : a->at < b->at ? -1 : 1;
}

/* Of equal keys the first gives the place and the last the value, as in Python. Sorting finds them,
 * so that no choice of keys makes it slow. */
static struct node map_of(struct reader *reader, const struct items *pairs) {
    uint32_t n = pairs->len / 2, count = 0;
    struct member *members = ARENA_ARRAY(reader->arena, struct member, n);
    struct entry *entries = ARENA_ARRAY(reader->arena, struct entry, n);
    const struct node **values = ARENA_ARRAY(reader->arena, const struct node *, n);

    for (uint32_t i = 0; i < n; i++)
        entries[i] = (struct entry){ pairs->list[2 * i].text, i };
    qsort(entries, n, sizeof *entries, by_key_and_place);
    for (uint32_t i = 0, first = 0; i < n; i++) {
        if (strcmp(entries[i].key, entries[first].key) != 0)
            first = i;
        values[entries[first].at] = &pairs->list[2 * entries[i].at + 1];
    }
    for (uint32_t i = 0; i < n; i++)
        if (values[i])
            members[count++] = (struct member){ .key = pairs->list[2 * i].text,
                                                .key_offset = reader->place.offset,
                                                .key_source = reader->place.source,
                                                .value = *values[i] };
    return node_map(members, count, reader->place);
}

static int read_map(struct reader *reader, struct node *out) {
    struct items pairs = { 0 };
    bool comma = true;

    reader->at++;
    while (!skip(reader, '}')) {
        struct node key, value;

        if (!comma || read_value(reader, &key) || key.kind != NODE_TEXT || !skip(reader, ':') ||
            read_value(reader, &value))
            return -1;
        add_item(reader, &pairs, key);
        add_item(reader, &pairs, value);
        comma = skip(reader, ',');
    }
    *out = map_of(reader, &pairs);
    return 0;
}

static int read_bracket(struct reader *reader, struct node *out) {
    char c = *reader->at;
    int failed;

    if (++reader->brackets > TEMPLATE_DEPTH_MAX)
        return -1;
    failed = c == '{' ? read_map(reader, out) : read_list(reader, c == '[' ? ']' : ')', out);
    reader->brackets--;
    return failed;
}

static int read_value(struct reader *reader, struct node *out) {
    char c, next;

    skip_blanks(reader);
    if (reader->at == reader->end)
        return -1;
    c = *reader->at;
    next = reader->at + 1 < reader->end ? reader->at[1] : '\0';
    if (c == '[' || c == '(' || c == '{')
        return read_bracket(reader, out);
    if (c == '-' || c == '+')
        return read_signed(reader, out);
    if (is_digit(c) || c == '.')
        return read_number(reader, false, out);
    if (c == '\'' || c == '"' || next == '\'' || next == '"')
        return read_text(reader, out);
    return read_constant(reader, out);
}

/* Lines of blanks and comments before the value. */
static void skip_blank_lines(struct reader *reader) {
    for (;;) {
        const char *line = reader->at;

        skip_blanks(reader);
        if (reader->at == reader->end || (*reader->at != '\n' && *reader->at != '\r')) {
            reader->at = line;
            return;
        }
        reader->at++;
    }
}

int literal_read(struct arena *arena, const char *text, size_t n, struct place place,
                 struct node *out) {
    struct reader reader = { arena, text, text + n, place, 0 };
    struct items items = { 0 };
    struct node value;
    bool comma;

    skip_blank_lines(&reader);
    if (reader.at == reader.end || *reader.at == ' ' || *reader.at == '\t')
        return -1;
    if (read_value(&reader, &value))
        return -1;
    comma = skip(&reader, ',');
    if (comma) { /* 1, 2: a tuple without brackets */
        add_item(&reader, &items, value);
        while (comma) {
            skip_blanks(&reader);
            if (reader.at == reader.end || *reader.at == '\n')
                break;
            if (read_value(&reader, &value))
                return -1;
            add_item(&reader, &items, value);
            comma = skip(&reader, ',');
        }
        value = node_list(items.list, items.len, place);
        value.flags = VALUE_TUPLE;
    }
    reader.brackets = 1; /* blank lines may follow */
    skip_blanks(&reader);
    if (reader.at != reader.end)
        return -1;
    *out = value;
    return 0;
}
