/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "home.h"
#include "store/origin.h"
#include "store/owner.h"
#include "store/remove.h"
#include "store/request.h"

/* ---- outputs ---- */

static struct rundir opened(struct home *home, const char *id) {
    struct rundir rundir;
    struct error err;

    assert_int_equal(rundir_open(home->path, strtoul(id, NULL, 10), &home->arena, &rundir, &err),
                     0);
    return rundir;
}

/* A run that has the outputs of another. */
static struct rundir resumed(struct home *home, const struct rundir *other) {
    struct rundir rundir = home_run(home);
    struct error err;

    assert_int_equal(rundir_share_outputs(&rundir, other, &err), 0);
    return opened(home, rundir.id);
}

static const char *user_of(struct home *home, const struct rundir *rundir,
                           enum outputs_users which) {
    const char *user;
    struct error err;

    assert_int_equal(outputs_user(home->path, rundir, which, &home->arena, &user, &err), 0);
    return user;
}

static void a_run_has_its_own_outputs_unless_it_shares_them(void **state) {
    struct home home;
    struct rundir first, second, third;

    (void)state;
    home_make(&home);
    first = home_run(&home);
    assert_string_equal(first.outputs_of, "1");
    second = resumed(&home, &first);
    third = resumed(&home, &second);
    assert_string_equal(second.outputs, first.outputs);
    assert_string_equal(third.outputs, first.outputs);
    assert_string_equal(third.outputs_of, "1");
    assert_string_equal(rundir_copy(&third, &home.arena).outputs, first.outputs);
    home_release(&home);
}

static void a_link_that_is_not_ours_is_not_followed(void **state) {
    static const char *const targets[] = { "/etc",        "../1",          "../1/outputs/x",
                                           "../../x",     "../01/outputs", "../x/outputs",
                                           "..//outputs", "../1/logs" };
    struct home home;
    struct rundir other;

    (void)state;
    home_make(&home);
    home_run(&home);
    other = home_run(&home);
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        const char *own = arena_printf(&home.arena, "%s/outputs", other.path);

        remove(own);
        assert_int_equal(symlink(targets[i], own), 0);
        assert_string_equal(opened(&home, other.id).outputs_of, other.id);
    }
    home_release(&home);
}

static void who_has_the_outputs_of_a_run_is_found_and_whether_it_lives(void **state) {
    struct home home;
    struct rundir first, second;
    struct error err;
    int lock;

    (void)state;
    home_make(&home);
    first = home_run(&home);
    home_run(&home);
    assert_null(user_of(&home, &first, OUTPUTS_USERS_ANY));
    second = resumed(&home, &first);
    assert_string_equal(user_of(&home, &first, OUTPUTS_USERS_ANY), second.id);
    assert_null(user_of(&home, &first, OUTPUTS_USERS_LIVING));
    assert_int_equal(owner_take(&second, &lock, &err), 0);
    assert_string_equal(user_of(&home, &first, OUTPUTS_USERS_LIVING), second.id);
    close(lock);
    home_release(&home);
}

static void removing_a_resumed_run_leaves_the_outputs_of_the_original(void **state) {
    struct home home;
    struct rundir first, second;
    struct error err;
    struct stat st;
    uint64_t freed;

    (void)state;
    home_make(&home);
    first = home_run(&home);
    second = resumed(&home, &first);
    assert_int_equal(remove_run(&second, &freed, &err), 0);
    assert_int_equal(stat(first.outputs, &st), 0);
    assert_int_equal(stat(second.path, &st), -1);
    home_release(&home);
}

static void every_manner_has_a_name_that_leads_back(void **state) {
    enum origin_manner found;

    (void)state;
    for (enum origin_manner i = ORIGIN_NONE + 1; i < ORIGIN_MANNER_COUNT; i++) {
        assert_true(origin_manner_named(origin_manner_name(i), &found));
        assert_int_equal(found, i);
    }
    assert_false(origin_manner_named(origin_manner_name(ORIGIN_NONE), &found));
}

/* ---- requests ---- */

static void a_request_is_read_as_it_was_written(void **state) {
    static const struct request_pair options[] = {
        { "file", "polyaxonfile.yml" },
        { "param", "name=\"a b\"\n\\u00e9" },
        { "oversubscribe", NULL },
        { "param", "" },
    };
    struct request written = { 0 }, read;
    AUTO(buf) text = BUF_INIT(REQUEST_MAX);
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        *VEC_PUSH(&written.options) = options[i];
    for (size_t i = 0; request_variable(i); i++)
        *VEC_PUSH(&written.environment) =
            (struct request_pair){ request_variable(i), i % 2 ? NULL : "/a:/b" };
    assert_int_equal(request_format(&written, &text, &err), 0);
    assert_int_equal(request_parse(text.data, text.len, &read, &err), 0);
    assert_int_equal(read.options.len, ARRAY_LEN(options));
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        assert_string_equal(read.options.items[i].name, options[i].name);
        if (options[i].value)
            assert_string_equal(read.options.items[i].value, options[i].value);
        else
            assert_null(read.options.items[i].value);
    }
    assert_int_equal(read.environment.len, written.environment.len);
    assert_null(read.environment.items[1].value);
    assert_string_equal(read.environment.items[0].value, "/a:/b");
    request_release(&written);
    request_release(&read);
}

static void what_is_no_request_is_refused_with_a_sentence(void **state) {
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"options\": []}",
        "{\"options\": {}, \"environment\": {}}",
        "{\"options\": [3], \"environment\": {}}",
        "{\"options\": [{\"name\": \"x\"}], \"environment\": {}}",
        "{\"options\": [{\"name\": \"x\", \"value\": 3}], \"environment\": {}}",
        "{\"options\": [], \"environment\": {\"PATH\": []}}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct request request = { 0 };
        struct error err = { 0 };

        assert_int_equal(request_parse(texts[i], strlen(texts[i]), &request, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID);
        assert_non_null(strstr(err.message, REQUEST_FILE));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_has_its_own_outputs_unless_it_shares_them),
        cmocka_unit_test(a_link_that_is_not_ours_is_not_followed),
        cmocka_unit_test(who_has_the_outputs_of_a_run_is_found_and_whether_it_lives),
        cmocka_unit_test(removing_a_resumed_run_leaves_the_outputs_of_the_original),
        cmocka_unit_test(every_manner_has_a_name_that_leads_back),
        cmocka_unit_test(a_request_is_read_as_it_was_written),
        cmocka_unit_test(what_is_no_request_is_refused_with_a_sentence),
    };

    return cmocka_run_group_tests_name("origin", tests, NULL, NULL);
}
