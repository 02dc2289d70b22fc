/* SPDX-License-Identifier: Apache-2.0 */
/* A spool in a directory of its own, and all that its segments hold, read with track/spool.h. */
#ifndef TESTS_SPOOLING_H
#define TESTS_SPOOLING_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "track/spool.h"

struct seen_point {
    char chain[40], name[MYELIN_NAME_MAX + 1];
    int64_t step, time_us;
    uint64_t bits; /* of the value: a NaN is equal to itself */
};

struct seen {
    VEC(struct seen_point) points;
    size_t files, records, names, invalid, bad;
    uint64_t dropped; /* summed over chains */
    uint32_t attempt;
    enum myelin_spool_state last_state;
    char record[64]; /* the beginning of the last one */
};

static inline void seen_release(struct seen *seen) {
    VEC_RELEASE(&seen->points);
    *seen = (struct seen){ 0 };
}

/* Reads a segment that is whole in memory. */
static inline enum spool_head see_segment(struct seen *seen, const char *chain, const void *bytes,
                                          size_t n) {
    const struct spool_window window = { bytes, 0, n };
    struct spool_reader reader;
    struct spool_item item;
    const enum spool_head head = spool_begin(&reader, bytes, n);

    if (head != SPOOL_HEAD_GOOD)
        return head;
    seen->attempt = reader.header.attempt;
    seen->last_state = (enum myelin_spool_state)reader.header.state;
    do {
        spool_next(&reader, &window, &item);
        seen->records += item.kind == SPOOL_ITEM_RECORD;
        seen->names += item.kind == SPOOL_ITEM_NAME;
        seen->invalid += item.kind == SPOOL_ITEM_INVALID;
        seen->bad += item.kind == SPOOL_ITEM_BAD;
        if (item.kind == SPOOL_ITEM_RECORD)
            snprintf(seen->record, sizeof seen->record, "%.*s", (int)item.json_n, item.json);
        for (size_t i = 0; item.kind == SPOOL_ITEM_POINTS && i < item.n; i++) {
            struct seen_point *point = VEC_PUSH(&seen->points);
            const double value = spool_item_value(&item, i);

            point->step = item.step;
            point->time_us = item.time_us;
            memcpy(&point->bits, &value, sizeof value);
            snprintf(point->chain, sizeof point->chain, "%s", chain);
            snprintf(point->name, sizeof point->name, "%s",
                     spool_item_name(&reader, &item, i)->text);
        }
    } while (item.kind < SPOOL_ITEM_NONE);
    spool_release(&reader);
    return head;
}

/* All segments of a directory, each chain in its order. */
static inline void see_spool(struct seen *seen, const char *directory) {
    struct dirent **entries;
    const int n = scandir(directory, &entries, NULL, alphasort);
    char chain[64] = "", path[512];
    uint64_t dropped = 0;

    *seen = (struct seen){ 0 };
    for (int i = 0; i < n; i++) {
        AUTO(buf) bytes = BUF_INIT(MYELIN_SPOOL_SIZE_MAX);
        struct spool_file file;
        struct error err;

        if (spool_file_parse(entries[i]->d_name, &file)) {
            snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
            if (file_read(path, &bytes, &err))
                fail_msg("%s", err.message);
            if (strncmp(chain, entries[i]->d_name, file.chain_n)) {
                seen->dropped += dropped;
                dropped = 0;
                snprintf(chain, sizeof chain, "%.*s", (int)file.chain_n, entries[i]->d_name);
            }
            see_segment(seen, chain, bytes.data, bytes.len);
            if (bytes.len >= sizeof(struct myelin_spool_header)) {
                struct myelin_spool_header header;

                memcpy(&header, bytes.data, sizeof header);
                dropped = header.dropped > dropped ? header.dropped : dropped;
            }
            seen->files++;
        }
        free(entries[i]);
    }
    seen->dropped += dropped;
    if (n >= 0)
        free(entries);
}

struct spooled {
    char path[64];
};

static inline void spooled_make(struct spooled *spool) {
    strcpy(spool->path, "/tmp/myelin-spool.XXXXXX");
    assert_non_null(mkdtemp(spool->path));
}

static inline void spooled_release(struct spooled *spool) {
    char command[128];

    snprintf(command, sizeof command, "rm -rf -- '%s'", spool->path);
    assert_int_equal(system(command), 0);
}

/* Runs a part of a test in a process of its own, which ends with 0 if all is well. Its number is
 * returned. */
static inline pid_t apart(int (*part)(void *context), void *context) {
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(part(context));
    return pid;
}

static inline void assert_ended_well(pid_t pid) {
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("the process was killed by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status))
        fail_msg("the process ended at its line %d", WEXITSTATUS(status));
}

/* For parts: the status is the line modulo 256, and never 0. */
#define REQUIRE(law)                                                                               \
    do {                                                                                           \
        if (!(law))                                                                                \
            return __LINE__ % 256 ? __LINE__ % 256 : 1;                                            \
    } while (0)

#endif
