/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/kubernetes/logstream.h"
#include "base/buf.h"

static void collect(void *context, const char *bytes, size_t n) {
    struct error err;

    assert_int_equal(buf_append(context, bytes, n, &err), 0);
}

#define AT "2026-11-16T04:16:54."

static void moments_are_taken_off(void **unused) {
    static const char text[] = AT "000000001Z one\n" AT "000000002Z \n" AT "1+01:00 two words\n"
                                  "unable to retrieve container logs\n" AT "5Z unfinished";
    AUTO(buf) out = BUF_INIT(1 << 20);
    struct logstream log;

    (void)unused;
    for (size_t piece = 1; piece < sizeof text; piece++) {
        out.len = 0;
        logstream_init(&log, &(struct logstream_cursor){ 0 }, 0);
        for (size_t i = 0; i < sizeof text - 1; i += piece) {
            const size_t left = sizeof text - 1 - i;

            logstream_feed(&log, text + i, left < piece ? left : piece, collect, &out);
        }
        logstream_finish(&log, collect, &out);
        assert_int_equal(buf_append(&out, "", 1, &(struct error){ 0 }), 0);
        assert_string_equal(out.data, "one\n\ntwo words\nunfinished");
        logstream_release(&log);
    }
}

static void a_moment_is_that_of_its_time_zone(void **unused) {
    static const struct {
        const char *text;
        int64_t seconds, ns;
    } rows[] = {
        { "1970-01-01T00:00:01Z x", 1, 0 },
        { "1970-01-01T01:00:01+01:00 x", 1, 0 },
        { "1969-12-31T23:30:00Z x", -1, 0 },
        { "2024-02-29T12:00:00.5Z x", 1709208000, 500000000 },
        { "2026-11-15T23:16:54.123456789-05:00 x", 1794802614, 123456789 },
        { "2100-03-01T00:00:00Z x", 4107542400, 0 },
    };
    int64_t ns;

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const size_t n = logstream_moment(rows[i].text, strlen(rows[i].text), &ns);

        if (rows[i].seconds < 0) {
            assert_int_equal(n, 0);
            continue;
        }
        assert_int_equal(n, strlen(rows[i].text) - 1);
        assert_int_equal(ns, rows[i].seconds * 1000000000 + rows[i].ns);
    }
    assert_int_equal(logstream_moment("2026-11-16 04:16:54Z x", 22, &ns), 0);
    assert_int_equal(logstream_moment("2026-11-16T04:16:54Z", 20, &ns), 0);
}

/* A log of random lines, of which many share their moment and some are long. */
static void write_log(struct buf *raw, struct buf *content, unsigned *seed) {
    const int n = 1 + rand_r(seed) % 60;
    int64_t ns = 0;

    for (int i = 0; i < n; i++) {
        const size_t length = rand_r(seed) % 8 ? (size_t)rand_r(seed) % 40
                                               : LOGSTREAM_LINE - 40 + (size_t)rand_r(seed) % 80000;
        char moment[64];

        ns += rand_r(seed) % 3 ? 0 : rand_r(seed) % 3 ? 1 : 700000000;
        snprintf(moment, sizeof moment, "2026-11-16T04:16:%02" PRId64 ".%09" PRId64 "Z ",
                 ns / 1000000000, ns % 1000000000);
        collect(raw, moment, strlen(moment));
        for (size_t k = 0; k < length; k++) {
            const char c = (char)('a' + rand_r(seed) % 26);

            collect(raw, &c, 1);
            collect(content, &c, 1);
        }
        collect(raw, "\n", 1);
        collect(content, "\n", 1);
    }
}

/* The server leaves out whole lines that are older than the second. */
static size_t since(const struct logstream *log, const struct buf *raw) {
    char text[LOGSTREAM_SINCE];
    size_t at = 0;

    if (!logstream_since(log, text))
        return 0;
    while (at < raw->len && memcmp(raw->data + at, text, 19) < 0)
        at = (size_t)((char *)memchr(raw->data + at, '\n', raw->len - at) - raw->data) + 1;
    return at;
}

static void a_stream_that_breaks_anywhere_loses_and_repeats_nothing(void **unused) {
    const unsigned first = (unsigned)time(NULL);

    (void)unused;
    printf("# seed %u\n", first);
    for (unsigned seed = first; seed < first + 60; seed++) {
        AUTO(buf) raw = BUF_INIT(1 << 27);
        AUTO(buf) content = BUF_INIT(1 << 27);
        AUTO(buf) out = BUF_INIT(1 << 27);
        unsigned state = seed;
        struct logstream log;

        write_log(&raw, &content, &state);
        logstream_init(&log, &(struct logstream_cursor){ 0 }, 0);
        for (int i = 0; i < 12; i++) {
            const size_t from = since(&log, &raw), left = raw.len - from;
            const bool is_last = i == 11;

            logstream_begin(&log);
            logstream_feed(&log, raw.data + from,
                           is_last ? left : (size_t)rand_r(&state) % (left + 1), collect, &out);
            if (rand_r(&state) % 3 == 0) { /* who follows goes on by what was told and kept */
                const struct logstream_cursor at = log.at;
                struct logstream_cursor before = { 0 };
                const bool is_old = rand_r(&state) % 2;

                logstream_release(&log);
                logstream_init(&log, is_old ? &before : &at, out.len);
            }
        }
        logstream_begin(&log);
        logstream_feed(&log, raw.data + since(&log, &raw), raw.len - since(&log, &raw), collect,
                       &out);
        logstream_finish(&log, collect, &out);
        if (out.len != content.len || memcmp(out.data, content.data, out.len) != 0)
            fail_msg("seed %u: %zu bytes instead of %zu", seed, out.len, content.len);
        logstream_release(&log);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_taken_off),
        cmocka_unit_test(a_moment_is_that_of_its_time_zone),
        cmocka_unit_test(a_stream_that_breaks_anywhere_loses_and_repeats_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
