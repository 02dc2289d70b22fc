/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/yaml_write.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "codec/number.h"
#include "codec/utf8.h"

enum { INDENT = 2, SIMPLE_KEY_MAX = 100, PLAIN_MAX = 1000 };

/* What already stands on the line that a value is written to. */
enum before { BEFORE_NOTHING, BEFORE_KEY, BEFORE_DASH };

struct writer {
    struct buf *out;
    struct error *err;
    bool failed;
};

static void put_n(struct writer *w, const char *bytes, size_t n) {
    if (!w->failed && buf_append(w->out, bytes, n, w->err))
        w->failed = true;
}

static void put(struct writer *w, const char *text) {
    put_n(w, text, strlen(text));
}

static void put_indent(struct writer *w, size_t n) {
    for (; n > 0; n--)
        put_n(w, " ", 1);
}

/* ---- scalars ---- */

/* Words that some reader takes for a truth value or for nothing, in any case. */
static const char *const words[] = { "y",    "n",     "yes",  "no",  "on", "off",
                                     "true", "false", "null", "nan", "inf" };

/* A letter or slash first, so that it is no number, date or indicator to anybody. */
static bool is_plain(const char *text, size_t n) {
    if (n == 0 || n > PLAIN_MAX || !(isalpha((unsigned char)text[0]) || text[0] == '/'))
        return false;
    for (size_t i = 0; i < n; i++) {
        /* A colon that ends the text, or stands before a blank, would make it a key. */
        bool is_inner = text[i] == ':' && i + 1 < n && isalnum((unsigned char)text[i + 1]);

        if (!isalnum((unsigned char)text[i]) && !strchr("_-./", text[i]) && !is_inner)
            return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcasecmp(words[i], text) == 0)
            return false;
    return true;
}

/* Quotes in which nothing but the quote itself is special: JSON stays readable in them. */
static bool is_single(const char *text, size_t n) {
    bool has_special = false;

    for (size_t i = 0; i < n; i++) {
        if (text[i] < ' ' || text[i] > '~' || text[i] == '\'')
            return false;
        has_special = has_special || text[i] == '"' || text[i] == '\\';
    }
    return has_special;
}

static void put_escaped(struct writer *w, const char *text, size_t n) {
    char escape[12];

    for (size_t i = 0, len; i < n; i += len) {
        unsigned char c = (unsigned char)text[i];

        len = 1;
        if (c == '"' || c == '\\') {
            put_n(w, c == '"' ? "\\\"" : "\\\\", 2);
        } else if (c == '\n' || c == '\t') {
            put_n(w, c == '\n' ? "\\n" : "\\t", 2);
        } else if (c >= ' ' && c <= '~') {
            put_n(w, text + i, 1);
        } else {
            uint32_t code;

            len = utf8_length(text + i, n - i);
            code = len ? utf8_point(text + i, len) : 0xfffd;
            len = len ? len : 1;
            snprintf(escape, sizeof escape, code > 0xffff ? "\\U%08" PRIX32 : "\\u%04" PRIX32,
                     code);
            put(w, escape);
        }
    }
}

static void put_text(struct writer *w, const char *text, size_t n) {
    if (is_plain(text, n)) {
        put_n(w, text, n);
    } else if (is_single(text, n)) {
        put(w, "'");
        put_n(w, text, n);
        put(w, "'");
    } else {
        put(w, "\"");
        put_escaped(w, text, n);
        put(w, "\"");
    }
}

/* YAML 1.1 wants a point in a number that is not whole. */
static void put_float(struct writer *w, double value) {
    char text[NUMBER_TEXT_MAX];
    size_t mantissa;

    if (isnan(value) || isinf(value)) {
        put(w, isnan(value) ? ".nan" : value > 0 ? ".inf" : "-.inf");
        return;
    }
    number_format(value, text);
    mantissa = strcspn(text, "e");
    put_n(w, text, mantissa);
    if (!memchr(text, '.', mantissa))
        put(w, ".0");
    put(w, text + mantissa);
}

static void put_scalar(struct writer *w, const struct node *node) {
    char number[24];

    switch ((enum node_kind)node->kind) {
    case NODE_NULL: put(w, "null"); break;
    case NODE_BOOL: put(w, node->truth ? "true" : "false"); break;
    case NODE_INT:
        snprintf(number, sizeof number, "%" PRId64, node->integer);
        put(w, number);
        break;
    case NODE_FLOAT: put_float(w, node->number); break;
    case NODE_TEXT: put_text(w, node->text, node->count); break;
    case NODE_LIST: put(w, "[]"); break;
    case NODE_MAP:
    case NODE_KIND_COUNT: put(w, "{}"); break;
    }
}

/* ---- collections ---- */

static void put_node(struct writer *w, const struct node *node, size_t indent, enum before before);

static void put_member(struct writer *w, const struct member *member, size_t indent) {
    size_t n = strlen(member->key);

    if (n > SIMPLE_KEY_MAX) {
        put(w, "? ");
        put_text(w, member->key, n);
        put(w, "\n");
        put_indent(w, indent);
    } else {
        put_text(w, member->key, n);
    }
    put(w, ":");
    put_node(w, &member->value, indent + INDENT, BEFORE_KEY);
}

static void put_node(struct writer *w, const struct node *node, size_t indent, enum before before) {
    bool is_block = (node->kind == NODE_LIST || node->kind == NODE_MAP) && node->count > 0;

    if (before == BEFORE_DASH || (before == BEFORE_KEY && !is_block))
        put(w, " ");
    if (!is_block) {
        put_scalar(w, node);
        put(w, "\n");
        return;
    }
    if (before == BEFORE_KEY)
        put(w, "\n");
    for (uint32_t i = 0; i < node->count && !w->failed; i++) {
        if (i > 0 || before == BEFORE_KEY)
            put_indent(w, indent);
        if (node->kind == NODE_MAP) {
            put_member(w, &node->members[i], indent);
        } else {
            put(w, "-");
            put_node(w, &node->items[i], indent + INDENT, BEFORE_DASH);
        }
    }
}

int yaml_write(const struct node *node, struct buf *out, struct error *err) {
    struct writer w = { .out = out, .err = err };

    put_node(&w, node, 0, BEFORE_NOTHING);
    return w.failed ? -1 : 0;
}
