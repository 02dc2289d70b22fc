/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rendering under way: its budgets, its names, how it fails, and the operations on values
 * that operators, filters, tests and methods share.
 *
 * Every function that returns int keeps the rule of base/error.h, with the difference that the
 * error is the one diagnostic of this rendering: fail() adds it, and all callers unwind.
 */
#ifndef TEMPLATE_RENDER_H
#define TEMPLATE_RENDER_H

#include "template/template.h"

enum { ARGUMENTS_MAX = 8, SCRATCH_MAX = 64 << 20, TEXT_PER_STEP = 256 };

/* A piece of the template's text, in bytes. */
struct span {
    uint32_t at, length;
};

/* Why a value is not there; the sentence is made only if it is needed. */
enum unknown_reason {
    UNKNOWN_NAME,
    UNKNOWN_MEMBER,
    UNKNOWN_ITEM,
    UNKNOWN_EMPTY,  /* first, last, min or max of nothing */
    UNKNOWN_CHOICE, /* `a if false`: prints as nothing, as in Jinja2 */
};

struct unknown {
    enum unknown_reason reason;
    struct span span;
    const char *name;
    struct node holder; /* of a member or an item */
};

struct value {
    struct node node; /* when unknown is NULL */
    const struct unknown *unknown;
};

struct binding {
    struct binding *next;
    const char *name;
    struct node value;
};

/* A loop's body has its own names; branches of an if have not. */
struct scope {
    struct scope *outer;
    struct binding *bindings;
};

struct render {
    const struct template_context *context;
    const struct node *text;
    struct place place; /* of every value made here */
    struct diags *diags;
    struct diag *failure;
    bool warns; /* what fails is a warning */
    struct arena scratch;
    struct scope *scope;
    size_t steps_left, output_max;
};

/* How a filter, test, method or function is called. */
struct call {
    struct span span;
    const char *name;
    struct value input;                     /* unknown only if the row takes_unknown */
    const struct node *args[ARGUMENTS_MAX]; /* NULL where not given */
    size_t count;                           /* of a variadic call */
};

/* One row of a table of filters, tests, methods or functions. */
struct routine {
    const char *name;
    const char *parameters[4];
    uint8_t required; /* the first so many parameters must be given */
    bool takes_unknown, variadic;
    uint8_t receiver; /* of a method: the kind of node it belongs to */
    int (*run)(struct render *render, const struct call *call, struct value *out);
};

struct routines {
    const char *noun; /* "filter" */
    const struct routine *rows;
    size_t len;
};
extern const struct routines filters, tests, methods, functions;

const struct routine *routine_find(const struct routines *routines, const char *name);
MUST_CHECK int fail_no_routine(struct render *render, struct span span,
                               const struct routines *routines, const char *name);

/* Both return -1. Help belongs to the failure just told. */
int fail(struct render *render, struct span span, const char *fmt, ...) PRINTF_LIKE(3, 4);
int fail_help(struct render *render, const char *fmt, ...) PRINTF_LIKE(2, 3);
MUST_CHECK int fail_unknown(struct render *render, const struct unknown *unknown);
/* The same as a warning: rendering goes on with an empty text. */
void warn_unknown(struct render *render, const struct unknown *unknown);

/* Takes n steps from the budget, and what n bytes of text cost. */
MUST_CHECK int spend(struct render *render, struct span span, size_t steps);
MUST_CHECK int spend_text(struct render *render, struct span span, size_t bytes);
/* Scratch memory within SCRATCH_MAX; n * size does not overflow for any n below 2^32. */
MUST_CHECK int scratch_array(struct render *render, struct span span, size_t n, size_t size,
                             void *out);

/* Values made in scratch. */
MUST_CHECK int make_text(struct render *render, struct span span, const char *text, size_t n,
                         struct node *out); /* copies */
MUST_CHECK int make_list(struct render *render, struct span span, size_t n, struct node *out);
/* Of 2n nodes: key, value, key, value…; of equal keys the last value stays. */
MUST_CHECK int make_map(struct render *render, struct span span, const struct node *pairs, size_t n,
                        struct node *out);
int make_unknown(struct render *render, enum unknown_reason reason, struct span span,
                 const char *name, const struct node *holder, struct value *out);
struct value known(struct node node);

bool value_truth(const struct node *value);
bool value_is_number(const struct node *value); /* also True and False, as in Python */
bool value_is_whole(const struct node *value);
int64_t value_whole(const struct node *value);
double value_double(const struct node *value);
size_t value_characters(const struct node *text);

MUST_CHECK int value_equal(struct render *render, struct span span, const struct node *a,
                           const struct node *b, bool *out);
/* *sign is below, at or above 0; 2 when a NaN makes the two unordered. */
enum { UNORDERED = 2 };
MUST_CHECK int value_order(struct render *render, struct span span, const struct node *a,
                           const struct node *b, int *sign);
MUST_CHECK int value_contains(struct render *render, struct span span, const struct node *holder,
                              const struct node *item, bool *out);
/* What a loop goes through: a list's items, a map's keys, a text's characters. */
MUST_CHECK int value_items(struct render *render, struct span span, const struct node *value,
                           struct node *list);
/* str() of a value as a text in scratch; of a text, the text itself. */
MUST_CHECK int value_text(struct render *render, struct span span, const struct node *value,
                          struct node *out);
int value_attribute(struct render *render, struct span span, const struct node *holder,
                    const char *name, struct value *out);
MUST_CHECK int value_index(struct render *render, struct span span, const struct node *holder,
                           const struct node *key, struct value *out);
MUST_CHECK int value_slice(struct render *render, struct span span, const struct node *holder,
                           const struct node *const bounds[3], struct node *out);

/* a + b, which sum also uses; and Python's % on a text. */
MUST_CHECK int operator_add(struct render *render, struct span span, const struct node *a,
                            const struct node *b, struct node *out);
MUST_CHECK int text_format(struct render *render, struct span span, const struct node *format,
                           const struct node *args, size_t n, struct node *out);

/* Resolves \n \x41 \u00e9 …; `out` holds n bytes, which is always enough. Returns -1 with *bad at
 * the escape that is wrong, or that would make a NUL. */
MUST_CHECK int text_unescape(const char *text, size_t n, char *out, size_t *out_len, size_t *bad);
size_t character_length(const char *text, size_t n); /* a byte that is no UTF-8 counts as one */
bool is_blank(char c);

/* Python's int() and float() of a text. */
MUST_CHECK int text_to_whole(const char *text, size_t n, int base, int64_t *out);
MUST_CHECK int text_to_double(const char *text, size_t n, double *out);

#endif
