/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as config.yml: settings, or errors that say why not, and never both. */
#include <stdint.h>
#include <stdlib.h>

#include "spec/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct sources sources = { 0 };
    struct diags *diags = diags_new();
    struct settings *settings;

    if (size <= SETTINGS_BYTES_MAX) {
        settings = settings_compile(
            &sources, sources_add(&sources, "config.yml", (const char *)data, size), diags);
        if (!settings != (diags->errors > 0))
            abort();
        if (settings && (!settings->kubernetes.gpu_resource || !settings->kubernetes.tpu_resource))
            abort();
        settings_free(settings);
    }
    diags_free(diags);
    sources_release(&sources);
    return 0;
}
