/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/sysmacros.h>

#include "home.h"
#include "store/claim.h"
#include "store/ledger.h"
#include "store/locks.h"
#include "store/owner.h"

static struct demand_group group_of_two = { .amount = { 500, 0, 1000, 0 }, .n = 2 };
static const struct demand pair = {
    .groups = &group_of_two, .n_groups = 1, .n_tasks = 2, .total = { 1000, 0, 2000, 0 }
};
static const struct hold holds[] = {
    { .rank = HOLD_OF_SEVERAL, .amount = { [RESOURCE_CPU] = 1500, [RESOURCE_MEMORY] = 64000 } },
    { .rank = 3,
      .amount = { [RESOURCE_CPU] = 1 },
      .gpus = (gpu_set)1 << 63 | 4,
      .cpus = { { 5, [15] = 1 } } },
};

static struct journal begin(const struct rundir *rundir) {
    struct journal journal;
    struct error err;

    assert_int_equal(journal_create(&journal, rundir, 4, &err), 0);
    return journal;
}

static struct claim read_claim(const struct rundir *rundir) {
    struct claim claim;
    struct error err;

    assert_int_equal(claim_read(rundir, &claim, &err), 0);
    return claim;
}

static void what_is_written_is_read_back(void **state) {
    struct rundir rundir;
    struct journal journal;
    struct claim claim;
    struct home home;

    (void)state;
    home_make(&home);
    rundir = home_run(&home);
    journal = begin(&rundir);
    claim_write_queued(&journal, &pair);
    claim = read_claim(&rundir);
    assert_true(claim.waits && claim.since > 0);
    assert_memory_equal(claim.demand.total, pair.total, sizeof pair.total);
    claim_release(&claim);
    claim_write_reserved(&journal, holds, ARRAY_LEN(holds));
    claim = read_claim(&rundir);
    assert_false(claim.waits);
    assert_int_equal(claim.holds.len, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(claim.holds.items[i].rank, holds[i].rank);
        assert_int_equal(claim.holds.items[i].amount[RESOURCE_CPU], holds[i].amount[RESOURCE_CPU]);
        assert_true(claim.holds.items[i].gpus == holds[i].gpus);
        assert_true(cpus_are_equal(&claim.holds.items[i].cpus, &holds[i].cpus));
    }
    assert_int_equal(claim.holds.items[0].amount[RESOURCE_MEMORY], 64000);
    claim_release(&claim);
    journal_close(&journal);
    home_release(&home);
}

static void a_run_without_a_journal_claims_nothing(void **state) {
    struct home home;
    struct rundir rundir;
    struct claim claim;

    (void)state;
    home_make(&home);
    rundir = home_run(&home);
    claim = read_claim(&rundir);
    assert_true(!claim.waits && claim.holds.len == 0);
    claim_release(&claim);
    home_release(&home);
}

static void what_is_not_sensible_changes_nothing(void **state) {
    static const char *const lines[] = {
        "",
        "{",
        "[]",
        "{\"event\": 5}",
        "{\"event\": \"queued\"}",
        "{\"event\": \"queued\", \"demand\": \"x\"}",
        "{\"event\": \"queued\", \"demand\": \"\"}",
        "{\"event\": \"reserved\", \"holds\": 7}",
        "{\"event\": \"reserved\", \"holds\": [1, [], {\"cpu\": -1}, {\"cpu\": 1e300},"
        " {\"gpus\": [64]}, {\"cpus\": [1024]}, {\"cpus\": [-1]}, {\"cpus\": 0}, {\"gpus\": [-1]}, "
        "{\"gpus\": 3}]}",
    };
    struct claim claim = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        claim_feed(&claim, lines[i], strlen(lines[i]));
        assert_true(!claim.waits && claim.holds.len == 0);
    }
    claim_release(&claim);
}

static void a_new_ledger_begins_with_what_living_runs_claim(void **state) {
    enum { WAITS, HOLDS, DEAD, SILENT, RUNS };
    struct rundir runs[RUNS];
    struct ledger_view view;
    struct ledger *ledger;
    int locks[RUNS];
    struct error err;
    struct home home;

    (void)state;
    home_make(&home);
    for (int i = 0; i < RUNS; i++) {
        struct journal journal;

        runs[i] = home_run(&home);
        assert_int_equal(owner_take(&runs[i], &locks[i], &err), 0);
        journal = begin(&runs[i]);
        if (i != SILENT)
            claim_write_queued(&journal, &pair);
        if (i == HOLDS || i == DEAD)
            claim_write_reserved(&journal, holds, ARRAY_LEN(holds));
        journal_close(&journal);
    }
    close(locks[DEAD]);
    assert_int_equal(ledger_open(home.path, LEDGER_TO_WRITE, 1000, &ledger, &err), 0);
    assert_int_equal(ledger_read(ledger, &view, &err), 0);
    assert_int_equal(view.queue.len, 1);
    assert_int_equal(view.queue.items[0].run, WAITS + 1);
    assert_int_equal(view.holds.len, 2);
    assert_int_equal(view.holds.items[0].run, HOLDS + 1);
    assert_int_equal(view.holds.items[0].amount[RESOURCE_CPU], 1500);
    ledger_view_release(&view);
    ledger_close(ledger);
    for (int i = 0; i < RUNS; i++)
        if (i != DEAD)
            close(locks[i]);
    home_release(&home);
}

static void an_id_that_was_retired_is_not_given_again(void **state) {
    struct rundir rundir;
    struct error err;
    struct home home;

    (void)state;
    home_make(&home);
    rundir = home_run(&home);
    assert_string_equal(rundir.id, "1");
    assert_string_equal(rundir_home_of(&rundir, &home.arena), home.path);
    assert_int_equal(rundir_retire(home.path, 41, &err), 0);
    assert_int_equal(rundir_retire(home.path, 7, &err), 0);
    assert_int_equal(rundir_last(home.path), 41);
    assert_string_equal(home_run(&home).id, "42");
    home_release(&home);
}

static void the_process_that_locks_a_file_is_found_by_its_inode(void **state) {
    static const char text[] = "1: FLOCK  ADVISORY  WRITE 11 fe:01:77 0 EOF\n"
                               "2: POSIX  ADVISORY  READ  12 fe:01:77 124 124\n"
                               "3: POSIX  ADVISORY  WRITE 13 fe:02:77 120 120\n"
                               "4: POSIX  ADVISORY  WRITE 14 fe:01:78 120 120\n"
                               "5: rubbish\n\n"
                               "6: -> POSIX  ADVISORY  WRITE 15 fe:01:77 120 120\n"
                               "7: POSIX  ADVISORY  WRITE 16 fe:01:77 120 120\n";

    (void)state;
    assert_int_equal(locks_find(text, makedev(0xfe, 1), 77), 16);
    assert_int_equal(locks_find(text, makedev(0xfe, 1), 79), 0);
    assert_int_equal(locks_find("", makedev(0xfe, 1), 77), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_run_without_a_journal_claims_nothing),
        cmocka_unit_test(what_is_not_sensible_changes_nothing),
        cmocka_unit_test(a_new_ledger_begins_with_what_living_runs_claim),
        cmocka_unit_test(an_id_that_was_retired_is_not_given_again),
        cmocka_unit_test(the_process_that_locks_a_file_is_found_by_its_inode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
