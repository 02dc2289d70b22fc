/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Horovod's meeting place: a small HTTP store of keys on 127.0.0.1 where the ranks leave
 * their addresses for each other. Horovod's own launcher serves the same.
 *
 *   PUT    /<scope>/<key>   keeps the body                       200
 *   GET    /<scope>/<key>   the body, or 404 (the ranks poll)    200
 *   DELETE /<scope>/<key>   the rank is done with the scope      200
 *
 * Anything else is 400 or 405. Tasks are not trusted with this process's memory: key
 * names, bodies and their number are bounded, and what is over is refused (413, 414, 507).
 */
#ifndef SUPERVISE_RENDEZVOUS_H
#define SUPERVISE_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct event_base;
struct rendezvous;

struct rendezvous_limits {
    size_t keys;       /* distinct names, also of values that were deleted */
    size_t key_bytes;  /* of "/scope/key" */
    size_t body_bytes; /* of one value */
    size_t all_bytes;  /* of all values together */
};

/* Room for a gang of n tasks: each rank leaves 136 bytes for every other, in six scopes. */
struct rendezvous_limits rendezvous_limits_for(uint32_t n_tasks);

MUST_CHECK int rendezvous_new(struct event_base *base, uint16_t port,
                              const struct rendezvous_limits *limits, struct rendezvous **out,
                              struct error *err);
void rendezvous_free(struct rendezvous *rendezvous);

#endif
