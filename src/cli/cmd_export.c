/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/export_archive.h"
#include "cli/failure.h"
#include "cli/runs.h"
#include "track/events_export.h"

enum { JSON_MOST = 64 << 20 };

/* What goes out, and what of it was told. */
struct going {
    struct plan plan;
    struct json json;
    uint64_t files, points;
};

static void name_task(void *context, uint32_t rank, char out[EVENTS_TASK_MOST]) {
    const struct going *going = context;

    if (rank < going->plan.n_tasks)
        snprintf(out, EVENTS_TASK_MOST, "%s", task_name(&going->plan.tasks[rank]).text);
    else
        snprintf(out, EVENTS_TASK_MOST, "rank-%u", rank);
}

static void on_written(void *context, const char *path, uint32_t rank, uint32_t attempt,
                       uint64_t series, uint64_t points) {
    struct going *going = context;
    char task[EVENTS_TASK_MOST];

    name_task(going, rank, task);
    going->files++;
    going->points += points;
    json_object(&going->json);
    json_key(&going->json, "path");
    json_text(&going->json, path);
    json_key(&going->json, "task");
    json_text(&going->json, task);
    json_key(&going->json, "rank");
    json_int(&going->json, rank);
    json_key(&going->json, "attempt");
    json_int(&going->json, attempt);
    json_key(&going->json, "series");
    json_int(&going->json, (int64_t)series);
    json_key(&going->json, "points");
    json_int(&going->json, (int64_t)points);
    json_end(&going->json);
}

/* The directory, made where it is missing; one that holds something is left alone. */
static int take_directory(const char *path, bool is_forced, struct error *err) {
    const struct dirent *entry;
    bool has_any = false;
    DIR *directory;

    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make %s", path);
    directory = opendir(path);
    if (!directory)
        return error_set_errno(err, errno, "cannot write to %s", path);
    while (!has_any && (entry = readdir(directory)))
        has_any = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    if (has_any && !is_forced)
        return error_set(err, ERROR_CONFLICT,
                         "%s is not empty; name another directory, or add to it with --force",
                         path);
    return 0;
}

static int export_events(const struct invocation *in, const struct rundir *rundir,
                         struct going *going, struct error *err) {
    const char *directory = invocation_value(in, "tensorboard");
    struct series_reader *reader;
    struct events_export wish = {
        .directory = directory, .task = name_task, .wrote = on_written, .context = going
    };
    char name[128];
    int status;

    if (series_reader_open(rundir->series, &reader, err))
        return err->code == ERROR_NOT_FOUND
                   ? error_set(err, ERROR_NOT_FOUND, "run %s has logged no metrics", rundir->id)
                   : -1;
    /* The time is part of the name by custom. That of the run gives the same name each time. */
    snprintf(name, sizeof name, "events.out.tfevents.%010lld.myelin.run-%s",
             series_reader_count(reader) > 0
                 ? (long long)(series_reader_info(reader, 0).all.first_time_us / 1000000)
                 : 0,
             rundir->id);
    wish.name = name;
    status = take_directory(directory, invocation_has(in, "force"), err) ||
             events_export(reader, &wish, err);
    series_reader_free(reader);
    return status ? -1 : 0;
}

static int export_run(const struct invocation *in, const struct rundir *rundir,
                      const struct run_record *run, struct error *err) {
    struct going going = { .plan = record_plan(run) };
    AUTO(buf) text = BUF_INIT(JSON_MOST);
    struct error ignored;
    int status;

    json_init(&going.json, JSON_PRETTY, json_to_buf, &text);
    json_array(&going.json);
    status = export_events(in, rundir, &going, err);
    json_end(&going.json);
    if (json_finish(&going.json, status ? &ignored : err) || status)
        return -1;
    if (invocation_has(in, "json"))
        fwrite(text.data, 1, text.len, stdout);
    else
        fprintf(stderr, "wrote %llu points of run %s to %llu event file%s in %s\n",
                (unsigned long long)going.points, rundir->id, (unsigned long long)going.files,
                going.files == 1 ? "" : "s", invocation_value(in, "tensorboard"));
    return 0;
}

static int export_tensorboard(const struct invocation *in) {
    AUTO(arena) arena = ARENA_INIT;
    struct rundir rundir;
    struct run_record run;
    struct error err;
    int status;

    if (in->n_operands > 1)
        return invocation_misuse(in, "--tensorboard takes one RUN");
    if (invocation_has(in, "output"))
        return invocation_misuse(in, "-o does not go with --tensorboard DIR");
    status = runs_find(in->operands[0], &arena, &rundir, &err);
    if (status == 0)
        status = runs_read(&rundir, &run, &err);
    if (status == 0) {
        status = export_run(in, &rundir, &run, &err);
        record_release(&run);
    }
    if (status) {
        complain("%s", runs_text(&arena, err.message, 0));
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static int export_command(const struct invocation *in) {
    if (in->n_operands == 0)
        return runs_misuse_without_run(in);
    return invocation_has(in, "tensorboard") ? export_tensorboard(in) : export_archive(in);
}

static const struct option options[] = {
    { .name = "output",
      .letter = 'o',
      .argument = "FILE",
      .kind = ARGUMENT_FILE,
      .help = "write the archive to FILE, - for standard output; run-ID.tar.zst here unless said, "
              "runs.tar.zst for several runs" },
    { .name = "tensorboard",
      .argument = "DIR",
      .kind = ARGUMENT_DIRECTORY,
      .help = "write instead the metrics as event files of TensorBoard to DIR, which is made when "
              "it is missing" },
    { .name = "force",
      .help =
          "replace FILE; write to DIR also where it is not empty, and replace what was exported "
          "before" },
    { .name = "json",
      .help = "print a JSON object; with --tensorboard a list of them, one for each file" },
    { 0 },
};

const struct command command_export = {
    .name = "export",
    .arguments = "RUN...",
    .summary = "write runs to one archive, or the metrics of a run for TensorBoard",
    .description =
        "Writes runs that are over, each whole, to one archive (tar, compressed with zstd): "
        "journal, polyaxonfile, logs, metrics, outputs, and which models of it had which versions "
        "and aliases. `myelin import` reads it, here or on another machine, and `tar --zstd -xf` "
        "too. The file appears when it is whole. A run that resumed another goes with its outputs, "
        "so each stands by itself.\n"
        "\n"
        "With `--tensorboard` all series of one run are written as event files, which TensorBoard "
        "shows: `tensorboard --logdir DIR`. There is one file for each task; where several have "
        "logged, each has a directory of "
        "its own in DIR, and so has each attempt after the first (`attempt-1`). Values are floats "
        "of 32 bits there. A run that goes on is written as far as it is.\n"
        "\n" RUN_NAMES,
    .options = options,
    .examples =
        "myelin export 12 13 -o mnist.tar.zst               # two runs, for another machine\n"
        "myelin export 12 -o - | ssh big myelin import -    # straight to it\n"
        "myelin export @ --tensorboard ./board            # then: tensorboard --logdir ./board\n",
    .writes_data = true,
    .run = export_command,
};
