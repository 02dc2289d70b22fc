/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as requests to Horovod's rendezvous, one behind the other, and as what a leader's
 * shim says. Beyond "no crash": a head that is whole is the same with more behind it; what was put
 * is got; and how the leader's words are cut into pieces changes nothing in what they mean.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/meeting.h"
#include "shim/request.h"
#include "shim/vigil.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct meeting_limits limits = { 8, 64, 100, 300 };

static enum meeting_method method_of(const char *name) {
    return strcmp(name, "PUT") == 0      ? MEETING_PUT
           : strcmp(name, "GET") == 0    ? MEETING_GET
           : strcmp(name, "DELETE") == 0 ? MEETING_DELETE
                                         : MEETING_OTHER;
}

/* The request at the start of the bytes; returns how many it has, 0: it is none. */
static size_t take_request(struct meeting *meeting, const char *bytes, size_t n) {
    struct request head, again;
    const int length = request_read(bytes, n, 0, &head);
    struct meeting_answer answer;
    enum meeting_method method;
    size_t body;

    if (length <= 0)
        return 0;
    if (request_read(bytes, (size_t)length, 0, &again) != length || again.length != head.length ||
        strcmp(again.target, head.target) != 0 ||
        request_read(bytes, (size_t)length - 1, 0, &again) > 0)
        abort();
    method = method_of(head.method);
    body = head.length < n - (size_t)length ? (size_t)head.length : n - (size_t)length;
    answer = meeting_ask(meeting, method, head.target, bytes + length, body);
    if (method == MEETING_PUT && answer.status == 200) {
        answer = meeting_ask(meeting, MEETING_GET, head.target, NULL, 0);
        if (answer.status != 200 || answer.length != body ||
            memcmp(answer.body, bytes + length, body) != 0)
            abort();
    }
    return (size_t)length + body;
}

static void ask_all(const char *bytes, size_t n) {
    struct meeting *meeting = meeting_new(&limits);
    size_t at = 0, taken;

    if (!meeting)
        abort();
    while (at < n && (taken = take_request(meeting, bytes + at, n - at)) > 0)
        at += taken;
    meeting_free(meeting);
}

static struct vigil hear_in_pieces(const char *bytes, size_t n, size_t piece) {
    const struct vigil_limits times = { 1, 1, 1 };
    struct vigil vigil;
    size_t taken = 0;

    vigil_begin(&vigil, &times, 0);
    for (size_t end = piece; taken < n && end < n + piece; end += piece)
        taken += vigil_hear(&vigil, bytes + taken, (end < n ? end : n) - taken, 1);
    return vigil;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct vigil whole = hear_in_pieces((const char *)data, size, size + 1);
    const struct vigil pieces = hear_in_pieces((const char *)data, size, 1 + size % 5);

    if (whole.heard_ms != pieces.heard_ms || whole.ended_ms != pieces.ended_ms ||
        whole.code != pieces.code)
        abort();
    ask_all((const char *)data, size);
    return 0;
}
