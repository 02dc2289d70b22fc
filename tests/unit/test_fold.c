/* SPDX-License-Identifier: Apache-2.0 */
/* Every point that was logged becomes a point of a series, once. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "spooling.h"
#include "track/fold.h"
#include "track/query.h"

/* A run: <path>/spool/worker.<n>/ and <path>/series. */
struct folding {
    struct spooled root;
    char spool[96], series[96];
    struct series_store *store;
    struct fold *fold;
    size_t records; /* given */
    int refusals;   /* how many are still to be refused */
    bool is_mirror;
    char last[64];
};

static int64_t rank_of(void *context, const char *task) {
    (void)context;
    return strncmp(task, "worker.", 7) ? -1 : strtol(task + 7, NULL, 10);
}

static int take_record(void *context, const struct fold_record *record) {
    struct folding *folding = context;

    if (folding->refusals > 0) {
        folding->refusals--;
        return -1;
    }
    folding->records++;
    snprintf(folding->last, sizeof folding->last, "%d %u %.*s", (int)record->kind, record->rank,
             (int)record->n, record->json);
    return 0;
}

static void open_fold(struct folding *folding) {
    const struct fold_given given = {
        .directory = folding->spool,
        .is_mirror = folding->is_mirror,
        .rank = rank_of,
        .record = take_record,
        .context = folding,
    };
    struct fold_given full = given;
    struct error err;

    if (series_store_open(folding->series, NULL, &folding->store, &err))
        fail_msg("%s", err.message);
    full.store = folding->store;
    folding->fold = fold_new(&full);
}

static void close_fold(struct folding *folding) {
    fold_free(folding->fold);
    series_store_close(folding->store);
}

static void folding_make(struct folding *folding) {
    *folding = (struct folding){ 0 };
    spooled_make(&folding->root);
    snprintf(folding->spool, sizeof folding->spool, "%s/spool", folding->root.path);
    snprintf(folding->series, sizeof folding->series, "%s/series", folding->root.path);
    assert_int_equal(mkdir(folding->spool, 0755), 0);
    open_fold(folding);
}

static void folding_release(struct folding *folding) {
    close_fold(folding);
    spooled_release(&folding->root);
}

static struct fold_result step(struct folding *folding, enum fold_extent extent) {
    struct fold_result result;
    struct error err;

    if (fold_step(folding->fold, extent, &result, &err))
        fail_msg("%s", err.message);
    return result;
}

/* The folder of a task, made if it is missing. */
static const char *task_path(const struct folding *folding, int rank) {
    static char path[320];

    snprintf(path, sizeof path, "%s/worker.%d", folding->spool, rank);
    mkdir(path, 0755);
    return path;
}

static size_t files_in(const char *path) {
    struct seen seen;
    size_t n;

    see_spool(&seen, path);
    n = seen.files;
    seen_release(&seen);
    return n;
}

static struct fold_left left_in(const struct folding *folding) {
    struct fold_left left;

    fold_look(folding->spool, &left);
    return left;
}

static int log_from(struct myelin *m, const char *name, int64_t from, int64_t to) {
    const uint32_t number = myelin_name(m, name);

    for (int64_t i = from; i < to; i++)
        REQUIRE(!myelin_log(m, &number, &(double){ (double)i / 2 }, 1, i, MYELIN_NOW));
    return 0;
}

struct checking {
    int64_t next;
    bool is_wrong;
};

static bool check_point(void *context, const struct point *point) {
    struct checking *checking = context;

    checking->is_wrong |= point->step != checking->next || point->value != (double)point->step / 2;
    checking->next++;
    return true;
}

/* The series has the steps 0 .. n - 1, each once. */
static void assert_series(const struct folding *folding, const char *name, uint32_t rank,
                          uint32_t attempt, int64_t n) {
    struct series_reader *reader;
    struct error err;
    bool is_found = false;

    if (series_reader_open(folding->series, &reader, &err))
        fail_msg("%s", err.message);
    for (uint32_t i = 0; i < series_reader_count(reader); i++) {
        const struct series_info info = series_reader_info(reader, i);
        struct checking checking = { 0 };

        if (strcmp(info.name, name) != 0 || info.rank != rank || info.attempt != attempt)
            continue;
        if (series_points(reader, i, 0, UINT64_MAX, check_point, &checking, &err))
            fail_msg("%s", err.message);
        assert_false(checking.is_wrong);
        assert_int_equal(checking.next, n);
        is_found = true;
    }
    assert_true(is_found);
    series_reader_free(reader);
}

static void count_mark(void *context, const char *source, uint64_t offset) {
    (void)offset;
    *(size_t *)context += strchr(source, '/') != NULL;
}

static size_t marks_of(const struct folding *folding) {
    size_t n = 0;

    series_each_mark(folding->store, count_mark, &n);
    return n;
}

static void points_keep_their_task_and_attempt(void **state) {
    struct folding folding;
    struct myelin *a, *b;

    (void)state;
    folding_make(&folding);
    a = myelin_open_at(task_path(&folding, 0), 0);
    b = myelin_open_at(task_path(&folding, 5), 2);
    mkdir(strcat(strcpy((char[256]){ 0 }, folding.spool), "/stranger"), 0755);
    assert_int_equal(log_from(a, "loss", 0, 10), 0);
    assert_int_equal(log_from(b, "loss", 0, 20), 0);
    assert_int_equal(step(&folding, FOLD_LIVING).points, 30);
    assert_int_equal(step(&folding, FOLD_LIVING).points, 0);
    assert_int_equal(log_from(a, "loss", 10, 30000), 0);
    assert_int_equal(step(&folding, FOLD_LIVING).points, 29990);
    assert_series(&folding, "loss", 0, 0, 30000);
    assert_series(&folding, "loss", 5, 2, 20);
    myelin_close(a);
    myelin_close(b);
    folding_release(&folding);
}

static void a_segment_goes_when_it_is_committed_and_nobody_writes_to_it(void **state) {
    struct folding folding;
    struct myelin *m;

    (void)state;
    folding_make(&folding);
    m = myelin_open_at(task_path(&folding, 0), 0);
    assert_int_equal(log_from(m, "loss", 0, 50000), 0);
    assert_true(files_in(task_path(&folding, 0)) > 3);
    step(&folding, FOLD_LIVING);
    assert_in_range(files_in(task_path(&folding, 0)), 1,
                    2); /* the open one, and one prepared ahead */
    assert_int_equal(log_from(m, "loss", 50000, 50100), 0);
    step(&folding, FOLD_LIVING);
    assert_true(files_in(task_path(&folding, 0)) >= 1);
    myelin_close(m);
    step(&folding, FOLD_LIVING);
    assert_int_equal(files_in(task_path(&folding, 0)), 0);
    step(&folding, FOLD_LIVING);
    assert_int_equal(marks_of(&folding), 0); /* nothing is kept of a chain that is gone */
    assert_series(&folding, "loss", 0, 0, 50100);
    folding_release(&folding);
}

struct killed {
    const char *path;
    int64_t n;
};

static int log_and_die(void *context) {
    const struct killed *killed = context;
    struct myelin *m = myelin_open_at(killed->path, 0);

    REQUIRE(!log_from(m, "loss", 0, killed->n));
    raise(SIGKILL);
    return 1;
}

static void what_a_killed_process_left_is_folded_and_removed(void **state) {
    struct folding folding;

    (void)state;
    folding_make(&folding);
    waitpid(apart(log_and_die, &(struct killed){ task_path(&folding, 0), 40000 }), NULL, 0);
    assert_int_equal(step(&folding, FOLD_LIVING).points, 40000);
    step(&folding, FOLD_LIVING);
    assert_int_equal(files_in(task_path(&folding, 0)), 0);
    assert_series(&folding, "loss", 0, 0, 40000);
    folding_release(&folding);
}

/* Nobody here has the number or the lock of a process elsewhere. */
static void a_process_of_a_mirror_lives_until_the_run_is_over(void **state) {
    struct folding folding;

    (void)state;
    folding_make(&folding);
    close_fold(&folding);
    folding.is_mirror = true;
    open_fold(&folding);
    waitpid(apart(log_and_die, &(struct killed){ task_path(&folding, 0), 1000 }), NULL, 0);
    for (int i = 0; i < 3; i++)
        step(&folding, FOLD_LIVING);
    assert_true(files_in(task_path(&folding, 0)) > 0);
    assert_series(&folding, "loss", 0, 0, 1000);
    step(&folding, FOLD_OVER);
    assert_int_equal(files_in(task_path(&folding, 0)), 0);
    folding_release(&folding);
}

static void json_records_are_given_and_what_is_refused_is_given_again(void **state) {
    struct folding folding;
    struct myelin *m;

    (void)state;
    folding_make(&folding);
    m = myelin_open_at(task_path(&folding, 3), 0);
    assert_int_equal(log_from(m, "loss", 0, 10), 0);
    assert_int_equal(myelin_record(m, MYELIN_PARAMS, "{\"lr\":1}", 8), 0);
    assert_int_equal(log_from(m, "loss", 10, 20), 0);
    folding.refusals = 2;
    assert_int_equal(step(&folding, FOLD_LIVING).points, 10);
    assert_int_equal(step(&folding, FOLD_LIVING).points, 0);
    assert_int_equal(step(&folding, FOLD_LIVING).points, 10);
    assert_int_equal(folding.records, 1);
    assert_int_equal(myelin_record(m, MYELIN_TAGS, "{}", 2), 0);
    assert_int_equal(log_from(m, "loss", 20, 30), 0);
    myelin_close(m); /* the end of its process does not end the waiting */
    folding.refusals = 1;
    assert_int_equal(step(&folding, FOLD_OVER).refused, 1);
    assert_int_equal(files_in(task_path(&folding, 3)), 1);
    assert_int_equal(step(&folding, FOLD_OVER).points, 10);
    assert_int_equal(folding.records, 2);
    assert_int_equal(files_in(task_path(&folding, 3)), 0);
    assert_string_equal(folding.last, "4 3 {}");
    assert_series(&folding, "loss", 3, 0, 30);
    folding_release(&folding);
}

static void a_new_fold_reads_on_from_the_marks(void **state) {
    struct folding folding;
    struct myelin *m;

    (void)state;
    folding_make(&folding);
    m = myelin_open_at(task_path(&folding, 0), 0);
    for (int64_t i = 0; i < 40; i++) {
        assert_int_equal(log_from(m, "loss", i * 500, (i + 1) * 500), 0);
        assert_int_equal(step(&folding, FOLD_LIVING).points, 500);
        close_fold(&folding);
        open_fold(&folding);
    }
    assert_series(&folding, "loss", 0, 0, 40 * 500);
    myelin_close(m);
    folding_release(&folding);
}

/* Finds the file of a number in the folder of task 0. */
static void first_file(const struct folding *folding, unsigned number, char *path, size_t n) {
    struct dirent **entries;
    const char *directory = task_path(folding, 0);
    const int found = scandir(directory, &entries, NULL, alphasort);

    path[0] = '\0';
    for (int i = 0; i < found; i++) {
        struct spool_file file;

        if (spool_file_parse(entries[i]->d_name, &file) && file.number == number)
            snprintf(path, n, "%s/%s", directory, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    assert_true(path[0]);
}

static void damage_is_counted_once_and_ends_its_segment_alone(void **state) {
    struct folding folding;
    struct myelin *m;
    struct fold_result result;
    char path[800];
    int fd;

    (void)state;
    folding_make(&folding);
    m = myelin_open_at(task_path(&folding, 0), 0);
    assert_int_equal(log_from(m, "loss", 0, 60000), 0);
    first_file(&folding, 1, path, sizeof path);
    fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "damage", 6, 4096), 6);
    close(fd);
    first_file(&folding, 2, path, sizeof path);
    assert_int_equal(unlink(path), 0); /* not what anybody should do */
    result = step(&folding, FOLD_LIVING);
    assert_int_equal(result.bad, 1);
    assert_int_equal(result.lost, 1);
    assert_true(result.points > 3000 && result.points < 60000);
    result = step(&folding, FOLD_LIVING);
    assert_int_equal(result.bad + result.lost, 0);
    myelin_close(m);
    close_fold(&folding);
    open_fold(&folding);
    result = step(&folding, FOLD_OVER);
    assert_int_equal(result.bad + result.lost, 0);
    assert_int_equal(fold_totals(folding.store).bad, 1);
    assert_int_equal(fold_totals(folding.store).lost, 1);
    assert_int_equal(files_in(task_path(&folding, 0)), 0);
    assert_int_equal(left_in(&folding).damaged, 1);
    folding_release(&folding);
}

static void damage_at(const char *path, off_t offset, const void *bytes, size_t n) {
    const int fd = open(path, O_WRONLY);

    assert_int_equal(pwrite(fd, bytes, n, offset), (ssize_t)n);
    close(fd);
}

/* One who is killed after the commit, before the segment is set aside, is followed by one who does
 * so: what the disk shows then is made here. */
static void a_damaged_segment_is_set_aside_by_whoever_comes_after_the_commit(void **state) {
    struct folding folding;
    struct myelin *m;
    char path[800], aside[900];

    (void)state;
    folding_make(&folding);
    m = myelin_open_at(task_path(&folding, 0), 0);
    assert_int_equal(log_from(m, "loss", 0, 60000), 0);
    first_file(&folding, 1, path, sizeof path);
    damage_at(path, 4096, "damage", 6);
    assert_int_equal(step(&folding, FOLD_LIVING).bad, 1);
    snprintf(aside, sizeof aside, "%s%s", path, FOLD_ASIDE);
    assert_int_equal(rename(aside, path), 0);
    close_fold(&folding);
    open_fold(&folding);
    assert_int_equal(step(&folding, FOLD_LIVING).bad, 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(aside, F_OK), 0);
    myelin_close(m);
    assert_int_equal(step(&folding, FOLD_OVER).bad, 0);
    step(&folding, FOLD_OVER);
    assert_int_equal(marks_of(&folding), 0); /* nothing is kept of its chain */
    folding_release(&folding);
}

static void a_segment_that_lost_its_header_alone_is_set_aside(void **state) {
    struct folding folding;
    char path[800];

    (void)state;
    folding_make(&folding);
    snprintf(path, sizeof path, "%s/1-1-000000.spool", task_path(&folding, 0));
    close(open(path, O_WRONLY | O_CREAT, 0600));
    assert_int_equal(truncate(path, 8192), 0);
    assert_int_equal(step(&folding, FOLD_OVER).bad, 0); /* blank: prepared, and never used */
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof path, "%s/1-2-000000.spool", task_path(&folding, 0));
    close(open(path, O_WRONLY | O_CREAT, 0600));
    damage_at(path, 4096, "record", 6);
    close_fold(&folding);
    open_fold(&folding);
    assert_int_equal(step(&folding, FOLD_OVER).bad, 1);
    assert_int_equal(left_in(&folding).damaged, 1);
    folding_release(&folding);
}

static void segments_of_another_version_stay_as_they_are(void **state) {
    struct folding folding;
    struct myelin *m;
    struct fold_left left;
    const uint32_t version = 9, known = MYELIN_SPOOL_VERSION;
    char path[800];

    (void)state;
    folding_make(&folding);
    m = myelin_open_at(task_path(&folding, 0), 0);
    assert_int_equal(log_from(m, "loss", 0, 10), 0);
    first_file(&folding, 0, path, sizeof path);
    damage_at(path, offsetof(struct myelin_spool_header, version), &version, sizeof version);
    myelin_close(m);
    for (int i = 0; i < 2; i++) {
        const struct fold_result result = step(&folding, FOLD_OVER);

        assert_true(result.others == 1 && result.points == 0 && result.bad == 0);
        close_fold(&folding);
        open_fold(&folding);
    }
    left = left_in(&folding);
    assert_true(left.others == 1 && left.version == 9 && left.damaged == 0 && left.segments == 0);
    /* A program that knows it reads all. */
    damage_at(path, offsetof(struct myelin_spool_header, version), &known, sizeof known);
    assert_int_equal(step(&folding, FOLD_OVER).points, 10);
    assert_int_equal(access(path, F_OK), -1);
    folding_release(&folding);
}

static void files_that_are_no_segments_do_no_harm(void **state) {
    struct folding folding;
    char path[800];
    int fd;

    (void)state;
    folding_make(&folding);
    snprintf(path, sizeof path, "%s/1-1-000000.spool", task_path(&folding, 0));
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/2-1-000000.spool", task_path(&folding, 0));
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/3-1-000000.spool", task_path(&folding, 0));
    assert_int_equal(symlink("/dev/zero", path), 0);
    snprintf(path, sizeof path, "%s/4-1-000000.spool", task_path(&folding, 0));
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(
        write(fd,
              "this is not a segment of a spool, but it is long enough to have a header "
              "of 128 bytes, so that something is read of it. Or is it?",
              130),
        130);
    close(fd);
    snprintf(path, sizeof path, "%s/notes.txt", task_path(&folding, 0));
    close(open(path, O_WRONLY | O_CREAT, 0600));
    assert_int_equal(step(&folding, FOLD_LIVING).unread, 3);
    assert_int_equal(step(&folding, FOLD_OVER).points, 0);
    assert_int_equal(fold_totals(folding.store).bad, 1);
    assert_int_equal(access(path, F_OK), 0);
    folding_release(&folding);
}

static void what_was_dropped_is_counted_once(void **state) {
    struct folding folding;
    struct myelin *m;
    uint64_t dropped;
    const uint32_t nobody = MYELIN_NO_NAME;

    (void)state;
    folding_make(&folding);
    m = myelin_open_at(task_path(&folding, 0), 0);
    assert_int_equal(log_from(m, "loss", 0, 10), 0);
    for (int i = 0; i < 7; i++)
        assert_int_equal(myelin_log(m, &nobody, &(double){ 1 }, 1, 0, MYELIN_NOW), -1);
    dropped = step(&folding, FOLD_LIVING).dropped;
    assert_int_equal(dropped, 7);
    assert_int_equal(step(&folding, FOLD_LIVING).dropped, 0);
    close_fold(&folding);
    open_fold(&folding);
    assert_int_equal(step(&folding, FOLD_LIVING).dropped, 0);
    assert_int_equal(myelin_log(m, &nobody, &(double){ 1 }, 1, 0, MYELIN_NOW), -1);
    myelin_close(m);
    assert_int_equal(step(&folding, FOLD_OVER).dropped, 1);
    assert_int_equal(fold_totals(folding.store).dropped, 8);
    folding_release(&folding);
}

/* A file in the place of the task's folder, so that no segment can be made, and then none. */
static void what_was_dropped_without_a_segment_is_counted_once_too(void **state) {
    struct folding folding;
    struct myelin *m;
    char path[800], moved[900];

    (void)state;
    folding_make(&folding);
    snprintf(path, sizeof path, "%s", task_path(&folding, 0));
    snprintf(moved, sizeof moved, "%s/moved", folding.root.path);
    assert_int_equal(rename(path, moved), 0);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    m = myelin_open_at(path, 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(
            myelin_log(m, &(uint32_t){ myelin_name(m, "loss") }, &(double){ 1 }, 1, i, MYELIN_NOW),
            -1);
    assert_true(left_in(&folding).dropped > 0); /* since the first try, whatever comes */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(moved, path), 0);
    step(&folding, FOLD_LIVING);
    close_fold(&folding);
    open_fold(&folding);
    /* The header of the segment that is made now goes on from the count. */
    for (int tries = 0;
         tries < 5000 && myelin_dropped(m) < 100000 &&
         myelin_log(m, &(uint32_t){ myelin_name(m, "loss") }, &(double){ 1 }, 1, 9, MYELIN_NOW);
         tries++)
        usleep(2000);
    assert_int_equal(step(&folding, FOLD_LIVING).points, 1);
    assert_int_equal(fold_totals(folding.store).dropped, myelin_dropped(m));
    assert_int_equal(left_in(&folding).dropped, myelin_dropped(m));
    myelin_close(m);
    step(&folding, FOLD_OVER);
    step(&folding, FOLD_OVER);
    assert_int_equal(marks_of(&folding), 0); /* nothing is kept of its chain */
    folding_release(&folding);
}

static void what_a_process_dropped_that_never_had_a_segment_is_counted_once(void **state) {
    struct folding folding;
    struct myelin *m;
    char path[800];

    (void)state;
    folding_make(&folding);
    snprintf(path, sizeof path, "%s", task_path(&folding, 0));
    assert_int_equal(rmdir(path), 0);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    m = myelin_open_at(path, 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(
            myelin_log(m, &(uint32_t){ myelin_name(m, "loss") }, &(double){ 1 }, 1, i, MYELIN_NOW),
            -1);
    myelin_close(m);
    assert_int_equal(left_in(&folding).dropped, 1000);
    assert_int_equal(step(&folding, FOLD_LIVING).dropped, 1000);
    close_fold(&folding);
    open_fold(&folding);
    assert_int_equal(step(&folding, FOLD_OVER).dropped, 0);
    assert_int_equal(fold_totals(folding.store).dropped, 1000);
    assert_int_equal(unlink(path), 0);
    step(&folding, FOLD_OVER);
    assert_int_equal(left_in(&folding).dropped, 0); /* the link is gone */
    assert_int_equal(fold_totals(folding.store).dropped, 1000);
    folding_release(&folding);
}

/* ---- a folder that is killed */

enum { WRITERS = 3, WRITTEN = 120000 };

struct writer {
    const struct folding *folding;
    int rank;
};

static int write_slowly(void *context) {
    const struct writer *writer = context;
    struct myelin *m = myelin_open_at(task_path(writer->folding, writer->rank), 0);

    for (int64_t i = 0; i < WRITTEN; i += 500) {
        REQUIRE(!log_from(m, "loss", i, i + 500));
        usleep(2000);
    }
    if (writer->rank % 2)
        myelin_close(m);
    return 0;
}

static int fold_for_ever(void *context) {
    struct folding folding = *(struct folding *)context;
    struct fold_given given = {
        .directory = folding.spool, .rank = rank_of, .record = take_record, .context = &folding
    };
    struct fold_result result;
    struct error err;

    REQUIRE(!series_store_open(folding.series, NULL, &given.store, &err));
    folding.fold = fold_new(&given);
    for (;;)
        REQUIRE(!fold_step(folding.fold, FOLD_LIVING, &result, &err));
}

static void a_folder_that_is_killed_at_any_moment_neither_loses_nor_doubles(void **state) {
    struct folding folding;
    pid_t writers[WRITERS];
    size_t kills = 0, ended = 0;

    (void)state;
    folding_make(&folding);
    close_fold(&folding);
    srand((unsigned)time(NULL));
    for (int i = 0; i < WRITERS; i++) {
        task_path(&folding, i);
        writers[i] = apart(write_slowly, &(struct writer){ &folding, i });
    }
    while (ended < WRITERS) {
        const pid_t pid = apart(fold_for_ever, &folding);
        int status;

        usleep((useconds_t)(rand() % 25000));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status)); /* it ends by itself only with an error */
        kills++;
        for (int i = 0; i < WRITERS; i++)
            if (writers[i] && waitpid(writers[i], &status, WNOHANG) == writers[i]) {
                assert_int_equal(status, 0);
                writers[i] = 0;
                ended++;
            }
    }
    open_fold(&folding);
    while (step(&folding, FOLD_OVER).more)
        ;
    for (int i = 0; i < WRITERS; i++) {
        assert_series(&folding, "loss", (uint32_t)i, 0, WRITTEN);
        assert_int_equal(files_in(task_path(&folding, i)), 0);
    }
    assert_int_equal(fold_totals(folding.store).bad + fold_totals(folding.store).lost, 0);
    step(&folding, FOLD_OVER);
    assert_int_equal(marks_of(&folding), 0);
    print_message("# %zu kills\n", kills);
    folding_release(&folding);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_keep_their_task_and_attempt),
        cmocka_unit_test(a_segment_goes_when_it_is_committed_and_nobody_writes_to_it),
        cmocka_unit_test(what_a_killed_process_left_is_folded_and_removed),
        cmocka_unit_test(a_process_of_a_mirror_lives_until_the_run_is_over),
        cmocka_unit_test(json_records_are_given_and_what_is_refused_is_given_again),
        cmocka_unit_test(a_new_fold_reads_on_from_the_marks),
        cmocka_unit_test(damage_is_counted_once_and_ends_its_segment_alone),
        cmocka_unit_test(files_that_are_no_segments_do_no_harm),
        cmocka_unit_test(a_damaged_segment_is_set_aside_by_whoever_comes_after_the_commit),
        cmocka_unit_test(a_segment_that_lost_its_header_alone_is_set_aside),
        cmocka_unit_test(segments_of_another_version_stay_as_they_are),
        cmocka_unit_test(what_was_dropped_is_counted_once),
        cmocka_unit_test(what_was_dropped_without_a_segment_is_counted_once_too),
        cmocka_unit_test(what_a_process_dropped_that_never_had_a_segment_is_counted_once),
        cmocka_unit_test(a_folder_that_is_killed_at_any_moment_neither_loses_nor_doubles),
    };

    return cmocka_run_group_tests_name("fold", tests, NULL, NULL);
}
