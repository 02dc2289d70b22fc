/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what the operators say: the conditions of a job, and which task a pod of it is. Pure;
 * anything may be missing or of a wrong type.
 */
#ifndef BACKEND_KUBERNETES_JOB_H
#define BACKEND_KUBERNETES_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/node.h"
#include "model/framework.h"

/* Whether a condition says that it succeeded or failed; `why` is the operator's sentence then. */
bool job_is_over(const struct node *job, char *why, size_t size);

/* Whether our labels name that run. */
bool job_is_of_run(const struct node *object, const char *uuid);

/* By our label of its role, and ours or the operator's of its index; where there is neither, as on
 * the launcher of an MPIJob, by the number that the pod's name ends with. */
bool job_task_of_pod(const struct node *pod, enum role *role, uint32_t *index);

#endif
