/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an API server says when it refuses: the Status object, as one sentence with a kind. Pure.
 */
#ifndef BACKEND_KUBERNETES_STATUS_H
#define BACKEND_KUBERNETES_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/node.h"

/* Whether the same request may be answered otherwise a little later. */
bool status_is_passing(int http_status);

enum error_code status_code(int http_status);

/* Fills in *err: what was asked ("create tfjobs in namespace x"), the server's message, its causes,
 * and what would help. `status` may be NULL or anything else than a Status. */
void status_explain(int http_status, const struct node *status, const char *asked,
                    struct error *err);

/* The reason, "" where there is none; points into the node. */
const char *status_reason(const struct node *status);

/* details.retryAfterSeconds, or -1. */
int64_t status_retry_after_s(const struct node *status);

#endif
