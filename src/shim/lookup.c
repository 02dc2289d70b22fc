/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CHILD_FD = 3,
    CHILD_SECONDS = 30,     /* more than the resolver takes with all of its servers */
    DESCRIPTORS_MAX = 65536 /* that are looked at where the kernel cannot close a range */
};

struct found {
    socklen_t length;
    struct sockaddr_storage address;
};

static void on_pipe(struct loop_watch *watch, uint32_t events);

void lookup_init(struct lookup *lookup, struct loop *loop, void (*done)(struct lookup *lookup)) {
    *lookup = (struct lookup){ .loop = loop, .done = done, .pipe = { .fd = -1, .ready = on_pipe } };
}

/* A copy of a connection in here would keep it open after the shim has closed it. */
static void keep_only(int fd) {
    if (fd != CHILD_FD)
        dup2(fd, CHILD_FD);
    if (syscall(SYS_close_range, CHILD_FD + 1, ~0U, 0) == 0)
        return;
    for (int other = CHILD_FD + 1; other < DESCRIPTORS_MAX; other++)
        close(other);
}

static _Noreturn void ask(const char *name, int fd) {
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    struct found found = { 0 };
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    keep_only(fd);
    alarm(CHILD_SECONDS);
    if (getaddrinfo(name, NULL, &hints, &list) == 0 && list->ai_addrlen <= sizeof found.address) {
        found.length = list->ai_addrlen;
        memcpy(&found.address, list->ai_addr, found.length);
    }
    (void)!write(CHILD_FD, &found, sizeof found);
    _exit(0);
}

int lookup_ask(struct lookup *lookup, const char *name) {
    int ends[2], error;
    pid_t pid;

    lookup_cancel(lookup);
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return -1;
    pid = fork();
    if (pid == 0)
        ask(name, ends[1]);
    error = errno;
    close(ends[1]);
    lookup->pipe.fd = ends[0];
    if (pid > 0 && loop_watch(lookup->loop, &lookup->pipe, EPOLLIN) == 0)
        return 0;
    lookup_cancel(lookup);
    errno = error;
    return -1;
}

void lookup_cancel(struct lookup *lookup) {
    if (lookup->pipe.fd < 0)
        return;
    loop_unwatch(lookup->loop, &lookup->pipe);
    close(lookup->pipe.fd);
    lookup->pipe.fd = -1;
}

static void on_pipe(struct loop_watch *watch, uint32_t events) {
    struct lookup *lookup = loop_owner(watch, struct lookup, pipe);
    struct found found;
    const ssize_t n = read(watch->fd, &found, sizeof found);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    lookup_cancel(lookup);
    lookup->length = 0;
    if (n == (ssize_t)sizeof found && found.length <= sizeof found.address) {
        lookup->address = found.address;
        lookup->length = found.length;
    }
    lookup->done(lookup);
}
