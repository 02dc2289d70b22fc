/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the log of a container that is over, from the node: the last bytes of it, as many as
 * are missing here. What the node has rotated away is not among them.
 */
#ifndef BACKEND_KUBERNETES_LOG_REST_H
#define BACKEND_KUBERNETES_LOG_REST_H

#include "backend/kubernetes/follower.h"

struct log_rest;

struct log_rest_observer {
    /* At most once, before `done`. */
    void (*output)(void *context, const char *bytes, size_t n);
    /* How many bytes the node did not have. */
    void (*done)(void *context, uint64_t missing);
    void *context;
};

/* Copies what it is given. */
struct log_rest *log_rest_new(struct api *api, const struct follower_place *place, uint64_t wanted,
                              const struct log_rest_observer *observer);

/* Takes NULL; may be called from the observer's `done`. */
void log_rest_free(struct log_rest *rest);

#endif
