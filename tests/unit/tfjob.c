/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "scratch.h"
#include "tfjob.h"

#define FILE_OF_GANG                                                                               \
    "version: 1\nkind: experiment\nframework: tensorflow\nbuild: {image: 'train:1'}\n"             \
    "environment: {replicas: {n_workers: 1}}\nrun: {cmd: python3 train.py}\n"

/* ---- the gang ---- */

static void note(struct fixture *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void note(struct fixture *f, const char *fmt, ...) {
    const size_t len = strlen(f->told);
    va_list args;

    va_start(args, fmt);
    vsnprintf(f->told + len, sizeof f->told - len, fmt, args);
    va_end(args);
    if (f->until && strstr(f->told, f->until))
        f->is_there = 1;
}

static void on_submitted(void *context) {
    note(context, "submitted; ");
}

static void on_started(void *context, uint32_t rank, int64_t id) {
    assert_int_equal(id, 0);
    note(context, "+%u ", rank);
}

static void on_output(void *context, uint32_t rank, const char *bytes, size_t n) {
    struct fixture *f = context;

    f->delivered[rank] += n;
    note(f, "%u:", rank);
    for (size_t i = 0; i < n; i++)
        note(f, "%c", bytes[i] == '\n' ? '|' : bytes[i]);
    note(f, " ");
}

static void on_ended(void *context, uint32_t rank, const struct task_end *end) {
    static const char *const kinds[] = { [TASK_EXITED] = "exit",
                                         [TASK_SIGNALLED] = "signal",
                                         [TASK_NOT_STARTED] = "not started:",
                                         [TASK_LOST] = "lost:" };

    note(context, "ended %u %s ", rank, kinds[end->kind]);
    if (end->kind == TASK_EXITED || end->kind == TASK_SIGNALLED)
        note(context, "%d", end->detail);
    else
        note(context, "%s", end->message);
    if (end->limit.kind == TASK_LIMIT_MEMORY)
        note(context, " of %lld bytes", (long long)end->limit.limit);
    note(context, "; ");
}

static void on_gone(void *context) {
    note(context, "gone;");
}

static void on_notice(void *context, const char *sentence) {
    note(context, "notice: %s; ", sentence);
}

static void on_waits(void *context, const char *sentence) {
    note(context, "waits: %s; ", sentence ? sentence : "no more");
}

static void on_left(void *context, enum left_manner manner, const char *sentence) {
    note(context, "left %s: %s; ", manner == LEFT_LOST ? "lost" : "running", sentence);
}

static uint64_t delivered(void *context, uint32_t rank) {
    const struct fixture *f = context;

    return f->delivered[rank];
}

/* ---- the fixture ---- */

static void write_kubeconfig(struct fixture *f) {
    FILE *file;

    snprintf(f->kubeconfig, sizeof f->kubeconfig, "%s/config", f->home);
    file = fopen(f->kubeconfig, "we");
    assert_non_null(file);
    fprintf(file,
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
            "users: [{name: u, user: {}}]\n"
            "contexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]\n",
            peer_port(f->peer));
    assert_int_equal(fclose(file), 0);
}

int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);

    scratch_make(f->home);
    f->loop = event_base_new();
    f->peer = peer_new(f->loop);
    f->plan = compile_text(FILE_OF_GANG);
    f->settings = settings_new();
    assert_non_null(f->plan);
    write_kubeconfig(f);
    f->options = (struct pods_options){ .form = &pods_kubeflow,
                                        .plan = f->plan,
                                        .settings = f->settings,
                                        .kubeconfig = f->kubeconfig,
                                        .timeout_ms = -1 };
    f->facts = (struct attempt_facts){
        .run_id = "7", .uuid = UUID, .owner = "ada", .logs = f->home, .grace_ms = 3000
    };
    *state = f;
    return 0;
}

void leave(struct fixture *f) {
    if (f->backend)
        f->backend->ops->free(f->backend);
    f->backend = NULL;
}

int tear_down(void **state) {
    struct fixture *f = *state;

    if (f->until && !f->is_there)
        print_message("# \"%s\" never came after: %s\n", f->until, f->told);
    leave(f);
    peer_free(f->peer);
    plan_free(f->plan);
    settings_free(f->settings);
    event_base_free(f->loop);
    scratch_remove(f->home);
    free(f);
    return 0;
}

void launch(struct fixture *f) {
    const struct gang gang = { .n_tasks = f->plan->n_tasks,
                               .started = on_started,
                               .output = on_output,
                               .ended = on_ended,
                               .gone = on_gone,
                               .context = f,
                               .notice = on_notice,
                               .submitted = on_submitted,
                               .waits = on_waits,
                               .delivered = delivered,
                               .left = on_left };
    struct error err;

    if (pods_make(&f->options, f->loop, &f->facts, &f->backend, &err) ||
        f->backend->ops->launch(f->backend, &gang, &err))
        fail_msg("%s", err.message);
    assert_string_equal(f->told, "");
}

void stop(struct fixture *f, enum stop_manner manner) {
    f->backend->ops->stop(f->backend, manner, 3000);
}

void wait_for(struct fixture *f, const char *text) {
    f->until = text;
    f->is_there = strstr(f->told, text) != NULL;
    run_until(f->loop, &f->is_there);
}

void breathe(struct fixture *f) {
    const struct timeval moment = { 0, 60 * 1000 };

    event_base_loopexit(f->loop, &moment);
    event_base_dispatch(f->loop);
}

void contains(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

size_t count_asked(const struct fixture *f, const char *part) {
    size_t n = 0;

    for (size_t i = 0; i < peer_count(f->peer); i++)
        n += strncmp(peer_request(f->peer, i), part, strlen(part)) == 0;
    return n;
}

const char *asked(const struct fixture *f, const char *part) {
    for (size_t i = 0; i < peer_count(f->peer); i++)
        if (strstr(peer_request(f->peer, i), part))
            return peer_request(f->peer, i);
    fail_msg("nobody asked for %s", part);
    return "";
}

/* ---- the cluster ---- */

void say(struct fixture *f, const char *part, int status, const char *body) {
    peer_for(f->peer, part);
    peer_say(f->peer, status, "", body);
}

void hang(struct fixture *f, const char *part, const char *pieces) {
    peer_for(f->peer, part);
    peer_hang(f->peer, pieces);
}

void logs(struct fixture *f, const char *part, const char *pieces) {
    hang(f, part, pieces);
    peer_stream(f->peer, "", PEER_KEEP);
}

void has_kinds(struct fixture *f, const char *kinds) {
    say(f, GROUP, 200, "{\"preferredVersion\":{\"version\":\"v1\"}}");
    say(f, KINDS, 200, kinds);
}

void has_operator(struct fixture *f) {
    has_kinds(f, "{\"resources\":[{\"name\":\"tfjobs\",\"kind\":\"TFJob\",\"namespaced\":true}]}");
}

void shows(struct fixture *f, const char *jobs, const char *pods) {
    say(f, JOBS, 200, jobs);
    hang(f, JOBS, "");
    say(f, PODS, 200, pods);
    hang(f, PODS, "");
}

void takes_job(struct fixture *f) {
    has_operator(f);
    say(f, CREATE, 201, JOB("2", ""));
}

void deletes(struct fixture *f, const char *pods) {
    say(f, DELETE, 200, JOB("30", ""));
    for (int i = 0; i < 500 && count_asked(f, DELETE) == 0; i++)
        breathe(f);
    assert_int_equal(count_asked(f, DELETE), 1);
    peer_more(f->peer, PODS, pods);
    peer_more(f->peer, JOBS, EVENT("DELETED", JOB("31", "")));
    wait_for(f, "gone;");
}
