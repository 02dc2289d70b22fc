/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps one list of objects current: list, then watch from there, for ever.
 *
 * The caller is told of every object that there is (ADDED), of each change (MODIFIED) and of each
 * end (DELETED), once each and in order for one object, whatever happens between: cut connections,
 * time-outs, restarts of the API server, "410 Gone". After a gap the list is read again and
 * compared: what changed is told, what did not is not told again, and what vanished is DELETED
 * without an object. An object that was replaced by another of the same name is DELETED (old uid)
 * and then ADDED.
 *
 * Several changes of an object in a gap come as one: what is told is the state, not its history.
 *
 * `synced` comes after each complete list: at the first one the caller knows everything.
 * `trouble` comes when the server cannot be asked, once for an outage; the watch goes on by itself
 * and `synced` or the next event says that it is over. `failed` comes when going on is useless
 * (403, 404: no such resource, no valid credentials); nothing comes after it, and the watch is then
 * to be freed. Who was let in once is in trouble instead when it is not any more: credentials
 * expire while a machine sleeps, and somebody logs in again.
 *
 * Only names, uids and versions are kept, not objects. watch_free may be called from any of the
 * callbacks; nothing comes after it.
 */
#ifndef BACKEND_KUBERNETES_WATCH_H
#define BACKEND_KUBERNETES_WATCH_H

#include "backend/kubernetes/api.h"

enum watch_kind { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED };

struct watch_event {
    enum watch_kind kind;
    const char *namespace, *name, *uid; /* namespace "" where there is none */
    const struct node *object;          /* NULL: it vanished while nobody looked */
};

struct watch_observer {
    void (*event)(void *context, const struct watch_event *event);
    void (*synced)(void *context);                           /* may be NULL */
    void (*trouble)(void *context, const struct error *err); /* may be NULL */
    void (*failed)(void *context, const struct error *err);
    void *context;
};

struct watch;

/* Copies what it is given. */
struct watch *watch_new(struct api *api, const struct api_resource *resource,
                        const struct api_selector *selector, const struct watch_observer *observer);

/* After a sleep: what the stream stood on is gone, mostly without a word, and would be waited for.
 * It is asked for anew from where it was. */
void watch_wake(struct watch *watch);

/* Takes NULL. */
void watch_free(struct watch *watch);

#endif
