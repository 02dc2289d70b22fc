/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of a home, $MYELIN_HOME/myelin.db: which runs wait, in which order, and which run
 * holds what of which machine.
 *
 * The order of the queue is that of run ids, which is the order in which runs were made.
 *
 * A row counts while its run has an owner (owner.h): the kernel ends the owner's lock with the
 * last process of the run, so nothing has to be tidied up after a crash. ledger_settle takes out
 * what is over; whoever reserves does so in the same transaction, so two runs never hold the
 * same thing, whoever was killed in between. Rows of other hosts are left alone and not shown.
 *
 * All of it can be made again: runs keep in their journals what they wait for and hold
 * (claim.h), and a new ledger begins with what living runs say there. So losing the file loses
 * nothing.
 *
 * Nothing waits here for longer than the `busy_ms` of ledger_open: another process in the way is
 * ERROR_UNAVAILABLE, and the caller comes again.
 */
#ifndef STORE_LEDGER_H
#define STORE_LEDGER_H

#include "base/vec.h"
#include "model/demand.h"
#include "store/database.h"
#include "store/rundir.h"

struct ledger;

enum { LEDGER_VERSION = 2 }; /* of its tables */

enum ledger_manner {
    LEDGER_TO_WRITE, /* is made where it is missing */
    LEDGER_TO_LOOK,  /* none is an empty one: *out is NULL, which all that look accept */
};

MUST_CHECK int ledger_open(const char *home, enum ledger_manner manner, int busy_ms,
                           struct ledger **out, struct error *err);
void ledger_close(struct ledger *ledger); /* NULL is nothing */
/* Changes what was said when it was opened. */
void ledger_set_busy(struct ledger *ledger, int busy_ms);

/* Whether the file that is open is not the ledger any more: somebody put it aside, or cut its -shm
 * short. Whoever keeps
 * one open asks inside each transaction, and opens it again then. */
bool ledger_was_moved(struct ledger *ledger);

/* Adds to ERROR_UNAVAILABLE which process is in the way, where the kernel tells. */
void ledger_blame(const char *home, struct error *err);

/* For the other tables of the same file (models.h), which have their own versions. */
struct database *ledger_database(struct ledger *ledger);

/* Checks that version and schema are those of a ledger, maybe with models, that this myelin can
 * read. Version 0 is an empty one. */
MUST_CHECK int ledger_check_tables(struct database *database, int *version, struct error *err);

/* A transaction for writing: no other writer is between these two. Fails if the schema is not that
 * of a ledger any more. */
MUST_CHECK int ledger_begin(struct ledger *ledger, struct error *err);
MUST_CHECK int ledger_commit(struct ledger *ledger, struct error *err);
void ledger_rollback(struct ledger *ledger);

/* Whether a run does not use anything any more; NULL: it is over when it has no owner. */
typedef bool (*ledger_is_over)(const char *home, uint64_t run);

/* Takes out the rows of this host whose run is over, and those that no myelin has written. Inside a
 * transaction. */
MUST_CHECK int ledger_settle(struct ledger *ledger, ledger_is_over is_over, struct error *err);

/* Replaces the rows of this host by what living runs claim, and those that died without a word and
 * may have left processes, which ledger_settle looks for. Inside a transaction. */
MUST_CHECK int ledger_rebuild(struct ledger *ledger, struct error *err);

/* Puts a run into the queue; what an older run of that id left is taken out. The caller owns
 * the run. Inside a transaction. */
MUST_CHECK int ledger_enter(struct ledger *ledger, uint64_t run, const struct demand *demand,
                            struct error *err);
/* Moves a run from the queue to those that hold something. Inside a transaction. */
MUST_CHECK int ledger_reserve(struct ledger *ledger, uint64_t run, const struct hold *holds,
                              size_t n, struct error *err);
/* Takes out all of a run. Alone, or inside a transaction. */
MUST_CHECK int ledger_forget(struct ledger *ledger, uint64_t run, struct error *err);

struct ledger_wait {
    uint64_t run;
    double since; /* seconds since the epoch, for people */
    struct demand demand;
};

/* This host's rows at one moment. */
struct ledger_view {
    struct arena arena;
    VEC(struct ledger_wait) queue; /* in order */
    VEC(struct hold) holds;        /* by run, then rank; machine is 0 */
};

/* Fills in a zeroed or released view. It may show runs that ledger_settle would take out. Rows that
 * no myelin has written, whoever wrote them, are left out. */
MUST_CHECK int ledger_read(struct ledger *ledger, struct ledger_view *view, struct error *err);
void ledger_view_release(struct ledger_view *view);

/* Whether a run that the ledger names still has an owner, as far as is known (owner.h). */
bool ledger_run_lives(const char *home, uint64_t run);

/* Whether SQLite's locks work on a file system of that kind (statfs); the error names the way
 * out. */
MUST_CHECK int ledger_check_filesystem(const char *home, long type, struct error *err);

#endif
