/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/lease.h"
#include "base/attr.h"

enum { S = 1000000, PLAYERS = 4 };

static const struct lease_writer ada = {
    .identity = "a-0", .run = "7", .who = "ada", .namespace = "n", .wall_us = 1000ll * S
};
static const struct lease_writer bob = {
    .identity = "b-0", .run = "9", .who = "bob", .namespace = "n", .wall_us = 5ll * S
};

/* What the server makes of an object that it takes. */
static struct node stored(struct node object, const char *version) {
    struct member *metadata = NULL, *held = NULL;

    for (uint32_t i = 0; i < object.count; i++)
        if (strcmp(object.members[i].key, "metadata") == 0)
            metadata = &object.members[i];
    assert_non_null(metadata);
    for (uint32_t i = 0; i < metadata->value.count; i++)
        if (strcmp(metadata->value.members[i].key, "resourceVersion") == 0)
            held = &metadata->value.members[i];
    if (held)
        held->value.text = version;
    return object;
}

static struct lease seen(const struct node *object, const char *version, int64_t now_us) {
    struct lease lease = { 0 };

    lease_see(&lease, object, now_us);
    snprintf(lease.version, sizeof lease.version, "%s", version);
    return lease;
}

static enum lease_move decide(const struct lease *lease, const char *identity, int64_t now_us) {
    int64_t until_us;

    return lease_decide(lease, identity, now_us, &until_us);
}

static void what_nobody_has_looked_at_is_not_taken(void **state) {
    const struct lease lease = { 0 };

    (void)state;
    assert_int_equal(decide(&lease, "a-0", 100 * S), LEASE_WAIT);
}

static void one_that_is_missing_or_free_is_taken(void **state) {
    AUTO(arena) arena = ARENA_INIT;
    struct lease lease = { 0 };
    struct node object;

    (void)state;
    lease_see(&lease, NULL, 0);
    assert_int_equal(decide(&lease, "a-0", 0), LEASE_TAKE);
    object = lease_taken(&lease, &ada, &arena);
    lease = seen(&object, "1", 0);
    object = lease_given_back(&lease, &ada, &arena);
    lease = seen(&object, "2", 0);
    assert_string_equal(lease.holder, "");
    assert_int_equal(decide(&lease, "b-0", 0), LEASE_TAKE);
}

static void one_that_is_held_is_left_alone_until_it_expired(void **state) {
    AUTO(arena) arena = ARENA_INIT;
    struct lease lease = { 0 };
    struct node object;
    int64_t until_us;

    (void)state;
    object = lease_taken(&lease, &ada, &arena);
    lease = seen(&object, "1", 100 * S);
    assert_string_equal(lease.holder, "a-0");
    assert_string_equal(lease.run, "7");
    assert_string_equal(lease.who, "ada");
    assert_int_equal(lease.taken_us, ada.wall_us);
    assert_int_equal(lease_decide(&lease, "b-0", 100 * S, &until_us), LEASE_WAIT);
    assert_int_equal(until_us, (100 + LEASE_DURATION_S) * (int64_t)S);
    assert_int_equal(decide(&lease, "b-0", until_us - 1), LEASE_WAIT);
    assert_int_equal(decide(&lease, "b-0", until_us), LEASE_TAKE);
}

static void ones_own_is_taken_at_once_by_whichever_process(void **state) {
    AUTO(arena) arena = ARENA_INIT;
    struct lease lease = { 0 };
    struct node object = lease_taken(&lease, &ada, &arena);

    (void)state;
    lease = seen(&object, "1", 100 * S);
    assert_int_equal(decide(&lease, "a-0", 100 * S), LEASE_TAKE);
    object = lease_taken(&lease, &ada, &arena);
    lease_see(&lease, &object, 0);
    assert_int_equal(lease.transitions, 1); /* it did not change hands */
}

/* Whatever the holder's clock says: years ago, or years ahead. */
static void what_a_holder_writes_about_time_decides_nothing(void **state) {
    static const int64_t clocks[] = { 0, 5ll * S, 1ll << 50 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
        AUTO(arena) arena = ARENA_INIT;
        struct lease_writer writer = ada;
        struct lease lease = { 0 };
        struct node object;

        writer.wall_us = clocks[i];
        object = lease_taken(&lease, &writer, &arena);
        lease = seen(&object, "1", 100 * S);
        assert_int_equal(decide(&lease, "b-0", 110 * S), LEASE_WAIT);
        assert_int_equal(decide(&lease, "b-0", 116 * S), LEASE_TAKE);
    }
}

/* A list that is read again shows the same version: it must not keep a dead holder alive. */
static void only_a_change_makes_it_last_longer(void **state) {
    AUTO(arena) arena = ARENA_INIT;
    struct lease lease = { 0 };
    struct node object = lease_taken(&lease, &ada, &arena);

    (void)state;
    lease.exists = true;
    snprintf(lease.version, sizeof lease.version, "1");
    object = lease_taken(&lease, &ada, &arena);
    lease = (struct lease){ 0 };
    lease_see(&lease, &object, 100 * S);
    lease_see(&lease, &object, 114 * S);
    assert_int_equal(decide(&lease, "b-0", 115 * S), LEASE_TAKE);
    stored(object, "2");
    lease_see(&lease, &object, 114 * S);
    assert_int_equal(decide(&lease, "b-0", 115 * S), LEASE_WAIT);
}

static void a_holder_counts_itself_out_before_anybody_else_counts_it_in(void **state) {
    (void)state;
    assert_false(lease_is_held(0, 0));
    assert_true(lease_is_held(100 * S, 100 * S));
    assert_true(lease_is_held(100 * S, (100 + LEASE_RENEW_MS / 1000) * (int64_t)S));
    assert_false(lease_is_held(100 * S, 100 * S + LEASE_HELD_MS * 1000ll));
    assert_true(LEASE_HELD_MS < LEASE_DURATION_S * 1000);
}

static void who_waited_twice_as_long_tries_first(void **state) {
    (void)state;
    for (int64_t s = 1; s < 64; s *= 2)
        for (uint32_t chance = 0; chance < 3 * LEASE_STEP_MS; chance += 7)
            assert_true(lease_delay_ms(2 * s * S, chance) < lease_delay_ms(s * S, 0));
    assert_true(lease_delay_ms(INT64_MAX, UINT32_MAX) < LEASE_STEP_MS);
    assert_true(lease_delay_ms(0, UINT32_MAX) < (LEASE_STEPS + 1) * LEASE_STEP_MS);
    assert_true(lease_delay_ms(-5 * S, 0) >= LEASE_STEPS * LEASE_STEP_MS);
}

static void the_back_off_doubles_and_is_bounded(void **state) {
    (void)state;
    for (uint32_t n = 1; n < 100; n++)
        for (uint32_t chance = 0; chance < 1000000; chance += 99991) {
            const uint32_t wait = lease_backoff_ms(n, chance);

            assert_true(wait >= LEASE_BACKOFF_FIRST_MS / 2 && wait <= LEASE_BACKOFF_MOST_MS);
            if (n < 6)
                assert_true(wait <= lease_backoff_ms(n + 1, 0));
        }
    assert_int_equal(lease_backoff_ms(UINT32_MAX, 0), LEASE_BACKOFF_MOST_MS / 2);
}

/* ---- never two holders ---- */

struct player {
    struct lease_writer writer;
    char name[24];
    struct lease lease;
    int64_t skew_us;    /* of its monotonic clock, which is nobody else's */
    int64_t renewed_us; /* by its clock; 0: it does not hold it */
    int64_t asleep_until_us;
};

struct server {
    struct arena arena;
    struct node object;
    bool exists;
    uint64_t version;
    char version_text[24];
};

/* Takes a write of the version that is there, and no other. */
static bool server_takes(struct server *server, const struct lease *from,
                         const struct node *object) {
    if (server->exists != from->exists ||
        (server->exists && strcmp(from->version, server->version_text) != 0))
        return false;
    snprintf(server->version_text, sizeof server->version_text, "%llu",
             (unsigned long long)++server->version);
    server->object = *object;
    server->exists = true;
    return true;
}

static void player_looks(struct player *player, const struct server *server, int64_t now_us) {
    struct lease fresh = { 0 };

    /* As lease_see does for an object that has the server's version. */
    if (player->lease.is_known && strcmp(player->lease.version, server->version_text) == 0)
        return;
    lease_see(&fresh, server->exists ? &server->object : NULL, now_us);
    player->lease = fresh;
    snprintf(player->lease.version, sizeof player->lease.version, "%s", server->version_text);
}

/* One step of one player: it looks (or has looked a while ago), and does what the rules say. */
static void player_acts(struct player *player, struct server *server, int64_t true_us) {
    const int64_t now_us = true_us + player->skew_us;
    const bool holds = lease_is_held(player->renewed_us, now_us);
    struct node object;
    int64_t until_us;

    if (rand() % 3 > 0)
        player_looks(player, server, now_us);
    if (!holds)
        player->renewed_us = 0;
    if (holds && rand() % 4 == 0) {
        object = lease_given_back(&player->lease, &player->writer, &server->arena);
        server_takes(server, &player->lease, &object);
        player->renewed_us = 0;
    } else if (holds || lease_decide(&player->lease, player->writer.identity, now_us, &until_us) ==
                            LEASE_TAKE) {
        object = lease_taken(&player->lease, &player->writer, &server->arena);
        if (server_takes(server, &player->lease, &object)) {
            player->renewed_us = now_us;
            player_looks(player, server, now_us);
        } else {
            player->lease.is_known = false;
        }
    }
    if (rand() % 10 == 0)
        player->asleep_until_us = true_us + rand() % 60 * (int64_t)S;
}

/* Players with clocks of their own look late, sleep for as long as they like, and lose their
 * answers: at no moment do two of them count on the Lease, and it is never stuck. */
static void there_are_never_two_holders_and_the_lease_never_sticks(void **state) {
    struct player players[PLAYERS] = { 0 };
    struct server server = { .version_text = "" };
    uint32_t n_taken = 0;

    (void)state;
    srand(7);
    for (int i = 0; i < PLAYERS; i++) {
        struct player *player = &players[i];

        snprintf(player->name, sizeof player->name, "p%d-0", i);
        player->writer = bob;
        player->writer.identity = player->name;
        player->skew_us = rand() % 1000000 * (int64_t)S + S;
    }
    for (int64_t step = 0; step < 40000; step++) {
        const int64_t true_us = step * (S / 4);
        struct player *player = &players[rand() % PLAYERS];
        int n_holders = 0;

        if (player->asleep_until_us <= true_us) {
            const bool held = lease_is_held(player->renewed_us, true_us + player->skew_us);

            player_acts(player, &server, true_us);
            n_taken += !held && player->renewed_us > 0;
        }
        for (int i = 0; i < PLAYERS; i++)
            n_holders += lease_is_held(players[i].renewed_us, true_us + players[i].skew_us);
        assert_true(n_holders <= 1);
    }
    assert_true(n_taken > 100);
    arena_release(&server.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_has_looked_at_is_not_taken),
        cmocka_unit_test(one_that_is_missing_or_free_is_taken),
        cmocka_unit_test(one_that_is_held_is_left_alone_until_it_expired),
        cmocka_unit_test(ones_own_is_taken_at_once_by_whichever_process),
        cmocka_unit_test(what_a_holder_writes_about_time_decides_nothing),
        cmocka_unit_test(only_a_change_makes_it_last_longer),
        cmocka_unit_test(a_holder_counts_itself_out_before_anybody_else_counts_it_in),
        cmocka_unit_test(who_waited_twice_as_long_tries_first),
        cmocka_unit_test(the_back_off_doubles_and_is_bounded),
        cmocka_unit_test(there_are_never_two_holders_and_the_lease_never_sticks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
