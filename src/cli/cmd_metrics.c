/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/guard.h"
#include "cli/keys.h"
#include "cli/metric_rows.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/tracked.h"
#include "codec/visible.h"
#include "plan/fold.h"

enum {
    SPARK_COLUMNS = 24,
    HEIGHT_USUAL = 12,
    HEIGHT_LEAST = 3,
    CHART_EXTRA = 4, /* lines of a chart besides: title, axis, its ends, legend */
    POINTS_MOST = 1000 * 1000,
    CURVES_APART_MOST = 4, /* more tasks are folded unless told otherwise */
    TEXT_MOST = 16 << 20,
    LISTED_MOST = 1000, /* metrics in a list for people */
    CHARTS_MOST = 100,
    LOOK_EVERY_MS = 1000,
};

static const char *const fold_choices[] = { "mean", "min", "max", "none", NULL };
static const char *const axis_choices[] = { "step", "time", NULL };

enum fold { FOLD_MEAN, FOLD_MIN, FOLD_MAX, FOLD_NONE, FOLD_AS_FITS };

struct view {
    const struct invocation *in;
    struct rundir rundir;
    struct run_record run;
    struct curves_wish wish;
    struct rows_wish rows;
    enum fold fold;
    uint64_t *shown;  /* with --csv --follow: points printed, by series */
    size_t n_shown;   /* series that it has room for */
    unsigned n_lines; /* of what was drawn last, to draw over */
    unsigned height;  /* of a chart */
};

/* ---- the list of metrics ---- */

struct tasks_of {
    const struct curves *curves;
    const struct metric *metric;
};

static bool is_logged_by(const void *context, uint32_t rank) {
    const struct tasks_of *tasks = context;

    for (uint32_t i = 0; i < tasks->metric->n; i++)
        if (tasks->curves->list.items[tasks->metric->first + i].rank == rank)
            return true;
    return false;
}

static void add_spark(struct table *table, const struct curves *curves, const struct metric *metric,
                      enum series_axis axis) {
    struct plot_column columns[SPARK_COLUMNS];
    struct summary buckets[SPARK_COLUMNS];
    AUTO(buf) text = BUF_INIT(1024);
    struct series_range range;
    struct error err;
    size_t n;
    const uint32_t *series = metric_series(curves, metric, &n);

    if (!series_extent(curves->reader, series, n, axis, &range) ||
        series_fold_buckets(curves->reader, series, n, &range, SERIES_FOLD_MEAN, SPARK_COLUMNS,
                            buckets, &err)) {
        table_cell(table, "%s", "");
        return;
    }
    for (size_t i = 0; i < SPARK_COLUMNS; i++)
        columns[i] = plot_column_of(&buckets[i]);
    table_cell(table, "%s",
               plot_spark(columns, SPARK_COLUMNS, &text, &err) == 0 && text.len ? text.data : "");
}

static int print_list(struct view *view, const struct curves *curves, FILE *out) {
    static const char *const columns[] = { "NAME", "TASKS", "POINTS", "STEP",
                                           "LAST", "MIN",   "MAX",    "MEAN OVER TASKS" };
    const struct plan plan = record_plan(&view->run);
    struct table table;
    struct error err;

    table_init(&table, ARRAY_LEN(columns));
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        table_cell(&table, "%s", columns[i]);
    for (size_t i = 0; i < curves->metrics.len && i < LISTED_MOST; i++) {
        const struct metric *metric = &curves->metrics.items[i];
        const struct tasks_of tasks = { curves, metric };
        const struct summary all = metric_summary(curves, metric);
        AUTO(buf) names = BUF_INIT(TEXT_MOST);

        table_cell(&table, "%s", runs_text(&table.arena, metric->name, 0));
        if (fold_tasks(&plan, is_logged_by, &tasks, &names, &err))
            buf_clear(&names);
        table_cell(&table, "%s", names.len ? names.data : "");
        table_cell(&table, "%llu", (unsigned long long)all.count);
        table_cell(&table, "%lld", (long long)all.last_step);
        table_cell(&table, "%s", plot_number(all.last).text);
        table_cell(&table, "%s", plot_number(all.min).text);
        table_cell(&table, "%s", plot_number(all.max).text);
        add_spark(&table, curves, metric, view->rows.axis);
    }
    table.width = terminal_columns(stdout);
    table_print(&table, out, terminal_colour(stdout));
    table_release(&table);
    return 0;
}

/* ---- charts ---- */

/* One curve of a chart: the series it is made of, its label and its columns. */
struct drawn {
    const uint32_t *series;
    size_t n_series;
    struct task_name label;
    struct plot_column *columns;
};

static int fill_columns(struct view *view, struct series_reader *reader, struct drawn *drawn,
                        const struct series_range *range, size_t n, bool is_folded,
                        struct error *err) {
    static const enum series_fold folds[] = { SERIES_FOLD_MEAN, SERIES_FOLD_MIN, SERIES_FOLD_MAX };
    const enum series_fold fold = folds[view->fold <= FOLD_MAX ? view->fold : FOLD_MEAN];
    struct summary *buckets = calloc(n, sizeof *buckets);
    int status;

    drawn->columns = calloc(n, sizeof *drawn->columns);
    if (!buckets || !drawn->columns)
        abort();
    status = is_folded
                 ? series_fold_buckets(reader, drawn->series, drawn->n_series, range, fold, n,
                                       buckets, err)
                 : series_buckets(reader, drawn->series, drawn->n_series, range, n, buckets, err);
    for (size_t i = 0; status == 0 && i < n; i++)
        drawn->columns[i] = plot_column_of(&buckets[i]);
    free(buckets);
    return status;
}

static const char *axis_end(struct arena *arena, enum series_axis axis, int64_t key) {
    char text[64];

    if (axis == SERIES_BY_TIME)
        snprintf(text, sizeof text, "%s", time_text(key, TIME_SECONDS).text);
    else
        snprintf(text, sizeof text, "step %lld", (long long)key);
    return arena_text(arena, text, strlen(text));
}

static int draw_metric(struct view *view, const struct curves *curves, const struct metric *metric,
                       struct buf *out, struct error *err) {
    const bool is_folded =
        metric->n > 1 &&
        (view->fold < FOLD_NONE || (view->fold == FOLD_AS_FITS && metric->n > CURVES_APART_MOST));
    const size_t n_curves = is_folded ? 1 : metric->n;
    const struct summary all = metric_summary(curves, metric);
    struct drawn *drawn = calloc(n_curves, sizeof *drawn);
    struct plot_curve *shown = calloc(n_curves, sizeof *shown);
    AUTO(arena) arena = ARENA_INIT;
    char title[512], folded[64] = "";
    struct series_range range;
    struct plot plot = { .title = title,
                         .width = (unsigned)terminal_width(stdout) - PLOT_MARGIN,
                         .height = view->height,
                         .is_coloured = terminal_colour(stdout),
                         .is_logarithmic = invocation_has(view->in, "log"),
                         .curves = shown,
                         .n_curves = n_curves };
    int status = 0;
    size_t n;
    const uint32_t *series = metric_series(curves, metric, &n);

    if (!drawn || !shown)
        abort();
    if (!series_extent(curves->reader, series, n, view->rows.axis, &range))
        range = (struct series_range){ .axis = view->rows.axis };
    for (size_t i = 0; status == 0 && i < n_curves; i++) {
        const struct curve *curve = &curves->list.items[metric->first + i];

        drawn[i].series = is_folded ? series : &curves->series.items[curve->first];
        drawn[i].n_series = is_folded ? n : curve->n;
        drawn[i].label = curve->rank < view->run.n_tasks
                             ? task_name(&view->run.task_names[curve->rank])
                             : (struct task_name){ "?" };
        status = fill_columns(view, curves->reader, &drawn[i], &range,
                              (size_t)plot.width * PLOT_DOTS_ACROSS, is_folded, err);
        shown[i] = (struct plot_curve){ drawn[i].label.text, drawn[i].columns };
    }
    if (is_folded)
        snprintf(folded, sizeof folded, ", %s of %u tasks",
                 fold_choices[view->fold < FOLD_NONE ? view->fold : FOLD_MEAN], metric->n);
    snprintf(title, sizeof title, "%s%s  last %s, least %s, greatest %s",
             runs_text(&arena, metric->name, 0), folded, plot_number(all.last).text,
             plot_number(all.min).text, plot_number(all.max).text);
    plot.x_from = axis_end(&arena, view->rows.axis, range.from);
    plot.x_to = axis_end(&arena, view->rows.axis, range.to);
    if (status == 0)
        status = plot_draw(&plot, out, err);
    for (size_t i = 0; i < n_curves; i++)
        free(drawn[i].columns);
    free(drawn);
    free(shown);
    return status;
}

/* ---- one look ---- */

/* Lines that what is drawn over and over may have: it cannot be drawn over once it has scrolled
 * away. 0: any number. */
static unsigned rows_to_fill(const struct view *view) {
    struct winsize size = { 0 };

    if (!invocation_has(view->in, "follow") || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_row > 1 ? size.ws_row - 1u : 1;
}

/* Charts get lower, down to a few lines, until all of them fit. */
static unsigned fitting_height(unsigned rows, size_t n_charts) {
    const size_t share = n_charts ? rows / n_charts : rows;

    if (rows == 0 || share >= HEIGHT_USUAL + CHART_EXTRA)
        return HEIGHT_USUAL;
    return share > HEIGHT_LEAST + CHART_EXTRA ? (unsigned)share - CHART_EXTRA : HEIGHT_LEAST;
}

static void draw_over(unsigned n_lines) {
    char sequence[32];

    snprintf(sequence, sizeof sequence, "\x1b[%uA\x1b[J", n_lines);
    guard_control(stdout, sequence);
}

/* Where the text is to end so that it has no more lines. */
static size_t cut_at_rows(const struct buf *text, unsigned rows) {
    size_t at = 0;

    for (unsigned n = 0; n < rows && at < text->len; n++)
        at = (size_t)((const char *)memchr(text->data + at, '\n', text->len - at) - text->data) + 1;
    return rows ? at : text->len;
}

/* Of many metrics the first are shown: nobody reads more, and memory has a bound. */
static size_t shown_of(const struct view *view, const struct curves *curves) {
    const size_t most = view->wish.n_names == 0 ? LISTED_MOST : CHARTS_MOST;

    return curves->metrics.len < most ? curves->metrics.len : most;
}

static void say_what_is_not_shown(const struct view *view, const struct curves *curves) {
    const size_t n = shown_of(view, curves);

    if (n < curves->metrics.len && !invocation_has(view->in, "follow"))
        fprintf(stderr,
                "myelin: note: these are %zu of %zu metrics; choose with a pattern (myelin metrics "
                "%s 'val/*'), or take all with --csv or --json\n",
                n, curves->metrics.len, view->rundir.id);
}

/* Cuts each line to the width of the terminal: a line that is wrapped takes more rows than it is
 * counted for, and what is drawn over leaves a part of itself behind. */
static int cut_lines(const struct buf *text, size_t columns, struct buf *out, struct error *err) {
    for (size_t at = 0; at < text->len;) {
        const char *line = text->data + at, *end = memchr(line, '\n', text->len - at);
        const size_t n = end ? (size_t)(end - line) : text->len - at;
        size_t fits = columns ? visible_fit(line, n, columns) : n;
        const bool is_cut = visible_fit(line + fits, n - fits, 0) < n - fits;

        if (is_cut)
            fits = visible_fit(line, n, columns - 1);
        if (buf_append(out, line, is_cut ? fits : n, err) ||
            (is_cut && buf_printf(out, err, "…%s", memchr(line, '\x1b', fits) ? "\x1b[0m" : "")) ||
            buf_append(out, "\n", 1, err))
            return -1;
        at += n + 1;
    }
    return 0;
}

static int print_text(struct view *view, const struct curves *curves, struct error *err) {
    AUTO(buf) whole = BUF_INIT(TEXT_MOST), text = BUF_INIT(2 * TEXT_MOST);
    const unsigned rows = rows_to_fill(view);
    size_t end;
    int status = 0;

    view->height = fitting_height(rows, shown_of(view, curves));
    if (view->wish.n_names == 0) {
        char *bytes = NULL;
        size_t n = 0;
        FILE *memory = open_memstream(&bytes, &n);

        if (!memory)
            abort();
        print_list(view, curves, memory);
        fclose(memory);
        status = buf_append(&whole, bytes, n, err);
        free(bytes);
    }
    for (size_t i = 0; status == 0 && view->wish.n_names && i < shown_of(view, curves); i++)
        status = draw_metric(view, curves, &curves->metrics.items[i], &whole, err);
    if (status == 0)
        status = cut_lines(&whole, terminal_columns(stdout), &text, err);
    if (status || text.len == 0)
        return status;
    if (view->n_lines > 0)
        draw_over(view->n_lines); /* what was drawn before */
    end = cut_at_rows(&text, rows);
    fwrite(text.data, 1, end, stdout);
    fflush(stdout);
    view->n_lines = 0;
    for (size_t i = 0; terminal_is(stdout) && i < end; i++)
        view->n_lines += text.data[i] == '\n';
    return 0;
}

static int print_json(struct view *view, const struct curves *curves, struct error *err) {
    const bool with_points = view->wish.n_names > 0 || view->rows.n_buckets > 0;
    struct error unwritten;
    struct json json;
    int status;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    status = json_metrics(&json, curves, &view->rows, with_points, err);
    if (json_finish(&json, &unwritten) && status == 0) {
        *err = unwritten;
        return -1;
    }
    return status;
}

static int print_csv(struct view *view, const struct curves *curves, struct error *err) {
    const size_t n = series_reader_count(curves->reader);

    if (n > view->n_shown) {
        view->shown = realloc(view->shown, n * sizeof *view->shown);
        if (!view->shown)
            abort();
        memset(view->shown + view->n_shown, 0, (n - view->n_shown) * sizeof *view->shown);
        view->n_shown = n;
    }
    if (csv_rows(stdout, curves, &view->rows, view->shown, err))
        return -1;
    return fflush(stdout) == 0 ? 0 : error_set_errno(err, errno, "cannot write");
}

/* Whether there was something to show. */
static int look(struct view *view, bool *has_any, struct error *err) {
    struct series_reader *reader = NULL;
    struct curves curves;
    int status;

    *has_any = false;
    if (series_reader_open(view->rundir.series, &reader, err)) {
        if (err->code != ERROR_NOT_FOUND)
            return -1;
        if (invocation_has(view->in, "json"))
            puts("[]");
        return 0;
    }
    curves_select(&curves, reader, &view->wish);
    *has_any = curves.metrics.len > 0;
    if (invocation_has(view->in, "json"))
        status = print_json(view, &curves, err);
    else if (invocation_has(view->in, "csv"))
        status = print_csv(view, &curves, err);
    else
        status = print_text(view, &curves, err);
    if (status == 0 && !invocation_has(view->in, "json") && !invocation_has(view->in, "csv"))
        say_what_is_not_shown(view, &curves);
    if (status == 0 && series_reader_damaged(reader) > 0)
        fprintf(stderr, "myelin: warning: %llu damaged pieces of the series were passed over\n",
                (unsigned long long)series_reader_damaged(reader));
    curves_release(&curves);
    series_reader_free(reader);
    return status;
}

static int say_nothing_logged(const struct view *view) {
    if (view->wish.n_names == 0)
        fprintf(stderr, "run %s has logged no metrics\n", view->rundir.id);
    else
        complain("run %s has logged nothing of that name; 'myelin metrics %s' lists what it has",
                 view->rundir.id, view->rundir.id);
    return view->wish.n_names == 0 ? STATUS_OK : STATUS_INVALID;
}

static void say_what_is_not_kept(const struct view *view) {
    AUTO(arena) arena = ARENA_INIT;

    if (losses_any(&view->run.losses))
        fprintf(stderr, "myelin: note: not kept of run %s: %s\n", view->rundir.id,
                losses_text(&view->run.losses, &arena));
}

/* Looks once, or with --follow each second until the run is over or `q` is pressed. */
static int show(struct view *view, struct error *err) {
    const bool follows = invocation_has(view->in, "follow");
    bool has_any, is_over;

    if (invocation_has(view->in, "csv"))
        csv_header(stdout, &view->rows);
    do {
        is_over = state_is_final(view->run.state);
        if (look(view, &has_any, err))
            return -1;
        if (!follows || is_over)
            break;
        keys_begin();
        if (keys_wait_ms(LOOK_EVERY_MS))
            break;
        record_release(&view->run);
    } while (runs_read(&view->rundir, &view->run, err) == 0);
    keys_end();
    say_what_is_not_kept(view);
    return has_any || invocation_has(view->in, "json") ? STATUS_OK : say_nothing_logged(view);
}

/* ---- the command line ---- */

static int read_number(const struct invocation *in, const char *option, long most, long *out) {
    const char *text = invocation_value(in, option);
    char *end;

    if (!text)
        return 0;
    errno = 0;
    *out = strtol(text, &end, 10);
    if (end == text || *end || errno || *out < 0 || *out > most)
        return invocation_misuse(in, "--%s takes a number from 0 to %ld, not '%s'", option, most,
                                 text);
    return 0;
}

static int index_of(const char *const *choices, const char *text, int otherwise) {
    for (int i = 0; text && choices[i]; i++)
        if (strcmp(choices[i], text) == 0)
            return i;
    return otherwise;
}

static int read_wishes(struct view *view) {
    const struct invocation *in = view->in;
    long rank = -1, attempt = -1, points = 0;
    int status = 0;

    if (invocation_has(in, "json") && (invocation_has(in, "csv") || invocation_has(in, "follow")))
        return invocation_misuse(in, "--json goes with neither --csv nor --follow");
    if (invocation_has(in, "csv") && invocation_has(in, "follow") && invocation_has(in, "points"))
        return invocation_misuse(in, "--points summarises what is whole: not with --csv --follow");
    status = read_number(in, "rank", UINT32_MAX - 1, &rank);
    if (status == 0)
        status = read_number(in, "attempt", UINT32_MAX - 1, &attempt);
    if (status == 0)
        status = read_number(in, "points", POINTS_MOST, &points);
    view->wish = (struct curves_wish){ .names = in->operands + 1,
                                       .n_names = in->n_operands - 1,
                                       .with_system = invocation_has(in, "system"),
                                       .rank = rank < 0 ? CURVES_ANY : (uint32_t)rank,
                                       .attempt = attempt < 0 ? CURVES_ANY : (uint32_t)attempt };
    view->rows = (struct rows_wish){ .run = &view->run,
                                     .axis = index_of(axis_choices, invocation_value(in, "by"), 0)
                                                 ? SERIES_BY_TIME
                                                 : SERIES_BY_STEP,
                                     .n_buckets = (size_t)points };
    view->fold = (enum fold)index_of(fold_choices, invocation_value(in, "fold"), FOLD_AS_FITS);
    return status;
}

static int metrics_command(const struct invocation *in) {
    struct view view = { .in = in };
    AUTO(arena) arena = ARENA_INIT;
    struct error err;
    int status;

    if (in->n_operands == 0)
        return runs_misuse_without_run(in);
    status = read_wishes(&view);
    if (status)
        return status;
    if ((invocation_has(in, "follow") ? runs_find_living : runs_find)(in->operands[0], &arena,
                                                                      &view.rundir, &err) ||
        runs_read(&view.rundir, &view.run, &err)) {
        complain("%s", runs_text(&arena, err.message, 0));
        return STATUS_INVALID;
    }
    status = show(&view, &err);
    if (status < 0) {
        complain("%s", runs_text(&arena, err.message, 0));
        status = STATUS_INVALID;
    }
    free(view.shown);
    record_release(&view.run);
    return status;
}

static const struct option options[] = {
    { .name = "follow",
      .letter = 'f',
      .help = "go on until the run is over; on a terminal q ends it" },
    { .name = "rank", .argument = "N", .help = "only of the task with this rank" },
    { .name = "attempt", .argument = "N", .help = "only of this attempt, counted from 0" },
    { .name = "fold",
      .argument = "HOW",
      .kind = ARGUMENT_CHOICE,
      .choices = fold_choices,
      .help = "draw the tasks as one curve, by mean, min or max, or each apart (none)" },
    { .name = "by",
      .argument = "AXIS",
      .kind = ARGUMENT_CHOICE,
      .choices = axis_choices,
      .help = "what the curves are drawn over: step or time" },
    { .name = "log", .help = "draw values on a logarithmic scale" },
    { .name = "system", .help = "list the metrics that myelin measures, too" },
    { .name = "points",
      .argument = "N",
      .help = "with --csv or --json: at most N summaries a series; 0 for every point" },
    { .name = "csv", .help = "print points as comma-separated values" },
    { .name = "json", .help = "print a list of JSON objects" },
    { 0 },
};

const struct command command_metrics = {
    .name = "metrics",
    .arguments = "RUN [NAME...]",
    .summary = "show what a run has measured: a list, curves, or data",
    .description =
        "Without a NAME the metrics of a run are listed, with their last and extreme values. With "
        "NAMEs, which may be patterns (`'val/*'`), each is drawn as a curve. The values of several "
        "tasks are drawn apart while there are few of them, else as their mean.\n"
        "\n"
        "Metrics that begin with `system/` are measured by myelin itself: they are listed with "
        "`--system`, or when named.\n"
        "Of more than 1000 metrics the first are listed, and of more than 100 curves the first are "
        "drawn: name a pattern, or take all with `--csv` or `--json`.\n"
        "\n" RUN_NAMES,
    .options = options,
    .examples = "myelin metrics @                     # what the newest run has logged\n"
                "myelin metrics @ loss -f             # its loss as a curve, live\n"
                "myelin metrics 12 loss --csv         # every point, for another program\n"
                "myelin metrics 12 'system/*' --rank 0   # what task 0 used of the machine\n",
    .run = metrics_command,
};
