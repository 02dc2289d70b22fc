/* SPDX-License-Identifier: Apache-2.0 */
/* `myelin render --diff`: what a task sees here, in a pod of our own and in a pod of Kubeflow's. */
#ifndef CLI_RENDER_DIFF_H
#define CLI_RENDER_DIFF_H

#include "manifest/compare.h"

/* Tasks that are given the same are shown once, by the first of them. */
MUST_CHECK int render_diff_print(struct comparison *comparison, const struct plan *plan,
                                 struct error *err);
/* As docs/json.md has it, every task by itself. */
MUST_CHECK int render_diff_json(struct comparison *comparison, const struct plan *plan,
                                struct error *err);

#endif
