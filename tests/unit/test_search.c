/* SPDX-License-Identifier: Apache-2.0 */
/* The index and the search over it, held against a plain walk over the same facts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/search.h"

#include <cmocka.h>

#include <sqlite3.h>

#include "home.h"

enum { RUNS = 1200 };

/* What the runs of these tests have. */
struct sample {
    double lr, loss;
    bool has_loss;
    const char *optimiser;
};

static struct sample sample_of(uint64_t run) {
    static const char *const optimisers[] = { "adam", "sgd", "Adagrad" };

    return (struct sample){ .lr = (double)(run % 7) / 10,
                            .loss = run % 11 == 0 ? (double)NAN : (double)(run * 7919 % 1000) / 500,
                            .has_loss = run % 5 != 0,
                            .optimiser = optimisers[run % 3] };
}

static void put_sample(struct search_index *index, uint64_t run) {
    const struct sample sample = sample_of(run);
    const struct fact facts[] = {
        { .field = "status", .kind = CELL_WORD, .text = "succeeded" },
        { .field = "params.lr", .kind = CELL_NUMBER, .number = sample.lr },
        { .field = "params.optimiser", .kind = CELL_WORD, .text = sample.optimiser },
        { .field = "params.deep", .kind = CELL_TRUTH, .number = run % 2 == 0 },
        { .field = run % 2 ? "tags.odd" : "tags.even", .kind = CELL_TRUTH, .number = 1 },
        { .field = "metrics.loss", .kind = CELL_NUMBER, .number = sample.loss },
    };
    struct error err;

    if (index_put(index, run, facts, ARRAY_LEN(facts) - !sample.has_loss, &err))
        fail_msg("%s", err.message);
}

static struct search_index *sample_index(void) {
    struct search_index *index;
    struct error err;

    if (index_open("", INDEX_IN_MEMORY, &index, &err) || index_begin(index, &err))
        fail_msg("%s", err.message);
    for (uint64_t run = 1; run <= RUNS; run++)
        put_sample(index, run);
    assert_int_equal(index_commit(index, &err), 0);
    return index;
}

struct asked {
    struct arena arena;
    struct search_result found;
};

static void ask(struct asked *asked, struct search_index *index, const char *query,
                const char *sort, uint64_t offset, uint64_t limit) {
    AUTO_PTR(diags) diags = diags_new();
    struct query_sort columns, orders;
    struct query conditions;
    struct error err;
    const char *shown = "id,metrics.loss,params.optimiser";

    *asked = (struct asked){ 0 };
    assert_int_equal(query_parse(query, strlen(query), 0, &asked->arena, diags, &conditions), 0);
    assert_int_equal(query_sort_parse(sort, strlen(sort), 0, &asked->arena, diags, &orders), 0);
    assert_int_equal(query_fields_parse(shown, strlen(shown), 0, &asked->arena, diags, &columns),
                     0);
    if (search_index(index,
                     &(struct search_wish){ .query = &conditions,
                                            .sort = &orders,
                                            .columns = &columns,
                                            .offset = offset,
                                            .limit = limit },
                     &asked->found, &err))
        fail_msg("%s", err.message);
}

static void release(struct asked *asked) {
    search_result_release(&asked->found);
    arena_release(&asked->arena);
}

static uint64_t count(struct search_index *index, const char *query) {
    struct asked asked;
    uint64_t n;

    ask(&asked, index, query, "id", 0, 1);
    n = asked.found.n_total;
    release(&asked);
    return n;
}

static void a_search_finds_what_a_walk_over_all_runs_finds(void **state) {
    struct search_index *index = sample_index();
    uint64_t small = 0, adam = 0, two = 0, missing = 0, nan = 0;

    (void)state;
    for (uint64_t run = 1; run <= RUNS; run++) {
        const struct sample sample = sample_of(run);

        small += sample.has_loss && sample.loss < 0.5;
        adam += strcmp(sample.optimiser, "sgd") != 0 && sample.lr >= 0.3;
        two += sample.lr == 0.1 || sample.lr == 0.2;
        missing += !(sample.has_loss && sample.loss < 0.5);
        nan += sample.has_loss && isnan(sample.loss);
    }
    assert_int_equal(count(index, "metrics.loss:<0.5"), small);
    assert_int_equal(count(index, "~metrics.loss:<0.5"), missing);
    assert_int_equal(count(index, "params.optimiser:%ad%, params.lr:>=0.3"), adam);
    assert_int_equal(count(index, "params.lr:0.1|0.2"), two);
    assert_int_equal(count(index, "metrics.loss:nan"), nan);
    assert_int_equal(count(index, "tags:odd"), RUNS / 2);
    assert_int_equal(count(index, "tags:odd|even"), RUNS);
    assert_int_equal(count(index, "~tags:odd, params.deep:false"), 0);
    assert_int_equal(count(index, "id:10..19"), 10);
    assert_int_equal(count(index, ""), RUNS);
    index_free(index);
}

/* Where a run stands by loss: numbers, then NaN, then none. */
static double place_of(uint64_t run) {
    const struct sample sample = sample_of(run);

    return !sample.has_loss ? 1e9 : isnan(sample.loss) ? 1e8 : sample.loss;
}

static void a_sort_is_an_order_and_pages_join_to_the_whole(void **state) {
    struct search_index *index = sample_index();
    struct asked whole, page;

    (void)state;
    ask(&whole, index, "", "metrics.loss", 0, 0);
    assert_int_equal(whole.found.n, RUNS);
    for (size_t i = 1; i < whole.found.n; i++) {
        const double before = place_of(whole.found.runs[i - 1]);
        const double here = place_of(whole.found.runs[i]);

        assert_true(before < here ||
                    (before == here && whole.found.runs[i - 1] > whole.found.runs[i]));
    }
    for (uint64_t offset = 0; offset < RUNS + 100; offset += 97) {
        ask(&page, index, "", "metrics.loss", offset, 97);
        assert_int_equal(page.found.n, offset + 97 <= RUNS ? 97
                                       : offset < RUNS     ? RUNS - offset
                                                           : 0);
        for (size_t i = 0; i < page.found.n; i++)
            assert_int_equal(page.found.runs[i], whole.found.runs[offset + i]);
        release(&page);
    }
    release(&whole);
    index_free(index);
}

static void what_has_no_value_comes_last_either_way(void **state) {
    struct search_index *index = sample_index();
    struct asked asked;

    (void)state;
    ask(&asked, index, "", "-metrics.loss", 0, 0);
    assert_true(sample_of(asked.found.runs[0]).loss > 1.9);
    assert_false(sample_of(asked.found.runs[RUNS - 1]).has_loss);
    release(&asked);
    ask(&asked, index, "", "params.optimiser,-id", 0, 1);
    assert_string_equal(asked.found.values[2].text, "Adagrad");
    release(&asked);
    index_free(index);
}

static void values_shown_are_those_that_were_put(void **state) {
    struct search_index *index = sample_index();
    struct asked asked;

    (void)state;
    /* A page is fetched cell by cell, all by whole columns. */
    for (uint64_t limit = 0; limit <= 3; limit += 3) {
        ask(&asked, index, "", "id", 0, limit);
        for (size_t i = 0; i < asked.found.n; i++) {
            const struct search_value *values = &asked.found.values[i * 3];
            const struct sample sample = sample_of(asked.found.runs[i]);

            assert_true(values[0].number == (double)asked.found.runs[i]);
            assert_int_equal(values[1].kind, sample.has_loss ? CELL_NUMBER : CELL_NONE);
            if (sample.has_loss && !isnan(sample.loss))
                assert_true(values[1].number == sample.loss);
            assert_string_equal(values[2].text, sample.optimiser);
        }
        release(&asked);
    }
    index_free(index);
}

static void a_run_put_again_keeps_nothing_of_before(void **state) {
    const struct fact facts[] = { { .field = "status", .kind = CELL_WORD, .text = "failed" } };
    struct search_index *index = sample_index();
    struct error err;

    (void)state;
    assert_int_equal(index_begin(index, &err), 0);
    assert_int_equal(index_put(index, 7, facts, 1, &err), 0);
    assert_int_equal(index_put(index, 8, NULL, 0, &err), 0);
    assert_int_equal(index_commit(index, &err), 0);
    assert_int_equal(count(index, "id:7..8"), 1);
    assert_int_equal(count(index, "id:7, status:failed"), 1);
    assert_int_equal(count(index, "id:7, params.lr:>=0"), 0);
    assert_int_equal(count(index, "id:7, tags:%"), 0);
    assert_int_equal(count(index, "status:succeeded"), RUNS - 2);
    index_free(index);
}

static void a_field_that_no_run_has_is_told(void **state) {
    struct search_index *index = sample_index();
    struct asked asked;

    (void)state;
    ask(&asked, index, "metrics.gone:<1, params.lr:<1", "min.gone", 0, 0);
    assert_int_equal(asked.found.n_total, 0);
    assert_int_equal(asked.found.n_unknown, 2);
    assert_string_equal(asked.found.unknown[0], "metrics.gone");
    release(&asked);
    index_free(index);
}

/* ---- up to date ---- */

static void write_run(struct home *home, struct rundir *rundir, const char *status) {
    char text[1024];

    *rundir = home_run(home);
    snprintf(
        text, sizeof text,
        "{\"seq\":1,\"time\":\"2026-03-01T10:00:00.000000Z\",\"elapsed\":0,\"attempt\":0,"
        "\"event\":\"created\",\"uuid\":\"%032d\",\"name\":\"n\",\"owner\":\"o\",\"host\":\"h\","
        "\"boot_id\":\"b\",\"framework\":null,\"command\":\"c\",\"directory\":\"/\","
        "\"counts\":{\"master\":1,\"worker\":0,\"ps\":0}}\n"
        "{\"seq\":2,\"time\":\"2026-03-01T10:00:01.000000Z\",\"elapsed\":1,\"attempt\":0,"
        "\"event\":\"tracked\",\"kind\":\"params\",\"rank\":0,\"values\":{\"lr\":0.5}}\n"
        "{\"seq\":3,\"time\":\"2026-03-01T10:00:02.000000Z\",\"elapsed\":2,\"attempt\":0,"
        "\"event\":\"status\",\"status\":\"%s\",\"exit_status\":0}\n",
        1, status);
    home_write(rundir, "events.jsonl", text);
}

static int read_plainly(const struct rundir *rundir, struct run_record *record, struct error *err) {
    return record_read(record, rundir, err);
}

/* As a command does: what is damaged is made again when it is found out, at the latest when it is
 * searched. Returns how many runs were read for it. */
static uint64_t refresh(struct home *home, uint64_t *n_found) {
    AUTO_PTR(diags) diags = diags_new();
    struct arena arena = ARENA_INIT;
    struct search_result found;
    struct query_sort none = { 0 };
    struct query query;
    struct error err;
    uint64_t n_read;

    assert_int_equal(
        query_parse("params.lr:0.5", strlen("params.lr:0.5"), 0, &arena, diags, &query), 0);
    if (search(
            home->path, INDEX_IN_HOME, read_plainly,
            &(struct search_wish){ .query = &query, .sort = &none, .columns = &none, .limit = 10 },
            &found, &err))
        fail_msg("%s", err.message);
    n_read = found.n_read;
    *n_found = found.n_total;
    search_result_release(&found);
    arena_release(&arena);
    return n_read;
}

static void only_new_and_living_runs_are_read_again(void **state) {
    struct rundir first, second, third;
    struct home home;
    uint64_t found;

    (void)state;
    home_make(&home);
    write_run(&home, &first, "succeeded");
    write_run(&home, &second, "running");
    assert_int_equal(refresh(&home, &found), 2);
    assert_int_equal(found, 2);
    assert_int_equal(refresh(&home, &found), 1);
    write_run(&home, &third, "failed");
    assert_int_equal(refresh(&home, &found), 2);
    assert_int_equal(found, 3);
    home_release(&home);
}

static void a_run_that_is_gone_is_not_found(void **state) {
    struct rundir rundir;
    struct home home;
    uint64_t found;
    char command[256];

    (void)state;
    home_make(&home);
    write_run(&home, &rundir, "succeeded");
    refresh(&home, &found);
    assert_int_equal(found, 1);
    snprintf(command, sizeof command, "rm -r '%s'", rundir.path);
    assert_int_equal(system(command), 0);
    refresh(&home, &found);
    assert_int_equal(found, 0);
    home_release(&home);
}

/* Writes as another member of the group could, by another program. */
static void harm(const struct home *home, const char *sql) {
    char path[128];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/index.db", home->path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void an_index_that_another_user_changed_is_made_again(void **state) {
    static const char *const harms[] = {
        "PRAGMA user_version = -5",
        "CREATE TRIGGER t BEFORE INSERT ON words BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more (x)",
        "INSERT INTO watched VALUES (-5)",
        "INSERT INTO watched VALUES (4000000000)",
        "UPDATE fields SET id = 9000000000 WHERE name = 'status'",
        "UPDATE fields SET id = -7 WHERE name = 'status'",
        "WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c LIMIT 300000)"
        " INSERT OR IGNORE INTO columns SELECT id << 32 | x, x'' FROM c, fields"
        " WHERE name = 'status'",
    };
    struct rundir rundir;
    struct home home;
    uint64_t found;

    (void)state;
    home_make(&home);
    write_run(&home, &rundir, "succeeded");
    refresh(&home, &found);
    for (size_t i = 0; i < ARRAY_LEN(harms); i++) {
        harm(&home, harms[i]);
        if (refresh(&home, &found) != 1 || found != 1)
            fail_msg("it was not made again after: %s", harms[i]);
    }
    home_release(&home);
}

static void an_index_that_is_lost_or_damaged_is_made_again(void **state) {
    static const char *const harms[] = {
        "ln -sf target '%s/index.db'",
        "rm '%s/index.db'; mkfifo '%1$s/index.db'",
        "rm '%s/index.db'; mkdir '%1$s/index.db'",
        "rm -f '%s/index.db-wal'; mkfifo '%1$s/index.db-wal'",
        "rm -f '%s/index.db-shm'; ln -s target '%1$s/index.db-shm'",
        "ln -s /dev/zero '%s/index.db-journal'",
        "rm '%s/index.db'",
        "echo nonsense > '%s/index.db'",
        "head -c 40000 '%s/index.db' > '%1$s/cut'; mv '%1$s/cut' '%1$s/index.db'",
        "head -c 60000 /dev/urandom | dd of='%s/index.db' bs=1000 seek=1 conv=notrunc status=none",
        "python3 -c \"import sqlite3; sqlite3.connect('%s/index.db').execute('PRAGMA "
        "user_version=9')\"",
        "python3 -c \"import sqlite3; sqlite3.connect('%s/index.db').execute('DROP TABLE "
        "columns')\"",
    };
    struct rundir rundir;
    struct home home;
    uint64_t found;

    (void)state;
    home_make(&home);
    write_run(&home, &rundir, "succeeded");
    refresh(&home, &found);
    for (size_t i = 0; i < ARRAY_LEN(harms); i++) {
        char command[512], *put = command;

        for (const char *p = harms[i]; *p; p++)
            if (strncmp(p, "%s", 2) == 0 || strncmp(p, "%1$s", 4) == 0) {
                put += sprintf(put, "%s", home.path);
                p += p[1] == 's' ? 1 : 3;
            } else {
                *put++ = *p;
            }
        *put = '\0';
        assert_int_equal(system(command), 0);
        if (refresh(&home, &found) != 1 || found != 1)
            fail_msg("it was not made again after: %s", command);
    }
    home_release(&home);
}

static void visit(void *context, uint64_t number, const char *text) {
    (void)number;
    *(size_t *)context += strlen(text);
}

/* Numbers and texts of an index are used as such only after a check. */
static void what_an_index_cannot_have_written_is_damage(void **state) {
    static const char *const harms[] = {
        "INSERT INTO words VALUES (9223372036854775807, 'x')",
        "INSERT INTO words VALUES (-1, 'x')",
        "INSERT INTO words VALUES (777, x'6100')",
        "INSERT INTO words VALUES (777, zeroblob(100000))",
        "INSERT INTO words VALUES (777, printf('%.5000c', 'x'))",
    };
    struct home home;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(harms); i++) {
        struct search_index *index;
        struct error err;
        size_t n = 0;

        home_make(&home);
        assert_int_equal(index_open(home.path, INDEX_IN_HOME, &index, &err), 0);
        index_free(index);
        harm(&home, harms[i]);
        assert_int_equal(index_open(home.path, INDEX_IN_HOME, &index, &err), 0);
        assert_int_equal(index_each_word(index, visit, &n, &err), -1);
        assert_true(index_is_damaged(index));
        index_free(index);
        home_release(&home);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_finds_what_a_walk_over_all_runs_finds),
        cmocka_unit_test(a_sort_is_an_order_and_pages_join_to_the_whole),
        cmocka_unit_test(what_has_no_value_comes_last_either_way),
        cmocka_unit_test(values_shown_are_those_that_were_put),
        cmocka_unit_test(a_run_put_again_keeps_nothing_of_before),
        cmocka_unit_test(a_field_that_no_run_has_is_told),
        cmocka_unit_test(only_new_and_living_runs_are_read_again),
        cmocka_unit_test(a_run_that_is_gone_is_not_found),
        cmocka_unit_test(an_index_that_is_lost_or_damaged_is_made_again),
        cmocka_unit_test(an_index_that_another_user_changed_is_made_again),
        cmocka_unit_test(what_an_index_cannot_have_written_is_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
