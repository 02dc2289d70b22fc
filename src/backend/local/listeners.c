/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/listeners.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attr.h"

enum { PORTS = 1 << 16, STATE_LISTEN = 0x0a };

/* ---- asked by netlink ---- */

/* Reads one datagram of the answer. Returns 1 when there is more to come, 0 at its end, -1 when
 * the kernel refuses. */
static int read_answer(int fd, bool *is_listening) {
    _Alignas(struct nlmsghdr) char bytes[32 * 1024];
    const ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    size_t at = 0;

    while (n > 0 && at + sizeof(struct nlmsghdr) <= (size_t)n) {
        const struct nlmsghdr *head = (const void *)(bytes + at);
        const struct inet_diag_msg *found = NLMSG_DATA(head);

        if (head->nlmsg_type == NLMSG_DONE)
            return 0;
        if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            head->nlmsg_len < NLMSG_LENGTH(sizeof *found) || at + head->nlmsg_len > (size_t)n)
            return -1;
        is_listening[ntohs(found->id.idiag_sport)] = true;
        at += NLMSG_ALIGN(head->nlmsg_len);
    }
    return n > 0 ? 1 : -1;
}

static bool ask_listening(int family, bool *is_listening) {
    const struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 request;
    } question = {
        .head = { .nlmsg_len = sizeof question,
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        .request = { .sdiag_family = (unsigned char)family,
                     .sdiag_protocol = IPPROTO_TCP,
                     .idiag_states = 1u << STATE_LISTEN },
    };
    const int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    int more = -1;

    if (fd < 0)
        return false;
    if (send(fd, &question, sizeof question, 0) == sizeof question)
        do
            more = read_answer(fd, is_listening);
        while (more > 0);
    close(fd);
    return more == 0;
}

/* ---- read from /proc, where a filter refuses the other ---- */

/* Lines are "  0: 0100007F:1F90 00000000:0000 0A …": place, local and remote address, state. */
static void read_listening(const char *path, bool *is_listening) {
    FILE *table = fopen(path, "re");
    char line[512];

    while (table && fgets(line, sizeof line, table)) {
        unsigned port, state;

        if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &port, &state) == 2 &&
            state == STATE_LISTEN && port < PORTS)
            is_listening[port] = true;
    }
    if (table)
        fclose(table);
}

size_t listeners_count(const uint16_t *ports, size_t n) {
    static const struct {
        int family;
        const char *path;
    } tables[] = { { AF_INET, "/proc/net/tcp" }, { AF_INET6, "/proc/net/tcp6" } };
    bool is_listening[PORTS] = { false };
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        if (!ask_listening(tables[i].family, is_listening))
            read_listening(tables[i].path, is_listening);
    for (size_t i = 0; i < n; i++)
        count += is_listening[ports[i]];
    return count;
}
