/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/program.h"

#include <string.h>

/* Made by program.S from the built shims; one that was not built has no bytes. */
extern const unsigned char shim_amd64[], shim_amd64_end[], shim_arm64[], shim_arm64_end[];

const char *const shim_architectures[] = { "amd64", "arm64", NULL };

const struct shim_program *shim_program_for(const char *architecture) {
    static struct shim_program programs[] = { { .bytes = shim_amd64 }, { .bytes = shim_arm64 } };
    const unsigned char *const ends[] = { shim_amd64_end, shim_arm64_end };

    for (size_t i = 0; shim_architectures[i]; i++) {
        programs[i].architecture = shim_architectures[i];
        programs[i].size = (size_t)(ends[i] - programs[i].bytes);
        if (programs[i].size && strcmp(shim_architectures[i], architecture) == 0)
            return &programs[i];
    }
    return NULL;
}
