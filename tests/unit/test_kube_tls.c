/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and proxies between the client and a server, with real TLS; front.py stands between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/kubernetes/api.h"
#include "base/file.h"
#include "peer.h"

enum { FRONTS_MAX = 2 };

static char directory[] = "/tmp/myelin-tls-XXXXXX";

struct fixture {
    struct event_base *loop;
    struct peer *peer;
    struct api *api;
    pid_t fronts[FRONTS_MAX];
    int n_fronts;
    struct kubeconfig config;
    int is_done;
    struct error err;
};

/* An authority, a server that is known by its address, one that is known by its name, a client. */
static int make_certificates(void **state) {
    static const char script[] =
        "cd %s && exec >log 2>&1 && key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes' "
        "&&"
        "openssl req -x509 $key -keyout ca.key -out ca.pem -subj /CN=authority -days 2 &&"
        "for c in ip:IP:127.0.0.1 name:DNS:kube.test client:DNS:client; do n=${c%%%%:*};"
        " openssl req $key -keyout $n.key -out $n.csr -subj /CN=$n &&"
        " echo subjectAltName=${c#*:} >$n.ext &&"
        " openssl x509 -req -in $n.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile "
        "$n.ext -out $n.pem"
        " || exit 1; done";
    char command[sizeof script + sizeof directory];

    (void)state;
    if (!mkdtemp(directory))
        return -1;
    snprintf(command, sizeof command, script, directory);
    return system(command) == 0 ? 0 : -1;
}

static int remove_certificates(void **state) {
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);

    f->loop = event_base_new();
    f->peer = peer_new(f->loop);
    f->config.namespace = "n";
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;

    api_free(f->api);
    kubeconfig_release(&f->config);
    peer_free(f->peer);
    event_base_free(f->loop);
    for (int i = 0; i < f->n_fronts; i++) {
        kill(f->fronts[i], SIGKILL);
        waitpid(f->fronts[i], NULL, 0);
    }
    free(f);
    return 0;
}

/* Starts one, with up to four arguments, and gives its port. */
static int front(struct fixture *f, const char *const arguments[5]) {
    int out[2], port = 0;
    pid_t pid;
    FILE *from;

    assert_true(f->n_fronts < FRONTS_MAX);
    assert_int_equal(pipe(out), 0);
    pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execlp("python3", "python3", FRONT, arguments[0], arguments[1], arguments[2], arguments[3],
               arguments[4], (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    f->fronts[f->n_fronts++] = pid;
    from = fdopen(out[0], "r");
    assert_int_equal(fscanf(from, "%d", &port), 1);
    fclose(from);
    return port;
}

static const char *file(struct fixture *f, const char *name) {
    return arena_printf(&f->config.arena, "%s/%s", directory, name);
}

static void load(struct fixture *f, const char *name, struct kubeconfig_blob *blob) {
    blob->file = file(f, name);
    assert_int_equal(kubeconfig_load_blobs(&f->config, &f->err), 0);
}

/* TLS with that certificate; `ca` of clients, or NULL. */
static void stand_before(struct fixture *f, const char *name, const char *ca) {
    const char *port = arena_printf(&f->config.arena, "%u", peer_port(f->peer));
    const char *const arguments[] = { "tls", port,
                                      file(f, arena_printf(&f->config.arena, "%s.pem", name)),
                                      file(f, arena_printf(&f->config.arena, "%s.key", name)),
                                      ca ? file(f, ca) : NULL };

    f->config.server = arena_printf(&f->config.arena, "https://127.0.0.1:%d", front(f, arguments));
}

static void on_done(void *context, const struct api_answer *answer) {
    struct fixture *f = context;

    f->err = answer->err;
    f->is_done = 1;
}

static void get(struct fixture *f) {
    const struct api_resource pods = { "", "v1", "pods", "n" };
    const struct api_options quick = { .tries = 2, .first_wait_ms = 2, .longest_wait_ms = 5 };
    struct error err;

    peer_say(f->peer, 200, "", "{\"kind\":\"Pod\"}");
    if (!f->config.server)
        f->config.server =
            arena_printf(&f->config.arena, "http://127.0.0.1:%u", peer_port(f->peer));
    assert_int_equal(api_new(f->loop, &f->config, &quick, &f->api, &err), 0);
    api_get(f->api, &pods, "a", on_done, f);
    run_until(f->loop, &f->is_done);
}

static void works(struct fixture *f) {
    get(f);
    if (f->err.code != ERROR_NONE)
        fail_msg("%s", f->err.message);
    assert_int_equal(peer_count(f->peer), 1);
}

static void a_server_of_the_kubeconfigs_authority_is_trusted(void **state) {
    struct fixture *f = *state;

    stand_before(f, "ip", NULL);
    load(f, "ca.pem", &f->config.ca);
    works(f);
}

static void a_server_of_an_unknown_authority_is_not(void **state) {
    struct fixture *f = *state;

    stand_before(f, "ip", NULL);
    get(f);
    assert_int_equal(f->err.code, ERROR_DENIED);
    assert_non_null(strstr(f->err.message, "certificate is not trusted"));
    assert_int_equal(peer_count(f->peer), 0);
}

static void insecure_skip_tls_verify_trusts_anybody(void **state) {
    struct fixture *f = *state;

    stand_before(f, "ip", NULL);
    f->config.verify = KUBECONFIG_INSECURE;
    works(f);
}

static void a_certificate_of_another_name_is_refused(void **state) {
    struct fixture *f = *state;

    stand_before(f, "name", NULL);
    load(f, "ca.pem", &f->config.ca);
    get(f);
    assert_int_equal(f->err.code, ERROR_DENIED);
    assert_int_equal(peer_count(f->peer), 0);
}

static void tls_server_name_is_the_name_that_counts(void **state) {
    struct fixture *f = *state;

    stand_before(f, "name", NULL);
    load(f, "ca.pem", &f->config.ca);
    f->config.tls_server_name = "kube.test";
    works(f);
    assert_non_null(strstr(peer_request(f->peer, 0), "Host: 127.0.0.1:"));
}

static void a_client_certificate_is_shown(void **state) {
    struct fixture *f = *state;

    stand_before(f, "ip", "ca.pem");
    load(f, "ca.pem", &f->config.ca);
    load(f, "client.pem", &f->config.certificate);
    load(f, "client.key", &f->config.key);
    works(f);
}

static void without_a_client_certificate_such_a_server_is_closed(void **state) {
    struct fixture *f = *state;

    stand_before(f, "ip", "ca.pem");
    load(f, "ca.pem", &f->config.ca);
    get(f);
    assert_int_not_equal(f->err.code, ERROR_NONE);
    assert_int_equal(peer_count(f->peer), 0);
}

static void proxy_url_is_the_way_to_the_server(void **state) {
    struct fixture *f = *state;
    const char *const arguments[5] = { "proxy", file(f, "connects") };
    AUTO(buf) log = BUF_INIT(4096);
    char path[64], expected[64];
    const char *server;
    struct error err;

    stand_before(f, "ip", NULL);
    server = f->config.server; /* the configuration goes to the client */
    load(f, "ca.pem", &f->config.ca);
    f->config.proxy_url =
        arena_printf(&f->config.arena, "http://127.0.0.1:%d", front(f, arguments));
    works(f);
    snprintf(path, sizeof path, "%s/connects", directory);
    snprintf(expected, sizeof expected, "CONNECT %s ", server + strlen("https://"));
    assert_int_equal(file_read(path, &log, &err), 0);
    assert_non_null(strstr(log.data, expected));
}

static void the_environments_proxy_is_used(void **state) {
    struct fixture *f = *state;
    char address[64];

    snprintf(address, sizeof address, "http://127.0.0.1:%u", peer_port(f->peer));
    setenv("http_proxy", address, 1);
    f->config.server = arena_printf(&f->config.arena, "http://cluster.invalid:8001");
    works(f);
    unsetenv("http_proxy");
    assert_non_null(strstr(peer_request(f->peer, 0),
                           "GET http://cluster.invalid:8001/api/v1/namespaces/n/pods/a HTTP"));
}

#define CASE(law) cmocka_unit_test_setup_teardown(law, set_up, tear_down)

int main(void) {
    static const char *const proxies[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                           "ALL_PROXY",  "no_proxy",    "NO_PROXY" };
    const struct CMUnitTest tests[] = {
        CASE(a_server_of_the_kubeconfigs_authority_is_trusted),
        CASE(a_server_of_an_unknown_authority_is_not),
        CASE(insecure_skip_tls_verify_trusts_anybody),
        CASE(a_certificate_of_another_name_is_refused),
        CASE(tls_server_name_is_the_name_that_counts),
        CASE(a_client_certificate_is_shown),
        CASE(without_a_client_certificate_such_a_server_is_closed),
        CASE(proxy_url_is_the_way_to_the_server),
        CASE(the_environments_proxy_is_used),
    };

    for (size_t i = 0; i < ARRAY_LEN(proxies); i++)
        unsetenv(proxies[i]);
    return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
