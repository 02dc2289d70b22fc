/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/again.h"

#include <assert.h>

/* What is wrong with the file, the command or what is installed stays wrong. */
static const bool may_help[] = {
    [DIAGNOSIS_EXIT_CODE] = true,
    [DIAGNOSIS_SIGNAL] = true,
    [DIAGNOSIS_NOT_STARTED] = true, /* no process or memory was to be had */
    [DIAGNOSIS_LOST] = true,
    [DIAGNOSIS_NOT_FOUND] = false,
    [DIAGNOSIS_NOT_EXECUTABLE] = false,
    [DIAGNOSIS_NO_INTERPRETER] = false,
    [DIAGNOSIS_NO_LIBRARY] = false,
    [DIAGNOSIS_USAGE] = false,
    [DIAGNOSIS_PYTHON_EXCEPTION] = true,
    [DIAGNOSIS_PYTHON_MODULE] = false,
    [DIAGNOSIS_PYTHON_SYNTAX] = false,
    [DIAGNOSIS_OUT_OF_MEMORY] = true,
    [DIAGNOSIS_DISK_FULL] = true,
    [DIAGNOSIS_ADDRESS_IN_USE] = true,
    [DIAGNOSIS_UNREACHABLE] = true,
    [DIAGNOSIS_PEER_LOST] = true,
    [DIAGNOSIS_COLLECTIVE] = true,
    [DIAGNOSIS_GPU] = true,
    [DIAGNOSIS_ASSERTION] = true,
    [DIAGNOSIS_ABORT] = true,
    [DIAGNOSIS_SEGMENTATION_FAULT] = true,
};
static_assert(ARRAY_LEN(may_help) == DIAGNOSIS_KIND_COUNT, "every kind has a row");

bool again_may_help(enum diagnosis_kind kind) {
    assert(kind < DIAGNOSIS_KIND_COUNT);
    return may_help[kind];
}

static uint32_t delay(uint32_t first_ms, uint32_t n_restarts) {
    uint64_t ms = first_ms;

    for (uint32_t i = 0; i < n_restarts && ms < AGAIN_DELAY_MOST_MS; i++)
        ms *= 2;
    return ms < AGAIN_DELAY_MOST_MS ? (uint32_t)ms : AGAIN_DELAY_MOST_MS;
}

enum again again_decide(const struct again_terms *terms, const struct again_case *last,
                        uint32_t *delay_ms) {
    if (last->verdict != VERDICT_FAILED || last->is_stopped || last->is_left ||
        !again_may_help(last->kind))
        return AGAIN_NO;
    if (last->kind == DIAGNOSIS_ADDRESS_IN_USE && !last->has_moved &&
        last->lasted_ms < AGAIN_START_MS) {
        *delay_ms = 0;
        return AGAIN_OTHER_PORTS;
    }
    if (last->n_restarts >= terms->max_restarts)
        return AGAIN_NO;
    *delay_ms = delay(terms->first_delay_ms, last->n_restarts);
    return AGAIN_RESTART;
}
