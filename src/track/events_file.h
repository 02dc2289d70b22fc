/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event files of TensorBoard, as TensorFlow, PyTorch and others write them: records to numbers,
 * and numbers to records. Pure, over bytes in memory, and ready for any bytes.
 *
 * A file is a row of records:
 *
 *   u64 length, u32 masked CRC-32C of these 8 bytes, the data, u32 masked CRC-32C of the data
 *
 * The data is a message Event in the encoding of protocol buffers. What is read of it are scalars:
 * a `simple_value`, or a tensor without dimensions of a type of numbers, whose metadata, where
 * there are any, name the plugin "scalars" (who writes many often says so in the first only).
 * Everything else, histograms and images and what is not known here, is passed over.
 *
 * What is yielded is what was written: data counts only if both sums are right.
 *   - Sum of the data wrong: this record is lost, the next one is where the length says.
 *   - Sum of the length wrong: nobody knows where the next record begins. It is looked for, byte by
 *     byte: the next place where a length has its right sum.
 *   - The bytes end before the record does: it may be in the making, and more bytes are waited for.
 */
#ifndef TRACK_EVENTS_FILE_H
#define TRACK_EVENTS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "track/bytes.h"
#include "track/point.h"

enum {
    EVENTS_HEAD = 12,              /* bytes before the data: length and its sum */
    EVENTS_RECORD_MOST = 16 << 20, /* longer ones hold graphs and images: they are not read */
};

enum events_kind {
    EVENTS_RECORD,
    EVENTS_BAD,   /* the data is damaged */
    EVENTS_LOST,  /* no record begins here */
    EVENTS_LARGE, /* over EVENTS_RECORD_MOST: to pass over, once the file is that long */
    EVENTS_SHORT, /* the bytes end before the record does */
};

struct events_record {
    enum events_kind kind;
    /* Bytes of the file that it takes, over 0. LARGE: that may be more than were given. SHORT: as
     * many have to be given, at least; more than were. */
    uint64_t room;
    const unsigned char *data; /* RECORD: into the bytes given */
    size_t n;
};

/* What stands at the beginning of these bytes. */
struct events_record events_next(const unsigned char *bytes, size_t n);

/* A tag is not terminated, and any bytes; it is not empty. */
typedef void events_visit(void *context, const char *tag, size_t n, const struct point *point);

/* Visits the scalars of a record. False: it is no Event; then nothing was visited. */
bool events_decode(const unsigned char *data, size_t n, events_visit *visit, void *context);

/* Appends a record: the one that a file begins with, and one with a scalar. The value is written as
 * a `simple_value`, which all readers know: a float of 32 bits. */
void events_put_version(struct bytes *out, int64_t time_us);
void events_put_scalar(struct bytes *out, const char *tag, const struct point *point);

#endif
