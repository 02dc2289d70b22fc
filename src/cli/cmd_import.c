/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "archive/import.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/progress.h"
#include "cli/runs.h"

/* A FILE of the command line, and what came of it. */
struct parcel {
    const char *path;
    struct imports imports;
    bool is_imported; /* all of it */
    struct error err; /* else */
};

static int import_from(struct parcel *parcel, const char *home, struct error *err) {
    const bool is_stdin = strcmp(parcel->path, "-") == 0;
    struct progress progress = progress_begin("unpacking");
    const struct archive_progress tell = { progress_tell, &progress };
    const int fd = is_stdin ? STDIN_FILENO : open(parcel->path, O_RDONLY | O_CLOEXEC);
    int status;

    if (fd < 0)
        return error_set_errno(err, errno, "cannot read '%.300s'", parcel->path);
    status = import_archive(home, fd, is_stdin ? "standard input" : parcel->path, &tell,
                            &parcel->imports, err);
    progress_end(&progress);
    if (!is_stdin)
        close(fd);
    return status;
}

/* ---- for people ---- */

static void say_models(struct arena *arena, const struct imported *it) {
    for (size_t i = 0; i < it->models.len; i++) {
        const struct imported_model *model = &it->models.items[i];
        const char *name = runs_text(arena, model->name, 0);

        printf("  model %s:%lld", name, (long long)model->version);
        if (model->version_there && model->version_there != model->version)
            printf(", which was %s:%lld there", name, (long long)model->version_there);
        for (size_t j = 0; model->aliases && model->aliases[j]; j++)
            printf("%s%s", j ? ", " : "; it is ", model->aliases[j]);
        putchar('\n');
        for (size_t j = 0; model->aliases_kept_back && model->aliases_kept_back[j]; j++)
            printf("    it is not %s: another version is, here\n", model->aliases_kept_back[j]);
    }
    if (it->models_trouble)
        fprintf(stderr,
                "myelin: warning: the models of run %lu get their versions later, and no aliases: "
                "%s\n",
                it->id, runs_text(arena, it->models_trouble, 0));
}

static void say(struct arena *arena, const struct parcel *parcel) {
    for (size_t i = 0; i < parcel->imports.list.len; i++) {
        const struct imported *it = &parcel->imports.list.items[i];

        if (it->was_here) {
            printf("run %lld of the archive is run %lu here: nothing to do\n",
                   (long long)it->id_there, it->id);
            continue;
        }
        printf("imported run %lld as run %lu, %s\n", (long long)it->id_there, it->id,
               runs_bytes(arena, it->bytes));
        say_models(arena, it);
    }
}

/* ---- for programs ---- */

static void write_texts(struct json *json, const char *key, const char **texts) {
    json_key(json, key);
    json_array(json);
    for (size_t i = 0; texts && texts[i]; i++)
        json_text(json, texts[i]);
    json_end(json);
}

static void write_model(struct json *json, const struct imported_model *model) {
    json_object(json);
    json_key(json, "name");
    json_text(json, model->name);
    json_key(json, "version");
    json_int(json, model->version);
    json_key(json, "version_there");
    if (model->version_there)
        json_int(json, model->version_there);
    else
        json_null(json);
    write_texts(json, "aliases", model->aliases);
    write_texts(json, "aliases_kept_back", model->aliases_kept_back);
    json_end(json);
}

static void write_imported(struct json *json, const struct parcel *parcel,
                           const struct imported *it) {
    json_object(json);
    json_key(json, "file");
    json_text(json, parcel->path);
    json_key(json, "outcome");
    json_text(json, it->was_here ? "was here" : "imported");
    json_key(json, "id");
    json_int(json, (int64_t)it->id);
    json_key(json, "id_there");
    json_int(json, it->id_there);
    json_key(json, "uuid");
    json_text(json, it->uuid);
    json_key(json, "bytes");
    json_int(json, (int64_t)it->bytes);
    json_key(json, "models");
    json_array(json);
    for (size_t i = 0; i < it->models.len; i++)
        write_model(json, &it->models.items[i]);
    json_end(json);
    json_key(json, "error");
    json_text(json, it->models_trouble);
    json_end(json);
}

/* What stands for a file of which not all became runs. */
static void write_refused(struct json *json, const struct parcel *parcel) {
    static const char *const nulls[] = { "id", "id_there", "uuid", "bytes" };

    json_object(json);
    json_key(json, "file");
    json_text(json, parcel->path);
    json_key(json, "outcome");
    json_text(json, "refused");
    for (size_t i = 0; i < ARRAY_LEN(nulls); i++) {
        json_key(json, nulls[i]);
        json_null(json);
    }
    write_texts(json, "models", NULL);
    json_key(json, "error");
    json_text(json, parcel->err.message);
    json_end(json);
}

static int print_json(const struct parcel *parcels, size_t n) {
    struct json json;
    struct error err;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_array(&json);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < parcels[i].imports.list.len; j++)
            write_imported(&json, &parcels[i], &parcels[i].imports.list.items[j]);
        if (!parcels[i].is_imported)
            write_refused(&json, &parcels[i]);
    }
    json_end(&json);
    return json_finish(&json, &err) ? STATUS_INVALID : STATUS_OK;
}

/* ---- all of it ---- */

static int import_all(const struct invocation *in, const char *home, struct parcel *parcels,
                      struct arena *arena) {
    const struct interrupts held = interrupts_hold();
    int status = STATUS_OK;

    for (size_t i = 0; i < in->n_operands; i++) {
        struct parcel *parcel = &parcels[i];

        parcel->path = in->operands[i];
        if (interrupts_came())
            error_set(&parcel->err, ERROR_CONFLICT, "%.300s: interrupted before", parcel->path);
        else
            parcel->is_imported = import_from(parcel, home, &parcel->err) == 0;
        if (!invocation_has(in, "json"))
            say(arena, parcel);
        if (parcel->is_imported)
            continue;
        fflush(stdout);
        complain("%s", runs_text(arena, parcel->err.message, 0));
        status = interrupts_came() ? STATUS_INTERRUPTED : STATUS_INVALID;
    }
    interrupts_release(&held);
    return status;
}

static int import_command(const struct invocation *in) {
    AUTO(arena) arena = ARENA_INIT;
    struct parcel *parcels = ARENA_ARRAY(&arena, struct parcel, in->n_operands);
    struct error err;
    const char *home;
    int status;

    if (in->n_operands == 0)
        return invocation_misuse(in,
                                 "which FILE? 'myelin export' writes them; - is standard input");
    if (runs_home(&arena, &home, &err)) {
        complain("%s", err.message);
        return STATUS_INVALID;
    }
    status = import_all(in, home, parcels, &arena);
    if (invocation_has(in, "json") && print_json(parcels, in->n_operands))
        status = STATUS_INVALID;
    for (size_t i = 0; i < in->n_operands; i++)
        imports_release(&parcels[i].imports);
    return status;
}

static const struct option options[] = {
    { .name = "json", .help = "print what came of it as a list of JSON objects" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "all runs of all files are here now, or were before" },
    { "1", "a file cannot be read, is damaged, or is no archive of runs" },
    { "2", "the command line is wrong" },
    { "130", "an interrupt ended it; what it was about left nothing" },
    { 0 },
};

const struct command command_import = {
    .name = "import",
    .arguments = "FILE...",
    .summary = "take runs from archives into this home",
    .description =
        "Takes the runs of each archive that `myelin export` wrote into this home. A run gets the "
        "next id and keeps its uuid, its times and all that is known of it; one whose uuid is here "
        "is left alone. What is damaged, cut, or would lead out of a run's directory is refused "
        "and leaves nothing.\n"
        "\n"
        "Models get versions of this home: the number that they had where it is higher than every "
        "one that was given here to that name, else the next. An alias comes with its model unless "
        "another version has it here.\n"
        "\n"
        "`-` is standard input.",
    .options = options,
    .operand_kind = ARGUMENT_FILE,
    .examples = "myelin import mnist.tar.zst     # all runs in it\n"
                "myelin import - <mnist.tar.zst  # the same from standard input\n",
    .statuses = statuses,
    .run = import_command,
};
