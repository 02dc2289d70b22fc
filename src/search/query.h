/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query language of Polyaxon 0.x, to find runs by what is known of them. Pure.
 *
 *   status:running, metrics.loss:<0.3, params.lr:0.1|0.2, ~tags:x, created_at:2026-01..2026-03
 *
 *   query      condition {"," condition}          all of them hold; an empty query holds for all
 *   condition  ["~"] field ":" ["~"] test         "~" at either place turns it around
 *   test       value {"|" value}                  one of these
 *              ("<" | "<=" | ">" | ">=") value    of numbers and times
 *              value ".." value                   from, to; both belong to it
 *   value      plain or 'quoted' or "quoted" text; plain text that begins or ends with % stands
 *              for any text there
 *
 * A field is one of myelin's own (query_own_fields), or params.X, summary.X, metrics.X (the last
 * value), min.X, max.X, or tags.X; `tags` alone asks for the names of tags. A sort is a list of
 * fields, each with "-" for the greatest first. docs/search.md is the manual.
 *
 * Every run fulfils either a condition or its negation: what a run does not have is not equal,
 * not less and not more. Times are UTC; one that leaves out the end is a span: 2026-03 is a month.
 */
#ifndef SEARCH_QUERY_H
#define SEARCH_QUERY_H

#include "base/arena.h"
#include "codec/diag.h"

enum { QUERY_MOST = 64 * 1024 }; /* bytes of a query */

enum query_type {
    QUERY_ANY, /* number, text or truth, as the run has it */
    QUERY_TEXT,
    QUERY_STATUS,
    QUERY_NUMBER,
    QUERY_TIME,
    QUERY_TAGS, /* the names of tags */
};

struct query_field {
    const char *name; /* as the index has it: "metrics.loss" */
    enum query_type type;
};

enum query_operator {
    QUERY_IS, /* one of its values */
    QUERY_LESS,
    QUERY_AT_MOST,
    QUERY_MORE,
    QUERY_AT_LEAST,
    QUERY_WITHIN, /* its two values */
};

struct query_value {
    const char *text; /* without quotes */
    bool is_number;   /* from <= x <= to fits; of a time: from <= x < to */
    bool is_pattern;  /* % at its begin or end stands for anything */
    double from, to;  /* numbers: equal; times: seconds since 1970 */
};

struct query_condition {
    struct query_field field;
    bool is_negated;
    enum query_operator test;
    struct query_value *values;
    size_t n_values;
};

struct query {
    struct query_condition *conditions;
    size_t n;
};

struct query_order {
    struct query_field field;
    bool is_descending;
};

struct query_sort {
    struct query_order *orders;
    size_t n;
};

/* Mistakes are added to the list with their places in source number `source`: -1 where there is
 * one. What is made lives in the arena. */
MUST_CHECK int query_parse(const char *text, size_t n, uint16_t source, struct arena *arena,
                           struct diags *diags, struct query *out);
MUST_CHECK int query_sort_parse(const char *text, size_t n, uint16_t source, struct arena *arena,
                                struct diags *diags, struct query_sort *out);
/* A list of fields, as of a sort, without signs. */
MUST_CHECK int query_fields_parse(const char *text, size_t n, uint16_t source, struct arena *arena,
                                  struct diags *diags, struct query_sort *out);

/* Whether a value that a run has fulfils a condition, but for its negation. */
bool query_fits_number(const struct query_condition *condition, double number);
bool query_fits_text(const struct query_condition *condition, const char *text);

struct query_own_field {
    const char *name;
    enum query_type type;
    const char *help;
};
extern const struct query_own_field query_own_fields[]; /* ended by a row without a name */

#endif
