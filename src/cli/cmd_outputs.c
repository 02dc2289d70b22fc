/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/copying.h"
#include "cli/failure.h"
#include "cli/media_rows.h"
#include "cli/outputs_diff.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/tracked.h"
#include "store/inventory.h"
#include "store/outputs.h"

static int print_json(const struct outputs *outputs, struct error *err) {
    struct json json;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_array(&json);
    for (size_t i = 0; i < outputs->list.len; i++) {
        const struct output *output = &outputs->list.items[i];

        json_object(&json);
        json_key(&json, "path");
        json_text(&json, output->path);
        json_key(&json, "size");
        json_int(&json, (int64_t)output->size);
        json_key(&json, "modified_at");
        json_text(&json, runs_file_time(output->modified).text);
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
        table_cell(&table, "%s", runs_file_time(output->modified).text);
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

    if (copying_outputs("copying", outputs, rundir, directory,
                        invocation_has(in, "force") ? OUTPUTS_OVERWRITE : OUTPUTS_NEW_ONLY,
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
    if (in->n_operands == 1 && outputs_add(outputs, rundir, NULL, err))
        return -1;
    for (size_t i = 1; i < in->n_operands; i++)
        if (outputs_add(outputs, rundir, in->operands[i], err))
            return -1;
    if (outputs->n_special > 0)
        fprintf(stderr,
                "myelin: note: %zu FIFO%s, sockets or devices in the outputs are left out\n",
                outputs->n_special, outputs->n_special == 1 ? "" : "s");
    return 0;
}

/* ---- beside another run ---- */

static int diff(const struct invocation *in, const struct outputs *outputs,
                const struct rundir *rundir, struct arena *arena, struct error *err) {
    AUTO(outputs) other_outputs = { 0 };
    struct rundir other;
    const struct outputs_side here = { rundir, outputs }, there = { &other, &other_outputs };

    if (runs_find(invocation_value(in, "diff"), arena, &other, err) ||
        outputs_add(&other_outputs, &other, NULL, err))
        return -1;
    outputs_sort(&other_outputs);
    return invocation_has(in, "json") ? outputs_diff_print_json(&here, &there, err)
                                      : outputs_diff_print(&here, &there, err);
}

/* ---- artifacts ---- */

static int print_artifacts_json(const struct artifacts *artifacts, struct error *err) {
    struct json json;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_array(&json);
    for (size_t i = 0; i < artifacts->n; i++)
        json_artifact(&json, &artifacts->list[i]);
    json_end(&json);
    return json_finish(&json, err);
}

static void print_artifacts(const struct artifacts *artifacts, const struct rundir *rundir) {
    static const char *const heads[] = { "ARTIFACT", "TYPE", "VERSION", "SIZE", "FILES", "SHA256" };
    struct table table;

    if (artifacts->n == 0) {
        fprintf(stderr, "run %s has logged no artifacts\n", rundir->id);
        return;
    }
    table_init(&table, ARRAY_LEN(heads));
    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        table_cell(&table, "%s", heads[i]);
    for (size_t i = 0; i < artifacts->n; i++) {
        const struct artifact *artifact = &artifacts->list[i];

        table_cell(&table, "%s", runs_text(&table.arena, artifact->name, 0));
        table_cell(&table, "%s", runs_text(&table.arena, artifact->type, 0));
        if (artifact->version > 0)
            table_cell(&table, "%" PRId64, artifact->version);
        else
            table_cell(&table, "%s", "");
        table_cell(&table, "%s", runs_bytes(&table.arena, artifact->size));
        table_cell(&table, "%" PRIu64, artifact->files);
        table_cell(&table, "%s",
                   artifact->problem  ? runs_text(&table.arena, artifact->problem, 0)
                   : artifact->sha256 ? artifact->sha256
                                      : "");
    }
    table_print(&table, stdout, terminal_colour(stdout));
    table_release(&table);
}

/* What the run's end left unhashed is hashed now. What cannot be does not hide the rest. */
static int show_artifacts(const struct invocation *in, const struct rundir *rundir,
                          struct arena *arena, struct error *err) {
    struct artifacts artifacts;
    struct run_record run;
    bool is_done;
    int status = 0;

    if (runs_read(rundir, &run, err))
        return -1;
    record_release(&run);
    if (inventory_settle(rundir, &is_done, err))
        fprintf(stderr, "myelin: warning: the artifacts of run %s are not all recorded: %s\n",
                rundir->id, runs_text(arena, err->message, 0));
    if (record_read(&run, rundir, err))
        return -1;
    artifacts = artifacts_read(&run, arena);
    if (invocation_has(in, "json"))
        status = print_artifacts_json(&artifacts, err);
    else
        print_artifacts(&artifacts, rundir);
    record_release(&run);
    return status;
}

/* ---- images and texts ---- */

static int show_media(const struct invocation *in, const struct rundir *rundir, struct arena *arena,
                      struct error *err) {
    struct media_list list;
    struct run_record run;
    int status = 0;

    if (media_read(rundir, in->operands + 1, in->n_operands - 1, arena, &list, err) ||
        record_read(&run, rundir, err))
        return -1;
    if (invocation_has(in, "json"))
        status = media_print_json(&run, &list, err);
    else if (list.n > 0)
        media_print(&run, &list);
    else
        fprintf(stderr, "run %s has logged no images and texts%s\n", rundir->id,
                in->n_operands > 1 ? " of such a name" : "");
    record_release(&run);
    return status;
}

static int list_or_copy(const struct invocation *in, const struct outputs *outputs,
                        const struct rundir *rundir, struct error *err) {
    if (invocation_has(in, "copy") && copy(in, outputs, rundir, err))
        return -1;
    if (invocation_has(in, "json"))
        return print_json(outputs, err);
    if (!invocation_has(in, "copy"))
        print_table(outputs, rundir);
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
    if (invocation_has(in, "diff") + invocation_has(in, "artifacts") + invocation_has(in, "copy") +
            invocation_has(in, "media") >
        1)
        return invocation_misuse(
            in, "of --copy, --diff, --artifacts and --media only one can be given");
    if (in->n_operands > 1 && (invocation_has(in, "diff") || invocation_has(in, "artifacts")))
        return invocation_misuse(in, "a PATH is not for --diff and --artifacts");
    status = runs_find(in->operands[0], &arena, &rundir, &err);
    if (status == 0 && !invocation_has(in, "media"))
        status = gather(in, &rundir, &outputs, &err);
    outputs_sort(&outputs);
    if (status == 0)
        status = invocation_has(in, "media")       ? show_media(in, &rundir, &arena, &err)
                 : invocation_has(in, "diff")      ? diff(in, &outputs, &rundir, &arena, &err)
                 : invocation_has(in, "artifacts") ? show_artifacts(in, &rundir, &arena, &err)
                                                   : list_or_copy(in, &outputs, &rundir, &err);
    if (status) {
        complain("%s", runs_text(&arena, err.message, 0));
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
    { .name = "diff",
      .argument = "RUN2",
      .help = "compare with the files of RUN2 by their content" },
    { .name = "artifacts", .help = "list what tasks have logged as artifacts, with hashes" },
    { .name = "media",
      .help = "list images and texts that tasks have logged, with steps; each PATH is then a name, "
              "or a pattern of names" },
    { .name = "json", .help = "print a list of JSON objects" },
    { 0 },
};

const struct command command_outputs = {
    .name = "outputs",
    .arguments = "RUN [PATH...]",
    .summary = "list, copy or compare the files that a run has left",
    .description = "Lists the files below the outputs directory of a run, or those of each PATH in "
                   "it. Symbolic links are shown, never followed. With `--copy` nothing is copied "
                   "when one of the files exists already, unless `--force` is given.\n"
                   "\n"
                   "With `--diff` the files of two runs are compared: those that only one of them "
                   "has, and those of both whose content differs or is the same. With "
                   "`--artifacts` the artifacts are listed; what was too large to be hashed when "
                   "the run ended is hashed now. With `--media` the images and texts that were "
                   "logged with a step are listed.\n"
                   "\n" RUN_NAMES,
    .options = options,
    .examples = "myelin outputs @                          # all files of the newest run\n"
                "myelin outputs 12 model --copy ./result   # one directory of run 12\n"
                "myelin outputs 12 --diff 13               # what run 13 has left otherwise\n"
                "myelin outputs @ --media 'val/*'          # images and texts of each step\n",
    .run = outputs_command,
};
