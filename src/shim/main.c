/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of a task's container: docs/shim.md. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: shim COMMAND [ARGUMENT]...\n");
        return 125;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "shim: %s: %s\n", argv[1], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
