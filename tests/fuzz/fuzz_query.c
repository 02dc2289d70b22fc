/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as a query and as a sort. Beyond "no crash": what is refused is told with a place
 * within the text, and what is taken can be held against any value.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "search/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool law) {
    if (!law)
        abort();
}

static void check_places(const struct diags *diags, size_t size) {
    require(diags->errors > 0);
    for (size_t i = 0; i < diags->len; i++)
        require((uint64_t)diags->list[i].place.offset + diags->list[i].place.length <= size);
}

static void check_conditions(const struct query *query) {
    static const double numbers[] = { 0, 1, -1.5, NAN, INFINITY };

    for (size_t i = 0; i < query->n; i++) {
        const struct query_condition *condition = &query->conditions[i];

        require(condition->n_values > 0 && condition->field.name[0]);
        for (size_t j = 0; j < ARRAY_LEN(numbers); j++)
            query_fits_number(condition, numbers[j]);
        query_fits_text(condition, "");
        query_fits_text(condition, "Some text");
        if (condition->test == QUERY_IS && !condition->values[0].is_pattern)
            require(query_fits_text(condition, condition->values[0].text));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO_PTR(diags) diags = diags_new();
    AUTO_PTR(diags) of_sort = diags_new();
    AUTO(arena) arena = ARENA_INIT;
    struct query_sort sort;
    struct query query;

    if (size > 4096)
        return 0;
    if (query_parse((const char *)data, size, 0, &arena, diags, &query))
        check_places(diags, size);
    else
        check_conditions(&query);
    if (query_sort_parse((const char *)data, size, 0, &arena, of_sort, &sort))
        check_places(of_sort, size);
    return 0;
}
