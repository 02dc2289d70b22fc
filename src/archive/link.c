/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "archive/archive.h"

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
