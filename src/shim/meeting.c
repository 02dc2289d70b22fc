/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/meeting.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/hash.h"

enum {
    FIRST_SLOTS = 64,    /* a power of two, as all sizes of the table are */
    ADDRESS_BYTES = 136, /* of one peer, in Horovod's encoding */
    SCOPES = 6,
    KEYS_PER_RANK = 2,
    PROCESS_SETS = 16, /* that a program may reasonably make */
};

static const struct meeting_answer done = { 200, "OK", "", 0 };
static const struct meeting_answer malformed = { 400, "Bad Request", "", 0 };
static const struct meeting_answer missing = { 404, "Not Found", "", 0 };
static const struct meeting_answer no_method = { 405, "Method Not Allowed", "", 0 };
static const struct meeting_answer too_large = { 413, "Payload Too Large", "", 0 };
static const struct meeting_answer too_long = { 414, "URI Too Long", "", 0 };
static const struct meeting_answer full = { 507, "Insufficient Storage", "", 0 };

/* Open addressing; a deleted key keeps its name with no body, so that chains hold. Keys
 * that come back take their old slot, and names are bounded in number like keys. */
struct slot {
    char *key; /* NULL: never used */
    char *body;
    size_t len;
    bool present;
};

struct meeting {
    struct meeting_limits limits;
    struct slot *slots;
    size_t n_slots, n_used, bytes;
};

struct meeting_limits meeting_limits_for(uint32_t n_tasks) {
    const size_t n = n_tasks;

    return (struct meeting_limits){
        .keys = n * SCOPES * KEYS_PER_RANK * PROCESS_SETS + 1024,
        .key_bytes = 512,
        .body_bytes = n * ADDRESS_BYTES + 4096,
        .all_bytes = n * n * ADDRESS_BYTES * SCOPES * 2 + (16u << 20),
    };
}

/* The slot of the key, or the free one where it would be. */
static struct slot *find(const struct meeting *m, const char *key) {
    size_t i = (size_t)hash_of(key, strlen(key)) & (m->n_slots - 1);

    while (m->slots[i].key && strcmp(m->slots[i].key, key) != 0)
        i = (i + 1) & (m->n_slots - 1);
    return &m->slots[i];
}

/* Half of the slots stay free, so that a search ends soon. False: there is no memory. */
static bool make_room(struct meeting *m) {
    struct meeting larger = *m;

    if (m->n_slots && (m->n_used + 1) * 2 <= m->n_slots)
        return true;
    larger.n_slots = m->n_slots ? m->n_slots * 2 : FIRST_SLOTS;
    larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].key)
            *find(&larger, m->slots[i].key) = m->slots[i];
    free(m->slots);
    *m = larger;
    return true;
}

static struct meeting_answer put(struct meeting *m, const char *path, const char *body, size_t n) {
    struct slot *slot = find(m, path);
    char *copy;

    if (n > m->limits.body_bytes)
        return too_large;
    if ((!slot->key && m->n_used >= m->limits.keys) ||
        m->bytes - slot->len + n > m->limits.all_bytes || !make_room(m))
        return full;
    slot = find(m, path);
    copy = malloc(n + 1);
    if (!copy)
        return full;
    if (!slot->key) {
        slot->key = strdup(path);
        if (!slot->key) {
            free(copy);
            return full;
        }
        m->n_used++;
    }
    if (n)
        memcpy(copy, body, n);
    free(slot->body);
    m->bytes += n - slot->len;
    slot->body = copy;
    slot->len = n;
    slot->present = true;
    return done;
}

static struct meeting_answer get(const struct meeting *m, const char *path) {
    const struct slot *slot = find(m, path);

    return slot->present ? (struct meeting_answer){ 200, "OK", slot->body, slot->len } : missing;
}

static struct meeting_answer drop(struct meeting *m, const char *path) {
    struct slot *slot = find(m, path);

    free(slot->body);
    m->bytes -= slot->len;
    slot->body = NULL;
    slot->len = 0;
    slot->present = false;
    return done;
}

/* "/scope/key": two parts, both with something in them. */
static bool is_scope_and_key(const char *path) {
    const char *second = path[0] == '/' ? strchr(path + 1, '/') : NULL;

    return second && second > path + 1 && second[1] != '\0' && !strchr(second + 1, '/');
}

struct meeting_answer meeting_ask(struct meeting *m, enum meeting_method method, const char *path,
                                  const char *body, size_t n) {
    if (strlen(path) > m->limits.key_bytes)
        return too_long;
    if (!is_scope_and_key(path))
        return malformed;
    switch (method) {
    case MEETING_PUT: return put(m, path, body, n);
    case MEETING_GET: return get(m, path);
    case MEETING_DELETE: return drop(m, path);
    case MEETING_OTHER: break;
    }
    return no_method;
}

struct meeting *meeting_new(const struct meeting_limits *limits) {
    struct meeting *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->limits = *limits;
    if (make_room(m))
        return m;
    free(m);
    return NULL;
}

void meeting_free(struct meeting *m) {
    if (!m)
        return;
    for (size_t i = 0; i < m->n_slots; i++) {
        free(m->slots[i].key);
        free(m->slots[i].body);
    }
    free(m->slots);
    free(m);
}
