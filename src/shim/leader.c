/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/leader.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    AGAIN_MS = 2000,    /* between two connections */
    SILENCE_MS = 20000, /* of one that should say something every five seconds */
    LOOK_MS = 1000,     /* a supervisor may come and go between two looks that far apart */
    LATE_MS = 2000,     /* of a look: we were stopped, or the machine was */
    REQUEST_MAX = 512
};

static void connect_again(struct leader *leader) {
    if (leader->socket.fd >= 0) {
        loop_unwatch(leader->loop, &leader->socket);
        close(leader->socket.fd);
        leader->socket.fd = -1;
    }
    loop_after(leader->loop, &leader->again, AGAIN_MS);
}

/* ---- the connection */

/* What a new connection takes whole: its buffer is empty, and larger. */
static bool send_request(const struct leader *leader) {
    char request[REQUEST_MAX];
    const int n = snprintf(request, sizeof request,
                           "POST /gang HTTP/1.1\r\nHost: %s\r\nMyelin-Key: %s\r\n"
                           "Content-Length: 0\r\nConnection: close\r\n\r\n",
                           leader->name, leader->key);

    return n < (int)sizeof request &&
           send(leader->socket.fd, request, (size_t)n, MSG_NOSIGNAL) == n;
}

static void hear(struct leader *leader, const char *bytes, size_t n) {
    const int64_t now = loop_now_ms();

    while (n > 0) {
        const size_t room = sizeof leader->line - leader->n, some = n < room ? n : room;
        size_t taken;

        memcpy(leader->line + leader->n, bytes, some);
        leader->n += some;
        taken = vigil_hear(&leader->vigil, leader->line, leader->n, now);
        /* A line that is longer than any of ours says nothing, and neither does its rest. */
        if (taken == 0 && leader->n == sizeof leader->line)
            taken = leader->n;
        memmove(leader->line, leader->line + taken, leader->n - taken);
        leader->n -= taken;
        bytes += some;
        n -= some;
    }
}

static void on_socket(struct loop_watch *watch, uint32_t events) {
    struct leader *leader = loop_owner(watch, struct leader, socket);
    char bytes[1024];
    ssize_t n;

    if (!leader->is_asked) {
        leader->is_asked = send_request(leader);
        if (!leader->is_asked || loop_watch(leader->loop, watch, EPOLLIN))
            connect_again(leader);
        return;
    }
    (void)events;
    n = read(watch->fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        hear(leader, bytes, (size_t)n);
    if (n > 0)
        loop_after(leader->loop, &leader->again, SILENCE_MS);
    else
        connect_again(leader);
}

static void on_lookup(struct lookup *lookup) {
    struct leader *leader = loop_owner(lookup, struct leader, lookup);
    struct sockaddr *address = (struct sockaddr *)&lookup->address;
    const int family = address->sa_family;

    /* The port has the same place in both. */
    if (lookup->length && (family == AF_INET || family == AF_INET6))
        ((struct sockaddr_in *)&lookup->address)->sin_port = htons(leader->port);
    else
        lookup->length = 0;
    leader->socket.fd =
        lookup->length ? socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    leader->is_asked = false;
    leader->n = 0;
    if (leader->socket.fd < 0 ||
        (connect(leader->socket.fd, address, lookup->length) && errno != EINPROGRESS) ||
        loop_watch(leader->loop, &leader->socket, EPOLLOUT))
        connect_again(leader);
    else
        loop_after(leader->loop, &leader->again, SILENCE_MS);
}

/* There is no connection, or it has been silent for too long. What the leader said of its end is
 * its last word. */
static void on_again(struct loop_timer *timer) {
    struct leader *leader = loop_owner(timer, struct leader, again);

    if (leader->vigil.ended_ms >= 0)
        return;
    if (leader->socket.fd >= 0 || lookup_ask(&leader->lookup, leader->name))
        connect_again(leader);
}

/* ---- the verdict */

static void on_look(struct loop_timer *timer) {
    struct leader *leader = loop_owner(timer, struct leader, look);
    const int64_t now = loop_now_ms();
    const char *why;
    int64_t wait;

    /* What the leader said while we stood still has not been read yet. */
    if (leader->is_watched(leader) || now - timer->due_ms > LATE_MS)
        vigil_watched(&leader->vigil, now);
    why = vigil_verdict(&leader->vigil, now, &wait);
    if (why) {
        leader_stop(leader);
        leader->lost(leader, why);
    } else {
        loop_after(leader->loop, timer, wait < LOOK_MS ? wait : LOOK_MS);
    }
}

void leader_watch(struct leader *leader, struct loop *loop, const struct vigil_limits *limits) {
    leader->loop = loop;
    leader->socket = (struct loop_watch){ .fd = -1, .ready = on_socket };
    leader->again = (struct loop_timer){ .fire = on_again };
    leader->look = (struct loop_timer){ .fire = on_look };
    lookup_init(&leader->lookup, loop, on_lookup);
    vigil_begin(&leader->vigil, limits, loop_now_ms());
    loop_after(loop, &leader->again, 0);
    loop_after(loop, &leader->look, 0);
}

void leader_stop(struct leader *leader) {
    if (!leader->loop)
        return;
    connect_again(leader);
    loop_cancel(leader->loop, &leader->again);
    loop_cancel(leader->loop, &leader->look);
    lookup_cancel(&leader->lookup);
}
