/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A polyaxonfile, validated. Whatever dialect the file was written in, the same topology
 * gives the same `struct spec`: nothing above this layer sees a dialect.
 *
 * Reading goes in steps, each adding what it finds to one list of diagnostics:
 *   files (codec) -> merged tree -> params -> templates -> fields -> topology
 */
#ifndef SPEC_SPEC_H
#define SPEC_SPEC_H

#include "codec/diag.h"
#include "model/plan.h"
#include "spec/field.h"

enum { TASKS_MAX = 1000000 };

/* The values of one task as the file gives them; what is not given is inherited. */
struct pod {
    struct field_object resources; /* struct resources_fields */
    struct field_node given[ATTRIBUTE_COUNT];
};

/* What one role's index says for itself. */
struct replica {
    uint32_t index;
    struct pod pod;
    struct resources resources; /* of pod.resources, where given */
};

/* All tasks of one role. */
struct role_spec {
    uint32_t count;
    struct pod defaults;
    struct resources default_resources;
    const struct replica *replicas; /* sorted by index, no index twice, each below count */
    uint32_t n_replicas;
};

struct spec {
    struct arena arena; /* holds all that is below */

    const char *name;
    enum framework framework;
    const char *framework_label;
    enum backend_kind backend;
    const char *log_level;
    const char *command; /* one line, or NULL */
    const struct node *params;
    const struct node *tags; /* a list of texts, or NULL */
    uint32_t max_restarts;
    struct earlier_runs earlier;

    bool has_master;
    struct pod master;
    struct resources master_resources;
    struct role_spec roles[ROLE_COUNT]; /* of ROLE_WORKER and ROLE_PS */

    bool has_build;
    struct image image;
    struct place backend_place;
};

/* The texts to compile: files in the order they are merged, then `name=value` texts. All are
 * numbers of sources. */
struct spec_input {
    struct sources *sources;
    const uint16_t *files;
    size_t n_files;
    const uint16_t *params;
    size_t n_params;
};

/* Compiles. Returns NULL when there are errors; diags has them, and the warnings. */
struct spec *spec_compile(const struct spec_input *input, struct diags *diags);
void spec_free(struct spec *spec);
DEFINE_AUTO_PTR(spec)

#endif
