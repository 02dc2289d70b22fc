/* SPDX-License-Identifier: Apache-2.0 */
#include "track/catalog.h"

#include <errno.h>

#include "track/disk.h"
#include "track/series.h"

enum {
    WINDOW = 64 * 1024,        /* bytes read at once while heads are looked for */
    POINTS_A_BYTE_MOST = 4096, /* no file holds more: who says so is damaged, and bounds no work */
    INDEX_MOST = 1 << 28,
};

/* A piece of the file in memory. */
struct window {
    struct bytes bytes;
    uint64_t at;
};

void catalog_release(struct catalog *catalog) {
    VEC_RELEASE(&catalog->loose);
    VEC_RELEASE(&catalog->series);
    arena_release(&catalog->arena);
    *catalog = (struct catalog)CATALOG_INIT;
}

void catalog_define(struct catalog *catalog, const char *name, size_t n, uint32_t rank,
                    uint32_t attempt) {
    struct catalog_series *series;

    if (catalog->series.len >= SERIES_MOST)
        return;
    n = n < SERIES_NAME_MOST ? n : SERIES_NAME_MOST;
    series = VEC_PUSH(&catalog->series);
    series->name = arena_text(&catalog->arena, name, n);
    series->name_length = (uint32_t)n;
    series->rank = rank;
    series->attempt = attempt;
}

/* The n bytes at this place of the file, or NULL beyond its end. */
static const unsigned char *look(struct catalog *catalog, struct window *window, uint64_t at,
                                 size_t n) {
    const uint64_t end = window->at + window->bytes.len;

    if (at > catalog->length || n > catalog->length - at)
        return NULL;
    if (at < window->at || at > end || n > end - at) {
        const uint64_t left = catalog->length - at;
        const size_t want = n > WINDOW ? n : left < WINDOW ? (size_t)left : WINDOW;
        ssize_t got;

        window->bytes.len = 0;
        window->at = at;
        got = disk_read(catalog->fd, bytes_reserve(&window->bytes, want), want, at);
        window->bytes.len = got > 0 ? (size_t)got : 0;
        if (window->bytes.len < n)
            return NULL;
    }
    return window->bytes.data + (at - window->at);
}

static void load_names(struct catalog *catalog, struct cursor in) {
    const uint64_t count = cursor_varint(&in);

    for (uint64_t i = 0; i < count && !in.is_bad; i++) {
        uint32_t rank = 0, attempt = 0;
        size_t n;
        const char *name = data_definition_take(&in, &n, &rank, &attempt);

        if (name)
            catalog_define(catalog, name, n, rank, attempt);
    }
    catalog->damaged += in.is_bad;
}

static void load_chunk(struct catalog *catalog, struct cursor in, uint64_t at, uint64_t size) {
    struct chunk_head head;
    struct catalog_series *series;
    uint32_t number;

    if (!chunk_head_decode(in, &head) || head.series >= catalog->series.len ||
        catalog->loose.len >= UINT32_MAX) {
        catalog->damaged++;
        return;
    }
    series = &catalog->series.items[head.series];
    *VEC_PUSH(&catalog->loose) = (struct catalog_loose){
        .node = { .summary = head.all, .at = at, .size = (uint32_t)size },
    };
    number = (uint32_t)catalog->loose.len;
    if (series->last_loose)
        catalog->loose.items[series->last_loose - 1].next = number;
    else
        series->first_loose = number;
    series->last_loose = number;
    summary_append(&series->all, &head.all);
    catalog->loose_bytes += size;
}

static bool load_indexed(struct catalog *catalog, struct cursor *in) {
    uint32_t rank = 0, attempt = 0;
    size_t n = 0;
    const char *name = data_definition_take(in, &n, &rank, &attempt);
    const uint64_t count = cursor_varint(in);
    struct catalog_series *series;
    uint64_t depth, size;

    if (!name || catalog->series.len >= SERIES_MOST)
        return false;
    catalog_define(catalog, name, n, rank, attempt);
    if (count == 0)
        return !in->is_bad;
    series = &catalog->series.items[catalog->series.len - 1];
    depth = cursor_varint(in);
    series->root.at = cursor_varint(in);
    size = cursor_varint(in);
    if (depth > DATA_DEPTH_MOST || size > UINT32_MAX ||
        count / POINTS_A_BYTE_MOST > catalog->length ||
        !summary_take(in, count, (struct summary_origin){ 0 }, &series->root.summary)) {
        series->root.summary.count = 0;
        return false;
    }
    series->depth = (uint32_t)depth;
    series->root.size = (uint32_t)size;
    series->all = series->root.summary;
    return true;
}

static void load_index(struct catalog *catalog, struct cursor in) {
    const uint64_t count = cursor_varint(&in);

    for (uint64_t i = 0; i < count; i++)
        if (in.is_bad || !load_indexed(catalog, &in)) {
            catalog->damaged++;
            return;
        }
}

/* Takes in the frame at this place; returns its size, or 0 when there is none that can be read. */
static uint64_t load_frame(struct catalog *catalog, struct window *window, uint64_t at) {
    const unsigned char *bytes = look(catalog, window, at, DATA_FRAME);
    struct data_frame frame;
    struct cursor head;

    if (!bytes || !data_frame_take(bytes, &frame) || frame.head_length > INDEX_MOST ||
        data_frame_size(&frame) > catalog->length - at)
        return 0;
    bytes = look(catalog, window, at, DATA_FRAME + (size_t)frame.head_length);
    if (!bytes || !data_head_is_sound(bytes, &frame))
        return 0;
    head = cursor_over(bytes + DATA_FRAME, frame.head_length);
    switch (frame.kind) {
    case DATA_CHUNK: load_chunk(catalog, head, at, data_frame_size(&frame)); break;
    case DATA_NAMES: load_names(catalog, head); break;
    case DATA_INDEX: load_index(catalog, head); break;
    case DATA_NODES: break;
    }
    return data_frame_size(&frame);
}

int catalog_load(struct catalog *catalog, int fd, const struct wal_manifest *manifest,
                 struct error *err) {
    struct window window = { 0 };
    unsigned char probe;
    uint64_t at = manifest->index_at, size = 1;

    catalog->fd = fd;
    catalog->length = manifest->data_length;
    if (catalog->length == 0)
        return 0;
    if (disk_read(fd, &probe, 1, catalog->length - 1) != 1)
        return error_set(err, ERROR_IO, "its data is shorter than it should be");
    for (; at < catalog->length && size > 0; at += size)
        size = load_frame(catalog, &window, at);
    catalog->damaged += size == 0;
    bytes_release(&window.bytes);
    return 0;
}

size_t catalog_children(struct catalog *catalog, const struct data_node *node,
                        struct data_node out[DATA_FAN]) {
    unsigned char bytes[DATA_FAN * DATA_NODE];
    const size_t n = node->size;
    uint64_t count = 0;

    if (n == 0 || n > DATA_FAN || node->at > catalog->length ||
        n * DATA_NODE > catalog->length - node->at ||
        disk_read(catalog->fd, bytes, n * DATA_NODE, node->at) != (ssize_t)(n * DATA_NODE)) {
        catalog->damaged++;
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (!data_node_take(bytes + i * DATA_NODE, &out[i]) ||
            out[i].summary.count > node->summary.count - count) {
            catalog->damaged++;
            return 0;
        }
        count += out[i].summary.count;
    }
    return n;
}

static bool frame_is_chunk(const struct data_node *leaf, const unsigned char *bytes, size_t n,
                           struct data_frame *frame, struct chunk_head *head) {
    return n >= DATA_FRAME && data_frame_take(bytes, frame) && frame->kind == DATA_CHUNK &&
           data_frame_size(frame) == leaf->size && n >= DATA_FRAME + (size_t)frame->head_length &&
           data_head_is_sound(bytes, frame) &&
           chunk_head_decode(cursor_over(bytes + DATA_FRAME, frame->head_length), head) &&
           head->n == leaf->summary.count;
}

bool catalog_chunk(struct catalog *catalog, const struct data_node *leaf, struct bytes *out,
                   struct chunk_head *head, const unsigned char **body) {
    struct data_frame frame;

    out->len = 0;
    if (leaf->at <= catalog->length && leaf->size <= catalog->length - leaf->at &&
        leaf->size <= DATA_FRAME + CHUNK_HEAD_MOST + CHUNK_BODY_MOST) {
        const ssize_t got =
            disk_read(catalog->fd, bytes_reserve(out, leaf->size), leaf->size, leaf->at);

        out->len = got > 0 ? (size_t)got : 0;
    }
    if (out->len == leaf->size && frame_is_chunk(leaf, out->data, out->len, &frame, head)) {
        *body = out->data + DATA_FRAME + frame.head_length;
        return true;
    }
    catalog->damaged++;
    return false;
}

bool catalog_head(struct catalog *catalog, const struct data_node *leaf, struct chunk_head *head,
                  uint64_t *body_at) {
    unsigned char bytes[DATA_FRAME + CHUNK_HEAD_MOST];
    const size_t want = leaf->size < sizeof bytes ? leaf->size : sizeof bytes;
    struct data_frame frame;
    ssize_t got = -1;

    if (leaf->at <= catalog->length && want <= catalog->length - leaf->at)
        got = disk_read(catalog->fd, bytes, want, leaf->at);
    if (got > 0 && frame_is_chunk(leaf, bytes, (size_t)got, &frame, head)) {
        *body_at = leaf->at + DATA_FRAME + frame.head_length;
        return true;
    }
    catalog->damaged++;
    return false;
}

bool catalog_block(struct catalog *catalog, const struct chunk_head *head, uint64_t body_at,
                   uint32_t block, struct point out[CHUNK_BLOCK]) {
    unsigned char bytes[CHUNK_BLOCK * 40];
    const size_t size = head->blocks[block].size;
    const uint64_t at = body_at + head->blocks[block].at;

    if (size <= sizeof bytes && at <= catalog->length && size <= catalog->length - at &&
        disk_read(catalog->fd, bytes, size, at) == (ssize_t)size &&
        chunk_block_decode(cursor_over(bytes, size), &head->blocks[block].summary, out))
        return true;
    catalog->damaged++;
    return false;
}

static int walk(struct catalog *catalog, const struct data_node *node, uint32_t depth,
                int (*visit)(void *context, const struct data_node *leaf), void *context) {
    struct data_node below[DATA_FAN];
    size_t n;
    int status = 0;

    if (depth == 0)
        return visit(context, node);
    n = catalog_children(catalog, node, below);
    for (size_t i = 0; i < n && status == 0; i++)
        status = walk(catalog, &below[i], depth - 1, visit, context);
    return status;
}

int catalog_each_chunk(struct catalog *catalog, const struct catalog_series *series,
                       int (*visit)(void *context, const struct data_node *leaf), void *context) {
    int status = 0;

    if (series->root.summary.count > 0)
        status = walk(catalog, &series->root, series->depth, visit, context);
    for (uint32_t i = series->first_loose; i && status == 0; i = catalog->loose.items[i - 1].next)
        status = visit(context, &catalog->loose.items[i - 1].node);
    return status;
}
