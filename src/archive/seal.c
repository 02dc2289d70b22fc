/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/seal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void seal_add_header(struct sha256 *hash, const char *name, mode_t mode, int64_t modified_s,
                     const char *target) {
    char facts[64];
    /* The rights of a link mean nothing, and libraries differ in them. */
    const int n = snprintf(facts, sizeof facts, "%o %lld ",
                           (unsigned)(S_ISLNK(mode) ? S_IFLNK : mode), (long long)modified_s);

    sha256_add(hash, facts, (size_t)n);
    sha256_add(hash, name, strlen(name) + 1);
    if (target)
        sha256_add(hash, target, strlen(target) + 1);
}
