/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/load.h"
#include "cli/program_note.h"
#include "codec/json.h"
#include "manifest/manifest.h"
#include "plan/plan.h"

static const char *shown_name(const struct loaded *loaded) {
    for (size_t i = 0; i < loaded->sources.list.len; i++)
        if (strcmp(loaded->sources.list.items[i].name, "-P") != 0)
            return loaded->sources.list.items[i].name;
    return NULL;
}

static void say_valid(const struct loaded *loaded) {
    size_t n = loaded->diags->warnings;

    printf("%s: valid", shown_name(loaded));
    if (n > 0)
        printf(", %zu warning%s", n, n == 1 ? "" : "s");
    printf(", %u task%s\n", loaded->plan->n_tasks, loaded->plan->n_tasks == 1 ? "" : "s");
}

static void print_note(void *context, const char *sentence) {
    fprintf(context, "note: %s\n", sentence);
}

static void write_note(void *context, const char *sentence) {
    json_text(context, sentence);
}

/* What of the file does nothing where it runs by itself: here. */
static bool runs_here(const struct loaded *loaded) {
    return loaded->plan && loaded->plan->backend == BACKEND_NATIVE;
}

/* What is to be known of the file on this machine. */
static void tell_notes(const struct loaded *loaded,
                       void (*tell)(void *context, const char *sentence), void *context) {
    char note[PROGRAM_NOTE_MOST];

    if (loaded->plan && !loaded->plan->command)
        tell(context, "the file has no command: add `run: {cmd: ...}` before you run it");
    if (!runs_here(loaded))
        return;
    plan_local_notes(loaded->plan, tell, context);
    if (program_note(loaded->plan, note))
        tell(context, note);
}

static void write_result(struct json *json, const char *file, const struct loaded *loaded) {
    json_object(json);
    json_key(json, "file");
    json_text(json, shown_name(loaded) ? shown_name(loaded) : file);
    json_key(json, "valid");
    json_bool(json, loaded->plan != NULL);
    json_key(json, "errors");
    json_int(json, (int64_t)loaded->diags->errors);
    json_key(json, "warnings");
    json_int(json, (int64_t)loaded->diags->warnings);
    json_key(json, "diagnostics");
    diags_write_json(loaded->diags, &loaded->sources, json);
    json_key(json, "notes");
    json_array(json);
    tell_notes(loaded, write_note, json);
    json_end(json);
    json_end(json);
}

/* A file that names Kubeflow has to be one that Kubeflow can run. */
static void check_backend(struct loaded *loaded) {
    if (!loaded->plan || loaded->plan->backend != BACKEND_KUBEFLOW)
        return;
    manifest_check_kubeflow(loaded->plan, loaded->diags);
    if (loaded->diags->errors > 0) {
        plan_free(loaded->plan);
        loaded->plan = NULL;
    }
}

/* Each operand is a file of its own; files of `-f` are merged into one, or into each operand. */
static int check(const struct invocation *invocation) {
    bool as_json = invocation_has(invocation, "json");
    size_t n = invocation->n_operands > 0 ? invocation->n_operands : 1;
    int status = STATUS_OK;
    struct json json;
    struct error err;

    if (as_json) {
        json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
        json_array(&json);
    }
    for (size_t i = 0; i < n; i++) {
        const char *file = invocation->n_operands > 0 ? invocation->operands[i] : NULL;
        struct loaded loaded;

        load(invocation, file, &loaded);
        check_backend(&loaded);
        if (!loaded.plan)
            status = STATUS_INVALID;
        if (as_json) {
            write_result(&json, file, &loaded);
        } else {
            print_diags(&loaded);
            if (loaded.plan)
                say_valid(&loaded);
            tell_notes(&loaded, print_note, stdout);
        }
        loaded_release(&loaded);
    }
    if (as_json) {
        json_end(&json);
        if (json_finish(&json, &err))
            status = STATUS_INVALID;
    }
    return status;
}

static const struct option options[] = {
    LOAD_OPTIONS,
    { .name = "json", .help = "print what was found as JSON" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "all files are valid; there may be warnings" },
    { "1", "a file is not valid" },
    { "2", "the command line is wrong" },
    { 0 },
};

const struct command command_check = {
    .name = "check",
    .arguments = "[FILE...]",
    .summary = "check polyaxonfiles and say all that is wrong in them",
    .description = "Reads each FILE, or polyaxonfile.yml here (and the other usual names), and "
                   "prints every mistake with its place and what would be right. `-` reads "
                   "standard input; a directory stands for the polyaxonfile in it.\n"
                   "\n"
                   "A param that is given with -P and that the file does not use is a warning; if "
                   "the file declares `inputs`, it is an error.\n"
                   "\n"
                   "Several files given with -f are merged, left to right, and checked as one.",
    .options = options,
    .operand_kind = ARGUMENT_FILE,
    .examples = "myelin check polyaxonfile.yml     # check one file\n"
                "myelin check -f base.yml -f gpu.yml -P lr=0.1  # check what they make together\n",
    .statuses = statuses,
    .run = check,
};
