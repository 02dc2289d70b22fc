/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/head.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { BAD_REQUEST = -400, URI_TOO_LONG = -414, HEAD_TOO_LARGE = -431, LENGTH_DIGITS = 18 };

/* Takes what stands before the next space into `out`, and goes behind that. */
static long take_word(const char **at, const char *end, char *out, size_t most, long too_long) {
    const char *space = memchr(*at, ' ', (size_t)(end - *at));
    const size_t n = space ? (size_t)(space - *at) : 0;

    if (n == 0)
        return BAD_REQUEST;
    if (n > most)
        return too_long;
    for (size_t i = 0; i < n; i++)
        if ((*at)[i] < '!' || (*at)[i] > '~')
            return BAD_REQUEST;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at = space + 1;
    return 0;
}

static long read_first_line(const char *line, const char *end, struct head *out) {
    long refused = take_word(&line, end, out->method, HEAD_METHOD_MAX, BAD_REQUEST);

    if (!refused)
        refused = take_word(&line, end, out->path, HEAD_PATH_MAX, URI_TOO_LONG);
    if (!refused && (end - line != 8 || memcmp(line, "HTTP/1.", 7) != 0))
        refused = BAD_REQUEST;
    return refused;
}

static bool read_length(const char *text, const char *end, uint64_t *out) {
    uint64_t value = 0;

    while (text < end && *text == ' ')
        text++;
    while (end > text && end[-1] == ' ')
        end--;
    if (text == end || end - text > LENGTH_DIGITS)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *out = value;
    return true;
}

static bool is_header(const char *line, const char *colon, const char *name) {
    return (size_t)(colon - line) == strlen(name) && strncasecmp(line, name, strlen(name)) == 0;
}

static long read_header(const char *line, const char *end, struct head *out, bool *has_length) {
    const char *colon = memchr(line, ':', (size_t)(end - line));

    if (!colon || colon == line || is_header(line, colon, "Transfer-Encoding"))
        return BAD_REQUEST;
    if (!is_header(line, colon, "Content-Length"))
        return 0;
    if (*has_length || !read_length(colon + 1, end, &out->body))
        return BAD_REQUEST;
    *has_length = true;
    return 0;
}

long head_read(const char *bytes, size_t n, struct head *out) {
    const size_t most = n < HEAD_MAX ? n : HEAD_MAX;
    bool has_length = false;
    const char *line = bytes;

    out->body = 0;
    for (;;) {
        const char *end = memchr(line, '\n', most - (size_t)(line - bytes)), *text;
        long refused;

        if (!end)
            return n < HEAD_MAX ? 0 : HEAD_TOO_LARGE;
        text = end > line && end[-1] == '\r' ? end - 1 : end;
        if (line == bytes)
            refused = read_first_line(line, text, out);
        else if (text == line)
            return end + 1 - bytes;
        else
            refused = read_header(line, text, out, &has_length);
        if (refused)
            return refused;
        line = end + 1;
    }
}
