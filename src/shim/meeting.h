/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Horovod's ranks leave their addresses for each other: a bounded store of keys. Pure, and
 * without a library: supervise/rendezvous.c serves it to processes of this machine,
 * shim/rendezvous.c to pods. Horovod's own launcher serves the same.
 *
 *   PUT    /<scope>/<key>   keeps the body                       200
 *   GET    /<scope>/<key>   the body, or 404 (the ranks poll)    200
 *   DELETE /<scope>/<key>   the rank is done with the scope      200
 *
 * Anything else is 400 or 405. Tasks are not trusted with the memory of who serves them: key
 * names, bodies and their number are bounded, and what is over is refused (413, 414, 507).
 */
#ifndef SHIM_MEETING_H
#define SHIM_MEETING_H

#include <stddef.h>
#include <stdint.h>

struct meeting_limits {
    size_t keys;       /* distinct names, also of values that were deleted */
    size_t key_bytes;  /* of "/scope/key" */
    size_t body_bytes; /* of one value */
    size_t all_bytes;  /* of all values together */
};

enum meeting_method { MEETING_PUT, MEETING_GET, MEETING_DELETE, MEETING_OTHER };

struct meeting_answer {
    int status; /* of HTTP */
    const char *reason;
    const char *body; /* the store's: it holds until the next request */
    size_t length;
};

struct meeting;

/* Room for a gang of n tasks: each rank leaves 136 bytes for every other, in six scopes. */
struct meeting_limits meeting_limits_for(uint32_t n_tasks);

/* NULL: there is no memory. */
struct meeting *meeting_new(const struct meeting_limits *limits);
void meeting_free(struct meeting *meeting);

/* Does what is asked for. Only PUT looks at the body. */
struct meeting_answer meeting_ask(struct meeting *meeting, enum meeting_method method,
                                  const char *path, const char *body, size_t n);

#endif
