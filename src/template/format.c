/* SPDX-License-Identifier: Apache-2.0 */
/* Python's 'text with %d and %s' % values. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "template/render.h"

enum { WIDTH_MAX = 500, NUMBER_MAX = 1200 };

/* One %-directive as it was written. */
struct directive {
    char flags[8];        /* of -+ #0, each once */
    int width, precision; /* precision -1: none */
    const char *key;      /* of %(key)s */
    size_t key_len;
    char conversion;
};

struct formatting {
    struct render *render;
    struct span span;
    const struct node *args;
    size_t n, used;
    bool by_key;
    struct buf *out;
};

static int read_count(const char **p, int *out) {
    for (*out = 0; **p >= '0' && **p <= '9'; (*p)++) {
        *out = *out * 10 + (**p - '0');
        if (*out > WIDTH_MAX)
            return -1;
    }
    return 0;
}

/* Reads what follows a `%`. The text ends with NUL, so looking ahead is safe. */
static int read_directive(const char **p, struct directive *out) {
    size_t n = 0;

    *out = (struct directive){ .precision = -1 };
    if (**p == '(') {
        const char *end = strchr(*p, ')');

        if (!end)
            return -1;
        out->key = *p + 1;
        out->key_len = (size_t)(end - out->key);
        *p = end + 1;
    }
    for (; **p && strchr("-+ #0", **p); (*p)++)
        if (!strchr(out->flags, **p) && n < sizeof out->flags - 1)
            out->flags[n++] = **p;
    if (read_count(p, &out->width))
        return -1;
    if (**p == '.') {
        (*p)++;
        if (read_count(p, &out->precision))
            return -1;
    }
    out->conversion = **p;
    if (!**p)
        return -1;
    (*p)++;
    return 0;
}

static int put(struct formatting *f, const char *text, size_t n) {
    struct error err;

    if (buf_append(f->out, text, n, &err))
        return fail(f->render, f->span, "the text grows beyond the %zu bytes allowed",
                    f->render->output_max);
    return 0;
}

static int pad(struct formatting *f, size_t n) {
    for (; n > 0; n--)
        if (put(f, " ", 1))
            return -1;
    return 0;
}

/* Width and precision count characters. */
static int put_text(struct formatting *f, const struct directive *d, const char *text, size_t n) {
    size_t bytes = 0, characters = 0, width = (size_t)d->width;
    bool left = strchr(d->flags, '-') != NULL;

    while (bytes < n && (d->precision < 0 || characters < (size_t)d->precision)) {
        bytes += character_length(text + bytes, n - bytes);
        characters++;
    }
    width = width > characters ? width - characters : 0;
    return (!left && pad(f, width)) || put(f, text, bytes) || (left && pad(f, width)) ? -1 : 0;
}

static int put_printed(struct formatting *f, const struct directive *d, const struct node *value) {
    AUTO(buf) text = BUF_INIT(f->render->output_max);
    struct error err;

    if (d->conversion == 'r' ? value_print_quoted(value, &text, &err)
                             : value_print(value, &text, &err))
        return fail(f->render, f->span, "this value cannot be printed: %s", err.message);
    if (spend_text(f->render, f->span, text.len))
        return -1;
    return put_text(f, d, text.data, text.len);
}

static int fail_number(struct formatting *f, const struct directive *d, const struct node *value) {
    return fail(f->render, f->span, "`%%%c` takes a number, and this is %s", d->conversion,
                node_kind_name(value));
}

/* C's printf agrees with Python on these once flags, width and precision are passed on. */
static int put_number(struct formatting *f, const struct directive *d, const struct node *value) {
    bool whole = strchr("diuxXo", d->conversion) != NULL;
    char format[32], number[NUMBER_MAX];
    int64_t integer = 0;
    int n, at;

    if (!value_is_number(value))
        return fail_number(f, d, value);
    if (whole && value->kind == NODE_FLOAT) {
        if (strchr("xXo", d->conversion) || !(fabs(value->number) < 0x1p63))
            return fail_number(f, d, value);
        integer = (int64_t)value->number;
    } else if (whole) {
        integer = value_whole(value);
    }
    if (strchr("xXo", d->conversion) && integer < 0)
        return fail(f->render, f->span, "`%%%c` takes no negative number", d->conversion);
    at = snprintf(format, sizeof format, "%%%s%d", d->flags, d->width);
    if (d->width == 0)
        at--; /* a 0 here would be the flag */
    if (d->precision >= 0)
        at += snprintf(format + at, sizeof format - (size_t)at, ".%d", d->precision);
    snprintf(format + at, sizeof format - (size_t)at, "%s%c", whole ? "l" : "",
             d->conversion == 'u' ? 'd' : d->conversion);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    n = whole ? snprintf(number, sizeof number, format, (long)integer)
              : snprintf(number, sizeof number, format, value_double(value));
#pragma GCC diagnostic pop
    if (n < 0 || (size_t)n >= sizeof number)
        return fail(f->render, f->span, "this number is too long to format");
    return put(f, number, (size_t)n);
}

static int next_value(struct formatting *f, const struct directive *d, const struct node **out) {
    char key[128];

    if (!d->key) {
        if (f->used == f->n)
            return fail(f->render, f->span, "the text asks for more than the %zu values given",
                        f->n);
        *out = &f->args[f->used++];
        return 0;
    }
    f->by_key = true;
    snprintf(key, sizeof key, "%.*s", (int)(d->key_len < sizeof key ? d->key_len : sizeof key - 1),
             d->key);
    *out = f->n == 1 ? node_get(&f->args[0], key) : NULL;
    return *out ? 0 : fail(f->render, f->span, "there is no value `%s` to format", key);
}

static int put_directive(struct formatting *f, const struct directive *d) {
    const struct node *value;

    if (d->conversion == '%')
        return put(f, "%", 1);
    if (!strchr("srdiuxXofFeEgG", d->conversion)) {
        fail(f->render, f->span, "`%%%c` has no meaning in a text to format", d->conversion);
        return fail_help(f->render, "a percent sign itself is written `%%%%`");
    }
    if (next_value(f, d, &value))
        return -1;
    return d->conversion == 's' || d->conversion == 'r' ? put_printed(f, d, value)
                                                        : put_number(f, d, value);
}

int text_format(struct render *render, struct span span, const struct node *format,
                const struct node *args, size_t n, struct node *out) {
    AUTO(buf) text = BUF_INIT(render->output_max);
    struct formatting f = { render, span, args, n, .out = &text };
    const char *p = format->text;

    while (*p) {
        const char *percent = strchrnul(p, '%');
        struct directive directive;

        if (spend(render, span, 1) || put(&f, p, (size_t)(percent - p)))
            return -1;
        if (!*percent)
            break;
        p = percent + 1;
        if (read_directive(&p, &directive))
            return fail(render, span, "the text to format holds an unfinished or too wide `%%`");
        if (put_directive(&f, &directive))
            return -1;
    }
    if (f.used < n && !f.by_key && !(n == 1 && args[0].kind == NODE_MAP))
        return fail(render, span, "the text to format uses %zu of the %zu values given", f.used, n);
    return make_text(render, span, text.data, text.len, out);
}
