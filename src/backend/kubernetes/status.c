/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/status.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"

enum { CAUSES_SHOWN = 3 };

/* `fallback` is said where the server gives no message of its own. */
static const struct row {
    int status;
    enum error_code code;
    bool is_passing;
    const char *fallback;
    const char *help; /* NULL: the message says it all */
} rows[] = {
    { 400, ERROR_INVALID, false, "the request is wrong", NULL },
    { 401, ERROR_DENIED, false, "the cluster does not know who asks",
      "the credentials of the kubeconfig are missing or have expired: log in again" },
    { 403, ERROR_DENIED, false, "the user may not do this",
      "an administrator of the cluster grants it with a Role and a RoleBinding" },
    { 404, ERROR_NOT_FOUND, false, "there is no such object or resource", NULL },
    { 405, ERROR_INVALID, false, "the server does not allow this", NULL },
    { 408, ERROR_UNAVAILABLE, true, "the request took too long", NULL },
    { 409, ERROR_CONFLICT, false, "somebody else changed it first", NULL },
    { 410, ERROR_CONFLICT, false, "what was asked for is too old", NULL },
    { 413, ERROR_EXHAUSTED, false, "the object is too large for the cluster", NULL },
    { 415, ERROR_INVALID, false, "the server does not take this kind of text", NULL },
    { 422, ERROR_INVALID, false, "the object is not valid", NULL },
    { 429, ERROR_UNAVAILABLE, true, "the server is asked too often", NULL },
    { 500, ERROR_UNAVAILABLE, true, "the server failed", NULL },
    { 502, ERROR_UNAVAILABLE, true, "what stands before the server does not reach it", NULL },
    { 503, ERROR_UNAVAILABLE, true, "the server is not ready", NULL },
    { 504, ERROR_UNAVAILABLE, true, "the server took too long", NULL },
};

static const struct row *row_of(int status) {
    static const struct row success = { 200, ERROR_NONE, false, "", NULL };
    static const struct row redirected = { 300, ERROR_INVALID, false,
                                           "the server points elsewhere, which is not followed: "
                                           "is the address that of an API server?",
                                           NULL };
    static const struct row refused = { 400, ERROR_INVALID, false, "the request is wrong", NULL };
    static const struct row failed = { 500, ERROR_UNAVAILABLE, true, "the server failed", NULL };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].status == status)
            return &rows[i];
    if (status >= 200 && status < 300)
        return &success;
    if (status >= 300 && status < 400)
        return &redirected;
    return status >= 400 && status < 500 ? &refused : &failed;
}

bool status_is_passing(int http_status) {
    return row_of(http_status)->is_passing;
}

enum error_code status_code(int http_status) {
    return row_of(http_status)->code;
}

const char *status_reason(const struct node *status) {
    return strcmp(node_get_text(status, "kind", ""), "Status") == 0
               ? node_get_text(status, "reason", "")
               : "";
}

int64_t status_retry_after_s(const struct node *status) {
    return node_get_int(node_get(status, "details"), "retryAfterSeconds", 1, -1);
}

static void add(char *out, size_t room, const char *before, const char *text) {
    const size_t len = strlen(out);

    if (text[0])
        snprintf(out + len, room - len, "%s%.240s", before, text);
}

/* The fields that are wrong, which the message often only counts. */
static void add_causes(const struct node *status, const char *message, char *out, size_t room) {
    const struct node *causes = node_get(node_get(status, "details"), "causes");
    uint32_t shown = 0;

    if (!causes || causes->kind != NODE_LIST)
        return;
    for (uint32_t i = 0; i < causes->count && shown < CAUSES_SHOWN; i++) {
        const char *field = node_get_text(&causes->items[i], "field", "");
        const char *why = node_get_text(&causes->items[i], "message", "");

        if (!why[0] || strstr(message, why))
            continue;
        add(out, room, "; ", field[0] ? field : why);
        if (field[0])
            add(out, room, ": ", why);
        shown++;
    }
}

void status_explain(int http_status, const struct node *status, const char *asked,
                    struct error *err) {
    const struct row *row = row_of(http_status);
    const char *message = strcmp(node_get_text(status, "kind", ""), "Status") == 0
                              ? node_get_text(status, "message", "")
                              : "";
    char causes[sizeof err->message] = "";

    add_causes(status, message, causes, sizeof causes);
    error_set(err, row->code, "cannot %s: %.300s%s%s%s (%d)", asked,
              message[0] ? message : row->fallback, causes, row->help ? "; " : "",
              row->help ? row->help : "", http_status);
}
