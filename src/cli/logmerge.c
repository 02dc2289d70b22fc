/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/logmerge.h"

#include <stdlib.h>

void logmerge_init(struct logmerge *merge, struct logread *logs, uint32_t n_logs) {
    *merge =
        (struct logmerge){ .logs = logs, .heap = calloc(n_logs ? n_logs : 1, sizeof *merge->heap) };
    if (!merge->heap)
        abort();
}

void logmerge_release(struct logmerge *merge) {
    free(merge->heap);
    *merge = (struct logmerge){ 0 };
}

static bool comes_before(const struct logmerge *merge, uint32_t a, uint32_t b) {
    const int64_t x = logread_time(&merge->logs[a]), y = logread_time(&merge->logs[b]);

    return x != y ? x < y : a < b;
}

static void swap(struct logmerge *merge, size_t i, size_t j) {
    const uint32_t moved = merge->heap[i];

    merge->heap[i] = merge->heap[j];
    merge->heap[j] = moved;
}

void logmerge_add(struct logmerge *merge, uint32_t rank) {
    size_t i = merge->n++;

    merge->heap[i] = rank;
    for (; i > 0 && comes_before(merge, merge->heap[i], merge->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(merge, i, (i - 1) / 2);
}

bool logmerge_first(const struct logmerge *merge, uint32_t *rank) {
    if (merge->n == 0)
        return false;
    *rank = merge->heap[0];
    return true;
}

void logmerge_read(struct logmerge *merge) {
    for (size_t i = 0;;) {
        size_t least = i;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < merge->n; child++)
            if (comes_before(merge, merge->heap[child], merge->heap[least]))
                least = child;
        if (least == i)
            return;
        swap(merge, i, least);
        i = least;
    }
}

void logmerge_drop(struct logmerge *merge) {
    merge->heap[0] = merge->heap[--merge->n];
    logmerge_read(merge);
}

void logmerge_clear(struct logmerge *merge) {
    merge->n = 0;
}
