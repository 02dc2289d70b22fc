/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/verdict.h"

#include <assert.h>
#include <errno.h>

enum {
    EXIT_OWN_FAILURE = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL_BASE = 128,
    EXIT_STOPPED = 130,
};

static bool is_worker(const struct verdict *verdict, uint32_t rank) {
    const uint32_t first = verdict->n_role[ROLE_MASTER];

    return rank >= first && rank - first < verdict->n_role[ROLE_WORKER];
}

/* Does the success of this task belong to that of the run? */
static bool counts(const struct verdict *verdict, uint32_t rank) {
    switch (verdict->rule) {
    case SUCCESS_OF_CHIEF: return rank == 0;
    case SUCCESS_OF_WORKERS: return is_worker(verdict, rank) || verdict->n_role[ROLE_WORKER] == 0;
    case SUCCESS_OF_ALL: return true;
    }
    return true;
}

void verdict_init(struct verdict *verdict, enum success_rule rule,
                  const uint32_t n_role[ROLE_COUNT]) {
    uint32_t n_tasks = 0;

    *verdict = (struct verdict){ .rule = rule };
    for (int role = 0; role < ROLE_COUNT; role++) {
        verdict->n_role[role] = n_role[role];
        n_tasks += n_role[role];
    }
    for (uint32_t rank = 0; rank < n_tasks; rank++)
        verdict->awaited += counts(verdict, rank);
}

static enum task_fate fate_of(const struct verdict *verdict, const struct task_end *end) {
    if (verdict->stopping)
        return FATE_STOPPED;
    if (end->kind == TASK_NOT_STARTED)
        return FATE_NOT_STARTED;
    return end->kind == TASK_EXITED && end->detail == 0 ? FATE_SUCCEEDED : FATE_FAILED;
}

enum task_fate verdict_ended(struct verdict *verdict, uint32_t rank, const struct task_end *end) {
    const enum task_fate fate = fate_of(verdict, end);

    if (verdict->state != VERDICT_RUNNING)
        return fate;
    if (fate == FATE_FAILED || fate == FATE_NOT_STARTED) {
        verdict->state = VERDICT_FAILED;
        verdict_blame(verdict, rank, end);
    } else if (counts(verdict, rank) && --verdict->awaited == 0) {
        verdict->state = VERDICT_SUCCEEDED;
    }
    return fate;
}

void verdict_blame(struct verdict *verdict, uint32_t rank, const struct task_end *end) {
    assert(verdict->state == VERDICT_FAILED && !verdict->stopping);
    verdict->first_failed = rank;
    verdict->first_end = (struct task_end){ .kind = end->kind, .detail = end->detail };
}

void verdict_stop(struct verdict *verdict) {
    if (verdict->state == VERDICT_RUNNING)
        verdict->state = VERDICT_STOPPED;
    verdict->stopping = true;
}

void verdict_stopping(struct verdict *verdict) {
    assert(verdict->state != VERDICT_RUNNING);
    verdict->stopping = true;
}

static int status_of_not_started(int errnum) {
    switch (errnum) {
    case ENOENT: return EXIT_NOT_FOUND;
    case EACCES:
    case ENOEXEC:
    case ENOTDIR: return EXIT_NOT_EXECUTABLE;
    default: return EXIT_OWN_FAILURE;
    }
}

int verdict_exit_status(const struct verdict *verdict) {
    switch (verdict->state) {
    case VERDICT_SUCCEEDED: return 0;
    case VERDICT_STOPPED: return EXIT_STOPPED;
    case VERDICT_FAILED:
        switch (verdict->first_end.kind) {
        case TASK_EXITED: return verdict->first_end.detail;
        case TASK_SIGNALLED: return EXIT_SIGNAL_BASE + verdict->first_end.detail;
        case TASK_NOT_STARTED: return status_of_not_started(verdict->first_end.detail);
        case TASK_LOST: return EXIT_OWN_FAILURE;
        }
        return EXIT_OWN_FAILURE;
    case VERDICT_RUNNING:
    case VERDICT_STATE_COUNT: break;
    }
    return EXIT_OWN_FAILURE;
}
