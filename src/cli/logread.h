/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the log of a task piece by piece, with what its index says of each: when it came, and
 * where bytes were lost. For logs that are over and for those that grow: at the end of what is
 * there now a reader can be asked again later. Memory does not depend on the log.
 */
#ifndef CLI_LOGREAD_H
#define CLI_LOGREAD_H

#include "store/logindex.h"

enum logread_manner {
    LOGREAD_BYTES, /* as large pieces as fit; times do not matter */
    LOGREAD_TIMES, /* each piece is of one time */
};

#define LOGREAD_NO_TIME INT64_MIN /* there is no index, or not of this part */

struct logread {
    const char *directory;
    char task[24];
    enum logread_manner manner;
    bool is_over;     /* nothing is written any more: set by who knows */
    bool is_done;     /* nothing is to be read any more: for who reads several */
    bool is_left_out; /* nobody asked for this task */
    int fd;           /* -1: the task has not written yet */
    uint64_t offset;
    uint64_t limit;  /* nothing from here on is read; UINT64_MAX unless set */
    int64_t time_us; /* of the byte at the offset */
    uint64_t next;   /* the first record of the index that is not passed yet */
    struct logindex *index;
};

struct log_piece {
    int64_t time_us;
    size_t n;      /* bytes */
    uint64_t lost; /* with n == 0: so many bytes were lost here */
};

/* The directory is borrowed. */
void logread_init(struct logread *log, const char *directory, const char *task,
                  enum logread_manner manner);
void logread_release(struct logread *log);

/* Opens the log when it can be; false while there is none. */
bool logread_open(struct logread *log);

/* The next piece; false when there is nothing more now. */
bool logread_next(struct logread *log, char *bytes, size_t size, struct log_piece *piece);

/* The bytes that are there now. */
uint64_t logread_size(struct logread *log);

/* When the next piece came. */
int64_t logread_time(struct logread *log);

/* Where lines start. Each moves the reader forward only. */
void logread_skip_to_time(struct logread *log, int64_t time_us); /* first line not older */
void logread_skip_to_tail(struct logread *log, uint64_t n_lines);
void logread_skip_to_end(struct logread *log);

#endif
