/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"
#include "store/record.h"

#define AT(seq, elapsed)                                                                           \
    "{\"seq\": " seq ", \"time\": \"2026-01-02T03:04:05.000000Z\", \"elapsed\": " elapsed ", "

/* A run of three tasks of which the second fails. */
static const char *const failure[] = {
    AT("1", "0.001") "\"event\": \"created\", \"uuid\": \"0123456789abcdef0123456789abcdef\", "
                     "\"name\": \"mnist\", \"owner\": \"me\", \"host\": \"here\", \"boot_id\": "
                     "\"b\", \"framework\": \"pytorch\", \"command\": \"train\", \"directory\": "
                     "\"/d\", \"counts\": {\"master\": 1, \"worker\": 2, \"ps\": 0}}",
    AT("2", "0.002") "\"event\": \"status\", \"status\": \"starting\"}",
    AT("3", "0.003") "\"event\": \"task\", \"rank\": 0, \"status\": \"running\", \"pid\": 10}",
    AT("4", "0.004") "\"event\": \"task\", \"rank\": 1, \"status\": \"running\", \"pid\": 11}",
    AT("5", "0.005") "\"event\": \"task\", \"rank\": 2, \"status\": \"running\", \"pid\": 12}",
    AT("6", "0.006") "\"event\": \"status\", \"status\": \"running\"}",
    AT("7", "0.007") "\"event\": \"phase\", \"phase\": \"running\"}",
    AT("8", "1.5") "\"event\": \"task\", \"rank\": 1, \"status\": \"failed\", \"exit_code\": 3}",
    AT("9", "1.6") "\"event\": \"phase\", \"phase\": \"stopping\"}",
    AT("10", "1.7") "\"event\": \"notice\", \"message\": \"look here\"}",
    AT("11", "2") "\"event\": \"task\", \"rank\": 0, \"status\": \"stopped\", \"signal\": 15, "
                  "\"log_lost\": 7}",
    AT("12", "3") "\"event\": \"checked\", \"processes\": 0}",
    AT("13", "3.25") "\"event\": \"status\", \"status\": \"failed\", \"reason\": \"it broke\", "
                     "\"first_failed\": 1, \"place\": \"a.py:3\", \"hint\": \"mend it\", "
                     "\"exit_status\": 3}",
};
enum { LINES = ARRAY_LEN(failure) };

static const struct rundir nowhere = { .id = "1", .path = "/nowhere/1" };

static void feed(struct run_record *record, const char *line) {
    const char *notice;

    record_feed(record, line, strlen(line), &notice);
}

static void make_record(struct run_record *record, size_t n) {
    record_init(record, &nowhere);
    for (size_t i = 0; i < n; i++)
        feed(record, failure[i]);
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_task(const struct task_record *a, const struct task_record *b) {
    return a->state == b->state && same_text(a->reason, b->reason) && a->pid == b->pid &&
           a->exit_code == b->exit_code && a->signal == b->signal && a->started_s == b->started_s &&
           a->ended_s == b->ended_s && a->log_lost == b->log_lost;
}

/* All but the count of bad lines. */
static bool same(const struct run_record *a, const struct run_record *b) {
    if (!same_text(a->uuid, b->uuid) || !same_text(a->name, b->name) ||
        !same_text(a->reason, b->reason) || !same_text(a->place, b->place) ||
        !same_text(a->hint, b->hint) || !same_text(a->phase, b->phase) || a->state != b->state ||
        a->exit_status != b->exit_status || a->first_failed != b->first_failed ||
        a->left_nothing != b->left_nothing || a->elapsed_s != b->elapsed_s || a->seq != b->seq ||
        a->n_tasks != b->n_tasks || strcmp(a->updated_at, b->updated_at) != 0)
        return false;
    for (uint32_t rank = 0; rank < a->n_tasks; rank++)
        if (!same_task(&a->tasks[rank], &b->tasks[rank]))
            return false;
    return true;
}

/* What holds of any record, whatever was fed to it. */
static void assert_sane(const struct run_record *record) {
    uint32_t n = 0;

    assert_true(record->state < STATE_COUNT);
    assert_true(record->first_failed >= -1 && record->first_failed < (int64_t)record->n_tasks);
    assert_true(record->elapsed_s >= 0);
    for (enum role role = 0; role < ROLE_COUNT; role++)
        n += record->n_role[role];
    assert_int_equal(n, record->n_tasks);
    for (uint32_t rank = 0; rank < record->n_tasks; rank++) {
        const struct task_record *task = &record->tasks[rank];

        assert_true(task->state < STATE_COUNT);
        if (state_is_final(record->state))
            assert_true(state_is_final(task->state));
        if (!state_is_final(task->state))
            assert_true(task->ended_s < 0 && task->exit_code == -1 && task->signal == 0);
    }
}

static void a_whole_journal_gives_all_that_it_says(void **state) {
    struct run_record record;

    (void)state;
    make_record(&record, LINES);
    assert_int_equal(record.bad_lines, 0);
    assert_int_equal(record.state, STATE_FAILED);
    assert_string_equal(record.name, "mnist");
    assert_string_equal(record.directory, "/d");
    assert_string_equal(record.reason, "it broke");
    assert_string_equal(record.place, "a.py:3");
    assert_string_equal(record.hint, "mend it");
    assert_int_equal(record.exit_status, 3);
    assert_int_equal(record.first_failed, 1);
    assert_true(record.left_nothing && record.elapsed_s == 3.25 && record.seq == 13);
    assert_int_equal(record.n_tasks, 3);
    assert_int_equal(record.tasks[1].exit_code, 3);
    assert_true(record.tasks[1].started_s == 0.004 && record.tasks[1].ended_s == 1.5);
    assert_int_equal(record.tasks[0].signal, 15);
    assert_int_equal(record.tasks[0].log_lost, 7);
    record_release(&record);
}

static void feeding_the_same_lines_gives_the_same_record(void **state) {
    (void)state;
    for (size_t n = 0; n <= LINES; n++) {
        struct run_record a, b;

        make_record(&a, n);
        make_record(&b, n);
        assert_true(same(&a, &b));
        record_release(&a);
        record_release(&b);
    }
}

static void any_selection_of_lines_gives_a_sane_record(void **state) {
    (void)state;
    for (unsigned chosen = 0; chosen < 1u << LINES; chosen += 3) {
        struct run_record record;

        record_init(&record, &nowhere);
        for (size_t i = 0; i < LINES; i++)
            if (chosen >> i & 1)
                feed(&record, failure[i]);
        assert_sane(&record);
        record_release(&record);
    }
}

static void any_prefix_of_a_journal_file_gives_the_record_of_its_whole_lines(void **state) {
    AUTO(buf) text = BUF_INIT(1 << 20);
    struct run_record expected;
    struct rundir rundir;
    struct home home;
    struct error err;
    size_t whole = 0;

    (void)state;
    home_make(&home);
    rundir = home_run(&home);
    for (size_t i = 0; i < LINES; i++)
        assert_int_equal(buf_printf(&text, &err, "%s\n", failure[i]), 0);
    for (size_t n = 0; n <= text.len; n++) {
        struct run_record record;

        assert_int_equal(rundir_write(&rundir, "events.jsonl", text.data, n, &err), 0);
        assert_int_equal(record_read(&record, &rundir, &err), 0);
        whole += n > 0 && text.data[n - 1] == '\n';
        make_record(&expected, whole);
        assert_int_equal(record.bad_lines, 0);
        assert_true(same(&record, &expected));
        record_release(&expected);
        record_release(&record);
    }
    assert_int_equal(whole, LINES);
    home_release(&home);
}

static void what_a_run_waits_for_by_now_is_its_reason(void **state) {
    struct run_record record;

    (void)state;
    make_record(&record, 1);
    feed(&record, AT("2", "1") "\"event\": \"status\", \"status\": \"warning\", \"reason\": "
                               "\"its turn\"}");
    feed(&record, AT("3", "2") "\"event\": \"status\", \"status\": \"warning\", \"reason\": "
                               "\"room\"}");
    assert_string_equal(record.reason, "room");
    assert_int_equal(record.bad_lines, 0);
    record_release(&record);
}

static void final_is_final(void **state) {
    static const char *const later[] = {
        AT("99", "99") "\"event\": \"status\", \"status\": \"running\"}",
        AT("99", "99") "\"event\": \"status\", \"status\": \"stopped\", \"exit_status\": 130}",
        AT("99", "99") "\"event\": \"status\", \"status\": \"failed\", \"reason\": \"again\"}",
        AT("99", "99") "\"event\": \"task\", \"rank\": 2, \"status\": \"failed\"}",
        AT("99", "99") "\"event\": \"checked\", \"processes\": 5}",
        AT("99", "99") "\"event\": \"phase\", \"phase\": \"running\"}",
        AT("99", "99") "\"event\": \"notice\", \"message\": \"late\"}",
    };
    struct run_record before, after;

    (void)state;
    make_record(&before, LINES);
    make_record(&after, LINES);
    for (size_t i = 0; i < ARRAY_LEN(later); i++) {
        feed(&after, later[i]);
        assert_true(same(&before, &after));
        assert_int_equal(after.bad_lines, i + 1);
    }
    record_release(&before);
    record_release(&after);
}

static void a_task_whose_end_no_line_tells_ended_with_the_run(void **state) {
    struct run_record record;

    (void)state;
    make_record(&record, LINES - 1);
    assert_int_equal(record.tasks[2].state, STATE_RUNNING);
    record_release(&record);
    make_record(&record, LINES);
    assert_int_equal(record.tasks[2].state, STATE_STOPPED);
    assert_string_equal(record.tasks[2].reason, "ended with the run");
    assert_true(record.tasks[2].ended_s == 3.25);
    record_release(&record);
}

static void lines_that_are_none_are_counted_and_change_nothing(void **state) {
    static const char *const bad[] = {
        "",
        "no json",
        "[]",
        "{}",
        "{\"event\": 3}",
        AT("50", "9") "\"event\": \"surprise\"}",
        AT("50", "9") "\"event\": \"created\", \"uuid\": \"other\", \"counts\": {\"worker\": 9}}",
        AT("50", "9") "\"event\": \"status\"}",
        AT("50", "9") "\"event\": \"status\", \"status\": \"odd\"}",
        AT("50", "9") "\"event\": \"status\", \"status\": \"created\"}",
        AT("50", "9") "\"event\": \"task\", \"status\": \"failed\"}",
        AT("50", "9") "\"event\": \"task\", \"rank\": 3, \"status\": \"failed\"}",
        AT("50", "9") "\"event\": \"task\", \"rank\": -1, \"status\": \"failed\"}",
        AT("50", "9") "\"event\": \"task\", \"rank\": 1, \"status\": \"running\"}",
        AT("50", "9") "\"event\": \"phase\", \"phase\": \"odd\"}",
        AT("50", "9") "\"event\": \"notice\"}",
    };
    struct run_record before, after;

    (void)state;
    make_record(&before, 9);
    make_record(&after, 9);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        feed(&after, bad[i]);
        if (!same(&before, &after) || after.bad_lines != i + 1)
            fail_msg("this line is taken: %s", bad[i]);
    }
    record_release(&before);
    record_release(&after);
}

static void members_of_a_wrong_kind_are_as_if_missing(void **state) {
    struct run_record record;

    (void)state;
    record_init(&record, &nowhere);
    feed(&record, AT("1", "\"soon\"") "\"event\": \"created\", \"uuid\": "
                                      "\"0123456789abcdef0123456789abcdef\", \"name\": [], "
                                      "\"counts\": {\"worker\": -2, \"master\": \"x\", \"ps\": "
                                      "99999999}}");
    assert_int_equal(record.bad_lines, 0);
    assert_null(record.name);
    assert_int_equal(record.n_tasks, 0);
    feed(&record, AT("2", "1e999") "\"event\": \"status\", \"status\": \"failed\", "
                                   "\"first_failed\": 7, \"exit_status\": \"x\"}");
    assert_int_equal(record.state, STATE_FAILED);
    assert_int_equal(record.first_failed, -1);
    assert_int_equal(record.exit_status, EXIT_STATUS_NONE);
    assert_sane(&record);
    record_release(&record);
}

/* Control groups and objects of clusters are named after it. */
static void a_uuid_is_32_hexadecimal_digits_or_the_run_has_not_begun(void **state) {
    static const char *const wrong[] = { "5",
                                         "null",
                                         "\"\"",
                                         "\"../../../init.scope\"",
                                         "\"0123456789abcdef0123456789abcde\"",
                                         "\"0123456789abcdef0123456789abcdef0\"",
                                         "\"0123456789ABCDEF0123456789ABCDEF\"",
                                         "\"0123456789abcdef/123456789abcdef\"",
                                         "\"0123456789abcdef0123456789abcde.\"" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct run_record record;
        char line[256];

        snprintf(line, sizeof line,
                 AT("1", "0") "\"event\": \"created\", \"uuid\": %s, \"counts\": {\"master\": 1}}",
                 wrong[i]);
        record_init(&record, &nowhere);
        feed(&record, line);
        assert_null(record.uuid);
        assert_int_equal(record.bad_lines, 1);
        record_release(&record);
    }
}

/* ---- what tasks say of the run ---- */

/* A line in which XXX stands for a text of two megabytes. */
static void feed_long(struct run_record *record, const char *line) {
    enum { LONG = 2 << 20 };
    AUTO(buf) text = BUF_INIT(LONG + 1000);
    const char *hole = strstr(line, "XXX"), *notice;
    struct error err;

    assert_int_equal(buf_printf(&text, &err, "%.*s%*s%s", (int)(hole - line), line, LONG, "",
                                hole + strlen("XXX")),
                     0);
    record_feed(record, text.data, text.len, &notice);
}

static void a_value_that_is_too_long_is_none(void **state) {
    static const char *const lines[] = {
        AT("2", "1") "\"event\": \"tracked\", \"kind\": \"params\", \"values\": {\"p\": \"XXX\"}}",
        AT("2",
           "1") "\"event\": \"tracked\", \"kind\": \"artifact\", \"values\": {\"name\": \"a\", "
                "\"path\": \"XXX\"}}",
        AT("2", "1") "\"event\": \"artifact\", \"name\": \"a\", \"problem\": \"XXX\"}",
    };
    struct run_record record;

    (void)state;
    make_record(&record, 1);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        feed_long(&record, lines[i]);
        assert_int_equal(record.bad_lines, i + 1);
    }
    for (int kind = 0; kind < TRACKED_KINDS; kind++)
        assert_int_equal(record.tracked[kind].n, 0);
    assert_int_equal(record.found.n, 0);

    /* The one before stays. */
    feed(&record,
         AT("3", "1") "\"event\": \"tracked\", \"kind\": \"params\", \"values\": {\"p\": 1}}");
    feed_long(&record, lines[0]);
    assert_int_equal(record.tracked[TRACKED_PARAMS].n, 1);
    assert_string_equal(record.tracked[TRACKED_PARAMS].values[0].json, "1");
    record_release(&record);
}

/* ---- attempts ---- */

#define TRY(attempt, elapsed) AT("1", elapsed) "\"attempt\": " attempt ", "

/* A run of two tasks that fails, is started again, and succeeds. */
static const char *const restarted[] = {
    TRY("0", "0.1") "\"event\": \"created\", \"uuid\": \"0123456789abcdef0123456789abcdef\", "
                    "\"origin\": {\"manner\": "
                    "\"resumed\", \"id\": 7, \"uuid\": \"v\"}, \"counts\": {\"worker\": 2}}",
    TRY("0", "1") "\"event\": \"attempt\", \"status\": \"starting\"}",
    TRY("0", "1") "\"event\": \"status\", \"status\": \"starting\"}",
    TRY("0", "2") "\"event\": \"task\", \"rank\": 0, \"status\": \"running\", \"pid\": 10}",
    TRY("0", "2") "\"event\": \"task\", \"rank\": 1, \"status\": \"running\", \"pid\": 11}",
    TRY("0", "2") "\"event\": \"status\", \"status\": \"running\"}",
    TRY("0", "3") "\"event\": \"task\", \"rank\": 1, \"status\": \"failed\", \"exit_code\": 3, "
                  "\"log_lost\": 5}",
    TRY("0", "4") "\"event\": \"task\", \"rank\": 0, \"status\": \"stopped\", \"signal\": 15}",
    TRY("0", "5") "\"event\": \"checked\", \"processes\": 0}",
    TRY("0", "5") "\"event\": \"attempt\", \"status\": \"failed\", \"reason\": \"it broke\", "
                  "\"first_failed\": 1, \"exit_status\": 3, \"delay\": 2}",
    TRY("0", "5") "\"event\": \"status\", \"status\": \"warning\", \"reason\": \"again\"}",
    TRY("0", "5") "\"event\": \"phase\", \"phase\": \"waiting\"}",
    TRY("1", "7") "\"event\": \"attempt\", \"status\": \"starting\"}",
    TRY("1", "7") "\"event\": \"status\", \"status\": \"starting\"}",
    TRY("1", "8") "\"event\": \"task\", \"rank\": 0, \"status\": \"running\", \"pid\": 20}",
    TRY("1", "8") "\"event\": \"status\", \"status\": \"running\"}",
    TRY("1", "9") "\"event\": \"checked\", \"processes\": 0}",
    TRY("1", "9") "\"event\": \"status\", \"status\": \"succeeded\", \"exit_status\": 0}",
};
enum { BEFORE_RESTART = 12, RESTARTED = ARRAY_LEN(restarted) };

static void make_restarted(struct run_record *record, size_t n) {
    record_init(record, &nowhere);
    for (size_t i = 0; i < n; i++)
        feed(record, restarted[i]);
    assert_int_equal(record->bad_lines, 0);
}

static void how_each_attempt_ended_is_kept(void **state) {
    struct run_record record;

    (void)state;
    make_restarted(&record, RESTARTED);
    assert_int_equal(record.state, STATE_SUCCEEDED);
    assert_int_equal(record.n_attempts, 2);
    assert_int_equal(record.n_over, 2);
    assert_int_equal(record.attempts[0].state, STATE_FAILED);
    assert_string_equal(record.attempts[0].reason, "it broke");
    assert_int_equal(record.attempts[0].first_failed, 1);
    assert_int_equal(record.attempts[0].exit_status, 3);
    assert_true(record.attempts[0].started_s == 1 && record.attempts[0].ended_s == 5);
    assert_int_equal(record.attempts[1].state, STATE_SUCCEEDED);
    assert_int_equal(record.attempts[1].exit_status, 0);
    assert_true(record.attempts[1].started_s == 7 && record.attempts[1].ended_s == 9);
    assert_int_equal(record.origin.manner, ORIGIN_RESUMED);
    assert_int_equal(record.origin.id, 7);
    assert_string_equal(record.origin.uuid, "v");
    record_release(&record);
}

static void a_new_attempt_starts_with_tasks_of_which_nothing_is_known(void **state) {
    static const struct task_record fresh = { .exit_code = -1, .started_s = -1, .ended_s = -1 };
    struct run_record record;

    (void)state;
    make_restarted(&record, BEFORE_RESTART);
    assert_int_equal(record.state, STATE_WARNING);
    assert_int_equal(record_attempt(&record), 0);
    assert_int_equal(record.n_over, 1);
    assert_int_equal(record.tasks[1].exit_code, 3);
    assert_true(record.left_nothing);
    assert_string_equal(record.phase, "waiting");
    record_release(&record);
    make_restarted(&record, BEFORE_RESTART + 1);
    assert_int_equal(record_attempt(&record), 1);
    for (uint32_t rank = 0; rank < record.n_tasks; rank++)
        assert_true(same_task(&record.tasks[rank], &fresh));
    assert_false(record.left_nothing);
    record_release(&record);
}

static void a_run_that_ends_between_two_attempts_leaves_the_first_as_it_was(void **state) {
    struct run_record record;

    (void)state;
    make_restarted(&record, BEFORE_RESTART);
    feed(&record, TRY("0", "6") "\"event\": \"status\", \"status\": \"stopped\", "
                                "\"exit_status\": 130}");
    assert_int_equal(record.state, STATE_STOPPED);
    assert_int_equal(record.n_attempts, 1);
    assert_int_equal(record.attempts[0].state, STATE_FAILED);
    assert_int_equal(record.attempts[0].exit_status, 3);
    record_release(&record);
}

static void attempts_come_one_after_the_other_or_not_at_all(void **state) {
    static const struct {
        size_t after; /* so many lines */
        const char *line;
    } bad[] = {
        { 0, TRY("0", "1") "\"event\": \"attempt\", \"status\": \"starting\"}" },
        { 1, TRY("1", "1") "\"event\": \"attempt\", \"status\": \"starting\"}" },
        { 1, TRY("0", "1") "\"event\": \"attempt\", \"status\": \"failed\"}" },
        { 2, TRY("0", "1") "\"event\": \"attempt\", \"status\": \"starting\"}" },
        { 6, TRY("1", "1") "\"event\": \"attempt\", \"status\": \"starting\"}" },
        { 6, TRY("1", "1") "\"event\": \"attempt\", \"status\": \"failed\"}" },
        { 6, TRY("0", "1") "\"event\": \"attempt\", \"status\": \"succeeded\"}" },
        { BEFORE_RESTART, TRY("0", "1") "\"event\": \"attempt\", \"status\": \"starting\"}" },
        { BEFORE_RESTART, TRY("0", "1") "\"event\": \"attempt\", \"status\": \"failed\"}" },
        { BEFORE_RESTART, TRY("2", "1") "\"event\": \"attempt\", \"status\": \"starting\"}" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct run_record record;
        uint32_t n_attempts, n_over;

        make_restarted(&record, bad[i].after);
        n_attempts = record.n_attempts;
        n_over = record.n_over;
        feed(&record, bad[i].line);
        if (record.bad_lines != 1 || record.n_attempts != n_attempts || record.n_over != n_over)
            fail_msg("after %zu lines this one is taken: %s", bad[i].after, bad[i].line);
        record_release(&record);
    }
}

static void many_attempts_are_all_kept(void **state) {
    struct run_record record;

    (void)state;
    make_restarted(&record, 1);
    for (int i = 0; i < 1002; i++) {
        char line[256];

        snprintf(line, sizeof line,
                 TRY("%d", "1") "\"event\": \"attempt\", \"status\": \"starting\"}", i);
        feed(&record, line);
        snprintf(line, sizeof line,
                 TRY("%d", "1") "\"event\": \"attempt\", \"status\": \"failed\", "
                                "\"exit_status\": %d}",
                 i, i);
        feed(&record, line);
    }
    assert_int_equal(record.bad_lines, 0);
    assert_int_equal(record.n_attempts, 1002);
    for (int i = 0; i < 1002; i++)
        assert_int_equal(record.attempts[i].exit_status, i);
    record_release(&record);
}

static void only_a_notice_is_handed_out(void **state) {
    struct run_record record;

    (void)state;
    record_init(&record, &nowhere);
    for (size_t i = 0; i < LINES; i++) {
        const char *notice = "untouched";

        record_feed(&record, failure[i], strlen(failure[i]), &notice);
        if (strstr(failure[i], "\"notice\""))
            assert_string_equal(notice, "look here");
        else
            assert_null(notice);
    }
    record_release(&record);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_journal_gives_all_that_it_says),
        cmocka_unit_test(feeding_the_same_lines_gives_the_same_record),
        cmocka_unit_test(any_selection_of_lines_gives_a_sane_record),
        cmocka_unit_test(any_prefix_of_a_journal_file_gives_the_record_of_its_whole_lines),
        cmocka_unit_test(what_a_run_waits_for_by_now_is_its_reason),
        cmocka_unit_test(final_is_final),
        cmocka_unit_test(a_task_whose_end_no_line_tells_ended_with_the_run),
        cmocka_unit_test(lines_that_are_none_are_counted_and_change_nothing),
        cmocka_unit_test(members_of_a_wrong_kind_are_as_if_missing),
        cmocka_unit_test(a_uuid_is_32_hexadecimal_digits_or_the_run_has_not_begun),
        cmocka_unit_test(a_value_that_is_too_long_is_none),
        cmocka_unit_test(how_each_attempt_ended_is_kept),
        cmocka_unit_test(a_new_attempt_starts_with_tasks_of_which_nothing_is_known),
        cmocka_unit_test(a_run_that_ends_between_two_attempts_leaves_the_first_as_it_was),
        cmocka_unit_test(attempts_come_one_after_the_other_or_not_at_all),
        cmocka_unit_test(many_attempts_are_all_kept),
        cmocka_unit_test(only_a_notice_is_handed_out),
    };

    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
