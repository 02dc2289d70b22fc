/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/pull.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/mirror.h"
#include "backend/kubernetes/shim_key.h"
#include "base/arena.h"
#include "shim/frame.h"

enum {
    AGAIN_FIRST_MS = 500, /* between two streams; doubles up to the last */
    AGAIN_LAST_MS = 15 * 1000,
    ACK_EVERY_MS = 15 * 1000,
    CUT_MS = 5 * 1000, /* that a stream of a pod which is over has for its end */
    NONSENSE_MOST = 5, /* streams on end that are not understood */
    BODY_MOST = (1 << 20) - 1,
    PATH_MOST = 4096,
    FRAME_MOST = FRAME_HEADER + FRAME_NAME_MAX + FRAME_BYTES_MAX,
};

struct pull {
    struct api *api;
    struct arena arena;
    struct pull_given given;
    struct pull_observer observer;
    char header[sizeof "Myelin-Key: " + SHIM_KEY_TEXT];
    struct mirror *mirror;

    struct api_call *stream, *small; /* the latter acknowledges or ends */
    struct buf frames;               /* what came and is no whole frame yet */
    struct event again_event, ack_event, cut_event;
    uint32_t again_ms;
    uint32_t n_nonsense;
    uint64_t log_at, log_acked, log_lost;
    bool was_open;     /* once */
    bool has_ended;    /* ENDED came */
    bool is_done;      /* DONE came, and all is on the disk */
    bool is_pod_over;  /* no other stream is asked for */
    bool is_concluded; /* `over` was told */
    bool has_told_trouble;
    uint32_t depth; /* of our callbacks: one that is freed in them goes with the last */
    bool is_dying;
};

static void connect_now(struct pull *pull);

/* ---- callbacks, in which we may be freed ---- */

static void destroy(struct pull *pull) {
    mirror_free(pull->mirror);
    buf_release(&pull->frames);
    arena_release(&pull->arena);
    free(pull);
}

static void enter(struct pull *pull) {
    pull->depth++;
}

static void leave(struct pull *pull) {
    if (--pull->depth == 0 && pull->is_dying)
        destroy(pull);
}

/* ---- the end ---- */

static void halt(struct pull *pull) {
    api_cancel(pull->stream);
    api_cancel(pull->small);
    pull->stream = pull->small = NULL;
    evtimer_del(&pull->again_event);
    evtimer_del(&pull->ack_event);
    evtimer_del(&pull->cut_event);
}

static void conclude(struct pull *pull, enum pull_outcome outcome, const char *why) {
    char kept[480];

    if (pull->is_concluded)
        return;
    pull->is_concluded = true;
    snprintf(kept, sizeof kept, "%s", why ? why : "");
    halt(pull);
    if (pull->given.gather)
        gather_end(pull->given.gather, pull->given.rank);
    pull->observer.over(pull->observer.context, outcome, kept);
}

static void conclude_with_pod(struct pull *pull) {
    conclude(pull, pull->has_ended ? PULL_ALL : PULL_CUT, NULL);
}

static void on_cut(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    enter(context);
    conclude_with_pod(context);
    leave(context);
}

static void wait_ms(struct event *event, uint32_t ms) {
    const struct timeval delay = { .tv_sec = ms / 1000,
                                   .tv_usec = (suseconds_t)(ms % 1000) * 1000 };

    evtimer_add(event, &delay);
}

void pull_pod_over(struct pull *pull) {
    if (pull->is_pod_over || pull->is_concluded)
        return;
    pull->is_pod_over = true;
    evtimer_del(&pull->again_event);
    /* From the loop: who calls may be in the middle of something. */
    wait_ms(&pull->cut_event, pull->stream && !pull->has_ended ? CUT_MS : 0);
}

static void connect_later(struct pull *pull) {
    const uint32_t ms = pull->again_ms;

    pull->again_ms = ms * 2 < AGAIN_LAST_MS ? ms * 2 : AGAIN_LAST_MS;
    wait_ms(&pull->again_event, ms);
}

static void tell_trouble(struct pull *pull, const struct error *err) {
    char sentence[640];

    if (pull->has_told_trouble)
        return;
    pull->has_told_trouble = true;
    snprintf(sentence, sizeof sentence,
             "what comes from the pod of %.60s cannot be kept (%.400s): it stays there, and is "
             "asked for again",
             pull->given.task, err->message);
    pull->observer.trouble(pull->observer.context, sentence);
}

/* ---- small requests ---- */

static bool ignore_bytes(void *context, const char *bytes, size_t n) {
    (void)context, (void)bytes, (void)n;
    return true;
}

static int write_path(const struct pull *pull, const char *what, struct buf *path,
                      struct error *err) {
    const struct api_resource pods = { .version = "v1",
                                       .plural = "pods",
                                       .namespace = pull->given.namespace };
    char pod[300];

    snprintf(pod, sizeof pod, "%.260s:%d", pull->given.pod, SHIM_PORT);
    return api_path(&pods, pod, "proxy", path, err) || buf_printf(path, err, "%s", what) ? -1 : 0;
}

static struct api_call *post(struct pull *pull, const char *what, const struct buf *body,
                             const struct api_sink *sink) {
    AUTO(buf) path = BUF_INIT(PATH_MOST);
    struct error err;

    if (write_path(pull, what, &path, &err))
        buf_clear(&path); /* which the client refuses */
    return api_post(
        pull->api,
        &(struct api_post){
            .path = path.data, .header = pull->header, .body = body->data, .body_len = body->len },
        sink);
}

static void begin_body(const struct pull *pull, struct buf *body) {
    struct error err;

    (void)!buf_printf(body, &err, "log %" PRIu64 "\n", pull->log_at);
}

static void on_ack_done(void *context, const struct api_answer *answer) {
    struct pull *pull = context;

    pull->small = NULL;
    if (answer->err.code == ERROR_NONE)
        mirror_confirmed(pull->mirror);
}

/* The shim frees what is on the disk here. One that does not answer is told the next time. */
static void acknowledge(struct pull *pull) {
    const struct api_sink sink = { .bytes = ignore_bytes, .done = on_ack_done, .context = pull };
    AUTO(buf) body = BUF_INIT(BODY_MOST);
    struct error err;

    if (pull->small || !pull->stream || pull->is_done ||
        (pull->log_at == pull->log_acked && !mirror_has_news(pull->mirror)))
        return;
    if (mirror_sync(pull->mirror, &err)) {
        tell_trouble(pull, &err);
        return;
    }
    begin_body(pull, &body);
    mirror_list(pull->mirror, MIRROR_NEWS, &body);
    pull->log_acked = pull->log_at;
    pull->small = post(pull, "/ack", &body, &sink);
}

static void on_ack_time(evutil_socket_t fd, short what, void *context) {
    struct pull *pull = context;

    (void)fd, (void)what;
    if (pull->stream)
        pull->again_ms = AGAIN_FIRST_MS; /* it holds */
    acknowledge(pull);
    wait_ms(&pull->ack_event, ACK_EVERY_MS);
}

/* All is here: an end that the shim does not hear of only leaves it waiting for its time. */
static void on_end_done(void *context, const struct api_answer *answer) {
    struct pull *pull = context;

    enter(pull);
    pull->small = NULL;
    if (answer->err.code == ERROR_UNAVAILABLE && !pull->is_pod_over)
        connect_later(pull);
    else
        conclude(pull, PULL_ALL, NULL);
    leave(pull);
}

static void let_go(struct pull *pull) {
    const struct api_sink sink = { .bytes = ignore_bytes, .done = on_end_done, .context = pull };
    AUTO(buf) body = BUF_INIT(BODY_MOST);

    begin_body(pull, &body);
    api_cancel(pull->small);
    pull->small = post(pull, "/end", &body, &sink);
}

/* ---- frames ---- */

static bool has_prefix(const struct frame *frame, const char *prefix) {
    return frame->name_length > strlen(prefix) && memcmp(frame->name, prefix, strlen(prefix)) == 0;
}

static bool is_log(const struct frame *frame) {
    return frame->name_length == 3 && memcmp(frame->name, "log", 3) == 0;
}

static int take_log(struct pull *pull, const struct frame *frame, struct error *err) {
    const uint64_t known = pull->log_at - frame->offset;

    if (frame->offset > pull->log_at)
        return error_set(err, ERROR_INVALID,
                         "it sends the log from %" PRIu64 " on, of which %" PRIu64
                         " bytes are here",
                         frame->offset, pull->log_at);
    if (known >= frame->length)
        return 0;
    pull->log_at = frame->offset + frame->length;
    pull->observer.output(pull->observer.context, frame->bytes + known,
                          frame->length - (size_t)known, pull->log_at);
    return 0;
}

static int take_data(struct pull *pull, const struct frame *frame, struct error *err) {
    const size_t spool = strlen(MIRROR_PREFIX), outputs = strlen(GATHER_PREFIX);

    if (is_log(frame))
        return take_log(pull, frame, err);
    if (has_prefix(frame, MIRROR_PREFIX))
        return mirror_write(pull->mirror, frame->name + spool, frame->name_length - spool,
                            frame->offset, frame->bytes, frame->length, err);
    if (has_prefix(frame, GATHER_PREFIX) && pull->given.gather)
        return gather_write(pull->given.gather, pull->given.rank, frame->name + outputs,
                            frame->name_length - outputs, frame->offset, frame->bytes,
                            frame->length, err);
    return 0;
}

static int take_whole(struct pull *pull, const struct frame *frame, struct error *err) {
    const size_t spool = strlen(MIRROR_PREFIX), outputs = strlen(GATHER_PREFIX);

    if (has_prefix(frame, MIRROR_PREFIX))
        return mirror_whole(pull->mirror, frame->name + spool, frame->name_length - spool,
                            frame->offset, err);
    if (has_prefix(frame, GATHER_PREFIX) && pull->given.gather)
        return gather_whole(pull->given.gather, pull->given.rank, frame->name + outputs,
                            frame->name_length - outputs, frame->offset, err);
    return 0;
}

static int take_end(struct pull *pull, const struct frame *frame, struct error *err) {
    struct shim_end end;

    if (!shim_end_read(frame->bytes, frame->length, &end))
        return error_set(err, ERROR_INVALID, "it says an end that is none");
    if (pull->has_ended)
        return 0;
    pull->has_ended = true;
    pull->log_lost = end.lost;
    pull->observer.ended(pull->observer.context, &end);
    return 0;
}

static int take_done(struct pull *pull, struct error *err) {
    if (!pull->has_ended)
        return error_set(err, ERROR_INVALID, "it is done with a task that has not ended");
    if (mirror_sync(pull->mirror, err))
        return -1;
    pull->is_done = true;
    let_go(pull);
    return 0;
}

static int take(struct pull *pull, const struct frame *frame, struct error *err) {
    switch (frame->kind) {
    case FRAME_DATA: return take_data(pull, frame, err);
    case FRAME_WHOLE: return take_whole(pull, frame, err);
    case FRAME_ENDED: return take_end(pull, frame, err);
    case FRAME_DONE: return take_done(pull, err);
    case FRAME_LOST: pull->log_lost = frame->offset; return 0;
    case FRAME_STARTED:
    case FRAME_IDLE: break;
    }
    return 0;
}

/* Takes the frames at the start of the bytes; *used is how many those are. */
static int take_frames(struct pull *pull, const char *bytes, size_t n, size_t *used,
                       struct error *err) {
    *used = 0;
    while (!pull->is_concluded) {
        struct frame frame;
        const long length = frame_read(bytes + *used, n - *used, &frame);

        if (length == 0)
            return 0;
        if (length < 0)
            return error_set(err, ERROR_INVALID, "it sends what is no frame");
        *used += (size_t)length;
        if (take(pull, &frame, err))
            return -1;
    }
    *used = n; /* nobody wants the rest */
    return 0;
}

/* Whole frames are taken where they lie; only what is left waits in the buffer. */
static int feed(struct pull *pull, const char *bytes, size_t n, struct error *err) {
    size_t used;

    while (n > 0 && pull->frames.len > 0) {
        const size_t room = FRAME_MOST - pull->frames.len, more = n < room ? n : room;
        const size_t before = pull->frames.len;

        if (buf_append(&pull->frames, bytes, more, err))
            return -1;
        if (take_frames(pull, pull->frames.data, pull->frames.len, &used, err))
            return -1;
        if (used == 0) {
            bytes += more;
            n -= more;
            continue;
        }
        /* What follows the frames that were completed is still where it came. */
        buf_clear(&pull->frames);
        bytes += used - before;
        n -= used - before;
    }
    if (n == 0)
        return 0;
    if (take_frames(pull, bytes, n, &used, err))
        return -1;
    return used < n ? buf_append(&pull->frames, bytes + used, n - used, err) : 0;
}

/* ---- the stream ---- */

static bool on_bytes(void *context, const char *bytes, size_t n) {
    struct pull *pull = context;
    struct error err;
    int status;

    enter(pull);
    status = feed(pull, bytes, n, &err);
    if (status && err.code == ERROR_INVALID)
        pull->n_nonsense++;
    else if (status)
        tell_trouble(pull, &err);
    leave(pull);
    return status == 0;
}

static void on_open(void *context) {
    struct pull *pull = context;

    pull->was_open = true;
    mirror_confirmed(pull->mirror);
}

/* Whether asking again makes no sense: a right is missing, or nobody gets through to the pod. */
static bool is_hopeless(const struct pull *pull, const struct api_answer *answer) {
    if (answer->err.code == ERROR_NONE || answer->err.code == ERROR_NOT_FOUND)
        return false;
    if (answer->err.code == ERROR_UNAVAILABLE)
        return !pull->was_open && answer->status != 0;
    return true;
}

static void on_done(void *context, const struct api_answer *answer) {
    struct pull *pull = context;

    enter(pull);
    pull->stream = NULL;
    buf_clear(&pull->frames);
    if (pull->is_pod_over)
        conclude_with_pod(pull);
    else if (pull->n_nonsense >= NONSENSE_MOST)
        conclude(pull, PULL_UNREACHABLE, "what answers in the pod is no shim of this version");
    else if (is_hopeless(pull, answer))
        conclude(pull, PULL_UNREACHABLE, answer->err.message);
    else if (!pull->is_done)
        connect_later(pull);
    leave(pull);
}

static void connect_now(struct pull *pull) {
    const struct api_sink sink = {
        .opened = on_open, .bytes = on_bytes, .done = on_done, .context = pull
    };
    AUTO(buf) body = BUF_INIT(BODY_MOST);
    struct error err;

    if (pull->is_done) {
        let_go(pull);
        return;
    }
    if (mirror_sync(pull->mirror, &err)) {
        tell_trouble(pull, &err);
        connect_later(pull);
        return;
    }
    /* An acknowledgement under way would be taken for one of what is listed here. */
    api_cancel(pull->small);
    pull->small = NULL;
    mirror_begin(pull->mirror);
    begin_body(pull, &body);
    mirror_list(pull->mirror, MIRROR_ALL, &body);
    if (pull->given.gather)
        gather_list(pull->given.gather, pull->given.rank, &body);
    pull->log_acked = pull->log_at;
    pull->stream = post(pull, "/stream", &body, &sink);
}

static void on_again(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    connect_now(context);
}

/* ---- its life ---- */

struct pull *pull_new(struct api *api, const struct pull_given *given,
                      const struct pull_observer *observer) {
    struct pull *pull = calloc(1, sizeof *pull);

    if (!pull)
        abort();
    pull->api = api;
    pull->observer = *observer;
    pull->given = *given;
    pull->given.namespace = arena_printf(&pull->arena, "%s", given->namespace);
    pull->given.pod = arena_printf(&pull->arena, "%s", given->pod);
    pull->given.task = arena_printf(&pull->arena, "%s", given->task);
    pull->given.key = pull->given.spool = pull->given.logs = NULL; /* the caller's */
    snprintf(pull->header, sizeof pull->header, "Myelin-Key: %s", given->key);
    pull->mirror = mirror_new(given->spool, given->logs, given->task);
    pull->frames = (struct buf)BUF_INIT(FRAME_MOST);
    pull->again_ms = AGAIN_FIRST_MS;
    pull->log_at = given->log_at;
    evtimer_assign(&pull->again_event, api_loop(api), on_again, pull);
    evtimer_assign(&pull->ack_event, api_loop(api), on_ack_time, pull);
    evtimer_assign(&pull->cut_event, api_loop(api), on_cut, pull);
    wait_ms(&pull->again_event, 0);
    wait_ms(&pull->ack_event, ACK_EVERY_MS);
    return pull;
}

uint64_t pull_log_at(const struct pull *pull) {
    return pull->log_at;
}

uint64_t pull_log_acked(const struct pull *pull) {
    return pull->log_acked;
}

uint64_t pull_log_lost(const struct pull *pull) {
    return pull->log_lost;
}

void pull_free(struct pull *pull) {
    if (!pull)
        return;
    halt(pull);
    pull->is_concluded = pull->is_dying = true;
    if (pull->depth == 0)
        destroy(pull);
}
