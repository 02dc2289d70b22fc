/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"

#include <cmocka.h>

enum { PIECE_WAIT_US = 5000, GUARD_S = 30 };

enum then { THEN_KEEP = PEER_KEEP, THEN_CLOSE = PEER_CLOSE, THEN_RESET = PEER_RESET, THEN_HANG };

struct step {
    const char *part; /* of the first line of the requests that it answers; NULL: of any */
    char *bytes;      /* NULL: it was served */
    int is_chunked;
    enum then then;
};

struct connection {
    TAILQ_ENTRY(connection) link;
    struct peer *peer;
    struct bufferevent *stream;
    struct event *timer;
    const char *asked; /* the request that is served, or was last; NULL: none was */
    struct step now;   /* what is being sent; bytes NULL: nothing */
    char *at;          /* its next piece */
};

struct peer {
    struct event_base *loop;
    struct evconnlistener *listener;
    uint16_t port;
    TAILQ_HEAD(, connection) connections;
    VEC(struct step) steps;
    const char *part; /* of the steps that are added */
    VEC(char *) requests;
};

static void connection_free(struct connection *connection) {
    TAILQ_REMOVE(&connection->peer->connections, connection, link);
    bufferevent_free(connection->stream);
    event_free(connection->timer);
    free(connection->now.bytes);
    free(connection);
}

static void end_connection(struct connection *connection, enum then then) {
    const evutil_socket_t fd = bufferevent_getfd(connection->stream);

    if (then == THEN_RESET) {
        const struct linger at_once = { .l_onoff = 1 };

        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    connection_free(connection);
}

static void serve(struct connection *connection);

static void send_piece(struct connection *connection) {
    struct evbuffer *out = bufferevent_get_output(connection->stream);
    char *end = strchr(connection->at, '\f');
    const size_t len = end ? (size_t)(end - connection->at) : strlen(connection->at);

    if (connection->now.is_chunked && connection->at != connection->now.bytes && len > 0)
        evbuffer_add_printf(out, "%zx\r\n", len);
    evbuffer_add(out, connection->at, len);
    if (connection->now.is_chunked && connection->at != connection->now.bytes && len > 0)
        evbuffer_add_printf(out, "\r\n");
    connection->at = end ? end + 1 : NULL;
    if (!connection->at && connection->now.is_chunked && connection->now.then == THEN_KEEP)
        evbuffer_add_printf(out, "0\r\n\r\n");
}

static void on_timer(evutil_socket_t fd, short what, void *context) {
    struct connection *connection = context;
    const struct timeval wait = { 0, PIECE_WAIT_US };
    const enum then then = connection->now.then;

    (void)fd, (void)what;
    if (connection->at) {
        send_piece(connection);
        event_add(connection->timer, &wait);
        return;
    }
    if (evbuffer_get_length(bufferevent_get_output(connection->stream)) > 0) {
        event_add(connection->timer, &wait);
        return;
    }
    if (then == THEN_HANG)
        return;
    free(connection->now.bytes);
    connection->now = (struct step){ 0 };
    if (then == THEN_KEEP)
        serve(connection);
    else
        end_connection(connection, then);
}

/* The length of the first whole request in the buffer, or 0. */
static size_t request_length(const char *text, size_t n) {
    const char *end = memmem(text, n, "\r\n\r\n", 4), *length;
    size_t head, body = 0;

    if (!end)
        return 0;
    head = (size_t)(end - text) + 4;
    length = strcasestr(text, "\r\nContent-Length:");
    if (length && length < end)
        body = strtoul(length + 17, NULL, 10);
    return n >= head + body ? head + body : 0;
}

static int is_asked(const char *request, const char *part) {
    const char *found = part ? strstr(request, part) : request;

    return found && found <= strstr(request, "\r\n");
}

/* The first step that is left for this request. */
static struct step *step_for(struct peer *peer, const char *request) {
    for (size_t i = 0; i < peer->steps.len; i++) {
        struct step *step = &peer->steps.items[i];

        if (step->bytes && is_asked(request, step->part))
            return step;
    }
    return NULL;
}

static void serve(struct connection *connection) {
    struct step *step;
    struct peer *peer = connection->peer;
    struct evbuffer *in = bufferevent_get_input(connection->stream);
    const size_t n = evbuffer_get_length(in);
    size_t len;
    char *text;

    if (connection->now.bytes || n == 0)
        return;
    text = calloc(1, n + 1);
    evbuffer_copyout(in, text, n);
    len = request_length(text, n);
    text[len] = '\0';
    if (len == 0) {
        free(text);
        return;
    }
    evbuffer_drain(in, len);
    *VEC_PUSH(&peer->requests) = text;
    step = step_for(peer, text);
    if (!step)
        fail_msg("the script has no answer to:\n%s", text);
    connection->asked = text;
    connection->now = *step;
    step->bytes = NULL;
    connection->at = connection->now.bytes;
    event_active(connection->timer, 0, 0);
}

static void on_read(struct bufferevent *stream, void *context) {
    (void)stream;
    serve(context);
}

static void on_event(struct bufferevent *stream, short what, void *context) {
    (void)stream;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        connection_free(context);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int len, void *context) {
    struct connection *connection = calloc(1, sizeof *connection);
    struct peer *peer = context;

    (void)listener, (void)address, (void)len;
    connection->peer = peer;
    connection->stream = bufferevent_socket_new(peer->loop, fd, BEV_OPT_CLOSE_ON_FREE);
    connection->timer = evtimer_new(peer->loop, on_timer, connection);
    TAILQ_INSERT_TAIL(&peer->connections, connection, link);
    bufferevent_setcb(connection->stream, on_read, NULL, on_event, connection);
    bufferevent_enable(connection->stream, EV_READ | EV_WRITE);
}

void peer_open(struct peer *peer) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(peer->port) };
    socklen_t len = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer->listener = evconnlistener_new_bind(peer->loop, on_accept, peer,
                                             LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 64,
                                             (struct sockaddr *)&address, sizeof address);
    assert_non_null(peer->listener);
    assert_int_equal(
        getsockname(evconnlistener_get_fd(peer->listener), (struct sockaddr *)&address, &len), 0);
    peer->port = ntohs(address.sin_port);
}

void peer_shut(struct peer *peer) {
    evconnlistener_free(peer->listener);
    peer->listener = NULL;
}

struct peer *peer_new(struct event_base *loop) {
    struct peer *peer = calloc(1, sizeof *peer);

    peer->loop = loop;
    TAILQ_INIT(&peer->connections);
    peer_open(peer);
    return peer;
}

void peer_free(struct peer *peer) {
    struct connection *connection;

    while ((connection = TAILQ_FIRST(&peer->connections)))
        connection_free(connection);
    if (peer->listener)
        evconnlistener_free(peer->listener);
    for (size_t i = 0; i < peer->steps.len; i++)
        free(peer->steps.items[i].bytes);
    for (size_t i = 0; i < peer->requests.len; i++)
        free(peer->requests.items[i]);
    VEC_RELEASE(&peer->steps);
    VEC_RELEASE(&peer->requests);
    free(peer);
}

uint16_t peer_port(const struct peer *peer) {
    return peer->port;
}

static void add(struct peer *peer, char *bytes, int is_chunked, enum then then) {
    *VEC_PUSH(&peer->steps) = (struct step){ peer->part, bytes, is_chunked, then };
}

void peer_for(struct peer *peer, const char *part) {
    peer->part = part;
}

void peer_say(struct peer *peer, int status, const char *headers, const char *body) {
    char *bytes = NULL;

    if (asprintf(
            &bytes,
            "HTTP/1.1 %d Said\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
            status, headers, strlen(body), body) < 0)
        abort();
    add(peer, bytes, 0, THEN_KEEP);
}

void peer_raw(struct peer *peer, const char *bytes, enum peer_then then) {
    add(peer, strdup(bytes), 0, (enum then)then);
}

static void add_stream(struct peer *peer, const char *pieces, enum then then) {
    char *bytes = NULL;

    if (asprintf(&bytes,
                 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
                 "chunked\r\n\r\n\f%s",
                 pieces) < 0)
        abort();
    add(peer, bytes, 1, then);
}

void peer_stream(struct peer *peer, const char *pieces, enum peer_then then) {
    add_stream(peer, pieces, (enum then)then);
}

void peer_hang(struct peer *peer, const char *pieces) {
    add_stream(peer, pieces, THEN_HANG);
}

size_t peer_count(const struct peer *peer) {
    return peer->requests.len;
}

const char *peer_request(const struct peer *peer, size_t i) {
    return i < peer->requests.len ? peer->requests.items[i] : "";
}

/* ---- streams that are open ---- */

/* The stream of the request, of the newest where there are several; NULL: none is open. */
static struct connection *open_stream(struct peer *peer, const char *part) {
    struct connection *connection, *found = NULL;

    TAILQ_FOREACH(connection, &peer->connections, link)
    if (connection->now.bytes && connection->now.then == THEN_HANG &&
        is_asked(connection->asked, part))
        found = connection;
    return found;
}

static struct connection *wait_for_stream(struct peer *peer, const char *part) {
    const time_t late = time(NULL) + GUARD_S;
    const struct timeval step = { 0, PIECE_WAIT_US };
    struct connection *connection;

    while (!(connection = open_stream(peer, part))) {
        if (time(NULL) > late)
            fail_msg("nobody asks for %s", part);
        event_base_loopexit(peer->loop, &step);
        event_base_dispatch(peer->loop);
    }
    while (connection->at)
        send_piece(connection);
    return connection;
}

void peer_more(struct peer *peer, const char *part, const char *bytes) {
    struct connection *connection = wait_for_stream(peer, part);

    if (*bytes)
        evbuffer_add_printf(bufferevent_get_output(connection->stream), "%zx\r\n%s\r\n",
                            strlen(bytes), bytes);
}

void peer_end(struct peer *peer, const char *part, enum peer_then then) {
    struct connection *connection = wait_for_stream(peer, part);

    if (then == PEER_KEEP)
        evbuffer_add_printf(bufferevent_get_output(connection->stream), "0\r\n\r\n");
    connection->now.then = (enum then)then;
    event_active(connection->timer, 0, 0);
}

static void on_guard(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    *(int *)context = 1;
}

void run_until(struct event_base *loop, const int *flag) {
    const struct timeval wait = { GUARD_S, 0 };
    int is_late = 0;
    struct event *guard = evtimer_new(loop, on_guard, &is_late);

    event_add(guard, &wait);
    while (!*flag && !is_late)
        event_base_loop(loop, EVLOOP_ONCE);
    event_free(guard);
    if (!*flag)
        fail_msg("what was waited for never came");
}
