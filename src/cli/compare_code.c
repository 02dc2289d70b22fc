/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/compare_code.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/outputs_diff.h"
#include "cli/runs.h"
#include "code/facts.h"
#include "code/restore.h"
#include "store/request.h"

enum { DIFF_MOST = 64 << 20, DIGITS_SHOWN = 12 };

/* ---- fields ---- */

static void add_text(struct facts *facts, const char *field, const char *text) {
    if (text)
        *VEC_PUSH(&facts->list) = (struct fact){ .field = field, .kind = CELL_WORD, .text = text };
}

static void add_number(struct facts *facts, const char *field, double number) {
    *VEC_PUSH(&facts->list) =
        (struct fact){ .field = field, .kind = CELL_NUMBER, .number = number };
}

static void add_code(struct facts *facts, const struct code_facts *code) {
    add_text(facts, "code.repository", code->repository);
    add_text(facts, "code.commit", code->commit);
    add_text(facts, "code.branch", code->branch);
    add_text(facts, "code.remote", code->remote);
    if (code->is_read)
        add_text(facts, "code.changes",
                 !code->is_dirty ? "none"
                 : code->diff_sha256
                     ? arena_printf(&facts->arena, "sha256 %.*s", DIGITS_SHOWN, code->diff_sha256)
                     : "too many to be kept");
    if (code->untracked.all)
        add_number(facts, "code.untracked", (double)code->untracked.all);
    if (code->snapshot_root)
        add_number(facts, "code.snapshot_files", (double)code->snapshot_files);
}

static void add_environment(struct facts *facts, const struct run_record *run) {
    struct request request = { 0 };
    struct error none;

    add_text(facts, "environment.kernel", run->machine.kernel);
    add_text(facts, "environment.python", run->machine.python);
    if (run->machine.cpus > 0)
        add_number(facts, "environment.cpus", (double)run->machine.cpus);
    if (request_read(&run->rundir, &request, &none) == 0)
        for (size_t i = 0; i < request.environment.len; i++) {
            const struct request_pair *pair = &request.environment.items[i];

            if (pair->value)
                add_text(facts, arena_printf(&facts->arena, "environment.%s", pair->name),
                         arena_text(&facts->arena, pair->value, strlen(pair->value)));
        }
    request_release(&request);
}

void compare_code_facts(struct facts *facts, const struct run_record *run) {
    add_code(facts, &run->code);
    add_environment(facts, run);
}

/* ---- code ---- */

static bool is_same_code(const struct code_facts *a, const struct code_facts *b) {
    return text_is_same(a->commit, b->commit) && text_is_same(a->diff_sha256, b->diff_sha256);
}

/* Lines of others' files, which the guarded stream makes visible. */
static void print_lines(const char *text, size_t n) {
    fwrite(text, 1, n, stdout);
    if (n > 0 && text[n - 1] != '\n')
        putchar('\n');
}

static int diff_of(const struct run_record *here, const struct run_record *there,
                   enum code_diff_manner manner, struct buf *out, struct error *err) {
    const struct code_run a = { &here->rundir, &here->code }, b = { &there->rundir, &there->code };

    return code_diff(&a, &b, manner, out, err);
}

void compare_code_outline(const struct run_record *here, const struct run_record *there) {
    AUTO(buf) text = BUF_INIT(DIFF_MOST);
    AUTO(arena) arena = ARENA_INIT;
    struct error err;

    if (!here->code.repository || !there->code.repository ||
        is_same_code(&here->code, &there->code))
        return;
    if (diff_of(here, there, CODE_DIFF_STAT, &text, &err))
        printf("\nthe code cannot be compared: %s\n", runs_text(&arena, err.message, 0));
    else if (text.len > 0) {
        printf("\ncode of run %s and run %s (--code shows the changes):\n", here->rundir.id,
               there->rundir.id);
        print_lines(text.data, text.len);
    }
}

static int print_kept(const struct run_record *run, struct error *err) {
    AUTO(buf) text = BUF_INIT(CODE_DIFF_MOST);
    AUTO(arena) arena = ARENA_INIT;

    if (!run->code.diff_bytes) {
        printf("\nrun %s: no changes were kept\n", run->rundir.id);
        return 0;
    }
    if (file_read_linkless(arena_printf(&arena, "%s/%s", run->rundir.path, CODE_DIFF_FILE), &text,
                           err))
        return -1;
    printf("\nrun %s, since commit %.40s:\n", run->rundir.id,
           run->code.commit ? run->code.commit : "none");
    print_lines(text.data, text.len);
    return 0;
}

int compare_code_print(const struct run_record *here, const struct run_record *there,
                       struct error *err) {
    AUTO(buf) text = BUF_INIT(DIFF_MOST);
    AUTO(arena) arena = ARENA_INIT;
    const struct run_record *const runs[] = { here, there };

    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        if (!runs[i]->code.repository)
            return error_set(err, ERROR_NOT_FOUND, "run %s has no record of a repository",
                             runs[i]->rundir.id);
    if (diff_of(here, there, CODE_DIFF_FULL, &text, err) == 0) {
        if (text.len)
            print_lines(text.data, text.len);
        else
            puts("the code that git knows is the same");
        return 0;
    }
    fprintf(stderr, "myelin: note: %s; what was kept of the changes follows\n",
            runs_text(&arena, err->message, 0));
    return print_kept(here, err) || print_kept(there, err) ? -1 : 0;
}

/* ---- files ---- */

int compare_files_print(const struct run_record *here, const struct run_record *there,
                        struct error *err) {
    struct outputs ours = { 0 }, theirs = { 0 };
    const struct outputs_side a = { &here->rundir, &ours }, b = { &there->rundir, &theirs };
    int status = 0;

    puts("\noutputs:");
    if (outputs_add(&ours, &here->rundir, NULL, err) ||
        outputs_add(&theirs, &there->rundir, NULL, err)) {
        status = -1;
    } else {
        outputs_sort(&ours);
        outputs_sort(&theirs);
        status = outputs_diff_print(&a, &b, err);
    }
    outputs_release(&ours);
    outputs_release(&theirs);
    return status;
}
