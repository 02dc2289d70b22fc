/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/ending.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_MAX = 1024 };

int ending_code(const struct ending *ending) {
    if (ending->error)
        return ending->error == ENOENT ? 127 : 126;
    if (!ending->has_run)
        return ENDING_OWN_FAILURE;
    return WIFSIGNALED(ending->status) ? 128 + WTERMSIG(ending->status)
                                       : WEXITSTATUS(ending->status);
}

/* Appends a member with a text. A character that JSON would have escaped becomes '?': these texts
 * are ours, but for names of hosts in them. */
static size_t text(char *out, size_t at, const char *name, const char *value) {
    at += (size_t)snprintf(out + at, ENDING_MAX - at, "\"%s\": \"", name);
    for (size_t i = 0; value[i] && i < TEXT_MAX; i++) {
        const unsigned char c = (unsigned char)value[i];

        out[at++] = c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : (char)c;
    }
    return at + (size_t)snprintf(out + at, ENDING_MAX - at, "\", ");
}

static size_t number(char *out, size_t at, const char *name, int value) {
    return at + (size_t)snprintf(out + at, ENDING_MAX - at, "\"%s\": %d, ", name, value);
}

size_t ending_print(const struct ending *ending, char out[static ENDING_MAX]) {
    size_t at = 1;

    out[0] = '{';
    if (ending->gave_up)
        at = text(out, at, "gave_up", ending->gave_up);
    if (ending->refused)
        at = text(out, at, "error", ending->refused);
    if (ending->error) {
        at = text(out, at, "error",
                  ending->error == ENOENT ? "command not found" : strerror(ending->error));
        at = number(out, at, "errno", ending->error);
    } else if (ending->has_run && WIFSIGNALED(ending->status)) {
        at = number(out, at, "signal", WTERMSIG(ending->status));
    } else if (ending->has_run) {
        at = number(out, at, "exit", WEXITSTATUS(ending->status));
    }
    at += (size_t)snprintf(out + at, ENDING_MAX - at,
                           "\"log\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"unsent\": %" PRIu64 "}",
                           ending->log, ending->lost, ending->unsent);
    return at;
}

void ending_write(const char *path, const char *message) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644);

    if (fd < 0)
        return;
    (void)!write(fd, message, strlen(message));
    close(fd);
}
