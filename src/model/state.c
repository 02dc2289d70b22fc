/* SPDX-License-Identifier: Apache-2.0 */
#include "model/state.h"

#include <assert.h>
#include <string.h>

#include "base/attr.h"

#define TO(state) (1u << (STATE_##state))
#define FINAL     (TO(SUCCEEDED) | TO(FAILED) | TO(UPSTREAM_FAILED) | TO(STOPPED) | TO(SKIPPED))

/* What may follow. The original let `stopped` follow `succeeded` and `failed`; here terminal is
 * terminal. */
static const struct {
    const char *name;
    unsigned run, task;
} rows[] = {
    [STATE_CREATED] = { "created",
                        FINAL | TO(RESUMING) | TO(WARNING) | TO(BUILDING) | TO(SCHEDULED) |
                            TO(STARTING) | TO(RUNNING) | TO(UNKNOWN),
                        FINAL | TO(RESUMING) | TO(WARNING) | TO(UNSCHEDULABLE) | TO(BUILDING) |
                            TO(SCHEDULED) | TO(RUNNING) | TO(UNKNOWN) },
    [STATE_RESUMING] = { "resuming",
                         FINAL | TO(WARNING) | TO(BUILDING) | TO(SCHEDULED) | TO(STARTING) |
                             TO(RUNNING) | TO(UNKNOWN),
                         FINAL | TO(WARNING) | TO(UNSCHEDULABLE) | TO(BUILDING) | TO(SCHEDULED) |
                             TO(RUNNING) | TO(UNKNOWN) },
    [STATE_WARNING] = { "warning",
                        FINAL | TO(RESUMING) | TO(BUILDING) | TO(SCHEDULED) | TO(STARTING) |
                            TO(RUNNING) | TO(UNKNOWN),
                        FINAL | TO(RESUMING) | TO(UNSCHEDULABLE) | TO(BUILDING) | TO(SCHEDULED) |
                            TO(RUNNING) | TO(UNKNOWN) },
    [STATE_UNSCHEDULABLE] = { "unschedulable", 0,
                              FINAL | TO(WARNING) | TO(BUILDING) | TO(SCHEDULED) | TO(RUNNING) |
                                  TO(UNKNOWN) },
    [STATE_BUILDING] = { "building",
                         FINAL | TO(WARNING) | TO(SCHEDULED) | TO(STARTING) | TO(RUNNING) |
                             TO(UNKNOWN),
                         FINAL | TO(WARNING) | TO(UNSCHEDULABLE) | TO(SCHEDULED) | TO(RUNNING) |
                             TO(UNKNOWN) },
    [STATE_SCHEDULED] = { "scheduled",
                          FINAL | TO(WARNING) | TO(STARTING) | TO(RUNNING) | TO(UNKNOWN),
                          FINAL | TO(WARNING) | TO(UNSCHEDULABLE) | TO(BUILDING) | TO(RUNNING) |
                              TO(UNKNOWN) },
    [STATE_STARTING] = { "starting", FINAL | TO(WARNING) | TO(RUNNING) | TO(UNKNOWN), 0 },
    [STATE_RUNNING] = { "running", FINAL | TO(WARNING) | TO(UNKNOWN),
                        FINAL | TO(WARNING) | TO(UNSCHEDULABLE) | TO(UNKNOWN) },
    [STATE_SUCCEEDED] = { "succeeded", 0, 0 },
    [STATE_FAILED] = { "failed", 0, 0 },
    [STATE_UPSTREAM_FAILED] = { "upstream_failed", 0, 0 },
    [STATE_STOPPED] = { "stopped", 0, 0 },
    [STATE_SKIPPED] = { "skipped", 0, 0 },
    [STATE_UNKNOWN] = { "unknown", FINAL | TO(BUILDING) | TO(SCHEDULED) | TO(WARNING) | TO(RUNNING),
                        FINAL | TO(BUILDING) | TO(SCHEDULED) | TO(WARNING) | TO(UNSCHEDULABLE) |
                            TO(RUNNING) },
};
static_assert(ARRAY_LEN(rows) == STATE_COUNT, "every state has a row");

const char *state_name(enum state state) {
    assert(state < STATE_COUNT);
    return rows[state].name;
}

bool state_named(const char *name, enum state *out) {
    for (enum state i = 0; i < STATE_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0) {
            *out = i;
            return true;
        }
    return false;
}

bool state_is_final(enum state state) {
    assert(state < STATE_COUNT);
    return FINAL >> state & 1;
}

bool run_state_can_become(enum state from, enum state to) {
    assert(from < STATE_COUNT && to < STATE_COUNT);
    return rows[from].run >> to & 1;
}

bool task_state_can_become(enum state from, enum state to) {
    assert(from < STATE_COUNT && to < STATE_COUNT);
    return rows[from].task >> to & 1;
}
