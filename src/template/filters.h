/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters, in three files by what they work on. filters.c has their table; what each takes and
 * gives is in docs/templates.md. Some serve as methods too.
 */
#ifndef TEMPLATE_FILTERS_H
#define TEMPLATE_FILTERS_H

#include "template/render.h"

#define FILTER(name) int name(struct render *render, const struct call *call, struct value *out)

FILTER(filter_lower);
FILTER(filter_upper);
FILTER(filter_title);
FILTER(filter_trim);
FILTER(filter_replace);
FILTER(filter_split);
FILTER(filter_basename);
FILTER(filter_format);
FILTER(filter_string);
FILTER(filter_join);
FILTER(filter_tojson);

FILTER(filter_int);
FILTER(filter_float);
FILTER(filter_round);
FILTER(filter_abs);

FILTER(filter_first);
FILTER(filter_last);
FILTER(filter_min);
FILTER(filter_max);
FILTER(filter_sum);
FILTER(filter_sort);
FILTER(filter_unique);
FILTER(filter_list);
FILTER(filter_length);

/* An argument as a whole number, a truth or a text; what is not given is `missing`. */
MUST_CHECK int argument_whole(struct render *render, const struct call *call, size_t i,
                              int64_t missing, int64_t *out);
bool argument_truth(const struct call *call, size_t i);
MUST_CHECK int argument_text(struct render *render, const struct call *call, size_t i,
                             const char *missing, struct node *out);

/* The items, each replaced by its attribute if one is asked for: 'a', 'a.b' or a number. */
MUST_CHECK int pick_attribute(struct render *render, const struct call *call,
                              const struct node *items, const struct node *attribute,
                              struct node *out);

#endif
