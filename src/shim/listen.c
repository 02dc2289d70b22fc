/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_on(const struct sockaddr *address, socklen_t n) {
    const int on = 1, off = 0;
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, address, n) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* IPv6 with IPv4 in it, or IPv4 alone where the machine has nothing else. */
int listen_at(uint16_t port) {
    const struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    const struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    const int fd = listen_on((const struct sockaddr *)&any6, sizeof any6);

    if (fd >= 0 || errno == EADDRINUSE)
        return fd;
    return listen_on((const struct sockaddr *)&any4, sizeof any4);
}
