/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/podlog.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

struct podlog {
    struct api *api;
    char *namespace, *pod, *container;
    bool previous;
    struct podlog_observer observer;
    struct event *step;
    struct api_call *call;
    struct podlog_position at; /* behind the last whole line that was told */
    struct buf line;           /* the piece that is being gathered */
    bool is_within;            /* a line whose beginning was dealt with */
    bool is_passed_over;       /* the line that is_within is told already */
    char time[40];             /* of the line that is_within */
    uint64_t told_of_line;     /* its bytes that were told */
    /* after a connection was made again */
    bool is_catching_up; /* until the first line that is new */
    uint32_t same_seen;  /* lines with at.time that came again */
    uint64_t skip;       /* bytes of the first new line that were told */
    uint32_t failures;
    bool is_in_trouble;
    bool *was_freed;
};

static char *copy(const char *text) {
    char *copied = text ? strdup(text) : NULL;

    if (text && !copied)
        abort();
    return copied;
}

/* Nanoseconds of RFC 3339 with any fraction and offset; false for what is no time. */
static bool stamp_read(const char *text, int64_t *ns) {
    struct tm utc = { 0 };
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
    int64_t fraction = 0, unit = 1000000000, offset = 0;
    int hours, minutes;

    if (!rest)
        return false;
    if (*rest == '.')
        for (rest++; *rest >= '0' && *rest <= '9'; rest++) {
            unit /= 10;
            fraction += (*rest - '0') * unit;
        }
    if ((*rest == '+' || *rest == '-') && sscanf(rest + 1, "%2d:%2d", &hours, &minutes) == 2)
        offset = (*rest == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    else if (strcmp(rest, "Z") != 0)
        return false;
    if (utc.tm_year < 0 || utc.tm_year > 300)
        return false;
    *ns = ((int64_t)timegm(&utc) - offset) * 1000000000 + fraction;
    return true;
}

/* ---- lines ---- */

/* False: the observer freed it. */
static bool tell(struct podlog *podlog, const char *time, const char *bytes, size_t n, bool whole) {
    bool was_freed = false;
    const struct podlog_line line = { .time = time, .bytes = bytes, .n = n, .whole = whole };

    podlog->was_freed = &was_freed;
    podlog->observer.line(podlog->observer.context, &line);
    if (!was_freed)
        podlog->was_freed = NULL;
    return !was_freed;
}

/* Whether a line with this time was told before the connection broke. */
static bool was_told(struct podlog *podlog, const char *time) {
    int64_t now_ns, last_ns;

    /* Beyond that, times may go back as they like: somebody set the node's clock. */
    if (!podlog->is_catching_up || !stamp_read(podlog->at.time, &last_ns))
        return false;
    if (!stamp_read(time, &now_ns))
        return false;
    if (now_ns < last_ns || (now_ns == last_ns && podlog->same_seen++ < podlog->at.lines))
        return true;
    podlog->is_catching_up = false;
    return false;
}

/* Cuts the time off; lines that the node itself writes into the stream have none. */
static void begin_line(struct podlog *podlog, const char **bytes, size_t *n) {
    const char *blank = memchr(*bytes, ' ', *n < sizeof podlog->time ? *n : sizeof podlog->time);
    const size_t len = blank ? (size_t)(blank - *bytes) : 0;
    int64_t ns;

    podlog->is_within = true;
    podlog->time[0] = '\0';
    if (len > 0 && len < sizeof podlog->time) {
        memcpy(podlog->time, *bytes, len);
        podlog->time[len] = '\0';
        if (stamp_read(podlog->time, &ns)) {
            *bytes += len + 1;
            *n -= len + 1;
        } else
            podlog->time[0] = '\0';
    }
    podlog->is_passed_over = was_told(podlog, podlog->time);
    podlog->told_of_line = 0;
}

static void end_line(struct podlog *podlog) {
    podlog->is_within = false;
    podlog->told_of_line = 0;
    if (podlog->is_passed_over || !podlog->time[0])
        return;
    if (strcmp(podlog->time, podlog->at.time) == 0)
        podlog->at.lines++;
    else {
        memcpy(podlog->at.time, podlog->time, sizeof podlog->at.time);
        podlog->at.lines = 1;
    }
}

/* A piece of a line, or with `whole` its end. False: the podlog is gone. */
static bool take_piece(struct podlog *podlog, const char *bytes, size_t n, bool whole) {
    const char *time = "";
    size_t known;

    if (!podlog->is_within) {
        begin_line(podlog, &bytes, &n);
        time = podlog->time;
    }
    if (!podlog->is_passed_over) {
        known = podlog->skip < n ? (size_t)podlog->skip : n;
        if (known > 0)
            time = "";
        podlog->skip = whole ? 0 : podlog->skip - known;
        podlog->told_of_line += n;
        if ((n > known || whole) && !tell(podlog, time, bytes + known, n - known, whole))
            return false;
    }
    if (whole)
        end_line(podlog);
    return true;
}

static bool on_bytes(void *context, const char *bytes, size_t n) {
    struct podlog *podlog = context;
    struct error err;

    podlog->failures = 0;
    podlog->is_in_trouble = false;
    while (n > 0) {
        const size_t room = PODLOG_LINE_MAX - podlog->line.len;
        const size_t most = n < room ? n : room;
        const char *end = memchr(bytes, '\n', most);
        const size_t len = end ? (size_t)(end - bytes) : most;
        struct buf piece;
        bool goes_on;

        if (buf_append(&podlog->line, bytes, len, &err))
            abort(); /* there is room */
        bytes += len + (end ? 1 : 0);
        n -= len + (end ? 1 : 0);
        if (!end && podlog->line.len < PODLOG_LINE_MAX)
            return true;
        piece = podlog->line; /* the observer may free the podlog */
        podlog->line = (struct buf)BUF_INIT(PODLOG_LINE_MAX);
        goes_on = take_piece(podlog, piece.data, piece.len, end != NULL);
        if (goes_on) {
            buf_clear(&piece);
            podlog->line = piece;
        } else
            buf_release(&piece);
        if (!goes_on)
            return false;
    }
    return true;
}

/* ---- connections ---- */

static void close_with(struct podlog *podlog, const struct error *err) {
    struct buf rest = podlog->line;
    bool goes_on = true;

    podlog->line = (struct buf)BUF_INIT(PODLOG_LINE_MAX);
    if (err->code == ERROR_NONE && (rest.len > 0 || podlog->is_within))
        goes_on = take_piece(podlog, rest.data, rest.len, true);
    buf_release(&rest);
    if (goes_on)
        podlog->observer.closed(podlog->observer.context, err);
}

static void go_on_later(struct podlog *podlog) {
    const struct api_options *options = api_options(podlog->api);
    uint64_t wait = options->first_wait_ms;

    for (uint32_t i = 0; i < podlog->failures && wait < options->longest_wait_ms; i++)
        wait *= 2;
    if (wait > options->longest_wait_ms)
        wait = options->longest_wait_ms;
    wait = wait / 2 + arc4random_uniform((uint32_t)(wait / 2) + 1);
    podlog->failures++;
    event_add(podlog->step,
              &(struct timeval){ (time_t)(wait / 1000), (suseconds_t)(wait % 1000 * 1000) });
}

static void on_done(void *context, const struct api_answer *answer) {
    struct podlog *podlog = context;
    const bool was_open = answer->status >= 200 && answer->status < 300;
    bool was_freed = false;

    podlog->call = NULL;
    if (answer->err.code != ERROR_UNAVAILABLE) {
        close_with(podlog, &answer->err);
        return;
    }
    /* What was gathered of a line comes again, with its time before it. */
    buf_clear(&podlog->line);
    podlog->skip =
        podlog->is_within && !podlog->is_passed_over ? podlog->told_of_line : podlog->skip;
    podlog->is_within = false;
    if (!was_open && !podlog->is_in_trouble && podlog->observer.trouble) {
        podlog->is_in_trouble = true;
        podlog->was_freed = &was_freed;
        podlog->observer.trouble(podlog->observer.context, &answer->err);
        if (was_freed)
            return;
        podlog->was_freed = NULL;
    }
    go_on_later(podlog);
}

static int make_path(const struct podlog *podlog, struct buf *path, struct error *err) {
    const struct api_resource resource = { "", "v1", "pods", podlog->namespace };
    struct time_text since = { "" };
    int64_t ns = 0;

    if (podlog->at.time[0] && stamp_read(podlog->at.time, &ns))
        since = time_text(ns / 1000, TIME_SECONDS);
    if (api_path(&resource, podlog->pod, "log", path, err) ||
        api_query("container", podlog->container, path, err) ||
        api_query("follow", podlog->previous ? NULL : "true", path, err) ||
        api_query("previous", podlog->previous ? "true" : NULL, path, err) ||
        api_query("timestamps", "true", path, err) ||
        api_query("sinceTime", since.text[0] ? since.text : NULL, path, err))
        return -1;
    return 0;
}

static void on_step(evutil_socket_t fd, short what, void *context) {
    struct podlog *podlog = context;
    const struct api_sink sink = { .bytes = on_bytes, .done = on_done, .context = podlog };
    AUTO(buf) path = BUF_INIT(64 << 10);
    struct error err;

    (void)fd, (void)what;
    podlog->is_catching_up = podlog->at.time[0] != '\0';
    podlog->same_seen = 0;
    if (make_path(podlog, &path, &err))
        podlog->observer.closed(podlog->observer.context, &err);
    else
        podlog->call = api_stream(podlog->api, path.data, API_IDLE_FOREVER, &sink);
}

/* ---- life ---- */

struct podlog *podlog_follow(struct api *api, const struct podlog_request *request,
                             const struct podlog_observer *observer) {
    struct podlog *podlog = calloc(1, sizeof *podlog);

    if (!podlog)
        abort();
    *podlog = (struct podlog){
        .api = api,
        .namespace = copy(request->namespace),
        .pod = copy(request->pod),
        .container = copy(request->container),
        .previous = request->previous,
        .observer = *observer,
        .at = request->since,
        .line = BUF_INIT(PODLOG_LINE_MAX),
    };
    podlog->step = event_new(api_loop(api), -1, 0, on_step, podlog);
    if (!podlog->step)
        abort();
    event_active(podlog->step, 0, 0);
    return podlog;
}

struct podlog_position podlog_position(const struct podlog *podlog) {
    return podlog->at;
}

void podlog_free(struct podlog *podlog) {
    if (!podlog)
        return;
    if (podlog->was_freed)
        *podlog->was_freed = true;
    api_cancel(podlog->call);
    event_free(podlog->step);
    buf_release(&podlog->line);
    free(podlog->namespace);
    free(podlog->pod);
    free(podlog->container);
    free(podlog);
}
