/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/found.h"
#include "cli/metric_rows.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "search/search.h"

enum { LIMIT_USUAL = 50, LIMIT_NONE = 0 };

static const char usual_columns[] = "id,name,status,framework,created_at,duration";

/* What the command line asks for. */
struct wishes {
    struct arena arena;
    struct query query;
    struct query_sort sort, columns;
    uint64_t limit, offset;
};

/* ---- the command line ---- */

static int read_count(const struct invocation *in, const char *option, uint64_t *out) {
    const char *text = invocation_value(in, option);
    char *end;

    if (!text)
        return 0;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (text[strspn(text, "0123456789")] || end == text || errno || *out > INT64_MAX / 2)
        return invocation_misuse(in, "--%s takes a number of runs, not '%s'", option, text);
    return 0;
}

typedef int fields_parser(const char *text, size_t n, uint16_t source, struct arena *arena,
                          struct diags *diags, struct query_sort *out);

static void add_column(struct wishes *wishes, const struct query_field *field) {
    struct query_sort *columns = &wishes->columns;

    for (size_t i = 0; i < columns->n; i++)
        if (strcmp(columns->orders[i].field.name, field->name) == 0)
            return;
    if (columns->n < TABLE_COLUMNS_MAX)
        columns->orders[columns->n++].field = *field;
}

/* Unless columns are given: the usual ones, and what the query and the sort are about. */
static void add_usual_columns(struct wishes *wishes, const struct query_sort *usual) {
    wishes->columns.orders = ARENA_ARRAY(&wishes->arena, struct query_order, TABLE_COLUMNS_MAX);
    for (size_t i = 0; i < usual->n; i++)
        add_column(wishes, &usual->orders[i].field);
    for (size_t i = 0; i < wishes->query.n; i++)
        add_column(wishes, &wishes->query.conditions[i].field);
    for (size_t i = 0; i < wishes->sort.n; i++)
        add_column(wishes, &wishes->sort.orders[i].field);
}

/* Reads all three, so that all mistakes are told at once. */
static int parse_wishes(const struct invocation *in, struct wishes *wishes, struct sources *sources,
                        struct diags *diags) {
    const char *query = invocation_value(in, "query"), *sort = invocation_value(in, "sort");
    const char *columns = invocation_value(in, "columns");
    struct query_sort usual = { 0 };
    bool is_wrong = false;

    if (query)
        is_wrong |=
            query_parse(query, strlen(query), sources_add(sources, "--query", query, strlen(query)),
                        &wishes->arena, diags, &wishes->query) != 0;
    sort = sort ? sort : "-created_at";
    is_wrong |=
        query_sort_parse(sort, strlen(sort), sources_add(sources, "--sort", sort, strlen(sort)),
                         &wishes->arena, diags, &wishes->sort) != 0;
    if (columns)
        is_wrong |= query_fields_parse(columns, strlen(columns),
                                       sources_add(sources, "--columns", columns, strlen(columns)),
                                       &wishes->arena, diags, &wishes->columns) != 0;
    else if (query_fields_parse(usual_columns, strlen(usual_columns), 0, &wishes->arena, diags,
                                &usual))
        abort();
    if (!is_wrong && !columns)
        add_usual_columns(wishes, &usual);
    return is_wrong ? -1 : 0;
}

static int read_wishes(const struct invocation *in, struct wishes *wishes) {
    AUTO_PTR(diags) diags = diags_new();
    AUTO(sources) sources = { 0 };
    int status;

    wishes->limit =
        invocation_has(in, "json") || invocation_has(in, "csv") ? LIMIT_NONE : LIMIT_USUAL;
    if (in->n_operands > 0)
        return invocation_misuse(in, "it takes no arguments; a query is given with --query");
    if (invocation_has(in, "json") && invocation_has(in, "csv"))
        return invocation_misuse(in, "--json does not go with --csv");
    status = read_count(in, "limit", &wishes->limit);
    if (status == 0)
        status = read_count(in, "offset", &wishes->offset);
    if (status)
        return status;
    if (parse_wishes(in, wishes, &sources, diags)) {
        complain_diags(diags, &sources);
        return STATUS_MISUSE;
    }
    if (wishes->columns.n > TABLE_COLUMNS_MAX || wishes->columns.n == 0)
        return invocation_misuse(in, "--columns takes from 1 to %d fields", TABLE_COLUMNS_MAX);
    return 0;
}

/* ---- output ---- */

static int print_json(const struct wishes *wishes, const struct search_result *found) {
    const struct query_sort *columns = &wishes->columns;
    const struct {
        const char *key;
        uint64_t n;
    } counts[] = { { "total", found->n_total },
                   { "offset", wishes->offset },
                   { "indexed", found->n_runs } };
    struct json json;
    struct error err;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_object(&json);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        json_key(&json, counts[i].key);
        json_int(&json, (int64_t)counts[i].n);
    }
    json_key(&json, "runs");
    json_array(&json);
    for (size_t i = 0; i < found->n; i++) {
        json_object(&json);
        for (size_t j = 0; j < columns->n; j++) {
            json_key(&json, columns->orders[j].field.name);
            found_json(&json, &columns->orders[j].field, &found->values[i * columns->n + j]);
        }
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    return json_finish(&json, &err) ? STATUS_INVALID : STATUS_OK;
}

static void csv_field(const char *text, bool is_first) {
    if (!is_first)
        putchar(',');
    csv_text(stdout, text);
}

static int print_csv(const struct wishes *wishes, const struct search_result *found) {
    const struct query_sort *columns = &wishes->columns;
    AUTO(arena) arena = ARENA_INIT;

    for (size_t j = 0; j < columns->n; j++)
        csv_field(columns->orders[j].field.name, j == 0);
    putchar('\n');
    for (size_t i = 0; i < found->n; i++) {
        for (size_t j = 0; j < columns->n; j++)
            csv_field(
                found_text(&arena, &columns->orders[j].field, &found->values[i * columns->n + j]),
                j == 0);
        putchar('\n');
    }
    return STATUS_OK;
}

static const char *heading(struct arena *arena, const char *name) {
    char *text;

    if (strchr(name, '.'))
        return runs_text(arena, name, 0);
    text = arena_text(arena, name, strlen(name));
    for (char *p = text; *p; p++)
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    return text;
}

static void add_value(struct table *table, const struct query_field *field,
                      const struct search_value *value) {
    enum state state;

    table_cell(table, "%s", found_shown(&table->arena, field, value));
    if (value->kind == CELL_WORD && strcmp(field->name, "status") == 0 &&
        state_named(value->text, &state))
        table_paint(table, runs_colour(state));
}

static int print_table(const struct wishes *wishes, const struct search_result *found) {
    const struct query_sort *columns = &wishes->columns;
    const uint64_t behind = wishes->offset + found->n;
    struct table table;

    table_init(&table, columns->n);
    for (size_t j = 0; j < columns->n; j++)
        table_cell(&table, "%s", heading(&table.arena, columns->orders[j].field.name));
    for (size_t i = 0; i < found->n; i++)
        for (size_t j = 0; j < columns->n; j++)
            add_value(&table, &columns->orders[j].field, &found->values[i * columns->n + j]);
    if (found->n > 0)
        table_print(&table, stdout, terminal_colour(stdout));
    table_release(&table);
    if (found->n_runs == 0)
        fputs("there are no runs yet\n", stderr);
    else if (found->n_total == 0)
        fprintf(stderr, "none of %llu runs fulfils the query\n", (unsigned long long)found->n_runs);
    else if (behind < found->n_total)
        fprintf(stderr, "%llu of %llu runs; --offset %llu shows the next, -n 0 all\n",
                (unsigned long long)found->n, (unsigned long long)found->n_total,
                (unsigned long long)behind);
    return STATUS_OK;
}

/* ---- all of it ---- */

static void say_unknown(const struct search_result *found) {
    AUTO(arena) arena = ARENA_INIT;

    for (size_t i = 0; i < found->n_unknown; i++)
        fprintf(stderr, "myelin: warning: no run has '%s'\n",
                runs_text(&arena, found->unknown[i], 0));
}

static int find_runs(const struct invocation *in, const struct wishes *wishes) {
    const struct search_wish wish = { .query = &wishes->query,
                                      .sort = &wishes->sort,
                                      .columns = &wishes->columns,
                                      .offset = wishes->offset,
                                      .limit = wishes->limit };
    AUTO(arena) arena = ARENA_INIT;
    struct search_result found;
    struct error err;
    const char *home;
    int status;

    if (runs_home(&arena, &home, &err) ||
        search(home, INDEX_IN_HOME, runs_read, &wish, &found, &err)) {
        complain("%s", runs_text(&arena, err.message, 0));
        return STATUS_INVALID;
    }
    found_note_index(&found.unused);
    say_unknown(&found);
    if (invocation_has(in, "timing"))
        fprintf(stderr,
                "index: %.3f ms, %llu runs read; query: %.3f ms (%.3f ms of processor time) over "
                "%llu runs\n",
                found.refresh_s * 1e3, (unsigned long long)found.n_read, found.query_s * 1e3,
                found.query_cpu_s * 1e3, (unsigned long long)found.n_runs);
    status = invocation_has(in, "json")  ? print_json(wishes, &found)
             : invocation_has(in, "csv") ? print_csv(wishes, &found)
                                         : print_table(wishes, &found);
    search_result_release(&found);
    return status;
}

static int runs(const struct invocation *in) {
    struct wishes wishes = { 0 };
    int status = read_wishes(in, &wishes);

    if (status == 0)
        status = find_runs(in, &wishes);
    arena_release(&wishes.arena);
    return status;
}

static const struct option options[] = {
    { .name = "query", .letter = 'q', .argument = "QUERY", .help = "list the runs that fulfil it" },
    { .name = "sort",
      .letter = 's',
      .argument = "FIELDS",
      .help = "order by these, each with - for the greatest first; -created_at unless said" },
    { .name = "columns",
      .letter = 'c',
      .argument = "FIELDS",
      .help = "show these of each run, as id,params.lr,metrics.loss" },
    { .name = "limit",
      .letter = 'n',
      .argument = "N",
      .help = "list at most N runs, 0 for all; 50 unless said, all with --json and --csv" },
    { .name = "offset", .argument = "N", .help = "leave out the first N" },
    { .name = "json", .help = "print a JSON object" },
    { .name = "csv", .help = "print comma-separated values with a header" },
    { .name = "timing", .help = "tell on standard error how long the index and the query took" },
    { 0 },
};

const struct command command_runs = {
    .name = "runs",
    .summary = "find runs by what is known of them",
    .description =
        "Lists runs, the newest first, or those that fulfil a query: conditions parted by commas, "
        "all of which hold.\n"
        "\n"
        "  status:running          one value\n"
        "  params.lr:0.1|0.2       one of these\n"
        "  metrics.loss:<0.3       also <=, > and >=\n"
        "  created_at:2026-01..2026-03   from, to; both belong to it\n"
        "  name:%mnist%            any text in the place of %\n"
        "  ~tags:old               not\n"
        "\n"
        "Fields are `id`, `name`, `status`, `owner`, `framework`, `host`, `command`, `directory`, "
        "`commit`, `branch`, `dirty`, `tasks`, `attempts`, `exit_status`, `duration` (seconds), "
        "`created_at`, `started_at`, "
        "`updated_at`, `finished_at`, `tags` (their names), and of what tasks logged `params.X`, "
        "`summary.X`, `tags.X`, `metrics.X` (the last value), `min.X` and `max.X`. Values with "
        "commas or colons stand in quotes. Times are UTC unless they name a zone.\n"
        "\n"
        "It looks into an index of the home (`index.db`), which is brought up to date first and "
        "made again where it is lost.",
    .options = options,
    .examples = "myelin runs -q 'metrics.loss:<0.3' -s metrics.loss    # the best first\n"
                "myelin runs -q 'status:failed, created_at:>=2026-03'  # what failed since March\n"
                "myelin runs -c id,params.lr,min.loss --csv            # for a spreadsheet\n",
    .run = runs,
};
