/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cli/elide.h"
#include "codec/utf8.h"
#include "codec/visible.h"

static void texts_that_fit_stay_whole(void **unused) {
    AUTO(arena) arena = ARENA_INIT;
    const char *texts[] = { "python train.py", NULL, "python test.py" };

    (void)unused;
    elide_common(&arena, texts, 3, 15);
    assert_string_equal(texts[0], "python train.py");
    assert_null(texts[1]);
    assert_string_equal(texts[2], "python test.py");
}

static void the_part_that_differs_stays(void **unused) {
    AUTO(arena) arena = ARENA_INIT;
    const char *texts[] = {
        "python3 -m project.training.train --data /data/imagenet --epochs 90 --lr=0.1 --workers 16 "
        "--amp",
        "python3 -m project.training.train --data /data/imagenet --epochs 90 --lr=0.03 --workers "
        "16 --amp",
    };

    (void)unused;
    elide_common(&arena, texts, 2, 24);
    assert_non_null(strstr(texts[0], "=0.1 "));
    assert_non_null(strstr(texts[1], "=0.03 "));
    for (size_t i = 0; i < 2; i++) {
        assert_true(visible_columns(texts[i]) <= 24);
        assert_memory_equal(texts[i], "…", strlen("…"));
    }
}

static void the_end_of_one_that_goes_on_stays(void **unused) {
    AUTO(arena) arena = ARENA_INIT;
    const char *texts[] = { "python train.py with many words",
                            "python train.py with many words --amp" };

    (void)unused;
    elide_common(&arena, texts, 2, 20);
    assert_non_null(strstr(texts[1], " --amp"));
    assert_null(strstr(texts[0], "--amp"));
}

static void what_comes_out_fits_and_is_text_for_any_room(void **unused) {
    static const char *const words[] = { "a", "b",   "\xc3\xa9", "\xc3\xa8", "\xe6\xbc\xa2",
                                         " ", "long" };
    uint32_t random = 3;

    (void)unused;
    for (int round = 0; round < 5000; round++) {
        AUTO(arena) arena = ARENA_INIT;
        const char *texts[4];
        size_t room = 2 + (size_t)round % 30;

        for (size_t i = 0; i < 4; i++) {
            char text[200] = "";

            for (int j = 0; j < 20; j++) {
                random = random * 1664525u + 1013904223u;
                strcat(text, words[(random >> 16) % (j % 5 ? 2 : ARRAY_LEN(words))]);
            }
            texts[i] = arena_text(&arena, text, strlen(text));
        }
        elide_common(&arena, texts, 4, room);
        for (size_t i = 0; i < 4; i++) {
            assert_true(visible_columns(texts[i]) <= room);
            assert_int_equal(utf8_valid_prefix(texts[i], strlen(texts[i])), strlen(texts[i]));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_that_fit_stay_whole),
        cmocka_unit_test(the_part_that_differs_stays),
        cmocka_unit_test(the_end_of_one_that_goes_on_stays),
        cmocka_unit_test(what_comes_out_fits_and_is_text_for_any_room),
    };

    return cmocka_run_group_tests_name("elide", tests, NULL, NULL);
}
