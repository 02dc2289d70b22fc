/* SPDX-License-Identifier: Apache-2.0 */
#include "track/chain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum {
    WINDOW_FIRST = 4 << 10, /* what an idle process costs */
    WINDOW_NEXT = 64 << 10,
};

/* What came of looking at a segment. */
enum segment_end {
    SEGMENT_DONE,    /* nothing will be added to it */
    SEGMENT_CLOSED,  /* likewise, and no other follows */
    SEGMENT_WAITS,   /* more may come */
    SEGMENT_PAUSED,  /* there is more, for later */
    SEGMENT_MISSING, /* no such file */
};

const char *chain_path(const struct chain *chain, const char *directory, uint32_t number,
                       char *buffer, size_t n) {
    snprintf(buffer, n, "%s/%s-%06u%s", directory, chain->name, number, MYELIN_SPOOL_SUFFIX);
    return buffer;
}

const char *chain_dropped_source(const struct chain *chain, char *buffer, size_t n) {
    snprintf(buffer, n, "%s dropped", chain->source);
    return buffer;
}

const char *chain_aside_source(const struct chain *chain, uint32_t number, char *buffer, size_t n) {
    snprintf(buffer, n, "%s aside %06u", chain->source, number);
    return buffer;
}

/* Adds to one of the run's totals. */
static void count_total(struct series_store *store, const char *total, uint64_t n) {
    const uint64_t before = series_marked(store, total);

    if (n > 0)
        series_mark(store, total, n > UINT64_MAX - before ? UINT64_MAX : before + n);
}

void chain_init(struct chain *chain, const char *task, uint32_t rank, const char *name,
                size_t name_n, uint32_t number, const struct series_store *store) {
    char buffer[PATH_MAX];
    uint64_t marked;

    *chain = (struct chain){ .name = strndup(name, name_n), .rank = rank };
    if (!chain->name || asprintf(&chain->source, "%s/%s", task, chain->name) < 0)
        abort();
    chain->pid = (pid_t)strtol(chain->name, NULL, 10);
    chain->highest = number;
    chain->dropped = series_marked(store, chain_dropped_source(chain, buffer, sizeof buffer));
    marked = series_marked(store, chain->source);
    chain->number = chain->covered = (uint32_t)(marked >> 32);
    chain->resume = (uint32_t)marked;
}

void chain_release(struct chain *chain) {
    spool_release(&chain->reader);
    free(chain->name);
    free(chain->source);
}

/* ---- what is found */

static void mark(struct chain *chain, struct series_store *store) {
    const uint64_t position = (uint64_t)chain->number << 32 | chain->resume;

    if (series_marked(store, chain->source) != position)
        series_mark(store, chain->source, position);
}

/* Something in the segment cannot be read. The mark is committed with what could, so the segment
 * is set aside then and not removed, whoever does it. */
static void count_bad(struct chain *chain, struct chain_reading *reading) {
    char buffer[PATH_MAX];

    reading->result->bad++;
    count_total(reading->given->store, TOTAL_BAD, 1);
    series_mark(reading->given->store,
                chain_aside_source(chain, chain->number, buffer, sizeof buffer), 1);
    chain->has_set_aside = true;
}

static void note_dropped(struct chain *chain, uint64_t dropped, struct chain_reading *reading) {
    const uint64_t news = dropped - chain->dropped;
    char buffer[PATH_MAX];

    if (dropped <= chain->dropped)
        return;
    chain->dropped = dropped;
    reading->result->dropped += news;
    count_total(reading->given->store, TOTAL_DROPPED, news);
    series_mark(reading->given->store, chain_dropped_source(chain, buffer, sizeof buffer),
                chain->dropped);
}

static void add_points(struct chain *chain, const struct spool_item *item,
                       struct chain_reading *reading) {
    struct series_store *store = reading->given->store;

    for (size_t i = 0; i < item->n; i++) {
        struct spool_name *name = spool_item_name(&chain->reader, item, i);

        if (name->slot == UINT32_MAX)
            name->slot = series_find(store, name->text, name->length, chain->rank,
                                     chain->reader.header.attempt);
        series_add(store, name->slot, item->step, item->time_us, spool_item_value(item, i));
    }
    reading->result->points += item->n;
}

static int give_record(const struct chain *chain, const struct spool_item *item, uint64_t offset,
                       struct chain_reading *reading) {
    const struct fold_record record = {
        .kind = item->record,
        .rank = chain->rank,
        .attempt = chain->reader.header.attempt,
        .time_us = item->time_us,
        .json = item->json,
        .n = item->json_n,
        .source = chain->source,
        .position = (uint64_t)chain->number << 32 | offset,
    };

    if (reading->given->record(reading->given->context, &record)) {
        reading->result->refused++;
        return -1;
    }
    reading->result->records++;
    return 0;
}

/* Returns -1 when the item is not to be passed yet. */
static int deliver(struct chain *chain, const struct spool_item *item, uint64_t offset,
                   struct chain_reading *reading) {
    if (offset < chain->resume)
        return 0; /* read again for its names and steps alone */
    if (item->kind == SPOOL_ITEM_RECORD && give_record(chain, item, offset, reading))
        return -1;
    if (item->kind == SPOOL_ITEM_POINTS)
        add_points(chain, item, reading);
    else if (item->kind == SPOOL_ITEM_INVALID)
        count_bad(chain, reading);
    chain->resume = (uint32_t)chain->reader.offset;
    return 0;
}

/* ---- one segment */

static ssize_t read_at(int fd, void *to, size_t n, uint64_t offset) {
    ssize_t got;

    do
        got = pread(fd, to, n, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got < 0 ? 0 : got;
}

enum window_end { WINDOW_EMPTY, WINDOW_SHORT, WINDOW_BAD, WINDOW_PAUSED, WINDOW_REFUSED };

static enum window_end read_window(struct chain *chain, const struct spool_window *window,
                                   struct chain_reading *reading) {
    for (;;) {
        const uint64_t offset = chain->reader.offset;
        struct spool_item item;

        if (series_is_full(reading->given->store))
            return WINDOW_PAUSED;
        spool_next(&chain->reader, window, &item);
        switch (item.kind) {
        case SPOOL_ITEM_NONE: return WINDOW_EMPTY;
        case SPOOL_ITEM_SHORT: return WINDOW_SHORT;
        case SPOOL_ITEM_BAD: return WINDOW_BAD;
        case SPOOL_ITEM_POINTS:
        case SPOOL_ITEM_RECORD:
        case SPOOL_ITEM_NAME:
        case SPOOL_ITEM_INVALID:
            if (deliver(chain, &item, offset, reading)) {
                chain->reader.offset = offset;
                return WINDOW_REFUSED;
            }
        }
    }
}

/* Reads until nothing is there (EMPTY), or as far as it may be read now (PAUSED, REFUSED). A record
 * that seems damaged is read a second time: the first time it may have been read while it was
 * written. */
static enum window_end read_records(struct chain *chain, int fd, struct chain_reading *reading) {
    size_t want = WINDOW_FIRST;
    uint64_t suspect = 0;

    while (chain->resume != CHAIN_SPOILT) {
        const uint64_t from = chain->reader.offset;
        const ssize_t got = read_at(fd, reading->buffer, want, from);
        const struct spool_window window = { reading->buffer, from, (size_t)got };
        const enum window_end end = read_window(chain, &window, reading);
        const bool is_stuck = chain->reader.offset == from;

        reading->budget -= (int64_t)(chain->reader.offset - from);
        if (end == WINDOW_EMPTY || end == WINDOW_PAUSED || end == WINDOW_REFUSED)
            return end;
        if (reading->budget <= 0 && !is_stuck)
            return WINDOW_PAUSED;
        if (end == WINDOW_SHORT && !(is_stuck && (size_t)got < want)) {
            want = is_stuck ? reading->buffer_n : WINDOW_NEXT;
            continue;
        }
        if (suspect == chain->reader.offset) {
            count_bad(chain, reading);
            chain->resume = CHAIN_SPOILT;
        }
        suspect = chain->reader.offset;
    }
    return WINDOW_EMPTY;
}

static bool process_is_gone(const struct chain *chain, const struct chain_reading *reading,
                            int fd) {
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (reading->given->is_mirror)
        return false;
    if (fd >= 0 && !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK)
        return false;
    return chain->pid <= 0 || (kill(chain->pid, 0) && errno == ESRCH);
}

/* Reads the header; the first time, it begins the segment with it. */
static enum spool_head load(struct chain *chain, int fd, struct myelin_spool_header *header) {
    struct spool_reader now;
    const ssize_t got = read_at(fd, header, sizeof *header, 0);
    enum spool_head head = spool_begin(&now, header, (size_t)got);

    if (head == SPOOL_HEAD_GOOD && header->number != chain->number)
        head = SPOOL_HEAD_BAD;
    if (head != SPOOL_HEAD_GOOD)
        *header = (struct myelin_spool_header){ .version = header->version };
    else if (!chain->is_loaded) {
        chain->reader = now;
        chain->is_loaded = true;
    }
    return head;
}

/* Whether a segment without a header holds nothing at all: after a power cut the header may be
 * missing and records be there. */
static bool is_blank(int fd, struct chain_reading *reading) {
    const ssize_t got = read_at(fd, reading->buffer, reading->buffer_n, 0);

    return got == 0 || (reading->buffer[0] == 0 &&
                        !memcmp(reading->buffer, reading->buffer + 1, (size_t)got - 1));
}

static void spoil(struct chain *chain, struct chain_reading *reading) {
    if (chain->resume == CHAIN_SPOILT)
        return;
    count_bad(chain, reading);
    chain->resume = CHAIN_SPOILT;
}

static enum segment_end look(struct chain *chain, int fd, struct chain_reading *reading) {
    const uint32_t before = chain->resume;
    bool is_gone = reading->extent == FOLD_OVER;

    for (;;) {
        struct myelin_spool_header header;
        enum spool_head head = load(chain, fd, &header);

        /* It stays where it is, and the chain waits: a program that knows the version reads on. */
        if (head == SPOOL_HEAD_OTHER) {
            reading->result->others++;
            return SEGMENT_WAITS;
        }
        if (head == SPOOL_HEAD_BAD)
            spoil(chain, reading);
        if (chain->is_loaded && head == SPOOL_HEAD_GOOD) {
            const enum window_end end = read_records(chain, fd, reading);

            if (end != WINDOW_EMPTY)
                return end == WINDOW_PAUSED ? SEGMENT_PAUSED : SEGMENT_WAITS;
        }
        if (chain->is_loaded && chain->reader.offset < chain->resume)
            spoil(chain, reading); /* shorter than it was: somebody changed it */
        note_dropped(chain, header.dropped, reading);
        if (header.state == MYELIN_SPOOL_CLOSED)
            return SEGMENT_CLOSED;
        if (header.state == MYELIN_SPOOL_SEALED || is_gone ||
            (head != SPOOL_HEAD_GOOD && chain->highest > chain->number)) {
            if (head == SPOOL_HEAD_NOTHING && !is_blank(fd, reading))
                spoil(chain, reading);
            return SEGMENT_DONE;
        }
        if (chain->resume != before || !process_is_gone(chain, reading, fd))
            return SEGMENT_WAITS;
        is_gone = true; /* what it wrote between the read and its end is read now */
    }
}

static enum segment_end read_segment(struct chain *chain, struct chain_reading *reading) {
    char path[PATH_MAX];
    struct stat st;
    enum segment_end end;
    const int fd = file_open_linkless(
        chain_path(chain, reading->directory, chain->number, path, sizeof path), O_RDONLY, 0);

    if (fd < 0 && errno == ENOENT)
        return SEGMENT_MISSING;
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        reading->result->unread++;
        return SEGMENT_WAITS;
    }
    end = look(chain, fd, reading);
    close(fd);
    return end;
}

/* ---- the chain */

static void go_on(struct chain *chain) {
    spool_release(&chain->reader);
    chain->is_loaded = false;
    chain->number++;
    chain->resume = 0;
}

static void count_lost(struct chain_reading *reading) {
    reading->result->lost++;
    count_total(reading->given->store, TOTAL_LOST, 1);
}

/* Whether a segment that is not there ends the chain. Segments are made in order, so one that is
 * missing below another was there. */
static bool missing(struct chain *chain, struct chain_reading *reading) {
    if (chain->number < chain->highest) {
        if (chain->resume != CHAIN_SPOILT)
            count_lost(reading);
        go_on(chain);
        return false;
    }
    if (reading->extent != FOLD_OVER && !process_is_gone(chain, reading, -1))
        return true;
    chain->is_over = true;
    /* It was read from, and neither it nor a commit says that it was done. */
    if (chain->is_loaded && !reading->given->is_mirror)
        count_lost(reading);
    return true;
}

bool chain_read(struct chain *chain, struct chain_reading *reading) {
    bool is_paused = false, is_waiting = false;

    note_dropped(chain, chain->counted, reading);
    while (!chain->is_over && !is_paused && !is_waiting) {
        switch (read_segment(chain, reading)) {
        case SEGMENT_CLOSED: chain->is_over = true; /* fall through */
        case SEGMENT_DONE: go_on(chain); break;
        case SEGMENT_WAITS: is_waiting = true; break;
        case SEGMENT_PAUSED: is_paused = true; break;
        case SEGMENT_MISSING: is_waiting = missing(chain, reading); break;
        }
        mark(chain, reading->given->store);
    }
    if (chain->highest < chain->number && !chain->is_over)
        chain->highest = chain->number;
    return is_paused;
}
