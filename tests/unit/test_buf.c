/* SPDX-License-Identifier: Apache-2.0 */
/* What is below everything: buffers, arenas, growing arrays, errors, files, interned texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/vec.h"
#include "codec/intern.h"

static void a_buf_is_a_text_before_the_first_append_and_after_each(void **state) {
    AUTO(buf) b = BUF_INIT(1000);
    struct error err;

    (void)state;
    assert_string_equal(b.data, "");
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(buf_append(&b, "x", 1, &err), 0);
        assert_int_equal(strlen(b.data), i + 1);
        assert_int_equal(b.len, i + 1);
    }
    buf_clear(&b);
    assert_string_equal(b.data, "");
    buf_release(&b);
    assert_string_equal(b.data, "");
    assert_int_equal(b.limit, 1000);
}

static void a_buf_takes_exactly_its_limit_and_a_failed_append_changes_nothing(void **state) {
    AUTO(buf) b = BUF_INIT(8);
    struct error err;

    (void)state;
    assert_int_equal(buf_append(&b, "12345", 5, &err), 0);
    assert_int_equal(buf_append(&b, "6789", 4, &err), -1);
    assert_int_equal(err.code, ERROR_EXHAUSTED);
    assert_non_null(strstr(err.message, "8 bytes"));
    assert_int_equal(buf_printf(&b, &err, "%d", 6789), -1);
    assert_string_equal(b.data, "12345");
    assert_int_equal(buf_printf(&b, &err, "%d", 678), 0);
    assert_string_equal(b.data, "12345678");
    assert_int_equal(buf_append(&b, "", 0, &err), 0);
    assert_int_equal(buf_append(&b, "9", 1, &err), -1);
    assert_int_equal(buf_append(&b, "9", SIZE_MAX, &err), -1);
    assert_string_equal(b.data, "12345678");
}

static void taken_bytes_belong_to_the_caller_and_leave_the_buf_empty(void **state) {
    AUTO(buf) b = BUF_INIT(10);
    struct error err;
    char *taken;

    (void)state;
    taken = buf_take(&b);
    assert_string_equal(taken, "");
    free(taken);
    assert_int_equal(buf_append(&b, "abc", 3, &err), 0);
    taken = buf_take(&b);
    assert_string_equal(taken, "abc");
    assert_string_equal(b.data, "");
    assert_int_equal(buf_append(&b, "0123456789", 10, &err), 0);
    free(taken);
}

static void arena_memory_is_zeroed_aligned_and_apart(void **state) {
    struct arena arena = ARENA_INIT;
    unsigned char *blocks[600];

    (void)state;
    for (size_t i = 0; i < 600; i++) {
        size_t size = i * i % 7919;

        blocks[i] = arena_alloc(&arena, size);
        assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], (int)(i % 255) + 1, size);
    }
    for (size_t i = 0; i < 600; i++)
        for (size_t k = 0; k < i * i % 7919; k++)
            assert_int_equal(blocks[i][k], i % 255 + 1);
    assert_true(arena.allocated >= 600);
    arena_release(&arena);
    assert_int_equal(arena.allocated, 0);
    arena_release(&arena);
}

static void arena_texts_end_where_they_should(void **state) {
    struct arena arena = ARENA_INIT;
    char *large;

    (void)state;
    assert_string_equal(arena_text(&arena, "abcdef", 3), "abc");
    assert_string_equal(arena_text(&arena, "", 0), "");
    assert_string_equal(arena_printf(&arena, "%s-%d", "x", 7), "x-7");
    large = arena_printf(&arena, "%*d", 3000000, 1);
    assert_int_equal(strlen(large), 3000000);
    assert_memory_equal(arena_copy(&arena, "a\0b", 3), "a\0b", 3);
    arena_release(&arena);
}

static void a_vec_keeps_its_items_and_gives_zeroed_new_ones(void **state) {
    VEC(size_t) vec = { 0 };

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        size_t *item = VEC_PUSH(&vec);

        assert_int_equal(*item, 0);
        *item = i;
        if (i % 3 == 0)
            vec.len--; /* the next push gets the same place, zeroed again */
    }
    assert_int_equal(vec.len, 666);
    for (size_t i = 0; i < vec.len; i++)
        assert_int_equal(vec.items[i] % 3 != 0, 1);
    VEC_RELEASE(&vec);
    assert_null(vec.items);
    assert_int_equal(vec.len + vec.capacity, 0);
}

static void equal_texts_are_interned_as_one_and_others_are_not(void **state) {
    struct arena arena = ARENA_INIT;
    struct interns interns = { .arena = &arena };
    const char *first[5000];
    char text[16];

    (void)state;
    for (int i = 0; i < 5000; i++) {
        int n = snprintf(text, sizeof text, "k%d", i);

        first[i] = intern(&interns, text, (size_t)n)->text;
        assert_string_equal(first[i], text);
        assert_int_equal(interned_of(first[i])->len, n);
    }
    for (int i = 0; i < 5000; i++) {
        int n = snprintf(text, sizeof text, "k%d", i);

        assert_ptr_equal(intern(&interns, text, (size_t)n)->text, first[i]);
    }
    assert_int_equal(interns.len, 5000);
    assert_string_equal(intern(&interns, "", 0)->text, "");
    assert_ptr_not_equal(intern(&interns, "k1", 1)->text, first[1]);
    interns_release(&interns);
    assert_string_equal(first[17], "k17");
    arena_release(&arena);
}

static void context_is_put_in_front_of_an_error_and_never_overflows(void **state) {
    struct error err;
    char *large = calloc(1, 2001);

    (void)state;
    assert_int_equal(error_set(&err, ERROR_INVALID, "line %d", 7), -1);
    assert_int_equal(error_wrap(&err, "cannot load %s", "x"), -1);
    assert_string_equal(err.message, "cannot load x: line 7");
    assert_int_equal(err.code, ERROR_INVALID);
    assert_int_equal(error_set_errno(&err, ENOENT, "x"), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    assert_string_equal(err.message, "x: No such file or directory");
    memset(large, 'y', 2000);
    assert_int_equal(error_wrap(&err, "%s", large), -1);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_int_equal(error_set_errno(&err, EIO, "%s", large), -1);
    assert_int_equal(err.code, ERROR_IO);
    free(large);
}

static void a_file_is_read_whole_or_the_reason_is_told(void **state) {
    char path[] = "/tmp/test_buf_XXXXXX";
    int fd = mkstemp(path);
    AUTO(buf) b = BUF_INIT(100000);
    AUTO(buf) small = BUF_INIT(99999);
    char *bytes = calloc(1, 100000);
    struct error err;

    (void)state;
    assert_true(fd >= 0);
    memset(bytes, 'z', 100000);
    assert_int_equal(write(fd, bytes, 100000), 100000);
    close(fd);
    assert_int_equal(file_read(path, &b, &err), 0);
    assert_int_equal(b.len, 100000);
    assert_memory_equal(b.data, bytes, 100000);
    assert_int_equal(file_read(path, &small, &err), -1);
    assert_int_equal(err.code, ERROR_EXHAUSTED);
    assert_non_null(strstr(err.message, path));
    unlink(path);
    assert_int_equal(file_read(path, &b, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    assert_int_equal(file_read("/", &b, &err), -1);
    assert_string_equal(err.message, "/ is a directory");
    free(bytes);
}

static void on_alarm(int number) {
    (void)number;
}

/* Into a pipe that takes little at a time, interrupted each millisecond. */
static void write_while_interrupted(int fd, const char *bytes, size_t n) {
    const struct sigaction action = { .sa_handler = on_alarm }; /* calls are not begun again */
    const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    _exit(file_write_all(fd, bytes, n) ? 1 : 0);
}

static void all_is_written_whatever_interrupts_it(void **state) {
    const size_t n = 300000;
    AUTO(buf) b = BUF_INIT(1 << 20);
    char *bytes = malloc(n), piece[5000];
    struct error err;
    int ends[2], status;
    ssize_t got;
    pid_t pid;

    (void)state;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 31 >> 3);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0)
        write_while_interrupted(ends[1], bytes, n);
    close(ends[1]);
    while ((got = read(ends[0], piece, sizeof piece)) > 0) {
        assert_int_equal(buf_append(&b, piece, (size_t)got, &err), 0);
        usleep(1500);
    }
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(b.len, n);
    assert_memory_equal(b.data, bytes, n);
    free(bytes);
}

static void what_cannot_be_written_is_told(void **state) {
    const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, "x", 1), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(file_write_all(fd, "", 0), 0);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buf_is_a_text_before_the_first_append_and_after_each),
        cmocka_unit_test(a_buf_takes_exactly_its_limit_and_a_failed_append_changes_nothing),
        cmocka_unit_test(taken_bytes_belong_to_the_caller_and_leave_the_buf_empty),
        cmocka_unit_test(arena_memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(arena_texts_end_where_they_should),
        cmocka_unit_test(a_vec_keeps_its_items_and_gives_zeroed_new_ones),
        cmocka_unit_test(equal_texts_are_interned_as_one_and_others_are_not),
        cmocka_unit_test(context_is_put_in_front_of_an_error_and_never_overflows),
        cmocka_unit_test(a_file_is_read_whole_or_the_reason_is_told),
        cmocka_unit_test(all_is_written_whatever_interrupts_it),
        cmocka_unit_test(what_cannot_be_written_is_told),
    };

    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
