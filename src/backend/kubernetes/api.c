/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/api.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/api_call.h"
#include "backend/kubernetes/credential.h"
#include "backend/kubernetes/status.h"
#include "base/clock.h"
#include "codec/json.h"
#include "codec/json_read.h"

#define JSON_TYPE "application/json"

static const struct api_options defaults = {
    .connect_ms = 10000,
    .deadline_ms = 60000,
    .idle_ms = 90000,
    .tries = 10,
    .first_wait_ms = 200,
    .longest_wait_ms = 15000,
    .page = 250,
};

struct api {
    struct event_base *loop;
    struct kubeconfig config;
    struct api_options options;
    struct http *http;
    struct credential *credential;
    char *impersonation; /* a header's line, or NULL */
    bool was_let_in;     /* the server has taken our credentials once */
    TAILQ_HEAD(, api_call) calls;
};

static void *allocate(size_t size) {
    void *memory = calloc(1, size);

    if (!memory)
        abort();
    return memory;
}

/* ---- paths ---- */

static int append_escaped(const char *text, struct buf *out, struct error *err) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

    for (; *text; text++)
        if (strchr(plain, *text) ? buf_append(out, text, 1, err)
                                 : buf_printf(out, err, "%%%02X", (unsigned char)*text))
            return -1;
    return 0;
}

static int append_part(const char *part, struct buf *out, struct error *err) {
    if (!part)
        return 0;
    return buf_append(out, "/", 1, err) || append_escaped(part, out, err) ? -1 : 0;
}

int api_path(const struct api_resource *resource, const char *name, const char *subresource,
             struct buf *out, struct error *err) {
    const bool is_core = !resource->group || !resource->group[0];

    if (buf_printf(out, err, is_core ? "/api" : "/apis") ||
        append_part(is_core ? NULL : resource->group, out, err) ||
        append_part(resource->version, out, err) ||
        append_part(resource->namespace ? "namespaces" : NULL, out, err) ||
        append_part(resource->namespace, out, err) || append_part(resource->plural, out, err) ||
        append_part(name, out, err) || append_part(subresource, out, err))
        return -1;
    return 0;
}

int api_query(const char *name, const char *value, struct buf *out, struct error *err) {
    const char before = strchr(out->data, '?') ? '&' : '?';

    if (!value)
        return 0;
    return buf_printf(out, err, "%c%s=", before, name) || append_escaped(value, out, err) ? -1 : 0;
}

/* ---- one try ---- */

static void try_later(struct api_call *call, uint32_t wait_ms) {
    const struct timeval wait = clock_timeval(wait_ms);

    event_add(call->step, &wait);
}

/* Half of it is chance, so that many clients that were cut at once do not come back at once. */
static uint32_t wait_before(const struct api_call *call, int64_t retry_after_s) {
    const struct api_options *options = &call->api->options;
    uint64_t wait = options->first_wait_ms;

    for (uint32_t i = 1; i < call->tries && wait < options->longest_wait_ms; i++)
        wait *= 2;
    if (retry_after_s > 0 && wait < (uint64_t)retry_after_s * 1000)
        wait = (uint64_t)retry_after_s * 1000;
    else
        wait = wait / 2 + arc4random_uniform((uint32_t)(wait / 2 + 1));
    return wait < options->longest_wait_ms ? (uint32_t)wait : options->longest_wait_ms;
}

/* Of several that are made at once, a quota takes one, and refuses the others so. */
static bool is_quota_busy(const struct api_call *call, const struct api_answer *answer) {
    return answer->status == 409 && strcmp(call->method, "POST") == 0 &&
           strcmp(answer->reason, "Conflict") == 0;
}

/* Whether its tries are not used up, or do not count; the first time that is told. */
static bool has_more_tries(struct api_call *call, const struct error *err) {
    if (call->tries < call->api->options.tries)
        return true;
    if (!call->trouble || !call->api->was_let_in || err->code != ERROR_UNAVAILABLE)
        return false;
    if (!call->has_told_trouble) {
        call->has_told_trouble = true;
        call->trouble(call->trouble_context, err);
    }
    return true;
}

/* Whether what came is to be asked for again; then it will be. */
static bool is_asked_again(struct api_call *call, const struct http_answer *http,
                           const struct api_answer *answer, const struct node *status) {
    const bool is_passing = answer->status == 0 || http->err.code != ERROR_NONE
                                ? answer->err.code == ERROR_UNAVAILABLE
                                : status_is_passing(answer->status) || is_quota_busy(call, answer);
    const bool is_insisted_on = call->trouble && answer->err.code == ERROR_UNAVAILABLE;
    int64_t after_s = http->retry_after_s;

    if (answer->status == 401 && !call->is_renewed &&
        credential_spoil(call->api->credential, call->generation)) {
        call->is_renewed = true;
        event_active(call->step, 0, 0);
        return true;
    }
    /* Who follows a stream knows where to go on. */
    if (!(is_passing || is_insisted_on) || call->was_open || call->sink.is_asked_once ||
        !has_more_tries(call, &answer->err))
        return false;
    if (after_s < 0)
        after_s = status_retry_after_s(status);
    call->is_renewed = false;
    try_later(call, wait_before(call, after_s));
    return true;
}

static void explain_transport(const struct api_call *call, const struct http_answer *http,
                              struct error *err) {
    *err = http->err;
    if (call->tries > 1 && err->code == ERROR_UNAVAILABLE)
        error_wrap(err, "cannot %s: %s (asked %u times)", call->asked, call->api->config.server,
                   call->tries);
    else
        error_wrap(err, "cannot %s: %s", call->asked, call->api->config.server);
}

/* Who was let in before comes back by the same door: until then it is closed, not forbidden. */
static void weigh(struct api *api, struct api_answer *answer) {
    if (answer->err.code == ERROR_NONE && status_code(answer->status) == ERROR_NONE)
        api->was_let_in = true;
    else if (answer->err.code == ERROR_DENIED && answer->status != 403 && api->was_let_in)
        answer->err.code = ERROR_UNAVAILABLE;
}

/* The answer's object, or its error. */
static void understand(struct api_call *call, const struct http_answer *http, struct node *root,
                       struct api_answer *answer) {
    const struct node *status = NULL;
    struct error detail;
    bool is_json =
        http->len > 0 && json_read(http->body, http->len, &call->arena, root, &detail) == 0;

    if (is_json)
        status = root;
    answer->reason = status_reason(status);
    if (http->err.code != ERROR_NONE)
        explain_transport(call, http, &answer->err);
    else if (status_code(http->status) != ERROR_NONE)
        status_explain(http->status, status, call->asked, &answer->err);
    else if (!call->is_stream && !is_json)
        error_set(
            &answer->err, ERROR_INVALID,
            "cannot %s: %s did not answer in JSON%s%.60s: is it the address of an API server?",
            call->asked, call->api->config.server, http->content_type[0] ? " but in " : "",
            http->content_type);
    else
        answer->object = status;
}

/* Whether nobody knows if it was done. Who is too busy says so before doing anything. */
static bool leaves_open(const struct http_answer *http, const struct api_answer *answer) {
    return http->was_sent && answer->err.code == ERROR_UNAVAILABLE && answer->status != 401 &&
           answer->status != 429 && answer->status != 503;
}

static void on_http_done(void *context, const struct http_answer *http) {
    struct api_call *call = context;
    struct api_answer answer = { .status = http->status, .reason = "" };
    struct node root = { .kind = NODE_NULL };

    call->http = NULL;
    arena_release(&call->arena);
    understand(call, http, &root, &answer);
    weigh(call->api, &answer);
    call->is_unknown |= leaves_open(http, &answer);
    answer.is_unknown = call->is_unknown && answer.err.code != ERROR_NONE;
    if (is_asked_again(call, http, &answer, answer.object ? answer.object : &root))
        return;
    call->settle(call, &answer);
}

static bool on_stream_bytes(void *context, const char *bytes, size_t n) {
    struct api_call *call = context;

    return call->sink.bytes(call->sink.context, bytes, n);
}

static void on_stream_open(void *context) {
    struct api_call *call = context;

    call->was_open = call->api->was_let_in = true;
    if (call->sink.opened)
        call->sink.opened(call->sink.context);
}

static void send_now(struct api_call *call) {
    struct api *api = call->api;
    struct error err;
    struct http_blob certificate, key;
    AUTO(buf) url = BUF_INIT(API_PATH_MAX * 2);

    if (buf_printf(&url, &err, "%s%s", api->config.server, call->path.data))
        buf_clear(&url); /* which is refused as an address that is none */
    credential_certificate(api->credential, &certificate, &key);
    http_identify(api->http, certificate, key);
    call->generation = credential_generation(api->credential);
    call->tries++;
    call->http = http_send(api->http,
                           &(struct http_request){
                               .method = call->method,
                               .url = url.data,
                               .accept = call->is_stream ? "*/*" : JSON_TYPE,
                               .content_type = call->content_type,
                               .authorization = credential_authorization(api->credential),
                               .extra_headers = { api->impersonation, call->header },
                               .body = call->sent.len ? call->sent.data : NULL,
                               .body_len = call->sent.len,
                               .deadline_ms = api->options.deadline_ms,
                               .idle_ms = call->idle == API_IDLE_FOREVER ? 0 : api->options.idle_ms,
                               .body_max = API_BODY_MAX,
                               .bytes = call->is_stream ? on_stream_bytes : NULL,
                               .opened = on_stream_open,
                               .done = on_http_done,
                               .context = call,
                           });
}

/* There are no credentials to send: who insists waits until there are. */
static void go_without(struct api_call *call, struct api_answer *answer) {
    const enum error_code code = answer->err.code;

    error_wrap(&answer->err, "cannot %s", call->asked);
    /* Of the object, or of the credentials? Those that were good once are so again. */
    if (call->api->was_let_in && code != ERROR_INVALID && code != ERROR_EXHAUSTED)
        answer->err.code = ERROR_UNAVAILABLE;
    if (call->trouble && answer->err.code == ERROR_UNAVAILABLE) {
        call->tries++;
        if (has_more_tries(call, &answer->err)) {
            call->refused = (struct error){ .code = ERROR_NONE };
            try_later(call, wait_before(call, 0));
            return;
        }
    }
    call->settle(call, answer);
}

static void on_step(evutil_socket_t fd, short what, void *context) {
    struct api_call *call = context;
    struct api_answer answer = { .reason = "" };
    enum credential_state state;

    (void)fd, (void)what;
    answer.err = call->refused;
    if (answer.err.code == ERROR_NONE &&
        credential_prepare(call->api->credential, &state, &answer.err) == 0) {
        call->is_waiting = state == CREDENTIAL_WAIT;
        if (!call->is_waiting)
            send_now(call);
        return;
    }
    go_without(call, &answer);
}

/* Calls go on by themselves: a callback from here might free what is walked. */
static void on_credential(void *context, const struct error *err) {
    struct api *api = context;
    struct api_call *call;

    TAILQ_FOREACH(call, &api->calls, link) {
        if (!call->is_waiting)
            continue;
        call->is_waiting = false;
        call->refused = *err;
        event_active(call->step, 0, 0);
    }
}

/* ---- calls ---- */

struct api_call *api_call_new(struct api *api, const char *verb,
                              const struct api_resource *resource, const char *name,
                              const char *subresource) {
    struct api_call *call = allocate(sizeof *call);
    struct error err;

    *call = (struct api_call){ .api = api,
                               .method = "GET",
                               .path = BUF_INIT(API_PATH_MAX),
                               .sent = BUF_INIT(API_SENT_MAX),
                               .base = BUF_INIT(API_PATH_MAX) };
    call->step = event_new(api->loop, -1, 0, on_step, call);
    if (!call->step)
        abort();
    TAILQ_INSERT_TAIL(&api->calls, call, link);
    if (resource) {
        if (api_path(resource, name, subresource, &call->path, &err))
            buf_clear(&call->path);
        snprintf(call->asked, sizeof call->asked, "%s %.60s%s%.60s%s%.60s", verb, resource->plural,
                 name ? " " : "", name ? name : "", resource->namespace ? " in namespace " : "",
                 resource->namespace ? resource->namespace : "");
    } else
        snprintf(call->asked, sizeof call->asked, "%s", verb);
    return call;
}

void api_call_ask(struct api_call *call, const char *method) {
    call->method = method;
    call->tries = 0;
    call->is_renewed = false;
    event_active(call->step, 0, 0);
}

void api_call_free(struct api_call *call) {
    if (call->was_freed)
        *call->was_freed = true;
    TAILQ_REMOVE(&call->api->calls, call, link);
    http_cancel(call->http);
    event_free(call->step);
    buf_release(&call->path);
    buf_release(&call->sent);
    buf_release(&call->base);
    arena_release(&call->arena);
    discovery_free(call->discovery);
    free(call->name);
    free(call->header);
    free(call->labels);
    free(call->fields);
    free(call);
}

void api_call_finish(struct api_call *call, const struct api_answer *answer) {
    struct arena arena = call->arena; /* the answer lives in it */
    api_done *done = call->done;
    void *context = call->context;

    call->arena = (struct arena)ARENA_INIT;
    api_call_free(call);
    done(context, answer);
    arena_release(&arena);
}

void api_cancel(struct api_call *call) {
    if (call)
        api_call_free(call);
}

void api_insist(struct api_call *call, void (*trouble)(void *context, const struct error *err),
                void *context) {
    call->trouble = trouble;
    call->trouble_context = context;
}

void api_was_let_in(struct api *api) {
    api->was_let_in = true;
}

static void settle_plainly(struct api_call *call, struct api_answer *answer) {
    api_call_finish(call, answer);
}

static struct api_call *start(struct api_call *call, const char *method,
                              void (*settle)(struct api_call *, struct api_answer *),
                              api_done *done, void *context) {
    call->settle = settle;
    call->done = done;
    call->context = context;
    api_call_ask(call, method);
    return call;
}

/* An object that is too large leaves half of its text, which the server refuses. */
static void set_sent(struct api_call *call, const struct node *object, const char *type) {
    struct json json;
    struct error err;

    json_init(&json, JSON_COMPACT, json_to_buf, &call->sent);
    json_node(&json, object);
    if (json_finish(&json, &err)) {
        error_wrap(&err, "the object");
        call->refused = err;
    }
    call->content_type = type;
}

struct api_call *api_get(struct api *api, const struct api_resource *resource, const char *name,
                         api_done *done, void *context) {
    return start(api_call_new(api, "get", resource, name, NULL), "GET", settle_plainly, done,
                 context);
}

/* An object that exists is looked up; one that went away since is created after all. */
static void settle_create(struct api_call *call, struct api_answer *answer) {
    struct error err;
    const bool is_lookup = strcmp(call->method, "GET") == 0;

    if (!is_lookup && answer->status == 409 && strcmp(answer->reason, "AlreadyExists") == 0 &&
        call->lookups++ < call->api->options.tries) {
        buf_clear(&call->path);
        if (buf_append(&call->path, call->base.data, call->base.len, &err) == 0 &&
            append_part(call->name, &call->path, &err) == 0) {
            api_call_ask(call, "GET");
            return;
        }
    } else if (is_lookup && answer->status == 404) {
        buf_clear(&call->path);
        if (buf_append(&call->path, call->base.data, call->base.len, &err) == 0) {
            api_call_ask(call, "POST");
            return;
        }
    }
    answer->existed = is_lookup && answer->err.code == ERROR_NONE;
    api_call_finish(call, answer);
}

struct api_call *api_create(struct api *api, const struct api_resource *resource,
                            const struct node *object, api_done *done, void *context) {
    const char *name = node_get_text(node_get(object, "metadata"), "name", NULL);
    struct api_call *call = api_call_new(api, "create", resource, NULL, NULL);
    struct error err;

    if (name)
        call->name = strdup(name);
    else
        error_set(&call->refused, ERROR_INVALID, "the object has no metadata.name");
    if (buf_append(&call->base, call->path.data, call->path.len, &err))
        buf_clear(&call->base);
    set_sent(call, object, JSON_TYPE);
    return start(call, "POST", settle_create, done, context);
}

struct api_call *api_update(struct api *api, const struct api_resource *resource,
                            const struct node *object, api_done *done, void *context) {
    const char *name = node_get_text(node_get(object, "metadata"), "name", NULL);
    struct api_call *call = api_call_new(api, "update", resource, name, NULL);

    if (!name)
        error_set(&call->refused, ERROR_INVALID, "the object has no metadata.name");
    set_sent(call, object, JSON_TYPE);
    return start(call, "PUT", settle_plainly, done, context);
}

struct api_call *api_patch(struct api *api, const struct api_resource *resource, const char *name,
                           const char *subresource, enum api_patch kind, const struct node *patch,
                           api_done *done, void *context) {
    /* JSON is YAML, which is the name that apply goes by. */
    static const char *const types[] = {
        [API_PATCH_MERGE] = "application/merge-patch+json",
        [API_PATCH_STRATEGIC] = "application/strategic-merge-patch+json",
        [API_PATCH_APPLY] = "application/apply-patch+yaml",
    };
    struct api_call *call = api_call_new(api, "patch", resource, name, subresource);
    struct error err;

    set_sent(call, patch, types[kind]);
    if (api_query("fieldManager", "myelin", &call->path, &err) ||
        (kind == API_PATCH_APPLY && api_query("force", "true", &call->path, &err)))
        call->refused = err;
    return start(call, "PATCH", settle_plainly, done, context);
}

static void settle_delete(struct api_call *call, struct api_answer *answer) {
    if (answer->status == 404) {
        answer->err = (struct error){ .code = ERROR_NONE };
        answer->object = NULL;
    }
    api_call_finish(call, answer);
}

static void write_precondition(struct json *json, const char *key, const char *value) {
    if (!value)
        return;
    json_key(json, key);
    json_text(json, value);
}

struct api_call *api_delete(struct api *api, const struct api_resource *resource, const char *name,
                            const struct api_delete *how, api_done *done, void *context) {
    static const char *const policies[] = {
        [API_DELETE_BACKGROUND] = "Background",
        [API_DELETE_FOREGROUND] = "Foreground",
        [API_DELETE_ORPHAN] = "Orphan",
    };
    struct api_call *call = api_call_new(api, "delete", resource, name, NULL);
    struct json json;

    json_init(&json, JSON_COMPACT, json_to_buf, &call->sent);
    json_object(&json);
    json_key(&json, "kind");
    json_text(&json, "DeleteOptions");
    json_key(&json, "apiVersion");
    json_text(&json, "v1");
    json_key(&json, "propagationPolicy");
    json_text(&json, policies[how->propagation]);
    if (how->grace_s >= 0) {
        json_key(&json, "gracePeriodSeconds");
        json_int(&json, how->grace_s);
    }
    if (how->uid || how->version) {
        json_key(&json, "preconditions");
        json_object(&json);
        write_precondition(&json, "uid", how->uid);
        write_precondition(&json, "resourceVersion", how->version);
        json_end(&json);
    }
    json_end(&json);
    if (json_finish(&json, &call->refused) == 0)
        call->content_type = JSON_TYPE;
    return start(call, "DELETE", settle_delete, done, context);
}

/* ---- streams ---- */

static void settle_stream(struct api_call *call, struct api_answer *answer) {
    answer->object = NULL;
    api_call_finish(call, answer);
}

static struct api_call *stream_new(struct api *api, const char *verb, const char *path,
                                   enum api_idle idle, const struct api_sink *sink) {
    struct api_call *call = api_call_new(api, verb, NULL, NULL, NULL);
    struct error err;

    snprintf(call->asked, sizeof call->asked, "%s %.*s", verb, (int)strcspn(path, "?"), path);
    if (buf_append(&call->path, path, strlen(path), &err))
        call->refused = err;
    call->is_stream = true;
    call->idle = idle;
    call->sink = *sink;
    return call;
}

struct api_call *api_stream(struct api *api, const char *path, enum api_idle idle,
                            const struct api_sink *sink) {
    return start(stream_new(api, "read", path, idle, sink), "GET", settle_stream, sink->done,
                 sink->context);
}

struct api_call *api_post(struct api *api, const struct api_post *post,
                          const struct api_sink *sink) {
    struct api_call *call = stream_new(api, "ask", post->path, API_IDLE_LIMITED, sink);
    struct error err;

    if (buf_append(&call->sent, post->body, post->body_len, &err))
        call->refused = err;
    call->content_type = post->type ? post->type : "text/plain";
    call->header = post->header ? strdup(post->header) : NULL;
    return start(call, "POST", settle_stream, sink->done, sink->context);
}

/* ---- the server ---- */

static void fill_in(struct api_options *options) {
    const uint32_t *from = (const uint32_t *)&defaults;
    uint32_t *to = (uint32_t *)options;

    _Static_assert(sizeof *options % sizeof *to == 0, "all options are numbers of this size");
    for (size_t i = 0; i < sizeof *options / sizeof *to; i++)
        if (to[i] == 0)
            to[i] = from[i];
}

int api_new(struct event_base *loop, struct kubeconfig *config, const struct api_options *options,
            struct api **out, struct error *err) {
    struct api *api = allocate(sizeof *api);
    struct kubeconfig *own = &api->config;

    *api = (struct api){ .loop = loop, .config = *config };
    *config = (struct kubeconfig){ 0 };
    if (options)
        api->options = *options;
    fill_in(&api->options);
    TAILQ_INIT(&api->calls);
    if (http_new(loop,
                 &(struct http_options){
                     .ca = { own->ca.data, own->ca.len },
                     .verify = own->verify == KUBECONFIG_INSECURE ? HTTP_INSECURE : HTTP_VERIFY,
                     .tls_server_name = own->tls_server_name,
                     .proxy = own->proxy_url,
                     .connect_ms = api->options.connect_ms,
                 },
                 &api->http, err)) {
        api_free(api);
        return -1;
    }
    if (own->impersonate &&
        asprintf(&api->impersonation, "Impersonate-User: %s", own->impersonate) < 0)
        abort();
    api->credential = credential_new(loop, own, on_credential, api);
    *out = api;
    return 0;
}

void api_free(struct api *api) {
    struct api_call *call;

    if (!api)
        return;
    while ((call = TAILQ_FIRST(&api->calls)))
        api_call_free(call);
    http_free(api->http);
    credential_free(api->credential);
    kubeconfig_release(&api->config);
    free(api->impersonation);
    free(api);
}

const char *api_namespace(const struct api *api) {
    return api->config.namespace;
}

struct event_base *api_loop(const struct api *api) {
    return api->loop;
}

const struct api_options *api_options(const struct api *api) {
    return &api->options;
}
