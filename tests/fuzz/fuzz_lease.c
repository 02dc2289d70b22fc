/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any JSON as the Lease by which gangs take turns. Beyond "no crash": what is held is left
 * alone until it expired and is taken then, whatever the object says of time; the holder itself may
 * take it at once; and what is written over it is read back as ours, and then as free.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/lease.h"
#include "codec/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool law) {
    if (!law)
        abort();
}

static enum lease_move decide(const struct lease *lease, const char *identity, int64_t now_us) {
    int64_t until_us;

    return lease_decide(lease, identity, now_us, &until_us);
}

static void look_at(const struct lease *lease) {
    const int64_t seen_us = lease->changed_us;

    require(lease->is_known && lease->transitions >= 0);
    require(memchr(lease->holder, '\0', sizeof lease->holder) != NULL);
    if (!lease->exists || !lease->holder[0]) {
        require(decide(lease, "us", seen_us) == LEASE_TAKE);
        return;
    }
    require(lease->duration_us > 0 && lease->duration_us <= LEASE_DURATION_MOST * 1000000ll);
    require(decide(lease, lease->holder, seen_us) == LEASE_TAKE);
    require(strcmp(lease->holder, "us") == 0 || decide(lease, "us", seen_us) == LEASE_WAIT);
    require(decide(lease, "us", seen_us + lease->duration_us) == LEASE_TAKE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct lease_writer writer = {
        .identity = "us", .run = "1", .who = "ada", .namespace = "n", .wall_us = 5
    };
    struct arena arena = ARENA_INIT;
    struct lease lease = { 0 }, ours = { 0 }, given = { 0 };
    struct error err;
    struct node root, object;

    if (size <= 1 << 16 && json_read((const char *)data, size, &arena, &root, &err) == 0) {
        lease_see(&lease, &root, 1000000);
        look_at(&lease);
        object = lease_taken(&lease, &writer, &arena);
        lease_see(&ours, &object, 1000000);
        require(strcmp(ours.holder, "us") == 0);
        object = lease_given_back(&ours, &writer, &arena);
        lease_see(&given, &object, 1000000);
        require(decide(&given, "them", 1000000) == LEASE_TAKE);
    }
    arena_release(&arena);
    return 0;
}
