/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/follower.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    /* Between two connections, about. The node keeps what is not read yet, so that nothing is lost
     * by asking late, and much is spared by not asking often what is refused a thousand times. */
    AGAIN_FIRST_MS = 1000,
    AGAIN_TIMES = 4,
    AGAIN_LAST_MS = 16 * 1000,
    TRIES_AFTER_END = 3,
    PATH_MOST = 4096,
};

struct follower {
    struct api *api;
    struct arena arena;
    struct follower_place place;
    struct follower_observer observer;
    struct logstream log;
    struct api_call *call; /* NULL: not connected */
    struct event again_event;
    uint32_t again_ms;
    bool has_ended; /* the container */
    int tries_after_end;
};

static void connect_now(struct follower *follower);

static void finish(struct follower *follower, const char *trouble) {
    evtimer_del(&follower->again_event);
    logstream_finish(&follower->log, follower->observer.output, follower->observer.context);
    follower->observer.done(follower->observer.context, trouble); /* may free us */
}

/* Half of it is chance: what cut one cut all of them. */
static void connect_later(struct follower *follower) {
    const uint32_t half = follower->again_ms / 2, ms = half + arc4random_uniform(half + 1);
    const struct timeval delay = clock_timeval(ms);

    if (follower->again_ms < AGAIN_LAST_MS)
        follower->again_ms *= AGAIN_TIMES;
    evtimer_add(&follower->again_event, &delay);
}

static void on_again(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    connect_now(context);
}

static bool on_bytes(void *context, const char *bytes, size_t n) {
    struct follower *follower = context;

    follower->again_ms = AGAIN_FIRST_MS;
    logstream_feed(&follower->log, bytes, n, follower->observer.output, follower->observer.context);
    return true;
}

/* A stream that was asked for after the end, and closed in order, had everything. */
static void on_done(void *context, const struct api_answer *answer) {
    struct follower *follower = context;

    follower->call = NULL;
    if (!follower->has_ended) {
        connect_later(follower);
    } else if (answer->err.code == ERROR_NONE && follower->tries_after_end > 0) {
        finish(follower, NULL);
    } else if (answer->err.code == ERROR_NOT_FOUND || answer->err.code == ERROR_INVALID) {
        finish(follower, answer->err.message); /* the pod is gone, or never had a log */
    } else if (follower->tries_after_end >= TRIES_AFTER_END) {
        finish(follower, answer->err.message);
    } else {
        connect_later(follower);
    }
}

static int write_path(const struct follower *follower, struct buf *path, struct error *err) {
    const struct api_resource pods = { .version = "v1",
                                       .plural = "pods",
                                       .namespace = follower->place.namespace };
    char since[LOGSTREAM_SINCE];

    if (api_path(&pods, follower->place.pod, "log", path, err) ||
        api_query("container", follower->place.container, path, err) ||
        api_query("follow", "true", path, err) || api_query("timestamps", "true", path, err))
        return -1;
    return logstream_since(&follower->log, since) ? api_query("sinceTime", since, path, err) : 0;
}

static void connect_now(struct follower *follower) {
    const struct api_sink sink = {
        .bytes = on_bytes, .done = on_done, .context = follower, .is_asked_once = true
    };
    AUTO(buf) path = BUF_INIT(PATH_MOST);
    struct error err;

    if (write_path(follower, &path, &err)) {
        finish(follower, err.message);
        return;
    }
    follower->tries_after_end += follower->has_ended;
    logstream_begin(&follower->log);
    follower->call = api_stream(follower->api, path.data, API_IDLE_FOREVER, &sink);
}

struct follower *follower_new(struct api *api, const struct follower_place *place,
                              const struct logstream_cursor *from, uint64_t delivered,
                              const struct follower_observer *observer) {
    struct follower *follower = calloc(1, sizeof *follower);
    const struct timeval now = { 0 };

    if (!follower)
        abort();
    follower->api = api;
    follower->observer = *observer;
    follower->again_ms = AGAIN_FIRST_MS;
    follower->place = (struct follower_place){
        arena_text(&follower->arena, place->namespace, strlen(place->namespace)),
        arena_text(&follower->arena, place->pod, strlen(place->pod)),
        arena_text(&follower->arena, place->container, strlen(place->container)),
    };
    logstream_init(&follower->log, from, delivered);
    evtimer_assign(&follower->again_event, api_loop(api), on_again, follower);
    evtimer_add(&follower->again_event, &now);
    return follower;
}

/* A stream that is open ends by itself, soon; one that waits is asked for once more at once. */
void follower_ended(struct follower *follower) {
    const struct timeval now = { 0 };

    if (follower->has_ended)
        return;
    follower->has_ended = true;
    if (follower->call) {
        follower->tries_after_end = 1; /* it was open when the container ended: it has all */
    } else {
        follower->again_ms = AGAIN_FIRST_MS;
        evtimer_add(&follower->again_event, &now);
    }
}

const struct logstream_cursor *follower_cursor(const struct follower *follower) {
    return &follower->log.at;
}

void follower_free(struct follower *follower) {
    if (!follower)
        return;
    api_cancel(follower->call);
    evtimer_del(&follower->again_event);
    logstream_release(&follower->log);
    arena_release(&follower->arena);
    free(follower);
}
