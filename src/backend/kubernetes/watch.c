/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/watch.h"

#include <event2/event.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/watch_decode.h"
#include "base/clock.h"
#include "base/vec.h"

/* Seconds after which the server is asked to end a stream: a path that broke without a word is
 * found so at the latest. Half of it is chance. */
enum { STREAM_S = 600 };

/* What is known of an object. */
struct known {
    char *namespace, *name, *uid, *version;
    uint32_t round; /* of the list that it was last seen in */
};

struct watch {
    struct api *api;
    char *group, *version_of_api, *plural, *namespace, *labels, *fields;
    struct watch_observer observer;
    struct event *step; /* what is next, after a wait */
    struct api_call *call;
    struct watch_decoder decoder;
    void *known;   /* tree of struct known, by namespace and name */
    char *version; /* where the stream goes on; NULL: the list has to be read */
    uint32_t round;
    uint32_t failures;  /* in a row */
    int64_t opened_us;  /* monotonic: when the stream began */
    bool is_in_trouble; /* it was told */
    bool has_synced;    /* it was let in */
    bool *was_freed;
};

static char *copy(const char *text) {
    char *copied = text ? strdup(text) : NULL;

    if (text && !copied)
        abort();
    return copied;
}

static int compare(const void *a, const void *b) {
    const struct known *left = a, *right = b;
    const int names = strcmp(left->name, right->name);

    return names ? names : strcmp(left->namespace, right->namespace);
}

static void known_free(void *context) {
    struct known *known = context;

    free(known->namespace);
    free(known->name);
    free(known->uid);
    free(known->version);
    free(known);
}

static void replace(char **text, const char *with) {
    char *copied = copy(with);

    free(*text);
    *text = copied;
}

/* ---- telling ---- */

/* False: the observer freed the watch. */
static bool tell(struct watch *watch, const struct watch_event *event) {
    bool was_freed = false, *outer = watch->was_freed;

    watch->was_freed = &was_freed;
    watch->observer.event(watch->observer.context, event);
    if (was_freed) {
        if (outer)
            *outer = true;
        return false;
    }
    watch->was_freed = outer;
    return true;
}

static struct known *find(struct watch *watch, const struct watch_line *line) {
    struct known key = { .namespace = (char *)(uintptr_t)line->namespace,
                         .name = (char *)(uintptr_t)line->name };
    struct known **found = tfind(&key, &watch->known, compare);

    return found ? *found : NULL;
}

static bool tell_end(struct watch *watch, struct known *known, const struct node *object) {
    bool goes_on;

    tdelete(known, &watch->known, compare);
    goes_on = tell(watch, &(struct watch_event){ .kind = WATCH_DELETED,
                                                 .namespace = known->namespace,
                                                 .name = known->name,
                                                 .uid = known->uid,
                                                 .object = object });
    known_free(known);
    return goes_on;
}

/* An object is there in this version. False: the watch is gone. */
static bool see(struct watch *watch, const struct watch_line *line) {
    struct known *known = find(watch, line);
    enum watch_kind kind = WATCH_MODIFIED;

    if (known && strcmp(known->uid, line->uid) != 0) {
        if (!tell_end(watch, known, NULL)) /* another one took its name */
            return false;
        known = NULL;
    }
    if (known && strcmp(known->version, line->version) == 0) {
        known->round = watch->round;
        return true;
    }
    if (!known) {
        kind = WATCH_ADDED;
        known = calloc(1, sizeof *known);
        if (!known)
            abort();
        known->namespace = copy(line->namespace);
        known->name = copy(line->name);
        known->uid = copy(line->uid);
        if (!tsearch(known, &watch->known, compare))
            abort();
    }
    replace(&known->version, line->version);
    known->round = watch->round;
    return tell(watch, &(struct watch_event){ .kind = kind,
                                              .namespace = line->namespace,
                                              .name = line->name,
                                              .uid = line->uid,
                                              .object = line->object });
}

/* ---- what is next ---- */

static void next_after(struct watch *watch, uint32_t wait_ms) {
    const struct timeval wait = clock_timeval(wait_ms);

    event_add(watch->step, &wait);
}

static void next_later(struct watch *watch) {
    const struct api_options *options = api_options(watch->api);
    uint64_t wait = options->first_wait_ms;

    for (uint32_t i = 0; i < watch->failures && wait < options->longest_wait_ms; i++)
        wait *= 2;
    if (wait > options->longest_wait_ms)
        wait = options->longest_wait_ms;
    watch->failures++;
    next_after(watch, (uint32_t)(wait / 2) + arc4random_uniform((uint32_t)(wait / 2) + 1));
}

static void list_again(struct watch *watch) {
    free(watch->version);
    watch->version = NULL;
}

/* Whether asking on is useless. Who never had the rights does not wait for them. */
static bool is_final(const struct watch *watch, const struct error *err) {
    if (err->code == ERROR_DENIED && watch->has_synced)
        return false;
    return err->code != ERROR_UNAVAILABLE && err->code != ERROR_CONFLICT &&
           err->code != ERROR_EXHAUSTED;
}

static void on_failure(struct watch *watch, const struct error *err) {
    bool was_freed = false;

    if (is_final(watch, err)) {
        watch->observer.failed(watch->observer.context, err);
        return;
    }
    if (!watch->is_in_trouble && watch->observer.trouble) {
        watch->is_in_trouble = true;
        watch->was_freed = &was_freed;
        watch->observer.trouble(watch->observer.context, err);
        if (was_freed)
            return;
        watch->was_freed = NULL;
    }
    next_later(watch);
}

/* ---- the list ---- */

static void on_item(void *context, const struct node *object) {
    struct watch *watch = context;
    struct watch_line line;

    watch_identify(object, &line);
    if (line.name[0] && line.uid[0] && line.version[0])
        (void)see(watch, &line); /* where the watch is freed, its call is too */
}

struct search_context {
    uint32_t round;
    VEC(struct known *) vanished;
};

static void note_vanished(const void *node, VISIT visit, void *context) {
    struct known *known = *(struct known *const *)node;
    struct search_context *search = context;

    if ((visit == postorder || visit == leaf) && known->round != search->round)
        *VEC_PUSH(&search->vanished) = known;
}

/* False: the watch is gone. */
static bool tell_vanished(struct watch *watch) {
    struct search_context search = { .round = watch->round };
    bool goes_on = true;

    twalk_r(watch->known, note_vanished, &search);
    for (size_t i = 0; i < search.vanished.len && goes_on; i++)
        goes_on = tell_end(watch, search.vanished.items[i], NULL);
    VEC_RELEASE(&search.vanished);
    return goes_on;
}

static void on_list(void *context, const struct api_answer *answer) {
    struct watch *watch = context;
    const struct node *version = node_get(node_get(answer->object, "metadata"), "resourceVersion");
    bool was_freed = false;

    watch->call = NULL;
    if (answer->err.code != ERROR_NONE) {
        on_failure(watch, &answer->err);
        return;
    }
    if (!version || version->kind != NODE_TEXT || !version->count) {
        struct error err;

        error_set(&err, ERROR_INVALID, "the list of %s has no resourceVersion", watch->plural);
        on_failure(watch, &err);
        return;
    }
    if (!tell_vanished(watch))
        return;
    replace(&watch->version, version->text);
    watch->is_in_trouble = false;
    watch->has_synced = true;
    if (watch->observer.synced) {
        watch->was_freed = &was_freed;
        watch->observer.synced(watch->observer.context);
        if (was_freed)
            return;
        watch->was_freed = NULL;
    }
    event_active(watch->step, 0, 0);
}

/* ---- the stream ---- */

static bool on_line(void *context, const struct watch_line *line) {
    struct watch *watch = context;
    const struct node *code;
    struct known *known;

    watch->is_in_trouble = false;
    switch (line->kind) {
    case WATCH_LINE_ERROR:
        code = node_get(line->object, "code");
        /* 410 needs no wait: the list is what helps. */
        if (code && code->kind == NODE_INT && code->integer == 410)
            watch->failures = 0;
        list_again(watch);
        return false;
    case WATCH_LINE_BOOKMARK: break;
    case WATCH_LINE_ADDED:
    case WATCH_LINE_MODIFIED:
        if (!see(watch, line))
            return false;
        break;
    case WATCH_LINE_DELETED:
        known = find(watch, line);
        if (known && !tell_end(watch, known, line->object))
            return false;
        break;
    case WATCH_LINE_KIND_COUNT: break;
    }
    watch->failures = 0;
    replace(&watch->version, line->version);
    return true;
}

static void on_open(void *context) {
    struct watch *watch = context;

    watch->opened_us = clock_monotonic_us();
}

static bool on_bytes(void *context, const char *bytes, size_t n) {
    struct watch *watch = context;
    bool was_freed = false, goes_on;
    struct error err;
    int status;

    watch->was_freed = &was_freed;
    status = watch_decode(&watch->decoder, bytes, n, on_line, watch, &err);
    if (was_freed)
        return false;
    watch->was_freed = NULL;
    if (status)
        list_again(watch); /* whatever it was, the list tells it */
    goes_on = watch->version != NULL;
    return goes_on;
}

static void on_end(void *context, const struct api_answer *answer) {
    struct watch *watch = context;
    const bool was_open = answer->status >= 200 && answer->status < 300;

    watch->call = NULL;
    buf_clear(&watch->decoder.rest);
    if (answer->status == 410)
        list_again(watch);
    else if (!was_open && answer->err.code != ERROR_NONE) {
        on_failure(watch, &answer->err);
        return;
    }
    if (was_open && clock_monotonic_us() - watch->opened_us >
                        (int64_t)api_options(watch->api)->longest_wait_ms * 1000)
        watch->failures = 0; /* it served, though there was nothing to tell */
    /* Streams end: by time, by restarts, by whatever lies between. It goes on where it was; the
     * first time at once, and slower when nothing comes of it. */
    if (watch->failures == 0) {
        watch->failures = 1;
        event_active(watch->step, 0, 0);
    } else
        next_later(watch);
}

static int make_path(const struct watch *watch, struct buf *path, struct error *err) {
    const struct api_resource resource = { watch->group, watch->version_of_api, watch->plural,
                                           watch->namespace };
    char seconds[16];

    snprintf(seconds, sizeof seconds, "%u", STREAM_S / 2 + arc4random_uniform(STREAM_S / 2));
    if (api_path(&resource, NULL, NULL, path, err) || api_query("watch", "true", path, err) ||
        api_query("allowWatchBookmarks", "true", path, err) ||
        api_query("timeoutSeconds", seconds, path, err) ||
        api_query("resourceVersion", watch->version, path, err) ||
        api_query("labelSelector", watch->labels, path, err) ||
        api_query("fieldSelector", watch->fields, path, err))
        return -1;
    return 0;
}

static void on_step(evutil_socket_t fd, short what, void *context) {
    struct watch *watch = context;
    const struct api_resource resource = { watch->group, watch->version_of_api, watch->plural,
                                           watch->namespace };
    const struct api_selector selector = { watch->labels, watch->fields };
    AUTO(buf) path = BUF_INIT(64 << 10);
    struct error err;

    (void)fd, (void)what;
    if (!watch->version) {
        watch->round++;
        watch->call = api_list(watch->api, &resource, &selector, on_item, on_list, watch);
    } else if (make_path(watch, &path, &err)) {
        watch->observer.failed(watch->observer.context, &err);
    } else {
        const struct api_sink sink = {
            .opened = on_open, .bytes = on_bytes, .done = on_end, .context = watch
        };

        watch->call = api_stream(watch->api, path.data, API_IDLE_LIMITED, &sink);
    }
}

/* ---- life ---- */

struct watch *watch_new(struct api *api, const struct api_resource *resource,
                        const struct api_selector *selector,
                        const struct watch_observer *observer) {
    struct watch *watch = calloc(1, sizeof *watch);

    if (!watch)
        abort();
    *watch = (struct watch){
        .api = api,
        .group = copy(resource->group),
        .version_of_api = copy(resource->version),
        .plural = copy(resource->plural),
        .namespace = copy(resource->namespace),
        .labels = copy(selector ? selector->labels : NULL),
        .fields = copy(selector ? selector->fields : NULL),
        .observer = *observer,
        .decoder = WATCH_DECODER_INIT,
    };
    watch->step = event_new(api_loop(api), -1, 0, on_step, watch);
    if (!watch->step)
        abort();
    event_active(watch->step, 0, 0);
    return watch;
}

void watch_wake(struct watch *watch) {
    api_cancel(watch->call);
    watch->call = NULL;
    watch->failures = 0;
    buf_clear(&watch->decoder.rest);
    event_active(watch->step, 0, 0);
}

void watch_free(struct watch *watch) {
    if (!watch)
        return;
    if (watch->was_freed)
        *watch->was_freed = true;
    api_cancel(watch->call);
    event_free(watch->step);
    watch_decoder_release(&watch->decoder);
    tdestroy(watch->known, known_free);
    free(watch->version);
    free(watch->group);
    free(watch->version_of_api);
    free(watch->plural);
    free(watch->namespace);
    free(watch->labels);
    free(watch->fields);
    free(watch);
}
