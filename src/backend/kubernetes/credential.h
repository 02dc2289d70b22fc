/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who we are for an API server, kept current: a token, a password or a certificate, of the
 * kubeconfig or in files of their own, all of which may be replaced there, or what a plugin says
 * and until when.
 *
 * Before a request: credential_prepare. If it has to wait for a plugin, `ready` comes once, from
 * the loop. After a 401: credential_spoil, which says whether another try can differ, and then
 * prepare again.
 */
#ifndef BACKEND_KUBERNETES_CREDENTIAL_H
#define BACKEND_KUBERNETES_CREDENTIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/kubernetes/http.h"
#include "backend/kubernetes/kubeconfig.h"

struct credential;

/* The config is borrowed. `ready` has ERROR_NONE when prepare would now succeed at once. */
struct credential *credential_new(struct event_base *loop, struct kubeconfig *config,
                                  void (*ready)(void *context, const struct error *err),
                                  void *context);
void credential_free(struct credential *credential);

enum credential_state { CREDENTIAL_READY, CREDENTIAL_WAIT };
MUST_CHECK int credential_prepare(struct credential *credential, enum credential_state *state,
                                  struct error *err);

/* Grows with each change: what was sent with an older one may be sent again. */
uint32_t credential_generation(const struct credential *credential);

/* What was sent with this generation was refused. False: nothing here can change. */
bool credential_spoil(struct credential *credential, uint32_t generation);

/* Of the header; NULL: none. Valid until the loop goes on. */
const char *credential_authorization(const struct credential *credential);
void credential_certificate(const struct credential *credential, struct http_blob *certificate,
                            struct http_blob *key);

#endif
