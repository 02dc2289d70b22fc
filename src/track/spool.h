/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of spool segments (docs/spool.md), which processes of the user write: pure, over bytes
 * in memory, and ready for any bytes.
 *
 * A segment is read in windows, so that a large one need not be in memory, and so that what comes
 * later is read from where the last window ended:
 *
 *   spool_begin(&reader, first_bytes, n)           the header
 *   spool_next(&reader, &window, &item) ...        one item after the other, from reader.offset
 *
 * What a reader yields is what was written: a record counts only if its checksum is right for its
 * place in its segment. The first record that is not right ends the segment, because nobody knows
 * where the next one would begin.
 */
#ifndef TRACK_SPOOL_H
#define TRACK_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MYELIN_SPOOL_FORMAT
#include "base/vec.h"
#include "myelin.h"

/* A name that the segment defines. */
struct spool_name {
    char *text; /* NUL-terminated, valid UTF-8 without control characters; NULL: not defined */
    uint32_t length;
    bool has_step;
    int64_t step;  /* of its last point */
    uint32_t slot; /* the caller's; UINT32_MAX until he sets it */
};

struct spool_reader {
    struct myelin_spool_header header;
    uint64_t offset; /* of the next record */
    VEC(struct spool_name) names;
};

enum spool_head {
    SPOOL_HEAD_GOOD,
    SPOOL_HEAD_NOTHING, /* nothing is there yet */
    SPOOL_HEAD_OTHER,   /* of a version that is not known here */
    SPOOL_HEAD_BAD,     /* not a segment, or damaged */
};

/* Bytes of the segment, [from, from + n). */
struct spool_window {
    const unsigned char *bytes;
    uint64_t from;
    size_t n;
};

enum spool_item_kind {
    SPOOL_ITEM_POINTS,
    SPOOL_ITEM_RECORD,  /* JSON */
    SPOOL_ITEM_NAME,    /* a name is defined: nothing to do */
    SPOOL_ITEM_INVALID, /* as it was written, but it makes no sense: passed over */
    SPOOL_ITEM_NONE,    /* nothing is there yet, or the segment is full */
    SPOOL_ITEM_SHORT,   /* the window ends before the record does */
    SPOOL_ITEM_BAD,     /* damaged: what follows in this segment is lost */
};

/* Pointers are into the window. */
struct spool_item {
    enum spool_item_kind kind;
    int64_t time_us;

    int64_t step; /* POINTS */
    size_t n;
    const unsigned char *numbers, *values; /* unaligned: spool_item_number, spool_item_value */
    uint32_t number;                       /* the only one, where numbers is NULL */

    enum myelin_kind record; /* RECORD */
    const char *json;
    size_t json_n;
};

/* Begins a segment. On anything but GOOD the reader is as after spool_release. */
enum spool_head spool_begin(struct spool_reader *reader, const void *bytes, size_t n);
void spool_release(struct spool_reader *reader);

/* The item at reader->offset, which moves behind it; NONE, SHORT and BAD leave it. */
void spool_next(struct spool_reader *reader, const struct spool_window *window,
                struct spool_item *out);

/* The i-th point's name, never NULL and always defined, and its value. */
struct spool_name *spool_item_name(struct spool_reader *reader, const struct spool_item *item,
                                   size_t i);
double spool_item_value(const struct spool_item *item, size_t i);

/* The parts of a segment's file name, <pid>-<start>-<number>.spool; false if it is none. */
struct spool_file {
    uint32_t number;
    size_t chain_n; /* the file name's first bytes, up to the number, name the chain */
};
bool spool_file_parse(const char *file_name, struct spool_file *out);

/* The name of a link that has the count of a process without a segment,
 * "<task>.dropped-<pid>-<start>", maybe with ".part": its parts, within the name. */
struct spool_count {
    size_t task_n;
    const char *chain; /* "<pid>-<start>", chain_n bytes */
    size_t chain_n;
};
bool spool_count_parse(const char *file_name, struct spool_count *out);

#endif
