/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmyelin: log metrics of a training from C or C++, at the speed of memory.
 *
 *   struct myelin *m = myelin_open();
 *   const uint32_t loss = myelin_name(m, "loss");
 *   for (...)
 *       myelin_log(m, &loss, &value, 1, step, MYELIN_NOW);
 *   myelin_close(m);
 *
 * Three files, no dependency but libc: compile myelin.c with the program (C11, -D_GNU_SOURCE not
 * needed), or link libmyelin.a. Linux, little-endian.
 *
 * What it promises:
 *   1. A call that returned 0 is kept: the record is in a mapped file (docs/spool.md), which
 * survives SIGKILL of the process at that very moment. Power loss is another matter: the kernel
 * writes the file back when it likes, and the supervisor makes it durable about once a second.
 *   2. Nothing here fails the training. What cannot be kept (a full disk, a spool that is gone or
 * not writable, a limit on file sizes, a supervisor that does not keep up) is dropped, counted and
 *      tried again later; no signal is raised, nothing waits for a disk to have room.
 *   3. A call usually makes no system call. About every 10,000 points one prepares the next
 * segment.
 *   4. Threads may share a handle. After a fork the child writes a file of its own, from its first
 *      call on; the parent's is not touched.
 *   5. myelin_log and myelin_record may be called in a signal handler. One that interrupts another
 *      call of its own thread is dropped and counted: it cannot wait for that call. errno is kept.
 *   6. Every call takes NULL for the handle, and does nothing then.
 *
 * Outside a run (no MYELIN_SPOOL) myelin_open gives a handle that keeps nothing; myelin_reason says
 * so.
 */
#ifndef MYELIN_H
#define MYELIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct myelin;

#define MYELIN_AUTO    INT64_MIN  /* as step: count for me */
#define MYELIN_NOW     INT64_MIN  /* as time */
#define MYELIN_NO_NAME UINT32_MAX /* not a name: what is logged under it is dropped */

enum {
    MYELIN_NAME_MAX = 255,       /* bytes; docs/spool.md says how a longer one is shortened */
    MYELIN_NAMES_MAX = 65536,    /* in one process */
    MYELIN_RECORD_MAX = 1 << 20, /* bytes of JSON in one record */
    MYELIN_FILE_MAX = 64 << 20   /* bytes of an image */
};

/* The spool of $MYELIN_SPOOL and the attempt of $MYELIN_ATTEMPT. Makes no file: the first record
 * does. NULL only without memory. */
struct myelin *myelin_open(void);
struct myelin *myelin_open_at(const char *directory, uint32_t attempt);

/* Ends the chain of this process. No other thread may be in a call. A process that ends without it
 * loses nothing; only if it also never got room for a segment and is killed, points that it dropped
 * in its last second are not counted. */
void myelin_close(struct myelin *m);

/* Why nothing is kept at present, in a sentence; NULL while all is well. */
const char *myelin_reason(const struct myelin *m);

/* How many points and records this process has dropped. */
uint64_t myelin_dropped(const struct myelin *m);

/* The number of a name, the same for the same name as long as the handle lives. Bytes that are not
 * UTF-8, and control characters, become '?'. MYELIN_NO_NAME for an empty name, without memory, and
 * beyond MYELIN_NAMES_MAX. Not for signal handlers. */
uint32_t myelin_name(struct myelin *m, const char *name);
uint32_t myelin_name_n(struct myelin *m, const char *name, size_t n);

/* Logs n values with one step and one time (microseconds since the epoch). MYELIN_AUTO is the step
 * after the last one of the name, from 0; of several names, the largest such step counts for all.
 * Returns 0, or -1 when something was dropped. */
int myelin_log(struct myelin *m, const uint32_t *names, const double *values, size_t n,
               int64_t step, int64_t time_us);

/* One JSON object each, whose members are laid over those of earlier ones: params, tags, summary.
 * An artifact is an object of its own. Returns 0, or -1 when it was dropped. */
enum myelin_kind { MYELIN_PARAMS = 3, MYELIN_TAGS = 4, MYELIN_SUMMARY = 5, MYELIN_ARTIFACT = 6 };
int myelin_record(struct myelin *m, enum myelin_kind kind, const char *json, size_t n);

/* Keeps an image or a text of a step as a file below $MYELIN_OUTPUTS_PATH (docs/tracking.md): the
 * suffix, such as "png" or "txt", says what it is. The step is given: MYELIN_AUTO is refused. It
 * writes to the disk before it returns. Not for signal handlers. Returns 0, or -1 when it was
 * dropped. */
int myelin_log_file(struct myelin *m, const char *name, const char *suffix, const void *bytes,
                    size_t n, int64_t step);

#ifdef __cplusplus
}
#endif

#endif

/* The format of a segment, version 2, for those who write or read it themselves: docs/spool.md.
 * Apart from the rest, so that it is there for whoever asks for it, also after one who did not. */
#if defined(MYELIN_SPOOL_FORMAT) && !defined(MYELIN_SPOOL_FORMAT_H)
#define MYELIN_SPOOL_FORMAT_H
#include <string.h>

#define MYELIN_SPOOL_MAGIC  UINT64_C(0x006c6f6f7073796d) /* "myspool\0" */
#define MYELIN_SPOOL_MIXER  UINT64_C(0x9e3779b97f4a7c15)
#define MYELIN_SPOOL_SUFFIX ".spool"
/* <spool>.dropped-<pid>-<start>: a link whose target is a number (docs/spool.md) */
#define MYELIN_SPOOL_DROPPED ".dropped-"

enum {
    MYELIN_SPOOL_VERSION = 2,
    MYELIN_SPOOL_HEADER = 128,
    MYELIN_SPOOL_FIXED = 64,                /* of the header: what the checksum covers */
    MYELIN_SPOOL_SIZE_MAX = 4 << 20,        /* of a segment */
    MYELIN_SPOOL_LENGTH_MAX = (1 << 24) - 1 /* of a payload, by its field */
};

enum myelin_spool_type {                        /* and myelin_kind between them */
                         MYELIN_SPOOL_NAME = 1, /* u32 number, then the name */
                         MYELIN_SPOOL_POINTS =
                             2, /* i64 time, i64 step, n f64 values, n u32 numbers of names */
                         MYELIN_SPOOL_NEXT =
                             7 /* f64 value, u64 time since the segment was made << 16 | number */
};

enum myelin_spool_state {
    MYELIN_SPOOL_PREPARED, /* made ahead; holds nothing */
    MYELIN_SPOOL_OPEN,
    MYELIN_SPOOL_SEALED, /* full: the next number follows */
    MYELIN_SPOOL_CLOSED  /* the chain ends here */
};

struct myelin_spool_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_size;
    uint64_t size; /* of the file */
    uint32_t number;
    uint32_t pid;
    uint32_t attempt;
    uint32_t checksum; /* of the 64 bytes up to `dropped`, with 0 in its own place */
    uint64_t nonce;
    int64_t realtime_ns, monotonic_ns; /* when the segment was made */
    uint64_t dropped;                  /* in this chain, so far */
    uint32_t state;
    uint32_t unused[13];
};

/* Both halves of a product of 128 bits, folded: its low half alone would carry the high bits of a
 * word nowhere. */
static inline uint64_t myelin_spool_mix(uint64_t h, uint64_t word) {
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    const wide product = (wide)(h ^ word) * MYELIN_SPOOL_MIXER;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    const uint64_t x = h ^ word, a = x >> 32, b = x & 0xffffffff;
    const uint64_t c = MYELIN_SPOOL_MIXER >> 32, d = MYELIN_SPOOL_MIXER & 0xffffffff;
    const uint64_t middle = (b * d >> 32) + (a * d & 0xffffffff) + (b * c & 0xffffffff);

    return x * MYELIN_SPOOL_MIXER ^ (a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32));
#endif
}

/* Of n bytes, taken as 64-bit words, the last one filled up with zeros. */
static inline uint32_t myelin_spool_checksum(uint64_t seed, const void *bytes, size_t n) {
    const unsigned char *at = (const unsigned char *)bytes;
    uint64_t h = seed, word;

    for (; n >= sizeof word; at += sizeof word, n -= sizeof word) {
        memcpy(&word, at, sizeof word);
        h = myelin_spool_mix(h, word);
    }
    if (n) {
        word = 0;
        memcpy(&word, at, n);
        h = myelin_spool_mix(h, word);
    }
    return (uint32_t)h;
}

static inline uint32_t myelin_spool_head(unsigned type, size_t length) {
    return (uint32_t)type << 24 | (uint32_t)length;
}

/* The word that makes a record valid: head << 32 | checksum. Never 0, because no type is 0. The
 * checksum also depends on the segment, on the place in it and on the head. */
static inline uint64_t myelin_spool_word(uint64_t nonce, uint64_t offset, uint32_t head,
                                         const void *payload) {
    const uint64_t seed = myelin_spool_mix(nonce, offset << 32 | head);

    return (uint64_t)head << 32 | myelin_spool_checksum(seed, payload, head & 0xffffff);
}

/* Bytes that a payload takes with its word in front. */
static inline size_t myelin_spool_room(size_t length) {
    return 8 + ((length + 7) & ~(size_t)7);
}

/* What the times in NEXT records count from, in microseconds; and how far they can. */
static inline int64_t myelin_spool_epoch_us(const struct myelin_spool_header *header) {
    return header->realtime_ns / 1000;
}
#define MYELIN_SPOOL_NEXT_SPAN (INT64_C(1) << 48)
#endif
