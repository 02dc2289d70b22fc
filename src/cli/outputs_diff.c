/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/outputs_diff.h"

#include <stdio.h>
#include <string.h>

#include "cli/failure.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "store/artifact.h"

enum change { ONLY_HERE, ONLY_THERE, DIFFERENT, SAME, CHANGES };

static const char *const change_names[] = { [ONLY_HERE] = "only_here",
                                            [ONLY_THERE] = "only_there",
                                            [DIFFERENT] = "different",
                                            [SAME] = "same" };

/* One path of either side. */
struct pair {
    const struct output *here, *there; /* NULL: that side has none */
    enum change change;
    char sha256[SHA256_TEXT], other_sha256[SHA256_TEXT]; /* "" where it was not read */
};

typedef int (*take_pair)(void *context, const struct pair *pair, struct error *err);

static int compare(const struct outputs_side *here, const struct outputs_side *there,
                   struct pair *pair, struct error *err) {
    pair->change = DIFFERENT;
    if (!pair->here->target != !pair->there->target || pair->here->size != pair->there->size)
        return 0;
    if (content_hash_one(here->rundir, pair->here, pair->sha256, err) ||
        content_hash_one(there->rundir, pair->there, pair->other_sha256, err))
        return -1;
    if (strcmp(pair->sha256, pair->other_sha256) == 0)
        pair->change = SAME;
    return 0;
}

/* Both lists are in the order of their paths. */
static int walk(const struct outputs_side *here, const struct outputs_side *there, take_pair take,
                void *context, struct error *err) {
    size_t i = 0, j = 0;

    while (i < here->outputs->list.len || j < there->outputs->list.len) {
        const struct output *a = i < here->outputs->list.len ? &here->outputs->list.items[i] : NULL;
        const struct output *b =
            j < there->outputs->list.len ? &there->outputs->list.items[j] : NULL;
        const int order = !a ? 1 : !b ? -1 : strcmp(a->path, b->path);
        struct pair pair = { .here = order <= 0 ? a : NULL,
                             .there = order >= 0 ? b : NULL,
                             .change = order < 0 ? ONLY_HERE : ONLY_THERE };

        if ((order == 0 && compare(here, there, &pair, err)) || take(context, &pair, err))
            return -1;
        i += order <= 0;
        j += order >= 0;
    }
    return 0;
}

/* ---- text ---- */

struct printing {
    struct table table;
    size_t counts[CHANGES];
};

static int add_row(void *context, const struct pair *pair, struct error *err) {
    static const char *const words[] = {
        [ONLY_HERE] = "only here", [ONLY_THERE] = "only there", [DIFFERENT] = "different"
    };
    struct printing *printing = context;
    struct table *table = &printing->table;

    (void)err;
    printing->counts[pair->change]++;
    if (pair->change == SAME)
        return 0;
    table_cell(table, "%s", words[pair->change]);
    table_cell(table, "%s", pair->here ? runs_bytes(&table->arena, pair->here->size) : "");
    table_cell(table, "%s", pair->there ? runs_bytes(&table->arena, pair->there->size) : "");
    table_cell(table, "%s",
               runs_text(&table->arena, (pair->here ? pair->here : pair->there)->path, 0));
    return 0;
}

int outputs_diff_print(const struct outputs_side *here, const struct outputs_side *there,
                       struct error *err) {
    struct printing printing = { 0 };
    const size_t *counts = printing.counts;
    int status;

    table_init(&printing.table, 4);
    table_cell(&printing.table, "CHANGE");
    table_cell(&printing.table, "RUN %s", here->rundir->id);
    table_cell(&printing.table, "RUN %s", there->rundir->id);
    table_cell(&printing.table, "PATH");
    status = walk(here, there, add_row, &printing, err);
    if (status == 0 && counts[ONLY_HERE] + counts[ONLY_THERE] + counts[DIFFERENT] > 0)
        table_print(&printing.table, stdout, terminal_colour(stdout));
    if (status == 0)
        printf("%zu only in run %s, %zu only in run %s, %zu different, %zu the same\n",
               counts[ONLY_HERE], here->rundir->id, counts[ONLY_THERE], there->rundir->id,
               counts[DIFFERENT], counts[SAME]);
    table_release(&printing.table);
    return status;
}

/* ---- JSON ---- */

static void write_side(struct json *json, const char *size_key, const char *hash_key,
                       const struct output *output, const char *sha256) {
    json_key(json, size_key);
    if (output)
        json_int(json, (int64_t)output->size);
    else
        json_null(json);
    json_key(json, hash_key);
    json_text(json, sha256[0] ? sha256 : NULL);
}

static int write_pair(void *context, const struct pair *pair, struct error *err) {
    struct json *json = context;

    (void)err;
    json_object(json);
    json_key(json, "path");
    json_text(json, (pair->here ? pair->here : pair->there)->path);
    json_key(json, "change");
    json_text(json, change_names[pair->change]);
    write_side(json, "size", "sha256", pair->here, pair->sha256);
    write_side(json, "other_size", "other_sha256", pair->there, pair->other_sha256);
    json_end(json);
    return 0;
}

int outputs_diff_print_json(const struct outputs_side *here, const struct outputs_side *there,
                            struct error *err) {
    struct error unwritten;
    struct json json;
    int status;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_array(&json);
    status = walk(here, there, write_pair, &json, err);
    json_end(&json);
    if (json_finish(&json, &unwritten) && status == 0) {
        *err = unwritten;
        status = -1;
    }
    return status;
}
