/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/load.h"
#include "cli/runs.h"
#include "cli/venue.h"

/* Where the answers go. */
struct telling {
    struct answering answering;
    bool as_json;
    struct json json;
    size_t n;
};

static int fail(const struct error *err) {
    AUTO(arena) arena = ARENA_INIT;

    complain("%s", runs_text(&arena, err->message, 0));
    return STATUS_INVALID;
}

/* With the first answer: where there is none the error is printed instead. */
static void begin_json(struct telling *telling) {
    json_init(&telling->json, JSON_PRETTY, json_to_stdout, NULL);
    json_array(&telling->json);
}

static void tell(struct telling *telling, const struct answer *answer) {
    if (telling->as_json && telling->n == 0)
        begin_json(telling);
    telling->n++;
    if (telling->as_json)
        answer_write_json(&telling->json, &telling->answering, answer);
    else
        answer_print(&telling->answering, answer);
}

/* ---- runs ---- */

static int tell_of_run(struct telling *telling, const struct rundir *rundir) {
    struct answer answer;
    struct error err;

    if (answer_for_run(&telling->answering, rundir, &answer, &err))
        return fail(&err);
    tell(telling, &answer);
    return STATUS_OK;
}

static int tell_of_named(struct telling *telling, const struct invocation *in) {
    int status = STATUS_OK;

    for (size_t i = 0; i < in->n_operands; i++) {
        struct rundir rundir;
        struct error err;

        if (runs_find(in->operands[i], &telling->answering.arena, &rundir, &err))
            status = fail(&err);
        else if (tell_of_run(telling, &rundir))
            status = STATUS_INVALID;
    }
    return status;
}

static int tell_of_queue(struct telling *telling, const char *home) {
    const struct ledger_view *view = &telling->answering.view;
    int status = STATUS_OK;

    for (size_t i = 0; i < view->queue.len; i++) {
        struct rundir rundir;
        struct error err;

        /* One that is removed meanwhile does not wait any more. */
        if (rundir_open(home, view->queue.items[i].run, &telling->answering.arena, &rundir, &err))
            continue;
        if (tell_of_run(telling, &rundir))
            status = STATUS_INVALID;
    }
    if (telling->n == 0)
        fputs("no run waits; 'myelin why FILE' tells whether a file would have to\n", stderr);
    return status;
}

static int tell_of_runs(struct telling *telling, const struct invocation *in, const char *home) {
    struct error err;

    if (answering_look(&telling->answering, home, &err))
        return fail(&err);
    return in->n_operands > 0 ? tell_of_named(telling, in) : tell_of_queue(telling, home);
}

/* ---- a file ---- */

static int tell_of_plan(struct telling *telling, const struct invocation *in, struct plan *plan,
                        const char *home, const char *file) {
    struct reserving reserving;
    struct answer answer;
    struct error err;
    int status = STATUS_OK;

    reserving_init(&reserving, in, plan);
    if (answer_for_file(&telling->answering, &reserving, home, file, &answer, &err))
        status = fail(&err);
    else
        tell(telling, &answer);
    reserving_release(&reserving);
    return status;
}

static int tell_of_file(struct telling *telling, const struct invocation *in, const char *home) {
    const char *operand = in->n_operands > 0 ? in->operands[0] : NULL,
               *file = operand ? operand : invocation_value(in, "file");
    struct venue venue = { 0 };
    struct loaded loaded;
    struct error err = { 0 };
    int status = STATUS_INVALID;
    bool is_foreseen;

    load(in, operand, &loaded);
    is_foreseen = loaded.plan && venue_foresee(in, &loaded, home, &venue, &err) == 0;
    print_diags(&loaded);
    if (!is_foreseen && err.message[0])
        status = fail(&err);
    else if (is_foreseen && !venue.is_chosen)
        status = tell_of_plan(telling, in, loaded.plan, home, file);
    else if (is_foreseen) {
        tell(telling, &(struct answer){ .kind = ANSWER_AWAY, .file = file, .waits_s = -1 });
        status = STATUS_OK;
    }
    venue_release(&venue);
    loaded_release(&loaded);
    return status;
}

/* Also one that is not there: runs have no such names, and who mistypes a path is told so. */
static bool is_file(const char *text) {
    char found[PATH_MAX];
    struct stat st;

    if (load_is_name_of_file(text))
        return true;
    if (strchr(text, '/') || stat(text, &st) != 0)
        return strchr(text, '/');
    return !S_ISDIR(st.st_mode) || load_find_in(text, found);
}

/* Whether the command line speaks of a file: by its operand, or by options that only files have. */
static bool names_file(const struct invocation *in) {
    for (size_t i = 0; i < in->n_operands; i++)
        if (is_file(in->operands[i]))
            return true;
    return in->n_operands == 0 && (invocation_has(in, "file") || invocation_has(in, "param"));
}

static int why(const struct invocation *in) {
    struct telling telling = { .as_json = invocation_has(in, "json") };
    AUTO(arena) arena = ARENA_INIT;
    const char *home;
    struct error err;
    int status;

    if (in->n_operands > 1 && names_file(in))
        return invocation_misuse(in, "one FILE is explained at a time, and no RUN beside it");
    if (runs_home(&arena, &home, &err))
        return fail(&err);
    status = names_file(in) ? tell_of_file(&telling, in, home) : tell_of_runs(&telling, in, home);
    if (telling.as_json && telling.n == 0 && status == STATUS_OK)
        begin_json(&telling);
    if (telling.as_json && (telling.n > 0 || status == STATUS_OK)) {
        json_end(&telling.json);
        if (json_finish(&telling.json, &err))
            status = STATUS_INVALID;
    }
    answering_release(&telling.answering);
    return status;
}

static const struct option options[] = {
    LOAD_OPTIONS,
    RESERVE_OPTIONS,
    VENUE_FORESEEN_OPTIONS("of a file: where it would run: "),
    { .name = "json", .help = "print a list of JSON objects" },
    { 0 },
};

const struct command command_why = {
    .name = "why",
    .arguments = "[RUN... | FILE]",
    .summary = "say why runs wait, or whether a file would have to",
    .description =
        "Of a run that waits it says, for each resource, what is needed, what is free, who holds "
        "the rest since when; which task is the first that finds no room; its place in the queue, "
        "and whose end would let it start; and the smallest change to its file with which it would "
        "not have to wait: fewer workers or parameter servers, or a smaller request.\n"
        "\n"
        "Of a run that waits on a cluster it says how far its pods are, what the scheduler says of "
        "them, and which gang has the turn to be placed; for that it asks the cluster.\n"
        "\n"
        "Of a file it says the same as if it were started now. Every answer comes from the "
        "function that places the runs, the change included: it was tried.\n"
        "\n"
        "Without an operand it tells of every run that waits on this machine. What exists as a "
        "file, or as a directory with a polyaxonfile, is taken as one.\n"
        "\n" RUN_NAMES,
    .options = options,
    .operand_kind = ARGUMENT_FILE,
    .examples = "myelin why              # why does every run wait that does, on this machine?\n"
                "myelin why 12           # why does run 12 wait?\n"
                "myelin why train.yml    # would it start now?\n",
    .run = why,
};
