/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/found.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/plot.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "codec/number.h"

static bool is_whole(double x) {
    return isfinite(x) && x == floor(x) && fabs(x) < 1e15;
}

static bool is_measured(const char *field) {
    return strncmp(field, "metrics.", 8) == 0 || strncmp(field, "min.", 4) == 0 ||
           strncmp(field, "max.", 4) == 0;
}

const char *found_text(struct arena *arena, const struct query_field *field,
                       const struct search_value *value) {
    char number[NUMBER_TEXT_MAX];

    switch (value->kind) {
    case CELL_NONE: return "";
    case CELL_WORD: return value->text;
    case CELL_TRUTH: return value->number != 0 ? "true" : "false";
    case CELL_NUMBER: break;
    }
    if (field->type == QUERY_TIME)
        return arena_printf(
            arena, "%s", time_text((int64_t)llround(value->number * 1e6), TIME_MILLISECONDS).text);
    if (is_whole(value->number))
        return arena_printf(arena, "%.0f", value->number);
    number_format(value->number, number);
    return arena_printf(arena, "%s", number);
}

const char *found_shown(struct arena *arena, const struct query_field *field,
                        const struct search_value *value) {
    if (value->kind != CELL_NUMBER)
        return runs_text(arena, found_text(arena, field, value), 0);
    if (field->type == QUERY_TIME)
        return arena_printf(arena, "%s",
                            time_text((int64_t)llround(value->number * 1e6), TIME_SECONDS).text);
    if (strcmp(field->name, "duration") == 0)
        return arena_printf(arena, "%s", duration_text(value->number).text);
    if (is_measured(field->name))
        return arena_printf(arena, "%s", plot_number(value->number).text);
    return found_text(arena, field, value);
}

void found_json(struct json *json, const struct query_field *field,
                const struct search_value *value) {
    AUTO(arena) arena = ARENA_INIT;

    if (value->kind == CELL_NONE)
        json_null(json);
    else if (value->kind == CELL_TRUTH)
        json_bool(json, value->number != 0);
    else if (value->kind == CELL_WORD || field->type == QUERY_TIME)
        json_text(json, found_text(&arena, field, value));
    else if (isnan(value->number))
        json_text(json, "NaN");
    else if (isinf(value->number))
        json_text(json, value->number > 0 ? "Infinity" : "-Infinity");
    else if (is_whole(value->number))
        json_int(json, (int64_t)value->number);
    else
        json_number(json, value->number);
}

void found_note_index(const struct error *unused) {
    AUTO(arena) arena = ARENA_INIT;

    if (unused->code != ERROR_NONE)
        fprintf(stderr, "myelin: note: the runs were read from their journals: %s\n",
                runs_text(&arena, unused->message, 0));
}
