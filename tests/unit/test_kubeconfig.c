/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/kubernetes/kubeconfig.h"
#include "backend/kubernetes/plugin.h"
#include "base/base64.h"

#define CONTEXT                                                                                    \
    "current-context: c\n"                                                                         \
    "contexts:\n- {name: c, context: {cluster: k, user: u, namespace: team}}\n"                    \
    "clusters:\n- {name: k, cluster: {server: 'https://host:6443/'}}\n"
#define USER(user) CONTEXT "users:\n- name: u\n  user: " user "\n"

static struct kubeconfig config;
static struct error err;

static int release(void **state) {
    (void)state;
    kubeconfig_release(&config);
    return 0;
}

static int read_two(const char *first, const char *second, const char *context) {
    const struct kubeconfig_text texts[] = { { "/one/config", first, strlen(first) },
                                             { "/two/config", second ? second : "",
                                               second ? strlen(second) : 0 } };

    kubeconfig_release(&config);
    return kubeconfig_read(texts, second ? 2 : 1,
                           &(struct kubeconfig_request){ .context = context }, &config, &err);
}

static void takes(const char *text) {
    if (read_two(text, NULL, NULL))
        fail_msg("%s", err.message);
}

static void refuses(const char *text, const char *sentence) {
    config = (struct kubeconfig){ 0 };
    assert_int_equal(read_two(text, NULL, NULL), -1);
    if (!strstr(err.message, sentence))
        fail_msg("\"%s\" is not in: %s", sentence, err.message);
    assert_null(config.server);
}

static void the_current_context_is_the_way_in(void **state) {
    (void)state;
    takes(USER("{token: t0}"));
    assert_string_equal(config.context, "c");
    assert_string_equal(config.server, "https://host:6443");
    assert_string_equal(config.namespace, "team");
    assert_string_equal(config.token, "t0");
    assert_int_equal(config.verify, KUBECONFIG_VERIFY);
    assert_null(config.proxy_url);
}

static void json_is_a_kubeconfig_too(void **state) {
    (void)state;
    takes("{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"k\"}"
          "}],\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":\"http://h\"}}]}");
    assert_string_equal(config.server, "http://h");
    assert_string_equal(config.namespace, "default");
    assert_null(config.user_name);
}

static void another_context_can_be_asked_for(void **state) {
    (void)state;
    assert_int_equal(read_two(CONTEXT, "contexts:\n- {name: d, context: {cluster: k}}\n", "d"), 0);
    assert_string_equal(config.context, "d");
    assert_int_equal(read_two(CONTEXT, NULL, "nope"), -1);
    assert_non_null(strstr(err.message, "there is no context nope; there are: c"));
}

static void the_first_file_that_names_an_entry_wins_whole(void **state) {
    (void)state;
    assert_int_equal(read_two("users:\n- {name: u, user: {username: first}}\n",
                              USER("{token: second, username: second}") "\n", NULL),
                     0);
    assert_string_equal(config.username, "first");
    assert_null(config.token);
}

static void paths_stand_beside_the_file_that_has_them(void **state) {
    (void)state;
    assert_int_equal(
        read_two(
            "users:\n- {name: u, user: {client-certificate: c.pem, client-key: /k.pem, tokenFile: "
            "t, exec: {command: ./p, apiVersion: client.authentication.k8s.io/v1}}}\n",
            "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: "
            "[{name: k, cluster: {server: 'https://h', certificate-authority: ca.pem}}]\n",
            NULL),
        0);
    assert_string_equal(config.certificate.file, "/one/c.pem");
    assert_string_equal(config.key.file, "/k.pem");
    assert_string_equal(config.token_file, "/one/t");
    assert_string_equal(config.ca.file, "/two/ca.pem");
    assert_string_equal(config.exec->command, "/one/./p");
}

static void data_stands_before_a_file(void **state) {
    (void)state;
    takes("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: k, "
          "cluster: {server: 'https://h', certificate-authority: x, certificate-authority-data: "
          "aGVs\nbG8=, tls-server-name: n, proxy-url: 'http://p:1'}}]\n");
    assert_null(config.ca.file);
    assert_int_equal(config.ca.len, 5);
    assert_memory_equal(config.ca.data, "hello", 6);
    assert_string_equal(config.tls_server_name, "n");
    assert_string_equal(config.proxy_url, "http://p:1");
}

static void a_plugin_has_arguments_and_environment(void **state) {
    (void)state;
    takes(USER("{exec: {command: aws, args: [eks, get-token], env: [{name: A, value: b}], "
               "apiVersion: client.authentication.k8s.io/v1beta1, provideClusterInfo: true}}"));
    assert_string_equal(config.exec->command, "aws");
    assert_string_equal(config.exec->args[0], "aws");
    assert_string_equal(config.exec->args[2], "get-token");
    assert_null(config.exec->args[3]);
    assert_string_equal(config.exec->env[0], "A=b");
    assert_string_equal(config.exec->api_version, "client.authentication.k8s.io/v1beta1");
    assert_true(config.exec->wants_cluster);
}

static void mistakes_are_told_with_their_place(void **state) {
    (void)state;
    refuses("a: [", "/one/config:");
    refuses("- x\n", "/one/config:1:1: a kubeconfig is a mapping, this is a list");
    refuses("{}", "no context is chosen");
    refuses("current-context: 3\n",
            "/one/config:1:18: current-context is a whole number, not text: put it in quotes");
    refuses("current-context: c\ncontexts: {}\n", "contexts is a mapping, not a list");
    refuses("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n",
            "/one/config:2:12: the context c names a cluster that is not there");
    refuses("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: "
            "k, cluster: {server: 'host:6443'}}]\n",
            "/one/config:3:40: server does not begin with https://");
    refuses("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: "
            "k, cluster: {}}]\n",
            "the cluster has no server");
    refuses(CONTEXT, "names a user that is not there");
    refuses(USER("{client-certificate: x}"), "but not both");
    refuses(USER("{client-certificate-data: '*', client-key-data: aGk=}"),
            "client-certificate-data is not base64");
    refuses(USER("{auth-provider: {name: gcp}}"), "use an exec plugin");
    refuses(USER("{as-groups: [x]}"), "as-groups is not known here");
    refuses(USER("{exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}}"),
            "renew the kubeconfig");
    refuses(USER("{exec: {command: x, apiVersion: client.authentication.k8s.io/v1, "
                 "interactiveMode: Always}}"),
            "nobody to ask");
    refuses(USER("{exec: {apiVersion: client.authentication.k8s.io/v1}}"), "exec has no command");
    refuses(USER("{token: \"a\\nb\"}"), "token has a control character in it");
}

static void no_mistake_shows_a_secret(void **state) {
    (void)state;
    refuses(USER("{token: \"s3cret\\x01\"}"), "control character");
    assert_null(strstr(err.message, "s3cret"));
    refuses(USER("{password: 5351}"), "put it in quotes");
    assert_null(strstr(err.message, "5351"));
    refuses(USER("{client-key-data: '!s3cret', client-certificate-data: aGk=}"), "not base64");
    assert_null(strstr(err.message, "s3cret"));
}

/* ---- files ---- */

static char directory[] = "/tmp/myelin-kubeconfig-XXXXXX";

static int make_directory(void **state) {
    (void)state;
    strcpy(directory + sizeof directory - 7, "XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state) {
    char command[128];

    (void)state;
    kubeconfig_release(&config);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

static const char *put(const char *name, const char *text) {
    static char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static void files_of_the_list_that_are_not_there_are_passed_over(void **state) {
    char list[400];

    (void)state;
    put("one", "users:\n- {name: u, user: {client-certificate: crt, client-key: key}}\n");
    put("two", CONTEXT);
    put("crt", "CRT");
    put("key", "KEY");
    snprintf(list, sizeof list, "%s/none::%s/one:%s/two:", directory, directory, directory);
    setenv("KUBECONFIG", list, 1);
    if (kubeconfig_find(&(struct kubeconfig_request){ .namespace = "other" }, &config, &err))
        fail_msg("%s", err.message);
    assert_string_equal(config.certificate.data, "CRT");
    assert_int_equal(config.key.len, 3);
    assert_string_equal(config.namespace, "other");
    assert_false(kubeconfig_renew(&config));
    put("key", "RENEWED");
    assert_true(kubeconfig_renew(&config));
    assert_string_equal(config.key.data, "RENEWED");
    assert_string_equal(config.certificate.data, "CRT");
    assert_string_equal(config.namespace, "other");
    assert_false(kubeconfig_renew(&config));
}

static void who_logs_in_again_is_known_by_the_new_token(void **state) {
    const char *path = put("one", USER("{token: first}"));

    (void)state;
    unsetenv("KUBECONFIG");
    if (kubeconfig_find(&(struct kubeconfig_request){ .file = path }, &config, &err))
        fail_msg("%s", err.message);
    put("one", USER("{token: second}"));
    assert_true(kubeconfig_renew(&config));
    assert_string_equal(config.token, "second");
    put("one", USER("{username: me, password: it}"));
    assert_true(kubeconfig_renew(&config));
    assert_null(config.token);
    assert_string_equal(config.password, "it");
}

static void what_another_server_user_or_no_file_says_is_not_taken(void **state) {
    const char *path = put("one", USER("{token: first}"));

    (void)state;
    if (kubeconfig_find(&(struct kubeconfig_request){ .file = path }, &config, &err))
        fail_msg("%s", err.message);
    config.server = "https://elsewhere";
    put("one", USER("{token: second}"));
    assert_false(kubeconfig_renew(&config));
    put("one", "half of a {file");
    assert_false(kubeconfig_renew(&config));
    unlink(path);
    assert_false(kubeconfig_renew(&config));
    assert_string_equal(config.token, "first");
}

static void a_file_that_was_asked_for_has_to_be_there(void **state) {
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/none", directory);
    assert_int_equal(kubeconfig_find(&(struct kubeconfig_request){ .file = path }, &config, &err),
                     -1);
    assert_non_null(strstr(err.message, path));
}

static void a_certificate_that_is_missing_is_named(void **state) {
    (void)state;
    setenv("KUBECONFIG", put("one", USER("{client-certificate: crt, client-key: key}")), 1);
    assert_int_equal(kubeconfig_find(&(struct kubeconfig_request){ 0 }, &config, &err), -1);
    assert_non_null(strstr(err.message, "the client certificate of the kubeconfig"));
    assert_non_null(strstr(err.message, "/crt"));
}

static void without_any_way_in_the_ways_are_named(void **state) {
    (void)state;
    setenv("KUBECONFIG", "/nowhere/at/all", 1);
    assert_int_equal(kubeconfig_find(&(struct kubeconfig_request){ 0 }, &config, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    assert_non_null(strstr(err.message, "KUBECONFIG"));
}

static void a_pod_finds_its_own_cluster(void **state) {
    (void)state;
    put("token", "t\n");
    put("ca.crt", "CA");
    put("namespace", "team\n");
    assert_int_equal(kubeconfig_in_cluster("10.0.0.1", "443", directory, &config, &err), 0);
    assert_string_equal(config.server, "https://10.0.0.1:443");
    assert_string_equal(config.namespace, "team");
    assert_string_equal(config.ca.data, "CA");
    assert_non_null(strstr(config.token_file, "/token"));
    kubeconfig_release(&config);
    assert_int_equal(kubeconfig_in_cluster("fd00::1", "443", directory, &config, &err), 0);
    assert_string_equal(config.server, "https://[fd00::1]:443");
    kubeconfig_release(&config);
    assert_int_equal(kubeconfig_in_cluster("10.0.0.1", "443", "/nowhere", &config, &err), -1);
}

/* ---- the smaller parts ---- */

static void base64_goes_there_and_back(void **state) {
    char encoded[64], decoded[64];
    size_t len;

    (void)state;
    for (size_t n = 0; n < 30; n++) {
        char bytes[30];

        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)(i * 37 + n);
        base64_encode(bytes, n, encoded);
        assert_true(base64_decode(encoded, strlen(encoded), decoded, &len));
        assert_int_equal(len, n);
        assert_memory_equal(decoded, bytes, n);
    }
    assert_false(base64_decode("a", 1, decoded, &len));
    assert_false(base64_decode("aGk", 3, decoded, &len));
    assert_false(base64_decode("aG=k", 4, decoded, &len));
    assert_false(base64_decode("aG\0=", 4, decoded, &len));
}

static int decode(const char *status, struct arena *arena, struct plugin_answer *answer) {
    const char *text = arena_printf(arena,
                                    "{\"apiVersion\":\"client.authentication.k8s.io/"
                                    "v1\",\"kind\":\"ExecCredential\",\"status\":%s}",
                                    status);

    return plugin_decode(text, strlen(text), "client.authentication.k8s.io/v1", arena, answer,
                         &err);
}

static void a_plugins_answer_is_a_token_or_a_certificate(void **state) {
    struct arena arena = ARENA_INIT;
    struct plugin_answer answer;

    (void)state;
    assert_int_equal(decode("{\"token\":\"t\",\"expirationTimestamp\":\"2026-03-01T12:00:00Z\"}",
                            &arena, &answer),
                     0);
    assert_string_equal(answer.token, "t");
    assert_int_equal(answer.expires_us, 1772366400000000);
    assert_int_equal(
        decode("{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}", &arena, &answer), 0);
    assert_string_equal(answer.key, "k");
    assert_int_equal(decode("{\"clientCertificateData\":\"c\"}", &arena, &answer), -1);
    assert_int_equal(decode("{}", &arena, &answer), -1);
    assert_int_equal(decode("null", &arena, &answer), -1);
    assert_int_equal(decode("{\"token\":\"s3cret\\n\"}", &arena, &answer), -1);
    assert_null(strstr(err.message, "s3cret"));
    assert_int_equal(
        plugin_decode("s3cret", 6, "client.authentication.k8s.io/v1", &arena, &answer, &err), -1);
    assert_null(strstr(err.message, "s3cret"));
    assert_int_equal(plugin_decode("{\"kind\":\"ExecCredential\",\"apiVersion\":\"x\"}", 41, "y",
                                   &arena, &answer, &err),
                     -1);
    arena_release(&arena);
}

/* A run names the cluster that it went to, and looks for it again by that name. */
static void a_pods_own_cluster_is_found_again_by_its_name(void **state) {
    (void)state;
    setenv("KUBECONFIG", "/nowhere/at/all", 1);
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_int_equal(
        kubeconfig_find(&(struct kubeconfig_request){ .context = "lab" }, &config, &err), -1);
    assert_non_null(strstr(err.message, "that has the context lab"));
    /* Where this is no pod, it fails at what a pod would have, not at the name. */
    err.message[0] = '\0';
    if (kubeconfig_find(&(struct kubeconfig_request){ .context = KUBECONFIG_IN_CLUSTER }, &config,
                        &err) == 0)
        assert_string_equal(config.context, KUBECONFIG_IN_CLUSTER);
    assert_null(strstr(err.message, "that has the context"));
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
}

#define TEXT(law)  cmocka_unit_test_teardown(law, release)
#define FILES(law) cmocka_unit_test_setup_teardown(law, make_directory, remove_directory)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEXT(the_current_context_is_the_way_in),
        TEXT(json_is_a_kubeconfig_too),
        TEXT(another_context_can_be_asked_for),
        TEXT(the_first_file_that_names_an_entry_wins_whole),
        TEXT(paths_stand_beside_the_file_that_has_them),
        TEXT(data_stands_before_a_file),
        TEXT(a_plugin_has_arguments_and_environment),
        TEXT(mistakes_are_told_with_their_place),
        TEXT(no_mistake_shows_a_secret),
        FILES(files_of_the_list_that_are_not_there_are_passed_over),
        FILES(who_logs_in_again_is_known_by_the_new_token),
        FILES(what_another_server_user_or_no_file_says_is_not_taken),
        FILES(a_file_that_was_asked_for_has_to_be_there),
        FILES(a_certificate_that_is_missing_is_named),
        FILES(without_any_way_in_the_ways_are_named),
        FILES(a_pod_finds_its_own_cluster),
        FILES(a_pods_own_cluster_is_found_again_by_its_name),
        TEXT(base64_goes_there_and_back),
        TEXT(a_plugins_answer_is_a_token_or_a_certificate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
