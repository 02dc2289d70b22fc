/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "archive/archive.h"

const char *archive_name_trouble(const char *name) {
    size_t depth = 0;

    if (name[0] == '/')
        return "is an absolute path";
    if (strlen(name) > ARCHIVE_NAME_MOST)
        return "is too long a path for an archive";
    for (const char *p = name;; depth++) {
        const size_t n = strcspn(p, "/");

        if (n == 0 || n > NAME_MAX || (n == 1 && p[0] == '.') ||
            (n == 2 && p[0] == '.' && p[1] == '.'))
            return "is no path that stays inside the archive";
        if (depth > ARCHIVE_DEPTH_MOST)
            return "lies too deep for an archive";
        if (p[n] == '\0')
            return NULL;
        p += n + 1;
    }
}

bool archive_link_stays(const char *name, const char *target) {
    size_t above = 0; /* folders between the link and the top */
    bool is_down = false;

    for (const char *p = name; *p; p++)
        above += *p == '/';
    if (target[0] == '/' || target[0] == '\0')
        return false;
    for (const char *p = target; *p;) {
        const size_t n = strcspn(p, "/");
        const bool is_up = n == 2 && p[0] == '.' && p[1] == '.';

        if (is_up && (is_down || above-- == 0))
            return false;
        if (n > 0 && !is_up && !(n == 1 && p[0] == '.'))
            is_down = true;
        p += n + (p[n] == '/');
    }
    return true;
}
