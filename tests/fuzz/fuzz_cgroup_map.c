/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text for the mounts, and, behind the first byte 0, for the process's own groups. Whatever
 * the kernel or a container shows there, what is found is a whole path below the mount that no ".."
 * leads out of, and the same one each time.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/local/cgroup_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 64 * 1024 };

static void require(bool law) {
    if (!law)
        abort();
}

static bool leads_up(const char *path) {
    for (const char *at = path; (at = strstr(at, "/..")); at++)
        if (at[3] == '/' || at[3] == '\0')
            return true;
    return false;
}

static void look(const char *mounts, const char *self, const char *controller) {
    struct cgroup_spot spot = { 0 }, again = { 0 };
    const enum cgroup_found found = cgroup_map_find(mounts, self, controller, &spot);

    require(cgroup_map_find(mounts, self, controller, &again) == found);
    if (found != CGROUP_FOUND) {
        require(spot.path[0] == '\0' && spot.mount_len == 0);
        return;
    }
    require(strnlen(spot.path, sizeof spot.path) < sizeof spot.path);
    require(spot.mount_len > 0 && spot.mount_len <= strlen(spot.path));
    require(spot.path[spot.mount_len] == '\0' || spot.path[spot.mount_len] == '/');
    require(!leads_up(spot.path + spot.mount_len));
    require(strcmp(spot.path, again.path) == 0 && spot.mount_len == again.mount_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *mounts, *self;

    if (size > INPUT_MAX)
        return 0;
    mounts = malloc(size + 1);
    if (!mounts)
        abort();
    if (size)
        memcpy(mounts, data, size);
    mounts[size] = '\0';
    self = mounts + strlen(mounts) + (strlen(mounts) < size);
    look(mounts, self, "memory");
    look(mounts, self, "cpu");
    look(mounts, self, NULL);
    require(cgroup_map_value(self, "oom_kill") >= -1);
    free(mounts);
    return 0;
}
