/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper, with supervisors that do as they are told by their number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervise/keeper.h"

enum { WAIT_MS = 60 * 1000 };

/* What the processes tell the test, a word each, and how often a supervisor was followed. */
struct stage {
    int words[2];
    int n_revivals;
    pid_t keeper;
};

static int set_up(void **state) {
    static struct stage stage;

    stage = (struct stage){ 0 };
    *state = &stage;
    return pipe(stage.words);
}

static int tear_down(void **state) {
    struct stage *stage = *state;

    close(stage->words[0]);
    close(stage->words[1]);
    return 0;
}

static void tell(const struct stage *stage, const char *word) {
    if (write(stage->words[1], word, strlen(word) + 1) < 0)
        _exit(1);
}

/* The next word; "" where none comes. */
static const char *heard(const struct stage *stage) {
    static char word[32];
    struct pollfd ready = { .fd = stage->words[0], .events = POLLIN };
    size_t n = 0;

    do
        if (poll(&ready, 1, WAIT_MS) <= 0 || read(stage->words[0], &word[n], 1) != 1)
            return "";
    while (word[n++] != '\0' && n < sizeof word);
    return word;
}

static bool revives_twice(void *context, int wait_status) {
    struct stage *stage = context;

    (void)wait_status;
    return stage->n_revivals++ < 2;
}

static void tell_orphaned(void *context, int wait_status, enum keeper_loss loss) {
    tell(context, loss == KEEPER_SUSPENDED   ? "suspended"
                  : WIFSIGNALED(wait_status) ? "killed"
                                             : "failed");
}

static void start(struct stage *stage, const struct keeper_work *work) {
    struct error err;

    assert_int_equal(keeper_start(work, &stage->keeper, &err), 0);
}

static void finish(struct stage *stage) {
    int status;

    assert_int_equal(waitpid(stage->keeper, &status, 0), stage->keeper);
}

/* ---- orders ---- */

static const char *order_waiting(void) {
    sigset_t waiting;

    sigpending(&waiting);
    return sigismember(&waiting, KEEPER_KILL)   ? "kill"
           : sigismember(&waiting, KEEPER_STOP) ? "stop"
                                                : "none";
}

static void await(const char *order) {
    const struct timespec pause = { .tv_nsec = 1000000 };

    for (int ms = 0; ms < WAIT_MS && strcmp(order_waiting(), order) != 0; ms++)
        nanosleep(&pause, NULL);
}

/* Takes no order, but tells the one that waits, and dies: the first of a stop, those that follow of
 * a kill. */
static int die_of_orders(void *context, pid_t keeper) {
    const struct stage *stage = context;

    (void)keeper;
    tell(stage, "up");
    await(stage->n_revivals < 2 ? "stop" : "kill");
    tell(stage, order_waiting());
    await(stage->n_revivals < 1 ? "stop" : "kill");
    return raise(SIGKILL);
}

static void an_order_that_died_with_a_supervisor_is_handed_to_the_next(void **state) {
    struct stage *stage = *state;

    start(stage, &(struct keeper_work){ .supervise = die_of_orders,
                                        .orphaned = tell_orphaned,
                                        .revives = revives_twice,
                                        .context = stage });
    assert_string_equal(heard(stage), "up");
    kill(stage->keeper, KEEPER_STOP);
    assert_string_equal(heard(stage), "stop");
    assert_string_equal(heard(stage), "up");
    assert_string_equal(heard(stage), "stop");
    kill(stage->keeper, KEEPER_KILL);
    assert_string_equal(heard(stage), "up");
    assert_string_equal(heard(stage), "kill");
    assert_string_equal(heard(stage), "killed");
    finish(stage);
}

/* ---- what a supervisor leaves ---- */

static int give_up_once(void *context, pid_t keeper) {
    const struct stage *stage = context;

    (void)keeper;
    tell(stage, "up");
    return stage->n_revivals == 0 ? -1 : 0;
}

static void a_supervisor_that_cannot_go_on_is_followed_and_one_that_is_done_is_not(void **state) {
    struct stage *stage = *state;

    start(stage, &(struct keeper_work){ .supervise = give_up_once,
                                        .orphaned = tell_orphaned,
                                        .revives = revives_twice,
                                        .context = stage });
    finish(stage);
    tell(stage, "over");
    assert_string_equal(heard(stage), "up");
    assert_string_equal(heard(stage), "up");
    assert_string_equal(heard(stage), "over");
}

static int give_up(void *context, pid_t keeper) {
    (void)context, (void)keeper;
    return -1;
}

static void without_another_supervisor_the_run_is_an_orphan(void **state) {
    struct stage *stage = *state;

    start(stage, &(struct keeper_work){
                     .supervise = give_up, .orphaned = tell_orphaned, .context = stage });
    assert_string_equal(heard(stage), "failed");
    finish(stage);
}

/* ---- suspensions ---- */

static void sleep_ms(long ms) {
    const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    nanosleep(&pause, NULL);
}

/* Suspends itself, and tells when it was continued. */
static int suspend_once(void *context, pid_t keeper) {
    (void)keeper;
    raise(SIGSTOP);
    tell(context, "continued");
    return 0;
}

static void a_supervisor_that_is_suspended_is_continued_at_once(void **state) {
    struct stage *stage = *state;

    start(stage, &(struct keeper_work){
                     .supervise = suspend_once, .orphaned = tell_orphaned, .context = stage });
    assert_string_equal(heard(stage), "continued");
    finish(stage);
}

/* A child that suspends the supervisor, and the keeper where it is told to, again and again. */
static void suspend_for_ever(const struct stage *stage, pid_t keeper, bool also_keeper) {
    const pid_t supervisor = getpid();

    if (fork() > 0)
        return;
    tell(stage, "up");
    for (;;) {
        kill(supervisor, SIGSTOP);
        if (also_keeper)
            kill(keeper, SIGSTOP);
        sleep_ms(1);
    }
}

static int be_suspended(void *context, pid_t keeper) {
    suspend_for_ever(context, keeper, false);
    for (int i = 0; i < WAIT_MS; i++)
        sleep_ms(1); /* orders stay blocked: it never acts on one */
    return -1;
}

static void one_that_has_an_order_and_is_suspended_for_ever_is_killed(void **state) {
    struct stage *stage = *state;

    start(stage, &(struct keeper_work){
                     .supervise = be_suspended, .orphaned = tell_orphaned, .context = stage });
    assert_string_equal(heard(stage), "up");
    kill(stage->keeper, KEEPER_STOP);
    assert_string_equal(heard(stage), "suspended");
    finish(stage);
}

static int be_suspended_with_the_keeper(void *context, pid_t keeper) {
    suspend_for_ever(context, keeper, true);
    for (int i = 0; i < WAIT_MS; i++)
        sleep_ms(1);
    return -1;
}

/* What a command does that waits for the end. */
static void a_keeper_that_is_suspended_for_ever_still_writes_the_end(void **state) {
    struct stage *stage = *state;
    struct suspension suspension = { 0 };
    int status;

    start(stage, &(struct keeper_work){ .supervise = be_suspended_with_the_keeper,
                                        .orphaned = tell_orphaned,
                                        .context = stage });
    assert_string_equal(heard(stage), "up");
    kill(stage->keeper, KEEPER_STOP);
    while (waitpid(stage->keeper, &status, WNOHANG) == 0) {
        keeper_continue(stage->keeper, &suspension);
        sleep_ms(5);
    }
    assert_true(strstr("killed suspended", heard(stage)));
}

static void who_is_no_keeper_is_not_continued(void **state) {
    struct suspension suspension = { .since_us = 1, .seen_us = INT64_MAX };
    siginfo_t info = { 0 };
    const pid_t child = fork();

    (void)state;
    if (child == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WSTOPPED), 0);
    keeper_continue(child, &suspension);
    keeper_continue(0, &suspension);
    keeper_continue(-1, &suspension);
    info = (siginfo_t){ 0 };
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WCONTINUED | WEXITED | WNOHANG), 0);
    assert_int_equal(info.si_pid, 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(an_order_that_died_with_a_supervisor_is_handed_to_the_next),
        CASE(a_supervisor_that_cannot_go_on_is_followed_and_one_that_is_done_is_not),
        CASE(without_another_supervisor_the_run_is_an_orphan),
        CASE(a_supervisor_that_is_suspended_is_continued_at_once),
        CASE(one_that_has_an_order_and_is_suspended_for_ever_is_killed),
        CASE(a_keeper_that_is_suspended_for_ever_still_writes_the_end),
        CASE(who_is_no_keeper_is_not_continued),
    };

    return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
