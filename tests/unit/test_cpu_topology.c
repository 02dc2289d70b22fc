/* SPDX-License-Identifier: Apache-2.0 */
/* How CPUs lie, on machines that hwloc's own variables describe, and on this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/local/topology.h"

extern char **environ;

static int forget_machine(void **unused) {
    (void)unused;
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_XMLFILE");
    unsetenv("HWLOC_THISSYSTEM");
    return 0;
}

static void synthetic(const char *text, struct layout *layout) {
    setenv("HWLOC_SYNTHETIC", text, 1);
    topology_read(layout);
    assert_string_equal(layout->trouble, "");
    assert_false(layout->is_this_machine);
}

static void two_sockets_with_two_threads_a_core_are_told_apart(void **unused) {
    struct layout layout;

    (void)unused;
    synthetic("package:2 [numa(memory=34359738368)] core:4 pu:2", &layout);
    assert_int_equal(layout.n_packages, 2);
    assert_int_equal(layout.n_nodes, 2);
    assert_int_equal(layout.n_cores, 8);
    assert_int_equal(layout.n_cpus, 16);
    assert_int_equal(cpus_count(&layout.allowed), 16);
    assert_int_equal(layout.nodes[1].memory_mib, 32768);
    for (uint32_t i = 0; i < layout.n_cpus; i++) {
        assert_int_equal(layout.cpus[i].core, i / 2);
        assert_int_equal(layout.cpus[i].node, i / 8);
        assert_int_equal(layout.cpus[i].package, i / 8);
    }
}

static void numbers_are_the_kernels_not_the_order(void **unused) {
    struct layout layout;

    (void)unused;
    /* As most machines number them: all first threads, then all second ones. */
    synthetic("package:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)", &layout);
    for (uint32_t i = 0; i < layout.n_cpus; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_int_equal(layout.cpus[i].core == layout.cpus[k].core,
                             (layout.cpus[i].cpu + 4u) % 8 == layout.cpus[k].cpu);
}

static void several_nodes_of_one_package_are_nodes(void **unused) {
    struct layout layout;

    (void)unused;
    synthetic("package:1 group:4 [numa] core:2 pu:1", &layout);
    assert_int_equal(layout.n_packages, 1);
    assert_int_equal(layout.n_nodes, 4);
    assert_int_equal(layout.cpus[7].node, 3);
    assert_int_equal(layout.cpus[7].package, 0);
}

static void a_machine_beyond_what_a_set_holds_is_cut_not_overrun(void **unused) {
    struct layout layout;

    (void)unused;
    synthetic("package:4 [numa] core:256 pu:2", &layout);
    assert_true(layout.n_cpus > 0 && layout.n_cpus <= CPUS_MAX);
    for (uint32_t i = 0; i < layout.n_cpus; i++)
        assert_true(layout.cpus[i].cpu < CPUS_MAX && layout.cpus[i].core < CPUS_MAX);
}

static void a_description_that_is_none_leaves_a_flat_machine(void **unused) {
    struct layout layout;
    struct cpus allowed;

    (void)unused;
    setenv("HWLOC_XMLFILE", "/nonexistent", 1);
    topology_read(&layout);
    topology_allowed(&allowed);
    assert_int_equal(layout.n_cpus, cpus_count(&allowed));
    assert_true(layout.n_nodes >= 1);
}

static void this_machine_is_what_the_kernel_says(void **unused) {
    struct layout layout;
    cpu_set_t set;

    (void)unused;
    topology_read(&layout);
    assert_true(layout.is_this_machine);
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_int_equal(cpus_count(&layout.allowed), CPU_COUNT(&set));
    for (uint32_t i = 0; i < CPUS_MAX; i++)
        assert_int_equal(cpus_has(&layout.allowed, i), CPU_ISSET(i, &set) != 0);
}

static void what_we_may_not_use_is_there_and_not_allowed(void **unused) {
    struct layout all, fewer;
    cpu_set_t before, one;
    unsigned first = 0;

    (void)unused;
    topology_read(&all);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    topology_read(&fewer);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(fewer.n_cpus, all.n_cpus);
    assert_int_equal(cpus_count(&fewer.allowed), 1);
    assert_true(cpus_has(&fewer.allowed, first));
}

static void reading_leaves_neither_affinity_nor_environment_changed(void **unused) {
    struct layout layout;
    cpu_set_t before, after;
    size_t n = 0, m = 0;

    (void)unused;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (environ[n])
        n++;
    topology_read(&layout);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    while (environ[m])
        m++;
    assert_int_equal(m, n);
    assert_null(getenv("HWLOC_PLUGINS_PATH"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(two_sockets_with_two_threads_a_core_are_told_apart, forget_machine),
        cmocka_unit_test_setup(numbers_are_the_kernels_not_the_order, forget_machine),
        cmocka_unit_test_setup(several_nodes_of_one_package_are_nodes, forget_machine),
        cmocka_unit_test_setup(a_machine_beyond_what_a_set_holds_is_cut_not_overrun,
                               forget_machine),
        cmocka_unit_test_setup(a_description_that_is_none_leaves_a_flat_machine, forget_machine),
        cmocka_unit_test_setup(this_machine_is_what_the_kernel_says, forget_machine),
        cmocka_unit_test_setup(what_we_may_not_use_is_there_and_not_allowed, forget_machine),
        cmocka_unit_test_setup(reading_leaves_neither_affinity_nor_environment_changed,
                               forget_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
