/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's environment with a task's own variables laid over it. The user's is indexed
 * once; a merge then costs only as much as the task has variables.
 *
 * Ours win, except for the few that are a mere suggestion (PYTHONUNBUFFERED,
 * OMP_NUM_THREADS): those the user set stay.
 */
#ifndef SUPERVISE_MERGE_H
#define SUPERVISE_MERGE_H

#include <stddef.h>

struct merge {
    char *const *user;
    size_t n_user;
    size_t *slots; /* index into user plus one; 0: free */
    size_t n_slots;
    char **result;
    size_t capacity;
};

void merge_init(struct merge *merge, char *const *user);
void merge_release(struct merge *merge);

/* `ours` ends with NULL; of two with one name the later wins. The result lives until the
 * next call; its strings are those given. */
char *const *merge_environment(struct merge *merge, char *const *ours);

#endif
