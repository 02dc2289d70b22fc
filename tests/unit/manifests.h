/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests and what is in them, for tests. */
#ifndef TESTS_MANIFESTS_H
#define TESTS_MANIFESTS_H

#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "manifest/manifest.h"

#define HEAD "version: 1\nkind: experiment\nrun: {cmd: a}\n"

static const struct manifest_run run = {
    .id = "7", .uuid = "0f8b3c1d2e4a5b6c7d8e9f0a1b2c3d4e", .owner = "ada", .project = "default"
};

static inline const struct node *at(const struct node *node, const char *path) {
    char key[100];

    while (node && *path) {
        size_t n = strcspn(path, ".");

        snprintf(key, sizeof key, "%.*s", (int)n, path);
        node = node_get(node, key);
        path += n + (path[n] == '.');
    }
    return node;
}

static inline const char *text_at(const struct node *node, const char *path) {
    const struct node *found = at(node, path);

    return found ? found->text : NULL;
}

/* A pod, or the template of n pods. */
struct found_pod {
    const struct node *metadata, *spec;
    uint32_t n;
};

static inline size_t find_pods(const struct manifest *manifest, struct found_pod *out) {
    size_t n = 0;

    for (size_t i = 0; i < manifest->n_objects; i++) {
        const struct node *object = &manifest->objects[i], *spec = node_get(object, "spec");

        if (strcmp(text_at(object, "kind"), "Pod") == 0)
            out[n++] = (struct found_pod){ node_get(object, "metadata"), spec, 1 };
        for (uint32_t k = 0; spec && k < spec->count; k++) {
            const struct node *specs = &spec->members[k].value;

            if (!strstr(spec->members[k].key, "ReplicaSpecs"))
                continue;
            for (uint32_t m = 0; m < specs->count; m++)
                out[n++] = (struct found_pod){
                    at(&specs->members[m].value, "template.metadata"),
                    at(&specs->members[m].value, "template.spec"),
                    (uint32_t)at(&specs->members[m].value, "replicas")->integer,
                };
        }
    }
    return n;
}

/* Both outlive the manifest, which points into them. */
static inline struct manifest *build_with(const char *config, const char *text, struct plan **plan,
                                          struct settings **settings) {
    struct sources sources = { 0 };
    struct diags *diags = diags_new();
    struct manifest *manifest;

    *settings =
        settings_compile(&sources, sources_add(&sources, "c", config, strlen(config)), diags);
    assert_non_null(*settings);
    *plan = compile_text(text);
    manifest = manifest_build(
        &(struct manifest_input){ .plan = *plan, .settings = *settings, .run = run }, diags);
    assert_non_null(manifest);
    diags_free(diags);
    sources_release(&sources);
    return manifest;
}

/* Whether a note of it has that in it. */
static inline bool is_noted(const struct manifest *manifest, const char *part) {
    for (size_t i = 0; i < manifest->n_notes; i++)
        if (strstr(manifest->notes[i], part))
            return true;
    return false;
}

#endif
