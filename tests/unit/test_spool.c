/* SPDX-License-Identifier: Apache-2.0 */
/* What libmyelin writes is what track/spool.h reads, whatever happens to the process or the file.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "spooling.h"

static uint64_t random_state;

static uint64_t random_below(uint64_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % n;
}

static int set_up(void **state) {
    const char *seed = getenv("MYELIN_SEED");

    (void)state;
    random_state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + 1;
    print_message("# MYELIN_SEED=%llu\n", (unsigned long long)random_state);
    return 0;
}

static void assert_point(const struct seen_point *point, const char *name, int64_t step,
                         double value) {
    double seen;

    memcpy(&seen, &point->bits, sizeof seen);
    assert_string_equal(point->name, name);
    assert_int_equal(point->step, step);
    assert_true(seen == value || (isnan(seen) && isnan(value)));
}

/* Random calls; what they mean is kept beside. */
static void log_at_random(struct myelin *m, size_t calls, struct seen *truth) {
    static const char *const names[] = { "loss",        "accuracy",      "a",
                                         "lr/schedule", "gradient norm", "Übung" };
    enum { NAMES = 6 };
    uint32_t numbers[NAMES];
    int64_t steps[NAMES] = { 0 };

    for (size_t i = 0; i < NAMES; i++)
        numbers[i] = myelin_name(m, names[i]);
    for (size_t call = 0; call < calls; call++) {
        const size_t first = random_below(NAMES), n = 1 + random_below(NAMES - first);
        const uint64_t manner = random_below(4);
        int64_t step = manner == 0 ? (int64_t)random_below(UINT64_MAX) : MYELIN_AUTO,
                expected = step;
        const int64_t time_us =
            (int64_t)(random_below(2) ? 1600000000000000 + call : random_below(UINT64_MAX));
        double values[NAMES];

        for (size_t i = 0; i < n; i++) {
            const uint64_t bits = random_below(UINT64_MAX);

            memcpy(&values[i], &bits, sizeof bits);
            if (step == MYELIN_AUTO && (i == 0 || steps[first + i] > expected))
                expected = steps[first + i];
        }
        assert_int_equal(myelin_log(m, numbers + first, values, n, step, time_us), 0);
        for (size_t i = 0; i < n; i++) {
            struct seen_point *point = VEC_PUSH(&truth->points);

            steps[first + i] = expected == INT64_MAX ? expected : expected + 1;
            point->step = expected;
            point->time_us = time_us;
            memcpy(&point->bits, &values[i], sizeof point->bits);
            snprintf(point->name, sizeof point->name, "%s", names[first + i]);
        }
    }
}

static bool is_prefix(const struct seen *seen, const struct seen *truth) {
    if (seen->points.len > truth->points.len)
        return false;
    for (size_t i = 0; i < seen->points.len; i++) {
        const struct seen_point *a = &seen->points.items[i], *b = &truth->points.items[i];

        if (a->step != b->step || a->time_us != b->time_us || a->bits != b->bits ||
            strcmp(a->name, b->name) != 0)
            return false;
    }
    return true;
}

static void what_is_logged_is_read(void **state) {
    struct seen truth = { 0 }, seen;
    struct spooled spool;
    struct myelin *m;

    (void)state;
    spooled_make(&spool);
    m = myelin_open_at(spool.path, 3);
    log_at_random(m, 30000, &truth);
    assert_int_equal(myelin_dropped(m), 0);
    assert_null(myelin_reason(m));
    see_spool(&seen, spool.path);
    assert_int_equal(seen.points.len, truth.points.len);
    assert_true(is_prefix(&seen, &truth));
    assert_int_equal(seen.attempt, 3);
    assert_int_equal(seen.bad + seen.invalid, 0);
    assert_true(seen.files > 3); /* segments follow each other */
    seen_release(&seen);
    myelin_close(m);
    see_spool(&seen, spool.path);
    assert_int_equal(seen.points.len, truth.points.len);
    assert_int_equal(seen.last_state, MYELIN_SPOOL_CLOSED);
    seen_release(&seen);
    seen_release(&truth);
    spooled_release(&spool);
}

static void a_step_follows_the_last_one_of_its_name(void **state) {
    const int64_t given[] = { MYELIN_AUTO, MYELIN_AUTO, 10,        MYELIN_AUTO, 10,
                              -5,          MYELIN_AUTO, INT64_MAX, MYELIN_AUTO };
    const int64_t expected[] = { 0, 1, 10, 11, 10, -5, -4, INT64_MAX, INT64_MAX };
    struct spooled spool;
    struct seen seen;
    struct myelin *m;
    uint32_t names[2];
    const double values[2] = { 1, 2 };

    (void)state;
    spooled_make(&spool);
    m = myelin_open_at(spool.path, 0);
    names[0] = myelin_name(m, "a");
    names[1] = myelin_name(m, "b");
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(myelin_log(m, names, values, 1, given[i], MYELIN_NOW), 0);
    assert_int_equal(myelin_log(m, names + 1, values, 1, 41, MYELIN_NOW), 0);
    assert_int_equal(myelin_log(m, names, values, 1, 7, MYELIN_NOW), 0);
    assert_int_equal(myelin_log(m, names, values, 2, MYELIN_AUTO, MYELIN_NOW), 0);
    see_spool(&seen, spool.path);
    for (size_t i = 0; i < 9; i++)
        assert_point(&seen.points.items[i], "a", expected[i], 1);
    assert_point(&seen.points.items[11], "a", 42, 1); /* the largest of both */
    assert_point(&seen.points.items[12], "b", 42, 2);
    myelin_close(m);
    seen_release(&seen);
    spooled_release(&spool);
}

/* The first segment of random calls, as it is on the disk. */
static void first_segment(struct buf *bytes, struct seen *truth, size_t calls) {
    struct spooled spool;
    struct myelin *m;
    struct error err;
    char command[160], path[128];

    spooled_make(&spool);
    m = myelin_open_at(spool.path, 0);
    log_at_random(m, calls, truth);
    snprintf(command, sizeof command, "mv %s/*-000000.spool %s/first", spool.path, spool.path);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/first", spool.path);
    if (file_read(path, bytes, &err))
        fail_msg("%s", err.message);
    myelin_close(m);
    spooled_release(&spool);
}

static void a_segment_that_is_cut_anywhere_gives_a_prefix(void **state) {
    AUTO(buf) bytes = BUF_INIT(1 << 20);
    struct seen truth = { 0 }, seen;
    size_t before = 0;

    (void)state;
    first_segment(&bytes, &truth, 60);
    for (size_t cut = 0; cut <= bytes.len; cut += cut < 8192 ? 1 : 509) {
        char *some = malloc(cut + 1); /* exactly as large: a sanitizer sees a read beyond it */

        memcpy(some, bytes.data, cut);
        seen = (struct seen){ 0 };
        see_segment(&seen, "", some, cut);
        free(some);
        assert_true(is_prefix(&seen, &truth));
        assert_int_equal(seen.bad, 0);
        assert_true(seen.points.len >= before);
        before = seen.points.len;
        seen_release(&seen);
    }
    assert_int_equal(before, truth.points.len);
    seen_release(&truth);
}

static void damage_never_gives_a_wrong_value(void **state) {
    AUTO(buf) bytes = BUF_INIT(1 << 20);
    struct seen truth = { 0 }, seen;
    size_t noticed = 0;

    (void)state;
    first_segment(&bytes, &truth, 60);
    for (size_t round = 0; round < 30000; round++) {
        char kept[64], mask = 0;
        const size_t n = 1 + random_below(8), at = random_below(4096);

        memcpy(kept, bytes.data + at, sizeof kept);
        /* Often the same change in several places: what a weak checksum does not see. */
        if (round % 2)
            mask = (char)(1 + random_below(255));
        for (size_t i = 0; i < n; i++)
            bytes.data[at + random_below(sizeof kept)] ^=
                round % 2 ? mask : (char)(1 + random_below(255));
        seen = (struct seen){ 0 };
        see_segment(&seen, "", bytes.data, bytes.len);
        assert_true(is_prefix(&seen, &truth));
        noticed += seen.points.len < truth.points.len;
        seen_release(&seen);
        memcpy(bytes.data + at, kept, sizeof kept);
    }
    assert_true(noticed > 10000); /* else nothing was hit */
    seen_release(&truth);
}

static void a_record_is_valid_only_in_its_place(void **state) {
    AUTO(buf) bytes = BUF_INIT(1 << 20);
    struct seen truth = { 0 }, seen = { 0 };
    const size_t header = MYELIN_SPOOL_HEADER;

    (void)state;
    first_segment(&bytes, &truth, 1);
    memmove(bytes.data + header + 8, bytes.data + header, 4096);
    memcpy(bytes.data + header, bytes.data + header + 8, 8);
    see_segment(&seen, "", bytes.data, bytes.len);
    assert_int_equal(seen.points.len, 0);
    assert_int_equal(seen.bad, 1);
    seen_release(&seen);
    seen_release(&truth);
}

/* What docs/spool.md gives as its example. */
static void the_checksum_is_the_documented_one(void **state) {
    static const char payload[8] = { 0, 0, 0, 0, 'l', 'o', 's', 's' };

    (void)state;
    assert_int_equal(myelin_spool_word(0x1234567890abcdef, 128, myelin_spool_head(1, 8), payload),
                     0x01000008edef7347);
}

/* The same bits of words that follow each other, as of a line of a bus that is stuck: where a mix
 * moves high bits only a little, one such change takes back what another did. */
static void changes_do_not_hide_each_other(void **state) {
    static const unsigned bits[] = { 63, 62, 61, 32, 31, 30, 0 };
    const uint32_t head = myelin_spool_head(2, 32);
    uint64_t n_missed = 0;

    (void)state;
    for (size_t round = 0; round < 400; round++) {
        uint64_t payload[4];
        const uint64_t nonce = random_below(UINT64_MAX);
        uint64_t word;

        for (size_t i = 0; i < ARRAY_LEN(payload); i++)
            payload[i] = random_below(UINT64_MAX);
        word = myelin_spool_word(nonce, 128, head, payload);
        for (size_t subset = 1; subset < 1u << (2 * ARRAY_LEN(bits)); subset += 1 + round % 61) {
            uint64_t changed[4];

            memcpy(changed, payload, sizeof changed);
            for (unsigned i = 0; i < 2 * ARRAY_LEN(bits); i++)
                changed[1 + i / ARRAY_LEN(bits)] ^= (uint64_t)(subset >> i & 1)
                                                    << bits[i % ARRAY_LEN(bits)];
            n_missed += word == myelin_spool_word(nonce, 128, head, changed);
        }
    }
    assert_int_equal(n_missed, 0);
}

/* ---- forks, threads, signals */

enum { CHILDREN = 6, EACH = 5000 };

struct sharing {
    struct myelin *m;
    uint32_t name;
    size_t n;
};

static int log_each(void *context) {
    const struct sharing *sharing = context;

    for (size_t i = 0; i < sharing->n; i++) {
        const double value = (double)i;

        REQUIRE(!myelin_log(sharing->m, &sharing->name, &value, 1, (int64_t)i, MYELIN_NOW));
    }
    return 0;
}

static int log_and_close(void *context) {
    const struct sharing *sharing = context;

    REQUIRE(log_each(context) == 0);
    REQUIRE(myelin_dropped(sharing->m) == 0);
    myelin_close(sharing->m);
    return 0;
}

static int close_only(void *context) {
    myelin_close(((const struct sharing *)context)->m);
    return 0;
}

static void a_forked_child_writes_a_chain_of_its_own(void **state) {
    struct spooled spool;
    struct sharing sharing;
    struct seen seen;
    pid_t children[CHILDREN];
    size_t next = 0, chains = 0;

    (void)state;
    spooled_make(&spool);
    sharing = (struct sharing){ .m = myelin_open_at(spool.path, 0), .n = EACH };
    sharing.name = myelin_name(sharing.m, "x");
    assert_int_equal(log_each(&sharing), 0);
    for (size_t i = 0; i < CHILDREN; i++)
        children[i] = apart(i % 2 ? log_each : log_and_close, &sharing);
    assert_ended_well(apart(close_only, &sharing)); /* which must not end its parent's */
    sharing.n = 100;
    assert_int_equal(log_each(&sharing), 0);
    for (size_t i = 0; i < CHILDREN; i++)
        assert_ended_well(children[i]);
    see_spool(&seen, spool.path);
    assert_int_equal(seen.points.len, (CHILDREN + 1) * EACH + 100);
    assert_int_equal(seen.bad + seen.invalid, 0);
    for (size_t i = 0; i < seen.points.len; i++) {
        if (i == 0 || strcmp(seen.points.items[i].chain, seen.points.items[i - 1].chain) != 0) {
            next = 0;
            chains++;
        } else if (next == EACH)
            next = 0; /* the parent, once more */
        assert_point(&seen.points.items[i], "x", (int64_t)next, (double)next);
        next++;
    }
    assert_int_equal(chains, CHILDREN + 1);
    seen_release(&seen);
    myelin_close(sharing.m);
    spooled_release(&spool);
}

static void *log_in_thread(void *context) {
    return log_each(context) ? context : NULL;
}

static void threads_share_a_handle_and_lose_nothing(void **state) {
    enum { THREADS = 8 };
    struct sharing sharing[THREADS];
    pthread_t threads[THREADS];
    int64_t next[THREADS] = { 0 };
    struct spooled spool;
    struct seen seen;
    struct myelin *m;

    (void)state;
    spooled_make(&spool);
    m = myelin_open_at(spool.path, 0);
    for (size_t i = 0; i < THREADS; i++) {
        char name[8];
        void *failed;

        snprintf(name, sizeof name, "t%zu", i);
        sharing[i] = (struct sharing){ .m = m, .name = myelin_name(m, name), .n = EACH };
        failed = NULL;
        assert_null(failed);
        assert_int_equal(pthread_create(&threads[i], NULL, log_in_thread, &sharing[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    see_spool(&seen, spool.path);
    assert_int_equal(seen.points.len, (size_t)THREADS * EACH);
    for (size_t i = 0; i < seen.points.len; i++) {
        const int thread = seen.points.items[i].name[1] - '0';

        assert_int_equal(seen.points.items[i].step, next[thread]++);
    }
    seen_release(&seen);
    myelin_close(m);
    spooled_release(&spool);
}

static void *fork_often(void *context) {
    for (int i = 0; i < 60; i++)
        if (waitpid(apart(log_and_close, context), &(int){ 0 }, 0) < 0)
            return context;
    return NULL;
}

static void a_fork_in_the_middle_of_another_threads_call_locks_nobody_out(void **state) {
    struct spooled spool;
    struct sharing busy, forking;
    pthread_t threads[2];
    struct seen seen;
    void *failed;

    (void)state;
    spooled_make(&spool);
    busy = (struct sharing){ .m = myelin_open_at(spool.path, 0), .n = 100000 };
    busy.name = myelin_name(busy.m, "x");
    forking = busy;
    forking.n = 50;
    assert_int_equal(pthread_create(&threads[0], NULL, log_in_thread, &busy), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, fork_often, &forking), 0);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    see_spool(&seen, spool.path);
    assert_int_equal(seen.points.len, 100000 + 60 * 50);
    assert_int_equal(seen.bad + seen.invalid + (size_t)seen.dropped, 0);
    seen_release(&seen);
    myelin_close(busy.m);
    spooled_release(&spool);
}

static struct sharing interrupting;
static _Atomic uint64_t interrupting_kept, interrupting_dropped;

static void log_in_handler(int number) {
    const double value = number;

    if (myelin_log(interrupting.m, &interrupting.name, &value, 1, MYELIN_AUTO, MYELIN_NOW))
        interrupting_dropped++;
    else
        interrupting_kept++;
}

static int log_under_signals(void *context) {
    const struct itimerspec often = { { 0, 30000 }, { 0, 30000 } };
    struct sigaction action = { .sa_handler = log_in_handler, .sa_flags = SA_RESTART };
    struct sharing sharing = *(struct sharing *)context;
    timer_t timer;

    sharing.m = myelin_open_at((const char *)sharing.m, 0);
    sharing.name = myelin_name(sharing.m, "x");
    interrupting = sharing;
    interrupting.name = myelin_name(sharing.m, "signal");
    REQUIRE(!sigaction(SIGALRM, &action, NULL));
    REQUIRE(!timer_create(CLOCK_MONOTONIC, NULL, &timer));
    REQUIRE(!timer_settime(timer, 0, &often, NULL));
    REQUIRE(!log_each(&sharing));
    timer_delete(timer);
    REQUIRE(interrupting_kept + interrupting_dropped > 0);
    REQUIRE(myelin_dropped(sharing.m) == interrupting_dropped);
    printf("# in handlers: %llu kept, %llu dropped\n", (unsigned long long)interrupting_kept,
           (unsigned long long)interrupting_dropped);
    fflush(stdout);
    myelin_close(sharing.m);
    return 0;
}

static void a_signal_handler_that_logs_neither_hangs_nor_breaks_a_record(void **state) {
    struct spooled spool;
    struct seen seen;
    size_t own = 0;

    (void)state;
    spooled_make(&spool);
    assert_ended_well(
        apart(log_under_signals, &(struct sharing){ .m = (void *)spool.path, .n = 300000 }));
    see_spool(&seen, spool.path);
    for (size_t i = 0; i < seen.points.len; i++)
        own += !strcmp(seen.points.items[i].name, "x");
    assert_int_equal(own, 300000);
    assert_true(seen.points.len > own);
    assert_int_equal(seen.bad + seen.invalid, 0);
    seen_release(&seen);
    spooled_release(&spool);
}

/* ---- kills */

struct told {
    _Atomic uint64_t returned; /* how many calls have returned */
};

struct doomed {
    const char *path;
    struct told *told;
};

static int log_until_killed(void *context) {
    const struct doomed *doomed = context;
    struct myelin *m = myelin_open_at(doomed->path, 0);
    const uint32_t names[2] = { myelin_name(m, "loss"), myelin_name(m, "accuracy") };

    for (uint64_t i = 0;; i++) {
        const double values[2] = { (double)i, -(double)i };

        REQUIRE(!myelin_log(m, names, values, 1 + i % 2, (int64_t)i, MYELIN_NOW));
        doomed->told->returned = i + 1;
    }
}

static void what_a_call_returned_from_survives_a_kill_at_any_moment(void **state) {
    const char *rounds = getenv("MYELIN_KILLS");
    const size_t kills = rounds ? strtoul(rounds, NULL, 10) : 80;
    struct told *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t all = 0;

    (void)state;
    assert_ptr_not_equal(told, MAP_FAILED);
    for (size_t kill_number = 0; kill_number < kills; kill_number++) {
        struct spooled spool;
        struct seen seen;
        uint64_t next = 0;
        pid_t pid;

        spooled_make(&spool);
        told->returned = 0;
        pid = apart(log_until_killed, &(struct doomed){ spool.path, told });
        while (told->returned == 0)
            usleep(10);
        usleep((useconds_t)random_below(random_below(8) ? 800 : 5000));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        see_spool(&seen, spool.path);
        assert_int_equal(seen.bad + seen.invalid, 0);
        for (size_t i = 0; i < seen.points.len; i++) {
            const bool is_second = !strcmp(seen.points.items[i].name, "accuracy");

            assert_point(&seen.points.items[i], is_second ? "accuracy" : "loss", (int64_t)next,
                         is_second ? -(double)next : (double)next);
            next += is_second || next % 2 == 0;
        }
        assert_true(next >= told->returned && next <= told->returned + 1);
        all += next;
        seen_release(&seen);
        spooled_release(&spool);
    }
    print_message("# %zu kills, %llu calls\n", kills, (unsigned long long)all);
    munmap(told, 4096);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_logged_is_read),
        cmocka_unit_test(a_step_follows_the_last_one_of_its_name),
        cmocka_unit_test(a_segment_that_is_cut_anywhere_gives_a_prefix),
        cmocka_unit_test(damage_never_gives_a_wrong_value),
        cmocka_unit_test(a_record_is_valid_only_in_its_place),
        cmocka_unit_test(the_checksum_is_the_documented_one),
        cmocka_unit_test(changes_do_not_hide_each_other),
        cmocka_unit_test(a_forked_child_writes_a_chain_of_its_own),
        cmocka_unit_test(threads_share_a_handle_and_lose_nothing),
        cmocka_unit_test(a_fork_in_the_middle_of_another_threads_call_locks_nobody_out),
        cmocka_unit_test(a_signal_handler_that_logs_neither_hangs_nor_breaks_a_record),
        cmocka_unit_test(what_a_call_returned_from_survives_a_kill_at_any_moment),
    };

    return cmocka_run_group_tests_name("spool", tests, set_up, NULL);
}
