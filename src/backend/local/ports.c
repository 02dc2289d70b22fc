/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PORT_LAST = 65535 };

/* Blocks first .. last, both included; a block number times PORTS_BLOCK is its first port. */
struct span {
    uint32_t first, last;
    bool empty;
};

static struct span span_of_ports(uint32_t low, uint32_t high) {
    struct span span = { .empty = true };

    if (low < PORTS_LOWEST)
        low = PORTS_LOWEST;
    if (high + 1 < low + PORTS_BLOCK)
        return span;
    span.first = (low + PORTS_BLOCK - 1) / PORTS_BLOCK;
    span.last = (high + 1) / PORTS_BLOCK;
    span.empty = span.last <= span.first;
    span.last -= 1;
    return span;
}

static void read_ephemeral(uint32_t *low, uint32_t *high) {
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    unsigned a, b;

    *low = 32768, *high = 60999; /* the kernel's defaults */
    if (!file)
        return;
    if (fscanf(file, "%u %u", &a, &b) == 2 && a <= b && b <= PORT_LAST)
        *low = a, *high = b;
    fclose(file);
}

/* Returns the socket that holds the block, or -1 with errno: EADDRINUSE, another has it. */
static int hold_block(uint32_t block) {
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), n, why;

    if (fd < 0)
        return -1;
    n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "myelin-ports-%u",
                 block * PORTS_BLOCK);
    if (bind(fd, (const struct sockaddr *)&name,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0)
        return fd;
    why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* Without SO_REUSEADDR: a listener, a connection and one that lingers all count as use. Returns -1
 * with errno where it cannot be looked up. */
static int look_at_port(uint16_t port, bool *is_free) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    *is_free = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return 0;
}

/* Adds the free ports of a block, up to n. */
static int take_block(struct ports *ports, uint32_t block, size_t n) {
    for (uint32_t i = 0; i < PORTS_BLOCK && ports->list.len < n; i++) {
        const uint16_t port = (uint16_t)(block * PORTS_BLOCK + i);
        bool is_free;

        if (look_at_port(port, &is_free))
            return -1;
        if (is_free)
            *VEC_PUSH(&ports->list) = port;
    }
    return 0;
}

/* Leases what is free in a block that nobody else has; keeps the block where there was some. */
static int lease_block(struct ports *ports, uint32_t block, size_t n) {
    const size_t before = ports->list.len;
    const int fd = hold_block(block);

    if (fd < 0)
        return errno == EADDRINUSE ? 0 : -1;
    *VEC_PUSH(&ports->sockets) = fd; /* who fails gives all of them back */
    if (take_block(ports, block, n))
        return -1;
    if (ports->list.len == before)
        close(ports->sockets.items[--ports->sockets.len]);
    return 0;
}

static int lease_from(struct ports *ports, const struct span *span, size_t n, struct error *err) {
    uint32_t count, start = 0;

    if (span->empty)
        return 0;
    count = span->last - span->first + 1;
    /* A random start keeps runs that begin together from trying the same blocks in turn. */
    if (getrandom(&start, sizeof start, 0) != sizeof start)
        start = (uint32_t)getpid();
    for (uint32_t i = 0; i < count && ports->list.len < n; i++)
        if (lease_block(ports, span->first + (start % count + i) % count, n))
            return error_set_errno(err, errno, "cannot lease TCP ports");
    return 0;
}

static void give_back(struct ports *ports, size_t ports_before, size_t sockets_before) {
    while (ports->sockets.len > sockets_before)
        close(ports->sockets.items[--ports->sockets.len]);
    ports->list.len = ports_before;
}

int ports_lease(struct ports *ports, size_t n, struct error *err) {
    const size_t ports_before = ports->list.len, sockets_before = ports->sockets.len;
    const size_t want = ports_before + n;
    uint32_t low, high;
    struct span spans[3];

    read_ephemeral(&low, &high);
    spans[0] = span_of_ports(PORTS_LOWEST, low - 1);
    spans[1] = span_of_ports(high + 1, PORT_LAST);
    spans[2] = span_of_ports(low, high);
    for (size_t i = 0; i < 3 && ports->list.len < want; i++) {
        if (lease_from(ports, &spans[i], want, err)) {
            give_back(ports, ports_before, sockets_before);
            return -1;
        }
    }
    if (ports->list.len == want) {
        for (size_t i = ports_before; i < want; i++)
            ports->n_ephemeral += ports->list.items[i] >= low && ports->list.items[i] <= high;
        return 0;
    }
    low = (uint32_t)(ports->list.len - ports_before);
    give_back(ports, ports_before, sockets_before);
    return error_set(err, ERROR_EXHAUSTED,
                     "%zu TCP ports are needed and only %u are free on this machine (between %d "
                     "and %d)",
                     n, low, PORTS_LOWEST, PORT_LAST);
}

void ports_release(struct ports *ports) {
    for (size_t i = 0; i < ports->sockets.len; i++)
        close(ports->sockets.items[i]);
    VEC_RELEASE(&ports->sockets);
    VEC_RELEASE(&ports->list);
}
