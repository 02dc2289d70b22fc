/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/vigil.h"

#include <string.h>

enum { CODE_MAX = 255 };

void vigil_begin(struct vigil *vigil, const struct vigil_limits *limits, int64_t now_ms) {
    *vigil = (struct vigil){
        .limits = *limits, .heard_ms = now_ms, .watched_ms = now_ms, .ended_ms = -1
    };
}

void vigil_watched(struct vigil *vigil, int64_t now_ms) {
    vigil->watched_ms = now_ms;
}

/* "ended CODE"; -1: that is something else. */
static int code_of(const char *line, size_t n) {
    static const char word[] = "ended ";
    const size_t before = sizeof word - 1;
    int code = 0;

    if (n <= before || n > before + 3 || memcmp(line, word, before) != 0)
        return -1;
    for (size_t i = before; i < n; i++) {
        if (line[i] < '0' || line[i] > '9')
            return -1;
        code = code * 10 + (line[i] - '0');
    }
    return code <= CODE_MAX ? code : -1;
}

size_t vigil_hear(struct vigil *vigil, const char *bytes, size_t n, int64_t now_ms) {
    static const char running[] = "running";
    const char *line = bytes, *end;

    while ((end = memchr(line, '\n', n - (size_t)(line - bytes)))) {
        const size_t length = (size_t)(end - line) - (end > line && end[-1] == '\r' ? 1 : 0);
        const int code = code_of(line, length);

        if (length == sizeof running - 1 && memcmp(line, running, length) == 0)
            vigil->heard_ms = now_ms;
        if (code >= 0 && vigil->ended_ms < 0) {
            vigil->ended_ms = vigil->heard_ms = now_ms;
            vigil->code = code;
        }
        line = end + 1;
    }
    return (size_t)(line - bytes);
}

const char *vigil_verdict(const struct vigil *vigil, int64_t now_ms, int64_t *wait_ms) {
    const struct vigil_limits *limits = &vigil->limits;
    const bool has_ended = vigil->ended_ms >= 0;
    const int64_t since = has_ended ? vigil->ended_ms : vigil->heard_ms;
    const int64_t from = since > vigil->watched_ms ? since : vigil->watched_ms;
    const int64_t limit = !has_ended        ? limits->gone_ms
                          : vigil->code > 0 ? limits->failed_ms
                                            : limits->ended_ms;

    *wait_ms = from + limit - now_ms;
    if (*wait_ms > 0)
        return NULL;
    return !has_ended        ? "its leader cannot be reached"
           : vigil->code > 0 ? "its leader has failed"
                             : "its leader has ended";
}
