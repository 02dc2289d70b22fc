/* SPDX-License-Identifier: Apache-2.0 */
/* Right polyaxonfiles and what they come to; amounts of resources. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "reading.h"

#define HEAD "version: 1\nkind: experiment\nrun: {cmd: a}\n"

static void assert_valid(const struct reading *r) {
    if (!r->spec)
        fail_msg("%s", reading_said(r));
}

static const struct replica *replica_at(const struct role_spec *role, uint32_t index) {
    for (uint32_t i = 0; i < role->n_replicas; i++)
        if (role->replicas[i].index == index)
            return &role->replicas[i];
    return NULL;
}

/* One topology in each spelling: three workers, worker 1 larger, a default, two servers. */
static const char *const spellings[] = {
    HEAD "framework: tensorflow\n"
         "environment:\n"
         "  replicas:\n"
         "    n_workers: 3\n"
         "    n_ps: 2\n"
         "    default_worker: {resources: {cpu: {limits: 1}}, node_selector: {disk: ssd}}\n"
         "    worker: [{index: 1, resources: {cpu: {limits: 2.5}}, node_selector: {disk: hdd}}]\n",
    HEAD "environment:\n"
         "  tensorflow:\n"
         "    n_workers: 3\n"
         "    n_ps: 2\n"
         "    default_worker: {resources: {cpu: {limits: 1}}, node_selectors: {disk: ssd}}\n"
         "    worker: [{index: 1, resources: {cpu: {limit: 2.5}}, node_selectors: {disk: hdd}}]\n",
    HEAD "environment:\n"
         "  tensorflow:\n"
         "    n_workers: 3\n"
         "    n_ps: 2\n"
         "    default_worker_resources: {cpu: {limits: 1}}\n"
         "    worker_resources: [{index: 1, cpu: {limits: 2.5}}]\n"
         "    default_worker_node_selectors: {disk: ssd}\n"
         "    worker_node_selectors: [{index: 1, disk: hdd}]\n",
    HEAD "environment:\n"
         "  tensorflow: {n_ps: 2, default_worker_node_selector: {disk: ssd}}\n"
         "  replicas:\n"
         "    n_workers: '3'\n"
         "    default_worker: {resources: {cpu: {limits: '1'}}}\n"
         "    worker: [{index: 1.0, node_selector: {disk: hdd}}]\n"
         "    worker_resources: [{index: 1, cpu: {limits: 2500e-3}}]\n",
};

static void every_spelling_of_a_topology_gives_the_same_spec(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
        AUTO(reading) r = reading_of(spellings[i]);
        const struct role_spec *workers;
        const struct replica *second;

        assert_valid(&r);
        workers = &r.spec->roles[ROLE_WORKER];
        second = replica_at(workers, 1);
        assert_int_equal(r.spec->framework, FRAMEWORK_TENSORFLOW);
        assert_string_equal(r.spec->framework_label, "tensorflow");
        assert_true(r.spec->has_master);
        assert_int_equal(workers->count, 3);
        assert_int_equal(r.spec->roles[ROLE_PS].count, 2);
        assert_int_equal(workers->default_resources.of[RESOURCE_CPU].limits, 1000);
        assert_int_equal(workers->default_resources.of[RESOURCE_CPU].requests, ABSENT);
        assert_int_equal(workers->n_replicas, 1);
        assert_non_null(second);
        assert_int_equal(second->resources.of[RESOURCE_CPU].limits, 2500);
        assert_string_equal(
            node_get(&second->pod.given[ATTRIBUTE_NODE_SELECTOR].at->value, "disk")->text, "hdd");
        assert_int_equal(second->pod.given[ATTRIBUTE_NODE_SELECTOR].at->value.count, 1);
        assert_string_equal(
            node_get(&workers->defaults.given[ATTRIBUTE_NODE_SELECTOR].at->value, "disk")->text,
            "ssd");
    }
}

static void listed_indexes_come_out_sorted_and_below_the_count(void **state) {
    AUTO(reading)
    r = reading_of(HEAD "environment:\n"
                        "  mxnet:\n"
                        "    n_workers: 10\n"
                        "    n_ps: 1\n"
                        "    worker: [{index: 9}, {index: 0}, {index: 4}]\n"
                        "    worker_resources: [{index: 7}, {index: 4}]\n");
    const struct role_spec *workers;

    (void)state;
    assert_valid(&r);
    workers = &r.spec->roles[ROLE_WORKER];
    assert_int_equal(workers->n_replicas, 4);
    for (uint32_t i = 0; i < workers->n_replicas; i++) {
        assert_true(workers->replicas[i].index < workers->count);
        assert_true(i == 0 || workers->replicas[i - 1].index < workers->replicas[i].index);
    }
}

static void a_master_is_there_unless_the_file_says_otherwise(void **state) {
    static const struct {
        const char *text;
        enum framework framework;
        bool has_master;
        uint32_t workers;
    } rows[] = {
        { HEAD, FRAMEWORK_NONE, true, 0 },
        { HEAD "environment:\n", FRAMEWORK_NONE, true, 0 },
        { HEAD "framework: jax\n", FRAMEWORK_NONE, true, 0 },
        { HEAD "framework: tensorflow\n", FRAMEWORK_NONE, true, 0 },
        { HEAD "framework: pytorch\n", FRAMEWORK_PYTORCH, true, 0 },
        { HEAD "environment: {tensorflow: {n_workers: 2}}\n", FRAMEWORK_TENSORFLOW, true, 2 },
        { HEAD "environment: {tensorflow: {n_workers: 2, master: true}}\n", FRAMEWORK_TENSORFLOW,
          true, 2 },
        { HEAD "environment: {tensorflow: {n_workers: 2, master: no}}\n", FRAMEWORK_TENSORFLOW,
          false, 2 },
        { HEAD "environment: {horovod: {n_workers: 2}}\n", FRAMEWORK_HOROVOD, true, 2 },
        { HEAD "backend: mpi\nenvironment: {horovod: {n_workers: 2}}\n", FRAMEWORK_HOROVOD, false,
          2 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(reading) r = reading_of(rows[i].text);

        assert_valid(&r);
        assert_int_equal(r.spec->framework, rows[i].framework);
        assert_int_equal(r.spec->has_master, rows[i].has_master);
        assert_int_equal(r.spec->roles[ROLE_WORKER].count, rows[i].workers);
    }
}

static void a_gang_has_a_task(void **state) {
    AUTO(reading) r = reading_of(HEAD "backend: mpi\nenvironment: {horovod: {}}\n");

    (void)state;
    assert_diag(&r, 0, 5, 15, "there has to be a worker", "n_workers: 1");
}

static void the_other_sections_are_read(void **state) {
    AUTO(reading)
    r = reading_of("version: '1'\nkind: experiment\nname: a-b_1\ntags: [x, y]\n"
                   "logging: {level: WARN}\nbackend: kubeflow\n"
                   "environment: {max_restarts: 3, resources: {memory: {requests: 0}}}\n"
                   "build: {ref: 3}\nrun: {cmd: [a, 'b  c', d]}\n");
    AUTO(reading)
    old = reading_of("version: 1.0\nkind: experiment\n"
                     "settings: {logging: {level: DEBUG}}\n"
                     "run: {cmd: a, image: 'r:5000/x/y:1'}\n");
    AUTO(reading)
    job = reading_of("version: 1\nkind: job\nbuild: {dockerfile: D}\nrun: {cmd: x}\n");

    (void)state;
    assert_valid(&r);
    assert_string_equal(r.spec->name, "a-b_1");
    assert_int_equal(r.spec->tags->count, 2);
    assert_string_equal(r.spec->log_level, "WARN");
    assert_int_equal(r.spec->backend, BACKEND_KUBEFLOW);
    assert_int_equal(r.spec->max_restarts, 3);
    assert_int_equal(r.spec->master_resources.of[RESOURCE_MEMORY].requests, 0);
    assert_string_equal(r.spec->command, "a && b  c && d");
    assert_true(r.spec->has_build);
    assert_valid(&old);
    assert_string_equal(old.spec->log_level, "DEBUG");
    assert_true(old.spec->has_build);
    assert_valid(&job);
    assert_string_equal(job.spec->log_level, "INFO");
    assert_false(job.spec->roles[ROLE_WORKER].count);
}

static void amounts_print_as_a_person_writes_them(void **state) {
    static const struct {
        milli amount;
        const char *text;
    } rows[] = { { 0, "0" },       { 1, "0.001" },    { 10, "0.01" },
                 { 500, "0.5" },   { 1000, "1" },     { 1500, "1.5" },
                 { 1050, "1.05" }, { 256000, "256" }, { INT64_MAX, "9223372036854775.807" } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(milli_text(rows[i].amount).text, rows[i].text);
}

static void sums_of_resources_count_what_is_given(void **state) {
    struct resources sum = resources_none, one = resources_none, two = resources_none;

    (void)state;
    assert_true(resources_equal(&sum, &one));
    one.of[RESOURCE_CPU] = (struct resource_range){ 500, ABSENT };
    two.of[RESOURCE_CPU] = (struct resource_range){ 250, 2000 };
    two.of[RESOURCE_GPU] = (struct resource_range){ ABSENT, 1000 };
    resources_add(&sum, &one);
    assert_true(resources_equal(&sum, &one));
    resources_add(&sum, &two);
    assert_int_equal(sum.of[RESOURCE_CPU].requests, 750);
    assert_int_equal(sum.of[RESOURCE_CPU].limits, 2000);
    assert_int_equal(sum.of[RESOURCE_MEMORY].requests, ABSENT);
    resources_add(&sum, &resources_none);
    assert_int_equal(sum.of[RESOURCE_CPU].requests, 750);
    assert_int_equal(resources_reserved(&one, RESOURCE_CPU), 500);
    assert_int_equal(resources_reserved(&two, RESOURCE_GPU), 1000);
    assert_int_equal(resources_reserved(&two, RESOURCE_TPU), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_of_a_topology_gives_the_same_spec),
        cmocka_unit_test(listed_indexes_come_out_sorted_and_below_the_count),
        cmocka_unit_test(a_master_is_there_unless_the_file_says_otherwise),
        cmocka_unit_test(a_gang_has_a_task),
        cmocka_unit_test(the_other_sections_are_read),
        cmocka_unit_test(amounts_print_as_a_person_writes_them),
        cmocka_unit_test(sums_of_resources_count_what_is_given),
    };

    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
