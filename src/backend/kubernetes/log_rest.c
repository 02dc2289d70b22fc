/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/log_rest.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum {
    KEPT_MOST = 16 << 20, /* nodes keep 10 MiB unless they are told otherwise */
    PATH_MOST = 4096,
};

struct log_rest {
    struct log_rest_observer observer;
    struct api_call *call;
    struct buf tail;
    size_t kept; /* how much of the tail counts */
    uint64_t wanted;
};

static bool on_bytes(void *context, const char *bytes, size_t n) {
    struct log_rest *rest = context;
    struct error err;

    if (n > rest->kept) {
        bytes += n - rest->kept;
        n = rest->kept;
    }
    /* The buffer has twice the room, so that its end is moved to its beginning only now and then.
     */
    if (rest->tail.len + n > 2 * rest->kept) {
        memmove(rest->tail.data, rest->tail.data + rest->tail.len - rest->kept, rest->kept);
        rest->tail.len = rest->kept;
    }
    return buf_append(&rest->tail, bytes, n, &err) == 0;
}

static void on_done(void *context, const struct api_answer *answer) {
    struct log_rest *rest = context;
    size_t n = rest->tail.len < rest->kept ? rest->tail.len : rest->kept;

    rest->call = NULL;
    if (answer->err.code != ERROR_NONE)
        n = 0; /* of a part nobody knows which it is */
    if (n > 0)
        rest->observer.output(rest->observer.context, rest->tail.data + rest->tail.len - n, n);
    rest->observer.done(rest->observer.context, rest->wanted - n);
}

struct log_rest *log_rest_new(struct api *api, const struct follower_place *place, uint64_t wanted,
                              const struct log_rest_observer *observer) {
    const struct api_resource pods = { .version = "v1",
                                       .plural = "pods",
                                       .namespace = place->namespace };
    struct log_rest *rest = calloc(1, sizeof *rest);
    const struct api_sink sink = { .bytes = on_bytes, .done = on_done, .context = rest };
    AUTO(buf) path = BUF_INIT(PATH_MOST);
    struct error err;

    if (!rest)
        abort();
    rest->observer = *observer;
    rest->wanted = wanted;
    rest->kept = wanted < KEPT_MOST ? (size_t)wanted : KEPT_MOST;
    rest->tail = (struct buf)BUF_INIT(2 * KEPT_MOST);
    if (api_path(&pods, place->pod, "log", &path, &err) ||
        api_query("container", place->container, &path, &err))
        buf_clear(&path); /* which the client refuses */
    rest->call = api_stream(api, path.data, API_IDLE_LIMITED, &sink);
    return rest;
}

void log_rest_free(struct log_rest *rest) {
    if (!rest)
        return;
    api_cancel(rest->call);
    buf_release(&rest->tail);
    free(rest);
}
