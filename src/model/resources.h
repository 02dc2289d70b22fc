/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task asks for. Amounts are thousandths of the resource's unit (cores, MiB,
 * devices), so that sums are exact; ABSENT where the file says nothing.
 */
#ifndef MODEL_RESOURCES_H
#define MODEL_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/json.h"

enum resource { RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_GPU, RESOURCE_TPU, RESOURCE_COUNT };

typedef int64_t milli;
#define ABSENT ((milli)-1)

struct resource_range {
    milli requests; /* what is reserved */
    milli limits;   /* what is enforced */
};

struct resources {
    struct resource_range of[RESOURCE_COUNT];
};

extern const struct resources resources_none;

const char *resource_name(enum resource resource);

bool resources_equal(const struct resources *a, const struct resources *b);

/* Adds what is given in b to a: absent plus x is x. */
void resources_add(struct resources *a, const struct resources *b);

/* What the scheduler reserves: the request, else the limit, else 0. */
milli resources_reserved(const struct resources *resources, enum resource resource);

/* How many CPUs of its own the task gets: where the limit of CPUs equals what is reserved, in
 * whole ones; else 0, and it runs wherever there is room. */
uint32_t resources_pinned(const struct resources *resources);

/* "1", "0.5", "256": thousandths as a person writes them. */
struct milli_text {
    char text[32];
};
struct milli_text milli_text(milli amount);

/* The same as a member with that key. */
void json_milli(struct json *json, const char *key, milli amount);

#endif
