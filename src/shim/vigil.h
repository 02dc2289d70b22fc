/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a task is of any use without its leader: the rules of docs/shim.md, "Nobody there". Pure.
 *
 * Each waiting time begins anew when a supervisor leaves: while one is there it decides instead,
 * and one that only lost its connection finds everything as it was.
 */
#ifndef SHIM_VIGIL_H
#define SHIM_VIGIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vigil_limits {
    int64_t gone_ms;   /* that the leader cannot be reached */
    int64_t failed_ms; /* after it failed */
    int64_t ended_ms;  /* after it ended well */
};

struct vigil {
    struct vigil_limits limits;
    int64_t heard_ms;   /* when the leader last said that it runs, or the watch began */
    int64_t watched_ms; /* when a supervisor was last there */
    int64_t ended_ms;   /* when the leader said that it has ended; -1: it has not */
    int code;           /* with which it did */
};

void vigil_begin(struct vigil *vigil, const struct vigil_limits *limits, int64_t now_ms);
void vigil_watched(struct vigil *vigil, int64_t now_ms);

/* What the leader says: bytes of its answer to POST /gang, of which whole lines are taken; anything
 * but its two sentences is passed over, as the frame of chunks is. Returns how many bytes it took.
 */
size_t vigil_hear(struct vigil *vigil, const char *bytes, size_t n, int64_t now_ms);

/* Why the task has to end; NULL: it may go on, for the time in *wait_ms at least. */
const char *vigil_verdict(const struct vigil *vigil, int64_t now_ms, int64_t *wait_ms);

#endif
