/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/local/ports.h"
#include "supervise/rendezvous.h"

/* A server with small limits, spoken to through raw sockets as Horovod's client does. */
struct fixture {
    struct event_base *base;
    struct ports ports;
    struct rendezvous *rendezvous;
    char answer[64 * 1024];
};

static const struct meeting_limits limits = {
    .keys = 4, .key_bytes = 64, .body_bytes = 1000, .all_bytes = 2500
};

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    struct error err;

    f->base = event_base_new();
    assert_int_equal(ports_lease(&f->ports, 1, &err), 0);
    assert_int_equal(rendezvous_new(f->base, f->ports.list.items[0], &limits, &f->rendezvous, &err),
                     0);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;

    rendezvous_free(f->rendezvous);
    ports_release(&f->ports);
    event_base_free(f->base);
    free(f);
    return 0;
}

static int connect_to(const struct fixture *f) {
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(f->ports.list.items[0]),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* Sends the request and turns the loop until the server closes. Returns the status. */
static int ask(struct fixture *f, const char *method, const char *path, const char *body,
               size_t n) {
    const int fd = connect_to(f);
    size_t have = 0, sent = 0;
    char *request;
    int head, status = 0;

    head = asprintf(&request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %zu\r\n\r\n",
                    method, path, n);
    request = realloc(request, (size_t)head + n);
    memcpy(request + head, body, n);
    n += (size_t)head;
    for (int turn = 0; turn < 5000; turn++) {
        ssize_t got;

        if (sent < n && (got = send(fd, request + sent, n - sent, MSG_NOSIGNAL)) > 0)
            sent += (size_t)got;
        event_base_loop(f->base, EVLOOP_NONBLOCK);
        got = recv(fd, f->answer + have, sizeof f->answer - 1 - have, 0);
        if (got > 0)
            have += (size_t)got;
        if (got == 0 || (got < 0 && turn > 200 && have))
            break;
        if (got < 0)
            usleep(200);
    }
    f->answer[have] = '\0';
    free(request);
    close(fd);
    event_base_loop(f->base, EVLOOP_NONBLOCK);
    sscanf(f->answer, "HTTP/1.1 %d", &status);
    return status;
}

static const char *body_of(const struct fixture *f) {
    const char *end = strstr(f->answer, "\r\n\r\n");

    return end ? end + 4 : "(no body)";
}

static void what_was_put_is_got_byte_for_byte(void **state) {
    static const char bytes[] = "a\0b\r\n\xff";
    struct fixture *f = *state;

    assert_int_equal(ask(f, "PUT", "/global/0", bytes, sizeof bytes), 200);
    assert_non_null(strstr(f->answer, "\r\nContent-Length: 0\r\n"));
    assert_int_equal(ask(f, "GET", "/global/0", "", 0), 200);
    assert_non_null(strstr(f->answer, "\r\nContent-Length: 7\r\n"));
    assert_memory_equal(body_of(f), bytes, sizeof bytes);
}

static void what_was_not_put_is_not_found(void **state) {
    struct fixture *f = *state;

    assert_int_equal(ask(f, "GET", "/global/1", "", 0), 404);
    assert_non_null(strstr(f->answer, "\r\nContent-Length: 0\r\n"));
    assert_int_equal(ask(f, "PUT", "/global/1", "x", 1), 200);
    assert_int_equal(ask(f, "GET", "/local_a/1", "", 0), 404);
}

static void a_second_put_replaces_the_first(void **state) {
    struct fixture *f = *state;

    assert_int_equal(ask(f, "PUT", "/s/k", "first", 5), 200);
    assert_int_equal(ask(f, "PUT", "/s/k", "2", 1), 200);
    assert_int_equal(ask(f, "GET", "/s/k", "", 0), 200);
    assert_string_equal(body_of(f), "2");
}

static void a_deleted_key_is_not_found_and_can_come_back(void **state) {
    struct fixture *f = *state;

    assert_int_equal(ask(f, "DELETE", "/s/k", "", 0), 200);
    assert_int_equal(ask(f, "PUT", "/s/k", "v", 1), 200);
    assert_int_equal(ask(f, "DELETE", "/s/k", "", 0), 200);
    assert_int_equal(ask(f, "GET", "/s/k", "", 0), 404);
    assert_int_equal(ask(f, "PUT", "/s/k", "w", 1), 200);
    assert_int_equal(ask(f, "GET", "/s/k", "", 0), 200);
}

static void a_path_that_is_not_scope_and_key_is_refused(void **state) {
    static const char *const paths[] = { "/", "/a", "/a/", "//a", "/a/b/c", "/a//b" };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_int_equal(ask(f, "GET", paths[i], "", 0), 400);
}

static void what_is_too_large_or_too_much_is_refused(void **state) {
    struct fixture *f = *state;
    char long_path[80] = "/scope/", body[1001] = "";

    memset(long_path + 7, 'k', 70);
    assert_int_equal(ask(f, "GET", long_path, "", 0), 414);
    assert_int_equal(ask(f, "PUT", "/s/large", body, sizeof body), 413);
    assert_int_equal(ask(f, "PUT", "/s/1", body, 1000), 200);
    assert_int_equal(ask(f, "PUT", "/s/2", body, 1000), 200);
    assert_int_equal(ask(f, "PUT", "/s/3", body, 1000), 507); /* of all bytes */
    assert_int_equal(ask(f, "DELETE", "/s/2", "", 0), 200);
    assert_int_equal(ask(f, "PUT", "/s/3", body, 1000), 200);
    assert_int_equal(ask(f, "PUT", "/s/2", body, 1000), 507);
    assert_int_equal(ask(f, "PUT", "/s/1", body, 10), 200);
    assert_int_equal(ask(f, "PUT", "/s/2", body, 1000), 200);
    assert_int_equal(ask(f, "PUT", "/s/4", body, 1), 200);
    assert_int_equal(ask(f, "PUT", "/s/5", body, 1), 507); /* of all keys */
    assert_int_equal(ask(f, "GET", "/s/4", "", 0), 200);
}

static void garbage_does_not_end_the_server(void **state) {
    struct fixture *f = *state;
    int fd = connect_to(f);

    assert_true(send(fd, "\0\xff garbage\r\n\r\n", 15, MSG_NOSIGNAL) > 0);
    for (int i = 0; i < 50; i++)
        event_base_loop(f->base, EVLOOP_NONBLOCK);
    close(fd);
    fd = connect_to(f); /* one that says nothing and leaves */
    event_base_loop(f->base, EVLOOP_NONBLOCK);
    close(fd);
    assert_int_equal(ask(f, "PUT", "/s/k", "v", 1), 200);
}

static void the_limits_of_a_gang_have_room_for_what_horovod_leaves(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 1024; n *= 4) {
        const struct meeting_limits room = meeting_limits_for(n);

        assert_true(room.keys >= (size_t)n * 12);
        assert_true(room.body_bytes >= (size_t)(n - 1) * 136);
        assert_true(room.all_bytes >= (size_t)n * n * 136 * 6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_put_is_got_byte_for_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_not_put_is_not_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_second_put_replaces_the_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_deleted_key_is_not_found_and_can_come_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_path_that_is_not_scope_and_key_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_too_large_or_too_much_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(garbage_does_not_end_the_server, set_up, tear_down),
        cmocka_unit_test(the_limits_of_a_gang_have_room_for_what_horovod_leaves),
    };

    return cmocka_run_group_tests_name("rendezvous", tests, NULL, NULL);
}
