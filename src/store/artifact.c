/* SPDX-License-Identifier: Apache-2.0 */
#include "store/artifact.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "codec/json_read.h"

enum { PIECE = 256 * 1024 };

/* ---- from the journal ---- */

/* NULL for what is no object. */
static const struct node *parsed(const char *json, struct arena *arena) {
    struct node *node = ARENA_NEW(arena, struct node);
    struct error err;

    return json_read(json, strlen(json), arena, node, &err) == 0 && node->kind == NODE_MAP ? node
                                                                                           : NULL;
}

static void read_told(struct artifact *artifact, const struct node *told) {
    const struct node *metadata = node_get(told, "metadata");

    artifact->path = node_get_text(told, "path", "");
    artifact->type = node_get_text(told, "type", NULL);
    artifact->metadata = metadata && metadata->kind == NODE_MAP ? metadata : NULL;
    artifact->step = node_get_int(told, "step", 0, node_get_int(artifact->metadata, "step", 0, -1));
    artifact->size = node_get_count(told, "size");
    artifact->files = node_get_count(told, "files");
}

static void read_found(struct artifact *artifact, const struct node *found) {
    artifact->problem = node_get_text(found, "problem", NULL);
    artifact->logged_at = node_get_text(found, "time", NULL);
    if (artifact->problem)
        return;
    artifact->sha256 = node_get_text(found, "sha256", NULL);
    artifact->size = node_get_count(found, "size");
    artifact->files = node_get_count(found, "files");
    artifact->version = node_get_int(found, "version", 0, 0);
}

struct artifacts artifacts_read(const struct run_record *record, struct arena *arena) {
    const struct tracked *told = &record->tracked[TRACKED_ARTIFACTS], *found = &record->found;
    struct artifacts out = { ARENA_ARRAY(arena, struct artifact, told->n + 1), 0 };

    for (size_t i = 0; i < told->n; i++) {
        struct artifact *artifact = &out.list[out.n];
        const struct node *node = parsed(told->values[i].json, arena);

        if (!node)
            continue;
        artifact->name = arena_text(arena, told->values[i].key, strlen(told->values[i].key));
        read_told(artifact, node);
        for (size_t j = 0; j < found->n; j++)
            if (strcmp(found->values[j].key, artifact->name) == 0 &&
                (node = parsed(found->values[j].json, arena)))
                read_found(artifact, node);
        out.n++;
    }
    return out;
}

/* ---- from the files ---- */

static int hash_file(int fd, char out[static SHA256_TEXT]) {
    static char bytes[PIECE];
    struct sha256 hash;
    ssize_t n;

    sha256_init(&hash);
    while ((n = read(fd, bytes, sizeof bytes)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        sha256_add(&hash, bytes, (size_t)n);
    }
    sha256_finish(&hash, out);
    return 0;
}

int content_hash_one(const struct rundir *rundir, const struct output *output,
                     char out[static SHA256_TEXT], struct error *err) {
    struct sha256 hash;
    int fd, status;

    if (output->target) {
        sha256_init(&hash);
        sha256_add(&hash, output->target, strlen(output->target));
        sha256_finish(&hash, out);
        return 0;
    }
    fd = outputs_open(rundir, output->path, err);
    if (fd < 0)
        return -1;
    status = hash_file(fd, out);
    if (status)
        error_set_errno(err, errno, "cannot read outputs/%.300s of run %s", output->path,
                        rundir->id);
    close(fd);
    return status;
}

/* What the path stands for is one file when the only path found is the one that was asked for. */
static bool is_one_file(const struct outputs *outputs, size_t prefix) {
    return outputs->list.len == 1 && strlen(outputs->list.items[0].path) == prefix;
}

static int hash_list(const struct outputs *outputs, const struct rundir *rundir, size_t prefix,
                     struct content *content, struct error *err) {
    char text[SHA256_TEXT];
    struct sha256 hash;

    sha256_init(&hash);
    for (size_t i = 0; i < outputs->list.len; i++) {
        const struct output *output = &outputs->list.items[i];
        const char *below = output->path + (prefix > 0 ? prefix + 1 : 0);

        if (content_hash_one(rundir, output, text, err))
            return -1;
        sha256_add(&hash, text, SHA256_TEXT - 1);
        sha256_add(&hash, "  ", 2);
        sha256_add(&hash, below, strlen(below));
        sha256_add(&hash, "\n", 1);
    }
    sha256_finish(&hash, content->sha256);
    return 0;
}

/* The length of a path as outputs_add writes it: without empty parts and those that mean the same
 * directory. */
static size_t plain_length(const char *path) {
    size_t length = 0;

    while (*(path += strspn(path, "/"))) {
        const size_t n = strcspn(path, "/");

        if (!(n == 1 && path[0] == '.'))
            length += n + (length > 0);
        path += n;
    }
    return length;
}

int content_hash(const struct rundir *rundir, const char *path, uint64_t bytes_most,
                 struct content *out, struct error *err) {
    const size_t prefix = plain_length(path);
    struct content content = { 0 };
    struct outputs outputs = { 0 };
    int status = outputs_add(&outputs, rundir, path, err);

    outputs_sort(&outputs);
    for (size_t i = 0; status == 0 && i < outputs.list.len; i++)
        content.size += outputs.list.items[i].target ? 0 : outputs.list.items[i].size;
    content.files = outputs.list.len;
    content.special = outputs.n_special;
    if (status == 0 && (content.size > bytes_most || content.files > CONTENT_FILES_MOST))
        status =
            error_set(err, ERROR_EXHAUSTED,
                      "outputs/%.300s of run %s is more than is hashed at once", path, rundir->id);
    if (status == 0)
        status = is_one_file(&outputs, prefix)
                     ? content_hash_one(rundir, &outputs.list.items[0], content.sha256, err)
                     : hash_list(&outputs, rundir, prefix, &content, err);
    outputs_release(&outputs);
    if (status == 0)
        *out = content;
    return status;
}
