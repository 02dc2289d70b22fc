/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the objects of any polyaxonfile that can be planned, for both targets. There are objects,
 * or errors that say why not; what is written of them reads back as it was.
 */
#include <stdint.h>
#include <stdlib.h>

#include "codec/yaml.h"
#include "codec/yaml_write.h"
#include "manifest/manifest.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 14, TASKS_FEW = 50, OUTPUT_MAX = 16 << 20 };

static void require(bool law) {
    if (!law)
        abort();
}

static void check_object(const struct node *object) {
    struct arena arena = ARENA_INIT;
    struct sources sources = { 0 };
    struct diags *diags = diags_new();
    AUTO(buf) text = BUF_INIT(OUTPUT_MAX);
    struct node again;
    struct error err;

    if (yaml_write(object, &text, &err) == 0)
        require(yaml_read(&sources, sources_add(&sources, "written", text.data, text.len), &arena,
                          diags, &again) == 0);
    diags_free(diags);
    sources_release(&sources);
    arena_release(&arena);
}

static void check_target(const struct plan *plan, enum manifest_target target) {
    AUTO_PTR(settings) settings = settings_new();
    struct diags *diags = diags_new();
    struct manifest *manifest = manifest_build(
        &(struct manifest_input){ .plan = plan,
                                  .settings = settings,
                                  .target = target,
                                  .image = "train:1",
                                  .run = { .id = "1",
                                           .uuid = "0f8b3c1d2e4a5b6c7d8e9f0a1b2c3d4e",
                                           .owner = "ada",
                                           .project = "default" } },
        diags);

    require(!manifest == (diags->errors > 0));
    for (size_t i = 0; manifest && i < manifest->n_objects; i++)
        check_object(&manifest->objects[i]);
    manifest_free(manifest);
    diags_free(diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct sources sources = { 0 };
    struct diags *diags = diags_new();
    uint16_t file;
    struct spec *spec;
    struct error err;

    if (size <= INPUT_MAX) {
        file = sources_add(&sources, "file.yml", (const char *)data, size);
        spec = spec_compile(&(struct spec_input){ &sources, &file, 1, NULL, 0 }, diags);
        AUTO_PTR(plan) plan = spec ? plan_build(spec, &err) : NULL;

        if (plan && plan->n_tasks <= TASKS_FEW) {
            check_target(plan, MANIFEST_NATIVE);
            check_target(plan, MANIFEST_KUBEFLOW);
        }
    }
    diags_free(diags);
    sources_release(&sources);
    return 0;
}
