/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/listeners.h"
#include "backend/local/ports.h"

enum { PORT_COUNT = 65536 };

/* A child that leases n ports, tells them, and holds them until it is told to end. */
struct holder {
    pid_t pid;
    int from_it, to_it;
    uint16_t ports[512];
};

static void hold_in_child(size_t n, int out, int in) {
    struct ports ports = { 0 };
    struct error err;
    char byte;

    if (ports_lease(&ports, n, &err))
        _exit(1);
    if (write(out, ports.list.items, n * sizeof(uint16_t)) < 0 || read(in, &byte, 1) < 0)
        _exit(1);
    _exit(0); /* without releasing: the kernel has to */
}

static struct holder start_holder(size_t n) {
    struct holder h;
    int out[2], in[2];

    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(in), 0);
    h.pid = fork();
    if (h.pid == 0) {
        alarm(30);
        hold_in_child(n, out[1], in[0]);
    }
    close(out[1]);
    close(in[0]);
    h.from_it = out[0];
    h.to_it = in[1];
    return h;
}

static void read_ports(struct holder *h, size_t n) {
    size_t have = 0;

    while (have < n * sizeof(uint16_t)) {
        ssize_t got = read(h->from_it, (char *)h->ports + have, n * sizeof(uint16_t) - have);

        assert_true(got > 0);
        have += (size_t)got;
    }
}

static void end_holder(struct holder *h) {
    /* A byte, not a close: the holders that came later have copies of this end. */
    if (write(h->to_it, "", 1) < 0)
        assert_int_equal(kill(h->pid, 0), 0);
    close(h->to_it);
    close(h->from_it);
    assert_int_equal(waitpid(h->pid, NULL, 0), h->pid);
}

static void processes_never_lease_the_same_port(void **unused) {
    enum { HOLDERS = 6, EACH = 200 };
    static bool taken[PORT_COUNT];
    struct holder holders[HOLDERS];

    (void)unused;
    for (int i = 0; i < HOLDERS; i++) /* all at once */
        holders[i] = start_holder(EACH);
    for (int i = 0; i < HOLDERS; i++) {
        read_ports(&holders[i], EACH);
        for (int j = 0; j < EACH; j++) {
            assert_false(taken[holders[i].ports[j]]);
            taken[holders[i].ports[j]] = true;
        }
    }
    for (int i = 0; i < HOLDERS; i++)
        end_holder(&holders[i]);
}

/* Whether the lease of the block that a port is in can be had: by the name that ports.h gives it.
 */
static bool block_is_free(uint16_t port) {
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "myelin-ports-%d",
                     port / PORTS_BLOCK * PORTS_BLOCK);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_free = bind(fd, (struct sockaddr *)&name,
                        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0;

    close(fd);
    return is_free;
}

static void a_dead_process_gives_its_ports_back(void **unused) {
    struct holder holder = start_holder(1);

    (void)unused;
    read_ports(&holder, 1);
    assert_false(block_is_free(holder.ports[0]));
    kill(holder.pid, SIGKILL);
    assert_int_equal(waitpid(holder.pid, NULL, 0), holder.pid);
    close(holder.to_it);
    close(holder.from_it);
    assert_true(block_is_free(holder.ports[0]));
}

static int listen_on(uint16_t port) {
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0)
        return fd;
    close(fd);
    return -1;
}

static void a_port_that_a_stranger_listens_on_is_not_leased(void **unused) {
    struct ports ports = { 0 };
    struct error err;
    uint16_t stolen;
    int stranger;

    (void)unused;
    assert_int_equal(ports_lease(&ports, 1, &err), 0);
    stolen = ports.list.items[0];
    ports_release(&ports);
    stranger = listen_on(stolen);
    assert_true(stranger >= 0);
    /* Everything below the ephemeral range, so the stolen one is surely tried. */
    assert_int_equal(ports_lease(&ports, 20000, &err), 0);
    for (size_t i = 0; i < ports.list.len; i++)
        assert_int_not_equal(ports.list.items[i], stolen);
    ports_release(&ports);
    close(stranger);
}

static void leased_ports_are_distinct_and_can_be_listened_on(void **unused) {
    static bool taken[PORT_COUNT];
    struct ports ports = { 0 };
    struct error err;

    (void)unused;
    assert_int_equal(ports_lease(&ports, 100, &err), 0);
    assert_int_equal(ports_lease(&ports, 3, &err), 0);
    assert_int_equal(ports.list.len, 103);
    for (size_t i = 0; i < ports.list.len; i++) {
        int fd = listen_on(ports.list.items[i]);

        assert_false(taken[ports.list.items[i]]);
        taken[ports.list.items[i]] = true;
        assert_true(ports.list.items[i] >= PORTS_LOWEST);
        assert_true(fd >= 0);
        close(fd);
    }
    ports_release(&ports);
}

static void leased_ports_are_outside_the_ephemeral_range(void **unused) {
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    struct ports ports = { 0 };
    struct error err;
    int low, high;

    (void)unused;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d %d", &low, &high), 2);
    fclose(file);
    if (low < PORTS_LOWEST + 2000 && high > PORT_COUNT - 2000)
        skip(); /* this machine leaves nothing outside */
    assert_int_equal(ports_lease(&ports, 500, &err), 0);
    for (size_t i = 0; i < ports.list.len; i++)
        assert_true(ports.list.items[i] < low || ports.list.items[i] > high);
    ports_release(&ports);
}

static void too_many_ports_are_an_error_that_leaves_none_leased(void **unused) {
    struct ports ports = { 0 };
    struct error err;

    (void)unused;
    assert_int_equal(ports_lease(&ports, 2, &err), 0);
    assert_int_equal(ports_lease(&ports, 60000, &err), -1);
    assert_int_equal(err.code, ERROR_EXHAUSTED);
    assert_non_null(strstr(err.message, "60000 TCP ports are needed"));
    assert_int_equal(ports.list.len, 2);
    assert_int_equal(ports_lease(&ports, 2, &err), 0);
    ports_release(&ports);
}

static void a_listener_is_counted_while_it_listens(void **unused) {
    struct ports ports = { 0 };
    struct error err;
    int fd;

    (void)unused;
    assert_int_equal(ports_lease(&ports, 3, &err), 0);
    assert_int_equal(listeners_count(ports.list.items, 3), 0);
    fd = listen_on(ports.list.items[1]);
    assert_true(fd >= 0);
    assert_int_equal(listeners_count(ports.list.items, 3), 1);
    close(fd);
    assert_int_equal(listeners_count(ports.list.items, 3), 0);
    ports_release(&ports);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_never_lease_the_same_port),
        cmocka_unit_test(a_dead_process_gives_its_ports_back),
        cmocka_unit_test(a_port_that_a_stranger_listens_on_is_not_leased),
        cmocka_unit_test(leased_ports_are_distinct_and_can_be_listened_on),
        cmocka_unit_test(leased_ports_are_outside_the_ephemeral_range),
        cmocka_unit_test(a_listener_is_counted_while_it_listens),
        cmocka_unit_test(too_many_ports_are_an_error_that_leaves_none_leased),
    };

    return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
