/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/http.h"

#include <ctype.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "backend/kubernetes/curl.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/clock.h"

enum {
    REFUSAL_MAX = 256 << 10, /* the body that a stream is refused with */
    KEEPALIVE_IDLE_S = 30,   /* shorter than what firewalls forget connections after */
    UNCONFIRMED_MS = 30000,
};

/* ---- the nouns ---- */

enum call_state {
    CALL_QUEUED,    /* curl does not know of it yet */
    CALL_ADDED,     /* curl works on it */
    CALL_CANCELLED, /* from inside curl: it is taken out as soon as curl returns */
};

struct http_call {
    TAILQ_ENTRY(http_call) link;
    struct http *http;
    enum call_state state;
    CURL *easy;
    struct curl_slist *headers, *connect_to;
    struct buf body;
    char *sent;
    bool (*bytes)(void *context, const char *bytes, size_t n);
    void (*opened)(void *context);
    void (*done)(void *context, const struct http_answer *answer);
    void *context;
    bool is_open;      /* a stream's 2xx was told */
    bool was_ended;    /* `bytes` returned false */
    bool is_too_large; /* the body went over its bound */
    bool is_idle;      /* nothing came for idle_ms */
    uint32_t idle_ms;
    struct event *idle;
    int64_t retry_after_s;
    char content_type[128];
    char trouble[CURL_ERROR_SIZE];
};

struct http {
    struct event_base *loop;
    CURLM *multi;
    struct event *timer; /* curl's next time-out */
    struct event *kick;  /* something is queued, or to be taken out */
    TAILQ_HEAD(, http_call) calls;
    struct http_options options;
    struct http_blob certificate, key;
    uint32_t depth; /* of calls into curl, and of callbacks to the user */
    bool is_dying;
};

static void *allocate(size_t size) {
    void *memory = calloc(1, size);

    if (!memory)
        abort();
    return memory;
}

static void call_free(struct http_call *call) {
    struct http *http = call->http;

    TAILQ_REMOVE(&http->calls, call, link);
    if (call->state != CALL_QUEUED)
        curl.multi_remove_handle(http->multi, call->easy);
    curl.easy_cleanup(call->easy);
    curl.slist_free_all(call->headers);
    curl.slist_free_all(call->connect_to);
    if (call->idle)
        event_free(call->idle);
    buf_release(&call->body);
    free(call->sent);
    free(call);
}

static void destroy(struct http *http) {
    struct http_call *call;

    while ((call = TAILQ_FIRST(&http->calls)))
        call_free(call);
    if (http->multi)
        curl.multi_cleanup(http->multi);
    event_free(http->timer);
    event_free(http->kick);
    free(http);
}

/* ---- what curl tells of an answer ---- */

static bool is_success(const struct http_call *call) {
    long status = 0;

    curl.easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
}

static void wait_for_bytes(struct http_call *call) {
    const struct timeval wait = clock_timeval(call->idle_ms);

    if (call->idle)
        event_add(call->idle, &wait);
}

/* Returns what curl takes as "go on" (n), or as "end this" (anything else). */
static size_t on_body(char *bytes, size_t one, size_t n, void *context) {
    struct http_call *call = context;
    struct error err;

    (void)one; /* always 1 */
    if (call->state == CALL_CANCELLED)
        return 0;
    wait_for_bytes(call);
    if (call->bytes && is_success(call)) {
        if (call->bytes(call->context, bytes, n))
            return call->state == CALL_CANCELLED ? 0 : n;
        call->was_ended = true;
        return 0;
    }
    if (buf_append(&call->body, bytes, n, &err)) {
        call->is_too_large = true;
        return 0;
    }
    return n;
}

static bool header_is(const char *line, size_t n, const char *name, char *value, size_t room) {
    const size_t len = strlen(name);

    if (n <= len || strncasecmp(line, name, len) != 0 || line[len] != ':')
        return false;
    line += len + 1;
    n -= len + 1;
    while (n > 0 && isspace((unsigned char)*line))
        line++, n--;
    while (n > 0 && isspace((unsigned char)line[n - 1]))
        n--;
    if (n >= room)
        n = room - 1;
    memcpy(value, line, n);
    value[n] = '\0';
    return true;
}

/* The end of the headers of a stream: it is open, though nothing may come for a long time. */
static void on_headers_end(struct http_call *call) {
    if (!call->bytes || call->is_open || !is_success(call))
        return;
    call->is_open = true;
    if (call->opened)
        call->opened(call->context);
}

static size_t on_header(char *line, size_t one, size_t n, void *context) {
    struct http_call *call = context;
    char value[32];

    (void)one;
    if (call->state == CALL_CANCELLED)
        return 0;
    wait_for_bytes(call);
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* "100 Continue" may stand before the answer */
        call->retry_after_s = -1;
        call->content_type[0] = '\0';
    } else if (header_is(line, n, "Content-Type", call->content_type, sizeof call->content_type)) {
        return n;
    } else if (header_is(line, n, "Retry-After", value, sizeof value)) {
        /* The other form, a date, is not what API servers send. */
        if (isdigit((unsigned char)value[0]))
            call->retry_after_s = strtol(value, NULL, 10);
    } else if (n <= 2) {
        on_headers_end(call);
        if (call->state == CALL_CANCELLED)
            return 0;
    }
    return n;
}

/* ---- how a call ends ---- */

static const struct code_row {
    CURLcode code;
    enum error_code kind;
    const char *sentence;
} code_rows[] = {
    { CURLE_URL_MALFORMAT, ERROR_INVALID, "the address is none" },
    { CURLE_UNSUPPORTED_PROTOCOL, ERROR_INVALID, "only http:// and https:// are known" },
    { CURLE_PEER_FAILED_VERIFICATION, ERROR_DENIED, "the server's certificate is not trusted" },
    { CURLE_SSL_CERTPROBLEM, ERROR_DENIED, "the client certificate cannot be used" },
    { CURLE_SSL_CACERT_BADFILE, ERROR_DENIED,
      "the server's certificate is not trusted: the authority of the kubeconfig cannot be used, or "
      "it "
      "names none and this machine has no list of them (Debian: ca-certificates)" },
    { CURLE_SSL_CONNECT_ERROR, ERROR_UNAVAILABLE, "there is no TLS with the server" },
    { CURLE_COULDNT_CONNECT, ERROR_UNAVAILABLE, "there is no connection" },
    { CURLE_COULDNT_RESOLVE_HOST, ERROR_UNAVAILABLE, "the name of the server is not known" },
    { CURLE_COULDNT_RESOLVE_PROXY, ERROR_UNAVAILABLE, "the name of the proxy is not known" },
    { CURLE_OPERATION_TIMEDOUT, ERROR_UNAVAILABLE, "the server is too slow" },
    { CURLE_GOT_NOTHING, ERROR_UNAVAILABLE, "the server closed the connection without an answer" },
    { CURLE_PARTIAL_FILE, ERROR_UNAVAILABLE, "the answer was cut" },
    { CURLE_RECV_ERROR, ERROR_UNAVAILABLE, "the connection broke" },
    { CURLE_SEND_ERROR, ERROR_UNAVAILABLE, "the connection broke" },
    { CURLE_HTTP2, ERROR_UNAVAILABLE, "the connection broke" },
    { CURLE_HTTP2_STREAM, ERROR_UNAVAILABLE, "the connection broke" },
};

static void explain(const struct http_call *call, CURLcode code, struct error *err) {
    const char *detail = call->trouble[0] ? call->trouble : curl.easy_strerror(code);

    if (call->is_too_large) {
        error_set(err, ERROR_EXHAUSTED, "the answer is larger than the %zu bytes allowed here",
                  call->body.limit);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(code_rows); i++)
        if (code_rows[i].code == code) {
            error_set(err, code_rows[i].kind, "%s (%s)", code_rows[i].sentence, detail);
            return;
        }
    error_set(err, ERROR_UNAVAILABLE, "%s", detail);
}

/* Calls `done` with what is known; the call is gone before, so that its handle is dead inside. */
static void finish(struct http_call *call, CURLcode code) {
    struct http_answer answer = { .retry_after_s = call->retry_after_s };
    void (*done)(void *, const struct http_answer *) = call->done;
    void *context = call->context;
    struct buf body = call->body;
    char content_type[sizeof call->content_type];
    long status = 0, sent = 0;

    if (call->state == CALL_CANCELLED) {
        call_free(call);
        return;
    }
    curl.easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    curl.easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &sent);
    answer.status = (int)status;
    answer.was_sent = sent > 0;
    memcpy(content_type, call->content_type, sizeof content_type);
    answer.content_type = content_type;
    if (call->is_idle)
        error_set(&answer.err, ERROR_UNAVAILABLE, "the server fell silent");
    else if (code != CURLE_OK && !call->was_ended)
        explain(call, code, &answer.err);
    answer.body = body.data;
    answer.len = body.len;
    call->body = (struct buf)BUF_INIT(0);
    call_free(call);
    done(context, &answer);
    buf_release(&body);
}

static void take_out_cancelled(struct http *http) {
    struct http_call *call, *next;

    for (call = TAILQ_FIRST(&http->calls); call; call = next) {
        next = TAILQ_NEXT(call, link);
        if (call->state == CALL_CANCELLED)
            call_free(call);
    }
}

static void finish_all(struct http *http) {
    CURLMsg *message;
    int left;

    while (!http->is_dying && (message = curl.multi_info_read(http->multi, &left))) {
        struct http_call *call = NULL;
        const CURLcode code = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
        finish(call, code);
    }
}

/* Everything that calls curl or the user stands between these two: inside, nothing is torn down. */
static void enter(struct http *http) {
    http->depth++;
}

/* The http may be gone after it. */
static void leave(struct http *http) {
    if (http->depth == 1) {
        finish_all(http);
        take_out_cancelled(http);
    }
    if (--http->depth == 0 && http->is_dying)
        destroy(http);
}

/* ---- sockets and time-outs ---- */

static void on_socket_event(evutil_socket_t fd, short what, void *context) {
    struct http *http = context;
    const int bits =
        (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    int running;

    enter(http);
    curl.multi_socket_action(http->multi, fd, bits, &running);
    leave(http);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *assigned) {
    struct http *http = context;
    struct event *event = assigned;
    short flags = EV_PERSIST;

    (void)easy;
    if (event)
        event_free(event);
    event = NULL;
    if (what != CURL_POLL_REMOVE) {
        if (what & CURL_POLL_IN)
            flags |= EV_READ;
        if (what & CURL_POLL_OUT)
            flags |= EV_WRITE;
        event = event_new(http->loop, fd, flags, on_socket_event, http);
        if (!event || event_add(event, NULL))
            abort();
    }
    curl.multi_assign(http->multi, fd, event);
    return 0;
}

static int on_timer_set(CURLM *multi, long wait_ms, void *context) {
    struct http *http = context;
    const struct timeval wait = clock_timeval(wait_ms);

    (void)multi;
    if (wait_ms < 0)
        event_del(http->timer);
    else
        event_add(http->timer, &wait);
    return 0;
}

static void on_timer(evutil_socket_t fd, short what, void *context) {
    struct http *http = context;
    int running;

    (void)fd, (void)what;
    enter(http);
    curl.multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    leave(http);
}

/* curl takes no new work from inside its own callbacks, which users' are: it gets it from here. */
static void on_kick(evutil_socket_t fd, short what, void *context) {
    struct http *http = context;
    struct http_call *call;

    (void)fd, (void)what;
    enter(http);
    TAILQ_FOREACH(call, &http->calls, link) {
        if (call->state != CALL_QUEUED)
            continue;
        call->state = CALL_ADDED;
        if (curl.multi_add_handle(http->multi, call->easy) != CURLM_OK)
            abort(); /* only out of memory does this */
        wait_for_bytes(call);
    }
    leave(http);
}

static void on_idle(evutil_socket_t fd, short what, void *context) {
    struct http_call *call = context;
    struct http *http = call->http;

    (void)fd, (void)what;
    enter(http);
    call->is_idle = true;
    finish(call, CURLE_OPERATION_TIMEDOUT);
    leave(http);
}

/* ---- requests ---- */

static void add_header(struct http_call *call, const char *name, const char *value) {
    struct error err;
    AUTO(buf) line = BUF_INIT(1 << 20);
    struct curl_slist *grown;

    if (!value || buf_printf(&line, &err, "%s%s%s", name ? name : "", name ? ": " : "", value))
        return;
    grown = curl.slist_append(call->headers, line.data);
    if (!grown)
        abort();
    call->headers = grown;
    explicit_bzero(line.data, line.len);
}

static void set_blob(CURL *easy, CURLoption option, struct http_blob bytes) {
    /* Copied: the owner may renew them while a connection is made. */
    struct curl_blob blob = { (void *)(uintptr_t)bytes.data, bytes.len, CURL_BLOB_COPY };

    if (bytes.data)
        curl.easy_setopt(easy, option, &blob);
}

static struct curl_slist *one_line(const char *before, int len, const char *text) {
    struct error err;
    AUTO(buf) line = BUF_INIT(4096);
    struct curl_slist *list;

    if (buf_printf(&line, &err, "%s%.*s", before, len, text))
        return NULL;
    list = curl.slist_append(NULL, line.data);
    if (!list)
        abort();
    return list;
}

/* curl takes the name that a certificate has to have from the URL. So the URL gets that name, and
 * the connection is made to the server all the same, which finds its own name in `Host`. */
static void set_url(struct http *http, struct http_call *call, const char *url) {
    const char *host = strstr(url, "://"), *port;
    AUTO(buf) renamed = BUF_INIT(64 << 10);
    struct error err;
    int len;

    if (!http->options.tls_server_name || !host) {
        curl.easy_setopt(call->easy, CURLOPT_URL, url);
        return;
    }
    host += 3;
    len = (int)strcspn(host, "/?#");
    port = memrchr(host, ':', (size_t)len);
    if (port && memchr(port, ']', (size_t)(host + len - port)))
        port = NULL; /* a colon of an IPv6 address */
    if (buf_printf(&renamed, &err, "%.*s%s%s", (int)(host - url), url,
                   http->options.tls_server_name, port ? port : host + len))
        return; /* without a URL the request fails as one that has none */
    curl.easy_setopt(call->easy, CURLOPT_URL, renamed.data);
    call->connect_to = one_line("::", len, host);
    curl.easy_setopt(call->easy, CURLOPT_CONNECT_TO, call->connect_to);
    call->headers = one_line("Host: ", len, host);
}

/* A server that vanished without a word would hold every request that shares its connection: bytes
 * that nobody confirms for so long break it, and the next try makes another. */
static int on_socket_made(void *context, curl_socket_t fd, curlsocktype purpose) {
    const unsigned int most_ms = UNCONFIRMED_MS;

    (void)context, (void)purpose;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
    return CURL_SOCKOPT_OK;
}

static void set_connection(struct http *http, struct http_call *call, const char *url) {
    CURL *easy = call->easy;

    set_url(http, call, url);
    curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)http->options.connect_ms);
    curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl.easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
    curl.easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_IDLE_S);
    curl.easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
    curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    /* A long watch is no reason to wait: another connection is made rather than a place in one. */
    curl.easy_setopt(easy, CURLOPT_PIPEWAIT, 0L);
    if (http->options.proxy)
        curl.easy_setopt(easy, CURLOPT_PROXY, http->options.proxy);
    if (http->options.verify == HTTP_INSECURE) {
        curl.easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl.easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    set_blob(easy, CURLOPT_CAINFO_BLOB, http->options.ca);
    set_blob(easy, CURLOPT_SSLCERT_BLOB, http->certificate);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, http->key);
}

static void set_body(struct http_call *call, const struct http_request *request) {
    curl.easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, request->method);
    if (!request->body)
        return;
    call->sent = allocate(request->body_len + 1);
    memcpy(call->sent, request->body, request->body_len);
    curl.easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
    curl.easy_setopt(call->easy, CURLOPT_POSTFIELDS, call->sent);
    add_header(call, "Content-Type", request->content_type);
    add_header(call, NULL, "Expect:"); /* no round trip before a large body */
}

static void set_callbacks(struct http_call *call) {
    curl.easy_setopt(call->easy, CURLOPT_PRIVATE, call);
    curl.easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->trouble);
    curl.easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl.easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
    curl.easy_setopt(call->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl.easy_setopt(call->easy, CURLOPT_HEADERDATA, call);
    /* A proxy's "200 Connection established" is not the answer. */
    curl.easy_setopt(call->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

struct http_call *http_send(struct http *http, const struct http_request *request) {
    struct http_call *call = allocate(sizeof *call);

    *call = (struct http_call){
        .http = http,
        .state = CALL_QUEUED,
        .easy = curl.easy_init(),
        .body = BUF_INIT(request->bytes ? REFUSAL_MAX : request->body_max),
        .bytes = request->bytes,
        .opened = request->opened,
        .done = request->done,
        .context = request->context,
        .retry_after_s = -1,
    };
    if (!call->easy)
        abort();
    set_callbacks(call);
    set_connection(http, call, request->url);
    set_body(call, request);
    add_header(call, "Accept", request->accept);
    add_header(call, "Authorization", request->authorization);
    for (size_t i = 0; i < ARRAY_LEN(request->extra_headers); i++)
        add_header(call, NULL, request->extra_headers[i]);
    add_header(call, "User-Agent", "myelin/" MYELIN_VERSION);
    curl.easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    if (!request->bytes)
        curl.easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, (long)request->deadline_ms);
    else if (request->idle_ms > 0) {
        call->idle_ms = request->idle_ms;
        call->idle = event_new(http->loop, -1, 0, on_idle, call);
        if (!call->idle)
            abort();
    }
    TAILQ_INSERT_TAIL(&http->calls, call, link);
    event_active(http->kick, 0, 0);
    return call;
}

void http_cancel(struct http_call *call) {
    if (!call)
        return;
    if (call->http->depth > 0 && call->state == CALL_ADDED) {
        call->state = CALL_CANCELLED;
        if (call->idle)
            event_del(call->idle);
    } else if (call->state != CALL_CANCELLED)
        call_free(call);
}

void http_identify(struct http *http, struct http_blob certificate, struct http_blob key) {
    http->certificate = certificate;
    http->key = key;
}

int http_new(struct event_base *loop, const struct http_options *options, struct http **out,
             struct error *err) {
    struct http *http;

    if (curl_load(err))
        return -1;
    http = allocate(sizeof *http);
    *http = (struct http){ .loop = loop, .options = *options, .multi = curl.multi_init() };
    TAILQ_INIT(&http->calls);
    http->timer = evtimer_new(loop, on_timer, http);
    http->kick = event_new(loop, -1, 0, on_kick, http);
    if (!http->multi || !http->timer || !http->kick)
        abort();
    curl.multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl.multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl.multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timer_set);
    curl.multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    *out = http;
    return 0;
}

void http_free(struct http *http) {
    struct http_call *call;

    if (!http)
        return;
    if (http->depth == 0) {
        destroy(http);
        return;
    }
    http->is_dying = true;
    TAILQ_FOREACH(call, &http->calls, link)
    call->state = call->state == CALL_ADDED ? CALL_CANCELLED : call->state;
    event_del(http->kick);
}
