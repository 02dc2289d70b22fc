/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/compare_code.h"
#include "cli/curves.h"
#include "cli/elide.h"
#include "cli/failure.h"
#include "cli/found.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "search/facts.h"
#include "track/map.h"

enum { RUNS_MOST = PLOT_CURVES_MOST, HEIGHT_USUAL = 12, VALUE_LEAST = 12, CHARTS_MAX = 4 << 20 };

/* What is told in this order; a field belongs to the first whose prefix it has. */
static const struct {
    const char *title, *prefix;
} sections[] = {
    { "PARAMS", "params." },
    { "SUMMARY", "summary." },
    { "METRICS", "metrics." },
    { "LEAST", "min." },
    { "GREATEST", "max." },
    { "TAGS", "tags." },
    { "CODE", "code." },
    { "ENVIRONMENT", "environment." },
    { "RUN", "" },
};

/* Times differ always and say nothing; what is said of the code and the machine has a section of
 * its own. */
static const char *const passed_over[] = { "created_at", "started_at", "updated_at", "finished_at",
                                           "commit",     "branch",     "dirty" };

struct compared {
    struct arena arena;
    struct rundir rundirs[RUNS_MOST];
    struct run_record records[RUNS_MOST];
    struct facts facts[RUNS_MOST];
    size_t n, n_read;
};

/* A field that one of the runs has. */
struct row {
    struct query_field field;
    size_t section;
    struct search_value values[RUNS_MOST];
    bool differs;
};

struct rows {
    VEC(struct row) list;
    struct map places; /* by field */
};

/* ---- rows ---- */

static size_t section_of(const char *field) {
    size_t i = 0;

    while (strncmp(field, sections[i].prefix, strlen(sections[i].prefix)) != 0)
        i++;
    return i;
}

static bool is_passed_over(const char *field) {
    for (size_t i = 0; i < ARRAY_LEN(passed_over); i++)
        if (strcmp(passed_over[i], field) == 0)
            return true;
    return false;
}

static struct row *row_of(struct rows *rows, const char *field) {
    uint64_t at = rows->list.len;
    struct row *row;

    if (map_get(&rows->places, field, strlen(field), &at))
        return &rows->list.items[at];
    map_put(&rows->places, field, strlen(field), at);
    row = VEC_PUSH(&rows->list);
    row->field = (struct query_field){ field, QUERY_ANY };
    row->section = section_of(field);
    for (size_t i = 0; i < RUNS_MOST; i++)
        row->values[i].kind = CELL_NONE;
    return row;
}

static int compare_rows(const void *a, const void *b) {
    const struct row *x = a, *y = b;

    if (x->section != y->section)
        return x->section < y->section ? -1 : 1;
    return strcmp(x->field.name, y->field.name);
}

/* Two NaNs are the same to who compares runs. */
static bool are_equal(const struct search_value *a, const struct search_value *b) {
    if (a->kind != b->kind)
        return false;
    if (a->kind == CELL_WORD)
        return strcmp(a->text, b->text) == 0;
    return a->kind == CELL_NONE || a->number == b->number ||
           (a->number != a->number && b->number != b->number);
}

static void make_rows(const struct compared *compared, struct rows *rows) {
    for (size_t i = 0; i < compared->n; i++)
        for (size_t j = 0; j < compared->facts[i].list.len; j++) {
            const struct fact *fact = &compared->facts[i].list.items[j];

            if (!is_passed_over(fact->field))
                row_of(rows, fact->field)->values[i] =
                    (struct search_value){ fact->kind, fact->number, fact->text };
        }
    for (size_t i = 0; i < rows->list.len; i++)
        for (size_t j = 1; j < compared->n; j++)
            rows->list.items[i].differs |=
                !are_equal(&rows->list.items[i].values[0], &rows->list.items[i].values[j]);
    if (rows->list.len)
        qsort(rows->list.items, rows->list.len, sizeof rows->list.items[0], compare_rows);
}

/* ---- curves ---- */

static int fill_columns(struct series_reader *reader, const char *name,
                        const struct series_range *range, size_t n, struct plot_column *out,
                        struct error *err) {
    const struct curves_wish wish = { &name, 1, true, CURVES_ANY, CURVES_ANY };
    struct summary *buckets = calloc(n, sizeof *buckets);
    struct curves curves;
    int status = 0;

    if (!buckets)
        abort();
    curves_select(&curves, reader, &wish);
    if (curves.series.len)
        status = series_fold_buckets(reader, curves.series.items, curves.series.len, range,
                                     SERIES_FOLD_MEAN, n, buckets, err);
    for (size_t i = 0; status == 0 && i < n; i++)
        out[i] = plot_column_of(&buckets[i]);
    curves_release(&curves);
    free(buckets);
    return status;
}

/* The steps of all runs that have the metric. */
static bool common_range(struct series_reader *const *readers, size_t n, const char *name,
                         struct series_range *out) {
    const struct curves_wish wish = { &name, 1, true, CURVES_ANY, CURVES_ANY };
    bool has_any = false;

    for (size_t i = 0; i < n; i++) {
        struct series_range range;
        struct curves curves;

        if (!readers[i])
            continue;
        curves_select(&curves, readers[i], &wish);
        if (curves.series.len && series_extent(readers[i], curves.series.items, curves.series.len,
                                               SERIES_BY_STEP, &range)) {
            range.from = has_any && out->from < range.from ? out->from : range.from;
            range.to = has_any && out->to > range.to ? out->to : range.to;
            *out = range;
            has_any = true;
        }
        curves_release(&curves);
    }
    return has_any;
}

static int draw(struct compared *compared, struct series_reader *const *readers, const char *name,
                struct buf *out, struct error *err) {
    struct arena *arena = &compared->arena;
    const unsigned width = (unsigned)terminal_width(stdout) - PLOT_MARGIN;
    const size_t n_columns = (size_t)width * PLOT_DOTS_ACROSS;
    struct plot_curve curves[RUNS_MOST];
    struct series_range range;
    struct plot plot = { .title =
                             arena_printf(arena, "%s, mean over tasks", runs_text(arena, name, 0)),
                         .width = width,
                         .height = HEIGHT_USUAL,
                         .is_coloured = terminal_colour(stdout),
                         .curves = curves,
                         .n_curves = compared->n };

    if (!common_range(readers, compared->n, name, &range))
        return error_set(err, ERROR_NOT_FOUND, "none of these runs has logged '%.100s'",
                         runs_text(arena, name, 0));
    for (size_t i = 0; i < compared->n; i++) {
        struct plot_column *columns = ARENA_ARRAY(arena, struct plot_column, n_columns);

        if (readers[i] && fill_columns(readers[i], name, &range, n_columns, columns, err))
            return -1;
        curves[i] =
            (struct plot_curve){ arena_printf(arena, "run %s", compared->rundirs[i].id), columns };
    }
    plot.x_from = arena_printf(arena, "step %lld", (long long)range.from);
    plot.x_to = arena_printf(arena, "step %lld", (long long)range.to);
    return plot_draw(&plot, out, err);
}

static int draw_all(const struct invocation *in, struct compared *compared, struct error *err) {
    struct series_reader *readers[RUNS_MOST] = { 0 };
    AUTO(buf) text = BUF_INIT(CHARTS_MAX);
    struct error ignored;
    int status = 0;

    for (size_t i = 0; i < compared->n; i++)
        if (series_reader_open(compared->rundirs[i].series, &readers[i], &ignored))
            readers[i] = NULL;
    for (size_t i = 0; status == 0 && i < in->n_given; i++)
        if (strcmp(in->given[i].option->name, "metric") == 0)
            status = draw(compared, readers, in->given[i].value, &text, err);
    for (size_t i = 0; i < compared->n; i++)
        series_reader_free(readers[i]);
    if (status == 0)
        fwrite(text.data, 1, text.len, stdout);
    return status;
}

/* ---- output ---- */

/* The columns that each run has on the terminal; 0: any number. */
static size_t room_of_values(const struct compared *compared, const struct rows *rows, bool all) {
    const size_t columns = terminal_columns(stdout);
    size_t names = 0, room;

    for (size_t i = 0; i < rows->list.len; i++) {
        const struct row *row = &rows->list.items[i];
        const size_t name = 2 + strlen(row->field.name) - strlen(sections[row->section].prefix);

        if ((all || row->differs) && name > names)
            names = name;
    }
    if (columns == 0)
        return 0;
    room = columns > names ? (columns - names) / compared->n : 0;
    return room > VALUE_LEAST + 2 ? room - 2 : VALUE_LEAST;
}

/* The values of a row; texts that are too long show where they differ. */
static void add_values(struct table *table, const struct compared *compared, const struct row *row,
                       size_t room) {
    const char *shown[RUNS_MOST], *texts[RUNS_MOST] = { NULL };
    enum state state;

    for (size_t j = 0; j < compared->n; j++) {
        shown[j] = row->values[j].kind == CELL_NONE
                       ? "-"
                       : found_shown(&table->arena, &row->field, &row->values[j]);
        if (row->values[j].kind == CELL_WORD)
            texts[j] = shown[j];
    }
    if (row->differs && room)
        elide_common(&table->arena, texts, compared->n, room);
    for (size_t j = 0; j < compared->n; j++) {
        table_cell(table, "%s", texts[j] ? texts[j] : shown[j]);
        if (strcmp(row->field.name, "status") == 0 && texts[j] &&
            state_named(row->values[j].text, &state))
            table_paint(table, runs_colour(state));
    }
}

static void print_rows(const struct compared *compared, const struct rows *rows, bool all) {
    const size_t room = room_of_values(compared, rows, all);
    size_t section = ARRAY_LEN(sections), n_shown = 0;
    struct table table;

    table_init(&table, 1 + compared->n);
    table_cell(&table, "%s", "FIELD");
    for (size_t i = 0; i < compared->n; i++)
        table_cell(&table, "RUN %s", compared->rundirs[i].id);
    for (size_t i = 0; i < rows->list.len; i++) {
        const struct row *row = &rows->list.items[i];

        if (!all && !row->differs)
            continue;
        n_shown++;
        if (row->section != section) {
            section = row->section;
            table_cell(&table, "%s", sections[section].title);
            for (size_t j = 0; j < compared->n; j++)
                table_cell(&table, "%s", "");
        }
        table_cell(&table, "  %s",
                   runs_text(&table.arena, row->field.name + strlen(sections[section].prefix), 0));
        add_values(&table, compared, row, room);
    }
    if (n_shown)
        table_print(&table, stdout, terminal_colour(stdout));
    else
        puts("nothing differs; --all shows what is equal");
    table_release(&table);
}

static int print_json(const struct compared *compared, const struct rows *rows, bool all) {
    struct json json;
    struct error err;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_object(&json);
    json_key(&json, "runs");
    json_array(&json);
    for (size_t i = 0; i < compared->n; i++)
        json_int(&json, strtol(compared->rundirs[i].id, NULL, 10));
    json_end(&json);
    json_key(&json, "fields");
    json_array(&json);
    for (size_t i = 0; i < rows->list.len; i++) {
        const struct row *row = &rows->list.items[i];

        if (!all && !row->differs)
            continue;
        json_object(&json);
        json_key(&json, "field");
        json_text(&json, row->field.name);
        json_key(&json, "differs");
        json_bool(&json, row->differs);
        json_key(&json, "values");
        json_array(&json);
        for (size_t j = 0; j < compared->n; j++)
            found_json(&json, &row->field, &row->values[j]);
        json_end(&json);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    return json_finish(&json, &err) ? STATUS_INVALID : STATUS_OK;
}

/* ---- all of it ---- */

static int read_runs(const struct invocation *in, struct compared *compared, struct error *err) {
    for (size_t i = 0; i < in->n_operands; i++) {
        if (runs_find(in->operands[i], &compared->arena, &compared->rundirs[i], err) ||
            runs_read(&compared->rundirs[i], &compared->records[i], err))
            return -1;
        compared->n_read++;
        if (!compared->records[i].uuid)
            return error_set(err, ERROR_NOT_FOUND, "run %s has not begun", compared->rundirs[i].id);
        facts_gather(&compared->facts[i], &compared->records[i]);
        compare_code_facts(&compared->facts[i], &compared->records[i]);
    }
    return 0;
}

static int show_content(const struct invocation *in, const struct compared *compared,
                        struct error *err) {
    const struct run_record *records = compared->records;
    int status = 0;

    if (compared->n != 2)
        return 0;
    if (invocation_has(in, "code"))
        status = compare_code_print(&records[0], &records[1], err);
    else
        compare_code_outline(&records[0], &records[1]);
    if (status == 0 && invocation_has(in, "files"))
        status = compare_files_print(&records[0], &records[1], err);
    return status;
}

static int show(const struct invocation *in, struct compared *compared, struct error *err) {
    const bool all = invocation_has(in, "all");
    struct rows rows = { 0 };
    int status;

    make_rows(compared, &rows);
    if (invocation_has(in, "json")) {
        status = print_json(compared, &rows, all);
    } else {
        print_rows(compared, &rows, all);
        status = draw_all(in, compared, err);
        if (status == 0)
            status = show_content(in, compared, err);
    }
    map_release(&rows.places);
    VEC_RELEASE(&rows.list);
    return status;
}

static int compare(const struct invocation *in) {
    static const char *const of_two[] = { "code", "files" };
    struct compared *compared;
    struct error err;
    int status;

    if (in->n_operands < 2 || in->n_operands > RUNS_MOST)
        return invocation_misuse(in, "it takes from 2 to %d runs", RUNS_MOST);
    if (invocation_has(in, "json") && invocation_has(in, "metric"))
        return invocation_misuse(in,
                                 "--json has no charts; 'myelin metrics RUN X --json' has points");
    for (size_t i = 0; i < ARRAY_LEN(of_two); i++)
        if (invocation_has(in, of_two[i]) && (in->n_operands != 2 || invocation_has(in, "json")))
            return invocation_misuse(in, "--%s is for two runs, and not for --json", of_two[i]);
    compared = calloc(1, sizeof *compared);
    if (!compared)
        abort();
    compared->n = in->n_operands;
    status = read_runs(in, compared, &err);
    if (status == 0)
        status = show(in, compared, &err);
    if (status < 0) {
        complain("%s", runs_text(&compared->arena, err.message, 0));
        status = STATUS_INVALID;
    }
    for (size_t i = 0; i < compared->n; i++)
        facts_release(&compared->facts[i]);
    for (size_t i = 0; i < compared->n_read; i++)
        record_release(&compared->records[i]);
    arena_release(&compared->arena);
    free(compared);
    return status;
}

static const struct option options[] = {
    { .name = "metric",
      .letter = 'm',
      .argument = "NAME",
      .repeats = true,
      .help = "draw the curves of this metric on one axis; may be given more than once" },
    { .name = "code", .help = "print how the code of two runs differs, as a unified diff" },
    { .name = "files", .help = "list which files in the outputs of two runs differ" },
    { .name = "all", .letter = 'a', .help = "show what is equal too" },
    { .name = "json", .help = "print a JSON object" },
    { 0 },
};

const struct command command_compare = {
    .name = "compare",
    .arguments = "RUN RUN...",
    .summary = "show in what runs differ",
    .description =
        "Puts up to 8 runs side by side: parameters, summaries, the last, least and "
        "greatest values of metrics, tags, the code (commit, branch, what was changed "
        "since), the machine and the variables that decide which programs are found, "
        "and what the runs are (command, directory, framework, owner, host, status, "
        "duration). Only what differs is shown unless "
        "`--all` is given; `-` stands for what a run does not have. On a terminal, values "
        "that are too long for their column show the part that differs. Of two runs whose "
        "code differs it also tells which files "
        "do, and by how many lines, as long as their repository is there.\n"
        "\n" RUN_NAMES,
    .options = options,
    .examples = "myelin compare 3 5               # what differs\n"
                "myelin compare 3 5 7 -m loss     # with the curves of loss\n"
                "myelin compare 3 5 --code        # and all changes of the code\n",
    .run = compare,
};
