/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run ends, decided from the ends of its tasks in the order they come. Pure: no
 * clock, no processes.
 *
 *                 ┌── the tasks that count all exited 0 ──► SUCCEEDED
 *   RUNNING ──────┼── a task did anything but exit 0 ─────► FAILED (that task is the first)
 *                 └── verdict_stop ───────────────────────► STOPPED
 *
 * Invariants:
 *   1. A state other than RUNNING is final: what comes later changes nothing in it.
 *   2. FAILED names the first task that failed, and its end.
 *   3. In any state every task gets one fate, when it ends.
 */
#ifndef SUPERVISE_VERDICT_H
#define SUPERVISE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "model/framework.h"

enum verdict_state {
    VERDICT_RUNNING,
    VERDICT_SUCCEEDED, /* tasks that do not count may still live */
    VERDICT_FAILED,
    VERDICT_STOPPED, /* by the user */
    VERDICT_STATE_COUNT,
};

/* What became of one task. */
enum task_fate {
    FATE_RUNNING,
    FATE_SUCCEEDED,   /* exited 0 */
    FATE_FAILED,      /* ended otherwise, by itself */
    FATE_STOPPED,     /* ended after the gang was told to */
    FATE_NOT_STARTED, /* could not be started */
    FATE_COUNT,
};

struct verdict {
    enum verdict_state state;
    enum success_rule rule;
    uint32_t n_role[ROLE_COUNT];
    uint32_t awaited; /* tasks that count and have not exited 0 yet */
    bool stopping;    /* the gang was told to end */

    uint32_t first_failed;     /* with FAILED: its rank */
    struct task_end first_end; /* with FAILED: its end, without the message */
};

void verdict_init(struct verdict *verdict, enum success_rule rule,
                  const uint32_t n_role[ROLE_COUNT]);

/* A task ended; each rank is told once. Returns its fate. */
enum task_fate verdict_ended(struct verdict *verdict, uint32_t rank, const struct task_end *end);

/* Another task's failure is the cause of the one that came first: it takes its place. Only while
 * the gang has not been told to end; `end` is of a task that failed. */
void verdict_blame(struct verdict *verdict, uint32_t rank, const struct task_end *end);

/* The user asked for the end. */
void verdict_stop(struct verdict *verdict);

/* The supervisor told the gang to end, because of the verdict. */
void verdict_stopping(struct verdict *verdict);

/* What `myelin run` exits with: 0, the first failing task's code, 128 + its signal, as
 * shells do 127 (not found) or 126 (not executable), 130 when stopped, 125 for what is no
 * task's doing. */
int verdict_exit_status(const struct verdict *verdict);

#endif
