/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/local/cgroup_map.h"

/* A machine with a tree for each controller, and a unified one without controllers. */
static const char hybrid_mounts[] =
    "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:10 master:1 - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
static const char hybrid_self[] = "12:cpuset:/\n"
                                  "4:memory:/user/7\n"
                                  "2:cpu,cpuacct:/batch\n"
                                  "1:name=systemd:/user.slice\n"
                                  "0::/\n";

static const char unified_mounts[] =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n";

static void assert_spot(const char *mounts, const char *self, const char *controller,
                        const char *path, size_t mount_len) {
    struct cgroup_spot spot = { 0 };

    assert_int_equal(cgroup_map_find(mounts, self, controller, &spot), CGROUP_FOUND);
    assert_string_equal(spot.path, path);
    assert_int_equal(spot.mount_len, mount_len);
}

static void assert_no_spot(const char *mounts, const char *self, const char *controller,
                           enum cgroup_found why) {
    struct cgroup_spot spot = { .path = "untouched", .mount_len = 7 };

    assert_int_equal(cgroup_map_find(mounts, self, controller, &spot), why);
    assert_string_equal(spot.path, "untouched");
    assert_int_equal(spot.mount_len, 7);
}

static void a_controller_is_found_in_its_own_tree(void **state) {
    (void)state;
    assert_spot(hybrid_mounts, hybrid_self, "memory", "/sys/fs/cgroup/memory/user/7",
                strlen("/sys/fs/cgroup/memory"));
    assert_spot(hybrid_mounts, hybrid_self, "cpuset", "/sys/fs/cgroup/cpuset",
                strlen("/sys/fs/cgroup/cpuset"));
}

static void controllers_that_share_a_tree_are_found_by_either_name(void **state) {
    (void)state;
    assert_spot(hybrid_mounts, hybrid_self, "cpu", "/sys/fs/cgroup/cpu,cpuacct/batch", 26);
    assert_spot(hybrid_mounts, hybrid_self, "cpuacct", "/sys/fs/cgroup/cpu,cpuacct/batch", 26);
}

static void a_name_is_no_part_of_another(void **state) {
    (void)state;
    assert_no_spot(hybrid_mounts, hybrid_self, "pids", CGROUP_NOT_MOUNTED);
    assert_no_spot("34 31 0:31 / /c rw - cgroup cgroup rw,cpuset\n", "3:cpuset:/\n", "cpu",
                   CGROUP_NOT_MOUNTED);
}

static void the_unified_tree_is_found_by_its_type(void **state) {
    (void)state;
    assert_spot(hybrid_mounts, hybrid_self, NULL, "/sys/fs/cgroup/unified", 22);
    assert_spot(unified_mounts, "0::/user.slice/session-3.scope\n", NULL,
                "/sys/fs/cgroup/user.slice/session-3.scope", 14);
    assert_no_spot(unified_mounts, "0::/a\n", "memory", CGROUP_NOT_MOUNTED);
}

static void a_container_sees_its_group_below_the_root_of_the_mount(void **state) {
    static const char mounts[] =
        "99 90 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";

    (void)state;
    assert_spot(mounts, "4:memory:/docker/abc/inner\n", "memory", "/sys/fs/cgroup/memory/inner",
                21);
    assert_spot(mounts, "4:memory:/docker/abc\n", "memory", "/sys/fs/cgroup/memory", 21);
    assert_no_spot(mounts, "4:memory:/docker/abcd\n", "memory", CGROUP_OUTSIDE);
    assert_no_spot(mounts, "4:memory:/\n", "memory", CGROUP_OUTSIDE);
}

static void a_group_that_leads_out_of_the_namespace_is_not_seen(void **state) {
    (void)state;
    assert_no_spot(unified_mounts, "0::/../other\n", NULL, CGROUP_OUTSIDE);
    assert_no_spot(unified_mounts, "0::/a/../../b\n", NULL, CGROUP_OUTSIDE);
    assert_spot(unified_mounts, "0::/a/..b/c..\n", NULL, "/sys/fs/cgroup/a/..b/c..", 14);
}

static void of_two_mounts_the_first_that_shows_the_group_counts(void **state) {
    static const char mounts[] = "98 90 0:32 /docker/abc /first rw - cgroup cgroup rw,memory\n"
                                 "99 90 0:32 / /second rw - cgroup cgroup rw,memory\n";

    (void)state;
    assert_spot(mounts, "4:memory:/docker/abc/x\n", "memory", "/first/x", 6);
    assert_spot(mounts, "4:memory:/user\n", "memory", "/second/user", 7);
}

static void a_path_is_what_its_escapes_stand_for(void **state) {
    (void)state;
    assert_spot("9 1 0:1 / /my\\040groups\\134n rw - cgroup2 x rw\n", "0::/a\\040b\n", NULL,
                "/my groups\\n/a\\040b", 12);
    assert_spot("9 1 0:1 / /odd\\04 rw - cgroup2 x rw\n", "0::/\n", NULL, "/odd\\04", 7);
    assert_no_spot("9 1 0:1 / /nul\\000 rw - cgroup2 x rw\n", "0::/\n", NULL, CGROUP_OUTSIDE);
}

static void what_is_not_told_is_not_guessed(void **state) {
    (void)state;
    assert_no_spot("", "", "memory", CGROUP_NOT_MOUNTED);
    assert_no_spot("\n\n- \n - cgroup2\n", "0::/\n", "memory", CGROUP_NOT_MOUNTED);
    assert_no_spot(hybrid_mounts, "", "memory", CGROUP_OUTSIDE);
    assert_no_spot(hybrid_mounts, "4:memory\n4:memory:\n4:memory:relative\n", "memory",
                   CGROUP_OUTSIDE);
}

static void a_path_that_is_too_long_is_refused_whole(void **state) {
    char *self = malloc(PATH_MAX + 64);

    (void)state;
    assert_non_null(self);
    memcpy(self, "0::/", 4);
    memset(self + 4, 'a', PATH_MAX);
    memcpy(self + 4 + PATH_MAX, "\n", 2);
    assert_no_spot(unified_mounts, self, NULL, CGROUP_OUTSIDE);
    free(self);
}

static void a_list_holds_whole_words(void **state) {
    static const char list[] = "cpuset cpu io memory\n";

    (void)state;
    assert_true(cgroup_map_lists(list, strlen(list), "cpu", ' '));
    assert_true(cgroup_map_lists(list, strlen(list), "memory", ' '));
    assert_false(cgroup_map_lists(list, strlen(list), "mem", ' '));
    assert_false(cgroup_map_lists(list, strlen(list), "pids", ' '));
    assert_false(cgroup_map_lists("", 0, "cpu", ' '));
}

static void a_value_is_that_of_the_whole_key(void **state) {
    static const char events[] = "low 0\noom 3\noom_kill 12\noom_group_kill x\n";

    (void)state;
    assert_int_equal(cgroup_map_value(events, "oom"), 3);
    assert_int_equal(cgroup_map_value(events, "oom_kill"), 12);
    assert_int_equal(cgroup_map_value(events, "low"), 0);
    assert_int_equal(cgroup_map_value(events, "oom_group_kill"), -1);
    assert_int_equal(cgroup_map_value(events, "oom_k"), -1);
    assert_int_equal(cgroup_map_value("", "low"), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_controller_is_found_in_its_own_tree),
        cmocka_unit_test(controllers_that_share_a_tree_are_found_by_either_name),
        cmocka_unit_test(a_name_is_no_part_of_another),
        cmocka_unit_test(the_unified_tree_is_found_by_its_type),
        cmocka_unit_test(a_container_sees_its_group_below_the_root_of_the_mount),
        cmocka_unit_test(a_group_that_leads_out_of_the_namespace_is_not_seen),
        cmocka_unit_test(of_two_mounts_the_first_that_shows_the_group_counts),
        cmocka_unit_test(a_path_is_what_its_escapes_stand_for),
        cmocka_unit_test(what_is_not_told_is_not_guessed),
        cmocka_unit_test(a_path_that_is_too_long_is_refused_whole),
        cmocka_unit_test(a_list_holds_whole_words),
        cmocka_unit_test(a_value_is_that_of_the_whole_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
