/* SPDX-License-Identifier: Apache-2.0 */
/* From a spec to a plan. Pure: the same spec gives the same plan, anywhere. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "codec/json.h"
#include "model/plan.h"
#include "spec/spec.h"

/* Makes the plan of a spec, which it takes over and frees. Returns NULL with the error set, and
 * the spec freed, when no machine could start such a gang. */
struct plan *plan_build(struct spec *spec, struct error *err);

/* Sentences on what of the plan has no effect when it runs as processes on one machine. Calls
 * say() for each. */
void plan_local_notes(const struct plan *plan, void (*say)(void *context, const char *sentence),
                      void *context);

/* Whether processes on this machine can run it; the error says what stands against it, and the
 * way out. */
MUST_CHECK int plan_check_local(const struct plan *plan, struct error *err);

/* Writes the plan as docs/json.md has it. */
void plan_write_json(const struct plan *plan, struct json *json);
void plan_write_task_json(const struct plan *plan, uint32_t rank, struct json *json);
/* Its name, role, index and rank, inside an object that the caller has opened. */
void plan_write_task_name(const struct task *task, uint32_t rank, struct json *json);

#endif
