/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fold: what the processes of a run have logged (runs/<id>/spool/<task>/, docs/spool.md)
 * becomes points of the run's series.
 *
 * A step reads what is new, commits it, and then removes the segments that are done with: those
 * that the commit covers and that nobody will write to any more, because they are sealed or because
 * their process is gone. It is called about once a second while tasks live, and until nothing is
 * left after they are gone. An idle step reads a few bytes for each process that logs.
 *
 * Exactly once: how far a chain (the segments of one process) was read is a mark, which is
 * committed together with the points. Whoever is killed in the middle of a step, at any
 * instruction, is followed by one who reads on from the marks.
 *
 * JSON records are given to the callback before the commit, so that none is lost; after a kill some
 * may be given again. They mean the same the second time, and (source, position) names each.
 *
 * A process is gone when nobody holds the lock on its segment and no process of its number exists
 * here. In another PID namespace the number may mean somebody else: the segment is then folded all
 * the same, and removed when the run is over.
 *
 * Nothing is removed that was not read. A segment in which something is damaged is set aside under
 * its name with FOLD_ASIDE behind it. A segment of another version of the format stays as it is,
 * and so do those behind it: a program that knows that version reads them.
 *
 * A mirror is the spool of processes elsewhere, which others write here: neither its locks nor its
 * process numbers say anything, and every process lives until the run is over.
 */
#ifndef TRACK_FOLD_H
#define TRACK_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "track/series.h"
#include "track/spool.h"

struct fold_record {
    enum myelin_kind kind;
    uint32_t rank, attempt;
    int64_t time_us;
    const char *json; /* n bytes as the process wrote them: nobody has parsed them yet */
    size_t n;
    const char *source; /* with position: which record it is */
    uint64_t position;
};

struct fold_given {
    const char *directory; /* the run's spool; may be missing yet */
    bool is_mirror;
    struct series_store *store;
    /* The rank of the task that logs into this folder, or -1: not a task, passed over. */
    int64_t (*rank)(void *context, const char *task);
    /* Returns 0, or -1: not now. The record is given again in the next step, and what its process
     * logged behind it waits. */
    int (*record)(void *context, const struct fold_record *record);
    void *context;
};

enum fold_extent {
    FOLD_LIVING, /* tasks may be at work */
    FOLD_OVER,   /* no process of the run is left: every chain ends where it ends */
};

/* What one step did. After the end of a run all is folded when a step says neither more nor refused
 * nor unread. */
struct fold_result {
    uint64_t points, records;
    uint64_t bad;     /* records that are damaged or make no sense, segments that are none */
    uint64_t others;  /* chains that wait because their segment is of another version */
    uint64_t lost;    /* segments that are missing */
    uint64_t dropped; /* points that processes could not keep */
    uint64_t refused; /* chains that wait because their record was refused */
    uint64_t unread;  /* segments that cannot be opened; tried again in the next step */
    bool more;        /* there is more to read at once: the step was long enough */
};

/* What was counted over the life of a run; kept with the series. */
struct fold_totals {
    uint64_t bad, lost, dropped, refused;
};

#define FOLD_ASIDE ".damaged"

/* What lies in a spool, by looking alone: of a run that is over, what could not be folded. */
struct fold_left {
    uint64_t segments; /* that can be read */
    uint64_t damaged;  /* that were set aside, or are no segments, or cannot be opened */
    uint64_t others;   /* of another version of the format */
    uint32_t version;  /* of one of those */
    uint64_t dropped;  /* points that their processes could not keep */
};
void fold_look(const char *directory, struct fold_left *out);

struct fold;

/* Copies what is given; the store stays the caller's and outlives the fold. */
struct fold *fold_new(const struct fold_given *given);
void fold_free(struct fold *fold); /* takes NULL */

/* Fails when the store cannot commit. Nothing is lost then, *out says what was read, and the next
 * step tries again; but where series_is_broken, make store and fold anew. */
MUST_CHECK int fold_step(struct fold *fold, enum fold_extent extent, struct fold_result *out,
                         struct error *err);

struct fold_totals fold_totals(const struct series_store *store);

#endif
