/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server of a cluster: requests that survive what networks and servers do.
 *
 * Everything is asynchronous on one event loop. A call starts work and returns a handle; its `done`
 * comes exactly once, from the loop, never from inside the call that started it. api_cancel ends
 * the wait: nothing is called for the handle after it returns, and it may be called from any
 * callback. After `done` (and from within it) the handle is dead. What the server already did stays
 * done.
 *
 * What is asked again, with back-off and jitter, until `tries` or the time is used up: broken
 * connections, 429 (Retry-After is honoured), 5xx, an answer that is cut, and the Conflict of a
 * quota. All calls may be asked again, because asking twice is asking once: names are the caller's,
 * an object that exists already is looked up (`existed`), and what is deleted already is deleted.
 * 401 renews the credentials, once a call.
 *
 * Errors are sentences: 403 names the missing right, 422 the fields that are wrong. Codes:
 *   NOT_FOUND 404; CONFLICT 409, 410; DENIED 401, 403, TLS, no credentials; INVALID 400, 422, other
 *   4xx; EXHAUSTED a body beyond our bounds; UNAVAILABLE the rest, after all tries.
 * A server that has let us in once, and then knows us no more or is not the one that it was, is
 * UNAVAILABLE: a token has expired, or a hotel's portal answers in its place. That passes.
 */
#ifndef BACKEND_KUBERNETES_API_H
#define BACKEND_KUBERNETES_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/kubernetes/kubeconfig.h"
#include "base/error.h"
#include "codec/node.h"

struct event_base;
struct api;
struct api_call;

/* 0 takes the default. */
struct api_options {
    uint32_t connect_ms;  /* 10 s */
    uint32_t deadline_ms; /* 60 s: of one try */
    uint32_t
        idle_ms; /* 90 s: a stream that gives nothing for so long is dead. Log streams have none */
    uint32_t tries;           /* 10 */
    uint32_t first_wait_ms;   /* 200; doubles each time */
    uint32_t longest_wait_ms; /* 15 s; also the most that Retry-After is followed */
    uint32_t page;            /* 250: objects of one answer to a list */
};

/* Takes `config` over (it is zeroed), also where it fails: the client library cannot be loaded, or
 * the configuration cannot be honoured. Nothing is sent yet. */
MUST_CHECK int api_new(struct event_base *loop, struct kubeconfig *config,
                       const struct api_options *options, struct api **out, struct error *err);

/* Cancels every call. May be called from a callback. Takes NULL. Watches and log followers of it
 * have to be freed first. */
void api_free(struct api *api);

const char *api_namespace(const struct api *api); /* of the context */
struct event_base *api_loop(const struct api *api);
const struct api_options *api_options(const struct api *api); /* defaults filled in */

/* A kind of objects, and where they are. Texts are copied by the calls. */
struct api_resource {
    const char *group;     /* "" or NULL: core */
    const char *version;   /* "v1" */
    const char *plural;    /* "pods" */
    const char *namespace; /* NULL: not namespaced, or all namespaces */
};

struct api_answer {
    struct error err;          /* code ERROR_NONE: it worked */
    int status;                /* HTTP's; 0: there was no answer */
    const char *reason;        /* of the Status object: "AlreadyExists", "Forbidden", …; "" */
    const struct node *object; /* what came, valid during the callback; NULL with an error, and for
                                  what was gone already */
    bool is_unknown;           /* with an error: the server may have done it all the same */
    bool existed; /* api_create: it was there before; `object` is what is there. Whether it is ours
                   * the caller sees from its labels */
};

typedef void api_done(void *context, const struct api_answer *answer);

struct api_call *api_get(struct api *api, const struct api_resource *resource, const char *name,
                         api_done *done, void *context);

/* `object` has metadata.name (never generateName) and is copied. */
struct api_call *api_create(struct api *api, const struct api_resource *resource,
                            const struct node *object, api_done *done, void *context);

/* In the place of what is there; `object` has metadata.name and metadata.resourceVersion. CONFLICT:
 * somebody changed it since, or an earlier try was taken and its answer was lost. */
struct api_call *api_update(struct api *api, const struct api_resource *resource,
                            const struct node *object, api_done *done, void *context);

enum api_patch {
    API_PATCH_MERGE,     /* RFC 7386 */
    API_PATCH_STRATEGIC, /* lists are merged by the keys that the kind has for them */
    API_PATCH_APPLY, /* server-side apply, field manager "myelin", forced: creates what is missing
                      */
};

/* `subresource` may be NULL ("status"). */
struct api_call *api_patch(struct api *api, const struct api_resource *resource, const char *name,
                           const char *subresource, enum api_patch kind, const struct node *patch,
                           api_done *done, void *context);

enum api_propagation {
    API_DELETE_BACKGROUND, /* dependents follow by themselves */
    API_DELETE_FOREGROUND, /* the object stays until its dependents are gone */
    API_DELETE_ORPHAN,
};

struct api_delete {
    enum api_propagation propagation;
    int64_t grace_s; /* -1: the object's own; 0: at once */
    const char *uid; /* only this one, not another of the same name; NULL: whichever. CONFLICT where
                        it differs */
    const char *version; /* only if nothing has changed since; NULL: whatever has. CONFLICT as
                            above, and where an earlier try was taken and its answer was lost */
};

/* What is not there is deleted: `object` is NULL then. */
struct api_call *api_delete(struct api *api, const struct api_resource *resource, const char *name,
                            const struct api_delete *how, api_done *done, void *context);

/* Which objects; NULL: all. */
struct api_selector {
    const char *labels; /* "myelin.run=3f2a…" */
    const char *fields; /* "metadata.name=x" */
};

/* All objects, page by page. `item` comes for each; where the server loses the place in the middle
 * it begins again, so the same object may come twice, and the later one is right. On success
 * `object` of the answer has the metadata of the last page (resourceVersion). */
struct api_call *api_list(struct api *api, const struct api_resource *resource,
                          const struct api_selector *selector,
                          void (*item)(void *context, const struct node *object), api_done *done,
                          void *context);

/* The kinds that a group offers, in all its versions, the preferred version first. Of a group that
 * the cluster does not have there are none, which is no error. */
struct api_kind {
    const char *version, *kind, *plural;
    bool namespaced;
};
typedef void api_kinds_done(void *context, const struct error *err, const struct api_kind *kinds,
                            size_t n);
struct api_call *api_discover(struct api *api, const char *group, api_kinds_done *done,
                              void *context);

/* The first of that kind (and version, where it is not NULL), or NULL. */
const struct api_kind *api_kind_find(const struct api_kind *kinds, size_t n, const char *kind,
                                     const char *version);

/* An answer that has no end of its own: bytes as they come. Not asked again once it was open:
 * watch.h, and who follows a log (logstream.h), know where to go on. `bytes` returns false to end
 * it (then `done` comes, without an error). */
struct api_sink {
    void (*opened)(void *context); /* 200 came; may be NULL */
    bool (*bytes)(void *context, const char *bytes, size_t n);
    api_done *done; /* ERROR_NONE: closed cleanly by the server; UNAVAILABLE: cut or idle */
    void *context;
    /* A stream that is not opened is told as that at once, whatever the reason: who follows a
     * thousand of them asks again in his own time, and not ten times each time. */
    bool is_asked_once;
};
enum api_idle { API_IDLE_LIMITED, API_IDLE_FOREVER };
/* `path` with its query: api_path makes the one, api_query adds the other. */
struct api_call *api_stream(struct api *api, const char *path, enum api_idle idle,
                            const struct api_sink *sink);

/* A request to what stands behind the server (`pods/x:7746/proxy/…`), which answers as a stream
 * does. Copied. */
struct api_post {
    const char *path;
    const char *header; /* "Name: value"; NULL: none */
    const char *type;   /* of the body; NULL: text */
    const char *body;   /* not empty */
    size_t body_len;
};
struct api_call *api_post(struct api *api, const struct api_post *post,
                          const struct api_sink *sink);

/* Goes on asking, beyond the tries, while the server is UNAVAILABLE, provided that it has let us in
 * once: what is not done yet has to be done. `trouble` comes once, when the tries are used up; it
 * does not end the call. Who cannot wait cancels it. */
void api_insist(struct api_call *call, void (*trouble)(void *context, const struct error *err),
                void *context);
/* It has, a process before this one. */
void api_was_let_in(struct api *api);

/* Takes NULL. */
void api_cancel(struct api_call *call);

/* Appends "/apis/kubeflow.org/v1/namespaces/x/tfjobs/name/sub", each part escaped. name and
 * subresource may be NULL. */
MUST_CHECK int api_path(const struct api_resource *resource, const char *name,
                        const char *subresource, struct buf *out, struct error *err);
/* Appends "?name=value" or "&name=value", the value escaped. A NULL value appends nothing. */
MUST_CHECK int api_query(const char *name, const char *value, struct buf *out, struct error *err);

#endif
