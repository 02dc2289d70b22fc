/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the log of one container to its end, over as many connections as that takes. Every byte
 * is told once (logstream.h), and `done` comes once, after the last of them.
 */
#ifndef BACKEND_KUBERNETES_FOLLOWER_H
#define BACKEND_KUBERNETES_FOLLOWER_H

#include "backend/kubernetes/api.h"
#include "backend/kubernetes/logstream.h"

struct follower_place {
    const char *namespace, *pod, *container;
};

struct follower_observer {
    void (*output)(void *context, const char *bytes, size_t n);
    /* Nothing follows. `trouble` says why the end of the log may be missing; NULL: it is whole. */
    void (*done)(void *context, const char *trouble);
    void *context;
};

struct follower;

/* Goes on at the cursor; `delivered` bytes were told before in all. Copies what it is given. */
struct follower *follower_new(struct api *api, const struct follower_place *place,
                              const struct logstream_cursor *from, uint64_t delivered,
                              const struct follower_observer *observer);

/* The container has ended: what the log has now is all. */
void follower_ended(struct follower *follower);

const struct logstream_cursor *follower_cursor(const struct follower *follower);

/* Takes NULL; may be called from the observer. */
void follower_free(struct follower *follower);

#endif
