/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that does what a script says: it listens on loopback, answers each request with the next
 * step, in the order in which requests come, and keeps what it was asked. It runs on the loop of
 * the test. Where several ask at once, steps are kept for the requests that peer_for names.
 *
 * It does what servers do to clients: answers whole, in pieces, cut, never, or with nonsense.
 */
#ifndef TESTS_UNIT_PEER_H
#define TESTS_UNIT_PEER_H

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct peer;

enum peer_then {
    PEER_KEEP,  /* the connection serves the next request */
    PEER_CLOSE, /* in good order, right after the last byte */
    PEER_RESET, /* the client sees "connection reset" */
};

struct peer *peer_new(struct event_base *loop);
void peer_free(struct peer *peer);
uint16_t peer_port(const struct peer *peer);

/* Stops listening, or listens again at the same port. */
void peer_shut(struct peer *peer);
void peer_open(struct peer *peer);

/* The next step: an answer with its length. `headers` are whole lines ("Retry-After: 1\r\n") or "".
 */
void peer_say(struct peer *peer, int status, const char *headers, const char *body);
/* The next step: these bytes. A form feed parts them into pieces that come one after the other. */
void peer_raw(struct peer *peer, const char *bytes, enum peer_then then);
/* The next step: an endless answer, of which one chunk is sent for each piece, and which then ends
 * as told. */
void peer_stream(struct peer *peer, const char *pieces, enum peer_then then);
/* The same that stays open for ever after its pieces. */
void peer_hang(struct peer *peer, const char *pieces);

/* The steps that follow are for requests whose first line has `part` in it ("POST /api"), which
 * outlives the peer; NULL: for whichever comes. */
void peer_for(struct peer *peer, const char *part);

/* Sends more on the stream that hangs for such a request, or ends it as told; both wait for the
 * request. */
void peer_more(struct peer *peer, const char *part, const char *bytes);
void peer_end(struct peer *peer, const char *part, enum peer_then then);

/* What was asked so far: head and body of each request. */
size_t peer_count(const struct peer *peer);
const char *peer_request(const struct peer *peer, size_t i);

/* Turns the loop until *flag, and fails the test where that never comes. */
void run_until(struct event_base *loop, const int *flag);

#endif
