/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/merge.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/hash.h"

/* Variables whose value counts only where the user has none of his own. */
static const char *const suggestions[] = { "GLOO_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE",
                                           "OMP_NUM_THREADS", "PYTHONUNBUFFERED" };

static size_t name_length(const char *entry) {
    return strcspn(entry, "=");
}

static bool same_name(const char *a, const char *b, size_t n) {
    return strncmp(a, b, n) == 0 && a[n] == '=' && b[n] == '=';
}

static bool is_suggestion(const char *entry, size_t n) {
    for (size_t i = 0; i < ARRAY_LEN(suggestions); i++)
        if (strlen(suggestions[i]) == n && memcmp(suggestions[i], entry, n) == 0)
            return true;
    return false;
}

/* The slot that holds the name, or the free one where it would be. */
static size_t *find(const struct merge *merge, const char *entry, size_t n) {
    size_t i = hash_bytes(HASH_INIT, entry, n) & (merge->n_slots - 1);

    while (merge->slots[i] && !same_name(merge->user[merge->slots[i] - 1], entry, n))
        i = (i + 1) & (merge->n_slots - 1);
    return &merge->slots[i];
}

void merge_init(struct merge *merge, char *const *user) {
    *merge = (struct merge){ .user = user, .n_slots = 64 };
    while (user[merge->n_user])
        merge->n_user++;
    while (merge->n_slots < merge->n_user * 2)
        merge->n_slots *= 2;
    merge->slots = calloc(merge->n_slots, sizeof *merge->slots);
    if (!merge->slots)
        abort();
    for (size_t i = 0; i < merge->n_user; i++) {
        const size_t n = name_length(user[i]);

        if (user[i][n] == '=') /* what is not NAME=value is handed on and never matched */
            *find(merge, user[i], n) = i + 1;
    }
}

void merge_release(struct merge *merge) {
    free(merge->slots);
    free(merge->result);
    *merge = (struct merge){ 0 };
}

char *const *merge_environment(struct merge *merge, char *const *ours) {
    size_t len = merge->n_user, n_ours = 0;

    while (ours[n_ours])
        n_ours++;
    if (merge->capacity < len + n_ours + 1) {
        merge->capacity = len + n_ours + 1;
        merge->result = reallocarray(merge->result, merge->capacity, sizeof *merge->result);
        if (!merge->result)
            abort();
    }
    memcpy(merge->result, merge->user, len * sizeof *merge->result);
    for (size_t i = 0; i < n_ours; i++) {
        const size_t n = name_length(ours[i]);
        const size_t place = *find(merge, ours[i], n);
        size_t at = place ? place - 1 : merge->n_user;

        if (place && is_suggestion(ours[i], n))
            continue;
        /* Among the added ones: they are few, and a name twice is rare. */
        while (!place && at < len && !same_name(merge->result[at], ours[i], n))
            at++;
        if (at == len)
            len++;
        merge->result[at] = ours[i];
    }
    merge->result[len] = NULL;
    return merge->result;
}
