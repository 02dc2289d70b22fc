/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "shim/request.h"

/* Reads a copy that is exactly as large, so that a sanitizer sees a read beyond it. */
static int read_head(const char *text, size_t n, struct request *out) {
    char *copy = malloc(n ? n : 1);
    int got;

    assert_non_null(copy);
    memcpy(copy, text, n);
    got = request_read(copy, n, 0, out);
    free(copy);
    return got;
}

static int status_of(const char *text) {
    struct request request;

    return read_head(text, strlen(text), &request);
}

static void a_head_is_read_once_it_is_whole(void **state) {
    static const char text[] =
        "POST /signal?number=15 HTTP/1.1\r\nhost: a\r\nMYELIN-KEY:  secret \r\n"
        "Content-length: 12\r\nExpect: 100-continue\r\n\r\nlog 1\n";
    const int head = (int)(strstr(text, "\r\n\r\n") + 4 - text);
    struct request request;

    (void)state;
    for (int n = 0; n < head; n++)
        assert_int_equal(read_head(text, (size_t)n, &request), 0);
    for (size_t n = (size_t)head; n < sizeof text; n++)
        assert_int_equal(read_head(text, n, &request), head);
    assert_string_equal(request.method, "POST");
    assert_string_equal(request.target, "/signal");
    assert_string_equal(request.query, "number=15");
    assert_int_equal(request_number(&request), 15);
    assert_string_equal(request.key, "secret");
    assert_int_equal(request.length, 12);
    assert_true(request.wants_continue && !request.is_chunked && !request.closes);
}

/* What was seen before is not looked at again, and its end may lie on the border. */
static void a_head_that_comes_byte_by_byte_is_read_at_its_end(void **state) {
    static const char text[] = "POST /ack HTTP/1.1\r\nA: b\r\n\r\n";
    struct request request;

    (void)state;
    for (size_t n = 1; n < sizeof text - 1; n++)
        assert_int_equal(request_read(text, n, n - 1, &request), 0);
    assert_int_equal(request_read(text, sizeof text - 1, sizeof text - 2, &request),
                     sizeof text - 1);
}

static void what_is_doubtful_is_refused(void **state) {
    static const struct {
        const char *text;
        int status;
    } rows[] = {
        { "\r\n\r\n", 400 },
        { "POST\r\n\r\n", 400 },
        { " / HTTP/1.1\r\n\r\n", 400 },
        { "GET \r\n\r\n", 400 },
        { "GET x HTTP/1.1\r\n\r\n", 400 },
        { "GET /\t HTTP/1.1\r\n\r\n", 400 },
        { "GETGETGETGETGETG / HTTP/1.1\r\n\r\n", 400 },
        { "POST / HTTP/1.10\r\n\r\n", 400 },
        { "POST / HTTP/1.1 \r\n\r\n", 400 },
        { "POST  / HTTP/1.1\r\n\r\n", 400 },
        { "POST /a b HTTP/1.1\r\n\r\n", 400 },
        { "POST HTTP/1.1\r\n\r\n", 400 },
        { "POST /ack HTTP/2.0\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\n A: folded\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\nA\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\n: b\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\nA: b\nContent-Length: 5\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\nContent-Length:\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\nContent-Length: 1000000000000000000\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400 },
        { "POST /ack HTTP/1.1\r\nExpect: the best\r\n\r\n", 417 },
        { "POST /ack HTTP/1.1\r\nMyelin-Key: a\r\nMyelin-Key: b\r\n\r\n", 403 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (status_of(rows[i].text) != -rows[i].status)
            fail_msg("%s: %d", rows[i].text, status_of(rows[i].text));
}

static void a_head_without_end_is_too_large(void **state) {
    static char text[REQUEST_HEAD_MAX];
    struct request request;

    (void)state;
    memset(text, 'a', sizeof text);
    assert_int_equal(request_read(text, sizeof text - 1, 0, &request), 0);
    assert_int_equal(request_read(text, sizeof text, 0, &request), -431);
    memcpy(text, "GET /", 5);
    memcpy(text + 5 + REQUEST_TARGET_MAX, " HTTP/1.1\r\n\r\n", 13);
    assert_int_equal(request_read(text, sizeof text, 0, &request), -414);
}

/* Takes a body in pieces; returns what is content of it, and in *used how many bytes it took. */
static enum body_state take(const char *text, bool is_chunked, uint64_t length, size_t piece,
                            char *content, size_t *used) {
    const struct request request = { .is_chunked = is_chunked, .length = length };
    const size_t all = strlen(text);
    struct body body;
    size_t n = 0;

    *used = 0;
    body_begin(&body, &request);
    while (*used < all && body.state < BODY_DONE) {
        const size_t left = all - *used;
        const char *at;
        size_t got;

        *used += body_take(&body, text + *used, left < piece ? left : piece, &at, &got);
        if (got)
            memcpy(content + n, at, got);
        n += got;
    }
    content[n] = '\0';
    return body.state;
}

static void a_body_is_the_same_in_whatever_pieces_it_comes(void **state) {
    static const char chunks[] =
        "3;name=value\r\nlog\r\n6\r\n 12\nsp\r\n0003\r\nool\r\n0\r\nA: b\r\n\r\nPOST ";
    static const char plain[] = "log 12\nspoolPOST ";
    char content[64];
    size_t used;

    (void)state;
    for (size_t piece = 1; piece < sizeof chunks; piece++) {
        assert_int_equal(take(chunks, true, 0, piece, content, &used), BODY_DONE);
        assert_string_equal(content, "log 12\nspool");
        assert_string_equal(chunks + used, "POST ");
        assert_int_equal(take(plain, false, 12, piece, content, &used), BODY_DONE);
        assert_string_equal(content, "log 12\nspool");
        assert_string_equal(plain + used, "POST ");
    }
    assert_int_equal(take("POST ", false, 0, 1, content, &used), BODY_DONE);
    assert_int_equal(used, 0);
    assert_int_equal(take("3\r\nlog\r\n0\r\n", true, 0, 2, content, &used), BODY_TRAILER);
}

static void chunks_that_are_none_are_refused(void **state) {
    static const char *const texts[] = { "\r\n",       "x\r\n",
                                         "-1\r\n",     "3\r\nlogs\r\n",
                                         "100001\r\n", "ffffffffffffffff1\r\n",
                                         ";\r\n",      "3\r\nlog0\r\n\r\n" };
    char content[64];
    size_t used;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (take(texts[i], true, 0, 1, content, &used) != BODY_WRONG)
            fail_msg("%s", texts[i]);
}

static void a_line_has_a_name_and_an_offset(void **state) {
    static const char text[] = "log 12\noutputs/a b 3 0\nspool/x 999999999999999999";
    const char *at = text, *const end = text + strlen(text);
    struct offset_line line;

    (void)state;
    assert_int_equal(offset_line_next(&at, end, &line), 1);
    assert_int_equal(line.offset, 12);
    assert_int_equal(offset_line_next(&at, end, &line), 1);
    assert_memory_equal(line.name, "outputs/a b 3", line.name_n);
    assert_int_equal(offset_line_next(&at, end, &line), 1);
    assert_int_equal(line.offset, UINT64_C(999999999999999999));
    assert_int_equal(offset_line_next(&at, end, &line), 0);
}

static void a_line_that_is_none_is_refused(void **state) {
    static const char *const texts[] = { "\n",       "log\n",     "log \n",
                                         " 1\n",     "log -1\n",  "log 1\r\n",
                                         "log 1 \n", "log 1e3\n", "log 9999999999999999999\n" };
    struct offset_line line;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *at = texts[i];

        assert_int_equal(offset_line_next(&at, at + strlen(at), &line), -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_read_once_it_is_whole),
        cmocka_unit_test(a_head_that_comes_byte_by_byte_is_read_at_its_end),
        cmocka_unit_test(what_is_doubtful_is_refused),
        cmocka_unit_test(a_head_without_end_is_too_large),
        cmocka_unit_test(a_body_is_the_same_in_whatever_pieces_it_comes),
        cmocka_unit_test(chunks_that_are_none_are_refused),
        cmocka_unit_test(a_line_has_a_name_and_an_offset),
        cmocka_unit_test(a_line_that_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
