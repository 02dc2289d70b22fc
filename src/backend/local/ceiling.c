/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/ceiling.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/local/cgroup_tree.h"

int64_t ceiling_read(const char *text) {
    char *end;
    long long number;

    errno = 0;
    number = strtoll(text, &end, 10);
    return end == text || errno || number < 0 ? INT64_MAX : number;
}

int64_t ceiling_of_run(uint32_t each, uint32_t n_tasks, int64_t room) {
    const uint64_t wanted = (uint64_t)each * n_tasks;
    const uint64_t share = (uint64_t)room / 2;
    const uint64_t most = wanted < share ? wanted : share;

    return most ? (int64_t)most : 1;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t room_by(const char *file) {
    char text[64];

    cgroup_read(AT_FDCWD, file, text, sizeof text);
    return ceiling_read(text);
}

/* A group that has the file stands in one that has it, up to the root of all groups, or of those
 * that a container is shown: that one's directory has none, or is below a directory that is no
 * group. */
int64_t ceiling_room(const char *group) {
    char path[PATH_MAX], file[PATH_MAX + 16], text[64];
    int64_t room =
        smaller(room_by("/proc/sys/kernel/pid_max"), room_by("/proc/sys/kernel/threads-max"));
    char *slash;

    snprintf(path, sizeof path, "%s", group);
    for (;;) {
        snprintf(file, sizeof file, "%s/pids.max", path);
        if (cgroup_read(AT_FDCWD, file, text, sizeof text))
            return room;
        room = smaller(room, ceiling_read(text));
        slash = strrchr(path, '/');
        if (!slash)
            return room;
        *slash = '\0';
    }
}
