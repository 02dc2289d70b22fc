/* SPDX-License-Identifier: Apache-2.0 */
/* How pods of our own are made, seen by a peer that plays the API server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/pods.h"
#include "backend/kubernetes/shim_key.h"
#include "compile.h"
#include "home.h"
#include "peer.h"

#define UUID "0f8b3c1d2e4a4b5c8d9e0f1a2b3c4d5e"
#define NAME "myelin-0f8b3c1d2e4a-0"
#define MADE(kind, name, uuid)                                                                     \
    "{\"kind\":\"" kind "\",\"metadata\":{\"name\":\"" name "\",\"uid\":\"u-1\",\"labels\":"       \
    "{\"myelin/run\":\"" uuid "\"}}}"
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"" message "\",\"reason\":\"" reason \
    "\",\"code\":" #code "}"
#define EMPTY_LIST "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}"

enum { AT_ONCE = 16 }; /* pods that are asked for */

struct fixture {
    struct home home;
    struct event_base *loop;
    struct peer *peer;
    struct plan *plan;
    struct settings *settings;
    struct pods_options options;
    struct attempt_facts facts;
    struct backend *backend;
    char kubeconfig[128];
    int is_submitted, has_ended, n_ended;
    struct task_end ends[64];
    char messages[64][480];
    char notice[480];
};

static void ignore_start(void *context, uint32_t rank, int64_t id) {
    (void)context, (void)rank, (void)id;
}

static void ignore_sentence(void *context, const char *sentence) {
    (void)context, (void)sentence;
}

static void ignore_left(void *context, enum left_manner manner, const char *sentence) {
    (void)context, (void)manner, (void)sentence;
}

static void on_notice(void *context, const char *sentence) {
    struct fixture *f = context;

    snprintf(f->notice, sizeof f->notice, "%s", sentence);
}

static void on_ended(void *context, uint32_t rank, const struct task_end *end) {
    struct fixture *f = context;

    f->ends[rank] = *end;
    snprintf(f->messages[rank], sizeof f->messages[rank], "%s", end->message ? end->message : "");
    f->has_ended = 1;
    f->n_ended++;
}

static void on_gone(void *context) {
    (void)context;
}

static void on_submitted(void *context) {
    ((struct fixture *)context)->is_submitted = 1;
}

static uint64_t none_delivered(void *context, uint32_t rank) {
    (void)context, (void)rank;
    return 0;
}

static void write_kubeconfig(struct fixture *f) {
    FILE *file;

    snprintf(f->kubeconfig, sizeof f->kubeconfig, "%s/kubeconfig", f->home.path);
    file = fopen(f->kubeconfig, "w");
    assert_non_null(file);
    fprintf(file,
            "current-context: x\ncontexts: [{name: x, context: {cluster: x, namespace: team}}]\n"
            "clusters: [{name: x, cluster: {server: 'http://127.0.0.1:%u'}}]\n",
            peer_port(f->peer));
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);

    home_make(&f->home);
    f->loop = event_base_new();
    f->peer = peer_new(f->loop);
    f->settings = settings_new();
    peer_for(f->peer, "selfsubjectaccessreviews");
    peer_say(f->peer, 201, "", "{\"status\": {\"allowed\": true}}");
    peer_for(f->peer, NULL);
    write_kubeconfig(f);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;

    if (f->backend)
        f->backend->ops->free(f->backend);
    peer_free(f->peer);
    event_base_free(f->loop);
    settings_free(f->settings);
    plan_free(f->plan);
    home_release(&f->home);
    free(f);
    return 0;
}

/* A master and so many workers. */
static void launch(struct fixture *f, unsigned n_workers) {
    char text[256];
    struct gang gang = { .n_tasks = n_workers + 1,
                         .started = ignore_start,
                         .ended = on_ended,
                         .gone = on_gone,
                         .notice = on_notice,
                         .waits = ignore_sentence,
                         .submitted = on_submitted,
                         .delivered = none_delivered,
                         .left = ignore_left,
                         .context = f };
    struct error err;

    snprintf(text, sizeof text,
             "version: 1\nkind: experiment\nframework: pytorch\nbuild: {image: x}\n"
             "environment: {replicas: {n_workers: %u}}\nrun: {cmd: 'true'}\n",
             n_workers);
    f->plan = compile_text(text);
    assert_non_null(f->plan);
    if (!f->settings->kubernetes.gang) /* either needs no turn of ours: test_turn.c */
        f->settings->kubernetes.queue = "q";
    f->options = (struct pods_options){ .form = &pods_native,
                                        .plan = f->plan,
                                        .settings = f->settings,
                                        .kubeconfig = f->kubeconfig,
                                        .timeout_ms = -1 };
    f->facts =
        (struct attempt_facts){ .run_id = "1", .uuid = UUID, .owner = "ada", .logs = f->home.path };
    if (pods_make(&f->options, f->loop, &f->facts, &f->backend, &err) ||
        f->backend->ops->launch(f->backend, &gang, &err))
        fail_msg("%s", err.message);
}

/* Turns the loop until so many requests came, and then some. */
static void run_until_asked(struct fixture *f, size_t n) {
    for (int i = 0; i < 5000 && peer_count(f->peer) < n; i++) {
        const struct timeval a_moment = { .tv_usec = 1000 };

        event_base_loopexit(f->loop, &a_moment);
        event_base_dispatch(f->loop);
    }
    for (int i = 0; i < 20; i++) {
        const struct timeval a_moment = { .tv_usec = 1000 };

        event_base_loopexit(f->loop, &a_moment);
        event_base_dispatch(f->loop);
    }
    assert_int_equal(peer_count(f->peer), n);
}

static size_t n_asked(const struct fixture *f, const char *what) {
    size_t n = 0;

    for (size_t i = 0; i < peer_count(f->peer); i++)
        n += strncmp(peer_request(f->peer, i), what, strlen(what)) == 0;
    return n;
}

/* Turns the loop until the cluster was asked to make such an object: `plural`, or its whole path.
 */
static void run_until_posted(struct fixture *f, const char *plural) {
    char what[120];

    snprintf(what, sizeof what, "POST %s%s ", plural[0] == '/' ? "" : "/api/v1/namespaces/team/",
             plural);
    for (int i = 0; i < 5000 && n_asked(f, what) == 0; i++)
        event_base_loop(f->loop, EVLOOP_ONCE);
    assert_true(n_asked(f, what) > 0);
}

static void contains(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

#define PODS_POST "POST /api/v1/namespaces/team/pods "

/* Both watches: what there is, and then nothing new. Then perhaps the owner is deleted. */
static void say_watches(struct fixture *f) {
    peer_say(f->peer, 200, "", EMPTY_LIST);
    peer_say(f->peer, 200, "", EMPTY_LIST);
    for (int i = 0; i < 3; i++)
        peer_hang(f->peer, "");
}

static void the_owner_is_made_first_and_the_rest_names_it(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME "-shim", UUID));
    peer_say(f->peer, 201, "", MADE("Service", NAME, UUID));
    for (int i = 0; i < 3; i++)
        peer_say(f->peer, 201, "", MADE("Pod", "x", UUID));
    say_watches(f);
    launch(f, 2);
    run_until(f->loop, &f->is_submitted);
    assert_int_equal(peer_count(f->peer), 7);
    contains(peer_request(f->peer, 1), "POST /api/v1/namespaces/team/configmaps ");
    assert_null(strstr(peer_request(f->peer, 1), "ownerReferences"));
    contains(peer_request(f->peer, 2), "POST /api/v1/namespaces/team/configmaps ");
    contains(peer_request(f->peer, 2), "\"binaryData\": {\"shim-amd64\": \"f0VMRg");
    contains(peer_request(f->peer, 3), "POST /api/v1/namespaces/team/services ");
    for (size_t i = 2; i < 7; i++)
        contains(peer_request(f->peer, i), "\"uid\": \"u-1\"");
    assert_int_equal(n_asked(f, PODS_POST), 3);
}

/* The key that a pod was given; "" where it has none. */
static void key_of(const char *request, char out[static SHIM_KEY_TEXT]) {
    const char *at = strstr(request, "\"MYELIN_SHIM_KEY\", \"value\": \"");

    snprintf(out, SHIM_KEY_TEXT, "%s", at ? strstr(at, "value\": \"") + strlen("value\": \"") : "");
}

static void the_pods_have_one_key_that_whoever_takes_over_has_too(void **state) {
    struct fixture *f = *state;
    char first[SHIM_KEY_TEXT], second[SHIM_KEY_TEXT], kept[SHIM_KEY_TEXT];
    struct error err;

    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME "-shim", UUID));
    peer_say(f->peer, 201, "", MADE("Service", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("Pod", "x", UUID));
    peer_say(f->peer, 201, "", MADE("Pod", "y", UUID));
    say_watches(f);
    launch(f, 1);
    run_until(f->loop, &f->is_submitted);
    key_of(peer_request(f->peer, 4), first);
    key_of(peer_request(f->peer, 5), second);
    assert_int_equal(strspn(first, "0123456789abcdef"), SHIM_KEY_TEXT - 1);
    assert_string_not_equal(first, "00000000000000000000000000000000");
    assert_string_equal(first, second);
    assert_int_equal(shim_key_read(f->home.path, kept, &err), 0);
    assert_string_equal(kept, first);
    assert_int_equal(shim_key_make(f->home.path, kept, &err), 0);
    assert_string_equal(kept, first);
}

static void without_a_shim_there_is_neither_its_bytes_nor_a_key(void **state) {
    struct fixture *f = *state;
    char key[SHIM_KEY_TEXT];
    struct error err;

    f->settings->kubernetes.has_shim = false;
    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("Service", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("Pod", "x", UUID));
    say_watches(f);
    launch(f, 0);
    run_until(f->loop, &f->is_submitted);
    assert_int_equal(n_asked(f, "POST /api/v1/namespaces/team/configmaps "), 1);
    assert_null(strstr(peer_request(f->peer, 2), "SHIM"));
    assert_int_equal(shim_key_read(f->home.path, key, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
}

static void pods_that_nobody_may_ask_get_no_shim_and_that_is_told(void **state) {
    struct fixture *f = *state;
    char key[SHIM_KEY_TEXT];
    struct error err;

    peer_free(f->peer);
    f->peer = peer_new(f->loop);
    write_kubeconfig(f);
    peer_say(f->peer, 201, "", "{\"status\": {\"allowed\": false}}");
    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("Service", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("Pod", "x", UUID));
    say_watches(f);
    launch(f, 0);
    run_until(f->loop, &f->is_submitted);
    assert_null(strstr(peer_request(f->peer, 3), "SHIM"));
    contains(f->notice, "pods/proxy");
    assert_int_equal(shim_key_read(f->home.path, key, &err), -1);
}

static void a_gang_scheduler_has_its_group_before_the_pods(void **state) {
    struct fixture *f = *state;

    f->settings->kubernetes.has_shim = false;
    f->settings->kubernetes.gang = "volcano";
    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("Service", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("PodGroup", NAME, UUID));
    for (int i = 0; i < 2; i++)
        peer_say(f->peer, 201, "", MADE("Pod", "x", UUID));
    say_watches(f);
    launch(f, 1);
    run_until_posted(f, "/apis/scheduling.volcano.sh/v1beta1/namespaces/team/podgroups");
    assert_int_equal(n_asked(f, PODS_POST), 0);
    run_until(f->loop, &f->is_submitted);
    assert_int_equal(n_asked(f, PODS_POST), 2);
}

static void some_pods_are_asked_for_at_once_and_never_all(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME "-shim", UUID));
    peer_say(f->peer, 201, "", MADE("Service", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("Pod", "x", UUID));
    for (int i = 0; i < AT_ONCE; i++)
        peer_hang(f->peer, "");
    launch(f, 40);
    run_until_asked(f, 1 + 3 + 1 + AT_ONCE); /* one was answered, and made room */
    assert_int_equal(n_asked(f, PODS_POST), AT_ONCE + 1);
    assert_false(f->is_submitted);
}

static void what_exists_of_this_run_is_taken_for_made(void **state) {
    struct fixture *f = *state;
    static const char exists[] = STATUS(409, "AlreadyExists", "it exists");

    peer_say(f->peer, 409, "", exists);
    peer_say(f->peer, 200, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 409, "", exists);
    peer_say(f->peer, 200, "", MADE("ConfigMap", NAME "-shim", UUID));
    peer_say(f->peer, 409, "", exists);
    peer_say(f->peer, 200, "", MADE("Service", NAME, UUID));
    /* Both pods are asked for before the first answer. */
    peer_say(f->peer, 409, "", exists);
    peer_say(f->peer, 409, "", exists);
    peer_say(f->peer, 200, "", MADE("Pod", "x", UUID));
    peer_say(f->peer, 200, "", MADE("Pod", "x", UUID));
    say_watches(f);
    launch(f, 1);
    run_until(f->loop, &f->is_submitted);
    assert_int_equal(f->n_ended, 0);
}

static void what_exists_of_somebody_else_is_not_touched(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 409, "", STATUS(409, "AlreadyExists", "it exists"));
    peer_say(f->peer, 200, "", MADE("ConfigMap", NAME, "somebody"));
    launch(f, 1);
    run_until(f->loop, &f->has_ended);
    assert_int_equal(f->n_ended, 2);
    assert_int_equal(f->ends[0].kind, TASK_NOT_STARTED);
    contains(f->messages[0], "a ConfigMap " NAME " of somebody else");
    assert_int_equal(n_asked(f, "DELETE "), 0);
    assert_false(f->is_submitted);
}

static void a_pod_that_is_refused_fails_its_task_with_the_words_of_the_cluster(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME "-shim", UUID));
    peer_say(f->peer, 201, "", MADE("Service", NAME, UUID));
    peer_say(f->peer, 403, "", STATUS(403, "Forbidden", "exceeded quota: few"));
    say_watches(f);
    launch(f, 0);
    run_until(f->loop, &f->has_ended);
    assert_true(f->is_submitted);
    assert_int_equal(f->n_ended, 1);
    assert_int_equal(f->ends[0].kind, TASK_NOT_STARTED);
    contains(f->messages[0], "exceeded quota: few");
}

static void after_a_refusal_no_more_pods_are_asked_for(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME "-shim", UUID));
    peer_say(f->peer, 201, "", MADE("Service", NAME, UUID));
    for (int i = 0; i < AT_ONCE; i++)
        peer_say(f->peer, 403, "", STATUS(403, "Forbidden", "not here"));
    say_watches(f);
    launch(f, 40);
    run_until(f->loop, &f->has_ended);
    assert_int_equal(n_asked(f, PODS_POST), AT_ONCE);
}

static void a_service_that_is_refused_leaves_an_owner_to_delete(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME "-shim", UUID));
    peer_say(f->peer, 422, "", STATUS(422, "Invalid", "no such service"));
    peer_hang(f->peer, "");
    peer_hang(f->peer, "");
    peer_hang(f->peer, "");
    peer_hang(f->peer, "");
    launch(f, 1);
    run_until(f->loop, &f->has_ended);
    assert_int_equal(f->n_ended, 2);
    contains(f->messages[1], "no such service");
    run_until_asked(f, 8);
    assert_int_equal(n_asked(f, "DELETE /api/v1/namespaces/team/configmaps/" NAME), 1);
    assert_int_equal(n_asked(f, "GET /apis/kueue.x-k8s.io "), 1); /* for what that keeps of it */
    assert_int_equal(n_asked(f, PODS_POST), 0);
}

static void a_gang_that_is_stopped_while_it_is_made_is_deleted_with_what_there_is(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME "-shim", UUID));
    peer_say(f->peer, 201, "", MADE("Service", NAME, UUID));
    peer_hang(f->peer, "");
    peer_hang(f->peer, "");
    peer_hang(f->peer, "");
    peer_hang(f->peer, "");
    launch(f, 2);
    run_until_posted(f, "configmaps");
    f->backend->ops->stop(f->backend, STOP_GRACEFULLY, 1000);
    run_until(f->loop, &f->is_submitted);
    run_until_asked(f, 8);
    assert_int_equal(n_asked(f, PODS_POST), 0);
    assert_int_equal(n_asked(f, "DELETE /api/v1/namespaces/team/configmaps/" NAME), 1);
    assert_int_equal(n_asked(f, "GET /apis/kueue.x-k8s.io "), 1); /* for what that keeps of it */
}

static void a_pod_that_was_made_and_is_not_there_was_deleted(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("ConfigMap", NAME "-shim", UUID));
    peer_say(f->peer, 201, "", MADE("Service", NAME, UUID));
    peer_say(f->peer, 201, "", MADE("Pod", "x", UUID));
    say_watches(f);
    launch(f, 0);
    run_until(f->loop, &f->has_ended);
    assert_int_equal(f->ends[0].kind, TASK_LOST);
    contains(f->messages[0], "somebody deleted the pod");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(the_owner_is_made_first_and_the_rest_names_it),
        CASE(the_pods_have_one_key_that_whoever_takes_over_has_too),
        CASE(without_a_shim_there_is_neither_its_bytes_nor_a_key),
        CASE(pods_that_nobody_may_ask_get_no_shim_and_that_is_told),
        CASE(a_gang_scheduler_has_its_group_before_the_pods),
        CASE(some_pods_are_asked_for_at_once_and_never_all),
        CASE(what_exists_of_this_run_is_taken_for_made),
        CASE(what_exists_of_somebody_else_is_not_touched),
        CASE(a_pod_that_is_refused_fails_its_task_with_the_words_of_the_cluster),
        CASE(after_a_refusal_no_more_pods_are_asked_for),
        CASE(a_service_that_is_refused_leaves_an_owner_to_delete),
        CASE(a_gang_that_is_stopped_while_it_is_made_is_deleted_with_what_there_is),
        CASE(a_pod_that_was_made_and_is_not_there_was_deleted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
