/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/stream.h"

#include <string.h>
#include <unistd.h>

enum {
    TICK_MS = 500, /* between two looks at the spool */
    IDLE_MS = 5000,
    FRAMES_A_TURN = 4, /* then others on the loop have theirs: the task's pipe */
};

static void on_tick(struct loop_timer *timer);

void stream_init(struct stream *stream) {
    stream->tick = (struct loop_timer){ .fire = on_tick };
    stream->moved_ms = loop_now_ms();
}

void stream_begin(struct stream *stream, struct connection *connection) {
    if (stream->connection)
        server_drop(stream->connection);
    stream->connection = connection;
    stream->stage = STREAM_LIVE;
    stream->log_at = acks_get(stream->acks, "log");
    stream->lost_told = 0;
    stream->has_told_start = false;
    stream->out.at = stream->out.end = 0;
    stream->last_ms = stream->moved_ms = loop_now_ms();
    outputs_release(&stream->outputs);
    spool_restart(stream->spool);
    spool_look(stream->spool);
    loop_after(stream->loop, &stream->tick, TICK_MS);
    stream_wake(stream);
}

void stream_closed(struct stream *stream) {
    stream->connection = NULL;
    outputs_release(&stream->outputs);
    loop_cancel(stream->loop, &stream->tick);
}

void stream_wake(struct stream *stream) {
    if (stream->connection)
        server_want(stream->connection, true);
}

static void on_tick(struct loop_timer *timer) {
    struct stream *stream = loop_owner(timer, struct stream, tick);

    if (stream->stage <= STREAM_SPOOL && !spool_is_looking(stream->spool))
        spool_look(stream->spool);
    loop_after(stream->loop, timer, TICK_MS);
    stream_wake(stream);
}

/* ---- what comes next: each returns false where it has nothing */

static bool next_of_log(struct stream *stream) {
    static const char name[] = "log";
    const struct log *log = stream->log;
    const uint64_t left = log->size > stream->log_at ? log->size - stream->log_at : 0;
    ssize_t n;

    if (left == 0)
        return false;
    n = pread(log->fd, outgoing_bytes(&stream->out, strlen(name)),
              left < FRAME_BYTES_MAX ? (size_t)left : FRAME_BYTES_MAX, (off_t)stream->log_at);
    if (n <= 0) {
        stream->log_at = log->size; /* somebody cut the file: what is not there cannot be sent */
        return false;
    }
    outgoing_file(&stream->out, FRAME_DATA, name, stream->log_at, (uint32_t)n);
    stream->log_at += (uint64_t)n;
    return true;
}

static bool next_told(struct stream *stream) {
    const struct task *task = stream->task;

    if (!stream->has_told_start && task->phase >= TASK_RUNNING && !task->error) {
        stream->has_told_start = true;
        outgoing_file(&stream->out, FRAME_STARTED, "", (uint64_t)task->pid, 0);
        return true;
    }
    if (stream->lost_told != stream->log->lost) {
        stream->lost_told = stream->log->lost;
        outgoing_file(&stream->out, FRAME_LOST, "log", stream->lost_told, 0);
        return true;
    }
    return false;
}

/* Log and spool in turns, so that a flood of one does not hold up the other. */
static bool next_alive(struct stream *stream) {
    stream->is_spools_turn = !stream->is_spools_turn;
    if (stream->is_spools_turn && spool_next(stream->spool, SPOOL_ALIVE, &stream->out))
        return true;
    if (next_of_log(stream))
        return true;
    return spool_next(stream->spool, SPOOL_ALIVE, &stream->out);
}

static bool next_live(struct stream *stream) {
    if (!stream->message)
        return next_alive(stream);
    if (next_of_log(stream))
        return true;
    outgoing_file(&stream->out, FRAME_WHOLE, "log", stream->log->size, 0);
    stream->stage = STREAM_SPOOL;
    spool_look(stream->spool);
    return true;
}

static bool next_of_spool(struct stream *stream) {
    if (spool_next(stream->spool, SPOOL_OVER, &stream->out))
        return true;
    if (spool_is_late(stream->spool))
        return false;
    stream->stage = STREAM_ENDED;
    return false;
}

static bool next_ended(struct stream *stream) {
    stream->stage = STREAM_OUTPUTS;
    if (stream->outputs_path)
        outputs_begin(&stream->outputs, stream->outputs_path, stream->acks);
    outgoing_frame(&stream->out, &(struct frame){ .kind = FRAME_ENDED,
                                                  .name = "",
                                                  .bytes = stream->message,
                                                  .length = (uint32_t)strlen(stream->message) });
    return true;
}

static bool next_of_outputs(struct stream *stream) {
    if (stream->outputs_path && outputs_next(&stream->outputs, &stream->out))
        return true;
    outputs_release(&stream->outputs);
    stream->stage = STREAM_DONE;
    return false;
}

static bool next_done(struct stream *stream) {
    stream->stage = STREAM_SILENT;
    outgoing_file(&stream->out, FRAME_DONE, "", stream->outputs.unread, 0);
    return true;
}

static bool next_frame(struct stream *stream) {
    static bool (*const next[])(struct stream *) = {
        [STREAM_LIVE] = next_live,   [STREAM_SPOOL] = next_of_spool,
        [STREAM_ENDED] = next_ended, [STREAM_OUTPUTS] = next_of_outputs,
        [STREAM_DONE] = next_done,
    };

    stream->is_idle_frame = false;
    if (next_told(stream))
        return true;
    while (stream->stage != STREAM_SILENT) {
        const enum stream_stage stage = stream->stage;

        if (next[stage](stream))
            return true;
        if (stream->stage == stage)
            break;
    }
    if (loop_now_ms() - stream->last_ms < IDLE_MS)
        return false;
    stream->is_idle_frame = true;
    outgoing_file(&stream->out, FRAME_IDLE, "", 0, 0);
    return true;
}

/* ---- out */

void stream_pump(struct stream *stream) {
    for (int frames = 0; frames < FRAMES_A_TURN;) {
        struct outgoing *out = &stream->out;
        long n;

        if (out->at == out->end) {
            if (!next_frame(stream)) {
                server_want(stream->connection, false);
                return;
            }
            stream->last_ms = loop_now_ms();
            frames++;
        }
        n = server_write(stream->connection, out->bytes + out->at, out->end - out->at);
        if (n <= 0)
            return;
        out->at += (size_t)n;
        if (!stream->is_idle_frame)
            stream->moved_ms = loop_now_ms();
    }
}

void stream_finish(struct stream *stream) {
    if (!stream->connection)
        return;
    if (stream->out.at == stream->out.end)
        server_finish(stream->connection);
    else
        server_drop(stream->connection);
    stream_closed(stream);
}
