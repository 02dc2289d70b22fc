/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libcurl that http.c uses, found when the first cluster is asked: no other
 * command has to load the library, which brings thirty others.
 */
#ifndef BACKEND_KUBERNETES_CURL_H
#define BACKEND_KUBERNETES_CURL_H

#include <curl/curl.h>

#include "base/error.h"

/* The header's checking macros name functions that are not linked. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

/* With the types that the header gives them. */
struct curl {
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
    __typeof__(curl_multi_init) *multi_init;
    __typeof__(curl_multi_cleanup) *multi_cleanup;
    __typeof__(curl_multi_setopt) *multi_setopt;
    __typeof__(curl_multi_add_handle) *multi_add_handle;
    __typeof__(curl_multi_remove_handle) *multi_remove_handle;
    __typeof__(curl_multi_socket_action) *multi_socket_action;
    __typeof__(curl_multi_info_read) *multi_info_read;
    __typeof__(curl_multi_assign) *multi_assign;
};

/* Valid after curl_load. It stays loaded: it has state for the whole process that it never gives
 * back. */
extern struct curl curl;

/* Fails where the library is not here. May be called again. */
MUST_CHECK int curl_load(struct error *err);

#endif
