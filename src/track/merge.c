/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "track/store.h"

enum {
    WRITE_AT = 1 << 20,
    KEEP_WHOLE = CHUNK_MOST / 2, /* points: a chunk that is copied as it is, unless… */
    KEEP_APART = CHUNK_MOST / 4, /* …fewer than these wait before it */
};

struct merging {
    struct series_store *store;
    struct catalog catalog; /* of the file that is replaced */
    int fd;
    uint64_t at; /* where `out` will stand */
    struct bytes out, frame, head, body, index;
    VEC(struct data_node) nodes; /* the chunks of the series at hand, and the levels above */
    uint32_t series;
    size_t n_waiting;
    struct point waiting[2 * CHUNK_MOST];
    struct error *err;
};

static int write_out(struct merging *m, size_t unless_less) {
    if (m->out.len == 0 || m->out.len < unless_less)
        return 0;
    if (disk_write_all(m->store->disk, m->fd, m->out.data, m->out.len, m->at))
        return error_set_errno(m->err, errno, "cannot merge the data of %s", m->store->path);
    m->at += m->out.len;
    m->out.len = 0;
    return 0;
}

static int put_frame(struct merging *m, const unsigned char *frame, size_t size,
                     const struct summary *summary) {
    *VEC_PUSH(&m->nodes) = (struct data_node){
        .summary = *summary,
        .at = m->at + m->out.len,
        .size = (uint32_t)size,
    };
    bytes_put(&m->out, frame, size);
    return write_out(m, WRITE_AT);
}

/* Makes a chunk of the first n points that wait. */
static int put_waiting(struct merging *m, size_t n) {
    const struct summary summary = summary_of(m->waiting, n);

    if (n == 0)
        return 0;
    m->head.len = m->body.len = m->frame.len = 0;
    chunk_encode(m->series, m->waiting, n, &m->head, &m->body);
    data_frame_put(DATA_CHUNK, &m->head, &m->body, &m->frame);
    m->n_waiting -= n;
    memmove(m->waiting, m->waiting + n, m->n_waiting * sizeof *m->waiting);
    return put_frame(m, m->frame.data, m->frame.len, &summary);
}

static int refuse_damaged(struct merging *m) {
    return error_set(m->err, ERROR_IO, "the data of %s is damaged; it is left as it is",
                     m->store->path);
}

static int merge_chunk(void *context, const struct data_node *leaf) {
    struct merging *m = context;
    struct chunk_head head;
    const unsigned char *body;

    if (!catalog_chunk(&m->catalog, leaf, &m->frame, &head, &body) || head.series != m->series)
        return refuse_damaged(m);
    if (head.n >= KEEP_WHOLE && (m->n_waiting == 0 || m->n_waiting >= KEEP_APART)) {
        struct bytes frame = m->frame;
        int status;

        m->frame = (struct bytes){ 0 };
        status = put_waiting(m, m->n_waiting) || put_frame(m, frame.data, frame.len, &head.all);
        bytes_release(&frame);
        return status ? -1 : 0;
    }
    for (uint32_t i = 0; i < head.n_blocks; i++) {
        if (!chunk_block_decode(cursor_over(body + head.blocks[i].at, head.blocks[i].size),
                                &head.blocks[i].summary, m->waiting + m->n_waiting))
            return refuse_damaged(m);
        m->n_waiting += head.blocks[i].summary.count;
    }
    return m->n_waiting >= CHUNK_MOST ? put_waiting(m, CHUNK_MOST) : 0;
}

/* Lays out the levels in one frame, the chunks' nodes first, and leaves the root in `root`. */
static int put_tree(struct merging *m, struct data_node *root, uint32_t *depth) {
    const struct bytes no_head = { 0 };
    const uint64_t body_at = m->at + m->out.len + DATA_FRAME;
    size_t from = 0, to = m->nodes.len;

    *depth = 0;
    m->body.len = 0;
    while (to - from > 1) {
        for (size_t i = from; i < to; i += DATA_FAN) {
            const size_t n = to - i < DATA_FAN ? to - i : DATA_FAN;
            struct data_node above = { .at = body_at + i * DATA_NODE, .size = (uint32_t)n };

            for (size_t k = i; k < i + n; k++)
                summary_append(&above.summary, &m->nodes.items[k].summary);
            *VEC_PUSH(&m->nodes) = above;
        }
        from = to;
        to = m->nodes.len;
        (*depth)++;
    }
    *root = m->nodes.items[from];
    if (*depth == 0)
        return 0;
    for (size_t i = 0; i < from; i++)
        data_node_put(&m->nodes.items[i], &m->body);
    data_frame_put(DATA_NODES, &no_head, &m->body, &m->out);
    return write_out(m, WRITE_AT);
}

static int merge_series(struct merging *m, uint32_t id) {
    const struct catalog_series *series = &m->catalog.series.items[id];
    struct data_node root;
    uint32_t depth;

    m->series = id;
    m->nodes.len = m->n_waiting = 0;
    if (catalog_each_chunk(&m->catalog, series, merge_chunk, m))
        return -1;
    if (put_waiting(m, m->n_waiting))
        return -1;
    data_definition_put(series->name, series->name_length, series->rank, series->attempt,
                        &m->index);
    bytes_varint(&m->index, series->all.count);
    if (series->all.count == 0)
        return 0;
    if (m->nodes.len == 0)
        return refuse_damaged(m);
    if (put_tree(m, &root, &depth))
        return -1;
    if (root.summary.count != series->all.count || depth > DATA_DEPTH_MOST)
        return refuse_damaged(m);
    bytes_varint(&m->index, depth);
    bytes_varint(&m->index, root.at);
    bytes_varint(&m->index, root.size);
    summary_put(&root.summary, (struct summary_origin){ 0 }, &m->index);
    return 0;
}

static int merge_all(struct merging *m, struct wal_manifest *manifest) {
    const struct bytes no_body = { 0 };
    const uint32_t n = (uint32_t)m->catalog.series.len;

    bytes_varint(&m->index, n);
    for (uint32_t i = 0; i < n; i++)
        if (merge_series(m, i))
            return -1;
    if (m->catalog.damaged)
        return refuse_damaged(m);
    manifest->index_at = m->at + m->out.len;
    data_frame_put(DATA_INDEX, &m->index, &no_body, &m->out);
    if (write_out(m, 0))
        return -1;
    manifest->data_length = m->at;
    if (m->store->disk->sync(m->fd))
        return error_set_errno(m->err, errno, "cannot merge the data of %s", m->store->path);
    return 0;
}

/* The merged file is the store's from now on. */
static void adopt(struct merging *m, uint64_t old_generation) {
    struct series_store *store = m->store;
    char name[32];

    store->disk->close(store->data);
    store_data_name(old_generation, name);
    store->disk->unlink(store->directory, name);
    store->data = m->fd;
    store->data_end = store->loose_at = m->at;
    store->n_named = (uint32_t)m->catalog.series.len;
    store->n_loose = 0;
}

static void merging_release(struct merging *m) {
    catalog_release(&m->catalog);
    bytes_release(&m->out);
    bytes_release(&m->frame);
    bytes_release(&m->head);
    bytes_release(&m->body);
    bytes_release(&m->index);
    VEC_RELEASE(&m->nodes);
    free(m);
}

int store_merge(struct series_store *store, struct error *err) {
    struct merging *m = calloc(1, sizeof *m);
    const struct wal_manifest before = store->manifest;
    struct wal_manifest manifest = { .generation = before.generation + 1 };
    char name[32];
    int status;

    if (!m)
        abort();
    *m = (struct merging){ .store = store, .catalog = CATALOG_INIT, .err = err };
    store_data_name(manifest.generation, name);
    m->fd = store->disk->open(store->directory, name, O_CREAT | O_TRUNC);
    if (m->fd < 0) {
        merging_release(m);
        return error_set_errno(err, errno, "cannot make %s/%s", store->path, name);
    }
    status = catalog_load(&m->catalog, store->data, &before, err);
    if (status == 0)
        status = merge_all(m, &manifest);
    if (status == 0) {
        store->is_file_new = true;
        status = store_publish(store, &manifest, err);
    }
    if (status == 0) {
        adopt(m, before.generation);
    } else {
        store->disk->close(m->fd);
        if (!store->is_broken) /* else the log on the disk may name it */
            store->disk->unlink(store->directory, name);
    }
    merging_release(m);
    return status;
}
