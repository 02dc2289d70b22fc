/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool of the task, as a stream has it: segment by segment, from what the supervisor has on.
 *
 *   spool_restart                  a stream begins: nothing was sent yet
 *   spool_look                     a pass: lists the segments; each is looked at once in it
 *   spool_next ...                 the frames of this pass, until there is none
 *
 * Of a segment come its header, with the state `open`; records as far as they are whole; its header
 * as it was before those were looked for; and, once it is done, its WHOLE. So no header tells the
 * reader that a segment is done before he has all of it.
 */
#ifndef SHIM_SPOOL_H
#define SHIM_SPOOL_H

#include "shim/acks.h"
#include "shim/outgoing.h"
#include "shim/segment.h"

enum { SPOOL_NAME_MAX = sizeof "spool/" + SEGMENT_NAME_MAX };

struct spool_file;

struct spool {
    const char *path;
    const struct acks *acks;
    struct spool_file *files; /* in order of their names */
    size_t n, room;
    size_t turn;       /* of which the next frame is asked */
    unsigned pass;     /* counts them */
    unsigned unlisted; /* passes on end in which the directory could not be read */
};

enum spool_writers { SPOOL_ALIVE, SPOOL_OVER };

void spool_init(struct spool *spool, const char *path, const struct acks *acks);

void spool_restart(struct spool *spool);
void spool_look(struct spool *spool);

/* Whether a pass goes on. */
bool spool_is_looking(const struct spool *spool);

/* Whether something could not be read in this pass that may be in the next: no descriptor was left,
 * say. Not for ever. */
bool spool_is_late(const struct spool *spool);

/* Writes the next frame of the pass; false if there is none. */
bool spool_next(struct spool *spool, enum spool_writers writers, struct outgoing *out);

/* Removes what is done and acknowledged whole. */
void spool_acknowledged(struct spool *spool);

/* After the end: how many bytes nobody has acknowledged. */
uint64_t spool_unsent(const char *path, const struct acks *acks);

#endif
