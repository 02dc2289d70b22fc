/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of api.h: a call, and the loop that asks until there is an answer that counts. What an
 * operation makes of that answer is its `settle`, which ends the call (api_call_finish) or asks for
 * something else (api_call_ask).
 */
#ifndef BACKEND_KUBERNETES_API_CALL_H
#define BACKEND_KUBERNETES_API_CALL_H

#include <sys/queue.h>

#include "backend/kubernetes/api.h"
#include "backend/kubernetes/http.h"
#include "base/buf.h"

struct event;

enum {
    API_PATH_MAX = 64 << 10,
    API_SENT_MAX = 8 << 20,  /* etcd takes less */
    API_BODY_MAX = 64 << 20, /* a page of large objects */
};

struct discovery;

struct api_call {
    TAILQ_ENTRY(api_call) link;
    struct api *api;
    struct http_call *http; /* NULL: nothing is under way */
    struct event *step;     /* the next try */
    bool *was_freed;        /* set to true when the call is freed, where it is not NULL */

    /* what is asked now */
    const char *method, *content_type;
    struct buf path, sent;
    char asked[200]; /* "create tfjobs in namespace x": for sentences */
    uint32_t tries;
    uint32_t generation; /* of the credential that was sent */
    bool is_renewed, is_waiting;
    struct error refused; /* why there are no credentials */
    /* Where it is insisted on: told once, when the tries are used up. NULL: it is not. */
    void (*trouble)(void *context, const struct error *err);
    void *trouble_context;
    bool has_told_trouble;
    bool is_unknown;    /* a try that was sent had no answer that counts */
    struct arena arena; /* of the answer that is being settled */

    /* Decides what an answer means. It may free the call. */
    void (*settle)(struct api_call *call, struct api_answer *answer);
    api_done *done;
    void *context;

    /* of one operation each */
    struct buf base;  /* the path to come back to */
    char *name;       /* create: what to look up */
    char *header;     /* post: "Name: value" */
    uint32_t lookups; /* create */
    void (*item)(void *context, const struct node *object);
    char *labels, *fields;
    bool is_whole; /* list: without pages, because the server lost the place once */
    struct discovery *discovery;
    struct api_sink sink;
    enum api_idle idle;
    bool is_stream, was_open;
};

struct api_call *api_call_new(struct api *api, const char *verb,
                              const struct api_resource *resource, const char *name,
                              const char *subresource);

/* Asks, from the loop, with all tries. */
void api_call_ask(struct api_call *call, const char *method);

/* Frees the call and tells. */
void api_call_finish(struct api_call *call, const struct api_answer *answer);
void api_call_free(struct api_call *call);

void discovery_free(struct discovery *discovery);

#endif
