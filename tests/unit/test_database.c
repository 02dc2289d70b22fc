/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "home.h"
#include "store/ledger.h"
#include "store/models.h"
#include "store/reindex.h"

#define A_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum { BUSY_MS = 100 };

static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };

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

static int open_ledger(const struct home *home, enum ledger_manner manner, struct error *err) {
    struct ledger *ledger = NULL;
    const int status = ledger_open(home->path, manner, BUSY_MS, &ledger, err);

    if (status == 0)
        ledger_close(ledger);
    return status;
}

static void make_ledger(const struct home *home) {
    struct error err;

    if (open_ledger(home, LEDGER_TO_WRITE, &err))
        fail_msg("%s", err.message);
}

/* Writes as another member of the group could, by another program. */
static void harm(const struct home *home, const char *sql) {
    char path[128];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/myelin.db", home->path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void expect_new_ledger(const struct home *home) {
    struct reindexed done;
    struct error err;

    if (reindex(home->path, &done, &err))
        fail_msg("%s", err.message);
    assert_int_not_equal(done.health, LEDGER_SOUND);
    assert_int_not_equal(done.aside[0], '\0');
    make_ledger(home);
}

static void blanks_are_all_in_which_equal_sql_may_differ(void **state) {
    (void)state;
    assert_true(database_is_same_sql("", ""));
    assert_true(database_is_same_sql("CREATE TABLE a (b, c)", " CREATE  TABLE a(b,c)\n"));
    assert_false(database_is_same_sql("CREATE TABLE a (b)", "CREATE TABLE a (b, c)"));
    assert_false(database_is_same_sql("CREATE TABLE a (b)", "CREATE TABLE a (B)"));
    assert_false(database_is_same_sql("a", ""));
}

static void a_schema_that_is_not_ours_is_refused_and_reindex_replaces_it(void **state) {
    static const char *const harms[] = {
        "CREATE TRIGGER t BEFORE INSERT ON queue BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE TRIGGER t AFTER INSERT ON reservations BEGIN DELETE FROM queue; END",
        "CREATE VIEW v AS SELECT * FROM queue",
        "CREATE TABLE more (x)",
        "CREATE INDEX i ON queue (since)",
        "CREATE TABLE x (y INTEGER PRIMARY KEY AUTOINCREMENT)", /* brings sqlite_sequence */
        "CREATE VIRTUAL TABLE v USING fts5(x)",
        "ALTER TABLE queue ADD COLUMN x INTEGER CHECK (x > 0)",
        "ALTER TABLE queue ADD COLUMN y GENERATED ALWAYS AS (run / 0)",
        "DROP TABLE reservations",
        "DROP TABLE queue; CREATE VIEW queue AS SELECT 1 AS run, 'h' AS host",
        "DROP TABLE queue; CREATE TABLE queue (run TEXT)",
        "DROP TABLE models_last", /* one of several */
        "ANALYZE",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 1",
    };
    const struct home *home = *state;
    struct models *models;
    struct error err;

    assert_int_equal(models_open(home->path, LEDGER_TO_WRITE, &models, &err), 0);
    models_close(models);
    for (size_t i = 0; i < ARRAY_LEN(harms); i++) {
        harm(home, harms[i]);
        for (enum ledger_manner manner = LEDGER_TO_WRITE; manner <= LEDGER_TO_LOOK; manner++) {
            if (open_ledger(home, manner, &err) == 0)
                fail_msg("accepted after: %s", harms[i]);
            assert_int_equal(err.code, ERROR_IO);
            assert_non_null(strstr(err.message, "'myelin reindex' puts it aside"));
        }
        expect_new_ledger(home);
    }
}

static void a_version_that_is_not_ours_is_refused(void **state) {
    static const int versions[] = { -1, -5, INT_MIN, LEDGER_VERSION + 1, INT_MAX };
    const struct home *home = *state;
    char sql[64];
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        make_ledger(home);
        snprintf(sql, sizeof sql, "PRAGMA user_version = %d", versions[i]);
        harm(home, sql);
        assert_int_equal(open_ledger(home, LEDGER_TO_WRITE, &err), -1);
        assert_int_equal(open_ledger(home, LEDGER_TO_LOOK, &err), -1);
        assert_non_null(strstr(err.message, "'myelin reindex' puts it aside"));
        expect_new_ledger(home);
    }
}

/* A ledger stays open for as long as a run waits. */
static void a_schema_that_changes_while_it_is_open_is_refused_too(void **state) {
    const struct home *home = *state;
    struct ledger_view view = { 0 };
    struct ledger *ledger;
    struct error err;

    assert_int_equal(ledger_open(home->path, LEDGER_TO_WRITE, BUSY_MS, &ledger, &err), 0);
    harm(home, "CREATE TRIGGER t BEFORE INSERT ON queue BEGIN SELECT RAISE(ABORT, 'no'); END");
    assert_int_equal(ledger_begin(ledger, &err), -1);
    assert_non_null(strstr(err.message, "trigger 't'"));
    assert_int_equal(ledger_read(ledger, &view, &err), -1);
    harm(home, "DROP TRIGGER t");
    assert_int_equal(ledger_begin(ledger, &err), 0);
    ledger_rollback(ledger);
    ledger_close(ledger);
}

/* Also one that comes between the check and the statement. */
static void triggers_do_not_run(void **state) {
    const struct home *home = *state;
    struct database database = { 0 };
    struct error err;

    make_ledger(home);
    harm(home, "CREATE TRIGGER t BEFORE INSERT ON queue BEGIN SELECT RAISE(ABORT, 'no'); END");
    assert_int_equal(
        database_open(&database, home->path, &database_ledger, DATABASE_EXISTING, BUSY_MS, &err),
        0);
    if (database_execute(&database, "INSERT INTO queue VALUES (1, 'h', 'b', 1.0, '')", &err))
        fail_msg("%s", err.message);
    assert_int_equal(database_execute(&database, "ATTACH ':memory:' AS other", &err), -1);
    database_close(&database);
}

static void a_statement_that_does_not_end_is_ended(void **state) {
    const struct home *home = *state;
    struct database database = { 0 };
    struct error err;

    assert_int_equal(
        database_open(&database, home->path, &database_ledger, DATABASE_IN_MEMORY, BUSY_MS, &err),
        0);
    assert_int_equal(database_execute(&database,
                                      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c)"
                                      " SELECT count(*) FROM c",
                                      &err),
                     -1);
    assert_true(database.is_damaged);
    assert_int_equal(database_execute(&database, "SELECT 1", &err), 0);
    database_close(&database);
}

static void put(const struct home *home, const char *name, mode_t type) {
    char path[128], target[128];

    snprintf(path, sizeof path, "%s/%s", home->path, name);
    snprintf(target, sizeof target, "%s/target", home->path);
    remove(path);
    switch (type) {
    case S_IFLNK: assert_int_equal(symlink(target, path), 0); break;
    case S_IFIFO: assert_int_equal(mkfifo(path, 0666), 0); break;
    default: assert_int_equal(mkdir(path, 0777), 0); break;
    }
}

static void what_is_no_regular_file_is_neither_followed_nor_waited_for(void **state) {
    static const mode_t types[] = { S_IFLNK, S_IFIFO, S_IFDIR };
    const struct home *home = *state;
    char name[64], target[128];
    struct error err;

    snprintf(target, sizeof target, "%s/target", home->path);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        for (size_t j = 0; j < ARRAY_LEN(types); j++) {
            make_ledger(home);
            snprintf(name, sizeof name, "myelin.db%s", suffixes[i]);
            put(home, name, types[j]);
            assert_int_equal(open_ledger(home, LEDGER_TO_WRITE, &err), -1);
            assert_int_equal(open_ledger(home, LEDGER_TO_LOOK, &err), -1);
            assert_non_null(strstr(err.message, name));
            assert_int_not_equal(access(target, F_OK), 0);
            expect_new_ledger(home);
        }
}

/* The check before is for the message. This is what holds when the file is swapped after it. */
static void sqlite_itself_opens_regular_files_only(void **state) {
    const struct home *home = *state;
    char path[128];
    sqlite3 *db;

    make_ledger(home);
    put(home, "fifo", S_IFIFO);
    snprintf(path, sizeof path, "%s/fifo", home->path);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_CANTOPEN);
    sqlite3_close(db);
}

static void a_home_may_be_reached_by_a_link(void **state) {
    const struct home *home = *state;
    struct home linked = { 0 };
    struct error err;

    snprintf(linked.path, sizeof linked.path, "%.60s-l", home->path);
    assert_int_equal(symlink(home->path, linked.path), 0);
    if (open_ledger(&linked, LEDGER_TO_WRITE, &err))
        fail_msg("%s", err.message);
    unlink(linked.path);
}

static void a_row_that_no_myelin_wrote_does_not_count_and_is_taken_out(void **state) {
    static const char *const rows[] = {
        "INSERT INTO queue SELECT -5, host, boot, since, demand FROM queue WHERE run = 1",
        "INSERT INTO queue SELECT 1000000000, host, boot, since, demand FROM queue WHERE run = 1",
        "INSERT INTO queue SELECT 2, host, boot, 9e999, demand FROM queue WHERE run = 1",
        "INSERT INTO queue SELECT 3, host, boot, since, x'00ff' FROM queue WHERE run = 1",
        "INSERT INTO reservations SELECT 3, -2, host, boot, since, 0, 0, 0, 0, NULL FROM queue "
        "WHERE run = 1",
        "INSERT INTO reservations SELECT 4, 0, host, boot, since, -1, 0, 0, 0, NULL FROM queue "
        "WHERE run = 1",
        "INSERT INTO reservations SELECT 5, 0, host, boot, since, 0, 9223372036854775807, 0, 0, "
        "NULL FROM queue WHERE run = 1",
        "INSERT INTO reservations SELECT 'two', 0, host, boot, since, 0, 0, 0, 0, NULL FROM queue "
        "WHERE run = 1",
        "INSERT INTO reservations SELECT 6, 0, host, boot, since, 'all', 0, 0, 0, NULL FROM queue "
        "WHERE run = 1",
        "INSERT INTO reservations SELECT 7, 0, host, boot, since, 0, 0, 0, x'ff', NULL FROM queue "
        "WHERE run = 1",
    };
    static struct demand_group group = { .amount = { 1000 }, .n = 1 };
    static const struct demand demand = { &group, 1, 1, NULL, { 1000 } };
    const struct home *home = *state;
    struct ledger_view view = { 0 };
    struct ledger *ledger;
    struct error err;

    assert_int_equal(ledger_open(home->path, LEDGER_TO_WRITE, BUSY_MS, &ledger, &err), 0);
    assert_int_equal(ledger_begin(ledger, &err), 0);
    assert_int_equal(ledger_enter(ledger, 1, &demand, &err), 0);
    assert_int_equal(ledger_commit(ledger, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        harm(home, rows[i]);
    assert_int_equal(ledger_read(ledger, &view, &err), 0);
    assert_int_equal(view.queue.len, 1);
    assert_int_equal(view.holds.len, 0);
    ledger_view_release(&view);
    assert_int_equal(ledger_begin(ledger, &err), 0);
    assert_int_equal(ledger_settle(ledger, NULL, &err), 0); /* run 1 has no owner either */
    assert_int_equal(ledger_commit(ledger, &err), 0);
    ledger_close(ledger);
    harm(home, "CREATE TEMP TABLE t (n CHECK (n = 0));"
               "INSERT INTO t SELECT count(*) FROM queue;"
               "INSERT INTO t SELECT count(*) FROM reservations");
}

static void a_row_of_models_that_makes_no_sense_does_not_count(void **state) {
    static const char *const rows[] = {
        "INSERT INTO models VALUES ('m', 1, 1, '../../etc', '" A_HASH "', 1, 1)",
        "INSERT INTO models VALUES ('m', 2, 2, '/etc/passwd', '" A_HASH "', 1, 1)",
        "INSERT INTO models VALUES ('m', 3, 3, 'a', 'b', 1, 1)",
        "INSERT INTO models VALUES ('m', -4, 4, 'a', '" A_HASH "', 1, 1)",
        "INSERT INTO models VALUES ('m', 5, -5, 'a', '" A_HASH "', 1, 1)",
        "INSERT INTO models VALUES ('m', 6, 6, 'a', '" A_HASH "', -1, 1)",
        "INSERT INTO models VALUES ('m:x', 7, 7, 'a', '" A_HASH "', 1, 1)",
        "INSERT INTO models VALUES (x'6d00', 8, 8, 'a', '" A_HASH "', 1, 1)",
        "INSERT INTO models_last VALUES ('x', -1)",
        "INSERT INTO models_aliases VALUES ('none', 'good', 1)",
        "INSERT INTO models_aliases VALUES ('sound', '../bad', 1)",
        "INSERT INTO models_looked VALUES (-1)",
    };
    const struct model_row sound = { .name = "sound", .run = 9, .path = "a/b", .sha256 = A_HASH };
    const struct home *home = *state;
    AUTO(arena) arena = ARENA_INIT;
    struct models *models;
    struct model_row *list;
    uint64_t *looked;
    struct error err;
    int64_t version;
    size_t n;

    assert_int_equal(models_open(home->path, LEDGER_TO_WRITE, &models, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        harm(home, rows[i]);
    assert_int_equal(models_begin(models, &err), 0);
    if (models_assign(models, &sound, &version, &err) || models_commit(models, &err))
        fail_msg("%s", err.message);
    assert_int_equal(models_list(models, NULL, &arena, &list, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_string_equal(list[0].name, "sound");
    assert_null(list[0].aliases[0]);
    assert_int_equal(models_looked(models, &arena, &looked, &n, &err), 0);
    assert_int_equal(n, 0);
    models_close(models);
    if (models_rebuild(home->path, &err)) /* reads the dump again */
        fail_msg("%s", err.message);
}

/* The text of the dump goes to a file of our own. */
static void the_dump_is_not_written_through_a_link(void **state) {
    static const char *const names[] = { "models.json", "models.json.new" };
    static const mode_t types[] = { S_IFLNK, S_IFIFO };
    const struct home *home = *state;
    const struct model_row row = { .name = "a", .run = 1, .path = "a", .sha256 = A_HASH };
    struct models *models;
    char target[128];
    struct error err;
    int64_t version;

    snprintf(target, sizeof target, "%s/target", home->path);
    assert_int_equal(models_open(home->path, LEDGER_TO_WRITE, &models, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        for (size_t j = 0; j < ARRAY_LEN(types); j++) {
            put(home, names[i], types[j]);
            assert_int_equal(models_begin(models, &err), 0);
            if (models_assign(models, &row, &version, &err) || models_commit(models, &err))
                fail_msg("%s", err.message);
            assert_int_not_equal(access(target, F_OK), 0);
        }
    models_close(models);
    put(home, "models.json", S_IFIFO);
    harm(home, "PRAGMA user_version = -5");
    assert_int_equal(models_open(home->path, LEDGER_TO_LOOK, &models, &err), -1);
}

#define IN_HOME(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blanks_are_all_in_which_equal_sql_may_differ),
        IN_HOME(a_schema_that_is_not_ours_is_refused_and_reindex_replaces_it),
        IN_HOME(a_version_that_is_not_ours_is_refused),
        IN_HOME(a_schema_that_changes_while_it_is_open_is_refused_too),
        IN_HOME(triggers_do_not_run),
        IN_HOME(a_statement_that_does_not_end_is_ended),
        IN_HOME(what_is_no_regular_file_is_neither_followed_nor_waited_for),
        IN_HOME(sqlite_itself_opens_regular_files_only),
        IN_HOME(a_home_may_be_reached_by_a_link),
        IN_HOME(a_row_that_no_myelin_wrote_does_not_count_and_is_taken_out),
        IN_HOME(a_row_of_models_that_makes_no_sense_does_not_count),
        IN_HOME(the_dump_is_not_written_through_a_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
