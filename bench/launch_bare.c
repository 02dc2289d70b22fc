/* SPDX-License-Identifier: Apache-2.0 */
/* Spawns so many /bin/true, then waits for all of them: what no launcher can do without. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv) {
    char *const command[] = { "/bin/true", NULL };
    int n = argc == 2 ? atoi(argv[1]) : 0, failed = 0, status, error;
    pid_t pid;

    for (int i = 0; i < n; i++) {
        error = posix_spawn(&pid, command[0], NULL, NULL, command, environ);
        if (error) {
            fprintf(stderr, "launch_bare: %s: %s\n", command[0], strerror(error));
            return 1;
        }
    }
    for (int i = 0; i < n; i++)
        failed |= wait(&status) < 0 || status != 0;
    return n > 0 && !failed ? 0 : 1;
}
