/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to a run, as lines of its journal: one function for each kind of line. The
 * lines are described in docs/run-directory.md; store/record.h reads them.
 *
 * The line that ends a run or an attempt is on the disk when the call returns; the others follow
 * with it.
 */
#ifndef SUPERVISE_CHRONICLE_H
#define SUPERVISE_CHRONICLE_H

#include "model/plan.h"
#include "model/state.h"
#include "store/code_facts.h"
#include "store/journal.h"
#include "store/origin.h"
#include "store/record.h"
#include "supervise/supervise.h"

/* The first line: what the run is. */
struct chronicle_birth {
    const struct plan *plan;
    const char *uuid, *owner, *directory;
    const struct origin *origin;           /* NULL: none */
    const struct backend_maker *elsewhere; /* NULL: its tasks are processes here */
};
void chronicle_created(struct journal *journal, const struct chronicle_birth *birth);
/* The params and tags that the file gives, as lines `tracked` of no rank. More than a record keeps
 * are left out as a whole. */
void chronicle_given(struct journal *journal, const struct plan *plan);

/* Which code it runs; a later line takes the place of an earlier one. */
void chronicle_code(struct journal *journal, const struct code_facts *facts);

/* The run goes to a state that is not its last; `reason` may be NULL. */
void chronicle_status(struct journal *journal, enum state state, const char *reason);

/* How a run, or an attempt that is not the last, ended. */
struct chronicle_end {
    enum state state;
    const char *reason;          /* or NULL */
    const struct diagnosis *why; /* of the first failing task, or NULL */
    int64_t first_failed;        /* its rank, or -1 */
    int exit_status;
};
void chronicle_end(struct journal *journal, const struct chronicle_end *end);

/* An attempt begins: the lines from here on are its own. */
void chronicle_attempt(struct journal *journal, uint32_t attempt);
/* It failed, and another follows after the delay. */
void chronicle_attempt_failed(struct journal *journal, const struct chronicle_end *end,
                              uint32_t delay_ms);

/* Somebody has looked, and this is what was left: of processes nothing. */
#define CHRONICLE_NOT_LOOKED_FOR SIZE_MAX /* the keeper does not know the run's ports */
void chronicle_checked(struct journal *journal, size_t listeners, unsigned cgroups);

/* Of a run that lost its supervisor and its keeper: processes in so many groups do not end. */
void chronicle_groups_left(struct journal *journal, unsigned cgroups);

/* Nobody could look, and this sentence says what there may be. */
void chronicle_left(struct journal *journal, const char *sentence);

/* Of these many may come in one turn: the caller writes them (journal_flush), soon. */
/* `cpus`: those that are the task's own, or NULL. */
void chronicle_task_started(struct journal *journal, uint32_t rank, int64_t pid,
                            const struct cpus *cpus);
void chronicle_task_ended(struct journal *journal, uint32_t rank, const struct task_state *task);

/* What a task has said of the run by tracking: params, tags, a summary, an artifact. It never takes
 * the room that is reserved for the end of the run. */
enum chronicle_outcome {
    CHRONICLE_WRITTEN,
    CHRONICLE_NO_OBJECT, /* it is no JSON object: nothing is written */
    CHRONICLE_LOST,      /* it is too long for a line, or the disk did not take it */
    CHRONICLE_NO_ROOM    /* nothing is written: later there may be */
};
struct fold_record;
enum chronicle_outcome chronicle_tracked(struct journal *journal, const struct fold_record *record);

/* What tasks have logged and the series do not have, all of it anew. */
void chronicle_losses(struct journal *journal, const struct losses *losses);

/* What the supervisor is about: launching, submitted, running, lingering, stopping, waiting. */
void chronicle_phase(struct journal *journal, const char *phase);
/* Something to tell whoever follows the run. */
void chronicle_notice(struct journal *journal, const char *sentence);

#endif
