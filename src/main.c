/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/guard.h"

/* A standard stream that the caller closed would be taken by the next file that is opened, and
 * messages would be written into that file. Its place is held by a descriptor that fails in
 * the direction of the stream, so that using the stream is still an error. */
static void hold_standard_streams(void) {
    static const int useless_mode[] = { O_WRONLY, O_RDONLY, O_RDONLY };

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", useless_mode[fd]) != fd)
            abort();
}

int main(int argc, char **argv) {
    hold_standard_streams();
    guard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like any other */
    return command_main(argc, argv);
}
