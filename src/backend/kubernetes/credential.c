/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/credential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/plugin.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/file.h"
#include "codec/json.h"

enum {
    TOKEN_MAX = 256 << 10,
    PLUGIN_TIMEOUT_MS = 60000, /* cloud plugins ask servers of their own */
    US_PER_S = 1000000,
};
/* A token's file is looked at again so often; clusters replace it long before it expires. */
static const int64_t file_age_us = (int64_t)60 * US_PER_S;
/* What expires within this time is renewed before it is used. */
static const int64_t margin_us = (int64_t)20 * US_PER_S;

struct credential {
    struct event_base *loop;
    struct kubeconfig *config;
    void (*ready)(void *context, const struct error *err);
    void *context;
    uint32_t generation;
    char *authorization; /* "Bearer …"; NULL: none, or not made yet */
    int64_t made_us;     /* monotonic; 0: it has to be made */
    struct plugin *plugin;
    struct arena arena; /* of the plugin's answer */
    struct plugin_answer answer;
};

static void forget(struct credential *credential) {
    if (credential->authorization)
        explicit_bzero(credential->authorization, strlen(credential->authorization));
    free(credential->authorization);
    credential->authorization = NULL;
}

static void set_authorization(struct credential *credential, const char *scheme,
                              const char *value) {
    char *made = NULL;

    if (asprintf(&made, "%s %s", scheme, value) < 0)
        abort();
    if (!credential->authorization || strcmp(credential->authorization, made) != 0)
        credential->generation++;
    forget(credential);
    credential->authorization = made;
}

static void set_password(struct credential *credential) {
    const struct kubeconfig *config = credential->config;
    char *pair = NULL, *encoded;
    int n = asprintf(&pair, "%s:%s", config->username, config->password ? config->password : "");

    encoded = n < 0 ? NULL : malloc(((size_t)n + 2) / 3 * 4 + 1);
    if (!encoded)
        abort();
    base64_encode(pair, (size_t)n, encoded);
    set_authorization(credential, "Basic", encoded);
    explicit_bzero(pair, (size_t)n);
    explicit_bzero(encoded, strlen(encoded));
    free(pair);
    free(encoded);
}

static int read_token_file(struct credential *credential, struct error *err) {
    const char *path = credential->config->token_file;
    AUTO(buf) text = BUF_INIT(TOKEN_MAX);
    size_t len, visible = 0;

    if (file_read(path, &text, err))
        return error_wrap(err, "the token of the kubeconfig");
    len = text.len;
    while (len > 0 && (unsigned char)text.data[len - 1] <= ' ')
        len--;
    while (visible < len && text.data[visible] > ' ' && text.data[visible] <= '~')
        visible++;
    if (len > 0)
        text.data[len] = '\0';
    if (visible == len && len > 0)
        set_authorization(credential, "Bearer", text.data);
    explicit_bzero(text.data, text.len);
    if (visible != len || len == 0)
        return error_set(err, ERROR_DENIED, "%s holds no token", path);
    return 0;
}

/* ---- plugins ---- */

/* The value of KUBERNETES_EXEC_INFO. */
static int describe(const struct kubeconfig *config, struct buf *out, struct error *err) {
    struct json json;

    json_init(&json, JSON_COMPACT, json_to_buf, out);
    json_object(&json);
    json_key(&json, "apiVersion");
    json_text(&json, config->exec->api_version);
    json_key(&json, "kind");
    json_text(&json, "ExecCredential");
    json_key(&json, "spec");
    json_object(&json);
    json_key(&json, "interactive");
    json_bool(&json, false);
    if (config->exec->wants_cluster) {
        json_key(&json, "cluster");
        json_object(&json);
        json_key(&json, "server");
        json_text(&json, config->server);
        if (config->ca.data) {
            char *encoded = malloc((config->ca.len + 2) / 3 * 4 + 1);

            if (!encoded)
                abort();
            base64_encode(config->ca.data, config->ca.len, encoded);
            json_key(&json, "certificate-authority-data");
            json_text(&json, encoded);
            free(encoded);
        }
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    return json_finish(&json, err);
}

static void drop_answer(struct credential *credential) {
    if (credential->answer.key)
        explicit_bzero((void *)(uintptr_t)credential->answer.key, strlen(credential->answer.key));
    credential->answer = (struct plugin_answer){ 0 };
    arena_release(&credential->arena);
}

static void on_plugin(void *context, const struct error *failure, const struct buf *printed) {
    struct credential *credential = context;
    struct error err = *failure;

    drop_answer(credential);
    if (err.code == ERROR_NONE &&
        plugin_decode(printed->data, printed->len, credential->config->exec->api_version,
                      &credential->arena, &credential->answer, &err) == 0) {
        credential->generation++;
        forget(credential);
        if (credential->answer.token)
            set_authorization(credential, "Bearer", credential->answer.token);
        credential->made_us = clock_monotonic_us();
    }
    plugin_free(credential->plugin);
    credential->plugin = NULL;
    credential->ready(credential->context, &err);
}

static bool is_plugin_answer_good(const struct credential *credential) {
    return credential->made_us != 0 &&
           (credential->answer.expires_us == 0 ||
            credential->answer.expires_us - margin_us > clock_wall_us());
}

static int prepare_plugin(struct credential *credential, enum credential_state *state,
                          struct error *err) {
    AUTO(buf) info = BUF_INIT(KUBECONFIG_FILE_MAX * 2);

    if (is_plugin_answer_good(credential)) {
        *state = CREDENTIAL_READY;
        return 0;
    }
    if (!credential->plugin &&
        (describe(credential->config, &info, err) ||
         plugin_start(credential->loop, credential->config->exec, info.data, PLUGIN_TIMEOUT_MS,
                      on_plugin, credential, &credential->plugin, err)))
        return -1;
    *state = CREDENTIAL_WAIT;
    return 0;
}

/* ---- the interface ---- */

int credential_prepare(struct credential *credential, enum credential_state *state,
                       struct error *err) {
    const struct kubeconfig *config = credential->config;
    const int64_t now = clock_monotonic_us();

    if (config->exec)
        return prepare_plugin(credential, state, err);
    *state = CREDENTIAL_READY;
    if (config->token_file) {
        if (credential->made_us != 0 && now - credential->made_us < file_age_us)
            return 0;
        /* What was good a minute ago is better than nothing while the file is being replaced. */
        if (read_token_file(credential, err) && !credential->authorization)
            return -1;
    } else if (credential->made_us == 0 && config->token)
        set_authorization(credential, "Bearer", config->token);
    else if (credential->made_us == 0 && config->username)
        set_password(credential);
    credential->made_us = now;
    return 0;
}

bool credential_spoil(struct credential *credential, uint32_t generation) {
    const struct kubeconfig *config = credential->config;

    if (generation != credential->generation)
        return true; /* renewed since */
    if (!config->exec && kubeconfig_renew(credential->config))
        credential->generation++;
    else if (!config->exec && !config->token_file)
        return false;
    if (!config->exec)
        forget(credential);
    credential->made_us = 0;
    return true;
}

uint32_t credential_generation(const struct credential *credential) {
    return credential->generation;
}

const char *credential_authorization(const struct credential *credential) {
    return credential->authorization;
}

void credential_certificate(const struct credential *credential, struct http_blob *certificate,
                            struct http_blob *key) {
    const struct plugin_answer *answer = &credential->answer;
    const struct kubeconfig *config = credential->config;

    if (answer->certificate) {
        *certificate = (struct http_blob){ answer->certificate, strlen(answer->certificate) };
        *key = (struct http_blob){ answer->key, strlen(answer->key) };
    } else {
        *certificate = (struct http_blob){ config->certificate.data, config->certificate.len };
        *key = (struct http_blob){ config->key.data, config->key.len };
    }
}

struct credential *credential_new(struct event_base *loop, struct kubeconfig *config,
                                  void (*ready)(void *context, const struct error *err),
                                  void *context) {
    struct credential *credential = calloc(1, sizeof *credential);

    if (!credential)
        abort();
    *credential =
        (struct credential){ .loop = loop, .config = config, .ready = ready, .context = context };
    return credential;
}

void credential_free(struct credential *credential) {
    if (!credential)
        return;
    plugin_free(credential->plugin);
    drop_answer(credential);
    forget(credential);
    free(credential);
}
