/* SPDX-License-Identifier: Apache-2.0 */
/* The laws of sched under random workloads. MYELIN_TEST_SEED plays one again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chance.h"
#include "compile.h"
#include "sched/remedy.h"

/* ---- random workloads ---- */

enum { MACHINES_MOST = 5, GANGS_MOST = 12, GROUPS_MOST = 3, TASKS_MOST = 12, STEPS = 4000 };

struct gang {
    uint64_t run;
    struct demand_group groups[GROUPS_MOST];
    struct demand demand;
    struct spot spots[GROUPS_MOST * TASKS_MOST];
};

/* A world with its own books, kept in another way than sched's. */
struct world {
    struct machine machines[MACHINES_MOST];
    uint32_t n_machines;
    struct gang *queue[GANGS_MOST], *running[GANGS_MOST];
    size_t n_queue, n_running;
    uint64_t next_run;
};

static struct machine random_machine(void) {
    const uint32_t n_gpus = random_below(2) ? random_below(9) : 0;
    struct machine machine = { .gpus = n_gpus ? ((gpu_set)1 << n_gpus) - 1 : 0 };

    if (random_below(4) == 0)
        machine.gpus &= ~(gpu_set)2; /* an index may be missing */
    machine.amount[RESOURCE_CPU] = 1000 * (milli)(1 + random_below(16));
    machine.amount[RESOURCE_MEMORY] = 1000 * (milli)random_below(4096);
    machine.amount[RESOURCE_GPU] = 1000 * (milli)__builtin_popcountll(machine.gpus);
    return machine;
}

static struct gang *random_gang(uint64_t run) {
    struct gang *gang = calloc(1, sizeof *gang);

    assert_non_null(gang);
    gang->run = run;
    gang->demand.groups = gang->groups;
    gang->demand.n_groups = 1 + random_below(GROUPS_MOST);
    for (size_t g = 0; g < gang->demand.n_groups; g++) {
        struct demand_group *group = &gang->groups[g];

        group->n = 1 + random_below(random_below(3) ? 3 : TASKS_MOST);
        group->amount[RESOURCE_CPU] = (milli)random_below(8) * 250;
        group->amount[RESOURCE_MEMORY] = random_below(2) ? 1000 * (milli)random_below(1024) : 0;
        group->amount[RESOURCE_GPU] = random_below(3) == 0 ? 1000 * (milli)random_below(3) : 0;
        gang->demand.n_tasks += group->n;
        for (enum resource r = 0; r < RESOURCE_COUNT; r++)
            gang->demand.total[r] += group->amount[r] * (milli)group->n;
    }
    return gang;
}

/* What is held, as the ledger would have it. */
struct books {
    struct hold holds[GANGS_MOST * GROUPS_MOST * TASKS_MOST];
    struct waiting queue[GANGS_MOST];
    struct situation situation;
};

static const struct situation *open_books(const struct world *world, struct books *books) {
    size_t n = 0;

    for (size_t i = 0; i < world->n_running; i++) {
        const struct gang *gang = world->running[i];
        uint32_t at = 0;

        for (size_t g = 0; g < gang->demand.n_groups; g++)
            for (uint32_t k = 0; k < gang->groups[g].n; k++, at++) {
                struct hold *hold = &books->holds[n++];

                *hold = (struct hold){ .run = gang->run,
                                       .machine = gang->spots[at].machine,
                                       .gpus = gang->spots[at].gpus };
                memcpy(hold->amount, gang->groups[g].amount, sizeof hold->amount);
            }
    }
    for (size_t i = 0; i < world->n_queue; i++)
        books->queue[i] = (struct waiting){ world->queue[i]->run, world->queue[i]->demand };
    books->situation = (struct situation){ .machines = world->machines,
                                           .n_machines = world->n_machines,
                                           .holds = books->holds,
                                           .n_holds = n,
                                           .queue = books->queue,
                                           .n_queue = world->n_queue };
    return &books->situation;
}

static void remove_at(struct gang **list, size_t *n, size_t i) {
    memmove(list + i, list + i + 1, (*n - i - 1) * sizeof *list);
    --*n;
}

/* ---- the laws ---- */

/* Adds up by machine what every task has, and compares with what there is. */
static void nothing_is_booked_twice(const struct world *world) {
    milli sum[MACHINES_MOST][RESOURCE_COUNT] = { 0 };
    gpu_set taken[MACHINES_MOST] = { 0 };

    for (size_t i = 0; i < world->n_running; i++) {
        const struct gang *gang = world->running[i];
        uint32_t at = 0;

        for (size_t g = 0; g < gang->demand.n_groups; g++)
            for (uint32_t k = 0; k < gang->groups[g].n; k++, at++) {
                const struct spot *spot = &gang->spots[at];

                assert_true(spot->machine < world->n_machines);
                assert_int_equal(__builtin_popcountll(spot->gpus) * 1000,
                                 gang->groups[g].amount[RESOURCE_GPU]);
                assert_int_equal(spot->gpus & ~world->machines[spot->machine].gpus, 0);
                assert_int_equal(spot->gpus & taken[spot->machine], 0);
                taken[spot->machine] |= spot->gpus;
                for (enum resource r = 0; r < RESOURCE_COUNT; r++)
                    sum[spot->machine][r] += gang->groups[g].amount[r];
            }
    }
    for (uint32_t m = 0; m < world->n_machines; m++)
        for (enum resource r = 0; r < RESOURCE_COUNT; r++)
            assert_true(sum[m][r] <= world->machines[m].amount[r]);
}

/* Without those ahead and without whoever holds what is short, the gang starts. On one machine:
 * on several, what is free may be in pieces, which no sum shows. */
static void explanation_is_true(const struct world *world, const struct situation *situation,
                                size_t i, const struct decision *said) {
    struct books *fewer = calloc(1, sizeof *fewer);
    struct situation without = *situation;
    struct decision decision;
    bool names_something = said->n_ahead > 0;

    assert_non_null(fewer);
    without.n_holds = 0;
    without.holds = fewer->holds;
    for (size_t h = 0; h < situation->n_holds; h++) {
        bool is_named = world->n_machines > 1;

        for (enum resource r = 0; r < RESOURCE_COUNT; r++)
            is_named |= said->is_short[r] && situation->holds[h].amount[r] > 0;
        if (!is_named)
            fewer->holds[without.n_holds++] = situation->holds[h];
    }
    for (enum resource r = 0; r < RESOURCE_COUNT; r++)
        names_something |= said->is_short[r];
    assert_true(names_something || world->n_machines > 1);
    without.queue = &situation->queue[i];
    without.n_queue = 1;
    sched_decide(&without, 0, &decision, NULL);
    assert_int_equal(decision.fit, FIT_NOW);
    free(fewer);
}

/* The tasks before the first without room are placed together, and with it they are not. */
static void blocked_task_is_true(const struct situation *situation, size_t i,
                                 const struct decision *said) {
    const struct demand *demand = &situation->queue[i].demand;
    struct demand_group groups[GROUPS_MOST];
    uint32_t n = said->blocked.at;

    assert_true(said->is_blocked || said->n_ahead > 0);
    if (i > 0)
        return; /* those ahead take something, too */
    assert_true(n < demand->n_tasks);
    if (said->blocked.resource < RESOURCE_COUNT)
        assert_true(said->blocked.needed > said->blocked.left);
    assert_true(situation->n_machines > 1 || said->blocked.resource < RESOURCE_COUNT);
    for (uint32_t more = 0; more < 2; more++) {
        struct demand part = { .groups = groups, .n_tasks = n + more };
        struct waiting self = { .run = 0 };
        struct situation alone = *situation;
        struct decision decision;
        uint32_t left = n + more;

        for (size_t g = 0; g < demand->n_groups && left > 0; g++) {
            groups[g] = demand->groups[g];
            groups[g].n = groups[g].n < left ? groups[g].n : left;
            left -= groups[g].n;
            part.n_groups++;
            for (enum resource r = 0; r < RESOURCE_COUNT; r++)
                part.total[r] += groups[g].amount[r] * (milli)groups[g].n;
        }
        self.demand = part;
        alone.queue = &self;
        alone.n_queue = 1;
        sched_decide(&alone, 0, &decision, NULL);
        assert_int_equal(decision.fit, more ? FIT_LATER : FIT_NOW);
    }
}

/* What sched says of one run's end happens when that run ends. */
static void whose_end_helps_is_true(const struct situation *situation, size_t i) {
    for (size_t h = 0; h < situation->n_holds; h++) {
        const uint64_t run = situation->holds[h].run;
        struct hold *left;
        struct situation after = *situation;
        struct decision decision;

        if (h > 0 && situation->holds[h - 1].run == run)
            continue;
        left = calloc(situation->n_holds, sizeof *left);
        assert_non_null(left);
        after.holds = left;
        after.n_holds = 0;
        for (size_t k = 0; k < situation->n_holds; k++)
            if (situation->holds[k].run != run)
                left[after.n_holds++] = situation->holds[k];
        sched_decide(&after, i, &decision, NULL);
        assert_int_equal(sched_starts_without(situation, i, run), decision.fit == FIT_NOW);
        free(left);
    }
}

/* Lets everybody have their turn, from the front; a gang that never fits is refused. */
static void serve(struct world *world) {
    struct books *books = calloc(1, sizeof *books);
    bool somebody_waits = false;

    assert_non_null(books);
    for (size_t i = 0; i < world->n_queue;) {
        struct gang *gang = world->queue[i];
        const struct situation *situation = open_books(world, books);
        struct decision decision;

        sched_decide(situation, i, &decision, gang->spots);
        if (decision.fit == FIT_NOW) {
            assert_false(somebody_waits); /* the head is never overtaken */
            world->running[world->n_running++] = gang;
            remove_at(world->queue, &world->n_queue, i);
            nothing_is_booked_twice(world);
        } else if (decision.fit == FIT_NEVER) {
            remove_at(world->queue, &world->n_queue, i);
            free(gang);
        } else {
            assert_int_equal(decision.n_ahead > 0, somebody_waits);
            if (somebody_waits)
                assert_int_equal(decision.head, world->queue[0]->run);
            somebody_waits = true;
            blocked_task_is_true(situation, i, &decision);
            explanation_is_true(world, situation, i, &decision);
            whose_end_helps_is_true(situation, i);
            i++;
        }
    }
    free(books);
}

static void play(uint32_t machines_most) {
    struct world world = { .n_machines = 1 + random_below(machines_most) };

    for (uint32_t m = 0; m < world.n_machines; m++)
        world.machines[m] = random_machine();
    for (int step = 0; step < 40; step++) {
        if (world.n_queue + world.n_running < GANGS_MOST && random_below(3))
            world.queue[world.n_queue++] = random_gang(++world.next_run);
        else if (world.n_running > 0) {
            const size_t i = random_below((uint32_t)world.n_running);

            free(world.running[i]);
            remove_at(world.running, &world.n_running, i);
        }
        serve(&world);
        /* Nobody is forgotten: an empty machine starts its first. */
        assert_true(world.n_queue == 0 || world.n_running > 0);
    }
    while (world.n_queue > 0)
        free(world.queue[--world.n_queue]);
    while (world.n_running > 0)
        free(world.running[--world.n_running]);
}

static void on_one_machine_all_laws_hold(void **unused) {
    (void)unused;
    state = seed;
    for (int i = 0; i < STEPS / 40; i++)
        play(1);
}

static void on_several_machines_all_laws_hold(void **unused) {
    (void)unused;
    state = seed + 1;
    for (int i = 0; i < STEPS / 40; i++)
        play(MACHINES_MOST);
}

static void a_gang_that_is_not_placed_leaves_everything_as_it_was(void **unused) {
    (void)unused;
    state = seed + 2;
    for (int i = 0; i < 2000; i++) {
        struct machine machine = random_machine();
        struct gang *gang = random_gang(1);
        struct cluster cluster, untouched;
        struct blocked blocked;

        cluster_init(&cluster, &machine, 1);
        cluster_init(&untouched, &machine, 1);
        if (cluster_find_blocked(&cluster, &gang->demand, gang->spots, &blocked))
            assert_false(cluster_place(&cluster, &gang->demand, gang->spots));
        for (enum resource r = 0; r < RESOURCE_COUNT; r++)
            assert_int_equal(cluster_free(&cluster, r), cluster_free(&untouched, r));
        assert_int_equal(cluster.gpus[0], untouched.gpus[0]);
        cluster_release(&cluster);
        cluster_release(&untouched);
        free(gang);
    }
}

/* ---- single cases ---- */

static void a_demand_reads_back_as_it_was_written(void **unused) {
    (void)unused;
    state = seed + 3;
    for (int i = 0; i < 500; i++) {
        AUTO(arena) arena = ARENA_INIT;
        AUTO(buf) text = BUF_INIT(4096);
        struct gang *gang = random_gang(1);
        struct demand back;
        struct error err;

        assert_int_equal(demand_write(&gang->demand, &text, &err), 0);
        assert_int_equal(demand_read(text.data, &arena, &back, &err), 0);
        assert_int_equal(back.n_groups, gang->demand.n_groups);
        assert_int_equal(back.n_tasks, gang->demand.n_tasks);
        assert_memory_equal(back.groups, gang->groups, back.n_groups * sizeof *back.groups);
        assert_memory_equal(back.total, gang->demand.total, sizeof back.total);
        free(gang);
    }
}

static void what_is_no_demand_is_refused(void **unused) {
    static const char *const wrong[] = { "x",
                                         "1",
                                         "1*",
                                         "0*1,1,1,1",
                                         "1*1,1,1",
                                         "1*1,1,1,1,1",
                                         "1*1,1,1,-1",
                                         "1*1,1,1,99999999999999999999",
                                         "4294967295*1,0,0,0 1*1,0,0,0",
                                         "1*1,1,1,1;1*1,1,1,1" };
    AUTO(arena) arena = ARENA_INIT;
    struct demand demand;
    struct error err;

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_int_equal(demand_read(wrong[i], &arena, &demand, &err), -1);
}

/* ---- what why promises ---- */

/* A file of which one number can be changed. */
struct draft {
    uint32_t n_role[ROLE_COUNT];
    milli amount[ROLE_COUNT][RESOURCE_COUNT];
};

static struct draft random_draft(void) {
    struct draft draft = { .n_role = { 1, 1 + random_below(6), 1 + random_below(4) } };

    for (enum role role = 0; role < ROLE_COUNT; role++) {
        draft.amount[role][RESOURCE_CPU] = 10 * (milli)random_below(300);
        draft.amount[role][RESOURCE_MEMORY] = 1000 * (milli)random_below(900);
        draft.amount[role][RESOURCE_GPU] = random_below(3) ? 0 : 1000 * (milli)random_below(4);
    }
    return draft;
}

static struct plan *compile_draft(const struct draft *draft) {
    static const char *const heads[ROLE_COUNT] = { "", "default_worker: ", "default_ps: " };
    char text[2048], parts[ROLE_COUNT][256];
    struct plan *plan;

    for (enum role role = 0; role < ROLE_COUNT; role++) {
        size_t n = (size_t)snprintf(parts[role], sizeof parts[role], "%s{", heads[role]);

        n += (size_t)snprintf(parts[role] + n, sizeof parts[role] - n, "%s",
                              role == ROLE_MASTER ? "" : "resources: {");
        for (enum resource r = 0; r <= RESOURCE_GPU; r++)
            n += (size_t)snprintf(parts[role] + n, sizeof parts[role] - n, "%s%s: {requests: %s}",
                                  r ? ", " : "", resource_name(r),
                                  milli_text(draft->amount[role][r]).text);
        snprintf(parts[role] + n, sizeof parts[role] - n, "%s", role == ROLE_MASTER ? "}" : "}}");
    }
    snprintf(text, sizeof text,
             "version: 1\nkind: experiment\nframework: tensorflow\nenvironment:\n"
             "  resources: %s\n  replicas:\n    n_workers: %u\n    n_ps: %u\n    %s\n    %s\n"
             "run: {cmd: 'true'}\n",
             parts[ROLE_MASTER], draft->n_role[ROLE_WORKER], draft->n_role[ROLE_PS],
             parts[ROLE_WORKER], parts[ROLE_PS]);
    plan = compile_text(text);
    if (!plan)
        fail_msg("it does not compile:\n%s", text);
    return plan;
}

/* What comes of a file at the end of a queue that has nobody else. */
static enum fit fit_of(const struct draft *draft, const struct situation *others) {
    AUTO_PTR(plan) plan = compile_draft(draft);
    AUTO(arena) arena = ARENA_INIT;
    struct situation situation = *others;
    struct decision decision;
    struct waiting self = { 0 };

    demand_of_plan(plan, &(struct demand_terms){ 0 }, &arena, &self.demand);
    if (self.demand.n_tasks == 0)
        return FIT_NOW;
    situation.queue = &self;
    situation.n_queue = 1;
    sched_decide(&situation, 0, &decision, NULL);
    return decision.fit;
}

static struct draft apply(const struct draft *draft, const struct remedy *remedy, milli more) {
    struct draft changed = *draft;

    if (remedy->kind == REMEDY_FEWER) {
        assert_int_equal(remedy->n_before, draft->n_role[remedy->role]);
        changed.n_role[remedy->role] = remedy->n + (uint32_t)more;
    } else {
        assert_int_equal(remedy->most_before, draft->amount[remedy->role][remedy->resource]);
        changed.amount[remedy->role][remedy->resource] =
            remedy->amount + more * (remedy->resource == RESOURCE_CPU ? 10 : 1000);
    }
    return changed;
}

/* The files are really changed, compiled and placed; with one step less of a change they wait. */
static void what_is_told_to_change_lets_the_file_start_and_no_smaller_change_does(void **unused) {
    uint32_t n_remedies[2] = { 0 }, n_never = 0;

    (void)unused;
    state = seed + 4;
    for (int i = 0; i < 1500; i++) {
        const struct machine machine = random_machine();
        const struct hold hold = { .run = 1,
                                   .amount = { [RESOURCE_CPU] = machine.amount[RESOURCE_CPU] / 2,
                                               [RESOURCE_MEMORY] =
                                                   machine.amount[RESOURCE_MEMORY] / 3 },
                                   .gpus = machine.gpus & 5 };
        const struct draft draft = random_draft();
        AUTO_PTR(plan) plan = compile_draft(&draft);
        AUTO(arena) arena = ARENA_INIT;
        struct waiting self = { .run = 2 };
        const struct situation situation = { &machine, 1, &hold, 1, &self, 1 };
        struct remedy remedies[REMEDIES_MOST];
        struct decision decision;
        size_t n;

        demand_of_plan(plan, &(struct demand_terms){ 0 }, &arena, &self.demand);
        if (self.demand.n_tasks == 0)
            continue;
        sched_decide(&situation, 0, &decision, NULL);
        n = sched_remedies(&situation, 0, plan, &(struct demand_terms){ 0 }, remedies);
        if (decision.fit == FIT_NOW) {
            assert_int_equal(n, 0);
            continue;
        }
        n_never += decision.fit == FIT_NEVER && n > 0;
        assert_true(decision.is_blocked && decision.blocked.resource < RESOURCE_COUNT);
        assert_true(decision.blocked.needed > decision.blocked.left);
        for (size_t k = 0; k < n; k++) {
            const struct draft changed = apply(&draft, &remedies[k], 0);
            const struct draft smaller = apply(&draft, &remedies[k], 1);

            assert_int_equal(fit_of(&changed, &situation), FIT_NOW);
            if (memcmp(&smaller, &draft, sizeof draft) != 0)
                assert_int_not_equal(fit_of(&smaller, &situation), FIT_NOW);
            assert_true(k == 0 || remedies[k - 1].given_up <= remedies[k].given_up);
            n_remedies[remedies[k].kind]++;
        }
    }
    assert_true(n_remedies[REMEDY_FEWER] > 10 && n_remedies[REMEDY_LESS] > 10 && n_never > 10);
}

static void who_waits_behind_others_is_told_of_no_change(void **unused) {
    const struct machine machine = { .amount = { [RESOURCE_CPU] = 2000 } };
    const struct hold hold = { .run = 1, .amount = { [RESOURCE_CPU] = 1000 } };
    const struct draft draft = { .n_role = { 1, 2, 1 },
                                 .amount = { [ROLE_WORKER] = { [RESOURCE_CPU] = 1000 } } };
    AUTO_PTR(plan) plan = compile_draft(&draft);
    AUTO(arena) arena = ARENA_INIT;
    struct waiting queue[2] = { { .run = 2 }, { .run = 3 } };
    const struct situation situation = { &machine, 1, &hold, 1, queue, 2 };
    const struct demand_terms terms = { 0 };
    struct remedy remedies[REMEDIES_MOST];

    (void)unused;
    demand_of_plan(plan, &terms, &arena, &queue[0].demand);
    queue[1].demand = queue[0].demand;
    assert_true(sched_remedies(&situation, 0, plan, &terms, remedies) > 0);
    assert_int_equal(sched_remedies(&situation, 1, plan, &terms, remedies), 0);
}

static const char mixed[] =
    "version: 1\nkind: experiment\nframework: tensorflow\n"
    "environment:\n"
    "  resources: {cpu: {limits: 2}}\n"
    "  replicas:\n"
    "    n_workers: 3\n"
    "    n_ps: 2\n"
    "    default_worker: {resources: {cpu: {requests: 1}, gpu: {requests: 1}}}\n"
    "    worker: [{index: 1, resources: {memory: {requests: 64, limits: 128}}}]\n"
    "run: {cmd: 'true'}\n";

static void requests_count_then_limits_and_who_asks_nothing_is_left_out(void **unused) {
    AUTO_PTR(plan) plan = compile_text(mixed);
    AUTO(arena) arena = ARENA_INIT;
    struct demand demand;

    (void)unused;
    assert_non_null(plan);
    demand_of_plan(plan, &(struct demand_terms){ 0 }, &arena, &demand);
    assert_int_equal(demand.n_tasks, 4); /* the servers ask for nothing */
    assert_int_equal(demand.n_groups, 3);
    assert_int_equal(demand.total[RESOURCE_CPU], 4000);
    assert_int_equal(demand.total[RESOURCE_MEMORY], 64000);
    assert_int_equal(demand.total[RESOURCE_GPU], 2000);
    assert_int_equal(demand.groups[0].n, 2); /* those with a GPU first */
    assert_int_equal(demand.ranks[0], 1);
    assert_int_equal(demand.ranks[1], 3);
}

static void terms_leave_out_resources_and_cut_roles(void **unused) {
    AUTO_PTR(plan) plan = compile_text(mixed);
    AUTO(arena) arena = ARENA_INIT;
    struct demand_terms terms = { .leaves_out = { [RESOURCE_GPU] = true } };
    struct demand demand;

    (void)unused;
    assert_non_null(plan);
    demand_of_plan(plan, &terms, &arena, &demand);
    assert_int_equal(demand.total[RESOURCE_GPU], 0);
    terms.is_cut[ROLE_WORKER] = true;
    terms.n_role[ROLE_WORKER] = 1;
    demand_of_plan(plan, &terms, &arena, &demand);
    assert_int_equal(demand.n_tasks, 2);
    assert_int_equal(demand.total[RESOURCE_CPU], 3000);
}

static void more_held_than_there_is_leaves_nothing_free(void **unused) {
    const struct machine machine = { .amount = { [RESOURCE_CPU] = 2000 } };
    const struct hold hold = { .run = 1, .amount = { [RESOURCE_CPU] = 5000 } };
    struct demand_group group = { .amount = { [RESOURCE_CPU] = 1000 }, .n = 1 };
    const struct waiting waiting = {
        2, { .groups = &group, .n_groups = 1, .n_tasks = 1, .total = { 1000 } }
    };
    const struct situation situation = { &machine, 1, &hold, 1, &waiting, 1 };
    struct decision decision;

    (void)unused;
    sched_decide(&situation, 0, &decision, NULL);
    assert_int_equal(decision.fit, FIT_LATER);
    assert_int_equal(decision.free[RESOURCE_CPU], 0);
    assert_true(sched_starts_without(&situation, 0, 1));
}

/* The goal for 5,000 machines is 100,000 tasks a second; sanitizers and a busy machine leave a
 * tenth of it here. */
static void placing_does_not_slow_down_with_the_number_of_machines(void **unused) {
    enum { N = 5000, GANG = 8 };
    struct machine *machines = calloc(N, sizeof *machines);
    struct spot spots[GANG];
    struct cluster cluster;
    struct timespec start, end;
    uint64_t placed = 0;
    double seconds;

    (void)unused;
    assert_non_null(machines);
    for (uint32_t i = 0; i < N; i++) {
        machines[i].gpus = 0xff;
        machines[i].amount[RESOURCE_CPU] = 64000;
        machines[i].amount[RESOURCE_MEMORY] = 256000000;
    }
    cluster_init(&cluster, machines, N);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    for (;;) {
        struct demand_group group = { .amount = { 4000, 16000000, 1000, 0 }, .n = GANG };
        const struct demand demand = { .groups = &group, .n_groups = 1, .n_tasks = GANG };

        if (!cluster_place(&cluster, &demand, spots))
            break;
        placed += GANG;
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    printf("# %llu tasks placed on %d machines in %.1f ms of CPU: %.0f tasks/s\n",
           (unsigned long long)placed, N, seconds * 1e3, (double)placed / seconds);
    assert_int_equal(placed, N * 8);
    assert_true((double)placed / seconds > 10000);
    cluster_release(&cluster);
    free(machines);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_one_machine_all_laws_hold),
        cmocka_unit_test(on_several_machines_all_laws_hold),
        cmocka_unit_test(a_gang_that_is_not_placed_leaves_everything_as_it_was),
        cmocka_unit_test(a_demand_reads_back_as_it_was_written),
        cmocka_unit_test(what_is_no_demand_is_refused),
        cmocka_unit_test(what_is_told_to_change_lets_the_file_start_and_no_smaller_change_does),
        cmocka_unit_test(who_waits_behind_others_is_told_of_no_change),
        cmocka_unit_test(requests_count_then_limits_and_who_asks_nothing_is_left_out),
        cmocka_unit_test(terms_leave_out_resources_and_cut_roles),
        cmocka_unit_test(more_held_than_there_is_leaves_nothing_free),
        cmocka_unit_test(placing_does_not_slow_down_with_the_number_of_machines),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
