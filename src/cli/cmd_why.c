/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/reserve.h"
#include "store/find.h"
#include "store/owner.h"
#include "store/record.h"
#include "supervise/blocked.h"

static int tell(const struct error *err) {
    fprintf(stderr, "myelin: %s\n", err->message);
    return STATUS_INVALID;
}

static const char *ordinal_end(size_t n) {
    if (n % 100 >= 11 && n % 100 <= 13)
        return "th";
    return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

/* "  cpu: needs 2 of 4: 1 is free, run 12 holds 3 since 3m", for each that is asked for. */
static void print_resources(const struct decision *decision, const struct ledger_view *view) {
    for (enum resource r = 0; r < RESOURCE_COUNT; r++) {
        AUTO(buf) text = BUF_INIT(BLOCKED_MOST);
        struct error err;

        if (decision->needed[r] == 0 ||
            shortage_text(decision, view, r, (double)time(NULL), &text, &err))
            continue;
        printf("  %s: needs %s", resource_name(r), milli_text(decision->needed[r]).text);
        printf(" of %s: %s%s\n", milli_text(decision->capacity[r]).text, text.data,
               decision->is_short[r] ? "" : "; that is enough");
    }
    if (decision->n_ahead > 0)
        printf("  run %" PRIu64 " is first in the queue, and nobody overtakes it\n",
               decision->head);
}

/* The one run whose end would be enough, the one that has run longest first. */
static void print_whose_end(const struct situation *situation, size_t i) {
    for (size_t k = 0; k < situation->n_holds; k++) {
        const uint64_t run = situation->holds[k].run;

        if ((k == 0 || situation->holds[k - 1].run != run) &&
            sched_starts_without(situation, i, run)) {
            printf("  it starts as soon as run %" PRIu64 " ends\n", run);
            return;
        }
    }
}

/* ---- a run ---- */

static int explain_waiting(struct ledger_view *view, size_t i) {
    struct machine machine;
    struct gpus gpus;
    struct situation situation;
    struct decision decision;

    inventory_read(INVENTORY_WHOLE, &machine, &gpus);
    situation = queue_situation(view, &machine, NULL);
    sched_decide(&situation, i, &decision, NULL);
    printf("run %" PRIu64 " waits since %s; it is the %zu%s of %zu in the queue\n",
           view->queue.items[i].run,
           span_text((double)time(NULL) - view->queue.items[i].since).text, i + 1,
           ordinal_end(i + 1), view->queue.len);
    print_resources(&decision, view);
    if (decision.fit == FIT_NOW)
        puts("  its turn has come: it is about to start");
    else
        print_whose_end(&situation, i);
    return STATUS_OK;
}

/* What it holds; false where that is nothing. */
static bool explain_holding(const struct ledger_view *view, uint64_t run) {
    bool holds = false;

    for (enum resource r = 0; r < RESOURCE_COUNT; r++) {
        struct holder holder;

        for (size_t at = 0; next_holder(view, r, &at, &holder);)
            if (holder.run == run) {
                printf("%s %s", holds ? "," : "it holds", amount_text(r, holder.amount).text);
                holds = true;
            }
    }
    return holds;
}

static int explain_run(const char *home, const struct rundir *rundir) {
    const uint64_t run = strtoull(rundir->id, NULL, 10);
    struct ledger_view view = { 0 };
    struct run_record record;
    struct error err;
    pid_t pid;

    if (queue_look(home, &view, &err))
        return tell(&err);
    for (size_t i = 0; i < view.queue.len; i++)
        if (view.queue.items[i].run == run) {
            int status = explain_waiting(&view, i);

            ledger_view_release(&view);
            return status;
        }
    if (record_read(&record, rundir, &err)) {
        ledger_view_release(&view);
        return tell(&err);
    }
    if (!owner_lives(rundir, &pid))
        printf("run %s does not wait: it is over (%s)%s%s\n", rundir->id, state_name(record.state),
               record.reason ? ": " : "", record.reason ? record.reason : "");
    else {
        printf("run %s does not wait: ", rundir->id);
        puts(explain_holding(&view, run) ? "" : "it reserves nothing");
    }
    record_release(&record);
    ledger_view_release(&view);
    return STATUS_OK;
}

/* ---- a file ---- */

static void print_remedy(struct reserving *reserving, struct ledger_view *view,
                         const struct decision *decision) {
    const uint32_t n = reserving->plan->n_role[ROLE_WORKER];
    const uint32_t fewer = reserving_fewer_workers(reserving, view);

    if (fewer > 0)
        printf("  with n_workers: %u instead of %u it would start now\n", fewer, n);
    else if (decision->is_short[RESOURCE_CPU] && decision->n_ahead == 0 &&
             !decision->is_short[RESOURCE_MEMORY] && !decision->is_short[RESOURCE_GPU])
        puts("  with --oversubscribe it would start now");
}

static int explain_file(const struct invocation *in, const char *home, const struct plan *plan) {
    struct ledger_view view = { 0 };
    struct reserving reserving;
    struct decision decision;
    struct error err;
    int status = STATUS_OK;

    reserving_init(&reserving, in, plan);
    if (reserving.demand.n_tasks == 0) {
        puts("it would start now: it reserves nothing");
    } else if (reserving_check(&reserving, &err)) {
        printf("it can never start here: %s\n", err.message);
    } else if (reserving_decide(&reserving, home, &view, &decision, &err)) {
        status = tell(&err);
    } else {
        const struct waiting self = { .demand = reserving.demand };
        const struct situation situation = queue_situation(&view, &reserving.machine, &self);

        if (decision.fit == FIT_NOW)
            puts("it would start now");
        else
            printf("it would wait, as the %zu%s in the queue\n", situation.n_queue,
                   ordinal_end(situation.n_queue));
        print_resources(&decision, &view);
        if (decision.fit != FIT_NOW) {
            print_whose_end(&situation, situation.n_queue - 1);
            print_remedy(&reserving, &view, &decision);
        }
    }
    ledger_view_release(&view);
    reserving_release(&reserving);
    return status;
}

static bool is_file(const char *text) {
    struct stat st;

    return stat(text, &st) == 0 && !S_ISDIR(st.st_mode);
}

static int why(const struct invocation *in) {
    AUTO(arena) arena = ARENA_INIT;
    struct rundir rundir;
    const char *home;
    struct error err;
    struct plan *plan;
    int status;

    if (in->n_operands > 1)
        return invocation_misuse(in, "one RUN or FILE is explained at a time");
    if (rundir_home(&arena, &home, &err))
        return tell(&err);
    if (in->n_operands == 1 && !is_file(in->operands[0])) {
        if (find_run(home, in->operands[0], &arena, &rundir, &err))
            return tell(&err);
        return explain_run(home, &rundir);
    }
    plan = load_plan(in);
    if (!plan)
        return STATUS_INVALID;
    status = explain_file(in, home, plan);
    plan_free(plan);
    return status;
}

static const struct option options[] = {
    LOAD_OPTIONS,
    RESERVE_OPTIONS,
    { 0 },
};

const struct command command_why = {
    .name = "why",
    .arguments = "[RUN | FILE]",
    .summary = "say why a run waits, or whether a file would have to",
    .description =
        "Of a run that waits it says, for each resource, what is needed, what is free, who holds "
        "the rest since when, its place in the queue, and whose end would let it start.\n"
        "\n"
        "Of a file it says the same as if it were started now, and with how many workers it would "
        "not have to wait. Every answer comes from the function that places the runs.\n"
        "\n"
        "What exists as a file is taken as one; without an operand the usual names of "
        "polyaxonfiles are looked for.",
    .options = options,
    .operand_kind = ARGUMENT_FILE,
    .examples = "myelin why 12           # why does run 12 wait?\n"
                "myelin why train.yml    # would it start now?\n",
    .run = why,
};
