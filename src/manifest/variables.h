/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tasks in pods find in their environment. It starts from the contract (plan/environment.h),
 * so that a pod sees what a process of this machine sees; the table of differences is the one
 * place that says where it does not, and why. docs/kubernetes.md shows the table.
 *
 * The pods of a Kubeflow job are made from one template for each role, so a variable that counts
 * with the index has to be told as a rule. The rule is found by comparing what the contract gives
 * to the first, the second and the last of the role: a variable that follows no rule is an error,
 * never a wrong value.
 */
#ifndef MANIFEST_VARIABLES_H
#define MANIFEST_VARIABLES_H

#include "manifest/manifest.h"
#include "plan/environment.h"

#define VARIABLE_INDEX "MYELIN_INDEX" /* the variable that the others count with */

enum variable_kind {
    VARIABLE_LITERAL, /* `before` */
    VARIABLE_INDEXED, /* `before`, the index, `after` */
    VARIABLE_COUNTED, /* `before`, the index plus `offset`, `after` */
    VARIABLE_ADDRESS, /* the address of the pod */
};

struct variable {
    const char *name, *before, *after;
    uint32_t offset;
    enum variable_kind kind;
    bool is_shared; /* the same for all tasks of the gang */
};

struct variables {
    struct variable *list;
    size_t len;
};

/* The variables of n tasks of one role, whose ranks follow each other; the list has room for one
 * more. Fails when a variable is too
 * long, or follows no rule. */
MUST_CHECK int variables_of(const struct wiring *wiring, uint32_t first, uint32_t n,
                            enum manifest_target target, struct arena *arena, struct variables *out,
                            struct error *err);

/* The value for one index; VARIABLE_ADDRESS is shown as the symbol <pod.address>. */
const char *variable_value(const struct variable *variable, uint32_t index, struct arena *arena);

enum difference_kind {
    DIFFERENCE_OPERATOR, /* the operator gives it, by the same name */
    DIFFERENCE_ADDRESS,  /* it is the address of the pod, by the downward API */
    DIFFERENCE_ADDED,    /* `value`, which processes of this machine are not given */
    DIFFERENCE_MISSING,  /* nobody gives it */
    DIFFERENCE_EXTRA,    /* the operator gives it, and we never do */
};

struct difference {
    const char *name;
    enum manifest_target target;
    enum framework framework;
    enum difference_kind kind;
    const char *value;  /* of DIFFERENCE_ADDED */
    const char *reason; /* half a sentence */
};

extern const struct difference differences[]; /* ended by a row without a name */
const struct difference *difference_find(const char *name, enum framework framework,
                                         enum manifest_target target);

/* Kubernetes expands $(NAME) and turns $$ into $ in values and commands. The text, so that it
 * comes out as it went in; `next` is the character that will follow it, or 0. */
const char *kubernetes_escape(const char *text, char next, struct arena *arena);

/* NAME=value for a shell, in which the variable `index` has the index. */
const char *variable_assignment(const struct variable *variable, const char *index,
                                struct arena *arena);

#endif
