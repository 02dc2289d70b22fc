/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "supervise/tail.h"

/* Whatever the pieces, the tail is the end of all of them. */
static void a_tail_is_the_end_of_what_was_added(void **state) {
    enum { ALL = 5 * TAIL_MOST };
    char *all = malloc(ALL);
    struct tail *tail = calloc(1, sizeof *tail);
    size_t at = 0;

    (void)state;
    srand(11);
    for (size_t i = 0; i < ALL; i++)
        all[i] = (char)rand();
    while (at < ALL) {
        AUTO(buf) found = BUF_INIT(TAIL_MOST);
        const size_t most = rand() % 4 ? 5000 : TAIL_MOST + 5000;
        size_t n = 1 + (size_t)rand() % most, kept;

        n = n < ALL - at ? n : ALL - at;
        tail_add(tail, all + at, n);
        at += n;
        kept = at < TAIL_MOST ? at : TAIL_MOST;
        tail_read(tail, &found);
        assert_int_equal(found.len, kept);
        assert_memory_equal(found.data, all + at - kept, kept);
    }
    free(tail);
    free(all);
}

static void a_reader_with_little_room_gets_the_last_of_it(void **state) {
    AUTO(buf) found = BUF_INIT(5);
    struct tail *tail = calloc(1, sizeof *tail);
    struct error err;

    (void)state;
    tail_read(tail, &found);
    assert_int_equal(found.len, 0);
    tail_add(tail, "abcdef", 6);
    assert_int_equal(buf_append(&found, "12", 2, &err), 0);
    tail_read(tail, &found);
    assert_string_equal(found.data, "12def");
    free(tail);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tail_is_the_end_of_what_was_added),
        cmocka_unit_test(a_reader_with_little_room_gets_the_last_of_it),
    };

    return cmocka_run_group_tests_name("tail", tests, NULL, NULL);
}
