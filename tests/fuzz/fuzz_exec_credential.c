/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as what a credential plugin prints. What is taken is a token without blanks, or a
 * certificate with its key; what is refused is told without a word of it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/plugin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool law) {
    if (!law)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct plugin_answer answer = { .expires_us = -7 };
    struct arena arena = ARENA_INIT;
    struct error err = { .code = ERROR_NONE };

    if (plugin_decode((const char *)data, size, "client.authentication.k8s.io/v1", &arena, &answer,
                      &err)) {
        require(err.code == ERROR_DENIED && strstr(err.message, "the credential plugin"));
        require(answer.expires_us == -7 && !answer.token);
    } else {
        require(answer.token || answer.certificate);
        require(!answer.certificate == !answer.key);
        for (const char *c = answer.token; c && *c; c++)
            require(*c > ' ' && *c <= '~');
    }
    arena_release(&arena);
    return 0;
}
