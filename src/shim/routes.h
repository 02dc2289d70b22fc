/* SPDX-License-Identifier: Apache-2.0 */
/* What the requests to a shim do, as rows: docs/shim.md. */
#ifndef SHIM_ROUTES_H
#define SHIM_ROUTES_H

#include "shim/shim.h"

/* Answers a request that bears the key. */
void routes_ask(struct shim *shim, struct connection *connection, const struct request *request,
                const char *body, size_t n);

#endif
