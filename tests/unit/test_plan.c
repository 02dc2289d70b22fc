/* SPDX-License-Identifier: Apache-2.0 */
/* The laws of a plan, over random topologies in every spelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "compile.h"
#include "plan/environment.h"
#include "plan/fold.h"

enum { ROUNDS = 300, TEXT_MAX = 1 << 20, MOST = 7 };

/* ---- random topologies ---- */

static uint64_t state;

static uint32_t pick(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* MYELIN_SEED repeats a run that failed. */
static void seed(void) {
    const char *given = getenv("MYELIN_SEED");

    state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("# MYELIN_SEED=%llu\n", (unsigned long long)state);
}

struct attributes {
    bool has_resources, has_selector;
    uint32_t cpu, memory; /* requests; limits are one more */
    uint32_t selector;
};

struct role_case {
    uint32_t count;
    struct attributes defaults, listed[MOST];
};

struct topology {
    enum framework framework;
    bool masterless;
    bool has_secret; /* which all tasks share */
    struct attributes master;
    struct role_case roles[ROLE_COUNT];
};

static struct attributes random_attributes(void) {
    return (struct attributes){ .has_resources = pick(2),
                                .has_selector = pick(2),
                                .cpu = pick(9),
                                .memory = pick(4000),
                                .selector = pick(3) };
}

static struct topology random_topology(void) {
    struct topology t = { .framework = FRAMEWORK_NONE + 1 + pick(FRAMEWORK_COUNT - 1) };

    t.master = random_attributes();
    t.has_secret = pick(2);
    for (enum role role = ROLE_WORKER; role < ROLE_COUNT; role++) {
        struct role_case *r = &t.roles[role];

        if (!framework_facts(t.framework)->role_names[role])
            continue;
        r->count = 1 + pick(MOST - 1);
        r->defaults = random_attributes();
        for (uint32_t i = 0; i < r->count; i++)
            if (pick(2))
                r->listed[i] = random_attributes();
    }
    if (t.framework == FRAMEWORK_TENSORFLOW && pick(3) == 0) {
        t.masterless = true;
        t.master.has_resources = t.master.has_selector = false;
    }
    return t;
}

/* ---- spellings ---- */

enum spelling {
    REPLICAS,           /* framework: x, replicas: {default_worker, worker[]} */
    SECTION,            /* tensorflow: {default_worker, worker[]} */
    SECTION_RESOURCES,  /* tensorflow: {default_worker_resources, worker_resources[], …} */
    REPLICAS_RESOURCES, /* framework: x, replicas with those */
    MIXED,              /* defaults in one spelling, lists in the other */
    SPELLINGS,
};

static struct buf text = BUF_INIT(TEXT_MAX);

static void put(const char *fmt, ...) PRINTF_LIKE(1, 2);
static void put(const char *fmt, ...) {
    char line[256];
    struct error err;
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    assert_int_equal(buf_append(&text, line, strlen(line), &err), 0);
}

static void put_ranges(const struct attributes *a) {
    put("cpu: {requests: %u, limits: %u}, memory: {request: %u, limits: %u}", a->cpu, a->cpu + 1,
        a->memory, a->memory + 1);
}

static void put_pod(const struct attributes *a) {
    if (a->has_resources) {
        put("resources: {");
        put_ranges(a);
        put("}, ");
    }
    if (a->has_selector)
        put("node_selector: {disk: d%u}, ", a->selector);
}

static void put_role(enum role role, const struct role_case *r, bool old_defaults, bool old_lists) {
    const char *name = role_name(role);

    put("    n_%s: %u\n", role == ROLE_WORKER ? "workers" : "ps", r->count);
    if (old_defaults) {
        if (r->defaults.has_resources) {
            put("    default_%s_resources: {", name);
            put_ranges(&r->defaults);
            put("}\n");
        }
        if (r->defaults.has_selector)
            put("    default_%s_node_selectors: {disk: d%u}\n", name, r->defaults.selector);
    } else {
        put("    default_%s: {", name);
        put_pod(&r->defaults);
        put("}\n");
    }
    if (!old_lists) {
        put("    %s:\n", name);
        for (uint32_t i = r->count; i-- > 0;) {
            put("      - {index: %u, ", i);
            put_pod(&r->listed[i]);
            put("}\n");
        }
        return;
    }
    put("    %s_resources:\n", name);
    for (uint32_t i = 0; i < r->count; i++)
        if (r->listed[i].has_resources) {
            put("      - {index: %u, ", i);
            put_ranges(&r->listed[i]);
            put("}\n");
        }
    put("    %s_node_selectors:\n", name);
    for (uint32_t i = 0; i < r->count; i++)
        if (r->listed[i].has_selector)
            put("      - {index: %u, disk: d%u}\n", i, r->listed[i].selector);
}

static const char *spell(const struct topology *t, enum spelling spelling) {
    bool section = spelling == SECTION || spelling == SECTION_RESOURCES || spelling == MIXED;
    bool old_defaults = spelling == SECTION_RESOURCES || spelling == REPLICAS_RESOURCES;
    bool old_lists = old_defaults || spelling == MIXED;
    const char *name = framework_facts(t->framework)->name;

    buf_clear(&text);
    put("version: 1\nkind: experiment\n");
    if (!section)
        put("framework: %s\n", name);
    put("environment:\n");
    if (t->master.has_resources) {
        put("  resources: {");
        put_ranges(&t->master);
        put("}\n");
    }
    if (t->master.has_selector)
        put("  node_selector: {disk: d%u}\n", t->master.selector);
    if (t->has_secret)
        put("  secret_refs: [s]\n");
    put("  %s:\n", section ? name : "replicas");
    if (t->masterless)
        put("    master: false\n");
    for (enum role role = ROLE_WORKER; role < ROLE_COUNT; role++)
        if (t->roles[role].count > 0)
            put_role(role, &t->roles[role], old_defaults, old_lists);
    put("run: {cmd: python3 train.py}\n");
    return text.data;
}

static char *plan_as_json(const struct plan *plan) {
    struct buf out = BUF_INIT(TEXT_MAX);
    struct json json;
    struct error err;

    json_init(&json, JSON_COMPACT, json_to_buf, &out);
    plan_write_json(plan, &json);
    assert_int_equal(json_finish(&json, &err), 0);
    return buf_take(&out);
}

/* ---- laws ---- */

static void all_spellings_of_one_topology_give_byte_equal_plans(void **unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct topology t = random_topology();
        char *first = NULL;

        for (enum spelling s = 0; s < SPELLINGS; s++) {
            AUTO_PTR(plan) plan = compile_text(spell(&t, s));
            char *json;

            assert_non_null(plan);
            json = plan_as_json(plan);
            if (first)
                assert_string_equal(json, first);
            else
                first = strdup(json);
            free(json);
        }
        free(first);
    }
}

static void ranks_are_a_permutation_in_the_order_of_roles(void **unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct topology t = random_topology();
        AUTO_PTR(plan) plan = compile_text(spell(&t, REPLICAS));
        uint32_t rank = 0;

        assert_non_null(plan);
        assert_int_equal(plan->n_role[ROLE_MASTER], !t.masterless);
        for (enum role role = 0; role < ROLE_COUNT; role++) {
            if (role != ROLE_MASTER)
                assert_int_equal(plan->n_role[role], t.roles[role].count);
            for (uint32_t i = 0; i < plan->n_role[role]; i++, rank++) {
                const struct task *task = &plan->tasks[rank];

                assert_int_equal(task->role, role);
                assert_int_equal(task->index, i);
                assert_int_equal(plan_find_task(plan, role, i), rank);
                assert_int_equal(plan_find_named(plan, task_name(task).text), rank);
            }
        }
        assert_int_equal(rank, plan->n_tasks);
    }
}

static void totals_are_the_sums_over_all_tasks(void **unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct topology t = random_topology();
        AUTO_PTR(plan) plan = compile_text(spell(&t, SECTION_RESOURCES));

        assert_non_null(plan);
        for (enum resource r = 0; r < RESOURCE_COUNT; r++) {
            milli requests = 0, limits = 0;
            bool any = false;

            for (uint32_t i = 0; i < plan->n_tasks; i++) {
                const struct resource_range *range = &plan->tasks[i].profile->resources.of[r];

                if (range->requests == ABSENT)
                    continue;
                any = true;
                requests += range->requests;
                limits += range->limits;
            }
            assert_int_equal(plan->totals.of[r].requests, any ? requests : ABSENT);
            assert_int_equal(plan->totals.of[r].limits, any ? limits : ABSENT);
        }
    }
}

static void assert_has(const struct profile *profile, const struct attributes *want) {
    char disk[16];

    if (want->has_resources) {
        assert_int_equal(profile->resources.of[RESOURCE_CPU].requests, want->cpu * 1000);
        assert_int_equal(profile->resources.of[RESOURCE_MEMORY].limits, (want->memory + 1) * 1000);
    }
    snprintf(disk, sizeof disk, "d%u", want->selector);
    if (want->has_selector)
        assert_string_equal(node_get(profile->given[ATTRIBUTE_NODE_SELECTOR], "disk")->text, disk);
}

static void a_default_fills_what_an_index_leaves_open_and_never_changes_what_it_says(
    void **unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct topology t = random_topology();
        AUTO_PTR(plan) plan = compile_text(spell(&t, MIXED));

        assert_non_null(plan);
        for (uint32_t i = 0; i < plan->n_tasks; i++) {
            const struct task *task = &plan->tasks[i];
            struct attributes want = t.master;

            if (task->role != ROLE_MASTER) {
                const struct role_case *r = &t.roles[task->role];
                const struct attributes *own = &r->listed[task->index];

                want = r->defaults;
                if (own->has_resources) {
                    want.has_resources = true;
                    want.cpu = own->cpu;
                    want.memory = own->memory;
                }
                if (own->has_selector) {
                    want.has_selector = true;
                    want.selector = own->selector;
                }
            }
            assert_has(task->profile, &want);
            if (!want.has_resources)
                assert_true(resources_equal(&task->profile->resources, &resources_none));
            if (!want.has_selector)
                assert_null(task->profile->given[ATTRIBUTE_NODE_SELECTOR]);
            assert_int_equal(!!task->profile->given[ATTRIBUTE_SECRET_REFS], t.has_secret);
        }
    }
}

static const char *first_ref(const struct plan *plan, uint32_t rank, enum attribute attribute) {
    const struct node *list = plan->tasks[rank].profile->given[attribute];

    return list && list->count > 0 ? list->items[0].text : "";
}

static void what_is_of_the_experiment_reaches_every_task_that_has_none_of_its_own(void **unused) {
    AUTO_PTR(plan)
    plan = compile_text("version: 1\nkind: experiment\nframework: tensorflow\n"
                        "environment:\n"
                        "  persistence: {data: [d], outputs: o}\n"
                        "  service_account: trainer\n"
                        "  labels: {a: b}\n"
                        "  replicas:\n"
                        "    n_workers: 2\n"
                        "    n_ps: 1\n"
                        "    default_ps: {persistence: {data: [p]}}\n"
                        "    worker: [{index: 1, data_refs: [w]}]\n"
                        "run: {cmd: x}\n");
    static const char *const data[] = { "d", "d", "w", "p" };

    (void)unused;
    assert_non_null(plan);
    for (uint32_t rank = 0; rank < plan->n_tasks; rank++) {
        assert_string_equal(first_ref(plan, rank, ATTRIBUTE_DATA_REFS), data[rank]);
        assert_string_equal(first_ref(plan, rank, ATTRIBUTE_ARTIFACT_REFS), "o");
        assert_string_equal(plan->tasks[rank].profile->given[ATTRIBUTE_SERVICE_ACCOUNT]->text,
                            "trainer");
        assert_int_equal(!!plan->tasks[rank].profile->given[ATTRIBUTE_LABELS], rank == 0);
    }
}

/* ---- the environment ---- */

static const char *value_of(const struct environment *environment, const char *name) {
    size_t n = strlen(name);
    const char *found = NULL;

    for (size_t i = 0; i < environment->len; i++)
        if (strncmp(environment->items[i], name, n) == 0 && environment->items[i][n] == '=') {
            assert_null(found); /* no variable is set twice */
            found = environment->items[i] + n + 1;
        }
    return found;
}

/* Variables that every task must see alike. */
static const char *const shared[FRAMEWORK_COUNT][8] = {
    [FRAMEWORK_TENSORFLOW] = { "POLYAXON_CLUSTER" },
    [FRAMEWORK_MXNET] = { "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_WORKER",
                          "DMLC_NUM_SERVER", "POLYAXON_CLUSTER" },
    [FRAMEWORK_PYTORCH] = { "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "POLYAXON_CLUSTER" },
    [FRAMEWORK_HOROVOD] = { "HOROVOD_SIZE", "HOROVOD_CROSS_SIZE", "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                            "HOROVOD_GLOO_RENDEZVOUS_PORT", "POLYAXON_CLUSTER" },
};

static void every_task_sees_the_same_cluster(void **unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct topology t = random_topology();
        AUTO_PTR(plan) plan = compile_text(spell(&t, REPLICAS));
        char *first[8] = { 0 };
        char *cluster = NULL;
        struct error err;

        assert_non_null(plan);
        for (uint32_t rank = 0; rank < plan->n_tasks; rank++) {
            struct environment environment = { 0 };
            const char *config;

            assert_int_equal(plan_environment(plan, rank, &facts_symbolic, &environment, &err), 0);
            for (size_t i = 0; shared[t.framework][i]; i++) {
                const char *value = value_of(&environment, shared[t.framework][i]);

                assert_non_null(value);
                if (first[i])
                    assert_string_equal(value, first[i]);
                else
                    first[i] = strdup(value);
            }
            config = value_of(&environment, "TF_CONFIG");
            assert_int_equal(config != NULL, t.framework == FRAMEWORK_TENSORFLOW);
            if (config) {
                size_t n = (size_t)(strstr(config, "\"task\"") - config);

                assert_null(strstr(config, "\"master\"")); /* TensorFlow 2 refuses it */
                if (cluster)
                    assert_memory_equal(config, cluster, n);
                else
                    cluster = strdup(config);
            }
            environment_release(&environment);
        }
        for (size_t i = 0; i < 8; i++)
            free(first[i]);
        free(cluster);
    }
}

static void the_rank_that_a_task_is_told_is_its_own(void **unused) {
    static const struct {
        enum framework framework;
        const char *variable;
    } told[] = { { FRAMEWORK_PYTORCH, "RANK" },
                 { FRAMEWORK_HOROVOD, "HOROVOD_RANK" },
                 { FRAMEWORK_HOROVOD, "HOROVOD_CROSS_RANK" },
                 { FRAMEWORK_TENSORFLOW, "MYELIN_RANK" } };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        struct topology t = { .framework = told[i].framework,
                              .roles[ROLE_WORKER] = { .count = 5 } };
        AUTO_PTR(plan) plan = compile_text(spell(&t, REPLICAS));
        struct error err;

        assert_non_null(plan);
        for (uint32_t rank = 0; rank < plan->n_tasks; rank++) {
            struct environment environment = { 0 };
            char want[16];

            snprintf(want, sizeof want, "%u", rank);
            assert_int_equal(plan_environment(plan, rank, &facts_symbolic, &environment, &err), 0);
            assert_string_equal(value_of(&environment, told[i].variable), want);
            environment_release(&environment);
        }
    }
}

static void a_cluster_that_no_system_could_be_told_of_is_refused_at_plan_time(void **unused) {
    static const char file[] = "version: 1\nkind: experiment\nframework: %s\n"
                               "environment: {replicas: {n_workers: %d}}\nrun: {cmd: x}\n";
    char yaml[200];

    (void)unused;
    snprintf(yaml, sizeof yaml, file, "tensorflow", 20000);
    assert_null(compile_text(yaml));
    snprintf(yaml, sizeof yaml, file, "tensorflow", 3000);
    plan_free(compile_text(yaml));
    snprintf(yaml, sizeof yaml, file, "pytorch", 100000);
    AUTO_PTR(plan) plan = compile_text(yaml);
    struct environment environment = { 0 };
    struct error err;

    assert_non_null(plan);
    assert_int_equal(plan_environment(plan, 77777, &facts_symbolic, &environment, &err), 0);
    environment_release(&environment);
}

/* ---- commands ---- */

static void only_a_command_without_shell_syntax_is_executed_directly(void **unused) {
    static const struct {
        const char *command;
        enum command_manner manner;
    } cases[] = {
        { "python3 train.py --lr=0.1", COMMAND_DIRECT },
        { "./train.sh a:b,c @d 50%", COMMAND_DIRECT },
        { "LR=1 python3 train.py", COMMAND_SHELL },
        { "cd /tmp", COMMAND_SHELL },
        { "cdrecord x", COMMAND_DIRECT },
        { "python3 train.py > log", COMMAND_SHELL },
        { "python3 train.py && echo done", COMMAND_SHELL },
        { "python3 train.py $RANK", COMMAND_SHELL },
        { "python3 -c 'print(1)'", COMMAND_SHELL },
        { "ls *.py", COMMAND_SHELL },
        { "cat ~/x", COMMAND_SHELL },
        { "echo a\\.b", COMMAND_SHELL },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char yaml[300];

        snprintf(yaml, sizeof yaml, "version: 1\nkind: experiment\nrun:\n  cmd: |\n    %s\n",
                 cases[i].command);
        AUTO_PTR(plan) plan = compile_text(yaml);

        assert_non_null(plan);
        assert_string_equal(plan->command, cases[i].command);
        assert_int_equal(plan->command_manner, cases[i].manner);
    }
}

/* ---- folding ---- */

static bool is_wanted(const void *set, uint32_t rank) {
    return ((const char *)set)[rank] == 'x';
}

static void sets_of_tasks_fold_to_ranges(void **unused) {
    static const struct {
        const char *set, *folded;
    } cases[] = { { "xxxxxxxx", "master.0, worker[0-4], ps[0-1]" },
                  { "........", "" },
                  { ".xx.xx..", "worker[0-1,3-4]" },
                  { "..x....x", "worker.1, ps.1" },
                  { "x.x.x...", "master.0, worker[1,3]" } };
    struct topology t = { .framework = FRAMEWORK_TENSORFLOW,
                          .roles = { [ROLE_WORKER] = { .count = 5 }, [ROLE_PS] = { .count = 2 } } };
    AUTO_PTR(plan) plan = compile_text(spell(&t, SECTION));
    struct error err;

    (void)unused;
    assert_non_null(plan);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf) out = BUF_INIT(1000);

        assert_int_equal(fold_tasks(plan, is_wanted, cases[i].set, &out, &err), 0);
        assert_string_equal(out.data, cases[i].folded);
    }
}

static void groups_part_the_tasks_and_members_of_one_are_given_the_same(void **unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct topology t = random_topology();
        AUTO_PTR(plan) plan = compile_text(spell(&t, SECTION));
        struct task_groups groups;
        uint32_t seen = 0;

        assert_non_null(plan);
        groups = group_tasks(plan);
        for (size_t g = 0; g < groups.len; g++) {
            const struct task_group *group = &groups.list[g];
            const struct resources *r = &plan->tasks[group->ranks[0]].profile->resources;

            for (uint32_t i = 0; i < group->n; i++) {
                assert_int_equal(plan->tasks[group->ranks[i]].role, group->role);
                assert_true(resources_equal(&plan->tasks[group->ranks[i]].profile->resources, r));
                assert_true(i == 0 || group->ranks[i] > group->ranks[i - 1]);
            }
            seen += group->n;
        }
        assert_int_equal(seen, plan->n_tasks);
        task_groups_release(&groups);
    }
}

static int release_text(void **unused) {
    (void)unused;
    buf_release(&text);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_spellings_of_one_topology_give_byte_equal_plans),
        cmocka_unit_test(ranks_are_a_permutation_in_the_order_of_roles),
        cmocka_unit_test(totals_are_the_sums_over_all_tasks),
        cmocka_unit_test(a_default_fills_what_an_index_leaves_open_and_never_changes_what_it_says),
        cmocka_unit_test(what_is_of_the_experiment_reaches_every_task_that_has_none_of_its_own),
        cmocka_unit_test(every_task_sees_the_same_cluster),
        cmocka_unit_test(the_rank_that_a_task_is_told_is_its_own),
        cmocka_unit_test(a_cluster_that_no_system_could_be_told_of_is_refused_at_plan_time),
        cmocka_unit_test(only_a_command_without_shell_syntax_is_executed_directly),
        cmocka_unit_test(sets_of_tasks_fold_to_ranges),
        cmocka_unit_test(groups_part_the_tasks_and_members_of_one_are_given_the_same),
    };

    seed();
    return cmocka_run_group_tests(tests, NULL, release_text);
}
