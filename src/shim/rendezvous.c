/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/rendezvous.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim/listen.h"
#include "shim/meeting.h"
#include "shim/request.h"

enum {
    STRANGERS = 64, /* connections beyond one for each rank */
    IDLE_MS = 30000,
    SWEEP_MS = 5000,
    REPLY_HEAD_MAX = 160,
    ROOM = 8192, /* for a head, and for most bodies with it */
};

struct visitor {
    struct loop_watch socket;
    struct rendezvous *of;
    struct visitor *next;
    int64_t moved_ms;
    struct request request;
    size_t n, head_n; /* bytes that came; of them the head, once it is whole */
    size_t room;
    char *bytes; /* the head and the body; then what is left of the answer */
    size_t sent; /* of the answer */
    bool is_answered;
};

struct rendezvous {
    struct loop *loop;
    struct meeting *meeting;
    struct meeting_limits limits;
    struct loop_watch listener;
    struct loop_timer sweep;
    struct visitor *visitors;
    uint32_t n_visitors, most;
};

static void on_visitor(struct loop_watch *watch, uint32_t events);

/* ---- visitors */

static void part(struct visitor *visitor) {
    struct rendezvous *r = visitor->of;
    struct visitor **at = &r->visitors;

    while (*at != visitor)
        at = &(*at)->next;
    *at = visitor->next;
    loop_unwatch(r->loop, &visitor->socket);
    close(visitor->socket.fd);
    free(visitor->bytes);
    free(visitor);
    if (r->n_visitors-- == r->most)
        loop_watch(r->loop, &r->listener, EPOLLIN);
}

static void welcome(struct rendezvous *r, int fd) {
    struct visitor *visitor = calloc(1, sizeof *visitor);

    if (visitor) {
        *visitor = (struct visitor){ .socket = { .fd = fd, .ready = on_visitor },
                                     .of = r,
                                     .next = r->visitors,
                                     .moved_ms = loop_now_ms(),
                                     .room = ROOM,
                                     .bytes = malloc(ROOM) };
        if (visitor->bytes && loop_watch(r->loop, &visitor->socket, EPOLLIN) == 0) {
            r->visitors = visitor;
            r->n_visitors++;
            return;
        }
        free(visitor->bytes);
        free(visitor);
    }
    close(fd);
}

static void on_listener(struct loop_watch *watch, uint32_t events) {
    struct rendezvous *r = loop_owner(watch, struct rendezvous, listener);
    const int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)events;
    if (fd >= 0)
        welcome(r, fd);
    /* The next ones wait in the kernel until somebody has left, or the sweep looks again. */
    if (r->n_visitors >= r->most || (fd < 0 && errno != EAGAIN && errno != ECONNABORTED))
        loop_unwatch(r->loop, &r->listener);
}

static void on_sweep(struct loop_timer *timer) {
    struct rendezvous *r = loop_owner(timer, struct rendezvous, sweep);
    const int64_t now = loop_now_ms();

    for (struct visitor *visitor = r->visitors, *next; visitor; visitor = next) {
        next = visitor->next;
        if (now - visitor->moved_ms > IDLE_MS)
            part(visitor);
    }
    if (r->n_visitors < r->most)
        loop_watch(r->loop, &r->listener, EPOLLIN);
    loop_after(r->loop, timer, SWEEP_MS);
}

/* ---- what they are told */

/* Keeps what the socket did not take; false: there is no memory. */
static bool keep(struct visitor *visitor, const struct iovec *parts, size_t skip) {
    const size_t n = parts[0].iov_len + parts[1].iov_len;
    char *all = malloc(n);

    if (!all)
        return false;
    memcpy(all, parts[0].iov_base, parts[0].iov_len);
    if (parts[1].iov_len)
        memcpy(all + parts[0].iov_len, parts[1].iov_base, parts[1].iov_len);
    free(visitor->bytes);
    visitor->bytes = all;
    visitor->n = n;
    visitor->sent = skip;
    return loop_watch(visitor->of->loop, &visitor->socket, EPOLLOUT) == 0;
}

static void answer(struct visitor *visitor, const struct meeting_answer *answer) {
    char head[REPLY_HEAD_MAX], *body = (char *)(uintptr_t)answer->body;
    struct iovec parts[2] = { { .iov_base = head }, { body, answer->length } };
    ssize_t n;

    /* Horovod's client compares the header's name by case and opens a connection a request. */
    parts[0].iov_len = (size_t)snprintf(
        head, sizeof head, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
        answer->status, answer->reason, answer->length);
    visitor->is_answered = true;
    n = writev(visitor->socket.fd, parts, 2);
    if ((n < 0 && errno != EAGAIN && errno != EINTR) ||
        n == (ssize_t)(parts[0].iov_len + parts[1].iov_len) ||
        !keep(visitor, parts, n < 0 ? 0 : (size_t)n))
        part(visitor);
}

static void refuse(struct visitor *visitor, int status) {
    const struct meeting_answer refusal = { status,
                                            status == 413 ? "Payload Too Large" : "Bad Request", "",
                                            0 };

    answer(visitor, &refusal);
}

static void send_rest(struct visitor *visitor) {
    const ssize_t n = send(visitor->socket.fd, visitor->bytes + visitor->sent,
                           visitor->n - visitor->sent, MSG_NOSIGNAL);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    visitor->sent += n > 0 ? (size_t)n : 0;
    visitor->moved_ms = loop_now_ms();
    if (n < 0 || visitor->sent == visitor->n)
        part(visitor);
}

/* ---- what they ask */

static void ask(struct visitor *visitor) {
    static const struct {
        const char *name;
        enum meeting_method method;
    } methods[] = { { "PUT", MEETING_PUT }, { "GET", MEETING_GET }, { "DELETE", MEETING_DELETE } };
    enum meeting_method method = MEETING_OTHER;
    struct meeting_answer reply;

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, visitor->request.method) == 0)
            method = methods[i].method;
    reply = meeting_ask(visitor->of->meeting, method, visitor->request.target,
                        visitor->bytes + visitor->head_n, (size_t)visitor->request.length);
    answer(visitor, &reply);
}

/* Reads the head where it is whole now, and makes room for the body. True: go on. */
static bool take_head(struct visitor *visitor, size_t seen) {
    const struct request *request = &visitor->request;
    const int n = request_read(visitor->bytes, visitor->n, seen, &visitor->request);
    char *larger;

    if (n == 0 && visitor->n < visitor->room)
        return false;
    /* Horovod's client sends neither of the last three. */
    if (n <= 0 || request->is_chunked || request->wants_continue || request->query[0]) {
        refuse(visitor, n < 0 ? -n : n == 0 ? 431 : 400);
        return false;
    }
    if (request->length > visitor->of->limits.body_bytes) {
        refuse(visitor, 413);
        return false;
    }
    visitor->head_n = (size_t)n;
    if (visitor->room >= visitor->head_n + request->length)
        return true;
    larger = realloc(visitor->bytes, visitor->head_n + (size_t)request->length);
    if (!larger) {
        part(visitor);
        return false;
    }
    visitor->bytes = larger;
    visitor->room = visitor->head_n + (size_t)request->length;
    return true;
}

static void on_visitor(struct loop_watch *watch, uint32_t events) {
    struct visitor *visitor = loop_owner(watch, struct visitor, socket);
    ssize_t n;

    (void)events;
    if (visitor->is_answered) {
        send_rest(visitor);
        return;
    }
    n = read(watch->fd, visitor->bytes + visitor->n, visitor->room - visitor->n);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        part(visitor);
        return;
    }
    visitor->n += (size_t)n;
    visitor->moved_ms = loop_now_ms();
    if (!visitor->head_n && !take_head(visitor, visitor->n - (size_t)n))
        return;
    if (visitor->n >= visitor->head_n + visitor->request.length)
        ask(visitor);
}

/* ---- the beginning */

int rendezvous_serve(struct loop *loop, uint16_t port, uint32_t n_tasks) {
    const struct meeting_limits limits = meeting_limits_for(n_tasks);
    struct rendezvous *r = calloc(1, sizeof *r);
    int error;

    if (!r)
        return -1;
    *r = (struct rendezvous){ .loop = loop,
                              .meeting = meeting_new(&limits),
                              .limits = limits,
                              .listener = { .fd = listen_at(port), .ready = on_listener },
                              .sweep = { .fire = on_sweep },
                              .most = n_tasks + STRANGERS };
    if (r->meeting && r->listener.fd >= 0 && loop_watch(loop, &r->listener, EPOLLIN) == 0) {
        loop_after(loop, &r->sweep, SWEEP_MS);
        return 0;
    }
    error = errno;
    if (r->listener.fd >= 0)
        close(r->listener.fd);
    meeting_free(r->meeting);
    free(r);
    errno = error;
    return -1;
}
