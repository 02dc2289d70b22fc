/* SPDX-License-Identifier: Apache-2.0 */
#include "store/logindex.h"

#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define GAP_BIT (1ull << 63)

void logindex_encode(const struct logindex_entry *entry, unsigned char out[LOGINDEX_RECORD]) {
    const uint64_t words[2] = { htole64((uint64_t)entry->time_us),
                                htole64(entry->offset | (entry->is_gap ? GAP_BIT : 0)) };

    memcpy(out, words, sizeof words);
}

struct logindex_entry logindex_decode(const unsigned char in[LOGINDEX_RECORD]) {
    uint64_t words[2];

    memcpy(words, in, sizeof words);
    return (struct logindex_entry){
        .time_us = (int64_t)le64toh(words[0]),
        .offset = le64toh(words[1]) & ~GAP_BIT,
        .is_gap = le64toh(words[1]) & GAP_BIT,
    };
}

void logindex_open(struct logindex *index, const char *directory, const char *task) {
    char path[PATH_MAX];

    index->fd = -1;
    index->n = index->window_n = index->window_at = 0;
    if (snprintf(path, sizeof path, "%s/%s.idx", directory, task) < (int)sizeof path)
        index->fd = file_open_regular(path, O_RDONLY, 0);
}

void logindex_close(struct logindex *index) {
    if (index->fd >= 0)
        close(index->fd);
    index->fd = -1;
}

/* Puts the record into the window, in its middle: who searches looks around it next. */
static bool load(struct logindex *index, uint64_t i) {
    const uint64_t half = sizeof index->window / LOGINDEX_RECORD / 2;
    struct stat st;
    ssize_t n;

    if (index->fd < 0 || fstat(index->fd, &st) < 0)
        return false;
    index->n = (uint64_t)st.st_size / LOGINDEX_RECORD;
    if (i >= index->n)
        return false;
    index->window_at = i > half ? i - half : 0;
    n = pread(index->fd, index->window, sizeof index->window,
              (off_t)(index->window_at * LOGINDEX_RECORD));
    index->window_n = n > 0 ? (size_t)n / LOGINDEX_RECORD : 0;
    return i < index->window_at + index->window_n;
}

bool logindex_get(struct logindex *index, uint64_t i, struct logindex_entry *out) {
    /* The last record may have changed since it was read: a gap grows in its place. */
    const bool is_held =
        i >= index->window_at && i < index->window_at + index->window_n && i + 1 < index->n;

    if (!is_held && !load(index, i))
        return false;
    *out = logindex_decode(index->window + (i - index->window_at) * LOGINDEX_RECORD);
    return true;
}

/* The first record in [from, to) that is no gap; `to` when there is none. Gaps follow each other
 * only with a record in between, so this looks at two. */
static uint64_t skip_gaps(struct logindex *index, uint64_t from, uint64_t to,
                          struct logindex_entry *out) {
    while (from < to && (!logindex_get(index, from, out) || out->is_gap))
        from++;
    return from;
}

enum key { BY_TIME, BY_OFFSET };

static uint64_t key_of(const struct logindex_entry *entry, enum key key) {
    return key == BY_TIME ? (uint64_t)entry->time_us : entry->offset;
}

/* The first record that is no gap and whose key is not below the bound. */
static uint64_t lower_bound(struct logindex *index, enum key key, uint64_t bound) {
    struct logindex_entry entry;
    uint64_t low = 0, high;

    load(index, 0); /* how many there are now */
    high = index->n;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const uint64_t at = skip_gaps(index, middle, high, &entry);

        if (at == high || key_of(&entry, key) >= bound)
            high = middle;
        else
            low = at + 1;
    }
    return skip_gaps(index, low, index->n, &entry);
}

uint64_t logindex_find_time(struct logindex *index, int64_t time_us) {
    return lower_bound(index, BY_TIME, time_us > 0 ? (uint64_t)time_us : 0);
}

bool logindex_find_offset(struct logindex *index, uint64_t offset, uint64_t *out) {
    struct logindex_entry entry;
    uint64_t i = lower_bound(index, BY_OFFSET, offset + 1);

    while (i > 0)
        if (logindex_get(index, --i, &entry) && !entry.is_gap) {
            *out = i;
            return true;
        }
    return false;
}
