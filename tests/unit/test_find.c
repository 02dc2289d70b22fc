/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "home.h"
#include "store/find.h"
#include "store/owner.h"

#define REST "000000000000000000000000"

/* The runs of the home, from id 1 on. */
static const struct {
    const char *uuid, *name; /* no uuid: it has not begun */
} runs[] = {
    { "aaaa1111" REST, "mnist" },
    { "aaaa2222" REST, "other" },
    { "12345678" REST, "mnist" },
    { "00000007" REST, "2" },
    { "beef0000" REST, NULL },
    { "cafe0000" REST, "beef0000" },
    { NULL, NULL },
};

static struct home home;

static int make_home(void **state) {
    (void)state;
    home_make(&home);
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        struct rundir rundir = home_run(&home);

        if (runs[i].uuid)
            home_write(&rundir, "events.jsonl",
                       arena_printf(&home.arena,
                                    "{\"event\": \"created\", \"uuid\": \"%s\", \"name\": %s%s%s}\n"
                                    "{\"event\": \"status\", \"name\": \"not this one\"}\n",
                                    runs[i].uuid, runs[i].name ? "\"" : "",
                                    runs[i].name ? runs[i].name : "null",
                                    runs[i].name ? "\"" : ""));
    }
    return 0;
}

static int release_home(void **state) {
    (void)state;
    home_release(&home);
    return 0;
}

static void assert_finds(const char *text, const char *id) {
    struct rundir rundir;
    struct error err;

    if (find_run(home.path, text, FIND_NEWEST, &home.arena, &rundir, &err))
        fail_msg("'%s': %s", text, err.message);
    if (strcmp(rundir.id, id) != 0)
        fail_msg("'%s' is run %s, not %s", text, rundir.id, id);
}

static void assert_refuses(const char *text, enum error_code code, const char *why) {
    struct rundir rundir = { .id = "untouched" };
    struct error err;

    if (find_run(home.path, text, FIND_NEWEST, &home.arena, &rundir, &err) == 0)
        fail_msg("'%s' is run %s", text, rundir.id);
    assert_int_equal(err.code, code);
    if (!strstr(err.message, why))
        fail_msg("'%s' does not say '%s'", err.message, why);
    assert_string_equal(rundir.id, "untouched");
}

static void an_id_is_the_run_of_that_number(void **state) {
    (void)state;
    assert_finds("1", "1");
    assert_finds("6", "6");
    assert_finds("2", "2"); /* and not the run of that name */
    assert_finds("7", "7"); /* also one that has not begun: to be removed */
}

static void a_name_is_its_newest_run(void **state) {
    (void)state;
    assert_finds("mnist", "3");
    assert_finds("other", "2");
}

static void at_is_the_newest_that_has_begun(void **state) {
    (void)state;
    assert_finds("@", "6");
}

static void the_beginning_of_a_uuid_is_enough_when_it_is_the_only_one(void **state) {
    (void)state;
    assert_finds("aaaa1", "1");
    assert_finds("aaaa2222" REST, "2");
    assert_finds("AAAA2222", "2");
    assert_finds("aaaa2222-0000-0000-0000-000000000000", "2");
    assert_finds("1234567800", "3"); /* too long for an id */
    assert_finds("0000", "4");
    assert_finds("beef", "5");
}

static void the_id_of_a_run_that_is_gone_is_no_other_run(void **state) {
    (void)state;
    assert_refuses("1234", ERROR_NOT_FOUND, "there is no run '1234'");
    assert_refuses("12345678", ERROR_NOT_FOUND, "there is no run '12345678'");
    assert_refuses("12", ERROR_NOT_FOUND, "there is no run '12'");
}

static void a_name_goes_before_a_uuid(void **state) {
    (void)state;
    assert_finds("beef0000", "6");
}

static void an_ambiguous_uuid_is_refused_with_those_it_could_be(void **state) {
    (void)state;
    assert_refuses("aaaa", ERROR_INVALID, "2 uuids begin with 'aaaa': run 2 is aaaa2222");
    assert_refuses("aaaa", ERROR_INVALID, "run 1 is aaaa1111");
}

static void a_uuid_that_is_too_short_is_refused_with_the_way_out(void **state) {
    (void)state;
    assert_refuses("caf", ERROR_INVALID, "at least 4 digits");
}

static void what_is_no_run_is_refused_with_the_ways_to_name_one(void **state) {
    static const char *const none[] = {
        "",   "8",   "99999999999999999999", "01", "mnis", "MNIST", "dead", "../1", "1/../1", "-1",
        "@1", "fff", "aaaa1111" REST "0"
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        assert_refuses(none[i], ERROR_NOT_FOUND, "'myelin ps -a' lists them");
}

static void a_home_without_runs_says_so(void **state) {
    struct rundir rundir;
    struct error err;

    (void)state;
    assert_int_equal(find_run("/nonexistent/home", "@", FIND_NEWEST, &home.arena, &rundir, &err),
                     -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    assert_non_null(strstr(err.message, "no runs in '/nonexistent/home/runs'"));
}

static void names_that_are_not_written_as_ids_are_no_runs(void **state) {
    static const char *const names[] = { "007", "0", "5x", ".6", "1000000000" };
    unsigned long *ids;
    struct error err;
    size_t n;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(mkdir(arena_printf(&home.arena, "%s/runs/%s", home.path, names[i]), 0777),
                         0);
    assert_int_equal(rundir_list(home.path, &home.arena, &ids, &n, &err), 0);
    assert_int_equal(n, ARRAY_LEN(runs));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ids[i], i + 1);
}

static void assert_finds_living(const char *text, const char *id) {
    struct rundir rundir;
    struct error err;

    if (find_run(home.path, text, FIND_LIVING, &home.arena, &rundir, &err))
        fail_msg("'%s': %s", text, err.message);
    assert_string_equal(rundir.id, id);
}

static void a_name_is_its_newest_run_that_goes_on_where_that_is_asked_for(void **state) {
    struct rundir first;
    struct error err;
    int lock;

    (void)state;
    assert_finds_living("mnist", "3"); /* none goes on */
    assert_finds_living("@", "6");
    assert_int_equal(rundir_open(home.path, 1, &home.arena, &first, &err), 0);
    assert_int_equal(owner_take(&first, &lock, &err), 0);
    assert_finds_living("mnist", "1");
    assert_finds_living("@", "1");
    assert_finds_living("3", "3"); /* an id is that run, whatever it does */
    assert_finds_living("other", "2");
    assert_finds("mnist", "3");
    assert_finds("@", "6");
    close(lock);
    assert_finds_living("mnist", "3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_the_run_of_that_number),
        cmocka_unit_test(a_name_is_its_newest_run),
        cmocka_unit_test(a_name_is_its_newest_run_that_goes_on_where_that_is_asked_for),
        cmocka_unit_test(at_is_the_newest_that_has_begun),
        cmocka_unit_test(the_beginning_of_a_uuid_is_enough_when_it_is_the_only_one),
        cmocka_unit_test(the_id_of_a_run_that_is_gone_is_no_other_run),
        cmocka_unit_test(a_name_goes_before_a_uuid),
        cmocka_unit_test(an_ambiguous_uuid_is_refused_with_those_it_could_be),
        cmocka_unit_test(a_uuid_that_is_too_short_is_refused_with_the_way_out),
        cmocka_unit_test(what_is_no_run_is_refused_with_the_ways_to_name_one),
        cmocka_unit_test(a_home_without_runs_says_so),
        cmocka_unit_test(names_that_are_not_written_as_ids_are_no_runs),
    };

    return cmocka_run_group_tests_name("find", tests, make_home, release_home);
}
