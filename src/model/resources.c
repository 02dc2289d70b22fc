/* SPDX-License-Identifier: Apache-2.0 */
#include "model/resources.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct resources resources_none = { {
    { ABSENT, ABSENT },
    { ABSENT, ABSENT },
    { ABSENT, ABSENT },
    { ABSENT, ABSENT },
} };

const char *resource_name(enum resource resource) {
    static const char *const names[] = { "cpu", "memory", "gpu", "tpu" };

    static_assert(ARRAY_LEN(names) == RESOURCE_COUNT, "every resource has a name");
    return names[resource];
}

bool resources_equal(const struct resources *a, const struct resources *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

static void add_given(milli *sum, milli amount) {
    if (amount != ABSENT)
        *sum = *sum == ABSENT ? amount : *sum + amount;
}

void resources_add(struct resources *a, const struct resources *b) {
    for (enum resource i = 0; i < RESOURCE_COUNT; i++) {
        add_given(&a->of[i].requests, b->of[i].requests);
        add_given(&a->of[i].limits, b->of[i].limits);
    }
}

milli resources_reserved(const struct resources *resources, enum resource resource) {
    const struct resource_range *range = &resources->of[resource];

    if (range->requests != ABSENT)
        return range->requests;
    return range->limits != ABSENT ? range->limits : 0;
}

uint32_t resources_pinned(const struct resources *resources) {
    const milli limit = resources->of[RESOURCE_CPU].limits;

    if (limit <= 0 || limit % 1000 != 0 || limit != resources_reserved(resources, RESOURCE_CPU))
        return 0;
    return limit / 1000 < UINT32_MAX ? (uint32_t)(limit / 1000) : UINT32_MAX;
}

struct milli_text milli_text(milli amount) {
    struct milli_text out;
    size_t n;

    assert(amount >= 0);
    if (amount % 1000 == 0) {
        snprintf(out.text, sizeof out.text, "%" PRId64, amount / 1000);
        return out;
    }
    n = (size_t)snprintf(out.text, sizeof out.text, "%" PRId64 ".%03" PRId64, amount / 1000,
                         amount % 1000);
    while (out.text[n - 1] == '0')
        out.text[--n] = '\0';
    return out;
}

void json_milli(struct json *json, const char *key, milli amount) {
    json_key(json, key);
    if (amount % 1000 == 0)
        json_int(json, amount / 1000);
    else
        json_number(json, (double)amount / 1000);
}
