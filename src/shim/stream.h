/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream to the supervisor (docs/shim.md): at most one, and as fast as it is read. What is on
 * its way is one frame; everything else waits in files.
 */
#ifndef SHIM_STREAM_H
#define SHIM_STREAM_H

#include "shim/acks.h"
#include "shim/log.h"
#include "shim/loop.h"
#include "shim/outgoing.h"
#include "shim/outputs.h"
#include "shim/server.h"
#include "shim/spool.h"
#include "shim/task.h"

enum stream_stage {
    STREAM_LIVE,
    STREAM_SPOOL, /* the rest of it, after the end, and so on */
    STREAM_ENDED, /* before the outputs: others of the gang may be waiting for that word */
    STREAM_OUTPUTS,
    STREAM_DONE,
    STREAM_SILENT,
};

struct stream {
    /* Where it is from: set once. */
    struct loop *loop;
    const struct log *log;
    const struct task *task;
    const struct acks *acks;
    struct spool *spool;
    const char *outputs_path; /* NULL: they are not sent */
    const char *message;      /* the termination message; NULL before the end of everything */

    struct connection *connection; /* NULL: none is open */
    enum stream_stage stage;
    uint64_t log_at, lost_told;
    bool has_told_start, is_spools_turn, is_idle_frame;
    struct outputs outputs;
    struct outgoing out;
    struct loop_timer tick;
    int64_t last_ms;  /* when the last frame was made */
    int64_t moved_ms; /* when somebody last took something, or said that he has it */
};

void stream_init(struct stream *stream);

/* Goes on from what is acknowledged, over this connection; one that was open ends. */
void stream_begin(struct stream *stream, struct connection *connection);

/* There is something new to send, or room for it. */
void stream_wake(struct stream *stream);
void stream_pump(struct stream *stream);

/* The connection is gone. */
void stream_closed(struct stream *stream);

/* Ends the connection in order. */
void stream_finish(struct stream *stream);

#endif
