/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "points.h"
#include "storing.h"
#include "track/query.h"
#include "track/series.h"
#include "track/wal.h"

static struct dice dice;
static struct error err;

static void ok(int status) {
    if (status)
        fail_msg("%s", err.message);
}

/* Limits that make everything happen often. */
static const struct series_options small = { .wal_limit = 20000 };

static struct series_store *open_store(const struct series_options *options) {
    struct series_store *store = NULL;

    ok(series_store_open(directory, options, &store, &err));
    return store;
}

static struct series_reader *open_reader(void) {
    struct series_reader *reader = NULL;

    ok(series_reader_open(directory, &reader, &err));
    return reader;
}

static uint32_t find(struct series_store *store, const char *name, uint32_t rank,
                     uint32_t attempt) {
    return series_find(store, name, strlen(name), rank, attempt);
}

static void add(struct series_store *store, uint32_t series, const struct point *point) {
    series_add(store, series, point->step, point->time_us, point->value);
}

struct expected {
    const struct point *points;
    size_t n, at;
};

static bool compare(void *context, const struct point *point) {
    struct expected *expected = context;

    assert_true(expected->at < expected->n);
    if (!points_equal(point, &expected->points[expected->at]))
        fail_msg("point %zu differs", expected->at);
    expected->at++;
    return true;
}

static void expect_points(struct series_reader *reader, uint32_t series, const struct point *points,
                          size_t n) {
    struct expected expected = { points, n, 0 };

    ok(series_points(reader, series, 0, UINT64_MAX, compare, &expected, &err));
    assert_int_equal(expected.at, n);
    assert_int_equal(series_reader_info(reader, series).all.count, n);
    for (int i = 0; i < 3 && n > 0; i++) {
        const size_t from = dice_below(&dice, n), to = from + dice_below(&dice, n - from + 1);
        struct expected part = { points, to, from };

        ok(series_points(reader, series, from, to, compare, &part, &err));
        assert_int_equal(part.at, to);
    }
}

/* A store in any of the states it can be in: all in the log, in chunks, merged, merged and added
 * to; three series whose points come in turns. */
enum { SERIES = 3, POINTS = 30000 };
static struct point written[SERIES][POINTS];
static size_t n_written[SERIES];

static void write_any(void) {
    const size_t total = 1 + dice_below(&dice, POINTS);
    struct series_store *store = open_store(dice_below(&dice, 2) ? &small : NULL);
    size_t done = 0;

    for (uint32_t s = 0; s < SERIES; s++) {
        points_fill(&dice, written[s], POINTS);
        n_written[s] = 0;
        assert_int_equal(find(store, "loss", s, 0), s);
    }
    while (done < total) {
        const uint64_t kind = dice_below(&dice, 40);
        size_t batch = 1 + dice_below(&dice, total - done);

        for (; batch > 0; batch--, done++) {
            const uint32_t s = (uint32_t)dice_below(&dice, SERIES);

            add(store, s, &written[s][n_written[s]++]);
        }
        if (kind < 5)
            ok(series_finish(store, &err));
        else
            ok(series_commit(store, &err));
        if (kind < 10) {
            series_store_close(store);
            store = open_store(&small);
        }
    }
    series_store_close(store);
}

static void what_was_committed_is_read_back_in_order(void **state) {
    (void)state;
    for (int round = 0; round < 60; round++) {
        make_scratch(NULL);
        write_any();
        AUTO_PTR(series_reader) reader = open_reader();
        assert_int_equal(series_reader_count(reader), SERIES);
        assert_int_equal(series_reader_damaged(reader), 0);
        for (uint32_t s = 0; s < SERIES; s++)
            expect_points(reader, s, written[s], n_written[s]);
        drop_scratch(NULL);
    }
}

/* ---- buckets */

static int64_t key_of(enum series_axis axis, const struct point *point, size_t index) {
    return axis == SERIES_BY_STEP   ? point->step
           : axis == SERIES_BY_TIME ? point->time_us
                                    : (int64_t)index;
}

__extension__ typedef unsigned __int128 wide;

/* The same from the raw points, one by one. */
static void bucket_plainly(const struct point *points, size_t n, const struct series_range *range,
                           size_t n_buckets, struct summary *out) {
    const wide width = (wide)((uint64_t)range->to - (uint64_t)range->from) + 1;

    memset(out, 0, n_buckets * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        const int64_t key = key_of(range->axis, &points[i], i);
        const struct summary one = summary_of(&points[i], 1);

        if (key < range->from || key > range->to)
            continue;
        summary_append(
            &out[(size_t)((wide)((uint64_t)key - (uint64_t)range->from) * n_buckets / width)],
            &one);
    }
}

static bool nearly(double a, double b, double scale) {
    return values_equal(a, b) || a == b || fabs(a - b) <= 1e-9 * scale + DBL_MIN;
}

static void expect_buckets(const struct summary *a, const struct summary *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(a[i].count, b[i].count);
        if (a[i].count == 0)
            continue;
        assert_int_equal(a[i].nans, b[i].nans);
        assert_true(values_equal(a[i].min, b[i].min) || a[i].min == b[i].min);
        assert_true(values_equal(a[i].max, b[i].max) || a[i].max == b[i].max);
        assert_true(values_equal(a[i].last, b[i].last));
        assert_true(a[i].first_step == b[i].first_step && a[i].last_step == b[i].last_step);
        assert_true(a[i].min_time_us == b[i].min_time_us && a[i].max_time_us == b[i].max_time_us);
        if (!nearly(a[i].mean, b[i].mean, fmax(fabs(a[i].min), fabs(a[i].max))))
            fail_msg("bucket %zu: mean %g instead of %g", i, a[i].mean, b[i].mean);
    }
}

static void buckets_from_summaries_are_those_of_the_raw_points(void **state) {
    static struct summary fast[2000], plain[2000];

    (void)state;
    for (int round = 0; round < 40; round++) {
        make_scratch(NULL);
        write_any();
        AUTO_PTR(series_reader) reader = open_reader();
        for (int query = 0; query < 12; query++) {
            const uint32_t s = (uint32_t)dice_below(&dice, SERIES);
            const size_t n = 1 + dice_below(&dice, dice_below(&dice, 2) ? 2000 : 20);
            const enum series_axis axis = (enum series_axis)dice_below(&dice, 3);
            struct series_range range;

            if (!series_extent(reader, &s, 1, axis, &range)) {
                assert_int_equal(n_written[s], 0);
                continue;
            }
            if (dice_below(&dice, 2)) {
                const int64_t a = key_of(axis, &written[s][dice_below(&dice, n_written[s])], 5);
                const int64_t b = key_of(axis, &written[s][dice_below(&dice, n_written[s])], 900);

                range.from = a < b ? a : b;
                range.to = a < b ? b : a;
            }
            ok(series_buckets(reader, &s, 1, &range, n, fast, &err));
            bucket_plainly(written[s], n_written[s], &range, n, plain);
            expect_buckets(fast, plain, n);
        }
        drop_scratch(NULL);
    }
}

static void a_merged_store_has_a_tree_of_summaries(void **state) {
    enum { N = 400000 };
    struct series_store *store = open_store(NULL);
    const uint32_t id = find(store, "loss", 0, 0);
    struct summary buckets[7];
    struct series_range range;

    (void)state;
    for (int i = 0; i < N; i++) {
        series_add(store, id, i, i, i == 123456 ? -5.0 : i % 1000);
        if (series_is_full(store))
            ok(series_commit(store, &err));
    }
    ok(series_finish(store, &err));
    assert_true(series_is_finished(store));
    series_store_close(store);
    AUTO_PTR(series_reader) reader = open_reader();
    assert_true(series_extent(reader, &id, 1, SERIES_BY_STEP, &range));
    assert_true(range.from == 0 && range.to == N - 1);
    ok(series_buckets(reader, &id, 1, &range, 7, buckets, &err));
    assert_true(buckets[2].min == -5 && buckets[0].min == 0 && buckets[6].max == 999);
    assert_int_equal(buckets[3].count + buckets[0].count, 2 * N / 7 + 1);
}

static void attempts_are_kept_apart_and_can_be_joined(void **state) {
    struct series_store *store = open_store(NULL);
    const uint32_t ids[2] = { find(store, "loss", 0, 0), find(store, "loss", 0, 1) };
    const struct series_range range = { SERIES_BY_INDEX, 0, 3 };
    struct summary joined[2];

    (void)state;
    assert_int_not_equal(ids[0], ids[1]);
    for (int i = 0; i < 4; i++)
        series_add(store, ids[i / 2], i % 2, i, i);
    ok(series_commit(store, &err));
    series_store_close(store);
    AUTO_PTR(series_reader) reader = open_reader();
    assert_int_equal(series_reader_info(reader, 1).attempt, 1);
    ok(series_buckets(reader, ids, 2, &range, 2, joined, &err));
    assert_true(joined[0].count == 2 && joined[0].last == 1 && joined[1].min == 2);
}

static void ranks_fold_with_equal_weight(void **state) {
    struct series_store *store = open_store(NULL);
    const uint32_t ids[3] = { find(store, "loss", 0, 0), find(store, "loss", 1, 0),
                              find(store, "loss", 2, 0) };
    const struct series_range range = { SERIES_BY_STEP, 0, 9 };
    static const enum series_fold folds[] = { SERIES_FOLD_MEAN, SERIES_FOLD_MIN, SERIES_FOLD_MAX };
    static const double means[] = { 3, 2, 4 };
    struct summary out[2];

    (void)state;
    for (int i = 0; i < 10; i++)
        series_add(store, ids[0], 0, i, 2);
    series_add(store, ids[1], 1, 0, 4);
    series_add(store, ids[2], 1, 0, (double)NAN);
    ok(series_commit(store, &err));
    series_store_close(store);
    AUTO_PTR(series_reader) reader = open_reader();
    for (size_t i = 0; i < 3; i++) {
        ok(series_fold_buckets(reader, ids, 3, &range, folds[i], 2, out, &err));
        assert_true(out[0].mean == means[i] && out[0].last == means[i]);
        assert_true(out[0].min == 2 && out[0].max == 4 && out[0].count == 12 && out[0].nans == 1);
        assert_int_equal(out[1].count, 0);
    }
}

/* ---- names and marks */

static void names_are_made_fit_and_stay_apart(void **state) {
    struct series_store *store = open_store(NULL);
    char longest[300];
    uint32_t long_id;

    (void)state;
    memset(longest, 'x', sizeof longest);
    memcpy(longest + 254, "é", 2);
    long_id = series_find(store, longest, sizeof longest, 0, 0);
    assert_int_equal(series_find(store, longest, 254, 0, 0), long_id);
    assert_int_equal(series_find(store,
                                 "a\xff"
                                 "b",
                                 3, 0, 0),
                     series_find(store, "a?b", 3, 0, 0));
    assert_int_not_equal(series_find(store, "", 0, 0, 0), series_find(store, "", 0, 1, 0));
    ok(series_commit(store, &err));
    series_store_close(store);
    AUTO_PTR(series_reader) reader = open_reader();
    assert_int_equal(strlen(series_reader_info(reader, long_id).name), 254);
}

static void too_many_names_are_refused_and_counted(void **state) {
    struct series_store *store = open_store(NULL);
    char name[32];

    (void)state;
    for (uint32_t i = 0; i < SERIES_MOST; i++) {
        snprintf(name, sizeof name, "loss at step %u", i);
        assert_int_equal(find(store, name, 0, 0), i);
    }
    assert_int_equal(find(store, "one more", 0, 0), SERIES_NONE);
    series_add(store, SERIES_NONE, 0, 0, 0);
    assert_int_equal(series_refused(store), 1);
    assert_int_equal(find(store, "loss at step 7", 0, 0), 7);
    ok(series_commit(store, &err));
    series_store_close(store);
    store = open_store(NULL);
    assert_int_equal(find(store, "loss at step 9", 0, 0), 9);
    series_store_close(store);
}

static void count_marks(void *context, const char *source, uint64_t offset) {
    uint64_t *sum = context;

    assert_int_equal(source[0], 's');
    *sum += offset;
}

static void marks_hold_from_their_commit_on(void **state) {
    struct series_store *store = open_store(&small);
    uint64_t sum = 0;

    (void)state;
    for (int round = 0; round < 4; round++) {
        series_mark(store, "s/1", 100 + (uint64_t)round);
        series_mark(store, "s/2", 5);
        ok(round == 2 ? series_finish(store, &err) : series_commit(store, &err));
        series_mark(store, "s/1", 999);
        series_store_close(store);
        store = open_store(&small);
        assert_int_equal(series_marked(store, "s/1"), 100 + round);
        assert_int_equal(series_marked(store, "s/3"), 0);
    }
    series_unmark(store, "s/2");
    ok(series_commit(store, &err));
    series_store_close(store);
    store = open_store(&small);
    assert_int_equal(series_marked(store, "s/2"), 0);
    series_each_mark(store, count_marks, &sum);
    assert_int_equal(sum, 103);
    series_store_close(store);
}

static void there_is_one_writer_at_a_time(void **state) {
    struct series_store *store = open_store(NULL), *second = NULL;

    (void)state;
    assert_int_equal(series_store_open(directory, NULL, &second, &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    series_store_close(store);
    store = open_store(NULL);
    series_store_close(store);
}

static void a_store_that_was_never_made_is_not_found(void **state) {
    struct series_reader *reader = NULL;

    (void)state;
    assert_int_equal(series_reader_open(directory, &reader, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
}

static void a_log_that_is_too_large_is_said_to_be(void **state) {
    struct series_store *store = open_store(NULL);
    struct series_reader *reader = NULL;
    char path[128];

    (void)state;
    series_store_close(store);
    snprintf(path, sizeof path, "%s/wal", directory);
    assert_int_equal(truncate(path, (off_t)WAL_PAYLOAD_MOST + 1), 0);
    errno = EPERM;
    assert_int_equal(series_reader_open(directory, &reader, &err), -1);
    assert_int_equal(err.code, ERROR_IO);
    assert_non_null(strstr(err.message, "larger than any"));
    errno = EPERM;
    assert_int_equal(series_store_open(directory, NULL, &store, &err), -1);
    assert_int_equal(err.code, ERROR_IO);
    assert_non_null(strstr(err.message, "larger than any"));
}

static void a_reader_sees_a_prefix_while_somebody_writes(void **state) {
    struct series_store *store = open_store(&small);
    const uint32_t id = find(store, "loss", 0, 0);
    size_t n = 0, committed = 0;

    (void)state;
    points_fill(&dice, written[0], POINTS);
    for (int round = 0; round < 300 && n + 200 < POINTS; round++) {
        for (uint64_t batch = dice_below(&dice, 200); batch > 0; batch--)
            add(store, id, &written[0][n++]);
        AUTO_PTR(series_reader) before = open_reader();
        if (dice_below(&dice, 30) == 0)
            ok(series_finish(store, &err));
        else
            ok(series_commit(store, &err));
        AUTO_PTR(series_reader) after = open_reader();
        if (series_reader_count(before) > 0)
            expect_points(before, 0, written[0], committed);
        committed = n;
        expect_points(after, 0, written[0], committed);
    }
    series_store_close(store);
}

static void memory_is_bounded_with_64_ranks_of_1000_names(void **state) {
    enum { RANKS = 64, NAMES = 1000, ROUNDS = 12 };
    static uint32_t ids[RANKS][NAMES];
    struct series_store *store = open_store(NULL);
    size_t held = 0, most = 0;
    char name[32];

    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        for (int i = 0; i < NAMES; i++) {
            snprintf(name, sizeof name, "metric-%d", i);
            ids[r][i] = find(store, name, r, 0);
        }
    for (int round = 0; round < ROUNDS; round++)
        for (uint32_t r = 0; r < RANKS; r++)
            for (int i = 0; i < NAMES; i++) {
                series_add(store, ids[r][i], round, round * 1000, i);
                held++;
                most = held > most ? held : most;
                if (series_is_full(store)) {
                    ok(series_commit(store, &err));
                    assert_false(series_is_full(store));
                    held = 0;
                }
            }
    assert_true(most < 600000);
    ok(series_finish(store, &err));
    series_store_close(store);
    AUTO_PTR(series_reader) reader = open_reader();
    assert_int_equal(series_reader_count(reader), RANKS * NAMES);
    assert_int_equal(series_reader_info(reader, ids[63][999]).all.count, ROUNDS);
}

/* ---- files that somebody removes while the store is open */

static void remove_files(void) {
    char path[PATH_MAX];
    DIR *entries = opendir(directory);
    struct dirent *entry;

    while ((entry = readdir(entries))) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        unlink(path);
    }
    closedir(entries);
}

static void a_store_whose_files_are_removed_is_made_anew_with_all_points(void **state) {
    enum { N = 30000 };
    struct point *points = calloc(N, sizeof *points);

    (void)state;
    for (unsigned how = 0; how < 3; how++) {
        struct series_store *store = open_store(&small);
        const uint32_t loss = find(store, "loss", 0, how);
        struct series_reader *reader;

        for (size_t i = 0; i < N; i++) {
            points[i] =
                (struct point){ .step = (int64_t)i, .time_us = (int64_t)i, .value = (double)i };
            add(store, loss, &points[i]);
            if (i % 1000 == 0 || series_is_full(store))
                ok(series_commit(store, &err));
            if (i == N / 3 || i == N / 2) {
                remove_files();
                if (how > 0)
                    assert_int_equal(rmdir(directory), 0);
                if (how > 1)
                    assert_int_equal(mkdir(directory, 0700), 0);
            }
        }
        ok(series_finish(store, &err));
        assert_int_equal(series_remade(store), 2);
        series_store_close(store);
        reader = open_reader();
        expect_points(reader, how, points, N);
        series_reader_free(reader);
    }
    free(points);
}

static void points_of_too_many_series_are_counted_for_good(void **state) {
    struct series_store *store = open_store(NULL);

    (void)state;
    series_add(store, SERIES_NONE, 0, 0, 1);
    series_add(store, SERIES_NONE, 1, 0, 1);
    ok(series_commit(store, &err));
    series_store_close(store);
    store = open_store(NULL);
    series_add(store, SERIES_NONE, 2, 0, 1);
    assert_int_equal(series_refused(store), 3);
    ok(series_commit(store, &err));
    assert_int_equal(series_refused(store), 3);
    series_store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_committed_is_read_back_in_order),
        cmocka_unit_test(buckets_from_summaries_are_those_of_the_raw_points),
        CASE(a_merged_store_has_a_tree_of_summaries),
        CASE(attempts_are_kept_apart_and_can_be_joined),
        CASE(ranks_fold_with_equal_weight),
        CASE(names_are_made_fit_and_stay_apart),
        CASE(too_many_names_are_refused_and_counted),
        CASE(marks_hold_from_their_commit_on),
        CASE(there_is_one_writer_at_a_time),
        CASE(a_store_that_was_never_made_is_not_found),
        CASE(a_log_that_is_too_large_is_said_to_be),
        CASE(a_reader_sees_a_prefix_while_somebody_writes),
        CASE(memory_is_bounded_with_64_ranks_of_1000_names),
        CASE(a_store_whose_files_are_removed_is_made_anew_with_all_points),
        CASE(points_of_too_many_series_are_counted_for_good),
    };

    dice = dice_make();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
