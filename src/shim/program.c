/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/program.h"

#include <string.h>

/* Made by program.S from the built shims. */
extern const unsigned char shim_amd64[], shim_amd64_end[];

const struct shim_program *shim_program_for(const char *architecture) {
    static struct shim_program programs[] = { { .architecture = "amd64", .bytes = shim_amd64 } };

    programs[0].size = (size_t)(shim_amd64_end - shim_amd64);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].architecture, architecture) == 0)
            return &programs[i];
    return NULL;
}
