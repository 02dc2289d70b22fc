/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, page by page, and what a cluster offers: the calls that ask more than once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/api_call.h"
#include "base/vec.h"

static char *copy(const char *text) {
    char *copied = text ? strdup(text) : NULL;

    if (text && !copied)
        abort();
    return copied;
}

/* ---- lists ---- */

static void ask_page(struct api_call *call, const char *next) {
    const struct api_options *options = api_options(call->api);
    char limit[16];
    struct error err;

    snprintf(limit, sizeof limit, "%u", options->page);
    buf_clear(&call->path);
    if (buf_append(&call->path, call->base.data, call->base.len, &err) ||
        api_query("labelSelector", call->labels, &call->path, &err) ||
        api_query("fieldSelector", call->fields, &call->path, &err) ||
        api_query("limit", call->is_whole ? NULL : limit, &call->path, &err) ||
        api_query("continue", next, &call->path, &err))
        call->refused = err;
    api_call_ask(call, "GET");
}

static void settle_list(struct api_call *call, struct api_answer *answer) {
    const struct node *items = node_get(answer->object, "items");
    struct arena arena = call->arena;
    char *next;
    bool was_freed = false;

    /* The place in the list got too old: all of it at once is slower, and always works. */
    if (answer->status == 410 && !call->is_whole) {
        call->is_whole = true;
        ask_page(call, NULL);
        return;
    }
    if (answer->err.code != ERROR_NONE) {
        api_call_finish(call, answer);
        return;
    }
    /* A callback may cancel the call while its items are walked. */
    call->arena = (struct arena)ARENA_INIT;
    call->was_freed = &was_freed;
    for (uint32_t i = 0; items && items->kind == NODE_LIST && i < items->count && !was_freed; i++)
        call->item(call->context, &items->items[i]);
    if (!was_freed) {
        call->was_freed = NULL;
        next = copy(node_get_text(node_get(answer->object, "metadata"), "continue", ""));
        call->arena = arena;
        if (next[0])
            ask_page(call, next);
        else
            api_call_finish(call, answer);
        free(next);
    } else
        arena_release(&arena);
}

struct api_call *api_list(struct api *api, const struct api_resource *resource,
                          const struct api_selector *selector,
                          void (*item)(void *context, const struct node *object), api_done *done,
                          void *context) {
    struct api_call *call = api_call_new(api, "list", resource, NULL, NULL);
    struct buf empty = call->base;

    call->base = call->path;
    call->path = empty;
    call->labels = copy(selector ? selector->labels : NULL);
    call->fields = copy(selector ? selector->fields : NULL);
    call->item = item;
    call->settle = settle_list;
    call->done = done;
    call->context = context;
    ask_page(call, NULL);
    return call;
}

/* ---- discovery ---- */

enum { VERSIONS_MAX = 32, KINDS_MAX = 10000 };

struct discovery {
    struct arena arena;
    char *group;
    const char *versions[VERSIONS_MAX]; /* the preferred one first */
    size_t n_versions, at;              /* `at` is the one that is asked for */
    VEC(struct api_kind) kinds;
    api_kinds_done *done;
    void *context;
};

void discovery_free(struct discovery *discovery) {
    if (!discovery)
        return;
    arena_release(&discovery->arena);
    VEC_RELEASE(&discovery->kinds);
    free(discovery->group);
    free(discovery);
}

static void finish_discovery(struct api_call *call, const struct error *err) {
    struct discovery *discovery = call->discovery;

    call->discovery = NULL;
    api_call_free(call);
    discovery->done(discovery->context, err, discovery->kinds.items, discovery->kinds.len);
    discovery_free(discovery);
}

static void settle_kinds(struct api_call *call, struct api_answer *answer);

static void ask_version(struct api_call *call) {
    struct discovery *discovery = call->discovery;
    const struct api_resource resource = { .group = discovery->group,
                                           .version = discovery->versions[discovery->at] };
    struct error err;

    buf_clear(&call->path);
    if (api_path(&resource, NULL, NULL, &call->path, &err))
        call->refused = err;
    call->settle = settle_kinds;
    api_call_ask(call, "GET");
}

static void settle_kinds(struct api_call *call, struct api_answer *answer) {
    struct discovery *discovery = call->discovery;
    const struct node *list = node_get(answer->object, "resources");

    /* A version that was taken away since has nothing. */
    if (answer->err.code != ERROR_NONE && answer->status != 404) {
        finish_discovery(call, &answer->err);
        return;
    }
    for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
        const struct node *item = &list->items[i];
        const char *plural = node_get_text(item, "name", "");
        const char *kind = node_get_text(item, "kind", "");

        if (strchr(plural, '/') || !plural[0] || !kind[0] || discovery->kinds.len >= KINDS_MAX)
            continue; /* subresources */
        *VEC_PUSH(&discovery->kinds) = (struct api_kind){
            .version = discovery->versions[discovery->at],
            .kind = arena_text(&discovery->arena, kind, strlen(kind)),
            .plural = arena_text(&discovery->arena, plural, strlen(plural)),
            .namespaced = node_get_truth(item, "namespaced"),
        };
    }
    if (++discovery->at < discovery->n_versions)
        ask_version(call);
    else
        finish_discovery(call, &(struct error){ .code = ERROR_NONE });
}

static void add_version(struct discovery *discovery, const char *version) {
    for (size_t i = 0; i < discovery->n_versions; i++)
        if (strcmp(discovery->versions[i], version) == 0)
            return;
    if (version[0] && discovery->n_versions < VERSIONS_MAX)
        discovery->versions[discovery->n_versions++] =
            arena_text(&discovery->arena, version, strlen(version));
}

static void settle_group(struct api_call *call, struct api_answer *answer) {
    struct discovery *discovery = call->discovery;
    const struct node *versions = node_get(answer->object, "versions");

    if (answer->err.code != ERROR_NONE && answer->status != 404) {
        finish_discovery(call, &answer->err);
        return;
    }
    add_version(discovery,
                node_get_text(node_get(answer->object, "preferredVersion"), "version", ""));
    for (uint32_t i = 0; versions && versions->kind == NODE_LIST && i < versions->count; i++)
        add_version(discovery, node_get_text(&versions->items[i], "version", ""));
    if (discovery->n_versions > 0)
        ask_version(call);
    else
        finish_discovery(call, &(struct error){ .code = ERROR_NONE });
}

struct api_call *api_discover(struct api *api, const char *group, api_kinds_done *done,
                              void *context) {
    struct api_call *call = api_call_new(api, "", NULL, NULL, NULL);
    struct discovery *discovery = calloc(1, sizeof *discovery);
    const struct api_resource resource = { .group = group };
    struct error err;

    if (!discovery)
        abort();
    *discovery =
        (struct discovery){ .group = copy(group ? group : ""), .done = done, .context = context };
    call->discovery = discovery;
    snprintf(call->asked, sizeof call->asked, "ask what the cluster has of %.100s",
             group && group[0] ? group : "the core group");
    if (!group || !group[0]) {
        add_version(discovery, "v1");
        ask_version(call);
        return call;
    }
    if (api_path(&resource, NULL, NULL, &call->path, &err))
        call->refused = err;
    call->settle = settle_group;
    api_call_ask(call, "GET");
    return call;
}

const struct api_kind *api_kind_find(const struct api_kind *kinds, size_t n, const char *kind,
                                     const char *version) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(kinds[i].kind, kind) == 0 &&
            (!version || strcmp(kinds[i].version, version) == 0))
            return &kinds[i];
    return NULL;
}
