/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of runs and of tasks, as the original named them. The tables in state.c are the
 * only place that knows which may follow which; everyone else asks.
 *
 *   created ─► scheduled ─► starting ─► running ─► succeeded
 *      │           │            │          ├─────► failed
 *      └───────────┴────────────┴──────────┴─────► stopped
 *
 * building, resuming, warning, unknown, skipped and upstream_failed exist for clusters and for
 * clients that know them. Terminal is terminal: nothing follows succeeded, failed, stopped,
 * skipped or upstream_failed.
 */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include <stdbool.h>

enum state {
    STATE_CREATED,
    STATE_RESUMING,
    STATE_WARNING,
    STATE_UNSCHEDULABLE, /* of tasks only: a run shows it as a warning */
    STATE_BUILDING,
    STATE_SCHEDULED,
    STATE_STARTING, /* of runs only */
    STATE_RUNNING,
    STATE_SUCCEEDED,
    STATE_FAILED,
    STATE_UPSTREAM_FAILED,
    STATE_STOPPED,
    STATE_SKIPPED,
    STATE_UNKNOWN,
    STATE_COUNT,
};

const char *state_name(enum state state);

/* Whether there is a state of that name; *out is set then. */
bool state_named(const char *name, enum state *out);

bool state_is_final(enum state state);
bool run_state_can_become(enum state from, enum state to);
bool task_state_can_become(enum state from, enum state to);

#endif
