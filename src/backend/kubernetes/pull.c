/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/pull.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/intake.h"
#include "backend/kubernetes/shim_key.h"
#include "base/arena.h"
#include "base/clock.h"
#include "shim/frame.h"

enum {
    AGAIN_FIRST_MS = 500, /* between two streams; doubles up to the last */
    AGAIN_LAST_MS = 15 * 1000,
    AWAY_MS = 60 * 1000, /* the same while it is out of reach; up to half of it less, by chance */
    WAKE_MS = 1000,      /* after a sleep, by chance: all of a gang wake at once */
    ACK_EVERY_MS = 15 * 1000,
    CUT_MS = 5 * 1000, /* that a stream of a pod which is over has for its end */
    NONSENSE_MOST = 5, /* streams on end that are not understood */
    BODY_MOST = (1 << 20) - 1,
    PATH_MOST = 4096,
};

struct pull {
    struct api *api;
    struct arena arena;
    struct pull_given given;
    struct pull_observer observer;
    char header[sizeof "Myelin-Key: " + SHIM_KEY_TEXT];
    struct intake intake;

    struct api_call *stream, *small; /* the latter acknowledges or ends */
    struct event again_event, ack_event, cut_event;
    uint32_t again_ms;
    uint32_t n_nonsense;
    uint64_t log_acked;
    uint64_t n_unread; /* outputs, which the pod could not read */
    bool was_open;     /* once, to us or to a process before */
    bool is_away;      /* it never was, and the log comes by another way */
    bool has_told_refusal;
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
    intake_release(&pull->intake);
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
    pull->is_concluded = pull->intake.is_stopped = true;
    snprintf(kept, sizeof kept, "%s", why ? why : "");
    halt(pull);
    if (pull->given.gather)
        gather_end(pull->given.gather, pull->given.rank);
    pull->observer.over(pull->observer.context, outcome, kept);
}

static void conclude_with_pod(struct pull *pull) {
    conclude(pull, pull->is_done ? PULL_ALL : pull->is_away ? PULL_UNREACHABLE : PULL_CUT, NULL);
}

static void on_cut(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    enter(context);
    conclude_with_pod(context);
    leave(context);
}

static void wait_ms(struct event *event, uint32_t ms) {
    const struct timeval delay = clock_timeval(ms);

    evtimer_add(event, &delay);
}

void pull_pod_over(struct pull *pull) {
    if (pull->is_pod_over || pull->is_concluded)
        return;
    pull->is_pod_over = true;
    evtimer_del(&pull->again_event);
    /* From the loop: who calls may be in the middle of something. */
    wait_ms(&pull->cut_event, pull->stream && !pull->is_done ? CUT_MS : 0);
}

static void connect_later(struct pull *pull) {
    const uint32_t ms = pull->again_ms;

    if (pull->is_away) {
        wait_ms(&pull->again_event, AWAY_MS / 2 + arc4random_uniform(AWAY_MS / 2 + 1));
        return;
    }
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

    (void)!buf_printf(body, &err, "log %" PRIu64 "\n", pull->intake.log_at);
}

static void on_ack_done(void *context, const struct api_answer *answer) {
    struct pull *pull = context;

    pull->small = NULL;
    if (answer->err.code == ERROR_NONE)
        mirror_confirmed(pull->intake.mirror);
}

/* The shim frees what is on the disk here. One that does not answer is told the next time. */
static void acknowledge(struct pull *pull) {
    const struct api_sink sink = { .bytes = ignore_bytes, .done = on_ack_done, .context = pull };
    AUTO(buf) body = BUF_INIT(BODY_MOST);
    struct error err;

    if (pull->small || !pull->stream || pull->is_done ||
        (pull->intake.log_at == pull->log_acked && !mirror_has_news(pull->intake.mirror)))
        return;
    if (mirror_sync(pull->intake.mirror, &err)) {
        tell_trouble(pull, &err);
        return;
    }
    begin_body(pull, &body);
    mirror_list(pull->intake.mirror, MIRROR_NEWS, &body);
    pull->log_acked = pull->intake.log_at;
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

static void end_shim(struct pull *pull) {
    const struct api_sink sink = { .bytes = ignore_bytes, .done = on_end_done, .context = pull };
    AUTO(buf) body = BUF_INIT(BODY_MOST);

    if (pull->given.is_held)
        return;
    begin_body(pull, &body);
    api_cancel(pull->small);
    pull->small = post(pull, "/end", &body, &sink);
}

/* ---- the stream ---- */

static void on_log(void *context, const char *bytes, size_t n, uint64_t at) {
    struct pull *pull = context;

    pull->observer.output(pull->observer.context, bytes, n, at);
}

static void on_task_started(void *context) {
    struct pull *pull = context;

    pull->observer.started(pull->observer.context);
}

static void on_task_ended(void *context, const struct shim_end *end) {
    struct pull *pull = context;

    pull->observer.ended(pull->observer.context, end);
}

static void on_all_here(void *context, uint64_t n_unread) {
    struct pull *pull = context;

    pull->n_unread = n_unread;
    pull->is_done = true;
    end_shim(pull);
}

static bool on_bytes(void *context, const char *bytes, size_t n) {
    struct pull *pull = context;
    struct error err;
    int status;

    enter(pull);
    status = intake_feed(&pull->intake, bytes, n, &err);
    if (status && err.code == ERROR_INVALID)
        pull->n_nonsense++;
    else if (status)
        tell_trouble(pull, &err);
    leave(pull);
    return status == 0;
}

static void on_open(void *context) {
    struct pull *pull = context;

    enter(pull);
    pull->was_open = true;
    mirror_confirmed(pull->intake.mirror);
    if (pull->is_away) {
        pull->is_away = false;
        /* More may have come by the other way since the stream was asked for: it is known. */
        pull->intake.log_at = pull->observer.log_at(pull->observer.context);
        pull->observer.back(pull->observer.context);
    }
    leave(pull);
}

/* Whether a right is missing, or nobody gets through to the pod. Where there was no answer, or the
 * cluster does not know who asks, nobody knows that. */
static bool is_out_of_reach(const struct pull *pull, const struct api_answer *answer) {
    return !pull->was_open && !pull->is_away && answer->status != 0 && answer->status != 401 &&
           answer->err.code != ERROR_NONE && answer->err.code != ERROR_NOT_FOUND;
}

static void tell_refusal(struct pull *pull, const struct error *err) {
    if (!pull->was_open || pull->has_told_refusal || err->code == ERROR_NONE ||
        err->code == ERROR_NOT_FOUND || err->code == ERROR_UNAVAILABLE)
        return;
    pull->has_told_refusal = true;
    pull->observer.refused(pull->observer.context, err->message);
}

static void go_on(struct pull *pull, const struct api_answer *answer) {
    if (is_out_of_reach(pull, answer)) {
        pull->is_away = true;
        pull->observer.away(pull->observer.context, answer->err.message);
    }
    tell_refusal(pull, &answer->err);
    if (!pull->is_concluded)
        connect_later(pull);
}

static void on_done(void *context, const struct api_answer *answer) {
    struct pull *pull = context;

    enter(pull);
    pull->stream = NULL;
    if (pull->is_pod_over)
        conclude_with_pod(pull);
    else if (pull->n_nonsense >= NONSENSE_MOST)
        conclude(pull, PULL_UNREACHABLE, "what answers in the pod is no shim of this version");
    else if (!pull->is_done)
        go_on(pull, answer);
    leave(pull);
}

static void connect_now(struct pull *pull) {
    const struct api_sink sink = { .opened = on_open,
                                   .bytes = on_bytes,
                                   .done = on_done,
                                   .context = pull,
                                   .is_asked_once = pull->is_away };
    AUTO(buf) body = BUF_INIT(BODY_MOST);
    struct error err;

    if (pull->is_done) {
        end_shim(pull);
        return;
    }
    if (mirror_sync(pull->intake.mirror, &err)) {
        tell_trouble(pull, &err);
        connect_later(pull);
        return;
    }
    /* An acknowledgement under way would be taken for one of what is listed here. */
    api_cancel(pull->small);
    pull->small = NULL;
    intake_begin(&pull->intake);
    if (pull->is_away)
        pull->intake.log_at = pull->observer.log_at(pull->observer.context);
    begin_body(pull, &body);
    mirror_list(pull->intake.mirror, MIRROR_ALL, &body);
    if (pull->given.gather)
        gather_list(pull->given.gather, pull->given.rank, &body);
    pull->log_acked = pull->intake.log_at;
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
    intake_init(
        &pull->intake,
        &(struct intake_given){ given->task, given->spool, given->logs, given->gather, given->rank,
                                given->log_at },
        &(struct intake_observer){ on_log, on_task_started, on_task_ended, on_all_here, pull });
    pull->again_ms = AGAIN_FIRST_MS;
    pull->was_open = given->was_reached;
    evtimer_assign(&pull->again_event, api_loop(api), on_again, pull);
    evtimer_assign(&pull->ack_event, api_loop(api), on_ack_time, pull);
    evtimer_assign(&pull->cut_event, api_loop(api), on_cut, pull);
    wait_ms(&pull->again_event, 0);
    wait_ms(&pull->ack_event, ACK_EVERY_MS);
    return pull;
}

void pull_wake(struct pull *pull) {
    if (pull->is_concluded || pull->is_pod_over)
        return;
    api_cancel(pull->stream);
    pull->stream = NULL;
    pull->again_ms = AGAIN_FIRST_MS;
    wait_ms(&pull->again_event, arc4random_uniform(WAKE_MS));
}

void pull_let_go(struct pull *pull) {
    if (!pull->given.is_held)
        return;
    pull->given.is_held = false;
    if (pull->is_done && !pull->is_concluded && !pull->is_pod_over)
        wait_ms(&pull->again_event, 0); /* from the loop: who calls may be in the middle of it */
}

bool pull_has_started(const struct pull *pull) {
    return pull->intake.has_started;
}

uint64_t pull_log_at(const struct pull *pull) {
    return pull->intake.log_at;
}

uint64_t pull_log_acked(const struct pull *pull) {
    return pull->log_acked;
}

uint64_t pull_log_lost(const struct pull *pull) {
    return pull->intake.log_lost;
}

bool pull_has_all(const struct pull *pull) {
    return pull->is_done;
}

uint64_t pull_unread(const struct pull *pull) {
    return pull->n_unread;
}

void pull_free(struct pull *pull) {
    if (!pull)
        return;
    halt(pull);
    pull->is_concluded = pull->intake.is_stopped = pull->is_dying = true;
    if (pull->depth == 0)
        destroy(pull);
}
