/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/cluster.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NO_MACHINE UINT32_MAX

static milli count_gpus(gpu_set gpus) {
    return (milli)__builtin_popcountll(gpus) * 1000;
}

static void raise_maxima(struct cluster *cluster, uint32_t leaf) {
    for (uint32_t i = leaf / 2; i > 0; i /= 2) {
        const struct level *a = &cluster->tree[2 * i], *b = &cluster->tree[2 * i + 1];

        for (enum resource r = 0; r < RESOURCE_COUNT; r++)
            cluster->tree[i].free[r] = a->free[r] > b->free[r] ? a->free[r] : b->free[r];
    }
}

void cluster_init(struct cluster *cluster, const struct machine *machines, uint32_t n) {
    *cluster = (struct cluster){ .n = n, .n_leaves = 1 };
    while (cluster->n_leaves < n)
        cluster->n_leaves *= 2;
    cluster->tree = calloc(2u * cluster->n_leaves, sizeof *cluster->tree);
    cluster->gpus = calloc(n + 1u, sizeof *cluster->gpus);
    if (!cluster->tree || !cluster->gpus)
        abort();
    for (uint32_t i = 0; i < cluster->n_leaves; i++) {
        struct level *leaf = &cluster->tree[cluster->n_leaves + i];

        for (enum resource r = 0; r < RESOURCE_COUNT; r++)
            leaf->free[r] = i < n ? machines[i].amount[r] : -1;
        if (i < n) {
            cluster->gpus[i] = machines[i].gpus;
            leaf->free[RESOURCE_GPU] = count_gpus(machines[i].gpus);
        }
    }
    for (uint32_t i = cluster->n_leaves; i < 2 * cluster->n_leaves; i += 2)
        raise_maxima(cluster, i);
}

void cluster_release(struct cluster *cluster) {
    free(cluster->tree);
    free(cluster->gpus);
    *cluster = (struct cluster){ 0 };
}

static void change(struct cluster *cluster, uint32_t machine, const milli amount[RESOURCE_COUNT],
                   milli sign) {
    struct level *leaf = &cluster->tree[cluster->n_leaves + machine];

    for (enum resource r = 0; r < RESOURCE_COUNT; r++)
        leaf->free[r] += sign * amount[r];
    leaf->free[RESOURCE_GPU] = count_gpus(cluster->gpus[machine]);
    raise_maxima(cluster, cluster->n_leaves + machine);
}

void cluster_take(struct cluster *cluster, uint32_t machine, const milli amount[RESOURCE_COUNT],
                  gpu_set gpus) {
    assert(machine < cluster->n);
    cluster->gpus[machine] &= ~gpus;
    change(cluster, machine, amount, -1);
}

static void give(struct cluster *cluster, uint32_t machine, const milli amount[RESOURCE_COUNT],
                 gpu_set gpus) {
    assert(machine < cluster->n && !(cluster->gpus[machine] & gpus));
    cluster->gpus[machine] |= gpus;
    change(cluster, machine, amount, 1);
}

/* How many tasks that ask for `amount` fit into what is free, at most `most`. */
static uint32_t how_many(const struct level *level, const milli amount[RESOURCE_COUNT],
                         uint32_t most) {
    milli n = most;

    for (enum resource r = 0; r < RESOURCE_COUNT; r++) {
        if (amount[r] == 0)
            continue; /* also where less than nothing is free */
        if (level->free[r] < amount[r])
            return 0;
        if (level->free[r] / amount[r] < n)
            n = level->free[r] / amount[r];
    }
    return (uint32_t)n;
}

/* The first machine from `from` on that takes a task, below inner node i, which stands for the
 * machines [low, low + width). */
static uint32_t find_first(const struct cluster *cluster, uint32_t i, uint32_t low, uint32_t width,
                           uint32_t from, const milli amount[RESOURCE_COUNT]) {
    uint32_t found;

    if (low + width <= from || low >= cluster->n || !how_many(&cluster->tree[i], amount, 1))
        return NO_MACHINE;
    if (width == 1)
        return low;
    found = find_first(cluster, 2 * i, low, width / 2, from, amount);
    if (found != NO_MACHINE)
        return found;
    return find_first(cluster, 2 * i + 1, low + width / 2, width / 2, from, amount);
}

/* The n lowest of a set. */
static gpu_set lowest(gpu_set gpus, milli n) {
    gpu_set taken = 0;

    for (; n > 0; n--) {
        const gpu_set one = gpus & -gpus;

        assert(one);
        taken |= one;
        gpus ^= one;
    }
    return taken;
}

static void take_spots(struct cluster *cluster, uint32_t machine,
                       const milli amount[RESOURCE_COUNT], uint32_t n, struct spot *spots) {
    milli sum[RESOURCE_COUNT];

    for (enum resource r = 0; r < RESOURCE_COUNT; r++)
        sum[r] = amount[r] * (milli)n;
    for (uint32_t i = 0; i < n; i++) {
        const gpu_set gpus = lowest(cluster->gpus[machine], amount[RESOURCE_GPU] / 1000);

        cluster->gpus[machine] &= ~gpus;
        spots[i] = (struct spot){ machine, gpus };
    }
    change(cluster, machine, sum, -1);
}

/* Places tasks of one group, up to all; returns how many. */
static uint32_t place_group(struct cluster *cluster, const struct demand_group *group,
                            struct spot *spots) {
    uint32_t placed = 0, machine = 0;

    while (placed < group->n) {
        uint32_t n;

        machine = find_first(cluster, 1, 0, cluster->n_leaves, machine, group->amount);
        if (machine == NO_MACHINE)
            break;
        n = how_many(&cluster->tree[cluster->n_leaves + machine], group->amount, group->n - placed);
        take_spots(cluster, machine, group->amount, n, spots + placed);
        placed += n;
        machine++;
    }
    return placed;
}

/* Gives back the first n tasks. */
static void give_spots(struct cluster *cluster, const struct demand *demand, uint32_t n,
                       const struct spot *spots) {
    uint32_t at = 0;

    for (size_t g = 0; g < demand->n_groups; g++)
        for (uint32_t i = 0; i < demand->groups[g].n && at < n; i++, at++)
            give(cluster, spots[at].machine, demand->groups[g].amount, spots[at].gpus);
}

/* Places tasks in their order until one finds no room. Returns how many; with fewer than all,
 * *stopped is the group of that one. */
static uint32_t place_most(struct cluster *cluster, const struct demand *demand, struct spot *spots,
                           size_t *stopped) {
    uint32_t placed = 0;

    for (size_t g = 0; g < demand->n_groups; g++) {
        const uint32_t n = place_group(cluster, &demand->groups[g], spots + placed);

        placed += n;
        if (n < demand->groups[g].n) {
            *stopped = g;
            break;
        }
    }
    return placed;
}

bool cluster_place(struct cluster *cluster, const struct demand *demand, struct spot *spots) {
    size_t stopped;
    const uint32_t placed = place_most(cluster, demand, spots, &stopped);

    if (placed == demand->n_tasks)
        return true;
    give_spots(cluster, demand, placed, spots);
    return false;
}

bool cluster_find_blocked(struct cluster *cluster, const struct demand *demand, struct spot *spots,
                          struct blocked *out) {
    size_t stopped = 0;
    const uint32_t placed = place_most(cluster, demand, spots, &stopped);

    if (placed < demand->n_tasks) {
        const milli *amount = demand->groups[stopped].amount;

        *out = (struct blocked){ .at = placed, .resource = RESOURCE_COUNT };
        for (enum resource r = RESOURCE_COUNT; r-- > 0;)
            if (amount[r] > 0 && cluster->tree[1].free[r] < amount[r]) {
                out->resource = r;
                out->needed = amount[r];
                out->left = cluster->tree[1].free[r] > 0 ? cluster->tree[1].free[r] : 0;
            }
    }
    give_spots(cluster, demand, placed, spots);
    return placed < demand->n_tasks;
}

milli cluster_free(const struct cluster *cluster, enum resource resource) {
    milli sum = 0;

    for (uint32_t i = 0; i < cluster->n; i++) {
        const milli left = cluster->tree[cluster->n_leaves + i].free[resource];

        sum += left > 0 ? left : 0;
    }
    return sum;
}
