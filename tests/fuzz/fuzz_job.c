/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any JSON as a job, and as a pod of one. Beyond "no crash": a job that is over says why, in
 * the room that there is, a job is of one run at most, and a pod that is a task has a role, whose
 * only index is 0 where that is the master's.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/job.h"
#include "codec/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool law) {
    if (!law)
        abort();
}

static void look_at_job(const struct node *root) {
    char why[64], little[2] = "x";
    const bool is_over = job_is_over(root, why, sizeof why);

    /* A message may begin with a NUL, which is not said; the type then stands for it. */
    require(!is_over || (memchr(why, '\0', sizeof why) && why[0]));
    require(job_is_over(root, little, sizeof little) == is_over);
    require(!is_over || (little[0] == why[0] && !little[1]));
    require(!job_is_of_run(root, "a") || !job_is_of_run(root, "b"));
}

static void look_at_pod(const struct node *root) {
    uint32_t index = UINT32_MAX;
    enum role role = ROLE_COUNT;

    if (!job_task_of_pod(root, &role, &index))
        return;
    require(role < ROLE_COUNT);
    require(role != ROLE_MASTER || index == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena arena = ARENA_INIT;
    struct error err;
    struct node root;

    if (size <= 1 << 16 && json_read((const char *)data, size, &arena, &root, &err) == 0) {
        look_at_job(&root);
        look_at_pod(&root);
    }
    arena_release(&arena);
    return 0;
}
