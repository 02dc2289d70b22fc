/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"
#include "store/media.h"

static void a_path_says_name_step_rank_attempt_and_kind(void **state) {
    static const struct {
        const char *path;
        size_t name_length;
        struct media media;
    } rows[] = {
        { "media/a/000000400-0.png", 1, { .step = 400, .kind = MEDIA_IMAGE } },
        { "media/val/x/7-12-3.txt",
          5,
          { .step = 7, .rank = 12, .attempt = 3, .kind = MEDIA_TEXT } },
        { "media/a/-5-0.jpeg", 1, { .step = -5, .kind = MEDIA_IMAGE } },
        { "media/9-9.png/9223372036854775807-4294967295.svg",
          7,
          { .step = INT64_MAX, .rank = UINT32_MAX, .kind = MEDIA_IMAGE } },
    };
    struct media media;
    size_t n;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(media_parse(rows[i].path, &media, &n));
        assert_int_equal(n, rows[i].name_length);
        assert_int_equal(media.step, rows[i].media.step);
        assert_int_equal(media.rank, rows[i].media.rank);
        assert_int_equal(media.attempt, rows[i].media.attempt);
        assert_int_equal(media.kind, rows[i].media.kind);
    }
}

static void whatever_else_lies_there_is_no_media(void **state) {
    static const char *const paths[] = {
        "",
        "media",
        "media/",
        "media/1-0.png", /* without a name */
        "model/a/1-0.png",
        "media/a/1.png",
        "media/a/-0.png",
        "media/a/1-.png",
        "media/a/1--0.png",
        "media/a/1-+0.png",
        "media/a/ 1-0.png",
        "media/a/+1-0.png",
        "media/a/1-0-.png",
        "media/a/1-0-0-0.png",
        "media/a/1-0.exe",
        "media/a/1-0.png ",
        "media/a/1-0",
        "media/a/.part-1-0.png",
        "media/a/9223372036854775808-0.png",
        "media/a/1-4294967296.png",
        "media/a/1-0-4294967296.png",
    };
    struct media media;
    size_t n;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (media_parse(paths[i], &media, &n))
            fail_msg("'%s' is taken", paths[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_says_name_step_rank_attempt_and_kind),
        cmocka_unit_test(whatever_else_lies_there_is_no_media),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
