/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/descriptors.h"
#include "base/stack.h"

/* The number that the next file gets: those below are in use. */
static int next_descriptor(void) {
    const int fd = dup(STDIN_FILENO);

    assert_true(fd >= 0);
    close(fd);
    return fd;
}

static void limit_to(int n, struct rlimit *before) {
    struct rlimit less;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
    less = *before;
    less.rlim_cur = (rlim_t)n;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
}

static void as_many_as_are_free_can_be_had_and_no_more(void **state) {
    const int next = next_descriptor();
    struct rlimit before;
    struct error err;

    (void)state;
    limit_to(next + 5, &before);
    for (unsigned n = 0; n <= 5; n++)
        assert_int_equal(descriptors_check(n, &err), 0);
    for (unsigned n = 6; n <= 20; n++) {
        assert_int_equal(descriptors_check(n, &err), -1);
        assert_int_equal(err.code, ERROR_EXHAUSTED);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(next_descriptor(), next); /* nothing stays open */
}

static void the_sentence_names_the_limit(void **state) {
    const int next = next_descriptor();
    struct rlimit before;
    struct error err;
    char limit[40];

    (void)state;
    limit_to(next + 1, &before);
    assert_int_equal(descriptors_check(3, &err), -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    snprintf(limit, sizeof limit, "the limit is %d ", next + 1);
    assert_non_null(strstr(err.message, limit));
}

/* The size of the mapping that the kernel calls the stack. */
static unsigned long stack_bytes(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long from = 0, to = 0, found = 0;
    char line[512];

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "[stack]") && sscanf(line, "%lx-%lx", &from, &to) == 2)
            found = to - from;
    fclose(maps);
    return found;
}

static void a_reserved_stack_is_mapped_before_it_is_used(void **state) {
    (void)state;
    assert_true(stack_reserve());
    assert_true(stack_bytes() >= 1 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_are_free_can_be_had_and_no_more),
        cmocka_unit_test(the_sentence_names_the_limit),
        cmocka_unit_test(a_reserved_stack_is_mapped_before_it_is_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
