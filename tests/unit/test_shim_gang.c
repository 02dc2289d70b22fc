/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "shim/meeting.h"
#include "shim/vigil.h"

/* ---- whether a task goes on without its leader */

static const struct vigil_limits limits = { .gone_ms = 60, .failed_ms = 30, .ended_ms = 600 };

static struct vigil begun(void) {
    struct vigil vigil;

    vigil_begin(&vigil, &limits, 1000);
    return vigil;
}

static void hear(struct vigil *vigil, const char *text, int64_t now) {
    assert_int_equal(vigil_hear(vigil, text, strlen(text), now), strlen(text));
}

/* The task goes on until just before `end`, and ends then. */
static void ends_at(const struct vigil *vigil, int64_t end, const char *why) {
    int64_t wait;

    assert_null(vigil_verdict(vigil, end - 1, &wait));
    assert_int_equal(wait, 1);
    assert_string_equal(vigil_verdict(vigil, end, &wait), why);
}

static void a_leader_that_says_nothing_is_given_its_time_from_the_beginning(void **state) {
    const struct vigil vigil = begun();

    (void)state;
    ends_at(&vigil, 1060, "its leader cannot be reached");
}

static void each_word_of_the_leader_begins_its_time_anew(void **state) {
    struct vigil vigil = begun();

    (void)state;
    hear(&vigil, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nrunning\n\r\n", 1050);
    ends_at(&vigil, 1110, "its leader cannot be reached");
    hear(&vigil, "8\r\nrunning\n\r\n", 1100);
    ends_at(&vigil, 1160, "its leader cannot be reached");
}

static void what_the_leader_does_not_say_changes_nothing(void **state) {
    static const char *const texts[] = { "HTTP/1.1 403 Forbidden\r\n\r\n",
                                         "runnin\n",
                                         "running!\n",
                                         "\n",
                                         "ended\n",
                                         "ended \n",
                                         "ended x\n",
                                         "ended 256\n",
                                         "ended 0000\n",
                                         "ended -1\n" };
    struct vigil vigil = begun();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        hear(&vigil, texts[i], 1050);
    ends_at(&vigil, 1060, "its leader cannot be reached");
}

static void a_line_that_is_not_whole_is_left(void **state) {
    struct vigil vigil = begun();

    (void)state;
    assert_int_equal(vigil_hear(&vigil, "8\r\nrunn", 7, 1050), 3);
    assert_int_equal(vigil_hear(&vigil, "", 0, 1050), 0);
    ends_at(&vigil, 1060, "its leader cannot be reached");
}

static void a_leader_that_failed_leaves_less_time_than_one_that_ended_well(void **state) {
    struct vigil failed = begun(), ended = begun();

    (void)state;
    hear(&failed, "8\r\nended 3\n\r\n", 1040);
    ends_at(&failed, 1070, "its leader has failed");
    hear(&ended, "8\r\nended 0\n\r\n", 1040);
    ends_at(&ended, 1640, "its leader has ended");
    hear(&ended, "ended 3\n", 1100); /* the first end is the end */
    ends_at(&ended, 1640, "its leader has ended");
}

static void while_a_supervisor_is_there_nothing_is_decided_and_all_time_begins_anew(void **state) {
    struct vigil gone = begun(), failed = begun();
    int64_t wait;

    (void)state;
    hear(&failed, "ended 1\n", 1010);
    for (int64_t now = 1000; now <= 5000; now += 20) {
        vigil_watched(&gone, now);
        vigil_watched(&failed, now);
        assert_null(vigil_verdict(&gone, now, &wait));
        assert_null(vigil_verdict(&failed, now, &wait));
    }
    ends_at(&gone, 5060, "its leader cannot be reached");
    ends_at(&failed, 5030, "its leader has failed");
}

/* ---- the store */

static void a_store_keeps_what_is_in_it_while_it_grows(void **state) {
    const struct meeting_limits room = { 100000, 64, 16, 1 << 20 };
    struct meeting *meeting = meeting_new(&room);
    char path[32], body[16];

    (void)state;
    for (int i = 0; i < 5000; i++) {
        const int n = snprintf(body, sizeof body, "%d", i);

        snprintf(path, sizeof path, "/scope/%d", i);
        assert_int_equal(meeting_ask(meeting, MEETING_PUT, path, body, (size_t)n).status, 200);
    }
    for (int i = 0; i < 5000; i++) {
        const int n = snprintf(body, sizeof body, "%d", i);
        struct meeting_answer answer;

        snprintf(path, sizeof path, "/scope/%d", i);
        answer = meeting_ask(meeting, MEETING_GET, path, NULL, 0);
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer.length, n);
        assert_memory_equal(answer.body, body, (size_t)n);
    }
    assert_int_equal(meeting_ask(meeting, MEETING_OTHER, "/a/b", NULL, 0).status, 405);
    meeting_free(meeting);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_that_says_nothing_is_given_its_time_from_the_beginning),
        cmocka_unit_test(each_word_of_the_leader_begins_its_time_anew),
        cmocka_unit_test(what_the_leader_does_not_say_changes_nothing),
        cmocka_unit_test(a_line_that_is_not_whole_is_left),
        cmocka_unit_test(a_leader_that_failed_leaves_less_time_than_one_that_ended_well),
        cmocka_unit_test(while_a_supervisor_is_there_nothing_is_decided_and_all_time_begins_anew),
        cmocka_unit_test(a_store_keeps_what_is_in_it_while_it_grows),
    };

    return cmocka_run_group_tests_name("shim_gang", tests, NULL, NULL);
}
