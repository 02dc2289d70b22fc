/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/watch_decode.h"

#include <string.h>

#include "codec/json_read.h"

static const char *const kinds[] = {
    [WATCH_LINE_ADDED] = "ADDED",     [WATCH_LINE_MODIFIED] = "MODIFIED",
    [WATCH_LINE_DELETED] = "DELETED", [WATCH_LINE_BOOKMARK] = "BOOKMARK",
    [WATCH_LINE_ERROR] = "ERROR",
};
_Static_assert(ARRAY_LEN(kinds) == WATCH_LINE_KIND_COUNT, "every kind has its word");

void watch_identify(const struct node *object, struct watch_line *out) {
    const struct node *metadata = node_get(object, "metadata");

    out->object = object;
    out->namespace = node_get_text(metadata, "namespace", "");
    out->name = node_get_text(metadata, "name", "");
    out->uid = node_get_text(metadata, "uid", "");
    out->version = node_get_text(metadata, "resourceVersion", "");
}

/* True: there is an event to tell. An unknown kind is none, and no mistake. */
static int read_line(const char *text, size_t n, struct arena *arena, struct node *root,
                     struct watch_line *line, bool *is_known, struct error *err) {
    const struct node *object;
    const char *kind;
    size_t k = 0;

    if (json_read(text, n, arena, root, err))
        return error_wrap(err, "an event of the watch");
    kind = node_get_text(root, "type", "");
    object = node_get(root, "object");
    while (k < ARRAY_LEN(kinds) && strcmp(kinds[k], kind) != 0)
        k++;
    if (!kind[0] || !object || object->kind != NODE_MAP)
        return error_set(err, ERROR_INVALID, "an event of the watch has no type or no object");
    *is_known = k < ARRAY_LEN(kinds);
    if (!*is_known)
        return 0;
    line->kind = (enum watch_line_kind)k;
    watch_identify(object, line);
    if (line->kind != WATCH_LINE_ERROR && !line->version[0])
        return error_set(err, ERROR_INVALID, "an event of the watch has no resourceVersion");
    if (line->kind < WATCH_LINE_BOOKMARK && (!line->name[0] || !line->uid[0]))
        return error_set(err, ERROR_INVALID, "an event of the watch has no name or no uid");
    return 0;
}

/* One whole line. Sets *goes_on to what the sink says. */
static int tell_line(const char *text, size_t n, watch_line_sink *sink, void *context,
                     bool *goes_on, struct error *err) {
    struct arena arena = ARENA_INIT;
    struct watch_line line;
    struct node root;
    bool is_known = false;
    int status = 0;

    while (n > 0 && (text[n - 1] == '\r' || text[n - 1] == ' '))
        n--;
    if (n > 0)
        status = read_line(text, n, &arena, &root, &line, &is_known, err);
    if (status == 0 && is_known)
        *goes_on = sink(context, &line);
    arena_release(&arena);
    return status;
}

int watch_decode(struct watch_decoder *decoder, const char *bytes, size_t n, watch_line_sink *sink,
                 void *context, struct error *err) {
    bool goes_on = true;

    while (n > 0) {
        const char *end = memchr(bytes, '\n', n);
        const size_t len = end ? (size_t)(end - bytes) : n;
        struct buf whole;
        int status;

        if (buf_append(&decoder->rest, bytes, len, err))
            return error_wrap(err, "an event of the watch");
        if (!end)
            return 0;
        bytes += len + 1;
        n -= len + 1;
        /* Taken out before it is told: the sink may release the decoder. */
        whole = decoder->rest;
        decoder->rest = (struct buf)BUF_INIT(WATCH_LINE_MAX);
        status = tell_line(whole.data, whole.len, sink, context, &goes_on, err);
        if (status == 0 && goes_on) {
            buf_clear(&whole); /* its memory serves the next line */
            decoder->rest = whole;
        } else
            buf_release(&whole);
        if (status || !goes_on)
            return status;
    }
    return 0;
}

void watch_decoder_release(struct watch_decoder *decoder) {
    buf_release(&decoder->rest);
}
