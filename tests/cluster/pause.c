/* SPDX-License-Identifier: Apache-2.0 */
/* Holds namespaces open until it is told to end, and reaps what is left to it: the first process of
 * the cluster's machine, of its second node, and of every pod. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) {
    (void)signal;
    _exit(0);
}

static void reap(int signal) {
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

int main(void) {
    /* The first process of a PID namespace is sent no signal that it does not handle. */
    signal(SIGINT, end);
    signal(SIGTERM, end);
    signal(SIGCHLD, reap);
    for (;;)
        pause();
}
