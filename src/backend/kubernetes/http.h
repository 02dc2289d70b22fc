/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests on the event loop; the only user of libcurl (curl.h).
 *
 * Connections are kept and shared by the requests of one `struct http`, HTTP/2 where the server
 * has it. Nothing is asked twice here: api.h decides that.
 *
 * A request is either whole (its body is gathered, up to body_max, and given with `done`, within
 * deadline_ms) or a stream (`bytes` is set: there is no deadline, but idle_ms without a byte end
 * it). `done` comes once, from the loop, unless http_cancel was called; the handle is dead from
 * then on. http_send, http_cancel and http_free may be called from every callback.
 *
 * Errors: UNAVAILABLE (no connection, cut, too slow), DENIED (the certificates do not fit),
 * EXHAUSTED (a body that is too large), INVALID (an address that is none).
 */
#ifndef BACKEND_KUBERNETES_HTTP_H
#define BACKEND_KUBERNETES_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct event_base;
struct http;
struct http_call;

/* PEM in memory. Has to live as long as the struct http, or until it is set anew. */
struct http_blob {
    const char *data; /* NULL: none */
    size_t len;
};

enum http_verify { HTTP_VERIFY, HTTP_INSECURE };

struct http_options {
    struct http_blob ca; /* none: what the machine trusts */
    enum http_verify verify;
    const char *tls_server_name; /* NULL: that of the URL. "name" as the certificate has it */
    const char *proxy;           /* NULL: what the environment says; "": none */
    uint32_t connect_ms;
};

struct http_answer {
    struct error err; /* ERROR_NONE: an answer came whole, whatever its status */
    int status;       /* 0: none came */
    const char *body; /* NUL-terminated; of a stream that was refused (not 2xx) too */
    size_t len;
    const char *content_type; /* "" where none came */
    int64_t retry_after_s;    /* -1: not told */
    bool was_sent;            /* some of the request, at least */
};

struct http_request {
    const char *method;           /* "GET" */
    const char *url;              /* copied, as all of these */
    const char *accept;           /* NULL: all */
    const char *content_type;     /* of the body */
    const char *authorization;    /* the header's value: "Bearer …"; NULL: none */
    const char *extra_headers[2]; /* "Name: value"; NULL: none */
    const char *body;
    size_t body_len;
    uint32_t deadline_ms; /* of a whole request */
    uint32_t idle_ms;     /* of a stream; 0: it may be silent for ever */
    size_t body_max;
    /* Set for a stream: parts of a body with a 2xx status, as they come. False ends it. */
    bool (*bytes)(void *context, const char *bytes, size_t n);
    void (*opened)(
        void *context); /* of a stream: a 2xx came, before its first bytes. May be NULL */
    void (*done)(void *context, const struct http_answer *answer);
    void *context;
};

MUST_CHECK int http_new(struct event_base *loop, const struct http_options *options,
                        struct http **out, struct error *err);

/* Cancels all requests. Takes NULL. */
void http_free(struct http *http);

/* Who this client is, for connections from now on. */
void http_identify(struct http *http, struct http_blob certificate, struct http_blob key);

struct http_call *http_send(struct http *http, const struct http_request *request);

/* Nothing is called for it any more. Takes NULL. */
void http_cancel(struct http_call *call);

#endif
