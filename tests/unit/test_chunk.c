/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "points.h"
#include "track/chunk.h"

static struct dice dice;

static bool unpack(const struct bytes *head, const struct bytes *body, struct chunk_head *out,
                   struct point *points) {
    size_t n = 0;

    if (!chunk_head_decode(cursor_over(head->data, head->len), out))
        return false;
    for (uint32_t i = 0; i < out->n_blocks; i++) {
        if (out->blocks[i].at + out->blocks[i].size > body->len ||
            !chunk_block_decode(cursor_over(body->data + out->blocks[i].at, out->blocks[i].size),
                                &out->blocks[i].summary, points + n))
            return false;
        n += out->blocks[i].summary.count;
    }
    return n == out->n;
}

static void a_column_gives_back_any_integers(void **state) {
    (void)state;
    for (int round = 0; round < 20000; round++) {
        const size_t n = 1 + dice_below(&dice, COLUMN_MOST);
        const unsigned shape = (unsigned)dice_below(&dice, 5);
        const unsigned shift = (unsigned)dice_below(&dice, 64);
        int64_t in[COLUMN_MOST], out[COLUMN_MOST];
        struct bytes bytes = { 0 };
        struct cursor cursor;

        for (size_t i = 0; i < n; i++) {
            in[i] = shape == 0 ? odd_integer(&dice) : (int64_t)(dice_roll(&dice) >> shift);
            if (shape == 1)
                in[i] = (int64_t)i * 77;
            if (shape == 2 && dice_below(&dice, 20))
                in[i] = (int64_t)dice_below(&dice, 100);
            if (shape == 3)
                in[i] = (int64_t)(i * i);
        }
        column_encode(in, n, &bytes);
        cursor = cursor_over(bytes.data, bytes.len);
        assert_true(column_decode(&cursor, n, out));
        assert_int_equal(cursor_left(&cursor), 0);
        assert_memory_equal(in, out, n * sizeof *in);
        bytes_release(&bytes);
    }
}

static void a_chunk_gives_back_any_points(void **state) {
    static struct point in[CHUNK_MOST], out[CHUNK_MOST];
    static struct chunk_head decoded;

    (void)state;
    for (int round = 0; round < 600; round++) {
        const size_t n =
            dice_below(&dice, 3) ? 1 + dice_below(&dice, CHUNK_MOST) : 1 + dice_below(&dice, 5);
        struct bytes head = { 0 }, body = { 0 };

        points_fill(&dice, in, n);
        chunk_encode(42, in, n, &head, &body);
        assert_true(head.len <= CHUNK_HEAD_MOST && body.len <= CHUNK_BODY_MOST);
        assert_true(unpack(&head, &body, &decoded, out));
        assert_int_equal(decoded.series, 42);
        assert_int_equal(decoded.n, n);
        for (size_t i = 0; i < n; i++)
            if (!points_equal(&in[i], &out[i]))
                fail_msg("point %zu of %zu: %a instead of %a", i, n, out[i].value, in[i].value);
        bytes_release(&head);
        bytes_release(&body);
    }
}

static void a_summary_says_what_its_points_say(void **state) {
    static struct point points[CHUNK_MOST];
    static struct chunk_head decoded;

    (void)state;
    for (int round = 0; round < 300; round++) {
        const size_t n = 1 + dice_below(&dice, CHUNK_MOST);
        struct bytes head = { 0 }, body = { 0 };
        const struct summary *all = &decoded.all;
        struct summary whole;
        uint64_t nans = 0;
        double least = INFINITY, greatest = -INFINITY;

        points_fill(&dice, points, n);
        chunk_encode(0, points, n, &head, &body);
        assert_true(chunk_head_decode(cursor_over(head.data, head.len), &decoded));
        for (size_t i = 0; i < n; i++) {
            nans += isnan(points[i].value) ? 1 : 0;
            least = points[i].value < least ? points[i].value : least;
            greatest = points[i].value > greatest ? points[i].value : greatest;
        }
        whole = summary_of(points, n);
        assert_int_equal(all->count, n);
        assert_int_equal(all->nans, nans);
        assert_true(nans == n || (all->min == least && all->max == greatest));
        assert_true(values_equal(all->last, points[n - 1].value));
        assert_true(all->min_step == whole.min_step && all->max_step == whole.max_step);
        assert_true(all->min_time_us == whole.min_time_us && all->max_time_us == whole.max_time_us);
        assert_true(all->first_step == points[0].step && all->last_step == points[n - 1].step);
        bytes_release(&head);
        bytes_release(&body);
    }
}

static void the_mean_neither_overflows_nor_hides_an_infinity(void **state) {
    const struct point large[] = { { 0, 0, DBL_MAX }, { 1, 1, DBL_MAX }, { 2, 2, DBL_MAX } };
    const struct point infinite[] = { { 0, 0, INFINITY }, { 1, 1, 1 } };
    const struct point some[] = {
        { 0, 0, (double)NAN }, { 1, 1, 1 }, { 2, 2, 3 }, { 3, 3, (double)NAN }
    };
    struct summary joined = summary_of(large, 3), next = summary_of(large, 2);

    (void)state;
    assert_true(joined.mean > DBL_MAX * 0.999 && isfinite(joined.mean));
    summary_append(&joined, &next);
    assert_true(isfinite(joined.mean));
    joined = summary_of(infinite, 2);
    assert_true(joined.mean == INFINITY && joined.max == INFINITY && joined.min == 1);
    joined = summary_of(some, 4);
    assert_true(joined.mean == 2 && joined.min == 1 && joined.max == 3 && joined.nans == 2);
    assert_true(isnan(joined.last));
    joined = summary_of(some, 1);
    assert_true(isnan(joined.mean) && isnan(joined.min) && joined.count == 1);
}

static void no_changed_byte_passes_for_points(void **state) {
    static struct point in[CHUNK_MOST], out[CHUNK_MOST];
    static struct chunk_head decoded;
    struct bytes head = { 0 }, body = { 0 };

    (void)state;
    points_fill(&dice, in, 700);
    chunk_encode(3, in, 700, &head, &body);
    for (size_t i = 0; i < body.len; i++) {
        body.data[i] ^= (unsigned char)(1 + dice_below(&dice, 255));
        assert_false(unpack(&head, &body, &decoded, out));
        body.data[i] = 0;
        bytes_release(&head);
        bytes_release(&body);
        chunk_encode(3, in, 700, &head, &body);
        if (i > 500)
            break;
    }
    bytes_release(&head);
    bytes_release(&body);
}

/* Uniform noise: 10 % around a loss, as float32 and as float64; times 1 ms apart, with jitter. */
static double bytes_a_point(bool is_float) {
    static struct point points[CHUNK_MOST];
    struct bytes head = { 0 }, body = { 0 };
    int64_t time_us = 1700000000000000;
    size_t total;

    for (int i = 0; i < CHUNK_MOST; i++) {
        const double loss = 0.5 * (1 + 0.2 * (dice_unit(&dice) - 0.5));

        time_us += 1000 + (int64_t)dice_below(&dice, 100);
        points[i] = (struct point){ i, time_us, is_float ? (double)(float)loss : loss };
    }
    chunk_encode(1, points, CHUNK_MOST, &head, &body);
    total = head.len + body.len;
    bytes_release(&head);
    bytes_release(&body);
    return (double)total / CHUNK_MOST;
}

static void noisy_points_take_few_bytes(void **state) {
    (void)state;
    assert_true(bytes_a_point(true) < 6.4);
    assert_true(bytes_a_point(false) < 8.4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_gives_back_any_integers),
        cmocka_unit_test(a_chunk_gives_back_any_points),
        cmocka_unit_test(a_summary_says_what_its_points_say),
        cmocka_unit_test(the_mean_neither_overflows_nor_hides_an_infinity),
        cmocka_unit_test(no_changed_byte_passes_for_points),
        cmocka_unit_test(noisy_points_take_few_bytes),
    };

    dice = dice_make();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
