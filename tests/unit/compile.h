/* SPDX-License-Identifier: Apache-2.0 */
/* Texts to plans, for tests. */
#ifndef TESTS_COMPILE_H
#define TESTS_COMPILE_H

#include <string.h>

#include "plan/plan.h"
#include "spec/spec.h"

/* The plan of a polyaxonfile's text, or NULL with the diagnostics printed. */
static inline struct plan *compile_text(const char *text) {
    struct sources sources = { 0 };
    struct diags *diags = diags_new();
    uint16_t file = sources_add(&sources, "test.yml", text, strlen(text));
    struct spec *spec = spec_compile(&(struct spec_input){ &sources, &file, 1, NULL, 0 }, diags);
    struct error err = { 0 };
    struct plan *plan = spec ? plan_build(spec, &err) : NULL;

    if (!plan) {
        AUTO(buf) out = BUF_INIT(1 << 20);

        if (diags_format(diags, &sources, DIAG_PLAIN, &out, &err) == 0)
            printf("# %s%s\n%s\n", out.data, err.message, text);
    }
    diags_free(diags);
    sources_release(&sources);
    return plan;
}

#endif
