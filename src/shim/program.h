/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim itself, as bytes of this program: what is put into a ConfigMap. It is built with musl
 * beside this program, for each processor that the build has a compiler for: amd64 always, arm64
 * where tools/musl-arm64 has been at work.
 */
#ifndef SHIM_PROGRAM_H
#define SHIM_PROGRAM_H

#include <stddef.h>

struct shim_program {
    const char *architecture; /* as Kubernetes calls it: "amd64", "arm64" */
    const unsigned char *bytes;
    size_t size;
};

/* Those that a build can have a shim for, ended by NULL. */
extern const char *const shim_architectures[];

/* NULL: this build has none for that architecture. */
const struct shim_program *shim_program_for(const char *architecture);

#endif
