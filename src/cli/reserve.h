/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file reserves on this machine, by the options of the command line: what `run` and
 * `why` share. A file that reserves nothing costs nothing: neither the machine nor the ledger
 * is looked at.
 */
#ifndef CLI_RESERVE_H
#define CLI_RESERVE_H

#include <stdio.h>

#include "cli/command.h"
#include "supervise/queue.h"

/* Rows for a command's table of options. */
/* clang-format off */
#define RESERVE_OPTIONS                                                                            \
    { .name = "oversubscribe", .help = "reserve no CPU: start though the cores are taken" },       \
    { .name = "without", .argument = "DEVICE", .kind = ARGUMENT_CHOICE,                            \
      .choices = (const char *const[]){ "gpu", "tpu", NULL }, .repeats = true,                     \
      .help = "rehearse without these devices: ask for none, show none to the tasks" }
/* clang-format on */

struct reserving {
    struct arena arena;
    const struct plan *plan;
    struct demand_terms terms;
    struct demand demand; /* n_tasks 0: nothing is reserved */
    struct machine machine;
    struct gpus gpus;
};

/* What the options leave out. */
struct demand_terms reserving_terms(const struct invocation *in);

/* Reads the options and works out what is asked for; looks at the machine only if something is. */
void reserving_init(struct reserving *reserving, const struct invocation *in,
                    const struct plan *plan);
void reserving_release(struct reserving *reserving);

/* Whether this machine could ever run it; the error has the numbers and the way out. */
MUST_CHECK int reserving_check(const struct reserving *reserving, struct error *err);

/* What would happen if it came to the end of the queue now. The view is released by the caller. */
MUST_CHECK int reserving_decide(struct reserving *reserving, const char *home,
                                struct ledger_view *view, struct decision *out, struct error *err);

/* Which CPUs its tasks would have for themselves; to be released. */
void reserving_pin(const struct reserving *reserving, const struct ledger_view *view,
                   struct pinning *out);

#endif
