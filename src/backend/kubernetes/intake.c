/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/intake.h"

#include <inttypes.h>
#include <string.h>

#include "shim/frame.h"

enum { FRAME_MOST = FRAME_HEADER + FRAME_NAME_MAX + FRAME_BYTES_MAX };

void intake_init(struct intake *intake, const struct intake_given *given,
                 const struct intake_observer *observer) {
    *intake = (struct intake){ .observer = *observer,
                               .mirror = mirror_new(given->spool, given->logs, given->task),
                               .gather = given->gather,
                               .rank = given->rank,
                               .frames = BUF_INIT(FRAME_MOST),
                               .log_at = given->log_at };
}

void intake_release(struct intake *intake) {
    mirror_free(intake->mirror);
    buf_release(&intake->frames);
}

void intake_begin(struct intake *intake) {
    buf_clear(&intake->frames);
    mirror_begin(intake->mirror);
}

static bool has_prefix(const struct frame *frame, const char *prefix) {
    return frame->name_length > strlen(prefix) && memcmp(frame->name, prefix, strlen(prefix)) == 0;
}

static bool is_log(const struct frame *frame) {
    return frame->name_length == 3 && memcmp(frame->name, "log", 3) == 0;
}

static int take_log(struct intake *intake, const struct frame *frame, struct error *err) {
    const uint64_t known = intake->log_at - frame->offset;

    if (frame->offset > intake->log_at)
        return error_set(err, ERROR_INVALID,
                         "it sends the log from %" PRIu64 " on, of which %" PRIu64
                         " bytes are here",
                         frame->offset, intake->log_at);
    if (known >= frame->length)
        return 0;
    intake->log_at = frame->offset + frame->length;
    intake->observer.output(intake->observer.context, frame->bytes + known,
                            frame->length - (size_t)known, intake->log_at);
    return 0;
}

static int take_data(struct intake *intake, const struct frame *frame, struct error *err) {
    const size_t spool = strlen(MIRROR_PREFIX), outputs = strlen(GATHER_PREFIX);

    if (is_log(frame))
        return take_log(intake, frame, err);
    if (has_prefix(frame, MIRROR_PREFIX))
        return mirror_write(intake->mirror, frame->name + spool, frame->name_length - spool,
                            frame->offset, frame->bytes, frame->length, err);
    if (has_prefix(frame, GATHER_PREFIX) && intake->gather)
        return gather_write(intake->gather, intake->rank, frame->name + outputs,
                            frame->name_length - outputs, frame->offset, frame->bytes,
                            frame->length, err);
    return 0;
}

static int take_whole(struct intake *intake, const struct frame *frame, struct error *err) {
    const size_t spool = strlen(MIRROR_PREFIX), outputs = strlen(GATHER_PREFIX);

    if (has_prefix(frame, MIRROR_PREFIX))
        return mirror_whole(intake->mirror, frame->name + spool, frame->name_length - spool,
                            frame->offset, err);
    if (has_prefix(frame, GATHER_PREFIX) && intake->gather)
        return gather_whole(intake->gather, intake->rank, frame->name + outputs,
                            frame->name_length - outputs, frame->offset, err);
    return 0;
}

static void take_start(struct intake *intake) {
    if (intake->has_started)
        return;
    intake->has_started = true;
    intake->observer.started(intake->observer.context);
}

static int take_end(struct intake *intake, const struct frame *frame, struct error *err) {
    struct shim_end end;

    if (!shim_end_read(frame->bytes, frame->length, &end))
        return error_set(err, ERROR_INVALID, "it says an end that is none");
    if (intake->has_ended)
        return 0;
    intake->has_ended = true;
    intake->log_lost = end.lost;
    intake->observer.ended(intake->observer.context, &end);
    return 0;
}

static int take_done(struct intake *intake, const struct frame *frame, struct error *err) {
    if (!intake->has_ended)
        return error_set(err, ERROR_INVALID, "it is done with a task that has not ended");
    if (mirror_sync(intake->mirror, err))
        return -1;
    intake->observer.done(intake->observer.context, frame->offset);
    return 0;
}

static int take(struct intake *intake, const struct frame *frame, struct error *err) {
    switch (frame->kind) {
    case FRAME_DATA: return take_data(intake, frame, err);
    case FRAME_WHOLE: return take_whole(intake, frame, err);
    case FRAME_ENDED: return take_end(intake, frame, err);
    case FRAME_DONE: return take_done(intake, frame, err);
    case FRAME_LOST: intake->log_lost = frame->offset; return 0;
    case FRAME_STARTED: take_start(intake); return 0;
    case FRAME_IDLE: break;
    }
    return 0;
}

/* Takes the frames at the start of the bytes; *used is how many those are. */
static int take_frames(struct intake *intake, const char *bytes, size_t n, size_t *used,
                       struct error *err) {
    *used = 0;
    while (!intake->is_stopped) {
        struct frame frame;
        const long length = frame_read(bytes + *used, n - *used, &frame);

        if (length == 0)
            return 0;
        if (length < 0)
            return error_set(err, ERROR_INVALID, "it sends what is no frame");
        *used += (size_t)length;
        if (take(intake, &frame, err))
            return -1;
    }
    *used = n; /* nobody wants the rest */
    return 0;
}

/* Whole frames are taken where they lie; only what is left waits in the buffer. */
int intake_feed(struct intake *intake, const char *bytes, size_t n, struct error *err) {
    size_t used;

    while (n > 0 && intake->frames.len > 0) {
        const size_t room = FRAME_MOST - intake->frames.len, more = n < room ? n : room;
        const size_t before = intake->frames.len;

        if (buf_append(&intake->frames, bytes, more, err))
            return -1;
        if (take_frames(intake, intake->frames.data, intake->frames.len, &used, err))
            return -1;
        if (used == 0) {
            bytes += more;
            n -= more;
            continue;
        }
        /* What follows the frames that were completed is still where it came. */
        buf_clear(&intake->frames);
        bytes += used - before;
        n -= used - before;
    }
    if (n == 0)
        return 0;
    if (take_frames(intake, bytes, n, &used, err))
        return -1;
    return used < n ? buf_append(&intake->frames, bytes + used, n - used, err) : 0;
}
