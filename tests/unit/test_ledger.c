/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <linux/magic.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/host.h"
#include "store/ledger.h"
#include "store/owner.h"

enum { BUSY_MS = 5000, RUNS = 8 };

/* A home with runs that this process owns. */
struct fixture {
    char home[PATH_MAX];
    struct arena arena;
    struct rundir runs[RUNS];
    int locks[RUNS];
    struct ledger *ledger;
};

static struct demand_group group_of_two = { .amount = { 500, 0, 1000, 0 }, .n = 2 };
static const struct demand pair = {
    .groups = &group_of_two, .n_groups = 1, .n_tasks = 2, .total = { 1000, 0, 2000, 0 }
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    const char *base = getenv("TMPDIR");
    struct error err;

    assert_non_null(fixture);
    snprintf(fixture->home, sizeof fixture->home, "%s/ledger.XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(fixture->home));
    for (int i = 0; i < RUNS; i++) {
        assert_int_equal(rundir_make(fixture->home, &fixture->arena, &fixture->runs[i], &err), 0);
        assert_int_equal(owner_take(&fixture->runs[i], &fixture->locks[i], &err), 0);
    }
    if (ledger_open(fixture->home, LEDGER_TO_WRITE, BUSY_MS, &fixture->ledger, &err))
        fail_msg("%s", err.message);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    static const char *const files[] = { "myelin.db", "myelin.db-wal", "myelin.db-shm" };
    struct fixture *fixture = *state;
    char path[PATH_MAX + 32];

    ledger_close(fixture->ledger);
    for (int i = 0; i < RUNS; i++) {
        if (fixture->locks[i] >= 0)
            close(fixture->locks[i]);
        rundir_remove(&fixture->runs[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof path, "%s/%s", fixture->home, files[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/runs", fixture->home);
    rmdir(path);
    rmdir(fixture->home);
    arena_release(&fixture->arena);
    free(fixture);
    return 0;
}

static void enter(struct fixture *fixture, uint64_t run) {
    struct error err;

    assert_int_equal(ledger_begin(fixture->ledger, &err), 0);
    assert_int_equal(ledger_enter(fixture->ledger, run, &pair, &err), 0);
    assert_int_equal(ledger_commit(fixture->ledger, &err), 0);
}

static void reserve(struct fixture *fixture, uint64_t run, gpu_set gpus) {
    const struct hold holds[] = {
        { .rank = HOLD_OF_SEVERAL, .amount = { [RESOURCE_CPU] = 1000 } },
        { .rank = 3, .amount = { 500, 0, 1000, 0 }, .gpus = gpus },
    };
    struct error err;

    assert_int_equal(ledger_begin(fixture->ledger, &err), 0);
    assert_int_equal(ledger_reserve(fixture->ledger, run, holds, ARRAY_LEN(holds), &err), 0);
    assert_int_equal(ledger_commit(fixture->ledger, &err), 0);
}

static struct ledger_view look(struct fixture *fixture) {
    struct ledger_view view;
    struct error err;

    assert_int_equal(ledger_read(fixture->ledger, &view, &err), 0);
    return view;
}

static void settle(struct fixture *fixture) {
    struct error err;

    assert_int_equal(ledger_begin(fixture->ledger, &err), 0);
    assert_int_equal(ledger_settle(fixture->ledger, NULL, &err), 0);
    assert_int_equal(ledger_commit(fixture->ledger, &err), 0);
}

static void runs_stand_in_the_order_of_their_ids(void **state) {
    struct fixture *fixture = *state;
    struct ledger_view view;

    enter(fixture, 3);
    enter(fixture, 1);
    enter(fixture, 2);
    view = look(fixture);
    assert_int_equal(view.queue.len, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(view.queue.items[i].run, i + 1);
        assert_int_equal(view.queue.items[i].demand.n_tasks, 2);
        assert_memory_equal(view.queue.items[i].demand.total, pair.total, sizeof pair.total);
    }
    ledger_view_release(&view);
}

static void who_reserves_leaves_the_queue_and_who_ends_leaves_nothing(void **state) {
    struct fixture *fixture = *state;
    struct ledger_view view;
    struct error err;

    enter(fixture, 1);
    reserve(fixture, 1, (gpu_set)1 << 63 | 4);
    view = look(fixture);
    assert_int_equal(view.queue.len, 0);
    assert_int_equal(view.holds.len, 2);
    assert_int_equal(view.holds.items[0].rank, HOLD_OF_SEVERAL);
    assert_int_equal(view.holds.items[0].amount[RESOURCE_CPU], 1000);
    assert_true(view.holds.items[1].gpus == ((gpu_set)1 << 63 | 4));
    assert_int_equal(view.holds.items[1].amount[RESOURCE_GPU], 2000);
    ledger_view_release(&view);
    assert_int_equal(ledger_forget(fixture->ledger, 1, &err), 0);
    view = look(fixture);
    assert_int_equal(view.queue.len + view.holds.len, 0);
    ledger_view_release(&view);
}

static void cpus_of_a_task_are_kept_and_no_others(void **state) {
    struct fixture *fixture = *state;
    struct hold holds[] = {
        { .rank = HOLD_OF_SEVERAL, .amount = { [RESOURCE_CPU] = 500 } },
        { .rank = 0, .amount = { [RESOURCE_CPU] = 3000 } },
    };
    struct ledger_view view;
    struct error err;

    cpus_add(&holds[1].cpus, 0);
    cpus_add(&holds[1].cpus, 63);
    cpus_add(&holds[1].cpus, CPUS_MAX - 1);
    assert_int_equal(ledger_begin(fixture->ledger, &err), 0);
    assert_int_equal(ledger_reserve(fixture->ledger, 1, holds, ARRAY_LEN(holds), &err), 0);
    assert_int_equal(ledger_commit(fixture->ledger, &err), 0);
    view = look(fixture);
    assert_int_equal(view.holds.len, 2);
    assert_int_equal(cpus_count(&view.holds.items[0].cpus), 0);
    assert_true(cpus_are_equal(&view.holds.items[1].cpus, &holds[1].cpus));
    ledger_view_release(&view);
}

static void execute(const char *home, const char *sql) {
    char path[PATH_MAX + 32];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/myelin.db", home);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void an_older_ledger_keeps_its_rows_when_it_is_brought_up_to_date(void **state) {
    struct fixture *fixture = *state;
    struct ledger_view view;
    struct error err;

    enter(fixture, 2);
    reserve(fixture, 1, 4);
    ledger_close(fixture->ledger);
    fixture->ledger = NULL;
    execute(fixture->home, "ALTER TABLE reservations DROP COLUMN cpus; PRAGMA user_version = 1");
    if (ledger_open(fixture->home, LEDGER_TO_WRITE, BUSY_MS, &fixture->ledger, &err))
        fail_msg("%s", err.message);
    view = look(fixture);
    assert_int_equal(view.queue.len, 1);
    assert_int_equal(view.holds.len, 2);
    assert_true(view.holds.items[1].gpus == 4);
    assert_int_equal(cpus_count(&view.holds.items[1].cpus), 0);
    ledger_view_release(&view);
}

static void what_is_no_set_of_cpus_counts_as_none(void **state) {
    struct fixture *fixture = *state;
    struct ledger_view view;

    reserve(fixture, 1, 4);
    execute(fixture->home, "UPDATE reservations SET cpus = 'all of them'");
    view = look(fixture);
    assert_int_equal(view.holds.len, 2);
    assert_int_equal(cpus_count(&view.holds.items[1].cpus), 0);
    ledger_view_release(&view);
}

static void a_row_counts_only_while_its_run_has_an_owner(void **state) {
    struct fixture *fixture = *state;
    struct ledger_view view;

    enter(fixture, 1);
    enter(fixture, 2);
    reserve(fixture, 3, 1);
    reserve(fixture, 4, 2);
    close(fixture->locks[0]);
    close(fixture->locks[2]);
    fixture->locks[0] = fixture->locks[2] = -1;
    settle(fixture);
    view = look(fixture);
    assert_int_equal(view.queue.len, 1);
    assert_int_equal(view.queue.items[0].run, 2);
    assert_int_equal(view.holds.len, 2);
    assert_int_equal(view.holds.items[0].run, 4);
    ledger_view_release(&view);
}

static void a_run_whose_directory_was_removed_is_settled(void **state) {
    struct fixture *fixture = *state;
    struct ledger_view view;

    enter(fixture, 8);
    rundir_remove(&fixture->runs[7]);
    settle(fixture);
    view = look(fixture);
    assert_int_equal(view.queue.len, 0);
    ledger_view_release(&view);
}

static void a_reused_id_inherits_nothing(void **state) {
    struct fixture *fixture = *state;
    struct ledger_view view;

    reserve(fixture, 1, 1);
    enter(fixture, 1);
    view = look(fixture);
    assert_int_equal(view.holds.len, 0);
    assert_int_equal(view.queue.len, 1);
    ledger_view_release(&view);
}

static void what_is_rolled_back_did_not_happen(void **state) {
    struct fixture *fixture = *state;
    struct ledger_view view;
    struct error err;

    assert_int_equal(ledger_begin(fixture->ledger, &err), 0);
    assert_int_equal(ledger_enter(fixture->ledger, 1, &pair, &err), 0);
    ledger_rollback(fixture->ledger);
    view = look(fixture);
    assert_int_equal(view.queue.len, 0);
    ledger_view_release(&view);
}

static void another_writer_is_unavailable_not_waited_for(void **state) {
    struct fixture *fixture = *state;
    struct ledger *other;
    struct error err;

    assert_int_equal(ledger_open(fixture->home, LEDGER_TO_WRITE, 0, &other, &err), 0);
    assert_int_equal(ledger_begin(fixture->ledger, &err), 0);
    assert_int_equal(ledger_begin(other, &err), -1);
    assert_int_equal(err.code, ERROR_UNAVAILABLE);
    assert_int_equal(ledger_commit(fixture->ledger, &err), 0);
    assert_int_equal(ledger_begin(other, &err), 0);
    assert_int_equal(ledger_commit(other, &err), 0);
    ledger_close(other);
}

/* Takes the one thing there is, in a transaction, a number of times; 1 if it was taken twice. */
static int grab(const char *home, uint64_t run) {
    const struct hold hold = { .rank = HOLD_OF_SEVERAL, .amount = { [RESOURCE_CPU] = 1000 } };

    for (int i = 0; i < 50; i++) {
        struct ledger_view view;
        struct ledger *ledger;
        struct error err;
        bool was_free;

        while (ledger_open(home, LEDGER_TO_WRITE, BUSY_MS, &ledger, &err))
            if (err.code != ERROR_UNAVAILABLE)
                return 2;
        while (ledger_begin(ledger, &err))
            if (err.code != ERROR_UNAVAILABLE)
                return 3;
        if (ledger_settle(ledger, NULL, &err) || ledger_read(ledger, &view, &err))
            return 4;
        was_free = view.holds.len == 0;
        if (view.holds.len > 1)
            return 1;
        ledger_view_release(&view);
        if (was_free && ledger_reserve(ledger, run, &hold, 1, &err))
            return 5;
        if (ledger_commit(ledger, &err))
            return 6;
        if (was_free && ledger_forget(ledger, run, &err))
            return 7;
        ledger_close(ledger);
    }
    return 0;
}

static void processes_that_reserve_at_once_never_hold_the_same(void **state) {
    struct fixture *fixture = *state;

    ledger_close(fixture->ledger);
    fixture->ledger = NULL;
    for (uint64_t run = 1; run <= RUNS; run++)
        if (fork() == 0)
            _exit(grab(fixture->home, run));
    for (int i = 0; i < RUNS; i++) {
        int status;

        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
}

static void where_there_is_no_ledger_who_looks_sees_an_empty_one_and_makes_none(void **state) {
    struct ledger *none = (struct ledger *)&none;
    struct ledger_view view;
    struct error err;

    (void)state;
    assert_int_equal(ledger_open("/nonexistent", LEDGER_TO_LOOK, 0, &none, &err), 0);
    assert_null(none);
    assert_int_equal(ledger_read(none, &view, &err), 0);
    assert_int_equal(view.queue.len + view.holds.len, 0);
    ledger_view_release(&view);
}

static void file_systems_without_reliable_locks_are_refused_by_name(void **state) {
    struct error err;

    (void)state;
    assert_int_equal(ledger_check_filesystem("/h", NFS_SUPER_MAGIC, &err), -1);
    assert_non_null(strstr(err.message, "'/h' is on NFS"));
    assert_non_null(strstr(err.message, "MYELIN_HOME"));
    assert_int_equal(ledger_check_filesystem("/h", (long)(int)CIFS_SUPER_MAGIC, &err), -1);
    assert_int_equal(ledger_check_filesystem("/h", EXT4_SUPER_MAGIC, &err), 0);
    assert_int_equal(ledger_check_filesystem("/h", TMPFS_MAGIC, &err), 0);
}

/* A journal of a run that reserved a core an hour ago, and what came after that. */
static void write_journal(const struct rundir *rundir, const char *boot, const char *rest) {
    char text[2048], name[HOST_TEXT];
    struct error err;
    int n = snprintf(text, sizeof text,
                     "{\"event\":\"created\",\"host\":\"%s\",\"boot_id\":\"%s\"}\n"
                     "{\"event\":\"reserved\",\"time\":\"%s\",\"holds\":[{\"cpu\":1}]}\n%s",
                     host_name(name), boot,
                     time_text(clock_wall_us() - 3600 * INT64_C(1000000), TIME_MILLISECONDS).text,
                     rest);

    assert_int_equal(rundir_write(rundir, "events.jsonl", text, (size_t)n, &err), 0);
}

static void rebuild(struct fixture *fixture) {
    struct error err;

    assert_int_equal(ledger_begin(fixture->ledger, &err), 0);
    assert_int_equal(ledger_rebuild(fixture->ledger, &err), 0);
    assert_int_equal(ledger_commit(fixture->ledger, &err), 0);
}

static void what_is_claimed_again_is_held_since_it_was_reserved(void **state) {
    struct fixture *fixture = *state;
    char boot[BOOT_TEXT];
    struct ledger_view view;
    double ago;

    write_journal(&fixture->runs[0], boot_id(boot), "");
    rebuild(fixture);
    view = look(fixture);
    assert_int_equal(view.holds.len, 1);
    ago = (double)clock_wall_us() / 1e6 - view.holds.items[0].since;
    assert_true(ago > 3590 && ago < 3700);
    ledger_view_release(&view);
}

/* Who died without a word may have left processes that nothing but its control groups tells of. */
static void a_dead_run_of_this_boot_claims_what_it_held_unless_it_ended_with_nothing_left(
    void **state) {
    static const char ended[] = "{\"event\":\"status\",\"status\":\"failed\"}\n";
    static const char left[] = "{\"event\":\"checked\",\"cgroups\":2}\n"
                               "{\"event\":\"status\",\"status\":\"failed\"}\n";
    struct fixture *fixture = *state;
    char boot[BOOT_TEXT];
    struct ledger_view view;

    boot_id(boot);
    write_journal(&fixture->runs[0], boot, "");
    write_journal(&fixture->runs[1], boot, ended);
    write_journal(&fixture->runs[2], boot, left);
    write_journal(&fixture->runs[3], "another", "");
    for (int i = 0; i < RUNS; i++) {
        close(fixture->locks[i]);
        fixture->locks[i] = -1;
    }
    rebuild(fixture);
    view = look(fixture);
    assert_int_equal(view.holds.len, 2);
    assert_int_equal(view.holds.items[0].run, 1);
    assert_int_equal(view.holds.items[1].run, 3);
    ledger_view_release(&view);
    settle(fixture);
    view = look(fixture);
    assert_int_equal(view.holds.len, 0);
    ledger_view_release(&view);
}

#define WITH_LEDGER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_LEDGER(runs_stand_in_the_order_of_their_ids),
        WITH_LEDGER(who_reserves_leaves_the_queue_and_who_ends_leaves_nothing),
        WITH_LEDGER(cpus_of_a_task_are_kept_and_no_others),
        WITH_LEDGER(an_older_ledger_keeps_its_rows_when_it_is_brought_up_to_date),
        WITH_LEDGER(what_is_no_set_of_cpus_counts_as_none),
        WITH_LEDGER(a_row_counts_only_while_its_run_has_an_owner),
        WITH_LEDGER(a_run_whose_directory_was_removed_is_settled),
        WITH_LEDGER(a_reused_id_inherits_nothing),
        WITH_LEDGER(what_is_rolled_back_did_not_happen),
        WITH_LEDGER(another_writer_is_unavailable_not_waited_for),
        WITH_LEDGER(what_is_claimed_again_is_held_since_it_was_reserved),
        WITH_LEDGER(a_dead_run_of_this_boot_claims_what_it_held_unless_it_ended_with_nothing_left),
        WITH_LEDGER(processes_that_reserve_at_once_never_hold_the_same),
        cmocka_unit_test(where_there_is_no_ledger_who_looks_sees_an_empty_one_and_makes_none),
        cmocka_unit_test(file_systems_without_reliable_locks_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
