/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/curl.h"

#include <stdbool.h>

#include "base/library.h"

#define LIBRARY "libcurl.so.4"

struct curl curl;

int curl_load(struct error *err) {
    static bool is_loaded;
    void *handle;
    const struct library_symbol symbols[] = {
        { "curl_global_init", &curl.global_init },
        { "curl_easy_init", &curl.easy_init },
        { "curl_easy_cleanup", &curl.easy_cleanup },
        { "curl_easy_setopt", &curl.easy_setopt },
        { "curl_easy_getinfo", &curl.easy_getinfo },
        { "curl_easy_strerror", &curl.easy_strerror },
        { "curl_slist_append", &curl.slist_append },
        { "curl_slist_free_all", &curl.slist_free_all },
        { "curl_multi_init", &curl.multi_init },
        { "curl_multi_cleanup", &curl.multi_cleanup },
        { "curl_multi_setopt", &curl.multi_setopt },
        { "curl_multi_add_handle", &curl.multi_add_handle },
        { "curl_multi_remove_handle", &curl.multi_remove_handle },
        { "curl_multi_socket_action", &curl.multi_socket_action },
        { "curl_multi_info_read", &curl.multi_info_read },
        { "curl_multi_assign", &curl.multi_assign },
    };

    if (is_loaded)
        return 0;
    if (library_load(LIBRARY, symbols, ARRAY_LEN(symbols), &handle, err))
        return error_wrap(err, "a cluster is reached with libcurl (Debian: libcurl4)");
    if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return error_set(err, ERROR_UNAVAILABLE, "libcurl does not start");
    is_loaded = true;
    return 0;
}
