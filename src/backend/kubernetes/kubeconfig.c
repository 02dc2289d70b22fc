/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/kubeconfig.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/text.h"
#include "codec/yaml.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

enum { TOKEN_MAX = 1 << 20, EXEC_WORDS_MAX = 1000 };

static const char *const exec_versions[] = {
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
};

/* All texts of one reading. The first mistake is kept and everything after it is passed over, so
 * that the steps need no checks of their own. */
struct reader {
    struct sources sources;
    struct arena nodes;
    struct node roots[KUBECONFIG_FILES_MAX];
    size_t n;
    struct arena *arena; /* of the result */
    struct error *err;
    bool has_failed;
};

/* ---- mistakes and values, with their places ---- */

static void fail(struct reader *reader, const struct node *at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static void fail(struct reader *reader, const struct node *at, const char *fmt, ...) {
    const struct place place = node_place(at);
    const struct position position = sources_position(&reader->sources, place);
    va_list args;

    if (reader->has_failed)
        return;
    reader->has_failed = true;
    va_start(args, fmt);
    error_set(reader->err, ERROR_INVALID, "%s:%u:%u: %s",
              reader->sources.list.items[place.source].name, position.line, position.column,
              arena_vprintf(&reader->nodes, fmt, args));
    va_end(args);
}

static bool is_empty(const struct node *node) {
    return !node || node->kind == NODE_NULL || (node->kind == NODE_TEXT && node->count == 0);
}

/* NULL where it is absent or empty, which kubectl takes for the same. */
static const char *text_at(struct reader *reader, const struct node *map, const char *key) {
    const struct node *node = node_get(map, key);

    if (is_empty(node))
        return NULL;
    if (node->kind != NODE_TEXT) {
        fail(reader, node, "%s is %s, not text: put it in quotes", key, node_kind_name(node));
        return NULL;
    }
    return arena_text(reader->arena, node->text, node->count);
}

/* Text that goes into a line of HTTP, where a control character would begin another. */
static const char *line_at(struct reader *reader, const struct node *map, const char *key) {
    const char *text = text_at(reader, map, key);

    for (const char *c = text; c && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) {
            fail(reader, node_get(map, key), "%s has a control character in it", key);
            return NULL;
        }
    return text;
}

static bool truth_at(struct reader *reader, const struct node *map, const char *key) {
    const struct node *node = node_get(map, key);

    if (is_empty(node))
        return false;
    if (node->kind != NODE_BOOL)
        fail(reader, node, "%s is %s, not true or false", key, node_kind_name(node));
    return node->kind == NODE_BOOL && node->truth;
}

static const struct node *map_at(struct reader *reader, const struct node *map, const char *key) {
    const struct node *node = node_get(map, key);

    if (is_empty(node))
        return NULL;
    if (node->kind != NODE_MAP) {
        fail(reader, node, "%s is %s, not a mapping", key, node_kind_name(node));
        return NULL;
    }
    return node;
}

static const struct node *list_at(struct reader *reader, const struct node *map, const char *key) {
    static const struct node none = { .kind = NODE_LIST };
    const struct node *node = node_get(map, key);

    if (is_empty(node))
        return &none;
    if (node->kind != NODE_LIST) {
        fail(reader, node, "%s is %s, not a list", key, node_kind_name(node));
        return &none;
    }
    return node;
}

/* Paths stand relative to the file that has them. */
static const char *path_at(struct reader *reader, const struct node *map, const char *key) {
    const struct node *node = node_get(map, key);
    const char *path = text_at(reader, map, key), *file, *slash;

    if (!path || path[0] == '/')
        return path;
    file = reader->sources.list.items[node->source].name;
    slash = strrchr(file, '/');
    return slash ? arena_printf(reader->arena, "%.*s/%s", (int)(slash - file), file, path) : path;
}

/* `key`-data in base64, or else the file that `key` names. */
static struct kubeconfig_blob blob_at(struct reader *reader, const struct node *map,
                                      const char *key) {
    const char *data_key = arena_printf(&reader->nodes, "%s-data", key);
    const char *text = text_at(reader, map, data_key);
    struct kubeconfig_blob blob = { 0 };
    char *bytes;

    if (!text) {
        blob.file = path_at(reader, map, key);
        return blob;
    }
    bytes = arena_alloc(reader->arena, strlen(text) / 4 * 3 + 4);
    if (!base64_decode(text, strlen(text), bytes, &blob.len) || blob.len == 0)
        fail(reader, node_get(map, data_key), "%s is not base64", data_key);
    else
        blob.data = bytes;
    return blob;
}

/* ---- sections ---- */

static void take_cluster(struct reader *reader, const struct node *cluster,
                         struct kubeconfig *out) {
    const struct node *server = node_get(cluster, "server");
    char *address;
    size_t len;

    address = (char *)(uintptr_t)line_at(reader, cluster, "server");
    if (reader->has_failed)
        return;
    if (!address) {
        fail(reader, cluster, "the cluster has no server");
        return;
    }
    if (strncmp(address, "https://", 8) != 0 && strncmp(address, "http://", 7) != 0) {
        fail(reader, server, "server does not begin with https:// or http://");
        return;
    }
    for (len = strlen(address); len > 0 && address[len - 1] == '/'; len--)
        address[len - 1] = '\0';
    out->server = address;
    out->ca = blob_at(reader, cluster, "certificate-authority");
    out->verify = truth_at(reader, cluster, "insecure-skip-tls-verify") ? KUBECONFIG_INSECURE
                                                                        : KUBECONFIG_VERIFY;
    out->tls_server_name = line_at(reader, cluster, "tls-server-name");
    out->proxy_url = line_at(reader, cluster, "proxy-url");
    if (out->verify == KUBECONFIG_INSECURE && (out->ca.data || out->ca.file))
        fail(
            reader, cluster,
            "insecure-skip-tls-verify and certificate-authority exclude each other: leave out one");
}

/* args, with the command before them, or "NAME=value" of env. NULL-terminated. */
static char **words_of(struct reader *reader, const struct node *list, const char *first,
                       char *(*word)(struct reader *, const struct node *)) {
    const size_t before = first ? 1 : 0;
    char **words;

    if (list->count > EXEC_WORDS_MAX) {
        fail(reader, list, "more than %d entries", EXEC_WORDS_MAX);
        return NULL;
    }
    words = ARENA_ARRAY(reader->arena, char *, list->count + before + 1);
    if (first)
        words[0] = arena_text(reader->arena, first, strlen(first));
    for (uint32_t i = 0; i < list->count; i++)
        words[i + before] = word(reader, &list->items[i]);
    return words;
}

static char *argument(struct reader *reader, const struct node *item) {
    if (item->kind != NODE_TEXT) {
        fail(reader, item, "an argument is %s, not text: put it in quotes", node_kind_name(item));
        return NULL;
    }
    return arena_text(reader->arena, item->text, item->count);
}

static char *variable(struct reader *reader, const struct node *item) {
    const char *name = text_at(reader, item, "name"), *value = text_at(reader, item, "value");

    if (!name || strchr(name, '=')) {
        fail(reader, item, "a variable of env has no name");
        return NULL;
    }
    return arena_printf(reader->arena, "%s=%s", name, value ? value : "");
}

static void take_exec(struct reader *reader, const struct node *exec, struct kubeconfig *out) {
    struct kubeconfig_exec *made = ARENA_NEW(reader->arena, struct kubeconfig_exec);
    const char *command = text_at(reader, exec, "command");
    const char *mode = text_at(reader, exec, "interactiveMode");
    const char *version = text_at(reader, exec, "apiVersion");

    if (reader->has_failed)
        return;
    if (!command) {
        fail(reader, exec, "exec has no command");
        return;
    }
    for (size_t i = 0; version && i < ARRAY_LEN(exec_versions); i++)
        if (strcmp(version, exec_versions[i]) == 0)
            made->api_version = exec_versions[i];
    if (!made->api_version)
        fail(reader, exec,
             "the apiVersion of exec is neither %s nor v1beta1: renew the kubeconfig "
             "with the tool that wrote it",
             exec_versions[0]);
    if (mode && strcmp(mode, "Always") == 0)
        fail(reader, exec,
             "exec wants to talk to its user (interactiveMode: Always), and a run has "
             "nobody to ask: use a token");
    made->command = strchr(command, '/') ? path_at(reader, exec, "command") : command;
    made->args = words_of(reader, list_at(reader, exec, "args"), made->command, argument);
    made->env = words_of(reader, list_at(reader, exec, "env"), NULL, variable);
    made->install_hint = text_at(reader, exec, "installHint");
    made->wants_cluster = truth_at(reader, exec, "provideClusterInfo");
    out->exec = made;
}

static void take_user(struct reader *reader, const struct node *user, struct kubeconfig *out) {
    static const char *const refused[] = { "as-groups", "as-uid", "as-user-extra" };
    const struct node *exec = map_at(reader, user, "exec");
    const struct node *provider = node_get(user, "auth-provider");

    if (!is_empty(provider))
        fail(reader, provider,
             "auth-provider is not known any more: use an exec plugin, as "
             "`kubelogin convert-kubeconfig` or `gke-gcloud-auth-plugin` give, or "
             "a token");
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (!is_empty(node_get(user, refused[i])))
            fail(reader, node_get(user, refused[i]), "%s is not known here: only `as` is",
                 refused[i]);
    out->certificate = blob_at(reader, user, "client-certificate");
    out->key = blob_at(reader, user, "client-key");
    out->token = line_at(reader, user, "token");
    out->token_file = path_at(reader, user, "tokenFile");
    out->username = line_at(reader, user, "username");
    out->password = line_at(reader, user, "password");
    out->impersonate = line_at(reader, user, "as");
    if (exec)
        take_exec(reader, exec, out);
    if (!reader->has_failed &&
        (out->certificate.data || out->certificate.file) != (out->key.data || out->key.file))
        fail(reader, user, "the user has a client certificate or a client key, but not both");
}

/* ---- the choice ---- */

/* The entry of that name in the first file that has one; NULL: none has. */
static const struct node *entry_of(struct reader *reader, const char *section, const char *name) {
    for (size_t i = 0; i < reader->n; i++) {
        const struct node *list = list_at(reader, &reader->roots[i], section);

        for (uint32_t k = 0; k < list->count; k++) {
            const struct node *found = node_get(&list->items[k], "name");

            if (found && found->kind == NODE_TEXT && strcmp(found->text, name) == 0)
                return &list->items[k];
        }
    }
    return NULL;
}

static const char *known_contexts(struct reader *reader) {
    char *names = arena_text(&reader->nodes, "", 0);
    uint32_t shown = 0;

    for (size_t i = 0; i < reader->n; i++) {
        const struct node *list = list_at(reader, &reader->roots[i], "contexts");

        for (uint32_t k = 0; k < list->count && shown < 8; k++) {
            const struct node *name = node_get(&list->items[k], "name");

            if (name && name->kind == NODE_TEXT)
                names = arena_printf(&reader->nodes, "%s%s%.60s", names, shown++ ? ", " : "",
                                     name->text);
        }
    }
    return shown ? names : "none";
}

static const char *current_context(struct reader *reader) {
    for (size_t i = 0; i < reader->n; i++) {
        const char *name = text_at(reader, &reader->roots[i], "current-context");

        if (name)
            return name;
    }
    return NULL;
}

static int fail_nowhere(struct reader *reader, const char *sentence) {
    if (!reader->has_failed)
        error_set(reader->err, ERROR_INVALID, "%s: %s", reader->sources.list.items[0].name,
                  sentence);
    reader->has_failed = true;
    return -1;
}

static int choose(struct reader *reader, const struct kubeconfig_request *request,
                  struct kubeconfig *out) {
    const char *name = request->context ? request->context : current_context(reader);
    const struct node *entry, *context, *cluster, *user;

    if (!name)
        return fail_nowhere(reader, "no context is chosen: `kubectl config use-context NAME` does");
    out->context = arena_text(reader->arena, name, strlen(name));
    entry = entry_of(reader, "contexts", name);
    if (!entry)
        return fail_nowhere(reader, arena_printf(&reader->nodes,
                                                 "there is no context %.100s; there are: %s", name,
                                                 known_contexts(reader)));
    context = map_at(reader, entry, "context");
    out->cluster_name = text_at(reader, context, "cluster");
    out->user_name = text_at(reader, context, "user");
    out->namespace = request->namespace ? arena_printf(reader->arena, "%s", request->namespace)
                                        : line_at(reader, context, "namespace");
    if (!out->namespace)
        out->namespace = "default";
    if (reader->has_failed)
        return -1;
    cluster = out->cluster_name ? entry_of(reader, "clusters", out->cluster_name) : NULL;
    user = out->user_name ? entry_of(reader, "users", out->user_name) : NULL;
    if (!cluster)
        fail(reader, entry, "the context %.100s names a cluster that is not there", name);
    if (out->user_name && !user)
        fail(reader, entry, "the context %.100s names a user that is not there", name);
    if (!reader->has_failed) {
        const struct node *body = map_at(reader, cluster, "cluster");

        take_cluster(reader, body ? body : cluster, out);
        if (user)
            take_user(reader, map_at(reader, user, "user"), out);
    }
    return reader->has_failed ? -1 : 0;
}

/* ---- reading ---- */

static int parse(struct reader *reader, const struct kubeconfig_text *text) {
    AUTO_PTR(diags) diags = diags_new();
    const uint16_t source = sources_add(&reader->sources, text->path, text->text, text->len);
    struct node *root = &reader->roots[reader->n];

    if (yaml_read(&reader->sources, source, &reader->nodes, diags, root)) {
        const struct diag *diag = &diags->list[0];

        for (size_t i = 0; i < diags->len; i++)
            if (diags->list[i].severity == SEVERITY_ERROR) {
                diag = &diags->list[i];
                break;
            }
        fail(reader, &(struct node){ .offset = diag->place.offset, .source = source }, "%s",
             diag->message);
        return -1;
    }
    if (root->kind != NODE_MAP && root->kind != NODE_NULL) {
        fail(reader, root, "a kubeconfig is a mapping, this is %s", node_kind_name(root));
        return -1;
    }
    reader->n++;
    return 0;
}

static void wipe(const void *bytes, size_t n) {
    if (bytes)
        explicit_bzero((void *)(uintptr_t)bytes, n);
}

static void wipe_text(const char *text) {
    if (text)
        wipe(text, strlen(text));
}

static void wipe_nodes(const struct node *node) {
    for (uint32_t i = 0; node->kind == NODE_LIST && i < node->count; i++)
        wipe_nodes(&node->items[i]);
    for (uint32_t i = 0; node->kind == NODE_MAP && i < node->count; i++)
        wipe_nodes(&node->members[i].value);
    if (node->kind == NODE_TEXT && node->count > 16) /* short texts may be shared constants */
        wipe(node->text, node->count);
}

int kubeconfig_read(const struct kubeconfig_text *texts, size_t n,
                    const struct kubeconfig_request *request, struct kubeconfig *out,
                    struct error *err) {
    struct kubeconfig made = { 0 };
    struct reader reader = { .arena = &made.arena, .err = err };
    int status = 0;

    if (n > KUBECONFIG_FILES_MAX)
        return error_set(err, ERROR_EXHAUSTED, "more than %d kubeconfig files",
                         KUBECONFIG_FILES_MAX);
    for (size_t i = 0; i < n && status == 0; i++)
        status = parse(&reader, &texts[i]);
    if (status == 0)
        status = choose(&reader, request, &made);
    for (size_t i = 0; i < reader.n; i++)
        wipe_nodes(&reader.roots[i]);
    for (size_t i = 0; i < reader.sources.list.len; i++)
        wipe(reader.sources.list.items[i].text, reader.sources.list.items[i].len);
    arena_release(&reader.nodes);
    sources_release(&reader.sources);
    if (status == 0)
        *out = made;
    else
        kubeconfig_release(&made);
    return status;
}

/* ---- files ---- */

static int load_blob(struct kubeconfig *config, struct kubeconfig_blob *blob, const char *what,
                     struct error *err) {
    AUTO(buf) bytes = BUF_INIT(KUBECONFIG_FILE_MAX);

    if (!blob->file)
        return 0;
    if (file_read(blob->file, &bytes, err))
        return error_wrap(err, "the %s of the kubeconfig", what);
    if (bytes.len == 0)
        return error_set(err, ERROR_INVALID, "the %s of the kubeconfig: %s is empty", what,
                         blob->file);
    blob->data = arena_text(&config->arena, bytes.data, bytes.len);
    blob->len = bytes.len;
    wipe(bytes.data, bytes.len);
    return 0;
}

int kubeconfig_load_blobs(struct kubeconfig *config, struct error *err) {
    struct kubeconfig_blob ca = config->ca, certificate = config->certificate, key = config->key;

    if (load_blob(config, &ca, "certificate authority", err) ||
        load_blob(config, &certificate, "client certificate", err) ||
        load_blob(config, &key, "client key", err))
        return -1;
    config->ca = ca;
    config->certificate = certificate;
    config->key = key;
    return 0;
}

/* Adds a file to the texts; one that is not there is passed over unless it has to be. */
static int add_file(const char *path, bool must_exist, struct arena *arena,
                    struct kubeconfig_text *texts, size_t *n, struct error *err) {
    AUTO(buf) bytes = BUF_INIT(KUBECONFIG_FILE_MAX);

    if (!must_exist && access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (*n == KUBECONFIG_FILES_MAX)
        return error_set(err, ERROR_EXHAUSTED, "KUBECONFIG names more than %d files",
                         KUBECONFIG_FILES_MAX);
    if (file_read(path, &bytes, err))
        return error_wrap(err, "the kubeconfig");
    texts[(*n)++] = (struct kubeconfig_text){ arena_text(arena, path, strlen(path)),
                                              arena_text(arena, bytes.data, bytes.len), bytes.len };
    wipe(bytes.data, bytes.len);
    return 0;
}

static int add_list(const char *list, struct arena *arena, struct kubeconfig_text *texts, size_t *n,
                    struct error *err) {
    for (const char *at = list; *at;) {
        const size_t len = strcspn(at, ":");

        if (len > 0 && add_file(arena_text(arena, at, len), false, arena, texts, n, err))
            return -1;
        at += len + (at[len] == ':');
    }
    return 0;
}

static const char *home_file(struct arena *arena) {
    const char *home = getenv("HOME");
    const struct passwd *entry = home && *home ? NULL : getpwuid(getuid());

    if (entry)
        home = entry->pw_dir;
    return home && *home ? arena_printf(arena, "%s/.kube/config", home) : NULL;
}

int kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
                          struct kubeconfig *out, struct error *err) {
    struct kubeconfig made = { .context = KUBECONFIG_IN_CLUSTER,
                               .cluster_name = KUBECONFIG_IN_CLUSTER };
    AUTO(buf) namespace = BUF_INIT(256);
    struct error ignored;

    made.server = arena_printf(&made.arena, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s",
                               host, port);
    made.token_file = arena_printf(&made.arena, "%s/token", directory);
    made.ca.file = arena_printf(&made.arena, "%s/ca.crt", directory);
    made.namespace = "default";
    if (file_read(arena_printf(&made.arena, "%s/namespace", directory), &namespace, &ignored) == 0)
        made.namespace =
            arena_text(&made.arena, namespace.data, strcspn(namespace.data, " \t\r\n"));
    if (kubeconfig_load_blobs(&made, err)) {
        kubeconfig_release(&made);
        return error_wrap(err, "this is a pod without a service account that can be used");
    }
    *out = made;
    return 0;
}

static int find_texts(const struct kubeconfig_request *request, struct arena *arena,
                      struct kubeconfig_text *texts, size_t *n, struct error *err) {
    const char *list = getenv("KUBECONFIG"), *home;

    if (request->file)
        return add_file(request->file, true, arena, texts, n, err);
    if (list && *list)
        return add_list(list, arena, texts, n, err);
    home = home_file(arena);
    return home ? add_file(home, false, arena, texts, n, err) : 0;
}

static int find_in_cluster(const struct kubeconfig_request *request, struct kubeconfig *out,
                           struct error *err) {
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");

    if (!host || !*host || !port || !*port)
        return error_set(
            err, ERROR_NOT_FOUND,
            "there is no kubeconfig: KUBECONFIG names no file that is there, neither is "
            "there ~/.kube/config, and this is no pod");
    if (request->context && strcmp(request->context, KUBECONFIG_IN_CLUSTER) != 0)
        return error_set(err, ERROR_NOT_FOUND, "there is no kubeconfig that has the context %s",
                         request->context);
    return kubeconfig_in_cluster(host, port, SERVICE_ACCOUNT, out, err);
}

int kubeconfig_find(const struct kubeconfig_request *request, struct kubeconfig *out,
                    struct error *err) {
    struct kubeconfig_text texts[KUBECONFIG_FILES_MAX];
    struct arena arena = ARENA_INIT;
    struct kubeconfig made = { 0 };
    size_t n = 0;
    int status = find_texts(request, &arena, texts, &n, err);

    if (status == 0 && n > 0)
        status = kubeconfig_read(texts, n, request, &made, err);
    else if (status == 0)
        status = find_in_cluster(request, &made, err);
    for (size_t i = 0; i < n; i++)
        wipe(texts[i].text, texts[i].len);
    arena_release(&arena);
    if (status == 0 && request->file)
        made.asked_file = arena_text(&made.arena, request->file, strlen(request->file));
    if (status == 0 && request->namespace)
        made.namespace = arena_text(&made.arena, request->namespace, strlen(request->namespace));
    if (status == 0 && kubeconfig_load_blobs(&made, err)) {
        kubeconfig_release(&made);
        status = -1;
    }
    if (status == 0)
        *out = made;
    return status;
}

/* The old text is wiped. */
static bool renew_text(struct arena *arena, const char **text, const char *now) {
    if (text_is_same(*text, now))
        return false;
    wipe_text(*text);
    *text = now ? arena_text(arena, now, strlen(now)) : NULL;
    return true;
}

static bool renew_blob(struct arena *arena, struct kubeconfig_blob *blob,
                       const struct kubeconfig_blob *now) {
    if (blob->len == now->len && (now->len == 0 || memcmp(blob->data, now->data, now->len) == 0))
        return false;
    wipe(blob->data, blob->len);
    blob->data = now->len ? arena_text(arena, now->data, now->len) : NULL;
    blob->len = now->len;
    return true;
}

bool kubeconfig_renew(struct kubeconfig *config) {
    const struct kubeconfig_request request = { .file = config->asked_file,
                                                .context = config->context };
    struct kubeconfig now = { 0 };
    struct error ignored;
    bool is_other = false;

    if (kubeconfig_find(&request, &now, &ignored))
        return false;
    if (text_is_same(config->server, now.server) &&
        text_is_same(config->user_name, now.user_name)) {
        is_other |= renew_text(&config->arena, &config->token, now.token);
        is_other |= renew_text(&config->arena, &config->username, now.username);
        is_other |= renew_text(&config->arena, &config->password, now.password);
        is_other |= renew_blob(&config->arena, &config->certificate, &now.certificate);
        is_other |= renew_blob(&config->arena, &config->key, &now.key);
    }
    kubeconfig_release(&now);
    return is_other;
}

void kubeconfig_release(struct kubeconfig *config) {
    wipe_text(config->token);
    wipe_text(config->password);
    wipe(config->key.data, config->key.len);
    arena_release(&config->arena);
    *config = (struct kubeconfig){ 0 };
}
