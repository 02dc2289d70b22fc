/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows what a container writes, line by line, through the API server.
 *
 * Each line comes once. A connection that breaks is made again from the last line's time on; the
 * server only knows whole seconds there, so the lines that were told already are passed over by
 * their time stamps. Lines come as the container wrote them (any bytes), without the newline, and
 * with the time that the node noted.
 *
 * A line longer than PODLOG_LINE_MAX comes in pieces, of which only the last is `whole`.
 *
 * `closed` comes once, when the server ends the stream: the container ended, or its logs were
 * rotated away, or the node dropped the connection. Who knows that the container still runs follows
 * again with `since` = the last time that was told (podlog_position): nothing is told twice.
 * `missing` logs (the pod is gone, never started: 404, 400) close with that error. Outages in
 * between are told as `trouble`, once each.
 */
#ifndef BACKEND_KUBERNETES_PODLOG_H
#define BACKEND_KUBERNETES_PODLOG_H

#include "backend/kubernetes/api.h"

enum { PODLOG_LINE_MAX = 64 << 10 };

/* Where a reader stands: the last time stamp, and how many lines had it. Zeroed: at the beginning.
 */
struct podlog_position {
    char time[40];  /* "2026-03-01T12:00:00.123456789Z" */
    uint32_t lines; /* told with exactly that time */
};

struct podlog_line {
    const char *time; /* "" for the later pieces of a long line */
    const char *bytes;
    size_t n;
    bool whole; /* false: more of this line follows */
};

struct podlog_observer {
    void (*line)(void *context, const struct podlog_line *line);
    void (*trouble)(void *context, const struct error *err); /* may be NULL */
    void (*closed)(void *context,
                   const struct error *err); /* code ERROR_NONE: the end of the log */
    void *context;
};

struct podlog_request {
    const char *namespace, *pod, *container;
    struct podlog_position since;
    bool previous; /* of the container's last life before this one */
};

struct podlog;

struct podlog *podlog_follow(struct api *api, const struct podlog_request *request,
                             const struct podlog_observer *observer);

/* Behind the last line that was told: keep it to go on after a restart. */
struct podlog_position podlog_position(const struct podlog *podlog);

/* Takes NULL; may be called from the callbacks. */
void podlog_free(struct podlog *podlog);

#endif
