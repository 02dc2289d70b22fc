/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of CPUs, by the kernel's numbers. A CPU is what the kernel schedules on: a hardware
 * thread, of which a core may have several. The words are laid out as sched_setaffinity(2) takes
 * them. CPUs beyond CPUS_MAX are not in any set, so nobody is pinned to them.
 */
#ifndef MODEL_CPUS_H
#define MODEL_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum {
    CPUS_MAX = 1024,
    CPUS_WORDS = CPUS_MAX / 64,
    CPUS_TEXT_MOST = 5 * CPUS_MAX, /* of cpus_write */
};

struct cpus {
    uint64_t words[CPUS_WORDS];
};

void cpus_add(struct cpus *set, uint32_t cpu);
bool cpus_has(const struct cpus *set, uint32_t cpu);
uint32_t cpus_count(const struct cpus *set);
bool cpus_are_equal(const struct cpus *a, const struct cpus *b);

void cpus_join(struct cpus *set, const struct cpus *more);
void cpus_remove(struct cpus *set, const struct cpus *less);
void cpus_keep(struct cpus *set, const struct cpus *only);

/* "0-3,8"; nothing for the empty set. */
MUST_CHECK int cpus_write(const struct cpus *set, struct buf *out, struct error *err);

#endif
