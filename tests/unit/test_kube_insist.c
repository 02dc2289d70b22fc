/* SPDX-License-Identifier: Apache-2.0 */
/* What is insisted on, through outages and credentials that fail: what is asked on, and for how
 * long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/kubernetes/api.h"
#include "peer.h"
#include "scratch.h"

#define POD                                                                                        \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}"
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"message\":\"" message "\",\"reason\":\"" reason "\",\"code\":" #code "}"

enum { TRIES = 4 };

struct fixture {
    struct event_base *loop;
    struct peer *peer;
    struct api *api;
    char directory[64];
    int is_done, n_troubles;
    struct error err;
};

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);

    f->loop = event_base_new();
    f->peer = peer_new(f->loop);
    scratch_make(f->directory);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;

    api_free(f->api);
    peer_free(f->peer);
    event_base_free(f->loop);
    scratch_remove(f->directory);
    free(f);
    return 0;
}

static void connect_with(struct fixture *f, struct kubeconfig config) {
    static const struct api_options hasty = { .connect_ms = 5000,
                                              .deadline_ms = 5000,
                                              .tries = TRIES,
                                              .first_wait_ms = 1,
                                              .longest_wait_ms = 3 };
    struct error err;

    config.server = arena_printf(&config.arena, "http://127.0.0.1:%u", peer_port(f->peer));
    config.namespace = "team";
    if (config.token) /* secrets are wiped in place */
        config.token = arena_printf(&config.arena, "%s", config.token);
    if (api_new(f->loop, &config, &hasty, &f->api, &err))
        fail_msg("%s", err.message);
}

static void on_done(void *context, const struct api_answer *answer) {
    struct fixture *f = context;

    f->err = answer->err;
    f->is_done = 1;
}

static void on_trouble(void *context, const struct error *err) {
    struct fixture *f = context;

    assert_int_equal(err->code, ERROR_UNAVAILABLE);
    f->n_troubles++;
}

static struct api_call *begin(struct fixture *f) {
    static const struct api_resource pods = { "", "v1", "pods", "team" };

    f->is_done = 0;
    return api_get(f->api, &pods, "a", on_done, f);
}

static void get(struct fixture *f) {
    begin(f);
    run_until(f->loop, &f->is_done);
}

static void get_insistently(struct fixture *f) {
    api_insist(begin(f), on_trouble, f);
    run_until(f->loop, &f->is_done);
}

static void is_away(struct fixture *f, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        peer_say(f->peer, 503, "", STATUS(503, "ServiceUnavailable", "not now"));
}

/* ---- laws ---- */

static void what_is_insisted_on_outlasts_any_outage_which_is_told_once(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", POD);
    for (int i = 0; i < 5; i++) {
        is_away(f, 1);
        peer_say(f->peer, 401, "", STATUS(401, "Unauthorized", "Unauthorized"));
        peer_raw(f->peer, "", PEER_RESET);
    }
    peer_say(f->peer, 200, "", POD);
    connect_with(f, (struct kubeconfig){ .token = "s3cret" });
    get(f);
    get_insistently(f);
    assert_int_equal(f->err.code, ERROR_NONE);
    assert_int_equal(f->n_troubles, 1);
    assert_int_equal(peer_count(f->peer), 17);
}

static void what_is_refused_is_not_insisted_on(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", POD);
    peer_say(f->peer, 403, "", STATUS(403, "Forbidden", "not you"));
    connect_with(f, (struct kubeconfig){ 0 });
    get(f);
    get_insistently(f);
    assert_int_equal(f->err.code, ERROR_DENIED);
    assert_int_equal(f->n_troubles, 0);
}

static void who_was_never_let_in_does_not_insist(void **state) {
    struct fixture *f = *state;

    is_away(f, TRIES);
    connect_with(f, (struct kubeconfig){ 0 });
    get_insistently(f);
    assert_int_equal(f->err.code, ERROR_UNAVAILABLE);
    assert_int_equal(f->n_troubles, 0);
    assert_int_equal(peer_count(f->peer), TRIES);
    /* A process before this one was: then it does. */
    is_away(f, TRIES);
    peer_say(f->peer, 200, "", POD);
    api_was_let_in(f->api);
    get_insistently(f);
    assert_int_equal(f->err.code, ERROR_NONE);
    assert_int_equal(f->n_troubles, 1);
}

/* Its first run gives a token, and then the eighth. */
static const struct kubeconfig_exec *make_plugin(struct fixture *f, struct arena *arena) {
    struct kubeconfig_exec *exec = ARENA_NEW(arena, struct kubeconfig_exec);
    char *path = arena_printf(arena, "%s/plugin", f->directory);
    char **args = ARENA_ARRAY(arena, char *, 3), **env = ARENA_ARRAY(arena, char *, 1);
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs("#!/bin/sh\necho x >> $1/runs; n=$(wc -l < $1/runs)\n"
          "[ $n = 1 ] || [ $n -ge 8 ] || exit 7\n"
          "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
          "\"status\":{\"token\":\"t'$n'\"}}'\n",
          file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
    args[0] = path;
    args[1] = f->directory;
    *exec = (struct kubeconfig_exec){
        .command = path, .args = args, .env = env, .api_version = "client.authentication.k8s.io/v1"
    };
    return exec;
}

static void a_plugin_that_fails_after_it_has_worked_is_asked_until_it_works(void **state) {
    struct fixture *f = *state;
    struct arena arena = ARENA_INIT;

    peer_say(f->peer, 200, "", POD);
    peer_say(f->peer, 401, "", STATUS(401, "Unauthorized", "Unauthorized"));
    peer_say(f->peer, 200, "", POD);
    connect_with(f, (struct kubeconfig){ .exec = make_plugin(f, &arena) });
    get(f);
    get_insistently(f);
    assert_int_equal(f->err.code, ERROR_NONE);
    assert_non_null(strstr(peer_request(f->peer, 2), "Bearer t8\r\n"));
    assert_int_equal(f->n_troubles, 1);
    arena_release(&arena);
}

static void log_in(struct fixture *f, const char *path, const char *token) {
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fprintf(file,
            "current-context: c\ncontexts:\n- {name: c, context: {cluster: k, user: u}}\n"
            "clusters:\n- {name: k, cluster: {server: 'http://127.0.0.1:%u'}}\n"
            "users:\n- {name: u, user: {token: %s}}\n",
            peer_port(f->peer), token);
    assert_int_equal(fclose(file), 0);
}

/* From the loop, as by a user who sees the trouble. */
static void on_trouble_log_in(void *context, const struct error *err) {
    struct fixture *f = context;
    char path[128];

    on_trouble(f, err);
    snprintf(path, sizeof path, "%s/config", f->directory);
    log_in(f, path, "second");
}

static void who_logs_in_again_is_let_in_again(void **state) {
    struct fixture *f = *state;
    struct kubeconfig config;
    char path[128];

    snprintf(path, sizeof path, "%s/config", f->directory);
    log_in(f, path, "first");
    if (kubeconfig_find(&(struct kubeconfig_request){ .file = path }, &config, &f->err))
        fail_msg("%s", f->err.message);
    peer_say(f->peer, 200, "", POD);
    for (int i = 0; i < TRIES + 1; i++)
        peer_say(f->peer, 401, "", STATUS(401, "Unauthorized", "Unauthorized"));
    peer_say(f->peer, 200, "", POD);
    connect_with(f, config);
    get(f);
    api_insist(begin(f), on_trouble_log_in, f);
    run_until(f->loop, &f->is_done);
    assert_int_equal(f->err.code, ERROR_NONE);
    assert_int_equal(f->n_troubles, 1);
    assert_non_null(strstr(peer_request(f->peer, TRIES + 1), "Bearer first\r\n"));
    assert_non_null(strstr(peer_request(f->peer, TRIES + 2), "Bearer second\r\n"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(what_is_insisted_on_outlasts_any_outage_which_is_told_once),
        CASE(what_is_refused_is_not_insisted_on),
        CASE(who_was_never_let_in_does_not_insist),
        CASE(a_plugin_that_fails_after_it_has_worked_is_asked_until_it_works),
        CASE(who_logs_in_again_is_let_in_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
