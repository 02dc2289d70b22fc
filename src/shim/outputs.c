/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/outputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "outputs/"

struct outputs_level {
    char **names;
    size_t n, next;
    size_t path_n; /* of the directory's path */
};

void outputs_begin(struct outputs *outputs, const char *root, const struct acks *acks) {
    outputs_release(outputs);
    *outputs = (struct outputs){ .acks = acks, .fd = -1, .root_n = strlen(root) };
    strcpy(outputs->path, root);
    outputs->levels = calloc(1, sizeof *outputs->levels);
    outputs->room = outputs->levels ? 1 : 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lists the directory of the present path; false: not all of it. One that is not there is empty. */
static bool list(struct outputs_level *level, const char *path) {
    DIR *directory = opendir(path);
    const struct dirent *entry = NULL;
    size_t room = 0;
    bool is_whole;

    if (!directory)
        return errno == ENOENT;
    while ((errno = 0, entry = readdir(directory))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (level->n == room) {
            char **wider = realloc(level->names, (room = room ? 2 * room : 16) * sizeof *wider);

            if (!wider)
                break;
            level->names = wider;
        }
        if (!(level->names[level->n] = strdup(entry->d_name)))
            break;
        level->n++;
    }
    is_whole = !entry && errno == 0;
    closedir(directory);
    if (level->n)
        qsort(level->names, level->n, sizeof *level->names, by_name);
    return is_whole;
}

static void enter(struct outputs *outputs) {
    if (outputs->depth == outputs->room) {
        struct outputs_level *wider = realloc(outputs->levels, 2 * outputs->room * sizeof *wider);

        if (!wider) {
            outputs->unread++;
            return;
        }
        outputs->levels = wider;
        outputs->room *= 2;
    }
    outputs->levels[outputs->depth] = (struct outputs_level){ .path_n = strlen(outputs->path) };
    outputs->unread += !list(&outputs->levels[outputs->depth++], outputs->path);
}

static void leave(struct outputs *outputs) {
    struct outputs_level *level = &outputs->levels[--outputs->depth];

    for (size_t i = 0; i < level->n; i++)
        free(level->names[i]);
    free(level->names);
}

void outputs_release(struct outputs *outputs) {
    if (!outputs->levels)
        return;
    if (outputs->fd >= 0)
        close(outputs->fd);
    while (outputs->depth)
        leave(outputs);
    free(outputs->levels);
    outputs->levels = NULL;
}

/* Goes to the next regular file; false if there is none. */
static bool advance(struct outputs *outputs, struct stat *st) {
    if (!outputs->levels)
        return false;
    if (outputs->path[outputs->root_n] == '\0')
        enter(outputs);
    while (outputs->depth) {
        struct outputs_level *level = &outputs->levels[outputs->depth - 1];
        const char *name;

        if (level->next == level->n) {
            leave(outputs);
            continue;
        }
        name = level->names[level->next++];
        if (level->path_n + 1 + strlen(name) >= sizeof outputs->path) {
            outputs->unread++;
            continue;
        }
        outputs->path[level->path_n] = '/';
        strcpy(outputs->path + level->path_n + 1, name);
        if (lstat(outputs->path, st)) {
            outputs->unread += errno != ENOENT;
            continue;
        }
        if (S_ISDIR(st->st_mode))
            enter(outputs);
        if (!S_ISREG(st->st_mode))
            continue;
        if (snprintf(outputs->name, sizeof outputs->name, PREFIX "%s",
                     outputs->path + outputs->root_n + 1) <= FRAME_NAME_MAX)
            return true;
        outputs->unread++;
    }
    return false;
}

/* Opens the next file that can be read; false if there is none. */
static bool open_next(struct outputs *outputs) {
    struct stat st;

    while (outputs->fd < 0 && advance(outputs, &st)) {
        outputs->fd = open(outputs->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        outputs->unread += outputs->fd < 0 && errno != ENOENT;
        outputs->offset = acks_get(outputs->acks, outputs->name);
        if (outputs->offset > (uint64_t)st.st_size)
            outputs->offset = 0; /* not of this file */
    }
    return outputs->fd >= 0;
}

bool outputs_next(struct outputs *outputs, struct outgoing *out) {
    while (open_next(outputs)) {
        const ssize_t n = pread(outputs->fd, outgoing_bytes(out, strlen(outputs->name)),
                                FRAME_BYTES_MAX, (off_t)outputs->offset);

        if (n > 0) {
            outgoing_file(out, FRAME_DATA, outputs->name, outputs->offset, (uint32_t)n);
            outputs->offset += (uint64_t)n;
            return true;
        }
        close(outputs->fd);
        outputs->fd = -1;
        if (n == 0) {
            outgoing_file(out, FRAME_WHOLE, outputs->name, outputs->offset, 0);
            return true;
        }
        outputs->unread++;
    }
    return false;
}

uint64_t outputs_unsent(const char *root, const struct acks *acks) {
    static struct outputs outputs;
    uint64_t sum = 0;
    struct stat st;

    outputs_begin(&outputs, root, acks);
    while (advance(&outputs, &st)) {
        const uint64_t has = acks_get(acks, outputs.name);

        if (has < (uint64_t)st.st_size)
            sum += (uint64_t)st.st_size - has;
    }
    outputs_release(&outputs);
    return sum;
}
