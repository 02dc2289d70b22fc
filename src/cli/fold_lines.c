/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fold_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { BUCKETS = 2048 };

/* A line that is held. Groups are numbered from 1 in the order they were begun, which is the order
 * they go out in, and live in a ring: number s is ring[s % FOLD_GROUPS_MOST]. */
struct group {
    char *line;
    size_t n;
    uint64_t hash;
    uint64_t older; /* the group before it in its bucket */
    int64_t stamp, begun_us;
    uint64_t *ranks;
    uint32_t n_ranks, first;
    uint32_t n_ended; /* of its ranks: of those nobody is awaited */
};

struct fold_lines {
    fold_sink *sink;
    void *context;
    uint32_t n_ranks, n_awaited;
    size_t set_words;
    uint64_t oldest, tail; /* the groups that are held: oldest <= s < tail */
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
    fold->oldest = fold->tail = 1;
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

static void give_out_oldest(struct fold_lines *fold) {
    struct group *group = group_at(fold, fold->oldest);
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
    fold->oldest++;
}

static void give_out_through(struct fold_lines *fold, uint64_t number) {
    while (fold->oldest <= number)
        give_out_oldest(fold);
}

static bool is_complete(const struct fold_lines *fold, const struct group *group) {
    return group->n_ranks - group->n_ended >= fold->n_awaited;
}

/* Times may be any that a file holds, and lie further apart than their type can tell. */
static bool was_held_long(const struct group *group, int64_t now_us) {
    return now_us < group->begun_us || (uint64_t)now_us - (uint64_t)group->begun_us >= FOLD_HOLD_US;
}

void fold_lines_tick(struct fold_lines *fold, int64_t now_us) {
    while (fold_lines_holds(fold) && (is_complete(fold, group_at(fold, fold->oldest)) ||
                                      was_held_long(group_at(fold, fold->oldest), now_us)))
        give_out_oldest(fold);
}

void fold_lines_flush(struct fold_lines *fold) {
    while (fold_lines_holds(fold))
        give_out_oldest(fold);
}

bool fold_lines_holds(const struct fold_lines *fold) {
    return fold->oldest < fold->tail;
}

/* The first group of this line behind the rank's newest one: to join an earlier one would put
 * the rank's lines out of order. 0: none. */
static uint64_t group_to_join(struct fold_lines *fold, uint32_t rank, const char *line, size_t n,
                              uint64_t hash) {
    const uint64_t last = fold->last[rank];
    uint64_t found = 0;

    if (last + 1 == fold->tail)
        return 0; /* which spares a rank that repeats itself the search among its own lines */
    for (uint64_t s = fold->buckets[hash % BUCKETS]; s >= fold->oldest && s > last;
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
    group->n_ranks = group->n_ended = 0;
    group->first = UINT32_MAX;
    group->older = fold->buckets[hash % BUCKETS];
    fold->buckets[hash % BUCKETS] = number;
    fold->held_bytes += n;
    return number;
}

void fold_lines_feed(struct fold_lines *fold, uint32_t rank, const char *line, size_t n,
                     int64_t stamp, int64_t now_us) {
    const uint64_t hash = hash_bytes(HASH_INIT, line, n);
    struct group *group;
    uint64_t number;

    fold_lines_tick(fold, now_us);
    number = group_to_join(fold, rank, line, n, hash);
    if (number == 0) {
        if (fold->tail - fold->oldest == FOLD_GROUPS_MOST)
            give_out_oldest(fold);
        while (fold_lines_holds(fold) && fold->held_bytes + n > FOLD_BYTES_MOST)
            give_out_oldest(fold);
        number = begin_group(fold, line, n, hash);
        group_at(fold, number)->stamp = stamp;
        group_at(fold, number)->begun_us = now_us;
    }
    group = group_at(fold, number);
    group->ranks[rank / 64] |= 1ull << rank % 64;
    group->n_ranks++;
    group->n_ended += fold->is_ended[rank];
    group->first = rank < group->first ? rank : group->first;
    fold->last[rank] = number;
    if (is_complete(fold, group))
        give_out_through(fold, number); /* what any rank writes from now on comes behind it */
}

/* The groups that are held and have the rank count it among those that have ended, or no more. */
static void recount(struct fold_lines *fold, uint32_t rank, uint32_t change) {
    for (uint64_t s = fold->oldest; s < fold->tail; s++)
        if (group_at(fold, s)->ranks[rank / 64] >> rank % 64 & 1)
            group_at(fold, s)->n_ended += change;
}

void fold_lines_ended(struct fold_lines *fold, uint32_t rank) {
    if (fold->is_ended[rank])
        return;
    fold->is_ended[rank] = true;
    fold->n_awaited--;
    recount(fold, rank, 1);
}

void fold_lines_goes_on(struct fold_lines *fold, uint32_t rank) {
    if (!fold->is_ended[rank])
        return;
    fold->is_ended[rank] = false;
    fold->n_awaited++;
    recount(fold, rank, UINT32_MAX); /* one less */
}
