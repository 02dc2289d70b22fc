/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/sha256.h"
#include "home.h"
#include "store/artifact.h"
#include "store/inventory.h"
#include "store/models.h"
#include "store/models_dump.h"

/* ---- hashes ---- */

static void assert_hash(const char *bytes, size_t n, size_t piece, const char *expected) {
    char text[SHA256_TEXT];
    struct sha256 hash;

    sha256_init(&hash);
    for (size_t at = 0; at < n; at += piece)
        sha256_add(&hash, bytes + at, n - at < piece ? n - at : piece);
    sha256_finish(&hash, text);
    assert_string_equal(text, expected);
}

/* The examples of FIPS 180-4. */
static void the_hash_is_that_of_the_standard(void **state) {
    static char million[1000000];

    (void)state;
    memset(million, 'a', sizeof million);
    assert_hash("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hash("abc", 3, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 56,
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    for (size_t piece = 1; piece <= 1000000; piece = piece * 7 + 1)
        assert_hash(million, sizeof million, piece,
                    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Lengths around a block, against each other: whole and byte by byte. */
static void it_does_not_matter_how_the_bytes_come(void **state) {
    char bytes[200], whole[SHA256_TEXT];
    struct sha256 hash;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 31);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        sha256_init(&hash);
        sha256_add(&hash, bytes, n);
        sha256_finish(&hash, whole);
        for (size_t piece = 1; piece <= 70; piece += 23)
            assert_hash(bytes, n, piece, whole);
    }
}

/* ---- models ---- */

#define A_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int set_up(void **state) {
    struct home *home = calloc(1, sizeof *home);

    assert_non_null(home);
    home_make(home);
    *state = home;
    return 0;
}

static int tear_down(void **state) {
    home_release(*state);
    free(*state);
    return 0;
}

static struct models *opened(const struct home *home) {
    struct models *models;
    struct error err;

    if (models_open(home->path, LEDGER_TO_WRITE, &models, &err))
        fail_msg("%s", err.message);
    return models;
}

static int64_t assign(struct models *models, const char *name, uint64_t run, int64_t wanted) {
    const struct model_row row = { .name = name,
                                   .version = wanted,
                                   .run = run,
                                   .path = "p",
                                   .sha256 = A_HASH,
                                   .size = 1,
                                   .files = 1 };
    struct error err;
    int64_t version;

    if (models_begin(models, &err) || models_assign(models, &row, &version, &err) ||
        models_commit(models, &err))
        fail_msg("%s", err.message);
    return version;
}

static void a_run_keeps_the_version_that_it_has(void **state) {
    struct models *models = opened(*state);

    assert_int_equal(assign(models, "a", 1, 0), 1);
    assert_int_equal(assign(models, "a", 2, 0), 2);
    assert_int_equal(assign(models, "b", 2, 0), 1);
    assert_int_equal(assign(models, "a", 1, 0), 1);
    assert_int_equal(assign(models, "a", 2, 9), 2);
    models_close(models);
}

static void a_version_that_is_asked_for_is_given_if_it_is_free(void **state) {
    struct models *models = opened(*state);

    assert_int_equal(assign(models, "a", 1, 7), 7);
    assert_int_equal(assign(models, "a", 2, 7), 8);
    assert_int_equal(assign(models, "a", 3, 2), 2);
    assert_int_equal(assign(models, "a", 4, 0), 9);
    models_close(models);
}

static void a_number_is_never_given_again(void **state) {
    const struct home *home = *state;
    struct models *models = opened(home);
    struct error err;

    assert_int_equal(assign(models, "a", 1, 0), 1);
    models_close(models);
    assert_int_equal(models_release_run(home->path, 1, &err), 0);
    for (int again = 0; again < 2; again++) {
        models = opened(home);
        assert_int_equal(assign(models, "a", 2, 0), 2 + again);
        models_close(models);
        /* Of run 2 there is no journal: its version is gone, its number is not. */
        assert_int_equal(models_rebuild(home->path, &err), 0);
    }
}

static void names_and_aliases_are_checked(void **state) {
    static const char *const bad_names[] = { "", "a b", "a:b", "a\n", "\x7f" };
    static const char *const bad_aliases[] = { "", "1", "-a", "a b", "a:b", "latest", "a/b" };
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad_names); i++)
        assert_int_equal(model_name_check(bad_names[i], &err), -1);
    for (size_t i = 0; i < ARRAY_LEN(bad_aliases); i++)
        assert_int_equal(model_alias_check(bad_aliases[i], &err), -1);
    assert_int_equal(model_name_check("best/net-1.bin", &err), 0);
    assert_int_equal(model_alias_check("v1.0_rc-2", &err), 0);
}

/* Each process gives versions to runs of its own; together they are 1, 2, 3 and so on. */
static void processes_at_once_never_share_a_number(void **state) {
    enum { PROCESSES = 4, RUNS_EACH = 5 };
    const struct home *home = *state;
    AUTO(arena) arena = ARENA_INIT;
    struct models *models;
    struct model_row *rows;
    struct error err;
    size_t n;
    int status;

    models_close(opened(home));
    for (uint64_t i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            models = opened(home);
            for (uint64_t run = 0; run < RUNS_EACH; run++)
                assign(models, "a", i * RUNS_EACH + run + 1, 0);
            models_close(models);
            _exit(0);
        }
    for (int i = 0; i < PROCESSES; i++) {
        wait(&status);
        assert_int_equal(status, 0);
    }
    models = opened(home);
    assert_int_equal(models_list(models, "a", &arena, &rows, &n, &err), 0);
    assert_int_equal(n, PROCESSES * RUNS_EACH);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(rows[i].version, n - i);
    models_close(models);
}

/* A view in place of the table has rows that can be asked for, and not read. */
static void runs_that_cannot_be_read_are_none(void **state) {
    const struct home *home = *state;
    struct models *models = opened(home);
    AUTO(arena) arena = ARENA_INIT;
    uint64_t *runs = NULL;
    char path[128];
    struct error err;
    sqlite3 *db;
    size_t n = 7;

    snprintf(path, sizeof path, "%s/myelin.db", home->path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "DROP TABLE models_looked; CREATE VIEW models_looked (run) AS "
                                  "SELECT 1 UNION ALL SELECT abs(-9223372036854775808)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(models_looked(models, &arena, &runs, &n, &err), -1);
    assert_null(runs);
    assert_int_equal(n, 7);
    models_close(models);
}

/* ---- taking stock ---- */

static struct rundir run_with_model_at(struct home *home, const char *logged) {
    static const char journal[] =
        "{\"seq\": 1, \"event\": \"created\", \"uuid\": \"0123456789abcdef0123456789abcdef\", "
        "\"counts\": {\"master\": 1}}\n"
        "{\"seq\": 2, \"event\": \"tracked\", \"kind\": \"artifact\", \"values\": {\"name\": "
        "\"net\", \"type\": \"model\", \"path\": \"%s\"}}\n"
        "{\"seq\": 3, \"event\": \"status\", \"status\": \"succeeded\"}\n";
    const struct rundir rundir = home_run(home);
    char path[PATH_MAX];
    FILE *file;

    home_write(&rundir, "events.jsonl", arena_printf(&home->arena, journal, logged));
    snprintf(path, sizeof path, "%s/net.bin", rundir.outputs);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("abc", file);
    fclose(file);
    return rundir;
}

static struct rundir run_with_model(struct home *home) {
    return run_with_model_at(home, "net.bin");
}

static struct artifact only_artifact(struct home *home, const struct rundir *rundir) {
    struct run_record record;
    struct artifacts artifacts;
    struct error err;

    assert_int_equal(record_read(&record, rundir, &err), 0);
    assert_int_equal(record.bad_lines, 0);
    artifacts = artifacts_read(&record, &home->arena);
    assert_int_equal(artifacts.n, 1);
    record_release(&record);
    return artifacts.list[0];
}

/* As a supervisor does, that can open so many files more. */
static int take_stock_with(const struct rundir *rundir, uint64_t bytes_most, rlim_t descriptors,
                           struct error *err) {
    const struct inventory_terms terms = { .bytes_most = bytes_most };
    struct rlimit before, limit;
    struct run_record record;
    struct journal journal;
    int status;

    if (record_read(&record, rundir, err) ||
        journal_reopen(&journal, rundir, record.seq, record.elapsed_s, err))
        fail_msg("%s", err->message);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = (struct rlimit){ (rlim_t)journal.fd + 1 + descriptors, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    status = inventory_take(&record, &journal, &terms, err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    journal_close(&journal);
    record_release(&record);
    return status;
}

static void take_stock(const struct rundir *rundir, uint64_t bytes_most) {
    struct error err;

    if (take_stock_with(rundir, bytes_most, 100, &err))
        fail_msg("%s", err.message);
}

static void what_is_too_large_at_the_end_is_left_to_who_looks(void **state) {
    const struct rundir rundir = run_with_model(*state);
    struct artifact artifact;
    struct error err;
    bool is_done;

    take_stock(&rundir, 2);
    artifact = only_artifact(*state, &rundir);
    assert_null(artifact.sha256);
    assert_null(artifact.problem);
    assert_int_equal(inventory_settle(&rundir, &is_done, &err), 0);
    assert_true(is_done);
    artifact = only_artifact(*state, &rundir);
    assert_int_equal(artifact.version, 1);
    assert_int_equal(artifact.size, 3);
    assert_string_equal(artifact.sha256,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void stock_is_taken_once(void **state) {
    const struct rundir rundir = run_with_model(*state);
    struct stat before, after;

    take_stock(&rundir, 3);
    assert_int_equal(stat(rundir.journal, &before), 0);
    take_stock(&rundir, UINT64_MAX);
    assert_int_equal(stat(rundir.journal, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_int_equal(only_artifact(*state, &rundir).version, 1);
}

static void what_cannot_be_read_at_the_moment_is_left_to_who_looks(void **state) {
    const struct rundir rundir = run_with_model(*state);

    for (rlim_t n = 0; n < 3; n++)
        for (int bounded = 0; bounded < 2; bounded++) {
            struct artifact artifact;
            struct error err;

            assert_int_equal(take_stock_with(&rundir, bounded ? 1000 : UINT64_MAX, n, &err), -1);
            artifact = only_artifact(*state, &rundir);
            assert_null(artifact.problem);
            assert_null(artifact.sha256);
        }
    take_stock(&rundir, UINT64_MAX);
    assert_int_equal(only_artifact(*state, &rundir).version, 1);
}

static void a_path_that_leads_to_nothing_is_refused_for_ever(void **state) {
    char longer[300] = "";
    const char *const paths[] = { "", "missing", "..", "/etc/passwd", "net.bin/x", longer };

    memset(longer, 'n', sizeof longer - 1);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        const struct rundir rundir = run_with_model_at(*state, paths[i]);
        struct error err;
        bool is_done;

        take_stock(&rundir, 1000);
        assert_non_null(only_artifact(*state, &rundir).problem);
        assert_int_equal(inventory_settle(&rundir, &is_done, &err), 0);
        assert_true(is_done);
    }
}

/* ---- the dump ---- */

struct taken {
    size_t n;
    int64_t sum;
};

static int count(void *context, const struct models_fact *fact, struct error *err) {
    struct taken *taken = context;

    (void)err;
    taken->n++;
    taken->sum += fact->version;
    return 0;
}

static void what_is_dumped_is_read_again(void **state) {
    static const struct models_fact facts[] = {
        { "a", NULL, 5 }, { "a", "best", 3 }, { "a", "production", 5 }, { "b", NULL, 1 }
    };
    const struct home *home = *state;
    struct taken taken = { 0 };
    struct error err;

    assert_int_equal(models_dump_read(home->path, count, &taken, &err), 0);
    assert_int_equal(taken.n, 0);
    assert_int_equal(models_dump_write(home->path, facts, ARRAY_LEN(facts), &err), 0);
    assert_int_equal(models_dump_read(home->path, count, &taken, &err), 0);
    assert_int_equal(taken.n, 4);
    assert_int_equal(taken.sum, 14);
}

static void a_dump_that_makes_no_sense_is_an_error(void **state) {
    static const char *const bad[] = {
        "",
        "[]",
        "{\"version\": 2, \"models\": []}",
        "{\"version\": 1}",
        "{\"version\": 1, \"models\": [1]}",
        "{\"version\": 1, \"models\": [{\"name\": \"a:b\", \"last_version\": 1, \"aliases\": {}}]}",
        "{\"version\": 1, \"models\": [{\"name\": \"a\", \"last_version\": 0, \"aliases\": {}}]}",
        "{\"version\": 1, \"models\": [{\"name\": \"a\", \"last_version\": 1, \"aliases\": "
        "{\"b\": 2}}]}",
        "{\"version\": 1, \"models\": [{\"name\": \"a\", \"last_version\": 1, \"aliases\": "
        "{\"1\": 1}}]}",
    };
    const struct home *home = *state;
    struct taken taken = { 0 };
    char path[128];
    struct error err;

    snprintf(path, sizeof path, "%s/models.json", home->path);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        FILE *file = fopen(path, "w");

        fputs(bad[i], file);
        fclose(file);
        assert_int_equal(models_dump_read(home->path, count, &taken, &err), -1);
        assert_non_null(strstr(err.message, "models.json' cannot be used"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_is_that_of_the_standard),
        cmocka_unit_test(it_does_not_matter_how_the_bytes_come),
        cmocka_unit_test(names_and_aliases_are_checked),
        cmocka_unit_test_setup_teardown(a_run_keeps_the_version_that_it_has, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_version_that_is_asked_for_is_given_if_it_is_free, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_number_is_never_given_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(processes_at_once_never_share_a_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(runs_that_cannot_be_read_are_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_too_large_at_the_end_is_left_to_who_looks, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(stock_is_taken_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_at_the_moment_is_left_to_who_looks,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_path_that_leads_to_nothing_is_refused_for_ever, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_dumped_is_read_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dump_that_makes_no_sense_is_an_error, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
