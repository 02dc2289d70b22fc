/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fold_lines.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 2048 };

/* A line that is held. Groups are numbered from 1 in the order they were begun, and live in a
 * ring: number s is ring[s % FOLD_GROUPS_MOST]. */
struct group {
    char *line;
    size_t n;
    uint64_t hash;
    uint64_t older; /* the group before it in its bucket */
    int64_t stamp, begun_us;
    uint64_t *ranks;
    uint32_t n_ranks, first;
};

struct fold_lines {
    fold_sink *sink;
    void *context;
    uint32_t n_ranks, n_awaited;
    size_t set_words;
    uint64_t head, tail; /* the groups that are held: head <= s < tail */
    size_t held_bytes;
    uint64_t *last; /* by rank: the group of its newest line */
    bool *is_ended; /* by rank */
    uint64_t buckets[BUCKETS];
    struct group ring[FOLD_GROUPS_MOST];
};

static void *zeroed(size_t n, size_t size) {
    void *memory = calloc(n ? n : 1, size);

    if (!memory)
        abort();
    return memory;
}

struct fold_lines *fold_lines_new(uint32_t n_ranks, fold_sink *sink, void *context) {
    struct fold_lines *fold = zeroed(1, sizeof *fold);

    fold->sink = sink;
    fold->context = context;
    fold->n_ranks = fold->n_awaited = n_ranks;
    fold->set_words = (n_ranks + 63) / 64;
    fold->head = fold->tail = 1;
    fold->last = zeroed(n_ranks, sizeof *fold->last);
    fold->is_ended = zeroed(n_ranks, sizeof *fold->is_ended);
    return fold;
}

void fold_lines_free(struct fold_lines *fold) {
    if (!fold)
        return;
    for (size_t i = 0; i < FOLD_GROUPS_MOST; i++) {
        free(fold->ring[i].line);
        free(fold->ring[i].ranks);
    }
    free(fold->last);
    free(fold->is_ended);
    free(fold);
}

static struct group *group_at(struct fold_lines *fold, uint64_t number) {
    return &fold->ring[number % FOLD_GROUPS_MOST];
}

static void give_out_head(struct fold_lines *fold) {
    struct group *group = group_at(fold, fold->head++);
    const struct folded folded = {
        .line = group->line,
        .n = group->n,
        .stamp = group->stamp,
        .n_ranks = group->n_ranks,
        .first = group->first,
        .ranks = group->ranks,
    };

    fold->sink(fold->context, &folded);
    fold->held_bytes -= group->n;
    free(group->line);
    group->line = NULL;
}

static bool is_due(const struct fold_lines *fold, const struct group *group, int64_t now_us) {
    return group->n_ranks >= fold->n_awaited || now_us - group->begun_us >= FOLD_HOLD_US ||
           now_us < group->begun_us;
}

void fold_lines_tick(struct fold_lines *fold, int64_t now_us) {
    while (fold->head < fold->tail && is_due(fold, group_at(fold, fold->head), now_us))
        give_out_head(fold);
}

void fold_lines_flush(struct fold_lines *fold) {
    while (fold->head < fold->tail)
        give_out_head(fold);
}

bool fold_lines_holds(const struct fold_lines *fold) {
    return fold->head < fold->tail;
}

static uint64_t hash_of(const char *line, size_t n) {
    uint64_t hash = 14695981039346656037ull; /* FNV-1a */

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)line[i]) * 1099511628211ull;
    return hash;
}

/* The oldest group of this line behind the rank's newest one: to join an earlier one would put
 * the rank's lines out of order. 0: none. */
static uint64_t group_to_join(struct fold_lines *fold, uint32_t rank, const char *line, size_t n,
                              uint64_t hash) {
    uint64_t found = 0;

    for (uint64_t s = fold->buckets[hash % BUCKETS]; s >= fold->head && s > fold->last[rank];
         s = group_at(fold, s)->older) {
        const struct group *group = group_at(fold, s);

        if (group->hash == hash && group->n == n && memcmp(group->line, line, n) == 0)
            found = s;
    }
    return found;
}

static uint64_t begin_group(struct fold_lines *fold, const char *line, size_t n, uint64_t hash) {
    const uint64_t number = fold->tail++;
    struct group *group = group_at(fold, number);

    if (!group->ranks)
        group->ranks = zeroed(fold->set_words, sizeof *group->ranks);
    memset(group->ranks, 0, fold->set_words * sizeof *group->ranks);
    group->line = zeroed(n, 1);
    memcpy(group->line, line, n);
    group->n = n;
    group->hash = hash;
    group->n_ranks = 0;
    group->first = UINT32_MAX;
    group->older = fold->buckets[hash % BUCKETS];
    fold->buckets[hash % BUCKETS] = number;
    fold->held_bytes += n;
    return number;
}

void fold_lines_feed(struct fold_lines *fold, uint32_t rank, const char *line, size_t n,
                     int64_t stamp, int64_t now_us) {
    const uint64_t hash = hash_of(line, n);
    struct group *group;
    uint64_t number;

    fold_lines_tick(fold, now_us);
    number = group_to_join(fold, rank, line, n, hash);
    if (number == 0) {
        while (fold->head < fold->tail && (fold->tail - fold->head == FOLD_GROUPS_MOST ||
                                           fold->held_bytes + n > FOLD_BYTES_MOST))
            give_out_head(fold);
        number = begin_group(fold, line, n, hash);
        group_at(fold, number)->stamp = stamp;
        group_at(fold, number)->begun_us = now_us;
    }
    group = group_at(fold, number);
    group->ranks[rank / 64] |= 1ull << rank % 64;
    group->n_ranks++;
    group->first = rank < group->first ? rank : group->first;
    fold->last[rank] = number;
    fold_lines_tick(fold, now_us);
}

void fold_lines_ended(struct fold_lines *fold, uint32_t rank) {
    if (fold->is_ended[rank])
        return;
    fold->is_ended[rank] = true;
    fold->n_awaited--;
}

void fold_lines_goes_on(struct fold_lines *fold, uint32_t rank) {
    if (!fold->is_ended[rank])
        return;
    fold->is_ended[rank] = false;
    fold->n_awaited++;
}
