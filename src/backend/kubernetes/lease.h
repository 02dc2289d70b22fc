/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Lease by which gangs take turns: one object of a namespace, coordination.k8s.io/v1, that
 * names who has the turn. Pure: nodes and moments in, decisions and objects out.
 *
 * Laws (tests/unit/test_lease.c):
 *   1. There are never two holders. Every change is an update of the version that was read, so
 *      that the server takes one of two; and a holder who could not renew counts itself out
 *      (lease_is_held) before anybody else may take the Lease.
 *   2. One that expired is taken: its holder is dead, or cut off.
 *   3. No clocks are compared. A Lease has expired when it did not change for its duration by the
 *      clock of who looks, from the moment at which that one saw it change; what its holder wrote
 *      about time is for people.
 *   4. A free Lease is for whoever is first, and who has waited at least twice as long tries
 *      before (lease_delay_ms).
 */
#ifndef BACKEND_KUBERNETES_LEASE_H
#define BACKEND_KUBERNETES_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/node.h"

#define LEASE_NAME           "myelin-gang"
#define LEASE_RUN_ANNOTATION "myelin/run-id"    /* "7": the number in the holder's home */
#define LEASE_WHO_ANNOTATION "myelin/run-owner" /* "ada" */

enum {
    LEASE_DURATION_S = 15,
    LEASE_RENEW_MS = 4000,      /* three in a row may fail */
    LEASE_HELD_MS = 12 * 1000,  /* since the last renewal was asked for: the holder counts on it */
    LEASE_DURATION_MOST = 3600, /* what others may claim */
    LEASE_IDENTITY_MAX = 64,
    LEASE_STEP_MS = 150, /* between those that waited long and those that waited half of it */
    LEASE_STEPS = 7,
    LEASE_BACKOFF_FIRST_MS = 5 * 1000,
    LEASE_BACKOFF_MOST_MS = 300 * 1000,
};

/* The Lease as it was seen last. All zero: nobody looked yet. */
struct lease {
    bool is_known; /* somebody looked */
    bool exists;
    char version[64];                /* metadata.resourceVersion */
    char holder[LEASE_IDENTITY_MAX]; /* "": it is free */
    char run[24], who[64];           /* of the holder, for people; "" where nobody says */
    int64_t duration_us;
    int64_t taken_us; /* the holder's wall clock, for people; 0: nobody says */
    int64_t transitions;
    int64_t changed_us; /* monotonic: when it was seen to change */
};

/* "0f8b3c1d2e4a4b5c8d9e0f1a2b3c4d5e-0": the run's uuid and attempt, whichever process watches it.
 */
void lease_identity(const char *uuid, uint32_t attempt, char out[static LEASE_IDENTITY_MAX]);

/* Takes in what was read; NULL: there is none. Whatever is missing or odd makes it free, or leaves
 * it to expire. */
void lease_see(struct lease *lease, const struct node *object, int64_t now_us);

enum lease_move {
    LEASE_WAIT, /* somebody has it; look again when it changes, or at *until_us */
    LEASE_TAKE, /* it is free, has expired, or is ours from before */
};
enum lease_move lease_decide(const struct lease *lease, const char *identity, int64_t now_us,
                             int64_t *until_us);

/* Whether who renewed it at that moment, successfully, may still act on it. */
bool lease_is_held(int64_t renewed_us, int64_t now_us);

/* How long to wait before a Lease that has become free is taken: less for who has waited longer.
 * `chance` is any number. */
uint32_t lease_delay_ms(int64_t waited_us, uint32_t chance);

/* How long a gang that gave its room back lets others go first: it doubles with each time, up to
 * five minutes, half of it by chance. n_times is at least 1. */
uint32_t lease_backoff_ms(uint32_t n_times, uint32_t chance);

/* Who writes it. */
struct lease_writer {
    const char *identity, *run, *who;
    const char *namespace;
    int64_t wall_us;
};
/* What is to be created, or to replace what was seen. */
struct node lease_taken(const struct lease *lease, const struct lease_writer *writer,
                        struct arena *arena);
struct node lease_given_back(const struct lease *lease, const struct lease_writer *writer,
                             struct arena *arena);

#endif
