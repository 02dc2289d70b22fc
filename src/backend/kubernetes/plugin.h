/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credential plugins: a program that a kubeconfig names, which prints who the user is as an
 * ExecCredential (client.authentication.k8s.io/v1, v1beta1).
 *
 * The program runs beside the event loop, in a process group of its own, with /dev/null to read
 * from (nobody could type here), and is killed when it takes longer than it may. What it prints is
 * a secret: it appears in no error. The last line that it writes to its standard error does: that
 * is how such programs say what to do ("run aws sso login").
 */
#ifndef BACKEND_KUBERNETES_PLUGIN_H
#define BACKEND_KUBERNETES_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "backend/kubernetes/kubeconfig.h"
#include "base/buf.h"

struct event_base;
struct plugin;

/* `printed` is valid during the call; *err has ERROR_NONE where the program ended well. */
typedef void plugin_done(void *context, const struct error *err, const struct buf *printed);

/* `info` is the value of KUBERNETES_EXEC_INFO. `done` comes once, from the loop. */
MUST_CHECK int plugin_start(struct event_base *loop, const struct kubeconfig_exec *exec,
                            const char *info, uint32_t timeout_ms, plugin_done *done, void *context,
                            struct plugin **out, struct error *err);

/* Kills the program where it still runs; `done` does not come. Takes NULL. */
void plugin_free(struct plugin *plugin);

/* What a plugin says. Absent texts are NULL; they live in the arena. */
struct plugin_answer {
    const char *token;
    const char *certificate, *key; /* PEM; both or none */
    int64_t expires_us;            /* wall clock; 0: it does not say */
};

/* Pure. api_version is the one that was asked for. */
MUST_CHECK int plugin_decode(const char *text, size_t len, const char *api_version,
                             struct arena *arena, struct plugin_answer *out, struct error *err);

#endif
