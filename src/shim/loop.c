/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/loop.h"

#include <limits.h>
#include <time.h>

int loop_init(struct loop *loop) {
    *loop = (struct loop){ .epoll = epoll_create1(EPOLL_CLOEXEC) };
    return loop->epoll < 0 ? -1 : 0;
}

int loop_watch(struct loop *loop, struct loop_watch *watch, uint32_t events) {
    struct epoll_event event = { .events = events, .data = { .ptr = watch } };
    const int operation = watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (!events)
        loop_unwatch(loop, watch);
    if (watch->events == events)
        return 0;
    if (epoll_ctl(loop->epoll, operation, watch->fd, &event))
        return -1;
    watch->events = events;
    return 0;
}

void loop_unwatch(struct loop *loop, struct loop_watch *watch) {
    if (watch->events)
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->events = 0;
}

int64_t loop_now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void loop_after(struct loop *loop, struct loop_timer *timer, int64_t ms) {
    struct loop_timer **at = &loop->timers;

    loop_cancel(loop, timer);
    timer->due_ms = loop_now_ms() + ms;
    while (*at && (*at)->due_ms <= timer->due_ms)
        at = &(*at)->next;
    timer->next = *at;
    timer->is_set = true;
    *at = timer;
}

void loop_cancel(struct loop *loop, struct loop_timer *timer) {
    struct loop_timer **at = &loop->timers;

    if (!timer->is_set)
        return;
    while (*at != timer)
        at = &(*at)->next;
    *at = timer->next;
    timer->is_set = false;
}

/* Returns how long to wait for the next timer, -1: there is none. Those that a callback sets to
 * fire at once wait for their turn, so that descriptors are not starved. */
static int fire_due(struct loop *loop) {
    const int64_t now = loop_now_ms();
    int64_t wait;

    while (loop->timers && loop->timers->due_ms <= now && !loop->is_over) {
        struct loop_timer *timer = loop->timers;

        loop_cancel(loop, timer);
        timer->fire(timer);
        if (loop_now_ms() > now)
            break;
    }
    if (!loop->timers)
        return -1;
    wait = loop->timers->due_ms - loop_now_ms();
    return wait < 0 ? 0 : wait > INT_MAX ? INT_MAX : (int)wait;
}

void loop_run(struct loop *loop) {
    while (!loop->is_over) {
        const int wait = fire_due(loop);
        struct epoll_event event;

        if (!loop->is_over && epoll_wait(loop->epoll, &event, 1, wait) == 1) {
            struct loop_watch *watch = event.data.ptr;

            watch->ready(watch, event.events);
        }
    }
}

void loop_end(struct loop *loop) {
    loop->is_over = true;
}
