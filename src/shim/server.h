/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small server of HTTP/1.1 on the loop. It trusts nobody who does not bear the key:
 *
 *   1. Requests are bounded (request.h), and so is the time that one may take to come. Memory for a
 *      body is taken only for a request with the key, which is compared in constant time.
 *   2. Connections are bounded. When there are too many, the oldest that never bore the key goes.
 *   3. Nothing is waited for: an answer that the socket does not take at once ends the connection,
 *      but for a stream, which is told when there is room again.
 */
#ifndef SHIM_SERVER_H
#define SHIM_SERVER_H

#include "shim/loop.h"
#include "shim/request.h"

struct connection;

struct server {
    struct loop *loop;
    const char *key;
    uint16_t port;
    size_t limit; /* of connections */

    /* A request with the key has come whole. It is answered by one of the calls below, none of
     * which frees its connection; server_drop and server_write, which may, are not for here. */
    void (*asked)(struct server *server, struct connection *connection,
                  const struct request *request, const char *body, size_t n);
    /* A stream: there is room; it has ended, and the connection is no more. */
    void (*writable)(struct server *server, struct connection *connection);
    void (*closed)(struct server *server, struct connection *connection);

    struct loop_watch listener;
    struct loop_timer sweep;
    struct connection *connections;
    size_t n;
};

/* Begins to listen; a port that is taken is tried again from time to time. The members above have
 * been set. */
void server_open(struct server *server);

/* Answers without a body but that sentence, or without any where it is NULL. */
void server_answer(struct connection *connection, int status, const char *sentence);

/* Begins an answer in chunks that goes on. Returns false if nobody hears it any more. A stream
 * is asked by `writable` to write; others of this kind are written to by server_tell and
 * server_tell_all alone. */
enum server_use { SERVER_STREAM, SERVER_GANG };
bool server_begin(struct connection *connection, enum server_use use);

/* Writes to a stream as much as it takes, which may be nothing. Returns -1 when it has ended:
 * `closed` was called. */
long server_write(struct connection *connection, const void *bytes, size_t n);

/* Whether `writable` is called while there is room. */
void server_want(struct connection *connection, bool wants);

/* Ends a stream at the end of a chunk; `closed` is not called. */
void server_finish(struct connection *connection);

/* Ends a connection now; `closed` is not called. */
void server_drop(struct connection *connection);

/* Tells a line to one that asked for the gang, or to all of them; the last one ends their answers.
 */
enum server_line { SERVER_LINE, SERVER_LAST_LINE };
void server_tell(struct connection *connection, enum server_line which, const char *line);
void server_tell_all(struct server *server, enum server_line which, const char *line);

/* Whether every answer has reached who asked, so far as one can know. */
bool server_is_quiet(const struct server *server);

#endif
