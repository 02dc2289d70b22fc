/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/acks.h"
#include "shim/ending.h"
#include "shim/frame.h"
#include "shim/outgoing.h"

static void a_frame_is_read_as_it_was_written(void **state) {
    static struct outgoing out;
    const struct frame frame = { .kind = FRAME_DATA,
                                 .offset = UINT64_C(0x1122334455667788),
                                 .name = "outputs/a",
                                 .name_length = 9,
                                 .bytes = "content",
                                 .length = 7 };
    const long whole = FRAME_HEADER + 9 + 7;
    const char *bytes = (const char *)out.bytes + OUTGOING_HEAD;
    struct frame read = { 0 };

    (void)state;
    outgoing_frame(&out, &frame);
    assert_int_equal(strtol((const char *)out.bytes, NULL, 16), whole);
    assert_int_equal(out.end, OUTGOING_HEAD + whole + OUTGOING_TAIL);
    assert_memory_equal(out.bytes + out.end - 2, "\r\n", 2);
    for (long n = 0; n < whole; n++) {
        char *copy = malloc((size_t)n + 1);

        assert_non_null(copy);
        memcpy(copy, bytes, (size_t)n);
        assert_int_equal(frame_read(copy, (size_t)n, &read), 0);
        free(copy);
    }
    assert_int_equal(frame_read(bytes, (size_t)whole, &read), whole);
    assert_int_equal(read.kind, FRAME_DATA);
    assert_true(read.offset == frame.offset);
    assert_memory_equal(read.name, "outputs/a", read.name_length);
    assert_memory_equal(read.bytes, "content", read.length);
}

static void a_frame_of_the_largest_size_fits(void **state) {
    static struct outgoing out;
    static char name[FRAME_NAME_MAX + 1];
    struct frame read;

    (void)state;
    memset(name, 'n', FRAME_NAME_MAX);
    memset(outgoing_bytes(&out, FRAME_NAME_MAX), 'b', FRAME_BYTES_MAX);
    outgoing_file(&out, FRAME_DATA, name, 0, FRAME_BYTES_MAX);
    assert_int_equal(out.end, sizeof out.bytes);
    assert_int_equal(frame_read((const char *)out.bytes + OUTGOING_HEAD, out.end, &read),
                     FRAME_HEADER + FRAME_NAME_MAX + FRAME_BYTES_MAX);
    assert_int_equal(read.bytes[FRAME_BYTES_MAX - 1], 'b');
}

static void bytes_that_are_no_frame_are_refused(void **state) {
    static const struct {
        size_t at;
        char value;
    } rows[] = { { 0, 0 }, { 0, FRAME_DONE + 1 }, { 1, 1 }, { 3, 0x7f }, { 6, 2 }, { 7, 1 } };
    unsigned char header[FRAME_HEADER];
    struct frame read;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        frame_write(header, &(struct frame){ .kind = FRAME_IDLE });
        assert_int_equal(frame_read((char *)header, sizeof header, &read), FRAME_HEADER);
        header[rows[i].at] = (unsigned char)rows[i].value;
        assert_int_equal(frame_read((char *)header, sizeof header, &read), -1);
    }
}

static void acknowledgements_are_found_again_and_never_go_back(void **state) {
    struct acks acks = { 0 };
    char name[32];

    (void)state;
    assert_int_equal(acks_get(&acks, "log"), 0);
    for (int round = 2; round >= 1; round--) {
        for (uint64_t i = 0; i < 20000; i++) {
            const int n = snprintf(name, sizeof name, "outputs/%d", (int)i);

            acks_put(&acks, name, (size_t)n, i * (uint64_t)round);
        }
    }
    assert_int_equal(acks.n, 20000);
    for (uint64_t i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "outputs/%d", (int)i);
        assert_int_equal(acks_get(&acks, name), i * 2);
    }
    assert_int_equal(acks_get(&acks, "outputs/20000"), 0);
    acks_release(&acks);
}

static void names_beyond_the_bound_are_not_kept(void **state) {
    struct acks acks = { 0 };
    char name[32];

    (void)state;
    for (int i = 0; i < ACKS_MAX + 1000; i++)
        acks_put(&acks, name, (size_t)snprintf(name, sizeof name, "%d", i), 1);
    assert_true(acks.n <= ACKS_MAX);
    assert_int_equal(acks_get(&acks, "1"), 1);
    acks_put(&acks, "1", 1, 7); /* one that is known goes on */
    assert_int_equal(acks_get(&acks, "1"), 7);
    acks_release(&acks);
}

static void an_end_is_told_in_one_object(void **state) {
    static const struct {
        struct ending ending;
        int code;
        const char *text;
    } rows[] = {
        { { .has_run = true, .status = 3 << 8, .log = 10, .lost = 2, .unsent = 1 },
          3,
          "{\"exit\": 3, \"log\": 10, \"lost\": 2, \"unsent\": 1}" },
        { { .has_run = true, .status = 9 },
          137,
          "{\"signal\": 9, \"log\": 0, \"lost\": 0, \"unsent\": 0}" },
        { { .has_run = true, .status = 15, .gave_up = "its master is gone" },
          143,
          "{\"gave_up\": \"its master is gone\", \"signal\": 15, \"log\": 0, \"lost\": 0, "
          "\"unsent\": 0}" },
        { { .error = ENOENT },
          127,
          "{\"error\": \"command not found\", \"errno\": 2, \"log\": 0, \"lost\": 0, \"unsent\": "
          "0}" },
        { { .error = EACCES },
          126,
          "{\"error\": \"Permission denied\", \"errno\": 13, \"log\": 0, \"lost\": 0, \"unsent\": "
          "0}" },
        { { .refused = "a\"b\\c\nd\xff" },
          125,
          "{\"error\": \"a?b?c?d?\", \"log\": 0, \"lost\": 0, \"unsent\": 0}" },
    };
    char out[ENDING_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(ending_code(&rows[i].ending), rows[i].code);
        assert_int_equal(ending_print(&rows[i].ending, out), strlen(rows[i].text));
        assert_string_equal(out, rows[i].text);
    }
}

static void a_cause_of_any_length_fits(void **state) {
    static char cause[100000];
    const struct ending ending = { .refused = cause, .gave_up = cause };
    char out[ENDING_MAX];

    (void)state;
    memset(cause, 'x', sizeof cause - 1);
    assert_true(ending_print(&ending, out) < ENDING_MAX);
    assert_int_equal(out[strlen(out) - 1], '}');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_is_read_as_it_was_written),
        cmocka_unit_test(a_frame_of_the_largest_size_fits),
        cmocka_unit_test(bytes_that_are_no_frame_are_refused),
        cmocka_unit_test(acknowledgements_are_found_again_and_never_go_back),
        cmocka_unit_test(names_beyond_the_bound_are_not_kept),
        cmocka_unit_test(an_end_is_told_in_one_object),
        cmocka_unit_test(a_cause_of_any_length_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
