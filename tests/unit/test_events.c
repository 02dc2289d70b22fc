/* SPDX-License-Identifier: Apache-2.0 */
/* Event files: what was written is read, once; what was damaged is counted, and nothing else lost.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "points.h"
#include "scratch.h"
#include "track/events_export.h"
#include "track/events_file.h"
#include "track/events_follow.h"

enum { POINTS = 200 };

static struct dice dice;

/* ---- the bytes ---- */

struct seen {
    struct point points[POINTS];
    size_t n, bad, lost;
    char tag[64];
};

static void see_point(void *context, const char *tag, size_t n, const struct point *point) {
    struct seen *seen = context;

    assert_true(seen->n < POINTS && n < sizeof seen->tag);
    snprintf(seen->tag, sizeof seen->tag, "%.*s", (int)n, tag);
    seen->points[seen->n++] = *point;
}

/* Reads all; returns where it ends. */
static size_t see(const unsigned char *bytes, size_t n, struct seen *seen) {
    size_t at = 0;

    *seen = (struct seen){ 0 };
    while (at < n) {
        const struct events_record record = events_next(bytes + at, n - at);

        assert_true(record.room > 0);
        if (record.kind == EVENTS_SHORT || record.kind == EVENTS_LARGE)
            break;
        assert_true(record.room <= n - at);
        seen->bad += record.kind == EVENTS_BAD;
        seen->lost += record.kind == EVENTS_LOST;
        if (record.kind == EVENTS_RECORD)
            assert_true(events_decode(record.data, record.n, see_point, seen));
        at += record.room;
    }
    return at;
}

/* A file with points that are floats, and where each record begins. */
static void write_points(struct bytes *out, struct point points[POINTS],
                         size_t starts[POINTS + 1]) {
    events_put_version(out, 1700000000000000);
    for (size_t i = 0; i < POINTS; i++) {
        points[i] =
            (struct point){ .step = odd_integer(&dice),
                            .time_us = 1700000000000000 + (int64_t)dice_below(&dice, 1 << 30),
                            .value = (double)(float)odd_value(&dice) };
        starts[i] = out->len;
        events_put_scalar(out, "train/loss", &points[i]);
    }
    starts[POINTS] = out->len;
}

static void what_is_written_is_read_back(void **state) {
    struct point points[POINTS];
    size_t starts[POINTS + 1];
    struct bytes bytes = { 0 };
    struct seen seen;

    (void)state;
    write_points(&bytes, points, starts);
    assert_int_equal(see(bytes.data, bytes.len, &seen), bytes.len);
    assert_int_equal(seen.n, POINTS);
    assert_int_equal(seen.bad + seen.lost, 0);
    assert_string_equal(seen.tag, "train/loss");
    for (size_t i = 0; i < POINTS; i++)
        assert_true(points_equal(&points[i], &seen.points[i]));
    bytes_release(&bytes);
}

static void every_cut_gives_a_prefix_and_waits(void **state) {
    struct point points[POINTS];
    size_t starts[POINTS + 1];
    struct bytes bytes = { 0 };
    struct seen seen;

    (void)state;
    write_points(&bytes, points, starts);
    for (size_t cut = 0, whole = 0; cut < bytes.len; cut++) {
        unsigned char *copy = malloc(cut + 1); /* so that a read beyond the cut is seen */
        const size_t end = see(memcpy(copy, bytes.data, cut), cut, &seen);

        while (whole < POINTS && starts[whole + 1] <= cut)
            whole++;
        assert_int_equal(seen.n, whole);
        assert_int_equal(seen.bad + seen.lost, 0);
        assert_int_equal(end, cut < starts[0] ? 0 : starts[whole]);
        free(copy);
    }
    bytes_release(&bytes);
}

/* The points seen are those written but for one, which is the given. */
static void assert_one_lost(const struct seen *seen, const struct point *points, size_t lost) {
    assert_int_equal(seen->n, POINTS - 1);
    for (size_t i = 0; i < seen->n; i++)
        assert_true(points_equal(&seen->points[i], &points[i < lost ? i : i + 1]));
}

static void a_changed_byte_costs_its_record_alone(void **state) {
    struct point points[POINTS];
    size_t starts[POINTS + 1];
    struct bytes bytes = { 0 };
    struct seen seen;

    (void)state;
    write_points(&bytes, points, starts);
    for (size_t i = 0; i < POINTS - 1; i++)
        for (size_t at = starts[i]; at < starts[i + 1]; at++) {
            const unsigned char flip = (unsigned char)(1 + dice_below(&dice, 255));

            bytes.data[at] ^= flip;
            assert_int_equal(see(bytes.data, bytes.len, &seen), bytes.len);
            assert_one_lost(&seen, points, i);
            assert_int_equal(seen.lost, at < starts[i] + EVENTS_HEAD);
            assert_int_equal(seen.bad, at >= starts[i] + EVENTS_HEAD);
            bytes.data[at] ^= flip;
        }
    bytes_release(&bytes);
}

static void no_damage_makes_a_point_that_was_not_written(void **state) {
    struct point points[POINTS];
    size_t starts[POINTS + 1];
    struct bytes bytes = { 0 };
    struct seen seen;

    (void)state;
    write_points(&bytes, points, starts);
    for (int round = 0; round < 2000; round++) {
        const size_t from = dice_below(&dice, bytes.len), n = dice_below(&dice, bytes.len - from);
        unsigned char *copy = malloc(bytes.len);
        size_t at = 0;

        memcpy(copy, bytes.data, bytes.len);
        for (size_t k = 0; k < n; k++)
            if (round % 2)
                copy[from + k] = (unsigned char)dice_roll(&dice);
            else if (dice_below(&dice, 50) == 0)
                copy[from + k] ^= (unsigned char)(1 << dice_below(&dice, 8));
        see(copy, bytes.len, &seen);
        for (size_t i = 0; i < seen.n; i++, at++) {
            while (at < POINTS && !points_equal(&points[at], &seen.points[i]))
                at++;
            assert_true(at < POINTS);
        }
        free(copy);
    }
    bytes_release(&bytes);
}

/* Summary.Value with these fields behind the tag "t"; what of it is seen. */
static struct seen see_value(const char *fields, size_t n) {
    struct bytes event = { 0 };
    struct seen seen = { 0 };

    bytes_put(&event, "\x10\x07\x2a", 3); /* step 7, then the summary */
    bytes_varint(&event, n + 5);
    bytes_put(&event, "\x0a", 1);
    bytes_varint(&event, n + 3);
    bytes_put(&event, "\x0a\x01t", 3);
    bytes_put(&event, fields, n);
    assert_true(events_decode(event.data, event.len, see_point, &seen));
    assert_true(seen.n == 0 || seen.points[0].step == 7);
    bytes_release(&event);
    return seen;
}

static void scalars_are_read_in_every_form_and_nothing_else_is(void **state) {
#define ROW(bytes, value)                                                                          \
    { (bytes), sizeof(bytes) - 1, (value) }
    static const struct {
        const char *fields;
        size_t n;
        double value; /* NaN: it is no scalar */
    } rows[] = {
        ROW("\x15\x00\x00\x80\x3f", 1),                                   /* simple_value */
        ROW("\x42\x09\x08\x01\x12\x00\x2a\x03\x00\x00\x80", (double)NAN), /* cut float_val */
        ROW("\x42\x0a\x08\x01\x12\x00\x2a\x04\x00\x00\x80\x3f", 1),       /* float_val */
        ROW("\x42\x09\x08\x01\x12\x00\x2d\x00\x00\x80\x3f", 1),           /* … not packed */
        ROW("\x42\x0a\x08\x01\x12\x00\x22\x04\x00\x00\x00\x40", 2),       /* tensor_content */
        ROW("\x42\x0e\x08\x02\x12\x00\x32\x08\0\0\0\0\0\0\xf8\x3f", 1.5), /* double_val */
        ROW("\x42\x0e\x08\x02\x12\x00\x22\x08\0\0\0\0\0\0\xf8\x3f", 1.5), /* its content */
        ROW("\x42\x08\x08\x13\x12\x00\x6a\x02\x80\x78", 1),               /* half_val */
        ROW("\x42\x08\x08\x13\x12\x00\x22\x02\x01\x80", -5.9604644775390625e-8), /* least half */
        ROW("\x42\x08\x08\x0e\x12\x00\x22\x02\x80\x3f", 1),                      /* bfloat16 */
        ROW("\x42\x07\x08\x03\x12\x00\x3a\x01\x05", 5),                          /* int_val */
        ROW("\x42\x08\x08\x03\x22\x04\xfe\xff\xff\xff", -2), /* int32, no shape */
        ROW("\x42\x07\x08\x09\x12\x00\x52\x01\x05", 5),      /* int64_val */
        ROW("\x42\x04\x08\x01\x12\x00", 0),                  /* a 0 left out */
        ROW("\x42\x0e\x08\x01\x12\x04\x12\x02\x08\x01\x22\x04\x00\x00\x80\x3f", (double)NAN),
        ROW("\x42\x07\x08\x07\x12\x00\x42\x01x", (double)NAN), /* a string */
        ROW("\x2a\x02\x09\x00", (double)NAN),                  /* a histogram */
        ROW("\x42\x0a\x08\x01\x12\x00\x2a\x04\x00\x00\x80\x3f" /* … of plugin "scalars" */
            "\x4a\x0b\x0a\x09\x0a\x07scalars",
            1),
        ROW("\x42\x0a\x08\x01\x12\x00\x2a\x04\x00\x00\x80\x3f" /* … of another */
            "\x4a\x0b\x0a\x09\x0a\x07hparams",
            (double)NAN),
        ROW("\x9a\x06\x03xyz\x15\x00\x00\x80\x3f", 1), /* a field from the future */
    };
#undef ROW

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct seen seen = see_value(rows[i].fields, rows[i].n);

        if (seen.n != !isnan(rows[i].value) ||
            (seen.n && !values_equal(seen.points[0].value, rows[i].value)))
            fail_msg("row %zu: %zu seen, %g", i, seen.n, seen.points[0].value);
    }
}

/* ---- following ---- */

struct stage {
    char path[64], outputs[96], series[96];
    struct series_store *store;
    struct events_follow *follow;
};

static int64_t rank_of(void *context, int64_t pid) {
    (void)context;
    return pid == 4242 ? 3 : -1;
}

static void open_stage(struct stage *stage) {
    struct error err;

    if (series_store_open(stage->series, NULL, &stage->store, &err))
        fail_msg("%s", err.message);
    stage->follow =
        events_follow_new(&(struct events_given){ .directory = stage->outputs, .rank = rank_of });
}

static void reopen_store(struct stage *stage) {
    struct error err;

    series_store_close(stage->store);
    if (series_store_open(stage->series, NULL, &stage->store, &err))
        fail_msg("%s", err.message);
}

static void close_stage(struct stage *stage) {
    series_store_close(stage->store);
    events_follow_free(stage->follow);
}

static void stage_make(struct stage *stage) {
    scratch_make(stage->path);
    snprintf(stage->outputs, sizeof stage->outputs, "%s/outputs", stage->path);
    snprintf(stage->series, sizeof stage->series, "%s/series", stage->path);
    assert_int_equal(mkdir(stage->outputs, 0777), 0);
    open_stage(stage);
}

static void stage_release(struct stage *stage) {
    close_stage(stage);
    scratch_remove(stage->path);
}

/* Appends to a file below outputs/, whose folders are made. */
static void append(const struct stage *stage, const char *name, const void *bytes, size_t n) {
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", stage->outputs, name);
    for (char *at = path + strlen(stage->outputs) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path, 0777);
        *at = '/';
    }
    file = fopen(path, "ae");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static struct events_result step(struct stage *stage, enum events_extent extent) {
    struct events_result result = { 0 };
    struct error err;

    if (events_follow_look(stage->follow, extent) &&
        events_follow_read(stage->follow, extent, stage->store, 0, &result, &err))
        fail_msg("%s", err.message);
    return result;
}

static void commit(struct stage *stage) {
    struct error err;

    if (series_commit(stage->store, &err))
        fail_msg("%s", err.message);
}

struct kept {
    struct point points[4 * POINTS];
    size_t n;
    uint32_t rank;
};

static bool keep_point(void *context, const struct point *point) {
    struct kept *kept = context;

    assert_true(kept->n < ARRAY_LEN(kept->points));
    kept->points[kept->n++] = *point;
    return true;
}

static void read_kept(const struct stage *stage, const char *name, struct kept *kept) {
    struct series_reader *reader;
    struct error err;

    kept->n = 0;
    if (series_reader_open(stage->series, &reader, &err))
        fail_msg("%s", err.message);
    for (uint32_t i = 0; i < series_reader_count(reader); i++) {
        const struct series_info info = series_reader_info(reader, i);

        if (strcmp(info.name, name) != 0)
            continue;
        kept->rank = info.rank;
        if (series_points(reader, i, 0, info.all.count, keep_point, kept, &err))
            fail_msg("%s", err.message);
    }
    series_reader_free(reader);
}

static void a_file_that_grows_is_read_once_whoever_is_killed_meanwhile(void **state) {
    static const char name[] = "logs/train/events.out.tfevents.1700000000.host.4242.0";
    static struct kept kept;
    struct point points[POINTS];
    size_t starts[POINTS + 1];

    (void)state;
    for (int round = 0; round < 20; round++) {
        struct bytes bytes = { 0 };
        struct stage stage;

        stage_make(&stage);
        write_points(&bytes, points, starts);
        for (size_t at = 0, n; at < bytes.len; at += n) {
            n = 1 + dice_below(&dice, 2000);
            n = n < bytes.len - at ? n : bytes.len - at;
            append(&stage, name, bytes.data + at, n);
            if (at == 0 || dice_below(&dice, 2))
                assert_int_equal(step(&stage, EVENTS_LIVING).bad, 0);
            if (dice_below(&dice, 2))
                commit(&stage);
            if (dice_below(&dice, 3) == 0) { /* killed: what was not committed is forgotten */
                close_stage(&stage);
                open_stage(&stage);
            } else if (dice_below(&dice, 3) == 0) { /* likewise, but for the follower */
                events_follow_forget(stage.follow);
                reopen_store(&stage);
            }
        }
        assert_int_equal(step(&stage, EVENTS_OVER).bad, 0);
        commit(&stage);
        assert_int_equal(step(&stage, EVENTS_OVER).points, 0);
        read_kept(&stage, "logs/train/train/loss", &kept);
        assert_int_equal(kept.n, POINTS);
        assert_int_equal(kept.rank, 3);
        for (size_t i = 0; i < POINTS; i++)
            assert_true(points_equal(&points[i], &kept.points[i]));
        bytes_release(&bytes);
        stage_release(&stage);
    }
}

static void files_of_two_folders_stay_apart_and_links_are_not_followed(void **state) {
    static struct kept kept;
    const struct point one = { 1, 1700000000000000, 1 }, two = { 2, 1700000000000000, 2 };
    struct bytes bytes = { 0 };
    struct stage stage;
    char link[128];

    (void)state;
    stage_make(&stage);
    events_put_scalar(&bytes, "loss", &one);
    append(&stage, "train/x.tfevents.1", bytes.data, bytes.len);
    append(&stage, "checkpoint", bytes.data, bytes.len);
    bytes.len = 0;
    events_put_scalar(&bytes, "loss", &two);
    append(&stage, "test/x.tfevents.1", bytes.data, bytes.len);
    append(&stage, "x.tfevents.1", bytes.data, bytes.len);
    snprintf(link, sizeof link, "%s/linked", stage.outputs);
    assert_int_equal(symlink("train", link), 0);
    snprintf(link, sizeof link, "%s/y.tfevents.2", stage.outputs);
    assert_int_equal(symlink("train/x.tfevents.1", link), 0);
    snprintf(link, sizeof link, "%s/z.tfevents.3", stage.outputs);
    assert_int_equal(mkfifo(link, 0777), 0);
    assert_int_equal(step(&stage, EVENTS_LIVING).points, 3);
    commit(&stage);
    read_kept(&stage, "train/loss", &kept);
    assert_true(kept.n == 1 && points_equal(&kept.points[0], &one));
    read_kept(&stage, "test/loss", &kept);
    assert_true(kept.n == 1 && points_equal(&kept.points[0], &two));
    read_kept(&stage, "loss", &kept);
    assert_true(kept.n == 1 && points_equal(&kept.points[0], &two));
    bytes_release(&bytes);
    stage_release(&stage);
}

static void what_stood_there_before_is_not_read_and_a_file_made_anew_is(void **state) {
    const struct point point = { 1, 1700000000000000, 1 };
    struct bytes bytes = { 0 };
    struct stage stage;
    char path[128];

    (void)state;
    stage_make(&stage);
    for (int i = 0; i < 5; i++)
        events_put_scalar(&bytes, "loss", &point);
    append(&stage, "a.tfevents", bytes.data, bytes.len);
    assert_true(events_follow_look(stage.follow, EVENTS_OVER));
    events_follow_skip(stage.follow);
    assert_int_equal(step(&stage, EVENTS_LIVING).points, 0);
    append(&stage, "a.tfevents", bytes.data, bytes.len);
    assert_int_equal(step(&stage, EVENTS_LIVING).points, 5);
    snprintf(path, sizeof path, "%s/a.tfevents", stage.outputs);
    assert_int_equal(truncate(path, (off_t)bytes.len / 5), 0);
    assert_int_equal(step(&stage, EVENTS_LIVING).points, 1);
    bytes_release(&bytes);
    stage_release(&stage);
}

static void damage_is_counted_and_a_cut_record_waits_until_nobody_writes(void **state) {
    const struct point point = { 1, 1700000000000000, 1 };
    struct bytes bytes = { 0 };
    struct stage stage;
    size_t one;

    (void)state;
    stage_make(&stage);
    events_put_scalar(&bytes, "loss", &point);
    one = bytes.len;
    for (int i = 0; i < 3; i++)
        events_put_scalar(&bytes, "loss", &point);
    bytes.data[one + EVENTS_HEAD + 2] ^= 1;
    append(&stage, "a.tfevents", bytes.data, bytes.len - 1);
    assert_int_equal(step(&stage, EVENTS_LIVING).points, 2);
    assert_int_equal(events_bad_total(stage.store), 1);
    assert_int_equal(step(&stage, EVENTS_LIVING).bad, 0);
    assert_int_equal(step(&stage, EVENTS_OVER).bad, 1);
    assert_int_equal(step(&stage, EVENTS_OVER).bad, 0);
    assert_int_equal(events_bad_total(stage.store), 2);
    bytes_release(&bytes);
    stage_release(&stage);
}

static void files_beyond_the_limit_are_left_out_and_told(void **state) {
    const struct point point = { 1, 1700000000000000, 1 };
    struct bytes bytes = { 0 };
    struct stage stage;
    char name[64];

    (void)state;
    stage_make(&stage);
    events_put_scalar(&bytes, "loss", &point);
    for (int i = 0; i < EVENTS_FILES_MOST; i++) {
        snprintf(name, sizeof name, "%d.tfevents", i);
        append(&stage, name, bytes.data, bytes.len);
    }
    assert_int_equal(step(&stage, EVENTS_OVER).points, EVENTS_FILES_MOST);
    assert_false(events_follow_is_full(stage.follow));
    append(&stage, "one-more.tfevents", bytes.data, bytes.len);
    assert_int_equal(step(&stage, EVENTS_OVER).points, 0);
    assert_true(events_follow_is_full(stage.follow));
    bytes_release(&bytes);
    stage_release(&stage);
}

static void a_record_too_long_to_be_a_scalar_is_passed_over(void **state) {
    const struct point point = { 1, 1700000000000000, 1 };
    const uint64_t length = htole64(EVENTS_RECORD_MOST + 1);
    struct bytes bytes = { 0 };
    struct stage stage;
    uint32_t sum = crc32c(0, &length, sizeof length);
    char path[128];

    (void)state;
    stage_make(&stage);
    bytes_put(&bytes, &length, sizeof length);
    bytes_u32(&bytes, (sum >> 15 | sum << 17) + 0xa282ead8U);
    append(&stage, "a.tfevents", bytes.data, bytes.len);
    assert_int_equal(step(&stage, EVENTS_LIVING).large, 0);
    snprintf(path, sizeof path, "%s/a.tfevents", stage.outputs);
    assert_int_equal(truncate(path, EVENTS_HEAD + EVENTS_RECORD_MOST + 1 + 4), 0);
    bytes.len = 0;
    events_put_scalar(&bytes, "loss", &point);
    append(&stage, "a.tfevents", bytes.data, bytes.len);
    assert_int_equal(step(&stage, EVENTS_LIVING).points, 1);
    assert_int_equal(events_bad_total(stage.store), 0);
    bytes_release(&bytes);
    stage_release(&stage);
}

/* ---- exporting ---- */

static void name_task(void *context, uint32_t rank, char out[EVENTS_TASK_MOST]) {
    (void)context;
    snprintf(out, EVENTS_TASK_MOST, "worker.%u", rank);
}

static void what_is_exported_is_followed_to_the_same_series(void **state) {
    static struct kept kept;
    struct series_reader *reader;
    struct stage stage, other;
    struct error err;

    (void)state;
    stage_make(&stage);
    stage_make(&other);
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint32_t attempt = 0; attempt < 2; attempt++)
            for (int64_t i = 0; i < POINTS; i++)
                series_add(stage.store, series_find(stage.store, "loss", 4, rank, attempt), i,
                           1700000000000000 + i, (double)i / 4 + rank * 100 + attempt * 10);
    commit(&stage);
    assert_int_equal(series_reader_open(stage.series, &reader, &err), 0);
    if (events_export(reader,
                      &(struct events_export){
                          .directory = other.outputs, .name = "x.tfevents.1", .task = name_task },
                      &err))
        fail_msg("%s", err.message);
    series_reader_free(reader);
    assert_int_equal(step(&other, EVENTS_OVER).points, 4 * POINTS);
    commit(&other);
    read_kept(&other, "worker.1/attempt-1/loss", &kept);
    assert_int_equal(kept.n, POINTS);
    for (size_t i = 0; i < POINTS; i++)
        assert_true(points_equal(
            &kept.points[i],
            &(struct point){ (int64_t)i, 1700000000000000 + (int64_t)i, (double)i / 4 + 110 }));
    stage_release(&stage);
    stage_release(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(every_cut_gives_a_prefix_and_waits),
        cmocka_unit_test(a_changed_byte_costs_its_record_alone),
        cmocka_unit_test(no_damage_makes_a_point_that_was_not_written),
        cmocka_unit_test(scalars_are_read_in_every_form_and_nothing_else_is),
        cmocka_unit_test(a_file_that_grows_is_read_once_whoever_is_killed_meanwhile),
        cmocka_unit_test(files_of_two_folders_stay_apart_and_links_are_not_followed),
        cmocka_unit_test(what_stood_there_before_is_not_read_and_a_file_made_anew_is),
        cmocka_unit_test(damage_is_counted_and_a_cut_record_waits_until_nobody_writes),
        cmocka_unit_test(files_beyond_the_limit_are_left_out_and_told),
        cmocka_unit_test(a_record_too_long_to_be_a_scalar_is_passed_over),
        cmocka_unit_test(what_is_exported_is_followed_to_the_same_series),
    };

    dice = dice_make();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
