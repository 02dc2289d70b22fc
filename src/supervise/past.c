/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/past.h"

#include <stdlib.h>
#include <string.h>

static struct task_end end_of(const struct task_record *task) {
    if (task->exit_code >= 0)
        return (struct task_end){ .kind = TASK_EXITED, .detail = task->exit_code };
    if (task->signal > 0)
        return (struct task_end){ .kind = TASK_SIGNALLED, .detail = task->signal };
    return (struct task_end){ .kind = task->started_s >= 0 ? TASK_LOST : TASK_NOT_STARTED,
                              .message = task->reason };
}

static int by_time(const void *a, const void *b, void *context) {
    const struct task_record *tasks = context;
    const double x = tasks[((const struct past_end *)a)->rank].ended_s;
    const double y = tasks[((const struct past_end *)b)->rank].ended_s;

    return (x > y) - (x < y);
}

static bool is_one_of(const char *phase, const char *const *phases, size_t n) {
    for (size_t i = 0; phase && i < n; i++)
        if (strcmp(phase, phases[i]) == 0)
            return true;
    return false;
}

void past_read(const struct run_record *record, struct arena *arena, struct past *out) {
    static const char *const outside[] = { "submitted", "running", "lingering", "stopping" };
    struct past_end *ends;
    size_t n = 0;

    *out = (struct past){ .attempt = record_attempt(record) };
    if (record->n_attempts > 0 && record->n_over == record->n_attempts)
        out->attempt++; /* the next one was being waited for */
    else
        out->was_submitted = is_one_of(record->phase, outside, ARRAY_LEN(outside));
    if (!out->was_submitted)
        return;
    ends = ARENA_ARRAY(arena, struct past_end, record->n_tasks + 1);
    for (uint32_t rank = 0; rank < record->n_tasks; rank++)
        if (state_is_final(record->tasks[rank].state))
            ends[n++] = (struct past_end){
                .rank = rank,
                .was_stopped = record->tasks[rank].state == STATE_STOPPED,
                .end = end_of(&record->tasks[rank]),
            };
    qsort_r(ends, n, sizeof *ends, by_time, record->tasks);
    out->run = (struct run_past){
        .ends = ends,
        .n_ends = n,
        .was_stopping = record->phase && strcmp(record->phase, "stopping") == 0,
    };
}
