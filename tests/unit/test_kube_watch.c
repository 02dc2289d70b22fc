/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that stay current, whatever the server does between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/watch.h"
#include "backend/kubernetes/watch_decode.h"
#include "peer.h"

#define OBJECT(name, uid, version)                                                                 \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":\"" uid                      \
    "\",\"resourceVersion\":\"" version "\"}}"
#define LIST(version, items)                                                                       \
    "{\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version)   EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version "\"}}")
#define GONE                                                                                       \
    EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":"         \
                   "\"old\"}")
#define STATUS(code) "{\"kind\":\"Status\",\"message\":\"no\",\"reason\":\"r\",\"code\":" #code "}"

struct fixture {
    struct event_base *loop;
    struct peer *peer;
    struct api *api;
    struct watch *watch;
    char told[4096];
    const char *until; /* what is waited for in `told` */
    const char *free_at;
    int is_there;
};

static void meet(struct fixture *f) {
    struct kubeconfig config = { .namespace = "n" };
    const struct api_options quick = {
        .deadline_ms = 5000, .idle_ms = 5000, .tries = 2, .first_wait_ms = 2, .longest_wait_ms = 10
    };
    struct error err;

    f->peer = peer_new(f->loop);
    config.server = arena_printf(&config.arena, "http://127.0.0.1:%u", peer_port(f->peer));
    if (api_new(f->loop, &config, &quick, &f->api, &err))
        fail_msg("%s", err.message);
}

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);

    f->loop = event_base_new();
    meet(f);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;

    watch_free(f->watch);
    api_free(f->api);
    peer_free(f->peer);
    event_base_free(f->loop);
    free(f);
    return 0;
}

static void note(struct fixture *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void note(struct fixture *f, const char *fmt, ...) {
    const size_t len = strlen(f->told);
    va_list args;

    va_start(args, fmt);
    vsnprintf(f->told + len, sizeof f->told - len, fmt, args);
    va_end(args);
    if (f->until && strstr(f->told, f->until))
        f->is_there = 1;
    if (f->free_at && strstr(f->told, f->free_at)) {
        watch_free(f->watch);
        f->watch = NULL;
        f->free_at = NULL;
        f->is_there = 1;
    }
}

static void wait_for(struct fixture *f, const char *text) {
    f->until = text;
    f->is_there = strstr(f->told, text) != NULL;
    run_until(f->loop, &f->is_there);
}

static void contains(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

/* ---- watches ---- */

static void on_event(void *context, const struct watch_event *event) {
    static const char kinds[] = {
        [WATCH_ADDED] = '+', [WATCH_MODIFIED] = '~', [WATCH_DELETED] = '-'
    };

    note(context, "%c%s/%s%s ", kinds[event->kind], event->name, event->uid,
         event->object ? "" : "?");
}

static void on_synced(void *context) {
    note(context, "| ");
}

static void on_trouble(void *context, const struct error *err) {
    (void)err;
    note(context, "trouble ");
}

static void on_failed(void *context, const struct error *err) {
    note(context, "failed: %s ", err->message);
}

static void start(struct fixture *f) {
    const struct api_resource pods = { "", "v1", "pods", "n" };
    const struct api_selector selector = { "run=1", NULL };
    const struct watch_observer observer = { on_event, on_synced, on_trouble, on_failed, f };

    f->watch = watch_new(f->api, &pods, &selector, &observer);
    assert_string_equal(f->told, "");
}

static void a_watch_tells_the_list_and_then_each_change(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", LIST("5", OBJECT("a", "1", "4")));
    peer_hang(f->peer, EVENT("ADDED", OBJECT("b", "2", "6"))
                           EVENT("MODIFIED", OBJECT("a", "1", "7")) "\f" BOOKMARK("8")
                               EVENT("DELETED", OBJECT("a", "1", "9")));
    start(f);
    wait_for(f, "-a");
    assert_string_equal(f->told, "+a/1 | +b/2 ~a/1 -a/1 ");
    contains(peer_request(f->peer, 1), "watch=true");
    contains(peer_request(f->peer, 1), "resourceVersion=5&");
    contains(peer_request(f->peer, 1), "allowWatchBookmarks=true");
    contains(peer_request(f->peer, 1), "labelSelector=run%3D1");
}

static void a_stream_that_closes_goes_on_where_it_was(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", LIST("5", OBJECT("a", "1", "4")));
    peer_stream(f->peer, EVENT("MODIFIED", OBJECT("a", "1", "7")), PEER_KEEP);
    peer_stream(f->peer, BOOKMARK("20"), PEER_KEEP);
    peer_hang(f->peer,
              EVENT("MODIFIED", OBJECT("a", "1", "7")) EVENT("MODIFIED", OBJECT("a", "1", "21")));
    start(f);
    wait_for(f, "~a/1 ~a/1 ");
    assert_string_equal(f->told, "+a/1 | ~a/1 ~a/1 ");
    contains(peer_request(f->peer, 2), "resourceVersion=7&");
    contains(peer_request(f->peer, 3), "resourceVersion=20&");
}

static void a_line_that_is_cut_is_read_again(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", LIST("5", ""));
    peer_stream(f->peer, EVENT("ADDED", OBJECT("a", "1", "6")) "{\"type\":\"ADDED\",\"obj",
                PEER_CLOSE);
    peer_stream(f->peer, "{\"type\":\"ADDED\"", PEER_RESET);
    peer_hang(f->peer, EVENT("ADDED", OBJECT("b", "2", "7")));
    start(f);
    wait_for(f, "+b/2");
    assert_string_equal(f->told, "| +a/1 +b/2 ");
    contains(peer_request(f->peer, 3), "resourceVersion=6&");
}

static void after_410_only_the_difference_is_told(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "",
             LIST("5", OBJECT("a", "1", "1") "," OBJECT("b", "2", "2") "," OBJECT(
                           "c", "3", "3") "," OBJECT("d", "4", "4")));
    peer_stream(f->peer, GONE, PEER_KEEP);
    peer_say(f->peer, 200, "",
             LIST("90", OBJECT("a", "1", "1") "," OBJECT("b", "2", "80") "," OBJECT(
                            "d", "9", "81") "," OBJECT("e", "5", "82")));
    peer_hang(f->peer, "");
    start(f);
    wait_for(f, "| ~b");
    wait_for(f, "-c/3? | ");
    assert_string_equal(f->told, "+a/1 +b/2 +c/3 +d/4 | ~b/2 -d/4? +d/9 +e/5 -c/3? | ");
}

static void a_410_as_the_answer_lists_again(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", LIST("5", ""));
    peer_say(f->peer, 410, "", STATUS(410));
    peer_say(f->peer, 200, "", LIST("6", OBJECT("a", "1", "6")));
    peer_hang(f->peer, "");
    start(f);
    wait_for(f, "+a/1 | ");
    assert_string_equal(f->told, "| +a/1 | ");
}

static void nonsense_in_the_stream_lists_again(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", LIST("5", ""));
    peer_hang(f->peer, "<html>\n");
    peer_say(f->peer, 200, "", LIST("6", OBJECT("a", "1", "6")));
    peer_hang(f->peer, "");
    start(f);
    wait_for(f, "+a/1 | ");
    assert_string_equal(f->told, "| +a/1 | ");
}

static void an_outage_is_told_once_and_then_over(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 200, "", LIST("5", OBJECT("a", "1", "4")));
    for (int i = 0; i < 6; i++)
        peer_say(f->peer, 503, "", STATUS(503));
    peer_hang(f->peer, EVENT("MODIFIED", OBJECT("a", "1", "7")));
    start(f);
    wait_for(f, "~a/1");
    assert_string_equal(f->told, "+a/1 | trouble ~a/1 ");
}

static void a_missing_right_ends_the_watch(void **state) {
    struct fixture *f = *state;

    peer_say(f->peer, 403, "", STATUS(403));
    start(f);
    wait_for(f, "failed");
    contains(f->told, "cannot list pods in namespace n: no");
    event_base_loop(f->loop, EVLOOP_NONBLOCK);
    assert_int_equal(peer_count(f->peer), 1);
}

static void a_watch_may_be_freed_from_its_callbacks(void **state) {
    static const char *const moments[] = { "+a", "|", "~a", "-b/2?", "-b/2? | ", "failed" };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
        char told[sizeof f->told];

        api_free(f->api);
        peer_free(f->peer);
        meet(f);
        peer_say(f->peer, 200, "", LIST("5", OBJECT("a", "1", "4") "," OBJECT("b", "2", "5")));
        peer_stream(f->peer, GONE, PEER_KEEP);
        peer_say(f->peer, 200, "", LIST("9", OBJECT("a", "1", "8")));
        peer_say(f->peer, 404, "", STATUS(404));
        f->told[0] = '\0';
        f->is_there = 0;
        f->free_at = moments[i];
        start(f);
        run_until(f->loop, &f->is_there);
        assert_null(f->watch);
        strcpy(told, f->told);
        for (int k = 0; k < 5; k++)
            event_base_loop(f->loop, EVLOOP_NONBLOCK);
        assert_string_equal(f->told, told);
    }
}

/* ---- the decoder ---- */

static bool count_line(void *context, const struct watch_line *line) {
    char *told = context;

    sprintf(told + strlen(told), "%d%s ", (int)line->kind, line->name);
    return strcmp(line->name, "stop") != 0;
}

static void events_are_the_same_however_the_bytes_are_cut(void **state) {
    static const char text[] = EVENT("ADDED", OBJECT("a", "1", "4")) "\r\n" EVENT("NEWS", "{}")
        BOOKMARK("7") GONE EVENT("DELETED", OBJECT("a", "1", "9"));
    const size_t n = sizeof text - 1;

    (void)state;
    for (size_t cut = 0; cut <= n; cut++) {
        struct watch_decoder decoder = WATCH_DECODER_INIT;
        char told[128] = "";
        struct error err;

        assert_int_equal(watch_decode(&decoder, text, cut, count_line, told, &err), 0);
        assert_int_equal(watch_decode(&decoder, text + cut, n - cut, count_line, told, &err), 0);
        assert_string_equal(told, "0a 3 4 2a ");
        watch_decoder_release(&decoder);
    }
}

static void what_is_no_event_is_an_error_with_what_came_before(void **state) {
    static const char *const wrong[] = {
        "x\n",
        "[]\n",
        "{}\n",
        "{\"type\":\"ADDED\"}\n",
        "{\"type\":\"ADDED\",\"object\":{}}\n",
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}\n",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\n"
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct watch_decoder decoder = WATCH_DECODER_INIT;
        char told[128] = "";
        struct error err;

        assert_int_equal(watch_decode(&decoder, EVENT("ADDED", OBJECT("a", "1", "4")),
                                      strlen(EVENT("ADDED", OBJECT("a", "1", "4"))), count_line,
                                      told, &err),
                         0);
        assert_int_equal(watch_decode(&decoder, wrong[i], strlen(wrong[i]), count_line, told, &err),
                         -1);
        assert_string_equal(told, "0a ");
        watch_decoder_release(&decoder);
    }
}

static void a_line_without_end_is_bounded(void **state) {
    struct watch_decoder decoder = WATCH_DECODER_INIT;
    static char blanks[1 << 20];
    struct error err;
    int status = 0, pieces = 0;

    (void)state;
    memset(blanks, ' ', sizeof blanks);
    for (; pieces < 100 && status == 0; pieces++)
        status = watch_decode(&decoder, blanks, sizeof blanks, count_line, NULL, &err);
    assert_int_equal(status, -1);
    assert_int_equal(err.code, ERROR_EXHAUSTED);
    assert_int_equal(pieces, (WATCH_LINE_MAX >> 20) + 1);
    watch_decoder_release(&decoder);
}

#define CASE(law) cmocka_unit_test_setup_teardown(law, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(a_watch_tells_the_list_and_then_each_change),
        CASE(a_stream_that_closes_goes_on_where_it_was),
        CASE(a_line_that_is_cut_is_read_again),
        CASE(after_410_only_the_difference_is_told),
        CASE(a_410_as_the_answer_lists_again),
        CASE(nonsense_in_the_stream_lists_again),
        CASE(an_outage_is_told_once_and_then_over),
        CASE(a_missing_right_ends_the_watch),
        CASE(a_watch_may_be_freed_from_its_callbacks),
        cmocka_unit_test(events_are_the_same_however_the_bytes_are_cut),
        cmocka_unit_test(what_is_no_event_is_an_error_with_what_came_before),
        cmocka_unit_test(a_line_without_end_is_bounded),
    };

    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
