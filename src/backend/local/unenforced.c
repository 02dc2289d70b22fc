/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/unenforced.h"

#include <stdio.h>
#include <string.h>

struct unenforced_text unenforced_text(const struct cgroups *groups,
                                       const milli asked[RESOURCES_LIMITED]) {
    struct unenforced_text out = { "" };
    const size_t size = sizeof out.text;
    const char *said = NULL;
    size_t n = 0;

    for (enum resource i = 0; i < RESOURCES_LIMITED; i++) {
        const char *why = asked[i] > 0 ? cgroups_missing(groups, i) : NULL;

        if (!why || n >= size)
            continue;
        if (said && strcmp(said, why) != 0)
            n += (size_t)snprintf(out.text + n, size - n, " (%s)", said);
        if (n < size)
            n += (size_t)snprintf(out.text + n, size - n, "%s%s",
                                  said ? ", " : "not enforced here: ", resource_name(i));
        said = why;
    }
    if (said && n < size)
        snprintf(out.text + n, size - n, " (%s)", said);
    return out;
}

struct unenforced_text unenforced_foresee(const struct plan *plan) {
    struct unenforced_text out = { "" };
    milli asked[RESOURCES_LIMITED] = { 0 };
    struct cgroups *groups;
    bool any = false;

    for (uint32_t rank = 0; rank < plan->n_tasks; rank++)
        for (enum resource i = 0; i < RESOURCES_LIMITED; i++) {
            const milli limit = plan->tasks[rank].profile->resources.of[i].limits;

            if (limit > asked[i])
                asked[i] = limit;
            any |= limit > 0;
        }
    if (!any)
        return out;
    groups = cgroups_look();
    out = unenforced_text(groups, asked);
    cgroups_free(groups);
    return out;
}
