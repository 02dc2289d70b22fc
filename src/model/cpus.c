/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cpus.h"

#include <assert.h>
#include <string.h>

void cpus_add(struct cpus *set, uint32_t cpu) {
    assert(cpu < CPUS_MAX);
    set->words[cpu / 64] |= (uint64_t)1 << cpu % 64;
}

bool cpus_has(const struct cpus *set, uint32_t cpu) {
    return cpu < CPUS_MAX && set->words[cpu / 64] >> cpu % 64 & 1;
}

uint32_t cpus_count(const struct cpus *set) {
    uint32_t n = 0;

    for (int i = 0; i < CPUS_WORDS; i++)
        n += (uint32_t)__builtin_popcountll(set->words[i]);
    return n;
}

bool cpus_are_equal(const struct cpus *a, const struct cpus *b) {
    return memcmp(a->words, b->words, sizeof a->words) == 0;
}

void cpus_join(struct cpus *set, const struct cpus *more) {
    for (int i = 0; i < CPUS_WORDS; i++)
        set->words[i] |= more->words[i];
}

void cpus_remove(struct cpus *set, const struct cpus *less) {
    for (int i = 0; i < CPUS_WORDS; i++)
        set->words[i] &= ~less->words[i];
}

void cpus_keep(struct cpus *set, const struct cpus *only) {
    for (int i = 0; i < CPUS_WORDS; i++)
        set->words[i] &= only->words[i];
}

int cpus_write(const struct cpus *set, struct buf *out, struct error *err) {
    const char *comma = "";

    for (uint32_t first = 0; first < CPUS_MAX; first++) {
        uint32_t last = first;

        if (!cpus_has(set, first))
            continue;
        while (cpus_has(set, last + 1))
            last++;
        if (first == last ? buf_printf(out, err, "%s%u", comma, first)
                          : buf_printf(out, err, "%s%u-%u", comma, first, last))
            return -1;
        comma = ",";
        first = last;
    }
    return 0;
}
