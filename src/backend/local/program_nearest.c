/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/local/program.h"
#include "base/arena.h"
#include "base/vec.h"
#include "codec/nearest.h"

enum { PROGRAMS_MOST = 100000 }; /* of a PATH with a huge directory, only so many are compared */

typedef VEC(const char *) names;

static void add_programs(const char *directory, struct arena *arena, names *out) {
    DIR *dir = opendir(directory);
    struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir)) && out->len < PROGRAMS_MOST)
        if (entry->d_name[0] != '.' && faccessat(dirfd(dir), entry->d_name, X_OK, AT_EACCESS) == 0)
            *VEC_PUSH(out) = arena_text(arena, entry->d_name, strlen(entry->d_name));
    closedir(dir);
}

static int alphabetical(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool program_nearest(const char *name, char *const *envp, char found[static NAME_MAX + 1]) {
    AUTO(arena) arena = ARENA_INIT;
    names all = { 0 };
    const char *near;

    for (const char *entry = program_path(envp), *next; entry; entry = next) {
        const char *colon = strchrnul(entry, ':');

        next = *colon ? colon + 1 : NULL;
        if (colon > entry)
            add_programs(arena_text(&arena, entry, (size_t)(colon - entry)), &arena, &all);
    }
    if (all.len >
        0) /* which of two that are equally near is not left to the order of a directory */
        qsort(all.items, all.len, sizeof *all.items, alphabetical);
    near = nearest_name(name, all.items, all.len);
    if (near)
        snprintf(found, NAME_MAX + 1, "%s", near);
    VEC_RELEASE(&all);
    return near && strcmp(near, name) != 0;
}
