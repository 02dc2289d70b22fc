/* SPDX-License-Identifier: Apache-2.0 */
#include "store/media.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "media/"

static const struct {
    const char *suffix;
    enum media_kind kind;
} suffixes[] = {
    { "png", MEDIA_IMAGE }, { "jpg", MEDIA_IMAGE },  { "jpeg", MEDIA_IMAGE },
    { "gif", MEDIA_IMAGE }, { "webp", MEDIA_IMAGE }, { "bmp", MEDIA_IMAGE },
    { "svg", MEDIA_IMAGE }, { "txt", MEDIA_TEXT },
};

const char *media_kind_name(enum media_kind kind) {
    return kind == MEDIA_IMAGE ? "image" : "text";
}

/* ---- a path ---- */

/* A number that begins at *at with a digit; *at is then behind it. */
static bool take_rank(const char **at, uint32_t *out) {
    char *end;
    unsigned long long value;

    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    value = strtoull(*at, &end, 10);
    if (errno || value > UINT32_MAX)
        return false;
    *at = end;
    *out = (uint32_t)value;
    return true;
}

static bool take_step(const char **at, int64_t *out) {
    const char *digits = **at == '-' ? *at + 1 : *at;
    char *end;

    if (*digits < '0' || *digits > '9')
        return false;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    *at = end;
    return errno == 0;
}

static bool take_suffix(const char *suffix, enum media_kind *out) {
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (strcmp(suffixes[i].suffix, suffix) == 0) {
            *out = suffixes[i].kind;
            return true;
        }
    return false;
}

bool media_parse(const char *path, struct media *out, size_t *name_length) {
    const char *file = strrchr(path, '/'), *at;
    struct media media = { .path = path };

    if (strncmp(path, FOLDER, strlen(FOLDER)) != 0 || file <= path + strlen(FOLDER))
        return false;
    at = file + 1;
    if (!take_step(&at, &media.step) || *at++ != '-' || !take_rank(&at, &media.rank))
        return false;
    if (*at == '-' && (at++, !take_rank(&at, &media.attempt)))
        return false;
    if (*at++ != '.' || !take_suffix(at, &media.kind))
        return false;
    *out = media;
    *name_length = (size_t)(file - path) - strlen(FOLDER);
    return true;
}

/* ---- all of a run ---- */

static bool is_wanted(const char *name, const char *const *patterns, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(patterns[i], name) == 0 || fnmatch(patterns[i], name, 0) == 0)
            return true;
    return n == 0;
}

static int by_name_and_step(const void *a, const void *b) {
    const struct media *x = a, *y = b;
    const int names = strcmp(x->name, y->name);

    if (names != 0)
        return names;
    if (x->attempt != y->attempt)
        return x->attempt < y->attempt ? -1 : 1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Names of neighbours are mostly the same: they share a text. */
static const char *name_of(const char *path, size_t n, const char *before, struct arena *arena) {
    const char *text = path + strlen(FOLDER);

    return before && strlen(before) == n && memcmp(before, text, n) == 0
               ? before
               : arena_text(arena, text, n);
}

int media_read(const struct rundir *rundir, const char *const *patterns, size_t n_patterns,
               struct arena *arena, struct media_list *out, struct error *err) {
    AUTO(outputs) outputs = { 0 };
    struct media_list list = { 0 };
    const char *name = NULL;

    if (outputs_add(&outputs, rundir, "media", err)) {
        if (err->code != ERROR_NOT_FOUND)
            return -1;
        outputs.list.len = 0;
    }
    list.items = ARENA_ARRAY(arena, struct media, outputs.list.len + 1);
    for (size_t i = 0; i < outputs.list.len; i++) {
        const struct output *output = &outputs.list.items[i];
        struct media *media = &list.items[list.n];
        size_t n;

        if (output->target || !media_parse(output->path, media, &n))
            continue;
        name = name_of(output->path, n, name, arena);
        if (!is_wanted(name, patterns, n_patterns))
            continue;
        media->name = name;
        media->path = arena_text(arena, output->path, strlen(output->path));
        media->size = output->size;
        media->logged = output->modified;
        list.n++;
    }
    qsort(list.items, list.n, sizeof *list.items, by_name_and_step);
    *out = list;
    return 0;
}

const char *media_excerpt(const struct rundir *rundir, const struct media *media, size_t most,
                          struct arena *arena) {
    struct error err;
    char *text = arena_alloc(arena, most + 1);
    const int fd = outputs_open(rundir, media->path, &err);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, most);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}
