/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/rendezvous.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_SLOTS = 64, /* a power of two, as all sizes of the table are */
    CLIENT_TIMEOUT_S = 30,
    ADDRESS_BYTES = 136, /* of one peer, in Horovod's encoding */
    SCOPES = 6,
    KEYS_PER_RANK = 2,
    PROCESS_SETS = 16, /* that a program may reasonably make */
    HTTP_PAYLOAD_TOO_LARGE = 413,
    HTTP_URI_TOO_LONG = 414,
    HTTP_INSUFFICIENT_STORAGE = 507,
};

/* Open addressing; a deleted key keeps its name with no body, so that chains hold. Keys
 * that come back take their old slot, and names are bounded in number like keys. */
struct slot {
    char *key; /* NULL: never used */
    char *body;
    size_t len;
    bool present;
};

struct rendezvous {
    struct evhttp *http;
    struct rendezvous_limits limits;
    struct slot *slots;
    size_t n_slots, n_used, bytes;
};

struct rendezvous_limits rendezvous_limits_for(uint32_t n_tasks) {
    const size_t n = n_tasks;

    return (struct rendezvous_limits){
        .keys = n * SCOPES * KEYS_PER_RANK * PROCESS_SETS + 1024,
        .key_bytes = 512,
        .body_bytes = n * ADDRESS_BYTES + 4096,
        .all_bytes = n * n * ADDRESS_BYTES * SCOPES * 2 + (16u << 20),
    };
}

static uint64_t hash(const char *text) {
    uint64_t h = 14695981039346656037u; /* FNV-1a */

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* The slot of the key, or the free one where it would be. */
static struct slot *find(const struct rendezvous *r, const char *key) {
    size_t i = (size_t)hash(key) & (r->n_slots - 1);

    while (r->slots[i].key && strcmp(r->slots[i].key, key) != 0)
        i = (i + 1) & (r->n_slots - 1);
    return &r->slots[i];
}

static void grow(struct rendezvous *r) {
    struct rendezvous larger = *r;

    larger.n_slots = r->n_slots ? r->n_slots * 2 : FIRST_SLOTS;
    larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots)
        abort();
    for (size_t i = 0; i < r->n_slots; i++)
        if (r->slots[i].key)
            *find(&larger, r->slots[i].key) = r->slots[i];
    free(r->slots);
    *r = larger;
}

static void reply(struct evhttp_request *request, int status, const char *reason, const char *body,
                  size_t n) {
    struct evbuffer *out = evbuffer_new();
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    char length[24];

    if (!out)
        abort();
    /* Horovod's client compares the header's name by case and opens a connection a request. */
    snprintf(length, sizeof length, "%zu", n);
    evhttp_add_header(headers, "Content-Length", length);
    evhttp_add_header(headers, "Connection", "close");
    evbuffer_add(out, body, n);
    evhttp_send_reply(request, status, reason, out);
    evbuffer_free(out);
}

static void put(struct rendezvous *r, struct evhttp_request *request, const char *path) {
    struct evbuffer *in = evhttp_request_get_input_buffer(request);
    const size_t n = evbuffer_get_length(in);
    struct slot *slot;
    char *body;

    if (n > r->limits.body_bytes) {
        reply(request, HTTP_PAYLOAD_TOO_LARGE, "Payload Too Large", "", 0);
        return;
    }
    slot = find(r, path);
    if ((!slot->key && r->n_used >= r->limits.keys) ||
        r->bytes - slot->len + n > r->limits.all_bytes) {
        reply(request, HTTP_INSUFFICIENT_STORAGE, "Insufficient Storage", "", 0);
        return;
    }
    body = malloc(n + 1);
    if (!body)
        abort();
    evbuffer_remove(in, body, n);
    free(slot->body);
    r->bytes += n - slot->len;
    slot->body = body;
    slot->len = n;
    slot->present = true;
    if (!slot->key) {
        slot->key = strdup(path);
        if (!slot->key)
            abort();
        if (++r->n_used * 2 > r->n_slots)
            grow(r);
    }
    reply(request, HTTP_OK, "OK", "", 0);
}

static void get(const struct rendezvous *r, struct evhttp_request *request, const char *path) {
    const struct slot *slot = find(r, path);

    if (slot->present)
        reply(request, HTTP_OK, "OK", slot->body, slot->len);
    else
        reply(request, HTTP_NOTFOUND, "Not Found", "", 0);
}

static void drop(struct rendezvous *r, struct evhttp_request *request, const char *path) {
    struct slot *slot = find(r, path);

    free(slot->body);
    r->bytes -= slot->len;
    slot->body = NULL;
    slot->len = 0;
    slot->present = false;
    reply(request, HTTP_OK, "OK", "", 0);
}

/* "/scope/key": two parts, both with something in them. */
static bool is_scope_and_key(const char *path) {
    const char *second = path[0] == '/' ? strchr(path + 1, '/') : NULL;

    return second && second > path + 1 && second[1] != '\0' && !strchr(second + 1, '/');
}

static void on_request(struct evhttp_request *request, void *arg) {
    struct rendezvous *r = arg;
    const char *path = evhttp_request_get_uri(request);

    if (strlen(path) > r->limits.key_bytes) {
        reply(request, HTTP_URI_TOO_LONG, "URI Too Long", "", 0);
        return;
    }
    if (!is_scope_and_key(path)) {
        reply(request, HTTP_BADREQUEST, "Bad Request", "", 0);
        return;
    }
    switch ((int)evhttp_request_get_command(request)) {
    case EVHTTP_REQ_PUT: put(r, request, path); break;
    case EVHTTP_REQ_GET: get(r, request, path); break;
    case EVHTTP_REQ_DELETE: drop(r, request, path); break;
    default: reply(request, HTTP_BADMETHOD, "Method Not Allowed", "", 0); break;
    }
}

int rendezvous_new(struct event_base *base, uint16_t port, const struct rendezvous_limits *limits,
                   struct rendezvous **out, struct error *err) {
    struct rendezvous *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->limits = *limits;
    grow(r);
    r->http = evhttp_new(base);
    if (!r->http)
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
    for (size_t i = 0; i < r->n_slots; i++) {
        free(r->slots[i].key);
        free(r->slots[i].body);
    }
    free(r->slots);
    free(r);
}
