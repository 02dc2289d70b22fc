/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop that everything in the shim waits on: descriptors and timers, one thread, no memory of
 * its own. A watch and a timer are members of what they serve, which a callback finds by
 * loop_owner:
 *
 *   struct peer { struct loop_watch socket; ... };
 *   static void on_socket(struct loop_watch *watch, uint32_t events) {
 *       struct peer *peer = loop_owner(watch, struct peer, socket);
 *
 *   1. Descriptors do not block, or are read only when they are ready, and only once then.
 *   2. One event is taken at a time, in turns: a busy descriptor does not starve another, and a
 *      callback may unwatch, close and free anything, itself too.
 *   3. A timer fires once. Its callback may set it again.
 *   4. A watch is unwatched before its descriptor is closed: a copy of it in a child that has not
 *      yet become another program would go on firing.
 */
#ifndef SHIM_LOOP_H
#define SHIM_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define loop_owner(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

struct loop_watch {
    int fd; /* the owner's: opened, and closed after loop_unwatch, by him */
    void (*ready)(struct loop_watch *watch, uint32_t events);
    uint32_t events; /* EPOLLIN, EPOLLOUT; 0: not watched. The loop's */
};

struct loop_timer {
    void (*fire)(struct loop_timer *timer);
    int64_t due_ms;
    struct loop_timer *next;
    bool is_set;
};

struct loop {
    int epoll;
    struct loop_timer *timers; /* the first due first */
    bool is_over;
};

/* Returns 0, or -1 and errno. */
int loop_init(struct loop *loop);

/* Watches for these events, in place of those before; 0 is loop_unwatch. Returns -1 and errno where
 * that cannot be: EPERM for a regular file, which is always ready. */
int loop_watch(struct loop *loop, struct loop_watch *watch, uint32_t events);
void loop_unwatch(struct loop *loop, struct loop_watch *watch);

/* Sets the timer, anew if it was set. */
void loop_after(struct loop *loop, struct loop_timer *timer, int64_t ms);
void loop_cancel(struct loop *loop, struct loop_timer *timer);

/* A clock that never goes back. */
int64_t loop_now_ms(void);

/* Until loop_end. */
void loop_run(struct loop *loop);
void loop_end(struct loop *loop);

#endif
