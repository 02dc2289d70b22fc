/* SPDX-License-Identifier: Apache-2.0 */
#include "store/models_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/json.h"
#include "codec/json_read.h"
#include "store/models.h"
#include "store/sharing.h"

enum { DUMP_MOST = 256 << 20, DUMP_VERSION = 1 };

static int path_of(const char *home, const char *end, char out[static PATH_MAX],
                   struct error *err) {
    if (snprintf(out, PATH_MAX, "%s/models.json%s", home, end) >= PATH_MAX)
        return error_set(err, ERROR_INVALID, "the path of the home is too long");
    return 0;
}

/* ---- writing ---- */

static void write_model(struct json *json, const struct models_fact *facts, size_t n) {
    json_object(json);
    json_key(json, "name");
    json_text(json, facts[0].name);
    json_key(json, "last_version");
    json_int(json, facts[0].version);
    json_key(json, "aliases");
    json_object(json);
    for (size_t i = 1; i < n; i++) {
        json_key(json, facts[i].alias);
        json_int(json, facts[i].version);
    }
    json_end(json);
    json_end(json);
}

static int make_text(struct buf *text, const struct models_fact *facts, size_t n,
                     struct error *err) {
    struct json json;

    json_init(&json, JSON_PRETTY, json_to_buf, text);
    json_object(&json);
    json_key(&json, "version");
    json_int(&json, DUMP_VERSION);
    json_key(&json, "models");
    json_array(&json);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && facts[end].alias; end++)
            continue;
        write_model(&json, facts + i, end - i);
    }
    json_end(&json);
    json_end(&json);
    return json_finish(&json, err);
}

/* Writes all of a file that is open, and closes it. */
static int fill_file(int fd, const struct buf *text) {
    int status = fd < 0 || file_write_all(fd, text->data, text->len) ? -1 : fsync(fd);

    if (fd >= 0 && close(fd) < 0)
        status = -1;
    return status;
}

/* Another member of a shared home may have put a link or a FIFO there: the file is made by us. */
static int replace(const char *home, const char *part, const char *path, const struct buf *text) {
    unlink(part);
    return fill_file(shared_open(home, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                 SHARED_TO_WRITE, 0666),
                     text) ||
                   rename(part, path)
               ? -1
               : 0;
}

/* In a home with the sticky bit the file of another user can be written, but not replaced. A crash
 * in between loses nothing: the database still has it all, and the next change writes it again. */
static int overwrite(const char *path, const struct buf *text) {
    const int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) == 0)
        return fill_file(fd, text);
    close(fd);
    errno = EPERM;
    return -1;
}

int models_dump_write(const char *home, const struct models_fact *facts, size_t n,
                      struct error *err) {
    AUTO(buf) text = BUF_INIT(DUMP_MOST);
    char path[PATH_MAX], part[PATH_MAX];

    if (path_of(home, "", path, err) || path_of(home, ".new", part, err) ||
        make_text(&text, facts, n, err))
        return -1;
    if (replace(home, part, path, &text) == 0)
        return 0;
    if ((errno == EPERM || errno == EACCES || errno == EEXIST) && overwrite(path, &text) == 0) {
        unlink(part);
        return 0;
    }
    return error_set_errno(err, errno, "cannot write '%.300s', which belongs to %s", path,
                           file_owner(path).text);
}

/* ---- reading ---- */

static bool is_version(const struct node *node, int64_t most) {
    return node && node->kind == NODE_INT && node->integer >= 1 && node->integer <= most;
}

static int read_model(const struct node *model, models_take take, void *context,
                      struct error *err) {
    const struct node *name = node_get(model, "name"), *last = node_get(model, "last_version");
    const struct node *aliases = node_get(model, "aliases");
    struct models_fact fact;

    if (!name || name->kind != NODE_TEXT || model_name_check(name->text, err) ||
        !is_version(last, INT32_MAX) || !aliases || aliases->kind != NODE_MAP)
        return error_set(err, ERROR_INVALID, "an entry of 'models' is no model");
    fact = (struct models_fact){ .name = name->text, .version = last->integer };
    if (take(context, &fact, err))
        return -1;
    for (size_t i = 0; i < aliases->count; i++) {
        fact.alias = aliases->members[i].key;
        if (model_alias_check(fact.alias, err))
            return -1;
        if (!is_version(&aliases->members[i].value, last->integer))
            return error_set(err, ERROR_INVALID, "the alias '%.70s' names no version", fact.alias);
        fact.version = aliases->members[i].value.integer;
        if (take(context, &fact, err))
            return -1;
    }
    return 0;
}

int models_dump_parse(const char *text, size_t n, models_take take, void *context,
                      struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    const struct node *version, *models;
    struct node root;

    if (json_read(text, n, &arena, &root, err))
        return -1;
    version = node_get(&root, "version");
    models = node_get(&root, "models");
    if (!is_version(version, DUMP_VERSION))
        return error_set(err, ERROR_INVALID, "it is not of version %d", DUMP_VERSION);
    if (!models || models->kind != NODE_LIST)
        return error_set(err, ERROR_INVALID, "it has no list 'models'");
    for (size_t i = 0; i < models->count; i++)
        if (read_model(&models->items[i], take, context, err))
            return -1;
    return 0;
}

/* Another user may have put a link or a FIFO there: neither is followed or waited for. No file is
 * an empty text. */
static int read_text(const char *path, struct buf *out, bool *is_there, struct error *err) {
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char piece[4096];
    struct stat st;
    ssize_t n = -1;
    int status = 0;

    *is_there = fd >= 0 || errno != ENOENT;
    if (!*is_there)
        return 0;
    if (fd < 0 && errno != ELOOP)
        return error_set_errno(err, errno, "cannot read '%.300s'", path);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        return error_set(err, ERROR_INVALID,
                         "'%.200s', which belongs to %s, is not a regular file: remove it to go on "
                         "without the aliases",
                         path, file_owner(path).text);
    }
    while (status == 0 && (n = read(fd, piece, sizeof piece)) > 0)
        status = buf_append(out, piece, (size_t)n, err);
    if (status == 0 && n < 0)
        status = error_set_errno(err, errno, "cannot read '%.300s'", path);
    close(fd);
    return status;
}

int models_dump_read(const char *home, models_take take, void *context, struct error *err) {
    AUTO(buf) text = BUF_INIT(DUMP_MOST);
    char path[PATH_MAX];
    bool is_there;

    if (path_of(home, "", path, err) || read_text(path, &text, &is_there, err))
        return -1;
    if (is_there && models_dump_parse(text.data, text.len, take, context, err))
        return error_wrap(err,
                          "'%.200s' cannot be used; mend it, or move it away to go on without "
                          "the aliases",
                          path);
    return 0;
}
