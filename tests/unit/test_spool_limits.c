/* SPDX-License-Identifier: Apache-2.0 */
/* Where a spool cannot be written, points are dropped and counted, and the program goes on. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "spooling.h"

/* Logs n points of one name; returns how many were kept. */
static uint64_t log_some(struct myelin *m, uint64_t n) {
    const uint32_t name = myelin_name(m, "x");
    uint64_t kept = 0;

    for (uint64_t i = 0; i < n; i++) {
        const double value = (double)i;

        kept += !myelin_log(m, &name, &value, 1, (int64_t)i, MYELIN_NOW);
    }
    return kept;
}

static void outside_a_run_nothing_is_kept_and_the_reason_is_said(void **state) {
    const double value = 1;
    const uint32_t name = 0;
    struct myelin *m;

    (void)state;
    unsetenv("MYELIN_SPOOL");
    m = myelin_open();
    assert_non_null(m);
    assert_int_equal(myelin_name(m, "x"), MYELIN_NO_NAME);
    assert_int_equal(myelin_log(m, &name, &value, 1, 0, MYELIN_NOW), -1);
    assert_int_equal(myelin_record(m, MYELIN_TAGS, "{}", 2), -1);
    assert_string_equal(myelin_reason(m), "this is not a run of myelin: MYELIN_SPOOL is not set");
    myelin_close(m);
    assert_int_equal(myelin_log(NULL, &name, &value, 1, 0, MYELIN_NOW), -1);
    assert_int_equal(myelin_name(NULL, "x"), MYELIN_NO_NAME);
    assert_int_equal(myelin_dropped(NULL), 0);
    assert_non_null(myelin_reason(NULL));
    myelin_close(NULL);
}

static void the_environment_says_where_and_which_attempt(void **state) {
    struct spooled spool;
    struct seen seen;
    struct myelin *m;

    (void)state;
    spooled_make(&spool);
    setenv("MYELIN_SPOOL", spool.path, 1);
    setenv("MYELIN_ATTEMPT", "4", 1);
    m = myelin_open();
    assert_int_equal(log_some(m, 10), 10);
    see_spool(&seen, spool.path);
    assert_int_equal(seen.attempt, 4);
    assert_int_equal(seen.files, 1); /* ten points cost one small segment */
    myelin_close(m);
    unsetenv("MYELIN_SPOOL");
    unsetenv("MYELIN_ATTEMPT");
    seen_release(&seen);
    spooled_release(&spool);
}

static void names_are_kept_valid_and_apart(void **state) {
    char longs[2][400], invalid[] = "a\xff\xc3\nb";
    struct spooled spool;
    struct seen seen;
    struct myelin *m;
    const double value = NAN;

    (void)state;
    spooled_make(&spool);
    m = myelin_open_at(spool.path, 0);
    for (int i = 0; i < 2; i++) {
        const uint32_t name =
            (memset(longs[i], 'n', sizeof longs[i]), longs[i][399] = (char)('0' + i),
             myelin_name_n(m, longs[i], sizeof longs[i]));

        assert_int_equal(myelin_log(m, &name, &value, 1, 0, MYELIN_NOW), 0);
        assert_int_equal(myelin_name_n(m, longs[i], sizeof longs[i]), name);
    }
    assert_int_equal(
        myelin_log(m, &(uint32_t){ myelin_name(m, invalid) }, &value, 1, 0, MYELIN_NOW), 0);
    assert_int_equal(myelin_name(m, ""), MYELIN_NO_NAME);
    assert_int_equal(myelin_log(m, &(uint32_t){ MYELIN_NO_NAME }, &value, 1, 0, MYELIN_NOW), -1);
    assert_int_equal(myelin_log(m, &(uint32_t){ 77 }, &value, 1, 0, MYELIN_NOW), -1);
    assert_int_equal(myelin_dropped(m), 2);
    see_spool(&seen, spool.path);
    assert_int_equal(seen.points.len, 3);
    assert_int_equal(seen.invalid, 0);
    assert_int_equal(strlen(seen.points.items[0].name), MYELIN_NAME_MAX);
    assert_string_not_equal(seen.points.items[0].name, seen.points.items[1].name);
    assert_string_equal(seen.points.items[2].name, "a???b");
    myelin_close(m);
    seen_release(&seen);
    spooled_release(&spool);
}

static void there_is_a_most_of_names_and_the_rest_is_dropped(void **state) {
    struct spooled spool;
    struct myelin *m;
    uint32_t name = 0;

    (void)state;
    spooled_make(&spool);
    m = myelin_open_at(spool.path, 0);
    for (unsigned i = 0; i <= MYELIN_NAMES_MAX; i++) {
        char text[16];

        snprintf(text, sizeof text, "step%u", i);
        name = myelin_name(m, text);
        assert_true(i == MYELIN_NAMES_MAX ? name == MYELIN_NO_NAME : name == i);
    }
    assert_int_equal(log_some(m, 1), 0);
    assert_int_equal(myelin_log(m, &(uint32_t){ 65535 }, &(double){ 1 }, 1, 0, MYELIN_NOW), 0);
    assert_int_equal(myelin_log(m, &(uint32_t){ 65535 }, &(double){ 1 }, 1, 1, MYELIN_NOW), 0);
    myelin_close(m);
    spooled_release(&spool);
}

static void many_values_of_one_call_are_all_kept(void **state) {
    enum { MANY = 3000 };
    static uint32_t names[MANY];
    static double values[MANY];
    struct spooled spool;
    struct seen seen;
    struct myelin *m;

    (void)state;
    spooled_make(&spool);
    m = myelin_open_at(spool.path, 0);
    for (unsigned i = 0; i < MANY; i++) {
        char text[260];

        snprintf(text, sizeof text, "%0250u", i);
        names[i] = myelin_name(m, text);
        values[i] = i;
    }
    assert_int_equal(myelin_log(m, names, values, MANY, 5, MYELIN_NOW), 0);
    see_spool(&seen, spool.path);
    assert_int_equal(seen.points.len, MANY);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(strtoul(seen.points.items[i].name, NULL, 10), i);
    myelin_close(m);
    seen_release(&seen);
    spooled_release(&spool);
}

static void a_large_record_gets_a_segment_that_holds_it(void **state) {
    char *json = malloc(MYELIN_RECORD_MAX + 1);
    struct spooled spool;
    struct seen seen;
    struct myelin *m;

    (void)state;
    memset(json, ' ', MYELIN_RECORD_MAX + 1);
    json[0] = '{';
    json[MYELIN_RECORD_MAX - 1] = '}';
    spooled_make(&spool);
    m = myelin_open_at(spool.path, 0);
    assert_int_equal(log_some(m, 2000), 2000); /* so that a next one is prepared, too small */
    assert_int_equal(myelin_record(m, MYELIN_SUMMARY, json, MYELIN_RECORD_MAX), 0);
    assert_int_equal(myelin_record(m, MYELIN_SUMMARY, json, MYELIN_RECORD_MAX + 1), -1);
    assert_int_equal(myelin_record(m, MYELIN_PARAMS, "{\"lr\": 1}", 9), 0);
    assert_int_equal(log_some(m, 2000), 2000);
    see_spool(&seen, spool.path);
    assert_int_equal(seen.points.len, 4000);
    assert_int_equal(seen.records, 2);
    assert_string_equal(seen.record, "{\"lr\": 1}");
    assert_int_equal(seen.dropped, 1);
    myelin_close(m);
    free(json);
    seen_release(&seen);
    spooled_release(&spool);
}

/* ---- what the system refuses */

static int under_a_file_limit(void *context) {
    const rlim_t limits[] = { 0, 100, 4096, 40000, 100000 };

    for (size_t i = 0; i < 5; i++) {
        const struct rlimit limit = { limits[i], RLIM_INFINITY };
        struct myelin *m;
        uint64_t kept;

        REQUIRE(!setrlimit(RLIMIT_FSIZE, &limit));
        m = myelin_open_at(context, (uint32_t)i);
        kept = log_some(m, 20000);
        REQUIRE(kept + myelin_dropped(m) == 20000);
        /* a page holds a segment, though a small one; the unfolded are bounded by their number */
        REQUIRE(i < 2 ? kept == 0 : kept == 20000);
        REQUIRE(i >= 2 || strstr(myelin_reason(m), "ulimit"));
        myelin_close(m);
    }
    return 0;
}

static void a_limit_on_file_sizes_raises_no_signal(void **state) {
    struct spooled spool;
    struct seen seen;

    (void)state;
    spooled_make(&spool);
    assert_ended_well(apart(under_a_file_limit, spool.path));
    see_spool(&seen, spool.path);
    assert_int_equal(seen.points.len, 3 * 20000);
    seen_release(&seen);
    spooled_release(&spool);
}

/* Logs points, two milliseconds apart, until one is kept, which may be once the pause before the
 * next try is over: a second at most. How many were dropped before it. */
static uint64_t log_until_kept(struct myelin *m) {
    uint64_t dropped = 0;

    while (log_some(m, 1) == 0 && dropped < 5000) {
        dropped++;
        usleep(2000);
    }
    return dropped;
}

static int on_a_full_disk(void *context) {
    const char *path = context;
    struct myelin *m;
    struct seen seen;
    char filler[128];
    uint64_t kept, dropped;
    int fd;

    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", path, "tmpfs", 0, "size=512k"))
        return 77;
    m = myelin_open_at(path, 0);
    kept = log_some(m, 100000);
    REQUIRE(kept > 1000 && kept < 100000);
    REQUIRE(kept + myelin_dropped(m) == 100000);
    REQUIRE(!strcmp(myelin_reason(m), "the disk of the spool is full"));
    see_spool(&seen, path);
    REQUIRE(seen.points.len == kept && seen.dropped == myelin_dropped(m) && seen.bad == 0);
    seen_release(&seen);
    /* Room again: it goes on, and the count stays. */
    REQUIRE(!mount("none", path, "tmpfs", MS_REMOUNT, "size=8m"));
    dropped = 100000 - kept + log_until_kept(m);
    REQUIRE(log_some(m, 1000) == 1000);
    REQUIRE(!myelin_reason(m));
    see_spool(&seen, path);
    REQUIRE(seen.points.len == kept + 1001 && seen.dropped == dropped);
    seen_release(&seen);
    /* Full by others: what is mapped has its room. */
    snprintf(filler, sizeof filler, "%s/filler", path);
    fd = open(filler, O_WRONLY | O_CREAT, 0600);
    while (write(fd, filler, sizeof filler) > 0)
        ;
    close(fd);
    REQUIRE(log_some(m, 100) == 100);
    REQUIRE(log_some(m, 500000) < 500000);
    myelin_close(m);
    return 0;
}

static void a_full_disk_drops_and_counts_and_is_left_behind(void **state) {
    struct spooled spool;
    int status;
    pid_t pid;

    (void)state;
    spooled_make(&spool);
    pid = apart(on_a_full_disk, spool.path);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    rmdir(spool.path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* mounting takes rights that this user does not have */
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("status %x, line %d", (unsigned)status, WEXITSTATUS(status));
}

static void a_spool_that_is_gone_is_survived(void **state) {
    struct spooled spool;
    struct myelin *m;

    (void)state;
    spooled_make(&spool);
    m = myelin_open_at(spool.path, 0);
    assert_int_equal(log_some(m, 100), 100);
    spooled_release(&spool);
    assert_true(log_some(m, 100000) < 100000);
    assert_string_equal(myelin_reason(m), "the spool is gone");
    myelin_close(m);
}

static int without_rights(void *context) {
    struct myelin *m;

    if (geteuid() == 0)
        REQUIRE(!setgid(65534) && !setuid(65534));
    m = myelin_open_at(context, 0);
    REQUIRE(log_some(m, 100) == 0 && myelin_dropped(m) == 100);
    REQUIRE(strstr(myelin_reason(m), "permission denied"));
    myelin_close(m);
    return 0;
}

static void a_spool_that_may_not_be_written_is_survived(void **state) {
    struct spooled spool;

    (void)state;
    spooled_make(&spool);
    assert_int_equal(chmod(spool.path, 0555), 0);
    assert_ended_well(apart(without_rights, spool.path));
    spooled_release(&spool);
}

static void what_nobody_folds_is_bounded(void **state) {
    struct spooled spool;
    struct seen seen;
    struct myelin *m;
    char command[128];
    uint64_t kept;

    (void)state;
    spooled_make(&spool);
    setenv("MYELIN_SPOOL_SEGMENTS", "3", 1);
    m = myelin_open_at(spool.path, 0);
    unsetenv("MYELIN_SPOOL_SEGMENTS");
    kept = log_some(m, 200000);
    assert_true(kept > 1000 && kept < 200000);
    assert_int_equal(kept + myelin_dropped(m), 200000);
    assert_non_null(strstr(myelin_reason(m), "does not keep up"));
    see_spool(&seen, spool.path);
    assert_int_equal(seen.files, 3);
    assert_int_equal(seen.points.len, kept);
    assert_int_equal(seen.dropped, myelin_dropped(m));
    seen_release(&seen);
    /* Folded: there is room again. */
    snprintf(command, sizeof command, "rm %s/*-00000[01].spool", spool.path);
    assert_int_equal(system(command), 0);
    log_until_kept(m);
    assert_int_equal(log_some(m, 100), 100);
    myelin_close(m);
    spooled_release(&spool);
}

static int with_closed_descriptors(void *context) {
    struct myelin *m = myelin_open_at(context, 0);
    int own[8], pair[2];

    REQUIRE(log_some(m, 2000) == 2000);
    for (int fd = 3; fd < 256; fd++)
        close(fd); /* as daemons do */
    for (int i = 0; i < 8; i++)
        REQUIRE((own[i] = open("/dev/null", O_RDWR)) >= 0);
    REQUIRE(!pipe(pair));
    REQUIRE(log_some(m, 100000) == 100000);
    myelin_close(m);
    for (int i = 0; i < 8; i++)
        REQUIRE(fcntl(own[i], F_GETFD) >= 0);
    REQUIRE(write(pair[1], "x", 1) == 1);
    return 0;
}

static void descriptors_that_the_program_closed_are_left_to_it(void **state) {
    struct spooled spool;
    struct seen seen;

    (void)state;
    spooled_make(&spool);
    assert_ended_well(apart(with_closed_descriptors, spool.path));
    see_spool(&seen, spool.path);
    assert_int_equal(seen.points.len, 102000);
    seen_release(&seen);
    spooled_release(&spool);
}

static void errno_is_kept(void **state) {
    struct spooled spool;
    struct myelin *m;

    (void)state;
    spooled_make(&spool);
    m = myelin_open_at(spool.path, 0);
    errno = E2BIG;
    log_some(m, 50000);
    assert_int_equal(errno, E2BIG);
    spooled_release(&spool);
    errno = E2BIG;
    log_some(m, 50000);
    assert_int_equal(errno, E2BIG);
    myelin_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outside_a_run_nothing_is_kept_and_the_reason_is_said),
        cmocka_unit_test(the_environment_says_where_and_which_attempt),
        cmocka_unit_test(names_are_kept_valid_and_apart),
        cmocka_unit_test(there_is_a_most_of_names_and_the_rest_is_dropped),
        cmocka_unit_test(many_values_of_one_call_are_all_kept),
        cmocka_unit_test(a_large_record_gets_a_segment_that_holds_it),
        cmocka_unit_test(a_limit_on_file_sizes_raises_no_signal),
        cmocka_unit_test(a_full_disk_drops_and_counts_and_is_left_behind),
        cmocka_unit_test(a_spool_that_is_gone_is_survived),
        cmocka_unit_test(a_spool_that_may_not_be_written_is_survived),
        cmocka_unit_test(what_nobody_folds_is_bounded),
        cmocka_unit_test(descriptors_that_the_program_closed_are_left_to_it),
        cmocka_unit_test(errno_is_kept),
    };

    return cmocka_run_group_tests_name("spool limits", tests, NULL, NULL);
}
