/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/render_diff.h"

#include <stdio.h>
#include <string.h>

#include "cli/failure.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "codec/json.h"
#include "plan/fold.h"

enum { CELL_SHOWN = 44, GROUPS_SHOWN_MAX = 20, NAMES_MAX = 1 << 20 };

static void add_cell(struct table *table, const char *text) {
    if (!text)
        table_cell(table, "-");
    else if (strlen(text) > CELL_SHOWN)
        table_cell(table, "%.*s...", CELL_SHOWN - 3, text);
    else
        table_cell(table, "%s", text);
}

static void print_rows(struct comparison *comparison, const char *head,
                       const struct compared_list *rows) {
    static const char *const heads[SIDE_COUNT] = { "LOCAL", "NATIVE", "KUBEFLOW" };
    struct table table;
    size_t n_sides = 0;
    enum side sides[SIDE_COUNT];

    for (enum side side = 0; side < SIDE_COUNT; side++)
        if (!comparison_refusal(comparison, side))
            sides[n_sides++] = side;
    table_init(&table, n_sides + 1);
    table_cell(&table, "%s", head);
    for (size_t i = 0; i < n_sides; i++)
        table_cell(&table, "%s", heads[sides[i]]);
    for (size_t i = 0; i < rows->len; i++) {
        table_cell(&table, "%s", rows->list[i].name);
        for (size_t k = 0; k < n_sides; k++)
            add_cell(&table, rows->list[i].on[sides[k]]);
    }
    table_print(&table, stdout, terminal_colour(stdout));
    table_release(&table);
}

static int print_group(struct comparison *comparison, const struct plan *plan,
                       const struct task_group *group, struct error *err) {
    AUTO(buf) names = BUF_INIT(NAMES_MAX);
    struct compared_list rows;

    if (fold_group(plan, group, &names, err) ||
        comparison_task(comparison, group->ranks[0], &rows, err))
        return -1;
    if (group->n > 1)
        printf("%s, by the example of %s\n", names.data,
               task_name(&plan->tasks[group->ranks[0]]).text);
    else
        printf("%s\n", names.data);
    if (rows.len > 0)
        print_rows(comparison, "VARIABLE", &rows);
    printf("\n");
    return 0;
}

int render_diff_print(struct comparison *comparison, const struct plan *plan, struct error *err) {
    struct task_groups groups = group_tasks(plan);
    struct compared_list rest;
    int status = 0;

    for (size_t i = 0; i < groups.len && i < GROUPS_SHOWN_MAX && status == 0; i++)
        status = print_group(comparison, plan, &groups.list[i], err);
    if (groups.len > GROUPS_SHOWN_MAX)
        printf("(%zu more groups of tasks; --json lists every task)\n\n",
               groups.len - GROUPS_SHOWN_MAX);
    task_groups_release(&groups);
    if (status)
        return -1;
    rest = comparison_rest(comparison);
    print_rows(comparison, "FIELD", &rest);
    for (enum side side = 0; side < SIDE_COUNT; side++)
        if (comparison_refusal(comparison, side))
            printf("note: %s cannot hold it: %s\n", side_name(side),
                   comparison_refusal(comparison, side));
    return 0;
}

/* ---- for programs ---- */

static void write_rows(struct json *json, const struct compared_list *rows) {
    json_object(json);
    for (size_t i = 0; i < rows->len; i++) {
        json_key(json, rows->list[i].name);
        json_object(json);
        for (enum side side = 0; side < SIDE_COUNT; side++) {
            json_key(json, side_name(side));
            json_text(json, rows->list[i].on[side]);
        }
        json_key(json, "reason");
        json_text(json, rows->list[i].reason);
        json_end(json);
    }
    json_end(json);
}

static int write_tasks(struct json *json, struct comparison *comparison, const struct plan *plan,
                       struct error *err) {
    json_array(json);
    for (uint32_t rank = 0; rank < plan->n_tasks; rank++) {
        struct compared_list rows;

        if (comparison_task(comparison, rank, &rows, err))
            return -1;
        json_object(json);
        json_key(json, "name");
        json_text(json, task_name(&plan->tasks[rank]).text);
        json_key(json, "variables");
        write_rows(json, &rows);
        json_end(json);
    }
    json_end(json);
    return 0;
}

int render_diff_json(struct comparison *comparison, const struct plan *plan, struct error *err) {
    struct compared_list rest = comparison_rest(comparison);
    struct error ignored;
    struct json json;
    int status;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_object(&json);
    json_key(&json, "tasks");
    status = write_tasks(&json, comparison, plan, err);
    if (status == 0) {
        json_key(&json, "fields");
        write_rows(&json, &rest);
        json_key(&json, "refused");
        json_object(&json);
        for (enum side side = 0; side < SIDE_COUNT; side++)
            if (comparison_refusal(comparison, side)) {
                json_key(&json, side_name(side));
                json_text(&json, comparison_refusal(comparison, side));
            }
        json_end(&json);
        json_end(&json);
    }
    return json_finish(&json, status ? &ignored : err) || status ? -1 : 0;
}
