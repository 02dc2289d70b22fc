/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turn of a gang whose pods wait at our gate: only one gang of a namespace at a time is put
 * before the scheduler, so that two never hold half of their room each.
 *
 *                ┌── lost the Lease: cut off for too long ──┐
 *                ▼                                          │
 *   begin ─► WAITING ── has the Lease (lease.h) ─► PLACING ─┴─ all have a place ─► OVER
 *                ▲      after its back-off            │ ▲          gives it back
 *                │           no room for the patience │ │ a node was found after all
 *                │                                    ▼ │
 *             MAKING ◄── all are gone ── RELEASING ◄─ ASKING
 *
 * PLACING opens the gates and waits until each pod has a node; what comes after, such as a slow
 * pull of an image, is no concern of it. ASKING takes away the first pod that has no room, provided
 * that it is as it was seen: who was asleep or cut off knows of old what has been mended since, and
 * would end a gang that runs. RELEASING takes the rest away, as no gate can be closed again:
 * nothing that they did counts, for nothing was told of them. Then they are made again by the same
 * names, and wait.
 *
 * A gang that was opened and then lost its Lease may find its place without it.
 *
 * It has no truth of its own. Who has the turn is in the Lease, which gates are open in the pods;
 * a process that takes over makes what is missing, and waits for the turn, which is at once its
 * own where the one before had it.
 *
 * All take NULL: a gang that needs no turn.
 */
#ifndef BACKEND_KUBERNETES_TURN_H
#define BACKEND_KUBERNETES_TURN_H

#include <stdbool.h>

struct pod_gang;
struct turn;

/* All pods are made: waits for the turn, the first time or again. */
void turn_begin(struct pod_gang *g);

/* Looks at the pods, and goes on: once a second, and when one of them has changed. */
void turn_look(struct turn *turn);

/* The gang is to end: gives the Lease back. */
void turn_stop(struct turn *turn);
/* The same without telling the cluster, which then waits for the Lease to expire. */
void turn_abandon(struct turn *turn);
bool turn_is_over(const struct turn *turn);

void turn_free(struct turn *turn);

#endif
