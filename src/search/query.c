/* SPDX-License-Identifier: Apache-2.0 */
#include "search/query.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "codec/nearest.h"
#include "model/state.h"

const struct query_own_field query_own_fields[] = {
    { "id", QUERY_NUMBER, "the number of the run" },
    { "name", QUERY_TEXT, "of the experiment" },
    { "status", QUERY_STATUS, "created, running, succeeded, failed, stopped and so on" },
    { "owner", QUERY_TEXT, "who started it; also `user`" },
    { "framework", QUERY_TEXT, "as the file gives it" },
    { "host", QUERY_TEXT, "the machine it was started on" },
    { "command", QUERY_TEXT, "what each task runs" },
    { "directory", QUERY_TEXT, "where the tasks run" },
    { "commit", QUERY_TEXT, "of its code, in 40 digits: `commit:4f0c%`" },
    { "branch", QUERY_TEXT, "of its code" },
    { "dirty", QUERY_ANY, "whether its code was changed since the commit: true, false" },
    { "tasks", QUERY_NUMBER, "how many it has" },
    { "attempts", QUERY_NUMBER, "how often it was started" },
    { "exit_status", QUERY_NUMBER, "of `run`" },
    { "created_at", QUERY_TIME, "when it was made" },
    { "started_at", QUERY_TIME, "when its first attempt began" },
    { "updated_at", QUERY_TIME, "when something last happened to it" },
    { "finished_at", QUERY_TIME, "when it ended" },
    { "duration", QUERY_NUMBER, "seconds since it was made, until its end" },
    { "tags", QUERY_TAGS, "the names of its tags" },
    { 0 },
};

static const struct {
    const char *given, *prefix;
} prefixes[] = {
    { "params.", "params." },   { "param.", "params." },   { "declarations.", "params." },
    { "metrics.", "metrics." }, { "metric.", "metrics." }, { "summary.", "summary." },
    { "min.", "min." },         { "max.", "max." },        { "tags.", "tags." },
};

/* What the original knows and a run of this program does not have. */
static const char *const absent[] = { "project", "group",       "build",
                                      "backend", "description", "independent" };

/* ---- reading ---- */

struct reading {
    const char *text;
    size_t at, end;
    uint16_t source;
    struct arena *arena;
    struct diags *diags;
    bool has_failed;
};

static struct diag *wrong(struct reading *r, size_t from, size_t to, const char *what) {
    const struct place place = { (uint32_t)from, (uint32_t)(to > from ? to - from : 0), r->source };

    r->has_failed = true;
    return diag_error(r->diags, place, "%s", what);
}

static void skip_blanks(struct reading *r) {
    while (r->at < r->end && isspace((unsigned char)r->text[r->at]))
        r->at++;
}

static bool take(struct reading *r, char c) {
    skip_blanks(r);
    if (r->at == r->end || r->text[r->at] != c)
        return false;
    r->at++;
    return true;
}

/* A piece of text up to one of these characters outside quotes, without blanks around it. */
struct piece {
    size_t from, to;
    char *text; /* without quotes */
    size_t n;
    bool is_quoted;
};

static bool ends_piece(const struct reading *r, const char *ends, bool ends_at_dots) {
    const char c = r->text[r->at];

    return (c && strchr(ends, c)) ||
           (ends_at_dots && c == '.' && r->at + 1 < r->end && r->text[r->at + 1] == '.');
}

static struct piece take_piece(struct reading *r, const char *ends, bool ends_at_dots) {
    struct piece piece = { 0 };
    size_t n_blank = 0;

    skip_blanks(r);
    piece.from = r->at;
    piece.text = arena_alloc(r->arena, r->end - r->at + 1);
    while (r->at < r->end && !ends_piece(r, ends, ends_at_dots)) {
        const char c = r->text[r->at++];
        const char *close;

        if (c != '"' && c != '\'') {
            n_blank = isspace((unsigned char)c) ? n_blank + 1 : 0;
            piece.text[piece.n++] = c;
            continue;
        }
        close = memchr(r->text + r->at, c, r->end - r->at);
        if (!close) {
            diag_help(wrong(r, r->at - 1, r->end, "the quote is not closed"),
                      "end the text with %c", c);
            close = r->text + r->end;
        }
        memcpy(piece.text + piece.n, r->text + r->at, (size_t)(close - r->text) - r->at);
        piece.n += (size_t)(close - r->text) - r->at;
        r->at = (size_t)(close - r->text) + (close < r->text + r->end);
        piece.is_quoted = true;
        n_blank = 0;
    }
    piece.to = r->at - n_blank;
    piece.n -= n_blank;
    piece.text[piece.n] = '\0';
    return piece;
}

/* ---- fields ---- */

static const char *listed(struct arena *arena, const char *const *names, size_t n) {
    const char *out = "";

    for (size_t i = 0; i < n; i++)
        out = arena_printf(arena, "%s%s%s", out, i > 0 ? ", " : "", names[i]);
    return out;
}

static void unknown_field(struct reading *r, const struct piece *piece) {
    const char *names[ARRAY_LEN(query_own_fields) + ARRAY_LEN(prefixes)], *near;
    struct diag *diag;
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(absent); i++)
        if (strcmp(absent[i], piece->text) == 0) {
            diag_help(wrong(r, piece->from, piece->to, "runs of myelin do not have this field"),
                      "leave the condition out");
            return;
        }
    for (; query_own_fields[n].name; n++)
        names[n] = query_own_fields[n].name;
    diag = wrong(r, piece->from, piece->to,
                 piece->n ? "there is no such field" : "here the name of a field is missing");
    near = piece->n ? nearest_name(piece->text, names, n) : NULL;
    if (near)
        diag_help(diag,
                  "did you mean '%s'? What tasks logged is params.X, metrics.X, min.X, max.X, "
                  "summary.X and tags.X",
                  near);
    else if (piece->n)
        diag_help(diag,
                  "what tasks logged is metrics.%.60s, params.%.60s, min., max., summary. or "
                  "tags.%.60s; the other fields are %s",
                  piece->text, piece->text, piece->text, listed(r->arena, names, n));
    else
        diag_help(diag, "fields are %s, and params.X, metrics.X, min.X, max.X, summary.X, tags.X",
                  listed(r->arena, names, n));
}

static bool resolve_field(struct reading *r, const struct piece *piece, struct query_field *out) {
    const char *name = strcmp(piece->text, "user") == 0 ? "owner" : piece->text;

    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        const size_t n = strlen(prefixes[i].given);

        if (strncmp(name, prefixes[i].given, n) == 0 && name[n]) {
            *out =
                (struct query_field){ arena_printf(r->arena, "%s%s", prefixes[i].prefix, name + n),
                                      QUERY_ANY };
            return true;
        }
    }
    for (const struct query_own_field *own = query_own_fields; own->name; own++)
        if (strcmp(own->name, name) == 0) {
            *out = (struct query_field){ own->name, own->type };
            return true;
        }
    unknown_field(r, piece);
    return false;
}

/* ---- values ---- */

static bool read_number(const char *text, double *out) {
    char *end;

    /* What strtod takes besides, as hexadecimal digits, is text to everybody else. */
    if (text[0] == '\0' || isspace((unsigned char)text[0]) || strpbrk(text, "xXpP("))
        return false;
    *out = strtod(text, &end);
    return *end == '\0';
}

/* From the beginning of the unit that it is given to, to the beginning of the next. */
static bool read_time(const char *text, double *from, double *to) {
    struct time_given given;
    struct tm next;

    if (!time_parse(text, strlen(text), &given))
        return false;
    *from = (double)given.moment.tv_sec + (double)given.moment.tv_nsec / 1e9;
    if (given.unit == UNIT_FRACTION) {
        *to = *from + 1e-6;
        return true;
    }
    gmtime_r(&given.moment.tv_sec, &next);
    next.tm_year += given.unit == UNIT_YEAR;
    next.tm_mon += given.unit == UNIT_MONTH;
    next.tm_mday += given.unit == UNIT_DAY;
    next.tm_min += given.unit == UNIT_MINUTE;
    next.tm_sec += given.unit == UNIT_SECOND;
    *to = (double)timegm(&next);
    return true;
}

static bool read_as(struct reading *r, const struct piece *piece, enum query_type type,
                    struct query_value *value) {
    if (type == QUERY_TIME) {
        value->is_number = read_time(piece->text, &value->from, &value->to);
        if (!value->is_number)
            diag_help(wrong(r, piece->from, piece->to, "this is no time"),
                      "write it as 2026-03-01, 2026-03, or \"2026-03-01 12:30\", in UTC");
        return value->is_number;
    }
    if (type == QUERY_TEXT || type == QUERY_TAGS || type == QUERY_STATUS || piece->is_quoted)
        return true;
    value->is_number = read_number(piece->text, &value->from);
    value->to = value->from;
    if (type == QUERY_NUMBER && !value->is_number) {
        diag_help(wrong(r, piece->from, piece->to, "this is no number"), "write it as 3 or 1e-3");
        return false;
    }
    return true;
}

static bool check_status(struct reading *r, const struct piece *piece) {
    const char *names[STATE_COUNT], *near;
    struct diag *diag;
    enum state state;

    if (state_named(piece->text, &state))
        return true;
    for (int i = 0; i < STATE_COUNT; i++)
        names[i] = state_name((enum state)i);
    diag = wrong(r, piece->from, piece->to, "there is no such status");
    near = nearest_name(piece->text, names, STATE_COUNT);
    diag_help(diag,
              near ? "did you mean '%s'?"
                   : "%sthe usual ones are running, succeeded, failed and "
                     "stopped",
              near ? near : "");
    return false;
}

static bool resolve_value(struct reading *r, const struct piece *piece,
                          const struct query_condition *condition, struct query_value *out) {
    const enum query_type type = condition->field.type;
    const bool may_be_pattern = type == QUERY_ANY || type == QUERY_TEXT || type == QUERY_TAGS;

    *out = (struct query_value){ .text = piece->text };
    if (piece->n == 0 && !piece->is_quoted) {
        diag_help(wrong(r, piece->from, piece->to, "here a value is missing"),
                  "\"\" is the empty text");
        return false;
    }
    if (!read_as(r, piece, type, out))
        return false;
    if (condition->test != QUERY_IS && !out->is_number) {
        diag_help(wrong(r, piece->from, piece->to, "only numbers and times are less or more"),
                  type == QUERY_ANY ? "write a number" : "write '%s:value' instead",
                  condition->field.name);
        return false;
    }
    if (type == QUERY_STATUS && !check_status(r, piece))
        return false;
    out->is_pattern = may_be_pattern && !piece->is_quoted && condition->test == QUERY_IS &&
                      (piece->text[0] == '%' || piece->text[piece->n - 1] == '%');
    return true;
}

/* ---- conditions ---- */

static enum query_operator take_operator(struct reading *r) {
    static const struct {
        char first;
        enum query_operator alone, with_equal;
    } operators[] = { { '<', QUERY_LESS, QUERY_AT_MOST }, { '>', QUERY_MORE, QUERY_AT_LEAST } };

    for (size_t i = 0; i < ARRAY_LEN(operators); i++)
        if (take(r, operators[i].first)) {
            if (r->at < r->end && r->text[r->at] == '=') {
                r->at++;
                return operators[i].with_equal;
            }
            return operators[i].alone;
        }
    return QUERY_IS;
}

static bool is_at_dots(const struct reading *r) {
    return r->at + 1 < r->end && r->text[r->at] == '.' && r->text[r->at + 1] == '.';
}

static bool take_range(struct reading *r, const struct piece *first,
                       struct query_condition *condition) {
    struct piece last;

    r->at += 2;
    last = take_piece(r, ",|", true);
    condition->test = QUERY_WITHIN;
    condition->values = ARENA_ARRAY(r->arena, struct query_value, 2);
    condition->n_values = 2;
    if (!resolve_value(r, first, condition, &condition->values[0]) ||
        !resolve_value(r, &last, condition, &condition->values[1]))
        return false;
    if (is_at_dots(r) || (r->at < r->end && r->text[r->at] == '|')) {
        diag_help(wrong(r, r->at, r->at + 1, "a range stands alone"),
                  "write %s:from..to, and another range in a query of its own",
                  condition->field.name);
        return false;
    }
    if (condition->values[0].from > condition->values[1].from) {
        diag_help(wrong(r, first->from, last.to, "the range ends before it begins"),
                  "write the smaller value first");
        return false;
    }
    return true;
}

static bool take_list(struct reading *r, struct query_condition *condition) {
    const bool may_be_range =
        condition->test == QUERY_IS &&
        (condition->field.type == QUERY_NUMBER || condition->field.type == QUERY_TIME ||
         condition->field.type == QUERY_ANY);
    VEC(struct query_value) values = { 0 };
    bool is_good;

    do {
        const struct piece piece = take_piece(r, ",|", may_be_range);

        if (may_be_range && is_at_dots(r)) {
            is_good = values.len == 0;
            if (!is_good)
                diag_help(wrong(r, piece.from, r->at + 2, "a range stands alone"),
                          "write %s:from..to", condition->field.name);
            VEC_RELEASE(&values);
            return is_good && take_range(r, &piece, condition);
        }
        is_good = resolve_value(r, &piece, condition, VEC_PUSH(&values));
        if (is_good && condition->test != QUERY_IS && r->at < r->end && r->text[r->at] == '|') {
            diag_help(wrong(r, r->at, r->at + 1, "a comparison has one value"),
                      "a list is of values alone, as %s:1|2", condition->field.name);
            is_good = false;
        }
    } while (is_good && take(r, '|'));
    condition->n_values = values.len;
    condition->values = arena_copy(r->arena, values.items, values.len * sizeof values.items[0]);
    VEC_RELEASE(&values);
    return is_good;
}

static bool take_condition(struct reading *r, struct query_condition *out) {
    struct piece name;

    *out = (struct query_condition){ .is_negated = take(r, '~') };
    name = take_piece(r, ":,", false);
    if (r->at == r->end || r->text[r->at] != ':') {
        diag_help(wrong(r, name.from, name.to,
                        name.n ? "this is no condition" : "here a condition is missing"),
                  "a condition is a field, a colon and a value, as status:running");
        return false;
    }
    r->at++;
    if (!resolve_field(r, &name, &out->field))
        return false;
    if (take(r, '~'))
        out->is_negated = !out->is_negated;
    out->test = take_operator(r);
    return take_list(r, out);
}

/* Goes on behind the next comma outside quotes. */
static bool next_part(struct reading *r) {
    if (r->at < r->end && r->text[r->at] != ',') {
        struct reading quiet = *r;

        quiet.diags = diags_new();
        take_piece(&quiet, ",", false);
        diags_free(quiet.diags);
        r->at = quiet.at;
    }
    return take(r, ',');
}

static bool is_empty(struct reading *r) {
    skip_blanks(r);
    return r->at == r->end;
}

static bool begin(struct reading *r, const char *text, size_t n, uint16_t source,
                  struct arena *arena, struct diags *diags) {
    const char *zero = memchr(text, 0, n);

    *r = (struct reading){
        .text = text, .end = n, .source = source, .arena = arena, .diags = diags
    };
    if (n > QUERY_MOST)
        diag_help(wrong(r, 0, 0, "the query is too long"), "it may have %d bytes", QUERY_MOST);
    else if (zero)
        wrong(r, (size_t)(zero - text), (size_t)(zero - text) + 1, "a query holds no NUL");
    return !r->has_failed;
}

int query_parse(const char *text, size_t n, uint16_t source, struct arena *arena,
                struct diags *diags, struct query *out) {
    VEC(struct query_condition) conditions = { 0 };
    struct query_condition condition;
    struct reading r;

    if (!begin(&r, text, n, source, arena, diags))
        return -1;
    if (!is_empty(&r))
        do {
            if (take_condition(&r, &condition))
                *VEC_PUSH(&conditions) = condition;
        } while (next_part(&r));
    if (!r.has_failed)
        *out = (struct query){ arena_copy(arena, conditions.items,
                                          conditions.len * sizeof conditions.items[0]),
                               conditions.len };
    VEC_RELEASE(&conditions);
    return r.has_failed ? -1 : 0;
}

static int parse_orders(const char *text, size_t n, uint16_t source, struct arena *arena,
                        struct diags *diags, bool has_signs, struct query_sort *out) {
    VEC(struct query_order) orders = { 0 };
    struct reading r;

    if (!begin(&r, text, n, source, arena, diags))
        return -1;
    if (!is_empty(&r))
        do {
            struct query_order order = { .is_descending = has_signs && take(&r, '-') };
            const struct piece name = take_piece(&r, ",", false);

            if (resolve_field(&r, &name, &order.field))
                *VEC_PUSH(&orders) = order;
            if (has_signs && order.field.type == QUERY_TAGS)
                diag_help(wrong(&r, name.from, name.to, "the names of tags have no order"),
                          "sort by tags.X, the value of one tag");
        } while (next_part(&r));
    if (!r.has_failed)
        *out = (struct query_sort){
            arena_copy(arena, orders.items, orders.len * sizeof orders.items[0]), orders.len
        };
    VEC_RELEASE(&orders);
    return r.has_failed ? -1 : 0;
}

int query_sort_parse(const char *text, size_t n, uint16_t source, struct arena *arena,
                     struct diags *diags, struct query_sort *out) {
    return parse_orders(text, n, source, arena, diags, true, out);
}

int query_fields_parse(const char *text, size_t n, uint16_t source, struct arena *arena,
                       struct diags *diags, struct query_sort *out) {
    return parse_orders(text, n, source, arena, diags, false, out);
}

/* ---- fitting ---- */

static bool is_one_of(const struct query_condition *condition, double x) {
    const bool is_time = condition->field.type == QUERY_TIME;

    for (size_t i = 0; i < condition->n_values; i++) {
        const struct query_value *value = &condition->values[i];

        if (!value->is_number)
            continue;
        if (is_time    ? x >= value->from && x < value->to
            : isnan(x) ? isnan(value->from)
                       : x == value->from)
            return true;
    }
    return false;
}

bool query_fits_number(const struct query_condition *condition, double x) {
    const bool is_time = condition->field.type == QUERY_TIME;
    const struct query_value *value = condition->values;

    switch (condition->test) {
    case QUERY_IS: return is_one_of(condition, x);
    case QUERY_LESS: return x < value->from;
    case QUERY_AT_MOST: return is_time ? x < value->to : x <= value->from;
    case QUERY_MORE: return is_time ? x >= value->to : x > value->from;
    case QUERY_AT_LEAST: return x >= value->from;
    case QUERY_WITHIN: break;
    }
    return x >= value[0].from && (is_time ? x < value[1].to : x <= value[1].from);
}

/* Letters of ASCII are alike, large or small, as the original has it. */
static bool fits_pattern(const char *pattern, const char *text) {
    const size_t n = strlen(pattern), length = strlen(text);
    const bool at_begin = pattern[0] == '%', at_end = pattern[n - 1] == '%';
    const char *core = pattern + at_begin;
    const size_t n_core = n > 1 ? n - at_begin - at_end : 0;

    if (n_core > length)
        return false;
    for (size_t i = 0; i + n_core <= length; i++)
        if ((at_begin || i == 0) && (at_end || i + n_core == length) &&
            strncasecmp(text + i, core, n_core) == 0)
            return true;
    return false;
}

bool query_fits_text(const struct query_condition *condition, const char *text) {
    if (condition->test != QUERY_IS)
        return false;
    for (size_t i = 0; i < condition->n_values; i++) {
        const struct query_value *value = &condition->values[i];

        if (value->is_pattern ? fits_pattern(value->text, text) : strcmp(value->text, text) == 0)
            return true;
    }
    return false;
}
