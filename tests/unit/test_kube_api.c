/* SPDX-License-Identifier: Apache-2.0 */
/* What an API server can do to a client, played by a peer that does as it is told. */
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
#include <unistd.h>

#include "backend/kubernetes/api.h"
#include "codec/json_read.h"
#include "peer.h"

#define POD(name, version)                                                                         \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"uid\":\"u-" name                      \
    "\",\"resourceVersion\":\"" version "\"}}"
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"" message     \
    "\",\"reason\":\"" reason "\",\"code\":" #code "}"

static const struct api_resource pods = { "", "v1", "pods", "team" };
static const struct api_options quick = {
    .connect_ms = 5000,
    .deadline_ms = 5000,
    .idle_ms = 5000,
    .tries = 4,
    .first_wait_ms = 2,
    .longest_wait_ms = 1500,
    .page = 2,
};

struct fixture {
    struct event_base *loop;
    struct peer *peer;
    struct api *api;
    int is_done, n_done;
    struct api_answer answer;
    char name[64], reason[64]; /* of what came */
    char items[256];
    int is_dead; /* nothing may come any more */
    char directory[64];
};

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);

    f->loop = event_base_new();
    f->peer = peer_new(f->loop);
    strcpy(f->directory, "/tmp/myelin-kube-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    char command[128];

    api_free(f->api);
    peer_free(f->peer);
    event_base_free(f->loop);
    snprintf(command, sizeof command, "rm -rf %s", f->directory);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void connect_with(struct fixture *f, struct kubeconfig config,
                         const struct api_options *options) {
    struct error err;
    char server[64];

    snprintf(server, sizeof server, "http://127.0.0.1:%u", peer_port(f->peer));
    if (!config.server)
        config.server = arena_printf(&config.arena, "%s", server);
    config.namespace = "team";
    if (config.token) /* secrets are wiped in place */
        config.token = arena_printf(&config.arena, "%s", config.token);
    if (config.password)
        config.password = arena_printf(&config.arena, "%s", config.password);
    if (api_new(f->loop, &config, options, &f->api, &err))
        fail_msg("%s", err.message);
}

static void connect_plainly(struct fixture *f) {
    connect_with(f, (struct kubeconfig){ 0 }, &quick);
}

static void on_done(void *context, const struct api_answer *answer) {
    struct fixture *f = context;
    const struct node *name = node_get(node_get(answer->object, "metadata"), "name");

    assert_false(f->is_dead);
    f->answer = *answer;
    snprintf(f->reason, sizeof f->reason, "%s", answer->reason);
    snprintf(f->name, sizeof f->name, "%s", name && name->kind == NODE_TEXT ? name->text : "");
    f->is_done = 1;
    f->n_done++;
}

static void get(struct fixture *f) {
    f->is_done = 0;
    assert_non_null(api_get(f->api, &pods, "a", on_done, f));
    assert_int_equal(f->is_done, 0); /* never from inside the call */
    run_until(f->loop, &f->is_done);
}

static struct node parse(struct arena *arena, const char *text) {
    struct node node;
    struct error err;

    assert_int_equal(json_read(text, strlen(text), arena, &node, &err), 0);
    return node;
}

static void create(struct fixture *f, const char *text) {
    struct arena arena = ARENA_INIT;
    struct node object = parse(&arena, text);

    f->is_done = 0;
    assert_non_null(api_create(f->api, &pods, &object, on_done, f));
    arena_release(&arena); /* it is copied */
    run_until(f->loop, &f->is_done);
}

static void contains(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

static void contains_not(const char *text, const char *part) {
    if (strstr(text, part))
        fail_msg("\"%s\" is in: %s", part, text);
}

static void an_object_is_got_by_its_path(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", POD("a", "7"));
    connect_plainly(f);
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    assert_string_equal(f->name, "a");
    contains(peer_request(f->peer, 0), "GET /api/v1/namespaces/team/pods/a HTTP/1.1\r\n");
    contains_not(peer_request(f->peer, 0), "Authorization");
}

static void an_answer_in_many_pieces_is_one_answer(void **state) {
    struct fixture *f = *state;

    peer_raw(f->peer,
             "HTTP/1.1 200 O\fK\r\nContent-Type: application/json\r\nContent-Le\fngth: "
             "26\r\n\r\n{\"metadat\f"
             "a\":{\"name\":\fnull}}",
             PEER_KEEP);
    peer_say(f->peer, 200, "", POD("b", "7"));
    connect_plainly(f);
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    get(f);
    assert_string_equal(f->name, "b");
}

static void a_server_that_fails_is_asked_again(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 500, "", STATUS(500, "InternalError", "etcd"));
    peer_raw(f->peer, "HTTP/1.1 503 No\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno",
             PEER_CLOSE);
    peer_say(f->peer, 200, "", POD("a", "7"));
    connect_plainly(f);
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    assert_int_equal(peer_count(f->peer), 3);
}

static void a_server_that_never_recovers_is_given_up_with_its_own_words(void **state) {
    struct fixture *f = *state;

    for (int i = 0; i < 4; i++)
        peer_say(f->peer, 500, "", STATUS(500, "InternalError", "etcdserver: no leader"));
    connect_plainly(f);
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_UNAVAILABLE);
    contains(f->answer.err.message, "cannot get pods a in namespace team: etcdserver: no leader");
    assert_int_equal(peer_count(f->peer), 4);
}

static void retry_after_is_waited_for(void **state) {
    struct fixture *f = *state;
    struct timeval before, after, passed;

    peer_say(f->peer, 429, "Retry-After: 1\r\n", STATUS(429, "TooManyRequests", "slow down"));
    peer_say(f->peer, 200, "", POD("a", "7"));
    connect_plainly(f);
    event_base_gettimeofday_cached(f->loop, &before);
    get(f);
    event_base_gettimeofday_cached(f->loop, &after);
    evutil_timersub(&after, &before, &passed);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    assert_true(passed.tv_sec >= 1 || passed.tv_usec > 900000); /* without it: 2 ms */
}

static void a_cut_answer_is_asked_again(void **state) {
    struct fixture *f = *state;

    peer_raw(f->peer,
             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
             "100\r\n\r\n{\"metadata\":",
             PEER_CLOSE);
    peer_raw(f->peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{\"metadata\"",
             PEER_CLOSE);
    peer_raw(f->peer, "HTTP/1.1 20", PEER_RESET);
    peer_say(f->peer, 200, "", POD("a", "7"));
    connect_plainly(f);
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    assert_string_equal(f->name, "a");
}

static void on_reopen(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    peer_open(context);
}

static void a_server_that_is_down_is_waited_for(void **state) {
    struct fixture *f = *state;
    struct event *reopen = evtimer_new(f->loop, on_reopen, f->peer);
    const struct timeval soon = { 0, 40000 };
    struct api_options patient = quick;

    patient.tries = 50;
    patient.longest_wait_ms = 40;
    peer_shut(f->peer);
    peer_say(f->peer, 200, "", POD("a", "7"));
    connect_with(f, (struct kubeconfig){ 0 }, &patient);
    event_add(reopen, &soon);
    get(f);
    event_free(reopen);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
}

static void a_server_that_stays_down_is_an_error_that_names_it(void **state) {
    struct fixture *f = *state;

    peer_shut(f->peer);
    connect_plainly(f);
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_UNAVAILABLE);
    assert_int_equal(f->answer.status, 0);
    contains(f->answer.err.message, "(asked 4 times): there is no connection");
    contains(f->answer.err.message, "http://127.0.0.1:");
}

static void a_slow_server_runs_into_the_deadline_of_a_try(void **state) {
    struct fixture *f = *state;
    struct api_options hasty = quick;

    hasty.deadline_ms = 60;
    peer_hang(f->peer, "{\"metadata\"");
    peer_say(f->peer, 200, "", POD("a", "7"));
    connect_with(f, (struct kubeconfig){ 0 }, &hasty);
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    assert_int_equal(peer_count(f->peer), 2);
}

static void what_is_no_json_is_no_api_server(void **state) {
    struct fixture *f = *state;

    peer_raw(f->peer,
             "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
             PEER_KEEP);
    connect_plainly(f);
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_INVALID);
    contains(f->answer.err.message, "text/html: is it the address of an API server?");
    assert_null(f->answer.object);
    assert_int_equal(peer_count(f->peer), 1);
}

static void a_body_beyond_all_bounds_is_refused(void **state) {
    struct fixture *f = *state;
    const size_t n = 70 << 20;
    char *huge = malloc(n + 1);

    memset(huge, ' ', n);
    huge[n] = '\0';
    peer_say(f->peer, 200, "", huge);
    free(huge);
    connect_plainly(f);
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_EXHAUSTED);
    contains(f->answer.err.message, "larger than");
}

static void a_missing_right_is_named(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 403, "",
             STATUS(403, "Forbidden",
                    "pods is forbidden: User \\\"eve\\\" cannot create resource \\\"pods\\\" in "
                    "API group \\\"\\\" in the namespace \\\"team\\\""));
    connect_plainly(f);
    create(f, POD("a", ""));
    assert_int_equal(f->answer.err.code, ERROR_DENIED);
    contains(f->answer.err.message, "cannot create resource \"pods\"");
    contains(f->answer.err.message, "RoleBinding");
    assert_int_equal(peer_count(f->peer), 1);
}

static void an_invalid_object_is_told_with_its_fields(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 422, "",
             "{\"kind\":\"Status\",\"message\":\"TFJob is "
             "invalid\",\"reason\":\"Invalid\",\"details\":{\"causes\":["
             "{\"field\":\"spec.replicas\",\"message\":\"must be at least 1\"}]}}");
    connect_plainly(f);
    create(f, POD("a", ""));
    assert_int_equal(f->answer.err.code, ERROR_INVALID);
    contains(f->answer.err.message, "TFJob is invalid; spec.replicas: must be at least 1");
    assert_string_equal(f->reason, "Invalid");
}

static void what_exists_already_is_looked_up(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 409, "", STATUS(409, "AlreadyExists", "pods a already exists"));
    peer_say(f->peer, 200, "", POD("a", "7"));
    connect_plainly(f);
    create(f, POD("a", ""));
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    assert_true(f->answer.existed);
    assert_string_equal(f->name, "a");
    contains(peer_request(f->peer, 0), "POST /api/v1/namespaces/team/pods HTTP/1.1");
    contains(peer_request(f->peer, 0), "\"name\": \"a\"");
    contains(peer_request(f->peer, 1), "GET /api/v1/namespaces/team/pods/a HTTP/1.1");
}

static void a_quota_that_counts_another_object_is_asked_again(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 409, "", STATUS(409, "Conflict", "cannot fulfil on resourcequotas few"));
    peer_say(f->peer, 201, "", POD("a", "9"));
    connect_plainly(f);
    create(f, POD("a", ""));
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    assert_false(f->answer.existed);
    contains(peer_request(f->peer, 1), "POST ");
}

static void a_create_whose_answer_is_lost_is_one_create(void **state) {
    struct fixture *f = *state;

    peer_raw(f->peer, "HTTP/1.1 201 Cre", PEER_RESET);
    peer_say(f->peer, 409, "", STATUS(409, "AlreadyExists", "pods a already exists"));
    peer_say(f->peer, 404, "", STATUS(404, "NotFound", "gone meanwhile"));
    peer_say(f->peer, 201, "", POD("a", "8"));
    connect_plainly(f);
    create(f, POD("a", ""));
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    assert_false(f->answer.existed);
    contains(peer_request(f->peer, 3), "POST ");
    contains(peer_request(f->peer, 3), "\"name\": \"a\"");
}

static void an_object_without_a_name_is_not_created(void **state) {
    struct fixture *f = *state;

    connect_plainly(f);
    create(f, "{\"metadata\":{\"generateName\":\"x-\"}}");
    assert_int_equal(f->answer.err.code, ERROR_INVALID);
    assert_int_equal(peer_count(f->peer), 0);
}

static void what_is_gone_is_deleted(void **state) {
    struct fixture *f = *state;
    const struct api_delete how = { API_DELETE_FOREGROUND, 0, "u-a" };

    peer_say(f->peer, 404, "", STATUS(404, "NotFound", "pods a not found"));
    connect_plainly(f);
    api_delete(f->api, &pods, "a", &how, on_done, f);
    run_until(f->loop, &f->is_done);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    assert_null(f->answer.object);
    contains(peer_request(f->peer, 0), "DELETE /api/v1/namespaces/team/pods/a");
    contains(peer_request(f->peer, 0), "\"propagationPolicy\": \"Foreground\"");
    contains(peer_request(f->peer, 0), "\"gracePeriodSeconds\": 0");
    contains(peer_request(f->peer, 0), "\"uid\": \"u-a\"");
}

static void a_patch_says_its_kind(void **state) {
    struct fixture *f = *state;
    struct arena arena = ARENA_INIT;
    struct node patch = parse(&arena, "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}");

    connect_plainly(f);
    for (int kind = API_PATCH_MERGE; kind <= API_PATCH_APPLY; kind++) {
        f->is_done = 0;
        peer_say(f->peer, 200, "", POD("a", "9"));
        api_patch(f->api, &pods, "a/b", NULL, (enum api_patch)kind, &patch, on_done, f);
        run_until(f->loop, &f->is_done);
        assert_int_equal(f->answer.err.code, ERROR_NONE);
    }
    arena_release(&arena);
    contains(peer_request(f->peer, 0),
             "PATCH /api/v1/namespaces/team/pods/a%2Fb?fieldManager=myelin HTTP");
    contains(peer_request(f->peer, 0), "application/merge-patch+json");
    contains(peer_request(f->peer, 1), "application/strategic-merge-patch+json");
    contains(peer_request(f->peer, 2), "force=true");
    contains(peer_request(f->peer, 2), "application/apply-patch+yaml");
}

static void an_update_of_what_somebody_changed_is_a_conflict_and_not_asked_again(void **state) {
    struct fixture *f = *state;
    struct arena arena = ARENA_INIT;
    struct node object = parse(&arena, POD("a", "8"));

    connect_plainly(f);
    peer_say(f->peer, 409, "",
             "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"it was changed\","
             "\"code\":409}");
    api_update(f->api, &pods, &object, on_done, f);
    run_until(f->loop, &f->is_done);
    arena_release(&arena);
    assert_int_equal(f->answer.err.code, ERROR_CONFLICT);
    assert_int_equal(peer_count(f->peer), 1);
    contains(peer_request(f->peer, 0), "PUT /api/v1/namespaces/team/pods/a HTTP");
    contains(peer_request(f->peer, 0), "\"resourceVersion\": \"8\"");
}

static void on_item(void *context, const struct node *object) {
    struct fixture *f = context;
    const struct node *name = node_get(node_get(object, "metadata"), "name");

    strcat(f->items, name->text);
    strcat(f->items, " ");
}

#define LIST(next, items)                                                                          \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"50\",\"continue\":\"" next          \
    "\"},\"items\":[" items "]}"

static void list(struct fixture *f) {
    const struct api_selector selector = { "myelin.run=1,x!=y z", NULL };

    f->is_done = 0;
    f->items[0] = '\0';
    api_list(f->api, &pods, &selector, on_item, on_done, f);
    run_until(f->loop, &f->is_done);
}

static void a_list_is_read_page_by_page(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", LIST("tok+1", POD("a", "1") "," POD("b", "2")));
    peer_say(f->peer, 200, "", LIST("", POD("c", "3")));
    connect_plainly(f);
    list(f);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    assert_string_equal(f->items, "a b c ");
    contains(peer_request(f->peer, 0), "?labelSelector=myelin.run%3D1%2Cx%21%3Dy%20z&limit=2 HTTP");
    contains(peer_request(f->peer, 1), "&limit=2&continue=tok%2B1 HTTP");
}

static void a_list_whose_place_expires_begins_again_whole(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", LIST("tok", POD("a", "1")));
    peer_say(f->peer, 410, "", STATUS(410, "Expired", "too old"));
    peer_say(f->peer, 200, "", LIST("", POD("a", "1") "," POD("b", "2")));
    connect_plainly(f);
    list(f);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    assert_string_equal(f->items, "a a b ");
    contains_not(peer_request(f->peer, 2), "limit=");
    contains_not(peer_request(f->peer, 2), "continue=");
}

/* ---- credentials ---- */

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void a_token_is_sent_and_never_told(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 401, "", STATUS(401, "Unauthorized", "Unauthorized"));
    connect_with(f, (struct kubeconfig){ .token = "s3cret" }, &quick);
    get(f);
    contains(peer_request(f->peer, 0), "Authorization: Bearer s3cret\r\n");
    assert_int_equal(f->answer.err.code, ERROR_DENIED);
    contains(f->answer.err.message, "log in again");
    contains_not(f->answer.err.message, "s3cret");
    assert_int_equal(peer_count(f->peer), 1); /* another try could not differ */
}

static void a_password_goes_as_basic_authorization(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", POD("a", "1"));
    connect_with(f, (struct kubeconfig){ .username = "Aladdin", .password = "open sesame" },
                 &quick);
    get(f);
    contains(peer_request(f->peer, 0), "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n");
}

static void a_token_that_is_refused_is_read_again_once(void **state) {
    struct fixture *f = *state;
    char path[128];

    snprintf(path, sizeof path, "%s/token", f->directory);
    write_file(path, "old\n");
    peer_say(f->peer, 200, "", POD("a", "1"));
    peer_say(f->peer, 401, "", STATUS(401, "Unauthorized", "Unauthorized"));
    peer_say(f->peer, 200, "", POD("a", "1"));
    peer_say(f->peer, 401, "", STATUS(401, "Unauthorized", "Unauthorized"));
    peer_say(f->peer, 401, "", STATUS(401, "Unauthorized", "Unauthorized"));
    connect_with(f, (struct kubeconfig){ .token_file = path }, &quick);
    get(f);
    write_file(path, "new\n");
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
    contains(peer_request(f->peer, 0), "Bearer old\r\n");
    contains(peer_request(f->peer, 1), "Bearer old\r\n");
    contains(peer_request(f->peer, 2), "Bearer new\r\n");
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_UNAVAILABLE); /* it was good once */
    contains(f->answer.err.message, "log in again");
    assert_int_equal(peer_count(f->peer), 5);
}

/* Each run of the plugin gives the next token. */
static const struct kubeconfig_exec *make_plugin(struct fixture *f, struct arena *arena,
                                                 const char *body) {
    struct kubeconfig_exec *exec = ARENA_NEW(arena, struct kubeconfig_exec);
    char *path = arena_printf(arena, "%s/plugin", f->directory);
    char **args = ARENA_ARRAY(arena, char *, 3), **env = ARENA_ARRAY(arena, char *, 2);

    write_file(path, arena_printf(arena, "#!/bin/sh\n%s\n", body));
    assert_int_equal(chmod(path, 0700), 0);
    args[0] = path;
    args[1] = f->directory;
    env[0] = "FROM_FILE=yes";
    *exec = (struct kubeconfig_exec){
        .command = path, .args = args, .env = env, .api_version = "client.authentication.k8s.io/v1"
    };
    return exec;
}

static void a_plugin_is_asked_once_and_again_after_a_refusal(void **state) {
    struct fixture *f = *state;
    struct arena arena = ARENA_INIT;
    const struct kubeconfig_exec *exec = make_plugin(
        f, &arena,
        "echo x >> $1/runs; n=$(wc -l < $1/runs)\n"
        "case $KUBERNETES_EXEC_INFO in *'\"interactive\": false'*) ;; *) exit 3;; esac\n"
        "[ \"$FROM_FILE\" = yes ] || exit 4\n"
        "echo "
        "'{\"apiVersion\":\"client.authentication.k8s.io/"
        "v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t'$n'\",\"expirationTimestamp\":"
        "\"2999-01-01T00:00:00Z\"}}'");

    peer_say(f->peer, 200, "", POD("a", "1"));
    peer_say(f->peer, 200, "", POD("a", "1"));
    peer_say(f->peer, 401, "", STATUS(401, "Unauthorized", "Unauthorized"));
    peer_say(f->peer, 200, "", POD("a", "1"));
    connect_with(f, (struct kubeconfig){ .exec = exec }, &quick);
    for (int i = 0; i < 3; i++) {
        get(f);
        if (f->answer.err.code != ERROR_NONE)
            fail_msg("%s", f->answer.err.message);
    }
    contains(peer_request(f->peer, 0), "Bearer t1\r\n");
    contains(peer_request(f->peer, 2), "Bearer t1\r\n");
    contains(peer_request(f->peer, 3), "Bearer t2\r\n");
    arena_release(&arena);
}

static void a_plugin_that_fails_says_why_but_not_what_it_printed(void **state) {
    struct fixture *f = *state;
    struct arena arena = ARENA_INIT;

    connect_with(
        f,
        (struct kubeconfig){
            .exec = make_plugin(f, &arena,
                                "echo s3cret; echo first >&2; echo please log in >&2; exit 7") },
        &quick);
    get(f);
    assert_int_equal(f->answer.err.code, ERROR_DENIED);
    contains(f->answer.err.message, "failed with exit code 7: please log in");
    contains_not(f->answer.err.message, "s3cret");
    assert_int_equal(peer_count(f->peer), 0);
    arena_release(&arena);
}

static void a_missing_plugin_is_told_with_its_hint(void **state) {
    struct fixture *f = *state;
    char *args[] = { "no-such-plugin-here", NULL };
    const struct kubeconfig_exec exec = { .command = args[0],
                                          .args = args,
                                          .api_version = "client.authentication.k8s.io/v1",
                                          .install_hint = "install it with x" };

    connect_with(f, (struct kubeconfig){ .exec = &exec }, &quick);
    get(f);
    contains(f->answer.err.message, "no-such-plugin-here, which is not here: install it with x");
}

static void a_plugin_that_still_runs_ends_with_its_client(void **state) {
    struct fixture *f = *state;
    struct arena arena = ARENA_INIT;

    f->is_dead = 1;
    connect_with(f, (struct kubeconfig){ .exec = make_plugin(f, &arena, "exec sleep 1000") },
                 &quick);
    api_get(f->api, &pods, "a", on_done, f);
    for (int i = 0; i < 5; i++)
        event_base_loop(f->loop, EVLOOP_NONBLOCK);
    api_free(f->api); /* waits for nothing, leaves nothing */
    f->api = NULL;
    arena_release(&arena);
}

/* ---- cancelling ---- */

static void nothing_comes_after_cancel(void **state) {
    struct fixture *f = *state;
    struct api_call *calls[3];

    peer_hang(f->peer, "");
    peer_say(f->peer, 200, "", POD("a", "1"));
    connect_plainly(f);
    f->is_dead = 1;
    calls[0] = api_get(f->api, &pods, "a", on_done, f);
    api_cancel(calls[0]); /* before anything was sent */
    calls[1] = api_get(f->api, &pods, "b", on_done, f);
    while (peer_count(f->peer) == 0)
        event_base_loop(f->loop, EVLOOP_ONCE);
    api_cancel(calls[1]); /* while it is under way */
    api_cancel(NULL);
    f->is_dead = 0;
    get(f);
    assert_int_equal(f->n_done, 1);
}

static void on_done_free(void *context, const struct api_answer *answer) {
    struct fixture *f = context;

    on_done(context, answer);
    api_free(f->api);
    f->api = NULL;
    f->is_dead = 1;
}

static void the_client_may_be_freed_from_a_callback(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", POD("a", "1"));
    peer_say(f->peer, 200, "", POD("a", "1"));
    connect_plainly(f);
    api_get(f->api, &pods, "a", on_done_free, f);
    api_get(f->api, &pods, "b", on_done_free, f);
    run_until(f->loop, &f->is_done);
    event_base_loop(f->loop, EVLOOP_NONBLOCK);
    assert_int_equal(f->n_done, 1);
    assert_string_equal(f->name, "a");
}

struct stream {
    struct fixture *f;
    struct api_call *call;
    char text[256];
    int n_pieces, is_open;
    int free_at, stop_at;
    bool is_asked_once;
};

static void on_open(void *context) {
    struct stream *s = context;

    s->is_open = 1;
}

static bool on_bytes(void *context, const char *bytes, size_t n) {
    struct stream *s = context;
    struct fixture *f = s->f;

    strncat(s->text, bytes, n);
    s->n_pieces++;
    if (s->n_pieces == s->free_at) {
        api_free(f->api);
        f->api = NULL;
        f->is_dead = f->is_done = 1;
    }
    return s->n_pieces != s->stop_at;
}

static void on_stream_done(void *context, const struct api_answer *answer) {
    struct stream *s = context;

    on_done(s->f, answer);
}

static void follow(struct fixture *f, struct stream *s) {
    const struct api_sink sink = { on_open, on_bytes, on_stream_done, s, s->is_asked_once };

    s->f = f;
    f->is_done = 0;
    s->call = api_stream(f->api, "/api/v1/x?follow=true", API_IDLE_LIMITED, &sink);
    run_until(f->loop, &f->is_done);
}

static void a_stream_comes_as_it_is_sent_and_ends_cleanly(void **state) {
    struct fixture *f = *state;
    struct stream s = { 0 };

    peer_stream(f->peer, "one\ftwo\fthree", PEER_KEEP);
    connect_plainly(f);
    follow(f, &s);
    assert_string_equal(s.text, "onetwothree");
    assert_true(s.is_open);
    assert_int_equal(f->answer.err.code, ERROR_NONE);
}

static void a_stream_that_is_cut_is_told_as_cut(void **state) {
    struct fixture *f = *state;
    struct stream s = { 0 };

    peer_stream(f->peer, "one\ftwo", PEER_CLOSE);
    connect_plainly(f);
    follow(f, &s);
    assert_string_equal(s.text, "onetwo");
    assert_int_equal(f->answer.err.code, ERROR_UNAVAILABLE);
    assert_int_equal(peer_count(f->peer), 1); /* not asked again by itself */
}

static void a_stream_that_falls_silent_is_ended(void **state) {
    struct fixture *f = *state;
    struct stream s = { 0 };
    struct api_options hasty = quick;

    hasty.idle_ms = 60;
    peer_hang(f->peer, "one");
    connect_with(f, (struct kubeconfig){ 0 }, &hasty);
    follow(f, &s);
    assert_string_equal(s.text, "one");
    assert_int_equal(f->answer.err.code, ERROR_UNAVAILABLE);
    contains(f->answer.err.message, "silent");
}

static void a_stream_ends_when_its_reader_has_enough(void **state) {
    struct fixture *f = *state;
    struct stream s = { .stop_at = 2 };

    peer_hang(f->peer, "one\ftwo\fthree");
    connect_plainly(f);
    follow(f, &s);
    assert_string_equal(s.text, "onetwo");
    assert_int_equal(f->answer.err.code, ERROR_NONE);
}

static void the_client_may_be_freed_while_bytes_come(void **state) {
    struct fixture *f = *state;
    struct stream s = { .free_at = 2 };

    peer_stream(f->peer, "one\ftwo\fthree", PEER_KEEP);
    connect_plainly(f);
    follow(f, &s);
    event_base_loop(f->loop, EVLOOP_NONBLOCK);
    assert_string_equal(s.text, "onetwo");
    assert_int_equal(f->n_done, 0);
}

static void a_refused_stream_has_the_servers_sentence(void **state) {
    struct fixture *f = *state;
    struct stream s = { 0 };

    peer_say(f->peer, 400, "", STATUS(400, "BadRequest", "container is waiting to start"));
    connect_plainly(f);
    follow(f, &s);
    assert_string_equal(s.text, "");
    assert_false(s.is_open);
    assert_int_equal(f->answer.err.code, ERROR_INVALID);
    contains(f->answer.err.message, "cannot read /api/v1/x: container is waiting to start");
}

static void a_stream_that_is_asked_once_is_refused_at_once(void **state) {
    struct fixture *f = *state;
    struct stream s = { .is_asked_once = true };

    peer_say(f->peer, 500, "", STATUS(500, "InternalError", "the node does not answer"));
    peer_stream(f->peer, "one", PEER_KEEP);
    connect_plainly(f);
    follow(f, &s);
    assert_int_equal(peer_count(f->peer), 1);
    assert_int_equal(f->answer.err.code, ERROR_UNAVAILABLE);
    contains(f->answer.err.message, "the node does not answer");
    s.is_asked_once = false;
    follow(f, &s);
    assert_string_equal(s.text, "one");
}

static void a_stream_that_is_refused_for_now_is_asked_again(void **state) {
    struct fixture *f = *state;
    struct stream s = { 0 };

    peer_say(f->peer, 500, "", STATUS(500, "InternalError", "the node does not answer"));
    peer_stream(f->peer, "one", PEER_KEEP);
    connect_plainly(f);
    follow(f, &s);
    assert_int_equal(peer_count(f->peer), 2);
    assert_string_equal(s.text, "one");
}

/* ---- discovery ---- */

struct kinds {
    int is_done;
    struct error err;
    char text[256];
    bool has_mpi;
};

static void on_kinds(void *context, const struct error *err, const struct api_kind *kinds,
                     size_t n) {
    struct kinds *k = context;

    k->err = *err;
    for (size_t i = 0; i < n; i++)
        snprintf(k->text + strlen(k->text), sizeof k->text - strlen(k->text), "%s/%s/%s%s ",
                 kinds[i].version, kinds[i].kind, kinds[i].plural, kinds[i].namespaced ? "" : "!");
    k->has_mpi =
        api_kind_find(kinds, n, "MPIJob", "v2beta1") && !api_kind_find(kinds, n, "MPIJob", "v9");
    k->is_done = 1;
}

static void a_group_tells_its_kinds_the_preferred_version_first(void **state) {
    struct fixture *f = *state;
    struct kinds k = { 0 };

    peer_say(f->peer, 200, "",
             "{\"kind\":\"APIGroup\",\"versions\":[{\"version\":\"v2beta1\"},{\"version\":\"v1\"}],"
             "\"preferredVersion\":{\"version\":\"v1\"}}");
    peer_say(f->peer, 200, "",
             "{\"resources\":[{\"name\":\"tfjobs\",\"kind\":\"TFJob\",\"namespaced\":true},{"
             "\"name\":\"tfjobs/status\",\"kind\":\"TFJob\"}]}");
    peer_say(f->peer, 200, "",
             "{\"resources\":[{\"name\":\"mpijobs\",\"kind\":\"MPIJob\",\"namespaced\":false}]}");
    connect_plainly(f);
    api_discover(f->api, "kubeflow.org", on_kinds, &k);
    run_until(f->loop, &k.is_done);
    assert_string_equal(k.text, "v1/TFJob/tfjobs v2beta1/MPIJob/mpijobs! ");
    assert_true(k.has_mpi);
    contains(peer_request(f->peer, 0), "GET /apis/kubeflow.org HTTP");
    contains(peer_request(f->peer, 2), "GET /apis/kubeflow.org/v2beta1 HTTP");
}

static void a_group_that_a_cluster_lacks_has_no_kinds(void **state) {
    struct fixture *f = *state;
    struct kinds k = { .err.code = ERROR_IO };

    peer_raw(f->peer, "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found", PEER_KEEP);
    connect_plainly(f);
    api_discover(f->api, "kubeflow.org", on_kinds, &k);
    run_until(f->loop, &k.is_done);
    assert_int_equal(k.err.code, ERROR_NONE);
    assert_string_equal(k.text, "");
}

#define CASE(law) cmocka_unit_test_setup_teardown(law, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(an_object_is_got_by_its_path),
        CASE(an_answer_in_many_pieces_is_one_answer),
        CASE(a_server_that_fails_is_asked_again),
        CASE(a_server_that_never_recovers_is_given_up_with_its_own_words),
        CASE(retry_after_is_waited_for),
        CASE(a_cut_answer_is_asked_again),
        CASE(a_server_that_is_down_is_waited_for),
        CASE(a_server_that_stays_down_is_an_error_that_names_it),
        CASE(a_slow_server_runs_into_the_deadline_of_a_try),
        CASE(what_is_no_json_is_no_api_server),
        CASE(a_body_beyond_all_bounds_is_refused),
        CASE(a_missing_right_is_named),
        CASE(an_invalid_object_is_told_with_its_fields),
        CASE(what_exists_already_is_looked_up),
        CASE(a_quota_that_counts_another_object_is_asked_again),
        CASE(a_create_whose_answer_is_lost_is_one_create),
        CASE(an_object_without_a_name_is_not_created),
        CASE(what_is_gone_is_deleted),
        CASE(a_patch_says_its_kind),
        CASE(an_update_of_what_somebody_changed_is_a_conflict_and_not_asked_again),
        CASE(a_list_is_read_page_by_page),
        CASE(a_list_whose_place_expires_begins_again_whole),
        CASE(a_token_is_sent_and_never_told),
        CASE(a_password_goes_as_basic_authorization),
        CASE(a_token_that_is_refused_is_read_again_once),
        CASE(a_plugin_is_asked_once_and_again_after_a_refusal),
        CASE(a_plugin_that_fails_says_why_but_not_what_it_printed),
        CASE(a_missing_plugin_is_told_with_its_hint),
        CASE(a_plugin_that_still_runs_ends_with_its_client),
        CASE(nothing_comes_after_cancel),
        CASE(the_client_may_be_freed_from_a_callback),
        CASE(a_stream_comes_as_it_is_sent_and_ends_cleanly),
        CASE(a_stream_that_is_cut_is_told_as_cut),
        CASE(a_stream_that_falls_silent_is_ended),
        CASE(a_stream_ends_when_its_reader_has_enough),
        CASE(the_client_may_be_freed_while_bytes_come),
        CASE(a_refused_stream_has_the_servers_sentence),
        CASE(a_stream_that_is_asked_once_is_refused_at_once),
        CASE(a_stream_that_is_refused_for_now_is_asked_again),
        CASE(a_group_tells_its_kinds_the_preferred_version_first),
        CASE(a_group_that_a_cluster_lacks_has_no_kinds),
    };

    /* Loopback is reached directly, whatever the machine is set to. */
    unsetenv("http_proxy");
    unsetenv("https_proxy");
    unsetenv("HTTPS_PROXY");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
