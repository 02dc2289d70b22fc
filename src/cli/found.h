/* SPDX-License-Identifier: Apache-2.0 */
/* Values of fields of runs (search/query.h) as `runs` and `compare` show them. */
#ifndef CLI_FOUND_H
#define CLI_FOUND_H

#include "codec/json.h"
#include "search/search.h"

/* The exact value, as programs read it; "" for none. */
const char *found_text(struct arena *arena, const struct query_field *field,
                       const struct search_value *value);
/* For people: numbers in few digits, text made visible, on one line. */
const char *found_shown(struct arena *arena, const struct query_field *field,
                        const struct search_value *value);
void found_json(struct json *json, const struct query_field *field,
                const struct search_value *value);

/* Tells on standard error why the index of the home was not used, if there is a reason. */
void found_note_index(const struct error *unused);

#endif
