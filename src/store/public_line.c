/* SPDX-License-Identifier: Apache-2.0 */
#include "store/public_line.h"

#include <string.h>

#include "base/vec.h"
#include "codec/json.h"
#include "codec/json_read.h"

/* Of every line. */
static const char *const common[] = { "seq", "time", "elapsed", "attempt", "event", NULL };

static const struct {
    const char *event;
    const char *const members[8];
} events[] = {
    { "created", { "uuid", "owner", "host", "boot_id", "monotonic", "counts", "backend" } },
    { "queued", { "demand" } },
    { "reserved", { "holds" } },
    { "checked", { "processes", "listeners", "cgroups" } },
    { "status", { "status" } },
    { "attempt", { "status" } },
    { "phase", { "phase" } },
};

static void copy_members(struct json *json, const struct node *line, const char *const *names) {
    for (; *names; names++) {
        const struct node *value = node_get(line, *names);

        if (!value)
            continue;
        json_key(json, *names);
        json_node(json, value);
    }
}

int public_line(const char *line, size_t n, struct buf *out, struct error *err) {
    AUTO(arena) scratch = ARENA_INIT;
    const struct node *event;
    struct node node;
    struct json json;

    if (json_read(line, n, &scratch, &node, err))
        return -1;
    event = node_get(&node, "event");
    for (size_t i = 0; event && event->kind == NODE_TEXT && i < ARRAY_LEN(events); i++) {
        if (strcmp(event->text, events[i].event) != 0)
            continue;
        json_init(&json, JSON_COMPACT, json_to_buf, out);
        json_object(&json);
        copy_members(&json, &node, common);
        copy_members(&json, &node, events[i].members);
        json_end(&json);
        return json_finish(&json, err) || buf_append(out, "\n", 1, err) ? -1 : 0;
    }
    return 0;
}
