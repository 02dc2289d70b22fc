/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as one kubeconfig, or as two that are merged, parted by a NUL. Beyond "no crash":
 * what is taken has a server and a namespace, nothing of it can begin another line of HTTP, and
 * what is refused leaves the result alone and says where.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool law) {
    if (!law)
        abort();
}

static void require_one_line(const char *text) {
    for (; text && *text; text++)
        require((unsigned char)*text >= ' ');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data, *second = memchr(text, '\0', size);
    const size_t first_len = second ? (size_t)(second - text) : size;
    const struct kubeconfig_text texts[] = {
        { "/a/config", text, first_len },
        { "/b/config", second ? second + 1 : text, second ? size - first_len - 1 : 0 },
    };
    struct kubeconfig config = { 0 };
    struct error err = { .code = ERROR_NONE };

    if (size > 1 << 16)
        return 0;
    if (kubeconfig_read(texts, second ? 2 : 1, &(struct kubeconfig_request){ 0 }, &config, &err)) {
        require(err.code == ERROR_INVALID && strncmp(err.message, "/", 1) == 0 && !config.server);
        return 0;
    }
    require(config.server && config.namespace && config.context);
    require(strncmp(config.server, "http", 4) == 0);
    require_one_line(config.server);
    require_one_line(config.token);
    require_one_line(config.username);
    require_one_line(config.password);
    require_one_line(config.impersonate);
    require_one_line(config.namespace);
    require(!config.exec ||
            (config.exec->args && config.exec->args[0] && config.exec->api_version));
    kubeconfig_release(&config);
    return 0;
}
