/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "codec/utf8.h"

/* Writes one text in the compact style and gives what stands between the quotes. */
static void assert_text_becomes(const char *text, size_t n, const char *expected) {
    AUTO(buf) out = BUF_INIT(1000);
    struct json json;
    struct error err;

    json_init(&json, JSON_COMPACT, json_to_buf, &out);
    json_text_n(&json, text, n);
    assert_int_equal(json_finish(&json, &err), 0);
    assert_int_equal(out.data[0], '"');
    assert_int_equal(out.data[out.len - 1], '"');
    out.data[out.len - 1] = '\0';
    assert_string_equal(out.data + 1, expected);
}

static void nested_values_are_laid_out_in_both_styles(void **state) {
    static const char *const expected[] = {
        [JSON_COMPACT] = "{\"a\": [1, [], {}, {\"b\": null}], \"c\": true, \"d\": -0.5}",
        [JSON_PRETTY] =
            "{\n  \"a\": [\n    1,\n    [],\n    {},\n    {\n      \"b\": null\n    }\n  "
            "],\n  \"c\": true,\n  \"d\": -0.5\n}\n",
    };

    (void)state;
    for (enum json_style style = JSON_COMPACT; style <= JSON_PRETTY; style++) {
        AUTO(buf) out = BUF_INIT(1000);
        struct json json;
        struct error err;

        json_init(&json, style, json_to_buf, &out);
        json_object(&json);
        json_key(&json, "a");
        json_array(&json);
        json_int(&json, 1);
        json_array(&json);
        json_end(&json);
        json_object(&json);
        json_end(&json);
        json_object(&json);
        json_key(&json, "b");
        json_text(&json, NULL);
        json_end(&json);
        json_end(&json);
        json_key(&json, "c");
        json_bool(&json, true);
        json_key(&json, "d");
        json_number(&json, -0.5);
        json_end(&json);
        assert_int_equal(json_finish(&json, &err), 0);
        assert_string_equal(out.data, expected[style]);
    }
}

static void texts_are_escaped_and_what_is_no_utf8_is_replaced(void **state) {
    static const struct {
        const char *text, *expected;
    } rows[] = {
        { "", "" },
        { "a\"b\\c/", "a\\\"b\\\\c/" },
        { "\n\r\t\b\x01\x1f", "\\n\\r\\t\\u0008\\u0001\\u001f" },
        { "\x7f", "\\u007f" },
        { "\xc2\x9b\xc2\x85\xc2\xa0", "\\u009b\\u0085\xc2\xa0" },        /* C1 */
        { "\xe2\x80\xae\xe2\x81\xa6\xd8\x9c", "\\u202e\\u2066\\u061c" }, /* direction */
        { "h\xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x98\x80", "h\xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x98\x80" },
        { "a\xff"
          "b",
          "a\xef\xbf\xbd"
          "b" },
        { "\xc3", "\xef\xbf\xbd" },                                 /* cut short */
        { "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },                 /* overlong */
        { "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* a surrogate */
        { "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_text_becomes(rows[i].text, strlen(rows[i].text), rows[i].expected);
    assert_text_becomes("a\0b", 3, "a\\u0000b");
}

static void what_is_written_is_utf8_for_any_two_bytes(void **state) {
    (void)state;
    for (unsigned i = 0; i < 65536; i++) {
        char text[2] = { (char)(i >> 8), (char)(i & 255) };
        AUTO(buf) out = BUF_INIT(100);
        struct json json;
        struct error err;

        json_init(&json, JSON_COMPACT, json_to_buf, &out);
        json_text_n(&json, text, 2);
        assert_int_equal(json_finish(&json, &err), 0);
        assert_int_equal(utf8_valid_prefix(out.data, out.len), out.len);
        assert_int_equal(strlen(out.data), out.len);
    }
}

static void numbers_that_json_lacks_are_null(void **state) {
    AUTO(buf) out = BUF_INIT(200);
    struct json json;
    struct error err;

    (void)state;
    json_init(&json, JSON_COMPACT, json_to_buf, &out);
    json_array(&json);
    json_number(&json, NAN);
    json_number(&json, INFINITY);
    json_number(&json, -INFINITY);
    json_number(&json, 1e300);
    json_int(&json, INT64_MIN);
    json_int(&json, INT64_MAX);
    json_end(&json);
    assert_int_equal(json_finish(&json, &err), 0);
    assert_string_equal(out.data,
                        "[null, null, null, 1e+300, -9223372036854775808, 9223372036854775807]");
}

static void a_node_is_written_as_what_it_holds(void **state) {
    const struct place nowhere = { 0 };
    struct node items[] = { node_null(nowhere), node_bool(false, nowhere), node_int(-3, nowhere),
                            node_float(2, nowhere), node_text("x\"", 2, nowhere) };
    struct member members[] = {
        { .key = "l\n", .value = node_list(items, ARRAY_LEN(items), nowhere) },
        { .key = "m", .value = node_map(NULL, 0, nowhere) },
    };
    struct node map = node_map(members, ARRAY_LEN(members), nowhere);
    AUTO(buf) out = BUF_INIT(200);
    struct json json;
    struct error err;

    (void)state;
    json_init(&json, JSON_COMPACT, json_to_buf, &out);
    json_array(&json);
    json_node(&json, &map);
    json_node(&json, NULL);
    json_end(&json);
    assert_int_equal(json_finish(&json, &err), 0);
    assert_string_equal(out.data,
                        "[{\"l\\n\": [null, false, -3, 2.0, \"x\\\"\"], \"m\": {}}, null]");
}

struct counting {
    size_t bytes, calls, largest;
    size_t fail_at_call;
};

static int count(void *context, const char *bytes, size_t n, struct error *err) {
    struct counting *counting = context;

    (void)bytes;
    if (++counting->calls == counting->fail_at_call)
        return error_set(err, ERROR_IO, "the disk is full");
    assert_true(counting->fail_at_call == 0 || counting->calls < counting->fail_at_call);
    counting->bytes += n;
    counting->largest = n > counting->largest ? n : counting->largest;
    return 0;
}

static void large_output_leaves_in_pieces(void **state) {
    struct counting counting = { 0 };
    char *text = malloc(1 << 20);
    struct json json;
    struct error err;

    (void)state;
    memset(text, 'x', 1 << 20);
    json_init(&json, JSON_COMPACT, count, &counting);
    json_array(&json);
    for (int i = 0; i < 20; i++)
        json_text_n(&json, text, 1 << 20);
    for (int i = 0; i < 100000; i++)
        json_int(&json, i);
    json_end(&json);
    assert_int_equal(json_finish(&json, &err), 0);
    assert_int_equal(counting.bytes, 20 * ((1 << 20) + 2) + 488890 + 100019 * 2 + 2);
    assert_true(counting.largest <= 64 * 1024);
    free(text);
}

static void the_first_failure_of_the_sink_is_told_at_the_end_and_it_is_called_no_more(
    void **state) {
    struct counting counting = { .fail_at_call = 3 };
    struct json json;
    struct error err;

    (void)state;
    json_init(&json, JSON_PRETTY, count, &counting);
    json_array(&json);
    for (int i = 0; i < 100000; i++)
        json_text(&json, "some text");
    json_end(&json);
    assert_int_equal(json_finish(&json, &err), -1);
    assert_int_equal(err.code, ERROR_IO);
    assert_string_equal(err.message, "the disk is full");
    assert_int_equal(counting.calls, 3);
}

static void a_full_buf_is_a_failure_of_the_sink(void **state) {
    AUTO(buf) out = BUF_INIT(5);
    struct json json;
    struct error err;

    (void)state;
    json_init(&json, JSON_COMPACT, json_to_buf, &out);
    json_text(&json, "too long");
    assert_int_equal(json_finish(&json, &err), -1);
    assert_int_equal(err.code, ERROR_EXHAUSTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_values_are_laid_out_in_both_styles),
        cmocka_unit_test(texts_are_escaped_and_what_is_no_utf8_is_replaced),
        cmocka_unit_test(what_is_written_is_utf8_for_any_two_bytes),
        cmocka_unit_test(numbers_that_json_lacks_are_null),
        cmocka_unit_test(a_node_is_written_as_what_it_holds),
        cmocka_unit_test(large_output_leaves_in_pieces),
        cmocka_unit_test(the_first_failure_of_the_sink_is_told_at_the_end_and_it_is_called_no_more),
        cmocka_unit_test(a_full_buf_is_a_failure_of_the_sink),
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
