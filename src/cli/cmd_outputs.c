/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "store/outputs.h"

/* A file may have been given any time: one beyond what fits is told as the last that does. */
static struct time_text date_text(struct timespec at) {
    const int64_t most_s = INT64_MAX / 1000000;
    const int64_t second = at.tv_sec > most_s ? most_s : at.tv_sec < -most_s ? -most_s : at.tv_sec;

    return time_text(second * 1000000, TIME_SECONDS);
}

static int print_json(const struct outputs *outputs, struct error *err) {
    struct json json;

    json_init(&json, JSON_PRETTY, json_to_file, stdout);
    json_array(&json);
    for (size_t i = 0; i < outputs->list.len; i++) {
        const struct output *output = &outputs->list.items[i];

        json_object(&json);
        json_key(&json, "path");
        json_text(&json, output->path);
        json_key(&json, "size");
        json_int(&json, (int64_t)output->size);
        json_key(&json, "modified_at");
        json_text(&json, date_text(output->modified).text);
        json_key(&json, "link_target");
        json_text(&json, output->target);
        json_end(&json);
    }
    json_end(&json);
    return json_finish(&json, err);
}

static void print_table(const struct outputs *outputs, const struct rundir *rundir) {
    struct table table;

    if (outputs->list.len == 0) {
        fprintf(stderr, "run %s has no outputs\n", rundir->id);
        return;
    }
    table_init(&table, 3);
    table_cell(&table, "SIZE");
    table_cell(&table, "MODIFIED");
    table_cell(&table, "PATH");
    for (size_t i = 0; i < outputs->list.len; i++) {
        const struct output *output = &outputs->list.items[i];

        table_cell(&table, "%s", runs_bytes(&table.arena, output->size));
        table_cell(&table, "%s", date_text(output->modified).text);
        table_cell(&table, "%s%s%s", runs_text(&table.arena, output->path, 0),
                   output->target ? " -> " : "", runs_text(&table.arena, output->target, 0));
    }
    table_print(&table, stdout, terminal_colour(stdout));
    table_release(&table);
}

static int copy(const struct invocation *in, const struct outputs *outputs,
                const struct rundir *rundir, struct error *err) {
    const char *directory = invocation_value(in, "copy");
    size_t left_out;

    if (outputs_copy(outputs, rundir, directory,
                     invocation_has(in, "force") ? OUTPUTS_OVERWRITE : OUTPUTS_NEW_ONLY, NULL,
                     &left_out, err))
        return -1;
    fprintf(stderr, "copied %zu file%s of run %s to %s\n", outputs->list.len - left_out,
            outputs->list.len - left_out == 1 ? "" : "s", rundir->id, directory);
    if (left_out > 0)
        fprintf(stderr, "myelin: warning: %zu symbolic link%s out of the outputs %s not copied\n",
                left_out, left_out == 1 ? "" : "s", left_out == 1 ? "was" : "were");
    return 0;
}

static int gather(const struct invocation *in, const struct rundir *rundir, struct outputs *outputs,
                  struct error *err) {
    if (in->n_operands == 1)
        return outputs_add(outputs, rundir, NULL, err);
    for (size_t i = 1; i < in->n_operands; i++)
        if (outputs_add(outputs, rundir, in->operands[i], err))
            return -1;
    return 0;
}

static int outputs_command(const struct invocation *in) {
    AUTO(outputs) outputs = { 0 };
    AUTO(arena) arena = ARENA_INIT;
    struct rundir rundir;
    struct error err;
    int status;

    if (in->n_operands == 0)
        return runs_misuse_without_run(in);
    if (invocation_has(in, "force") && !invocation_has(in, "copy"))
        return invocation_misuse(in, "--force is for --copy");
    status = runs_find(in->operands[0], &arena, &rundir, &err);
    if (status == 0)
        status = gather(in, &rundir, &outputs, &err);
    outputs_sort(&outputs);
    if (status == 0 && invocation_has(in, "copy"))
        status = copy(in, &outputs, &rundir, &err);
    if (status == 0 && invocation_has(in, "json"))
        status = print_json(&outputs, &err);
    else if (status == 0 && !invocation_has(in, "copy"))
        print_table(&outputs, &rundir);
    if (status) {
        fprintf(stderr, "myelin: %s\n", runs_text(&arena, err.message, 0));
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static const struct option options[] = {
    { .name = "copy",
      .argument = "DIR",
      .kind = ARGUMENT_DIRECTORY,
      .help = "copy the files to DIR, which is made when it is missing" },
    { .name = "force", .help = "with --copy: replace files that exist" },
    { .name = "json", .help = "print a list of JSON objects" },
    { 0 },
};

const struct command command_outputs = {
    .name = "outputs",
    .arguments = "RUN [PATH...]",
    .summary = "list or copy the files that a run has left",
    .description = "Lists the files below the outputs directory of a run, or those of each PATH in "
                   "it. Symbolic links are shown, never followed. With `--copy` nothing is copied "
                   "when one of the files exists already, unless `--force` is given.\n"
                   "\n" RUN_NAMES,
    .options = options,
    .examples = "myelin outputs @                          # all files of the newest run\n"
                "myelin outputs 12 model --copy ./result   # one directory of run 12\n",
    .run = outputs_command,
};
