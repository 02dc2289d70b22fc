/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/terminal.h"
#include "codec/json_read.h"

enum { DIAGS_TEXT_MAX = 4 << 20, MESSAGE_MOST = 1000 };

/* One command runs in a process, and it fails once. */
static struct {
    char message[MESSAGE_MOST];
    struct buf diags; /* as a JSON list; empty: none */
    bool has_printed; /* the command's own JSON */
} failure = { .diags = BUF_INIT(DIAGS_TEXT_MAX) };

static void remember(const char *message) {
    if (!failure.message[0])
        snprintf(failure.message, sizeof failure.message, "%s", message);
}

void complain(const char *fmt, ...) {
    char message[MESSAGE_MOST];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    fprintf(stderr, "myelin: %s\n", message);
    remember(message);
}

static void remember_diags(const struct diags *diags, const struct sources *sources) {
    struct error ignored;
    struct json json;

    if (diags->errors == 0 || failure.diags.len > 0)
        return;
    for (size_t i = 0; i < diags->len; i++)
        if (diags->list[i].severity == SEVERITY_ERROR)
            remember(diags->list[i].message);
    json_init(&json, JSON_COMPACT, json_to_buf, &failure.diags);
    diags_write_json(diags, sources, &json);
    if (json_finish(&json, &ignored))
        buf_release(&failure.diags);
}

void complain_diags(const struct diags *diags, const struct sources *sources) {
    AUTO(buf) text = BUF_INIT(DIAGS_TEXT_MAX);
    struct error err;

    if (diags_format(diags, sources, terminal_colour(stderr) ? DIAG_COLOURED : DIAG_PLAIN, &text,
                     &err))
        fprintf(stderr, "myelin: too much is wrong to show it all\n");
    fwrite(text.data, 1, text.len, stderr);
    remember_diags(diags, sources);
}

int json_to_stdout(void *unused, const char *bytes, size_t n, struct error *err) {
    (void)unused;
    failure.has_printed = true;
    return json_to_file(stdout, bytes, n, err);
}

static void write_diags(struct json *json, struct arena *arena) {
    struct error ignored;
    struct node list;

    if (failure.diags.len > 0 &&
        json_read(failure.diags.data, failure.diags.len, arena, &list, &ignored) == 0) {
        json_node(json, &list);
        return;
    }
    json_array(json);
    json_end(json);
}

void failure_print_json(int exit_status) {
    AUTO(arena) arena = ARENA_INIT;
    struct error ignored;
    struct json json;

    if (!failure.has_printed) {
        json_init(&json, JSON_COMPACT, json_to_stdout, NULL);
        json_object(&json);
        json_key(&json, "error");
        json_object(&json);
        json_key(&json, "message");
        json_text(&json, failure.message[0] ? failure.message : "the command failed");
        json_key(&json, "exit_status");
        json_int(&json, exit_status);
        json_key(&json, "diagnostics");
        write_diags(&json, &arena);
        json_end(&json);
        json_end(&json);
        if (json_finish(&json, &ignored) == 0)
            fputc('\n', stdout);
    }
    buf_release(&failure.diags);
}
