/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/rendezvous.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLIENT_TIMEOUT_S = 30 };

struct rendezvous {
    struct evhttp *http;
    struct meeting *meeting;
};

static void reply(struct evhttp_request *request, const struct meeting_answer *answer) {
    struct evbuffer *out = evbuffer_new();
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    char length[24];

    if (!out)
        abort();
    /* Horovod's client compares the header's name by case and opens a connection a request. */
    snprintf(length, sizeof length, "%zu", answer->length);
    evhttp_add_header(headers, "Content-Length", length);
    evhttp_add_header(headers, "Connection", "close");
    evbuffer_add(out, answer->body, answer->length);
    evhttp_send_reply(request, answer->status, answer->reason, out);
    evbuffer_free(out);
}

static void on_request(struct evhttp_request *request, void *arg) {
    static const struct {
        enum evhttp_cmd_type command;
        enum meeting_method method;
    } methods[] = { { EVHTTP_REQ_PUT, MEETING_PUT },
                    { EVHTTP_REQ_GET, MEETING_GET },
                    { EVHTTP_REQ_DELETE, MEETING_DELETE } };
    struct rendezvous *r = arg;
    struct evbuffer *in = evhttp_request_get_input_buffer(request);
    const size_t n = evbuffer_get_length(in);
    enum meeting_method method = MEETING_OTHER;
    struct meeting_answer answer;

    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (methods[i].command == evhttp_request_get_command(request))
            method = methods[i].method;
    answer = meeting_ask(r->meeting, method, evhttp_request_get_uri(request),
                         n ? (const char *)evbuffer_pullup(in, -1) : "", n);
    reply(request, &answer);
}

int rendezvous_new(struct event_base *base, uint16_t port, const struct meeting_limits *limits,
                   struct rendezvous **out, struct error *err) {
    struct rendezvous *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->meeting = meeting_new(limits);
    r->http = evhttp_new(base);
    if (!r->http || !r->meeting)
        abort();
    evhttp_set_allowed_methods(r->http, EVHTTP_REQ_PUT | EVHTTP_REQ_GET | EVHTTP_REQ_DELETE);
    evhttp_set_max_headers_size(r->http, 8192);
    /* Beyond this evhttp refuses by itself, before it has read the body. */
    evhttp_set_max_body_size(r->http, (ev_ssize_t)limits->body_bytes);
    evhttp_set_timeout(r->http, CLIENT_TIMEOUT_S);
    evhttp_set_gencb(r->http, on_request, r);
    if (evhttp_bind_socket(r->http, "127.0.0.1", port) < 0) {
        error_set_errno(err, errno, "cannot serve Horovod's rendezvous on port %u", port);
        rendezvous_free(r);
        return -1;
    }
    *out = r;
    return 0;
}

void rendezvous_free(struct rendezvous *r) {
    if (!r)
        return;
    evhttp_free(r->http);
    meeting_free(r->meeting);
    free(r);
}
