/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/media_rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "cli/failure.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/terminal.h"

enum { NAMES_SHOWN = 8, LINE_MOST = 4096, EXCERPT_BYTES = 240, EXCERPT_SHOWN = 40 };

/* ---- one by one ---- */

static const char *task_of(const struct run_record *run, uint32_t rank, struct arena *arena) {
    if (rank >= run->n_tasks)
        return arena_printf(arena, "rank %" PRIu32, rank);
    return arena_printf(arena, "%s", task_name(&run->task_names[rank]).text);
}

void media_print(const struct run_record *run, const struct media_list *list) {
    static const char *const heads[] = { "MEDIA", "STEP", "TASK", "TYPE",
                                         "SIZE",  "TIME", "PATH", "TEXT" };
    struct table table;

    table_init(&table, ARRAY_LEN(heads));
    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        table_cell(&table, "%s", heads[i]);
    for (size_t i = 0; i < list->n; i++) {
        const struct media *media = &list->items[i];
        const char *text = "";

        if (media->kind == MEDIA_TEXT)
            text = runs_text(&table.arena,
                             media_excerpt(&run->rundir, media, EXCERPT_BYTES, &table.arena),
                             EXCERPT_SHOWN);
        table_cell(&table, "%s", runs_text(&table.arena, media->name, 0));
        table_cell(&table, "%" PRId64, media->step);
        table_cell(&table, "%s", task_of(run, media->rank, &table.arena));
        table_cell(&table, "%s", media_kind_name(media->kind));
        table_cell(&table, "%s", runs_bytes(&table.arena, media->size));
        table_cell(&table, "%s", runs_file_time(media->logged).text);
        table_cell(&table, "%s", runs_text(&table.arena, media->path, 0));
        table_cell(&table, "%s", text);
    }
    table_print(&table, stdout, terminal_colour(stdout));
    table_release(&table);
}

int media_print_json(const struct run_record *run, const struct media_list *list,
                     struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    struct json json;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_array(&json);
    for (size_t i = 0; i < list->n; i++) {
        const struct media *media = &list->items[i];

        json_object(&json);
        json_key(&json, "name");
        json_text(&json, media->name);
        json_key(&json, "type");
        json_text(&json, media_kind_name(media->kind));
        json_key(&json, "step");
        json_int(&json, media->step);
        json_key(&json, "task");
        json_text(&json, media->rank < run->n_tasks ? task_of(run, media->rank, &arena) : NULL);
        json_key(&json, "rank");
        json_int(&json, media->rank);
        json_key(&json, "attempt");
        json_int(&json, media->attempt);
        json_key(&json, "path");
        json_text(&json, media->path);
        json_key(&json, "size");
        json_int(&json, (int64_t)media->size);
        json_key(&json, "logged_at");
        json_text(&json, runs_file_time(media->logged).text);
        json_end(&json);
    }
    json_end(&json);
    return json_finish(&json, err);
}

/* ---- by name ---- */

/* The last of the neighbours with the name and kind of the first; and the highest step of them. */
static size_t end_of_name(const struct media_list *list, size_t first, int64_t *last_step) {
    size_t end = first;

    *last_step = list->items[first].step;
    for (; end < list->n && strcmp(list->items[end].name, list->items[first].name) == 0; end++)
        if (list->items[end].step > *last_step)
            *last_step = list->items[end].step;
    return end;
}

static size_t count_texts(const struct media_list *list, size_t first, size_t end) {
    size_t texts = 0;

    for (size_t i = first; i < end; i++)
        texts += list->items[i].kind == MEDIA_TEXT;
    return texts;
}

static const char *counted(struct arena *arena, size_t n, const char *what) {
    return n ? arena_printf(arena, "%zu %s%s", n, what, n == 1 ? "" : "s") : "";
}

const char *media_text(const struct rundir *rundir, struct arena *arena) {
    AUTO(buf) text = BUF_INIT(LINE_MOST);
    struct media_list list;
    struct error err;
    size_t shown = 0, names = 0;
    int64_t step;

    if (media_read(rundir, NULL, 0, arena, &list, &err))
        return "";
    for (size_t i = 0, end; i < list.n; i = end, names++) {
        size_t texts, images;

        end = end_of_name(&list, i, &step);
        texts = count_texts(&list, i, end);
        images = end - i - texts;
        if (shown < NAMES_SHOWN &&
            buf_printf(&text, &err, "%s%s (%s%s%s to step %" PRId64 ")", i ? ", " : "",
                       runs_text(arena, list.items[i].name, 80), counted(arena, images, "image"),
                       images && texts ? ", " : "", counted(arena, texts, "text"), step) == 0)
            shown++;
    }
    if (names > shown && buf_printf(&text, &err, " and %zu more", names - shown))
        return "…";
    return text.len ? arena_text(arena, text.data, text.len) : "";
}

void json_media_names(struct json *json, const struct rundir *rundir) {
    AUTO(arena) arena = ARENA_INIT;
    struct media_list list = { 0 };
    struct error ignored;
    int64_t step;

    if (media_read(rundir, NULL, 0, &arena, &list, &ignored))
        list.n = 0;
    json_key(json, "media");
    json_array(json);
    for (size_t i = 0, end; i < list.n; i = end) {
        size_t texts;

        end = end_of_name(&list, i, &step);
        texts = count_texts(&list, i, end);
        json_object(json);
        json_key(json, "name");
        json_text(json, list.items[i].name);
        json_key(json, "images");
        json_int(json, (int64_t)(end - i - texts));
        json_key(json, "texts");
        json_int(json, (int64_t)texts);
        json_key(json, "last_step");
        json_int(json, step);
        json_end(json);
    }
    json_end(json);
}
