/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/request.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

enum { BODY_LINE_MAX = 1024 }; /* of a chunk's size with its extensions, of all trailers */

/* A piece of text, not ended by NUL. */
struct piece {
    const char *at;
    size_t n;
};

static bool piece_is(struct piece piece, const char *text) {
    return piece.n == strlen(text) && !strncasecmp(piece.at, text, piece.n);
}

static void piece_copy(struct piece piece, char *out) {
    memcpy(out, piece.at, piece.n);
    out[piece.n] = '\0';
}

/* Digits alone, up to what a signed number holds. */
static bool piece_number(struct piece piece, uint64_t *out) {
    uint64_t value = 0;

    if (piece.n == 0 || piece.n > 18)
        return false;
    for (size_t i = 0; i < piece.n; i++) {
        if (piece.at[i] < '0' || piece.at[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(piece.at[i] - '0');
    }
    *out = value;
    return true;
}

static struct piece trimmed(struct piece piece) {
    while (piece.n && (*piece.at == ' ' || *piece.at == '\t')) {
        piece.at++;
        piece.n--;
    }
    while (piece.n && (piece.at[piece.n - 1] == ' ' || piece.at[piece.n - 1] == '\t'))
        piece.n--;
    return piece;
}

/* ---- headers: a row each */

struct heading {
    struct request *request;
    bool has_length, has_coding, has_key;
};

static int read_length(struct heading *heading, struct piece value) {
    if (heading->has_length || !piece_number(value, &heading->request->length))
        return 400;
    heading->has_length = true;
    return 0;
}

static int read_coding(struct heading *heading, struct piece value) {
    if (heading->has_coding || !piece_is(value, "chunked"))
        return 400;
    heading->has_coding = heading->request->is_chunked = true;
    return 0;
}

static int read_key(struct heading *heading, struct piece value) {
    if (heading->has_key || value.n > REQUEST_KEY_MAX)
        return 403;
    heading->has_key = true;
    piece_copy(value, heading->request->key);
    return 0;
}

static int read_connection(struct heading *heading, struct piece value) {
    heading->request->closes |= piece_is(value, "close");
    return 0;
}

static int read_expect(struct heading *heading, struct piece value) {
    heading->request->wants_continue = piece_is(value, "100-continue");
    return heading->request->wants_continue ? 0 : 417;
}

static const struct {
    const char *name;
    int (*read)(struct heading *heading, struct piece value); /* 0 or a status */
} headers[] = {
    { "Content-Length", read_length }, { "Transfer-Encoding", read_coding },
    { "Myelin-Key", read_key },        { "Connection", read_connection },
    { "Expect", read_expect },
};

static int read_header(struct heading *heading, struct piece line) {
    const char *colon = memchr(line.at, ':', line.n);
    const struct piece name = { line.at, colon ? (size_t)(colon - line.at) : 0 };

    /* a space before the colon, or at the start as of a continued line, is read in many ways */
    if (name.n == 0 || memchr(name.at, ' ', name.n) || memchr(name.at, '\t', name.n))
        return 400;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (piece_is(name, headers[i].name))
            return headers[i].read(heading,
                                   trimmed((struct piece){ colon + 1, line.n - name.n - 1 }));
    return 0;
}

static bool is_word(struct piece piece) {
    for (size_t i = 0; i < piece.n; i++)
        if (piece.at[i] < '!' || piece.at[i] > '~')
            return false;
    return piece.n > 0;
}

/* METHOD TARGET HTTP/1.x */
static int read_request_line(struct request *request, struct piece line) {
    static const char version[] = " HTTP/1.";
    const size_t after = strlen(version) + 1;
    const char *space = memchr(line.at, ' ', line.n);
    const struct piece method = { line.at, space ? (size_t)(space - line.at) : 0 };
    struct piece target;
    char *mark;

    if (!is_word(method) || method.n > REQUEST_METHOD_MAX || line.n < method.n + 1 + after)
        return 400;
    target = (struct piece){ space + 1, line.n - method.n - 1 - after };
    if (memcmp(target.at + target.n, version, after - 1) != 0 || !is_word(target) ||
        *target.at != '/')
        return 400;
    if (target.n > REQUEST_TARGET_MAX)
        return 414;
    piece_copy(method, request->method);
    piece_copy(target, request->target);
    request->closes = line.at[line.n - 1] == '0';
    mark = strchr(request->target, '?');
    request->query = mark ? mark + 1 : "";
    if (mark)
        *mark = '\0';
    return 0;
}

/* Where the empty line ends; NULL: it is not there yet. */
static const char *head_end(const char *bytes, size_t n, size_t seen) {
    const size_t from = seen > 3 ? seen - 3 : 0;
    const char *end = n - from < 4 ? NULL : memmem(bytes + from, n - from, "\r\n\r\n", 4);

    return end ? end + 4 : NULL;
}

int request_read(const char *bytes, size_t n, size_t seen, struct request *out) {
    const char *end = head_end(bytes, n < REQUEST_HEAD_MAX ? n : REQUEST_HEAD_MAX, seen);
    struct heading heading = { .request = out };
    const char *at = bytes;

    if (!end)
        return n < REQUEST_HEAD_MAX ? 0 : -431;
    *out = (struct request){ .query = "" };
    while (at < end - 2) {
        const char *stop = memmem(at, (size_t)(end - at), "\r\n", 2);
        const struct piece line = { at, (size_t)(stop - at) };
        int wrong = 400;

        if (!memchr(line.at, '\n', line.n) && !memchr(line.at, '\0', line.n))
            wrong = at == bytes ? read_request_line(out, line) : read_header(&heading, line);
        if (wrong)
            return -wrong;
        at = stop + 2;
    }
    if (heading.has_length && heading.has_coding)
        return -400;
    return at == bytes ? -400 : (int)(end - bytes);
}

int request_number(const struct request *request) {
    static const char name[] = "number=";
    const size_t n = strlen(name);
    uint64_t value;

    if (strncmp(request->query, name, n) != 0 ||
        !piece_number((struct piece){ request->query + n, strlen(request->query + n) }, &value) ||
        value > INT_MAX)
        return -1;
    return (int)value;
}

/* ---- bodies */

void body_begin(struct body *body, const struct request *request) {
    *body = (struct body){ .is_chunked = request->is_chunked,
                           .left = request->length,
                           .state = request->is_chunked   ? BODY_SIZE
                                    : request->length > 0 ? BODY_DATA
                                                          : BODY_DONE };
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
        return (c | 0x20) - 'a' + 10;
    return -1;
}

static enum body_state take_size(struct body *body, char c) {
    const int digit = hex_digit(c);

    if (digit >= 0) {
        body->left = body->left * 16 + (uint64_t)digit;
        return body->left > REQUEST_BODY_MAX || body->line > 16 ? BODY_WRONG : BODY_SIZE;
    }
    if (body->line == 1)
        return BODY_WRONG;
    return c == ';' || c == '\r' || c == ' ' ? BODY_SIZE_END : BODY_WRONG;
}

/* One byte of what is around the content of a chunked body. */
static enum body_state take_frame(struct body *body, char c) {
    if (++body->line > BODY_LINE_MAX)
        return BODY_WRONG;
    switch (body->state) {
    case BODY_SIZE: return take_size(body, c);
    case BODY_SIZE_END:
        if (c != '\n')
            return BODY_SIZE_END;
        body->line = 0;
        return body->left ? BODY_DATA : BODY_TRAILER;
    case BODY_DATA_END:
        if (body->line == 1 && c == '\r')
            return BODY_DATA_END;
        body->line = 0;
        return c == '\n' ? BODY_SIZE : BODY_WRONG;
    case BODY_TRAILER:
        /* `left` counts the present line here: an empty one, which has its line end alone, is the
         * last */
        if (c != '\n') {
            body->left += c != '\r';
            return BODY_TRAILER;
        }
        if (body->left == 0)
            return BODY_DONE;
        body->left = 0;
        return BODY_TRAILER;
    case BODY_DATA:
    case BODY_DONE:
    case BODY_WRONG: break;
    }
    return BODY_WRONG;
}

size_t body_take(struct body *body, const char *bytes, size_t n, const char **content,
                 size_t *content_n) {
    size_t taken = 0;

    *content = NULL;
    *content_n = 0;
    while (taken < n && body->state != BODY_DATA && body->state < BODY_DONE)
        body->state = take_frame(body, bytes[taken++]);
    if (body->state == BODY_DATA && taken < n) {
        *content = bytes + taken;
        *content_n = n - taken < body->left ? n - taken : (size_t)body->left;
        body->left -= *content_n;
        taken += *content_n;
        if (body->left == 0)
            body->state = body->is_chunked ? BODY_DATA_END : BODY_DONE;
    }
    return taken;
}

/* ---- lines */

int offset_line_next(const char **at, const char *end, struct offset_line *out) {
    const char *stop = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    const char *space;

    if (*at >= end)
        return 0;
    stop = stop ? stop : end;
    space = memrchr(*at, ' ', (size_t)(stop - *at));
    if (!space || space == *at ||
        !piece_number((struct piece){ space + 1, (size_t)(stop - space - 1) }, &out->offset))
        return -1;
    out->name = *at;
    out->name_n = (size_t)(space - *at);
    *at = stop < end ? stop + 1 : end;
    return 1;
}
