/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/routes.h"

#include <signal.h>
#include <string.h>

struct asked {
    struct shim *shim;
    struct connection *connection;
    const struct request *request;
    const char *body;
    size_t n;
};

/* Whether every line is one; a log that has more on the other side than here is of another task. */
static int check_lines(const struct asked *asked, uint64_t *log) {
    const char *at = asked->body, *end = asked->body + asked->n;
    struct offset_line line;
    int more;

    *log = 0;
    while ((more = offset_line_next(&at, end, &line)) > 0)
        if (line.name_n == strlen("log") && !memcmp(line.name, "log", line.name_n))
            *log = line.offset;
    return more;
}

static void take_lines(const struct asked *asked) {
    const char *at = asked->body, *end = asked->body + asked->n;
    struct offset_line line;

    while (offset_line_next(&at, end, &line) > 0)
        acks_put(&asked->shim->acks, line.name, line.name_n, line.offset);
    asked->shim->stream.moved_ms = loop_now_ms();
}

static void refuse_lines(const struct asked *asked) {
    server_answer(asked->connection, 400, "a line of the body is not NAME OFFSET");
}

static void ask_stream(const struct asked *asked) {
    struct shim *shim = asked->shim;
    uint64_t log;

    if (check_lines(asked, &log)) {
        refuse_lines(asked);
        return;
    }
    if (log > shim->log.size) {
        server_answer(asked->connection, 409, "the log ends before that offset");
        return;
    }
    acks_release(&shim->acks);
    take_lines(asked);
    if (server_begin(asked->connection, SERVER_STREAM))
        stream_begin(&shim->stream, asked->connection);
}

static void ask_ack(const struct asked *asked) {
    uint64_t log;

    if (check_lines(asked, &log)) {
        refuse_lines(asked);
        return;
    }
    take_lines(asked);
    spool_acknowledged(&asked->shim->spool);
    server_answer(asked->connection, 204, NULL);
}

static void ask_signal(const struct asked *asked) {
    const int number = request_number(asked->request);

    if (number < 1 || number >= NSIG) {
        server_answer(asked->connection, 400, "number= is missing, or no number of a signal");
    } else if (asked->shim->phase == SHIM_LINGERING || asked->shim->task.phase >= TASK_ENDED) {
        server_answer(asked->connection, 409, "the task has ended");
    } else {
        shim_signal(asked->shim, number);
        server_answer(asked->connection, 204, NULL);
    }
}

static void ask_end(const struct asked *asked) {
    if (asked->shim->phase < SHIM_LINGERING) {
        server_answer(asked->connection, 409, "the task has not ended");
        return;
    }
    server_answer(asked->connection, 204, NULL);
    shim_release(asked->shim);
}

static void ask_gang(const struct asked *asked) {
    if (server_begin(asked->connection, SERVER_GANG))
        shim_tell_gang(asked->shim, asked->connection);
}

static const struct {
    const char *path;
    void (*ask)(const struct asked *asked);
} routes[] = {
    { "/stream", ask_stream }, { "/ack", ask_ack },   { "/signal", ask_signal },
    { "/end", ask_end },       { "/gang", ask_gang },
};

void routes_ask(struct shim *shim, struct connection *connection, const struct request *request,
                const char *body, size_t n) {
    const struct asked asked = { shim, connection, request, body, n };

    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(routes[i].path, request->target) == 0) {
            routes[i].ask(&asked);
            return;
        }
    }
    server_answer(connection, 404, "there is no such request");
}
