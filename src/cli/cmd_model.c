/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/copying.h"
#include "cli/failure.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/tracked.h"
#include "store/inventory.h"
#include "store/models.h"

enum { METRICS_IN_ROW = 3, METRICS_SHOWN = 16 };

/* What a verb works with. */
struct desk {
    const struct invocation *in;
    struct arena *arena;
    const char *home;
    struct models *models; /* NULL: there are none */
};

/* One version with what its run says of it. */
struct version {
    struct model_row row;
    struct run_record run;    /* zeroed where there is none any more */
    struct artifact artifact; /* of that run; without a name where there is none */
    struct last_values metrics;
    int64_t step; /* -1: not known */
};

/* ---- runs that nobody looked at since their end ---- */

static int by_number(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* Most were recorded by their supervisor; this finds the others. Living runs are left alone, and
 * one that cannot be recorded does not stand in the way of the rest. Returns whether it need not be
 * looked at again. */
static bool record_run(const char *home, uint64_t id) {
    AUTO(arena) arena = ARENA_INIT;
    bool is_done = false;
    struct run_record run;
    struct rundir rundir;
    struct error err;

    if (rundir_open(home, (unsigned long)id, &arena, &rundir, &err) ||
        runs_read(&rundir, &run, &err))
        return false;
    record_release(&run);
    if (inventory_settle(&rundir, &is_done, &err)) {
        fprintf(stderr, "myelin: warning: the artifacts of run %s are not all recorded: %s\n",
                rundir.id, runs_text(&arena, err.message, 0));
        return false;
    }
    return is_done;
}

static int record_runs(struct desk *desk, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    VEC(uint64_t) done = { 0 };
    uint64_t *looked;
    unsigned long *ids;
    size_t n, n_looked;
    int status;

    if (rundir_list(desk->home, &arena, &ids, &n, err) ||
        models_looked(desk->models, &arena, &looked, &n_looked, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        const uint64_t id = ids[i];

        if (!bsearch(&id, looked, n_looked, sizeof id, by_number) && record_run(desk->home, id))
            *VEC_PUSH(&done) = id;
    }
    status = models_mark_looked(desk->models, done.items, done.len, err);
    VEC_RELEASE(&done);
    return status;
}

/* Where nothing can be written, what is known is shown. */
static int open_desk(struct desk *desk, struct error *err) {
    unsigned long *ids;
    size_t n;

    if (runs_home(desk->arena, &desk->home, err) ||
        rundir_list(desk->home, desk->arena, &ids, &n, err))
        return -1;
    if (n == 0)
        return 0;
    if (models_open(desk->home, LEDGER_TO_WRITE, &desk->models, err) == 0 &&
        record_runs(desk, err) == 0)
        return 0;
    if (err->code != ERROR_DENIED)
        return -1;
    models_close(desk->models);
    desk->models = NULL;
    return models_open(desk->home, LEDGER_TO_LOOK, &desk->models, err);
}

/* ---- a version ---- */

static void read_run(const struct desk *desk, struct version *version) {
    struct artifacts artifacts;
    struct rundir rundir;
    struct error ignored;

    if (rundir_open(desk->home, (unsigned long)version->row.run, desk->arena, &rundir, &ignored) ||
        record_read(&version->run, &rundir, &ignored))
        return;
    artifacts = artifacts_read(&version->run, desk->arena);
    for (size_t i = 0; i < artifacts.n; i++)
        if (strcmp(artifacts.list[i].name, version->row.name) == 0)
            version->artifact = artifacts.list[i];
    version->metrics = last_values_read(&rundir, desk->arena);
    version->step = version->artifact.name ? version->artifact.step : -1;
    /* Nothing else told: it is what the run had come to. */
    for (size_t i = 0; version->artifact.step < 0 && i < version->metrics.n; i++)
        if (version->metrics.list[i].step > version->step)
            version->step = version->metrics.list[i].step;
}

static struct version version_of(const struct desk *desk, const struct model_row *row) {
    struct version version = { .row = *row, .artifact = { .step = -1 }, .step = -1 };

    read_run(desk, &version);
    return version;
}

static void version_release(struct version *version) {
    record_release(&version->run);
}

static void write_json(struct json *json, const struct version *version) {
    const struct model_row *row = &version->row;

    json_object(json);
    json_key(json, "name");
    json_text(json, row->name);
    json_key(json, "version");
    json_int(json, row->version);
    json_key(json, "aliases");
    json_array(json);
    for (size_t i = 0; row->aliases[i]; i++)
        json_text(json, row->aliases[i]);
    json_end(json);
    json_key(json, "run");
    json_int(json, (int64_t)row->run);
    json_key(json, "run_uuid");
    json_text(json, version->run.uuid);
    json_key(json, "run_name");
    json_text(json, version->run.name);
    json_key(json, "recorded_at");
    json_text(json, version->artifact.logged_at);
    json_key(json, "path");
    json_text(json, row->path);
    json_key(json, "sha256");
    json_text(json, row->sha256);
    json_key(json, "size");
    json_int(json, (int64_t)row->size);
    json_key(json, "files");
    json_int(json, (int64_t)row->files);
    json_key(json, "step");
    if (version->step >= 0)
        json_int(json, version->step);
    else
        json_null(json);
    json_key(json, "metadata");
    json_node(json, version->artifact.metadata);
    json_metric_values(json, &version->metrics);
    json_end(json);
}

static int print_json(const struct desk *desk, const struct model_row *row, struct error *err) {
    struct version version = version_of(desk, row);
    struct json json;
    int status;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    write_json(&json, &version);
    status = json_finish(&json, err);
    version_release(&version);
    return status;
}

static const char *aliases_text(const struct model_row *row, struct arena *arena) {
    const char *text = "";

    for (size_t i = 0; row->aliases[i]; i++)
        text = arena_printf(arena, "%s%s%s", text, i ? ", " : "", row->aliases[i]);
    return text;
}

/* ---- ls ---- */

static int print_list_json(const struct desk *desk, const struct model_row *rows, size_t n,
                           struct error *err) {
    struct json json;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_array(&json);
    for (size_t i = 0; i < n; i++) {
        struct version version = version_of(desk, &rows[i]);

        write_json(&json, &version);
        version_release(&version);
    }
    json_end(&json);
    return json_finish(&json, err);
}

static void print_list(const struct desk *desk, const struct model_row *rows, size_t n) {
    static const char *const heads[] = { "MODEL", "VERSION", "ALIASES", "RUN",
                                         "STEP",  "SIZE",    "METRICS" };
    struct table table;

    table_init(&table, ARRAY_LEN(heads));
    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        table_cell(&table, "%s", heads[i]);
    for (size_t i = 0; i < n; i++) {
        struct version version = version_of(desk, &rows[i]);

        table_cell(&table, "%s", runs_text(&table.arena, rows[i].name, 0));
        table_cell(&table, "%" PRId64, rows[i].version);
        table_cell(&table, "%s", aliases_text(&rows[i], &table.arena));
        table_cell(&table, "%" PRIu64, rows[i].run);
        if (version.step >= 0)
            table_cell(&table, "%" PRId64, version.step);
        else
            table_cell(&table, "%s", "");
        table_cell(&table, "%s", runs_bytes(&table.arena, rows[i].size));
        table_cell(&table, "%s", last_values_text(&version.metrics, METRICS_IN_ROW, &table.arena));
        version_release(&version);
    }
    table_print(&table, stdout, terminal_colour(stdout));
    table_release(&table);
}

static int list(const struct desk *desk, struct error *err) {
    const char *name = desk->in->n_operands > 1 ? desk->in->operands[1] : NULL;
    struct model_row *rows;
    size_t n;

    if (models_list(desk->models, name, desk->arena, &rows, &n, err))
        return -1;
    if (name && n == 0)
        return error_set(err, ERROR_NOT_FOUND,
                         "there is no model '%.200s': 'myelin model ls' lists those there are",
                         name);
    if (invocation_has(desk->in, "json"))
        return print_list_json(desk, rows, n, err);
    if (n == 0)
        fputs("there are no models: a task makes one with log_artifact(path, type=\"model\")\n",
              stderr);
    else
        print_list(desk, rows, n);
    return 0;
}

/* ---- show ---- */

static const char *metadata_text(const struct node *node, struct arena *arena) {
    AUTO(buf) text = BUF_INIT(1 << 20);
    struct json json;
    struct error err;

    if (!node || node->count == 0)
        return "";
    json_init(&json, JSON_COMPACT, json_to_buf, &text);
    json_node(&json, node);
    return json_finish(&json, &err) ? "" : arena_text(arena, text.data, text.len);
}

static void print_row(const char *label, const char *text) {
    if (text && text[0])
        printf("%-10s%s\n", label, text);
}

static int show(const struct desk *desk, struct error *err) {
    struct arena *arena = desk->arena;
    struct version version;
    struct model_row row;

    if (models_find(desk->models, desk->in->operands[1], arena, &row, err))
        return -1;
    if (invocation_has(desk->in, "json"))
        return print_json(desk, &row, err);
    version = version_of(desk, &row);
    print_row("model",
              arena_printf(arena, "%s:%" PRId64, runs_text(arena, row.name, 0), row.version));
    print_row("aliases", aliases_text(&row, arena));
    print_row("run", arena_printf(arena, "%" PRIu64 "%s%s", row.run, version.run.name ? "  " : "",
                                  runs_text(arena, version.run.name, 0)));
    print_row("recorded", version.artifact.logged_at);
    if (version.step >= 0)
        print_row("step", arena_printf(arena, "%" PRId64, version.step));
    print_row("metrics", last_values_text(&version.metrics, METRICS_SHOWN, arena));
    print_row("path", runs_text(arena, row.path, 0));
    print_row("size", arena_printf(arena, "%s in %" PRIu64 " file%s", runs_bytes(arena, row.size),
                                   row.files, row.files == 1 ? "" : "s"));
    print_row("sha256", row.sha256);
    print_row("metadata", runs_text(arena, metadata_text(version.artifact.metadata, arena), 0));
    version_release(&version);
    return 0;
}

/* ---- get ---- */

/* A run that resumes another writes to the same outputs. */
static int check_unchanged(const struct model_row *row, const struct rundir *rundir,
                           struct error *err) {
    struct content content;

    if (content_hash(rundir, row->path, UINT64_MAX, &content, err))
        return error_wrap(err, "%s:%" PRId64 " cannot be had", row->name, row->version);
    if (strcmp(content.sha256, row->sha256) != 0)
        return error_set(err, ERROR_CONFLICT,
                         "outputs/%.200s of run %s is not what it was when %.100s:%" PRId64
                         " was recorded: a run that resumed it, or somebody else, has changed it; "
                         "nothing was copied",
                         row->path, rundir->id, row->name, row->version);
    return 0;
}

/* Of a file its name is kept, of a folder what is below it. */
static size_t strip_of(const struct outputs *outputs, const char *path) {
    const struct output *first = outputs->list.len ? &outputs->list.items[0] : NULL;
    size_t n = strlen(path);
    const char *name;

    while (n > 0 && path[n - 1] == '/')
        n--;
    if (first && strncmp(first->path, path, n) == 0 && first->path[n] == '/')
        return n + 1;
    name = first && outputs->list.len == 1 ? strrchr(first->path, '/') : NULL;
    return name ? (size_t)(name + 1 - first->path) : 0;
}

static int get(const struct desk *desk, struct error *err) {
    const enum outputs_manner manner =
        invocation_has(desk->in, "force") ? OUTPUTS_OVERWRITE : OUTPUTS_NEW_ONLY;
    const char *directory = desk->in->operands[2];
    AUTO(outputs) outputs = { 0 };
    struct model_row row;
    struct rundir rundir;
    size_t left_out;

    if (models_find(desk->models, desk->in->operands[1], desk->arena, &row, err) ||
        rundir_open(desk->home, (unsigned long)row.run, desk->arena, &rundir, err) ||
        check_unchanged(&row, &rundir, err) || outputs_add(&outputs, &rundir, row.path, err))
        return -1;
    outputs_sort(&outputs);
    outputs.strip = strip_of(&outputs, row.path);
    if (copying_outputs("copying", &outputs, &rundir, directory, manner, &left_out, err))
        return -1;
    fprintf(stderr, "copied %zu file%s of %s:%" PRId64 " to %s\n", outputs.list.len - left_out,
            outputs.list.len - left_out == 1 ? "" : "s", runs_text(desk->arena, row.name, 0),
            row.version, directory);
    if (left_out > 0)
        fprintf(stderr, "myelin: warning: %zu symbolic link%s out of the model not copied\n",
                left_out, left_out == 1 ? " was" : "s were");
    return invocation_has(desk->in, "json") ? print_json(desk, &row, err) : 0;
}

/* ---- alias ---- */

static int alias(const struct desk *desk, struct error *err) {
    const char *named = desk->in->operands[1], *name = desk->in->operands[2];
    const bool removes = invocation_has(desk->in, "remove");
    struct model_row row;
    int64_t before = 0;

    if (models_find(desk->models, named, desk->arena, &row, err))
        return -1;
    if (removes ? models_unalias(desk->models, &row, name, err)
                : models_alias(desk->models, &row, name, &before, err))
        return -1;
    if (invocation_has(desk->in, "json"))
        return models_find(desk->models,
                           arena_printf(desk->arena, "%s:%" PRId64, row.name, row.version),
                           desk->arena, &row, err) ||
                       print_json(desk, &row, err)
                   ? -1
                   : 0;
    printf("%s:%" PRId64 " is %s%s", runs_text(desk->arena, row.name, 0), row.version,
           removes ? "no longer " : "", name);
    if (before)
        printf(", which was version %" PRId64, before);
    putchar('\n');
    return 0;
}

/* ---- the command ---- */

static const struct verb {
    const char *name;
    size_t least, most; /* operands after the verb */
    const char *usage;
    int (*run)(const struct desk *desk, struct error *err);
} verb_rows[] = {
    { "ls", 0, 1, "model ls [NAME]", list },
    { "show", 1, 1, "model show NAME[:VERSION|:ALIAS]", show },
    { "get", 2, 2, "model get NAME[:VERSION|:ALIAS] DIR", get },
    { "alias", 2, 2, "model alias NAME:VERSION ALIAS [--remove]", alias },
};

static int model(const struct invocation *in) {
    AUTO(arena) arena = ARENA_INIT;
    struct desk desk = { .in = in, .arena = &arena };
    const struct verb *verb = NULL;
    struct error err;
    int status;

    for (size_t i = 0; in->n_operands > 0 && i < ARRAY_LEN(verb_rows); i++)
        if (strcmp(verb_rows[i].name, in->operands[0]) == 0)
            verb = &verb_rows[i];
    if (!verb)
        return invocation_misuse(in, "what to do is missing: ls, show, get or alias");
    if (in->n_operands - 1 < verb->least || in->n_operands - 1 > verb->most)
        return invocation_misuse(in, "it is 'myelin %s'", verb->usage);
    if (invocation_has(in, "force") && verb->run != get)
        return invocation_misuse(in, "--force is for 'model get'");
    if (invocation_has(in, "remove") && verb->run != alias)
        return invocation_misuse(in, "--remove is for 'model alias'");
    status = open_desk(&desk, &err);
    if (status == 0)
        status = verb->run(&desk, &err);
    models_close(desk.models);
    if (status) {
        complain("%s", runs_text(&arena, err.message, 0));
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static const char *const verbs[] = { "ls", "show", "get", "alias", NULL };

static const struct option options[] = {
    { .name = "force", .help = "with get: replace files that exist" },
    { .name = "remove", .help = "with alias: take the alias away" },
    { .name = "json", .help = "print JSON: a list with ls, else an object" },
    { 0 },
};

const struct command command_model = {
    .name = "model",
    .arguments = "ls|show|get|alias [MODEL] [DIR|ALIAS]",
    .summary = "list, show, copy and alias the versions of models",
    .description =
        "An artifact of type `model` that a task has logged becomes a version of the model of that "
        "name when its run is over: 1, 2, 3 and so on within this home.\n"
        "\n"
        "`ls [NAME]` lists the versions, the newest first. `show MODEL` tells of one: its run, the "
        "last metrics of that, files and hash. `get MODEL DIR` copies its files to DIR, if they "
        "are still what they were. `alias MODEL ALIAS` gives a version a second name, as `best` or "
        "`production`, which the version that had it loses; with `--remove` it is taken away. A "
        "run whose model has an alias is not removed.\n"
        "\n"
        "A MODEL is NAME for its newest version, NAME:VERSION or NAME:ALIAS.",
    .options = options,
    .verbs = verbs,
    .operand_kind = ARGUMENT_DIRECTORY,
    .examples = "myelin model ls                          # all models\n"
                "myelin model alias mnist:3 production    # version 3 is the one in use\n"
                "myelin model get mnist:production ./out  # its files\n",
    .run = model,
};
