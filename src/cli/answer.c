/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/answer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/anew.h"
#include "cli/runs.h"
#include "plan/plan.h"
#include "store/owner.h"

#define SECONDS_MOST 1e10 /* since 1970: three hundred years */

static double now_s(void) {
    return (double)clock_wall_us() / 1e6;
}

/* ---- what is looked at ---- */

void answering_release(struct answering *answering) {
    ledger_view_release(&answering->view);
    arena_release(&answering->arena);
}

int answering_look(struct answering *answering, const char *home, struct error *err) {
    if (queue_look(home, &answering->view, err))
        return -1;
    if (answering->view.queue.len > 0)
        inventory_read(INVENTORY_WHOLE, &answering->machine, &answering->gpus);
    return 0;
}

/* ---- working it out ---- */

/* The one run whose end would be enough, the one that has run longest first; or 0. */
static uint64_t whose_end(const struct situation *situation, size_t i) {
    for (size_t k = 0; k < situation->n_holds; k++) {
        const uint64_t run = situation->holds[k].run;

        if ((k == 0 || situation->holds[k - 1].run != run) &&
            sched_starts_without(situation, i, run))
            return run;
    }
    return 0;
}

/* What the decision about queue[i] comes to. */
static int decide(struct answering *answering, const struct situation *situation, size_t i,
                  struct answer *out, struct error *err) {
    AUTO(buf) sentence = BUF_INIT(BLOCKED_MOST);

    out->position = i + 1;
    out->n_queue = situation->n_queue;
    out->kind = out->decision.fit == FIT_NOW ? ANSWER_STARTS : ANSWER_WAITS;
    if (out->kind == ANSWER_STARTS)
        return 0;
    if (blocked_sentence(&out->decision, &answering->view, now_s(), &sentence, err))
        return -1;
    out->reason = arena_text(&answering->arena, sentence.data, sentence.len);
    out->starts_after = whose_end(situation, i);
    return 0;
}

/* What only the file tells: which task finds no room, and what to change. queue[i] is the plan
 * under these terms, which ask for `demand`. */
static void explain_by_plan(struct answering *answering, const struct situation *situation,
                            size_t i, const struct plan *plan, const struct demand_terms *terms,
                            const struct demand *demand, struct answer *out) {
    struct demand_terms without_cpu = *terms;
    struct remedy remedies[REMEDIES_MOST];
    size_t n;

    if (out->kind != ANSWER_WAITS && out->kind != ANSWER_NEVER)
        return;
    if (out->decision.is_blocked) {
        const uint32_t rank = demand->ranks[out->decision.blocked.at];
        const struct task_name name = task_name(&plan->tasks[rank]);

        out->blocked_task = arena_text(&answering->arena, name.text, strlen(name.text));
    }
    n = sched_remedies(situation, i, plan, terms, remedies);
    out->has_remedy = n > 0;
    if (n > 0)
        out->remedy = remedies[0];
    for (size_t k = 0; k < n; k++)
        if (remedies[k].kind == REMEDY_FEWER && remedies[k].role == ROLE_WORKER)
            out->fewer_workers = remedies[k].n;
    without_cpu.leaves_out[RESOURCE_CPU] = true;
    out->oversubscribing_helps =
        !terms->leaves_out[RESOURCE_CPU] && sched_starts_with(situation, i, plan, &without_cpu);
}

static bool are_equal(const struct demand *a, const struct demand *b) {
    return a->n_groups == b->n_groups &&
           memcmp(a->groups, b->groups, a->n_groups * sizeof *a->groups) == 0;
}

/* The same of a run, if the files that it kept still ask for what the ledger says. */
static void explain_by_kept(struct answering *answering, const struct situation *situation,
                            size_t i, const struct rundir *rundir, struct answer *out) {
    AUTO(arena) arena = ARENA_INIT;
    struct kept_run kept;
    struct demand demand;
    struct error ignored;

    if (kept_run_load(rundir, &kept, &ignored))
        return;
    if (kept.loaded.plan) {
        const struct demand_terms terms = reserving_terms(&kept.in);

        demand_of_plan(kept.loaded.plan, &terms, &arena, &demand);
        if (are_equal(&demand, &situation->queue[i].demand))
            explain_by_plan(answering, situation, i, kept.loaded.plan, &terms, &demand, out);
    }
    kept_run_release(&kept);
}

static int answer_for_waiting(struct answering *answering, const struct rundir *rundir, size_t i,
                              struct answer *out, struct error *err) {
    const struct situation situation = queue_situation(&answering->view, &answering->machine, NULL);

    sched_decide(&situation, i, &out->decision, NULL);
    out->waits_s = now_s() - answering->view.queue.items[i].since;
    if (!(out->waits_s >= 0 && out->waits_s < SECONDS_MOST))
        out->waits_s = 0; /* the wall clock was set back, or the ledger is not to be believed */
    if (decide(answering, &situation, i, out, err))
        return -1;
    explain_by_kept(answering, &situation, i, rundir, out);
    return 0;
}

/* The cluster decides when it starts. */
static void ask_cluster(struct answering *answering, const struct run_record *record,
                        struct answer *out) {
    if (!cluster_run_waits(record)) {
        out->reason = arena_printf(&answering->arena, "its tasks are on cluster %s, namespace %s",
                                   record->cluster, record->namespace);
        return;
    }
    out->kind = ANSWER_WAITS;
    out->waits_s = record->elapsed_s;
    if (record->reason)
        out->reason = arena_text(&answering->arena, record->reason, strlen(record->reason));
    out->cluster = cluster_answer_for(record, &answering->arena);
}

/* Between two attempts it keeps what it holds. */
static void tell_pause(struct answering *answering, const struct run_record *record,
                       struct answer *out) {
    const struct attempt_record *last =
        record->n_over ? &record->attempts[record->n_over - 1] : NULL;

    out->kind = ANSWER_WAITS;
    out->reason = arena_printf(&answering->arena, "for its next attempt%s%s",
                               last && last->reason ? "; the last one: " : "",
                               last && last->reason ? last->reason : "");
}

/* Of a run that does not wait for its turn on this machine. */
static int answer_for_other(struct answering *answering, const struct rundir *rundir,
                            struct answer *out, struct error *err) {
    struct run_record record;
    pid_t pid;

    if (runs_read(rundir, &record, err))
        return -1;
    out->state = record.state;
    out->kind = state_is_final(record.state) ? ANSWER_OVER : ANSWER_GOES_ON;
    if (out->kind == ANSWER_OVER && record.reason)
        out->reason = arena_text(&answering->arena, record.reason, strlen(record.reason));
    else if (out->kind == ANSWER_GOES_ON && !owner_lives(rundir, &pid))
        out->reason = arena_printf(&answering->arena, "it belongs to %s",
                                   record.host ? record.host : "a host that is not known");
    if (out->kind == ANSWER_GOES_ON && record.backend)
        ask_cluster(answering, &record, out);
    else if (out->kind == ANSWER_GOES_ON && record.phase && strcmp(record.phase, "waiting") == 0)
        tell_pause(answering, &record, out);
    record_release(&record);
    for (enum resource r = 0; r < RESOURCE_COUNT; r++) {
        struct holder holder;

        for (size_t at = 0; next_holder(&answering->view, r, &at, &holder);)
            if (holder.run == out->run)
                out->holds[r] = holder.amount;
    }
    return 0;
}

int answer_for_run(struct answering *answering, const struct rundir *rundir, struct answer *out,
                   struct error *err) {
    *out = (struct answer){ .run = strtoull(rundir->id, NULL, 10),
                            .state = STATE_SCHEDULED,
                            .waits_s = -1 };
    for (size_t i = 0; i < answering->view.queue.len; i++)
        if (answering->view.queue.items[i].run == out->run)
            return answer_for_waiting(answering, rundir, i, out, err);
    return answer_for_other(answering, rundir, out, err);
}

static void say_never(struct answering *answering, const struct error *why, struct answer *out) {
    out->kind = ANSWER_NEVER;
    out->reason = arena_text(&answering->arena, why->message, strlen(why->message));
}

int answer_for_file(struct answering *answering, struct reserving *reserving, const char *home,
                    const char *file, struct answer *out, struct error *err) {
    const struct waiting self = { .demand = reserving->demand };
    struct situation situation;
    struct error never;
    size_t i;

    *out = (struct answer){ .kind = ANSWER_STARTS, .file = file, .waits_s = -1 };
    if (plan_check_local(reserving->plan, &never)) {
        say_never(answering, &never, out);
        return 0;
    }
    if (reserving->demand.n_tasks == 0)
        return 0;
    if (reserving_check(reserving, &never))
        say_never(answering, &never, out);
    if (reserving_decide(reserving, home, &answering->view, &out->decision, err))
        return out->kind == ANSWER_NEVER ? 0 : -1; /* that it never fits is known without it */
    situation = queue_situation(&answering->view, &reserving->machine, &self);
    i = situation.n_queue - 1;
    if (out->kind != ANSWER_NEVER && decide(answering, &situation, i, out, err))
        return -1;
    explain_by_plan(answering, &situation, i, reserving->plan, &reserving->terms,
                    &reserving->demand, out);
    return 0;
}

/* ---- for people ---- */

static const char *ordinal_end(size_t n) {
    if (n % 100 >= 11 && n % 100 <= 13)
        return "th";
    return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

/* "  worker.1 is the first that finds no room: it asks for 1 CPU, and 0.5 is left". */
static void print_blocked(const struct answer *answer) {
    const struct blocked *blocked = &answer->decision.blocked;

    if (!answer->blocked_task)
        return;
    printf("  %s is the first that finds no room: ", answer->blocked_task);
    if (blocked->resource == RESOURCE_COUNT)
        puts("no machine has all that it asks for");
    else
        printf("it asks for %s, and %s %s left\n",
               amount_text(blocked->resource, blocked->needed).text,
               blocked->left ? milli_text(blocked->left).text : "none",
               blocked->left > 1000 ? "are" : "is");
}

/* "  cpu: needs 2 of 4: 1 is free, run 12 holds 3 since 3m", for each that is asked for. */
static void print_resources(const struct answering *answering, const struct answer *answer) {
    const struct decision *decision = &answer->decision;

    for (enum resource r = 0; r < RESOURCE_COUNT; r++) {
        AUTO(buf) text = BUF_INIT(BLOCKED_MOST);
        struct error err;

        if (decision->needed[r] == 0 ||
            shortage_text(decision, &answering->view, r, now_s(), &text, &err))
            continue;
        printf("  %s: needs %s", resource_name(r), milli_text(decision->needed[r]).text);
        printf(" of %s: %s%s\n", milli_text(decision->capacity[r]).text, text.data,
               decision->is_short[r] ? "" : "; that is enough");
    }
    print_blocked(answer);
    if (decision->n_ahead > 0)
        printf("  run %" PRIu64 " is first in the queue, and nobody overtakes it\n",
               decision->head);
}

static void print_remedy(const struct remedy *remedy) {
    const char *role = role_name(remedy->role);

    if (remedy->kind == REMEDY_FEWER)
        printf("  with n_%s%s: %u instead of %u it would start now\n", role,
               remedy->role == ROLE_WORKER ? "s" : "", remedy->n, remedy->n_before);
    else
        printf("  with %s: {requests: %s} instead of %s for %s %s it would start now\n",
               resource_name(remedy->resource), milli_text(remedy->amount).text,
               milli_text(remedy->most_before).text, remedy->role == ROLE_MASTER ? "the" : "each",
               role);
}

static void print_ways_out(const struct answer *answer) {
    if (answer->starts_after)
        printf("  it starts as soon as run %" PRIu64 " ends\n", answer->starts_after);
    if (answer->has_remedy)
        print_remedy(&answer->remedy);
    if (answer->oversubscribing_helps)
        puts("  with --oversubscribe it would start now");
}

static void print_holds(const struct answer *answer) {
    const char *before = "it holds ";

    for (enum resource r = 0; r < RESOURCE_COUNT; r++)
        if (answer->holds[r] > 0) {
            printf("%s%s", before, amount_text(r, answer->holds[r]).text);
            before = ", ";
        }
    if (*before == ',')
        puts("");
    else
        puts(answer->reason && answer->kind == ANSWER_GOES_ON ? answer->reason
                                                              : "it reserves nothing");
}

static void print_of_cluster(const struct answer *answer) {
    AUTO(arena) arena = ARENA_INIT;

    printf("waits since %s on cluster %s, namespace %s", span_text(answer->waits_s).text,
           runs_text(&arena, answer->cluster->cluster, 0),
           runs_text(&arena, answer->cluster->namespace, 0));
    printf("%s%s\n", answer->reason ? ": " : "", runs_text(&arena, answer->reason, 0));
    cluster_answer_print(answer->cluster);
}

/* Of a run between two attempts. */
static void print_pause(const struct answer *answer) {
    AUTO(arena) arena = ARENA_INIT;

    printf("waits %s\n  ", runs_text(&arena, answer->reason, 0));
    print_holds(answer);
}

static void print_of_run(const struct answering *answering, const struct answer *answer) {
    printf("run %" PRIu64 " ", answer->run);
    if (answer->kind == ANSWER_OVER) {
        AUTO(arena) arena = ARENA_INIT;

        printf("does not wait: it is over (%s)%s%s\n", state_name(answer->state),
               answer->reason ? ": " : "", runs_text(&arena, answer->reason, 0));
        return;
    }
    if (answer->kind == ANSWER_GOES_ON) {
        fputs("does not wait: ", stdout);
        print_holds(answer);
        return;
    }
    if (answer->cluster) {
        print_of_cluster(answer);
        return;
    }
    if (answer->position == 0) {
        print_pause(answer);
        return;
    }
    printf("waits since %s; it is the %zu%s of %zu in the queue\n", span_text(answer->waits_s).text,
           answer->position, ordinal_end(answer->position), answer->n_queue);
    print_resources(answering, answer);
    if (answer->kind == ANSWER_STARTS)
        puts("  its turn has come: it is about to start");
    print_ways_out(answer);
}

static void print_of_file(const struct answering *answering, const struct answer *answer) {
    if (answer->kind == ANSWER_NEVER)
        printf("it can never start here: %s\n", answer->reason);
    else if (answer->kind == ANSWER_AWAY)
        puts("it would be submitted to a cluster; whether it starts at once is for that to say");
    else if (answer->kind == ANSWER_WAITS)
        printf("it would wait, as the %zu%s in the queue\n", answer->position,
               ordinal_end(answer->position));
    else
        printf("it would start now%s\n", answer->position ? "" : ": it reserves nothing");
    print_resources(answering, answer);
    print_ways_out(answer);
}

void answer_print(const struct answering *answering, const struct answer *answer) {
    if (answer->run)
        print_of_run(answering, answer);
    else
        print_of_file(answering, answer);
}

/* ---- for programs ---- */

static const char *const kind_names[] = {
    [ANSWER_WAITS] = "waits", [ANSWER_STARTS] = "starts",   [ANSWER_NEVER] = "never",
    [ANSWER_AWAY] = "away",   [ANSWER_GOES_ON] = "goes_on", [ANSWER_OVER] = "over",
};
static_assert(ARRAY_LEN(kind_names) == ANSWER_KIND_COUNT, "every answer has a name");

/* 0 is written as null: no run, worker or place has that number. */
static void write_number(struct json *json, const char *key, uint64_t number) {
    json_key(json, key);
    if (number)
        json_int(json, (int64_t)number);
    else
        json_null(json);
}

/* The ledger is a file: it may say anything. */
static void write_since(struct json *json, double since_s) {
    json_key(json, "since");
    if (since_s >= 0 && since_s < SECONDS_MOST)
        json_text(json, time_text((int64_t)(since_s * 1e6), TIME_MILLISECONDS).text);
    else
        json_null(json);
}

static void write_holders(struct json *json, const struct ledger_view *view, enum resource r) {
    struct holder holder;

    json_key(json, "holders");
    json_array(json);
    for (size_t at = 0; next_holder(view, r, &at, &holder);) {
        json_object(json);
        write_number(json, "run", holder.run);
        json_milli(json, "amount", holder.amount);
        write_since(json, holder.since);
        json_end(json);
    }
    json_end(json);
}

static void write_resources(struct json *json, const struct answering *answering,
                            const struct decision *decision) {
    json_key(json, "resources");
    json_object(json);
    for (enum resource r = 0; r < RESOURCE_COUNT; r++) {
        if (decision->needed[r] == 0)
            continue;
        json_key(json, resource_name(r));
        json_object(json);
        json_milli(json, "needed", decision->needed[r]);
        json_milli(json, "free", decision->free[r]);
        json_milli(json, "total", decision->capacity[r]);
        json_key(json, "is_enough");
        json_bool(json, !decision->is_short[r]);
        write_holders(json, &answering->view, r);
        json_end(json);
    }
    json_end(json);
}

static void write_remedy(struct json *json, const struct answer *answer) {
    const struct remedy *remedy = &answer->remedy;
    const bool is_less = remedy->kind == REMEDY_LESS;

    json_key(json, "change");
    if (!answer->has_remedy) {
        json_null(json);
        return;
    }
    json_object(json);
    json_key(json, "role");
    json_text(json, role_name(remedy->role));
    json_key(json, "resource");
    json_text(json, is_less ? resource_name(remedy->resource) : NULL);
    json_milli(json, "from", is_less ? remedy->most_before : remedy->n_before * INT64_C(1000));
    json_milli(json, "to", is_less ? remedy->amount : remedy->n * INT64_C(1000));
    json_end(json);
}

static void write_blocked(struct json *json, const struct answer *answer) {
    const struct decision *decision = &answer->decision;

    json_key(json, "blocked_task");
    json_text(json, answer->blocked_task);
    json_key(json, "blocked_by");
    json_text(json, decision->is_blocked && decision->blocked.resource < RESOURCE_COUNT
                        ? resource_name(decision->blocked.resource)
                        : NULL);
}

static void write_holds(struct json *json, const struct answer *answer) {
    json_key(json, "holds");
    json_object(json);
    for (enum resource r = 0; r < RESOURCE_COUNT; r++)
        if (answer->holds[r] > 0)
            json_milli(json, resource_name(r), answer->holds[r]);
    json_end(json);
}

void answer_write_json(struct json *json, const struct answering *answering,
                       const struct answer *answer) {
    const struct decision *decision = &answer->decision;

    json_object(json);
    write_number(json, "run", answer->run);
    json_key(json, "file");
    json_text(json, answer->file);
    json_key(json, "answer");
    json_text(json, kind_names[answer->kind]);
    json_key(json, "status");
    json_text(json, answer->run ? state_name(answer->state) : NULL);
    json_key(json, "reason");
    json_text(json, answer->reason);
    write_number(json, "position", answer->position);
    write_number(json, "queue_length", answer->n_queue);
    json_key(json, "waiting_s");
    if (answer->waits_s < 0)
        json_null(json);
    else
        json_number(json, (double)(int64_t)(answer->waits_s * 1000 + 0.5) / 1000);
    write_number(json, "behind", decision->n_ahead > 0 ? decision->head : 0);
    write_number(json, "starts_after", answer->starts_after);
    write_resources(json, answering, decision);
    write_holds(json, answer);
    write_blocked(json, answer);
    write_remedy(json, answer);
    write_number(json, "fewer_workers", answer->fewer_workers);
    json_key(json, "oversubscribing_helps");
    json_bool(json, answer->oversubscribing_helps);
    json_key(json, "cluster");
    cluster_answer_write_json(json, answer->cluster);
    json_end(json);
}
