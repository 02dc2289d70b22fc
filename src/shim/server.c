/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/listen.h"

enum {
    SWEEP_MS = 1000,
    LISTEN_AGAIN_MS = 5000,
    HEAD_MS = 15000, /* for a request that has begun to come */
    BODY_MS = 60000,
    IDLE_MS = 120000, /* longer than the API server keeps an unused connection */
    CLOSING_MS = 2000,
    DEAD_S = 60, /* a peer that confirms nothing */
};

enum state { HEAD, BODY, STREAM, GANG, CLOSING };

struct connection {
    struct server *server;
    struct loop_watch socket;
    struct connection *next; /* the newest first */
    enum state state;
    int64_t since_ms; /* of what it is waiting for */
    bool is_known;    /* bore the key once */
    struct request request;
    struct body body;
    char *head; /* REQUEST_HEAD_MAX bytes; NULL: nothing came yet */
    size_t head_n;
    char *content;
    size_t content_n, content_room;
};

static void on_socket(struct loop_watch *watch, uint32_t events);

/* ---- the life of a connection */

static void free_buffers(struct connection *connection) {
    free(connection->head);
    free(connection->content);
    connection->head = connection->content = NULL;
    connection->head_n = connection->content_n = connection->content_room = 0;
}

void server_drop(struct connection *connection) {
    struct server *server = connection->server;
    struct connection **at = &server->connections;

    while (*at != connection)
        at = &(*at)->next;
    *at = connection->next;
    server->n--;
    loop_unwatch(server->loop, &connection->socket);
    close(connection->socket.fd);
    free_buffers(connection);
    free(connection);
}

static void drop_and_tell(struct connection *connection) {
    struct server *server = connection->server;
    const bool is_stream = connection->state == STREAM;

    if (is_stream)
        server->closed(server, connection);
    server_drop(connection);
}

static void wait_for(struct connection *connection, enum state state) {
    connection->state = state;
    connection->since_ms = loop_now_ms();
}

static void make_room(struct server *server) {
    struct connection *oldest = NULL;

    for (struct connection *each = server->connections; each; each = each->next)
        if (!each->is_known)
            oldest = each;
    if (oldest)
        server_drop(oldest);
}

static void set_options(int fd) {
    static const struct {
        int level, name, value;
    } options[] = {
        { IPPROTO_TCP, TCP_NODELAY, 1 },           { SOL_SOCKET, SO_KEEPALIVE, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, DEAD_S / 2 }, { IPPROTO_TCP, TCP_KEEPINTVL, DEAD_S / 6 },
        { IPPROTO_TCP, TCP_KEEPCNT, 3 },           { IPPROTO_TCP, TCP_USER_TIMEOUT, DEAD_S * 1000 },
    };

    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static void on_listener(struct loop_watch *watch, uint32_t events) {
    struct server *server = loop_owner(watch, struct server, listener);
    const int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct connection *connection;

    (void)events;
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            loop_unwatch(server->loop, watch); /* until the next sweep, else it fires for ever */
        return;
    }
    if (server->n >= server->limit)
        make_room(server);
    connection = server->n < server->limit ? calloc(1, sizeof *connection) : NULL;
    if (!connection) {
        close(fd);
        return;
    }
    connection->server = server;
    connection->socket = (struct loop_watch){ .fd = fd, .ready = on_socket };
    connection->next = server->connections;
    server->connections = connection;
    server->n++;
    set_options(fd);
    wait_for(connection, HEAD);
    if (loop_watch(server->loop, &connection->socket, EPOLLIN))
        server_drop(connection);
}

/* ---- writing */

/* All of it or nothing: an answer is smaller than the buffer of any socket that is read from. */
static bool send_whole(struct connection *connection, const char *text) {
    const size_t n = strlen(text);

    return send(connection->socket.fd, text, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static const char *reason(int status) {
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        { 200, "OK" },           { 204, "No Content" },
        { 400, "Bad Request" },  { 403, "Forbidden" },
        { 404, "Not Found" },    { 405, "Method Not Allowed" },
        { 409, "Conflict" },     { 413, "Content Too Large" },
        { 414, "URI Too Long" }, { 417, "Expectation Failed" },
        { 431, "Too Large" },    { 503, "Service Unavailable" },
    };

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "";
}

/* The rest that the peer sends is read and dropped: a close with unread bytes would take the answer
 * back. */
static void close_gently(struct connection *connection) {
    free_buffers(connection);
    shutdown(connection->socket.fd, SHUT_WR);
    loop_watch(connection->server->loop, &connection->socket, EPOLLIN); /* there is always room */
    wait_for(connection, CLOSING);
}

void server_answer(struct connection *connection, int status, const char *sentence) {
    const bool closes = connection->request.closes || (status >= 400 && status != 409);
    char text[512];

    if (sentence)
        snprintf(text, sizeof text,
                 "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n%s\r\n%s\n",
                 status, reason(status), strlen(sentence) + 1,
                 closes ? "Connection: close\r\n" : "", sentence);
    else
        snprintf(text, sizeof text, "HTTP/1.1 %d %s\r\n%s\r\n", status, reason(status),
                 closes ? "Connection: close\r\n" : "");
    if (!send_whole(connection, text) || closes)
        close_gently(connection);
    else
        wait_for(connection, HEAD);
}

bool server_begin(struct connection *connection, enum server_use use) {
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
                               "Cache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n";

    free_buffers(connection);
    if (!send_whole(connection, head)) {
        close_gently(connection);
        return false;
    }
    wait_for(connection, use == SERVER_STREAM ? STREAM : GANG);
    return true;
}

long server_write(struct connection *connection, const void *bytes, size_t n) {
    const ssize_t written = send(connection->socket.fd, bytes, n, MSG_NOSIGNAL);

    if (written >= 0)
        return written;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    drop_and_tell(connection);
    return -1;
}

void server_want(struct connection *connection, bool wants) {
    loop_watch(connection->server->loop, &connection->socket, EPOLLIN | (wants ? EPOLLOUT : 0));
}

void server_finish(struct connection *connection) {
    send_whole(connection, "0\r\n\r\n");
    close_gently(connection);
}

void server_tell(struct connection *connection, enum server_line which, const char *line) {
    char text[128];

    snprintf(text, sizeof text, "%zx\r\n%s\n\r\n%s", strlen(line) + 1, line,
             which == SERVER_LAST_LINE ? "0\r\n\r\n" : "");
    if (!send_whole(connection, text) || which == SERVER_LAST_LINE)
        close_gently(connection);
}

void server_tell_all(struct server *server, enum server_line which, const char *line) {
    for (struct connection *each = server->connections; each; each = each->next)
        if (each->state == GANG)
            server_tell(each, which, line);
}

/* ---- reading */

static bool bears_key(const struct server *server, const struct request *request) {
    const size_t n = strlen(server->key);
    unsigned char difference = strlen(request->key) != n;

    for (size_t i = 0; i < n; i++) /* request->key is longer than any key, and zeros follow */
        difference |= (unsigned char)(server->key[i] ^ request->key[i]);
    return difference == 0;
}

/* Drops the first bytes of what has come. */
static void shift_head(struct connection *connection, size_t n) {
    connection->head_n -= n;
    memmove(connection->head, connection->head + n, connection->head_n);
}

/* Returns false when the connection has no more to say. */
static bool take_head(struct connection *connection, size_t seen) {
    struct server *server = connection->server;
    const int n = request_read(connection->head, connection->head_n, seen, &connection->request);

    if (n == 0)
        return false;
    if (n < 0) {
        connection->request.closes = true;
        server_answer(connection, -n, "this is no request that a shim takes");
        return false;
    }
    if (strcmp(connection->request.method, "POST") != 0) {
        connection->request.closes = true;
        server_answer(connection, 405, "a shim takes POST alone");
        return false;
    }
    if (connection->request.length > REQUEST_BODY_MAX) {
        server_answer(connection, 413, "the body has more than 1 MiB");
        return false;
    }
    if (!bears_key(server, &connection->request)) {
        server_answer(connection, 403, "the request does not bear the key of this task");
        return false;
    }
    connection->is_known = true;
    shift_head(connection, (size_t)n);
    body_begin(&connection->body, &connection->request);
    connection->content_n = 0;
    wait_for(connection, BODY);
    if (connection->request.wants_continue && connection->body.state != BODY_DONE &&
        !send_whole(connection, "HTTP/1.1 100 Continue\r\n\r\n")) {
        close_gently(connection);
        return false;
    }
    return true;
}

static bool add_content(struct connection *connection, const char *bytes, size_t n) {
    const size_t needed = connection->content_n + n;

    if (needed > REQUEST_BODY_MAX)
        return false;
    if (needed > connection->content_room) {
        const size_t doubled = connection->content_room * 2;
        const size_t room = needed > doubled ? needed : doubled;
        char *wider = realloc(connection->content, room);

        if (!wider)
            return false;
        connection->content = wider;
        connection->content_room = room;
    }
    if (n)
        memcpy(connection->content + connection->content_n, bytes, n);
    connection->content_n = needed;
    return true;
}

/* Returns true when the request was whole, and was asked. */
static bool take_body(struct connection *connection) {
    struct server *server = connection->server;
    struct body *body = &connection->body;

    while (connection->head_n && body->state < BODY_DONE) {
        const char *bytes;
        size_t n;
        const size_t taken = body_take(body, connection->head, connection->head_n, &bytes, &n);

        if (!add_content(connection, bytes, n)) {
            server_answer(connection, 413, "the body has more than 1 MiB");
            return false;
        }
        shift_head(connection, taken);
    }
    if (body->state == BODY_WRONG)
        server_answer(connection, 400, "the body is not in chunks as its head says");
    if (body->state != BODY_DONE)
        return false;
    server->asked(server, connection, &connection->request,
                  connection->content ? connection->content : "", connection->content_n);
    return true;
}

/* Takes the requests that are in the buffer, of which the first may be known in part. */
static void take_requests(struct connection *connection, size_t seen) {
    do {
        if (connection->state == HEAD && !take_head(connection, seen))
            return;
        if (!take_body(connection))
            return;
        seen = 0;
    } while (connection->state == HEAD && connection->head_n > 0);
}

static void take_bytes(struct connection *connection) {
    size_t seen = connection->head_n;
    ssize_t n;

    if (!connection->head && !(connection->head = malloc(REQUEST_HEAD_MAX))) {
        server_drop(connection);
        return;
    }
    n = recv(connection->socket.fd, connection->head + seen, REQUEST_HEAD_MAX - seen, 0);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            server_drop(connection);
        return;
    }
    if (connection->state == HEAD && seen == 0)
        connection->since_ms = loop_now_ms();
    connection->head_n += (size_t)n;
    take_requests(connection, connection->state == HEAD ? seen : 0);
}

/* What comes where nothing is expected any more says at most that the peer is gone. */
static void pass_over(struct connection *connection) {
    char bytes[4096];
    const ssize_t n = recv(connection->socket.fd, bytes, sizeof bytes, 0);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        drop_and_tell(connection);
}

static void on_socket(struct loop_watch *watch, uint32_t events) {
    struct connection *connection = loop_owner(watch, struct connection, socket);
    struct server *server = connection->server;

    if (connection->state == HEAD || connection->state == BODY)
        take_bytes(connection);
    else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        pass_over(connection);
    else if (connection->state == STREAM)
        server->writable(server, connection);
}

/* ---- the server */

static bool is_overdue(const struct connection *connection, int64_t now) {
    const int64_t age = now - connection->since_ms;

    switch (connection->state) {
    case HEAD: return age > (connection->head_n ? HEAD_MS : IDLE_MS);
    case BODY: return age > BODY_MS;
    case CLOSING: return age > CLOSING_MS;
    case STREAM:
    case GANG: break; /* TCP notices a peer that is gone */
    }
    return false;
}

static void on_sweep(struct loop_timer *timer) {
    struct server *server = loop_owner(timer, struct server, sweep);
    const int64_t now = loop_now_ms();

    for (struct connection *each = server->connections, *next; each; each = next) {
        next = each->next;
        if (is_overdue(each, now))
            server_drop(each);
    }
    if (server->listener.fd < 0)
        server->listener.fd = listen_at(server->port);
    if (server->listener.fd >= 0)
        loop_watch(server->loop, &server->listener, EPOLLIN);
    loop_after(server->loop, timer, server->listener.fd < 0 ? LISTEN_AGAIN_MS : SWEEP_MS);
}

void server_open(struct server *server) {
    server->listener = (struct loop_watch){ .fd = -1, .ready = on_listener };
    server->sweep = (struct loop_timer){ .fire = on_sweep };
    on_sweep(&server->sweep);
    if (server->listener.fd < 0)
        fprintf(stderr, "shim: port %u: %s; it is tried again\n", server->port, strerror(errno));
}

bool server_is_quiet(const struct server *server) {
    for (const struct connection *each = server->connections; each; each = each->next)
        if (each->state == CLOSING)
            return false;
    return true;
}
