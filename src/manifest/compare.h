/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task sees as a process of this machine, as a pod of our own and as a pod of Kubeflow's,
 * beside each other. Pure, as the manifests are: what only a run knows stands as a symbol such as
 * <worker.0.port>, and what an operator gives as (operator).
 */
#ifndef MANIFEST_COMPARE_H
#define MANIFEST_COMPARE_H

#include "manifest/manifest.h"

enum side { SIDE_LOCAL, SIDE_NATIVE, SIDE_KUBEFLOW, SIDE_COUNT };
const char *side_name(enum side side);

/* One variable, or one thing that differs; NULL: it is not there. */
struct compared {
    const char *name;
    const char *on[SIDE_COUNT];
    const char *reason; /* of a variable in the table of differences, or NULL */
};

struct compared_list {
    struct compared *list;
    size_t len;
};

struct comparison;

/* The target and the run of the input do not count. Each target that cannot hold the plan says why
 * in comparison_refusal, and its side stays empty. */
struct comparison *comparison_new(const struct manifest_input *input);
void comparison_free(struct comparison *comparison);
DEFINE_AUTO_PTR(comparison)

/* Why that side cannot be, or NULL. */
const char *comparison_refusal(const struct comparison *comparison, enum side side);

/* The variables of one task that are not the same on all sides that can be, in the order of the
 * contract. They live as long as the comparison. */
MUST_CHECK int comparison_task(struct comparison *comparison, uint32_t rank,
                               struct compared_list *out, struct error *err);

/* What becomes of the rest that the file gives. */
struct compared_list comparison_rest(struct comparison *comparison);

#endif
