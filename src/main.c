/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/stack.h"
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

/* An allocation that fails leaves ENOMEM and aborts: whoever waits for the command learns why. */
static void on_abort(int number) {
    static const char sentence[] = "myelin: out of memory\n";

    (void)number;
    if (errno == ENOMEM)
        (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
}

int main(int argc, char **argv) {
    hold_standard_streams();
    signal(SIGABRT, on_abort); /* abort ends the process all the same */
    if (!stack_reserve()) {
        errno = ENOMEM;
        abort();
    }
    guard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like any other */
    return command_main(argc, argv);
}
