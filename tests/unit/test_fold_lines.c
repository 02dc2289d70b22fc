/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/fold_lines.h"

enum { RANKS_MOST = 70, LINES_EACH = 300 };

/* What came out, unfolded again: each rank's lines, joined by '\n'. */
struct heard {
    struct buf of[RANKS_MOST];
    uint32_t n_ranks;
    size_t n_lines;
    char last[64];
    uint32_t last_ranks;
    int64_t last_stamp;
};

static void heard_init(struct heard *heard, uint32_t n_ranks) {
    *heard = (struct heard){ .n_ranks = n_ranks };
    for (uint32_t rank = 0; rank < n_ranks; rank++)
        heard->of[rank] = (struct buf)BUF_INIT(1 << 24);
}

static void heard_release(struct heard *heard) {
    for (uint32_t rank = 0; rank < heard->n_ranks; rank++)
        buf_release(&heard->of[rank]);
}

static void hear(void *context, const struct folded *folded) {
    struct heard *heard = context;
    uint32_t n = 0, first = UINT32_MAX;
    struct error err;

    for (uint32_t rank = 0; rank < heard->n_ranks; rank++) {
        if (!folded_has(folded, rank))
            continue;
        assert_int_equal(buf_append(&heard->of[rank], folded->line, folded->n, &err), 0);
        assert_int_equal(buf_append(&heard->of[rank], "\n", 1, &err), 0);
        first = first == UINT32_MAX ? rank : first;
        n++;
    }
    assert_int_equal(n, folded->n_ranks);
    assert_int_equal(first, folded->first);
    heard->n_lines++;
    heard->last_ranks = n;
    heard->last_stamp = folded->stamp;
    snprintf(heard->last, sizeof heard->last, "%.*s", (int)folded->n, folded->line);
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Lines that are often alike, and repeat: the cases in which an order can be lost. */
static void word_line(uint32_t *random, uint32_t rank, uint32_t i, char *out, size_t size) {
    switch (next_random(random) % 4) {
    case 0: snprintf(out, size, "epoch %u", i / 3); break;
    case 1: snprintf(out, size, "%s", ""); break;
    case 2: snprintf(out, size, "rank %u line %u", rank, i); break;
    default: snprintf(out, size, "again %u", next_random(random) % 3); break;
    }
}

static void unfolding_gives_each_rank_its_exact_lines(void **unused) {
    (void)unused;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        const uint32_t n_ranks = 1 + seed % RANKS_MOST;
        struct heard heard, fed;
        struct fold_lines *fold = fold_lines_new(n_ranks, hear, &heard);
        uint32_t random = seed, left = n_ranks * LINES_EACH, given[RANKS_MOST] = { 0 };
        int64_t now = 0;
        struct error err;

        heard_init(&heard, n_ranks);
        heard_init(&fed, n_ranks);
        while (left > 0) {
            const uint32_t rank = next_random(&random) % n_ranks;
            char line[64];

            if (given[rank] == LINES_EACH)
                continue;
            word_line(&random, rank, given[rank]++, line, sizeof line);
            now += next_random(&random) % 3000;
            fold_lines_feed(fold, rank, line, strlen(line), now, now);
            assert_int_equal(buf_printf(&fed.of[rank], &err, "%s\n", line), 0);
            if (given[rank] == LINES_EACH)
                fold_lines_ended(fold, rank);
            left--;
        }
        fold_lines_flush(fold);
        assert_false(fold_lines_holds(fold));
        for (uint32_t rank = 0; rank < n_ranks; rank++)
            assert_string_equal(heard.of[rank].data, fed.of[rank].data);
        fold_lines_free(fold);
        heard_release(&heard);
        heard_release(&fed);
    }
}

static void what_all_ranks_say_is_one_line_at_once(void **unused) {
    struct heard heard;
    struct fold_lines *fold = fold_lines_new(8, hear, &heard);

    (void)unused;
    heard_init(&heard, 8);
    for (uint32_t rank = 0; rank < 8; rank++) {
        assert_int_equal(heard.n_lines, 0);
        fold_lines_feed(fold, rank, "hello", 5, 100 + rank, 1000);
    }
    assert_int_equal(heard.n_lines, 1);
    assert_int_equal(heard.last_ranks, 8);
    assert_int_equal(heard.last_stamp, 100);
    assert_false(fold_lines_holds(fold));
    fold_lines_free(fold);
    heard_release(&heard);
}

static void say(struct fold_lines *fold, uint32_t rank, int64_t now, const char *line) {
    fold_lines_feed(fold, rank, line, strlen(line), 0, now);
}

/* What came out, each line behind the number of its ranks. */
static void note(void *context, const struct folded *folded) {
    struct error err;

    assert_int_equal(
        buf_printf(context, &err, "%u %.*s\n", folded->n_ranks, (int)folded->n, folded->line), 0);
}

static void a_line_stands_where_it_was_first_written(void **unused) {
    AUTO(buf) out = BUF_INIT(1 << 16);
    struct fold_lines *fold = fold_lines_new(3, note, &out);

    (void)unused;
    say(fold, 0, 0, "master waits");
    say(fold, 1, 1, "worker is ready");
    say(fold, 0, 2, "master goes on");
    say(fold, 2, 3, "worker is ready"); /* joins the one before, which moves nothing */
    say(fold, 1, 4, "worker is done");
    fold_lines_flush(fold);
    assert_string_equal(out.data,
                        "1 master waits\n2 worker is ready\n1 master goes on\n1 worker is done\n");
    fold_lines_free(fold);
}

static void what_is_alike_does_not_fold_across_a_line_of_the_same_rank(void **unused) {
    AUTO(buf) out = BUF_INIT(1 << 16);
    struct fold_lines *fold = fold_lines_new(2, note, &out);

    (void)unused;
    for (uint32_t rank = 0; rank < 2; rank++) {
        char mine[16];

        snprintf(mine, sizeof mine, "loss %u", rank);
        say(fold, rank, 1000 + rank, mine);
        say(fold, rank, 1000 + rank, "epoch 1 done");
    }
    fold_lines_flush(fold);
    assert_string_equal(out.data, "1 loss 0\n1 epoch 1 done\n1 loss 1\n1 epoch 1 done\n");
    fold_lines_free(fold);
}

/* The stamp of a line is the number under which its first rank fed it. */
static void rises(void *context, const struct folded *folded) {
    int64_t *last = context;

    assert_true(folded->stamp > *last);
    *last = folded->stamp;
}

static void no_line_comes_out_before_one_that_was_fed_earlier(void **unused) {
    (void)unused;
    for (uint32_t seed = 1; seed <= 200; seed++) {
        const uint32_t n_ranks = 1 + seed % RANKS_MOST;
        int64_t last = -1, now = 0;
        struct fold_lines *fold = fold_lines_new(n_ranks, rises, &last);
        uint32_t random = seed;

        for (uint32_t i = 0; i < 3000; i++) {
            const uint32_t rank = next_random(&random) % n_ranks;
            char line[64];

            word_line(&random, rank, i / n_ranks, line, sizeof line);
            now += next_random(&random) % 3000;
            fold_lines_feed(fold, rank, line, strlen(line), i, now);
            if (next_random(&random) % 500 == 0)
                fold_lines_ended(fold, next_random(&random) % n_ranks);
            if (next_random(&random) % 500 == 0)
                fold_lines_goes_on(fold, next_random(&random) % n_ranks);
        }
        fold_lines_flush(fold);
        fold_lines_free(fold);
    }
}

static void times_that_lie_apart_as_far_as_can_be_let_lines_go(void **unused) {
    AUTO(buf) out = BUF_INIT(1 << 16);
    struct fold_lines *fold = fold_lines_new(2, note, &out);

    (void)unused;
    say(fold, 0, INT64_MIN, "without a time");
    say(fold, 1, INT64_MAX, "late");
    say(fold, 0, INT64_MIN, "again");
    assert_string_equal(out.data, "1 without a time\n1 late\n");
    fold_lines_free(fold);
}

static void a_line_is_held_no_longer_than_it_may(void **unused) {
    struct heard heard;
    struct fold_lines *fold = fold_lines_new(2, hear, &heard);

    (void)unused;
    heard_init(&heard, 2);
    fold_lines_feed(fold, 0, "alone", 5, 0, 5000);
    fold_lines_tick(fold, 5000 + FOLD_HOLD_US - 1);
    assert_int_equal(heard.n_lines, 0);
    fold_lines_tick(fold, 5000 + FOLD_HOLD_US);
    assert_int_equal(heard.n_lines, 1);
    fold_lines_feed(fold, 0, "again", 5, 0, 900000);
    fold_lines_tick(fold, 1000); /* the clock was set back */
    assert_int_equal(heard.n_lines, 2);
    fold_lines_free(fold);
    heard_release(&heard);
}

static void nobody_waits_for_a_rank_that_has_ended(void **unused) {
    struct heard heard;
    struct fold_lines *fold = fold_lines_new(3, hear, &heard);

    (void)unused;
    heard_init(&heard, 3);
    fold_lines_ended(fold, 1);
    fold_lines_ended(fold, 1);
    fold_lines_feed(fold, 0, "x", 1, 0, 0);
    assert_int_equal(heard.n_lines, 0);
    fold_lines_feed(fold, 2, "x", 1, 0, 0);
    assert_int_equal(heard.n_lines, 1);
    fold_lines_free(fold);
    heard_release(&heard);
}

static void a_rank_that_has_ended_does_not_stand_for_one_that_has_not(void **unused) {
    AUTO(buf) out = BUF_INIT(1 << 16);
    struct fold_lines *fold = fold_lines_new(3, note, &out);

    (void)unused;
    say(fold, 0, 0, "bye");
    fold_lines_ended(fold, 0);
    say(fold, 1, 0, "bye");
    fold_lines_tick(fold, 1);
    assert_int_equal(out.len, 0);
    say(fold, 2, 0, "bye");
    assert_string_equal(out.data, "3 bye\n");
    say(fold, 1, 0, "x");
    fold_lines_ended(fold, 1);
    fold_lines_goes_on(fold, 1);
    fold_lines_goes_on(fold, 0);
    say(fold, 0, 0, "x");
    say(fold, 2, 0, "x");
    assert_string_equal(out.data, "3 bye\n3 x\n");
    fold_lines_free(fold);
}

static void a_flood_of_one_rank_stays_within_bounds(void **unused) {
    struct heard heard;
    struct fold_lines *fold = fold_lines_new(2, hear, &heard);
    char *line = calloc(1, FOLD_BYTES_MOST / 4);

    (void)unused;
    heard_init(&heard, 2);
    for (int i = 0; i < FOLD_GROUPS_MOST + 10; i++)
        fold_lines_feed(fold, 0, "y", 1, 0, 0);
    assert_int_equal(heard.n_lines, 10);
    for (int i = 0; i < 5; i++)
        fold_lines_feed(fold, 1, line, FOLD_BYTES_MOST / 4, 0, 0);
    assert_true(heard.of[1].len >= FOLD_BYTES_MOST / 4);
    fold_lines_free(fold); /* with lines that are still held */
    heard_release(&heard);
    free(line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unfolding_gives_each_rank_its_exact_lines),
        cmocka_unit_test(what_all_ranks_say_is_one_line_at_once),
        cmocka_unit_test(a_line_stands_where_it_was_first_written),
        cmocka_unit_test(what_is_alike_does_not_fold_across_a_line_of_the_same_rank),
        cmocka_unit_test(no_line_comes_out_before_one_that_was_fed_earlier),
        cmocka_unit_test(times_that_lie_apart_as_far_as_can_be_let_lines_go),
        cmocka_unit_test(a_line_is_held_no_longer_than_it_may),
        cmocka_unit_test(nobody_waits_for_a_rank_that_has_ended),
        cmocka_unit_test(a_rank_that_has_ended_does_not_stand_for_one_that_has_not),
        cmocka_unit_test(a_flood_of_one_rank_stays_within_bounds),
    };

    return cmocka_run_group_tests_name("fold_lines", tests, NULL, NULL);
}
