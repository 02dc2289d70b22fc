/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the SQLite databases of a home. No other file calls sqlite3_open.
 *
 * In a shared home every member of the group may write a database, so its content is hostile until
 * it is checked:
 *
 *   1. The file and what SQLite keeps beside it (-wal, -shm, -journal) are regular files. Symbolic
 *      links are not followed, and a FIFO does not block: both are refused where SQLite calls
 *      open(2), so nobody can swap a file after a check.
 *   2. SQLite runs nothing that the schema brings: triggers and views are off, functions in the
 *      schema are not trusted, extensions are not loaded.
 *   3. The schema consists of exactly the tables and indexes that we create
 *      (database_check_schema).
 *   4. Everything ends: values, expressions and the steps of one statement are limited, and no call
 *      waits longer than `busy_ms` for a lock.
 *
 * Callers check each value against its grammar where they read it; the readers are at the end.
 */
#ifndef STORE_DATABASE_H
#define STORE_DATABASE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

/* What messages say about a database. */
struct database_kind {
    const char *file;          /* "myelin.db" */
    const char *noun;          /* "ledger" */
    const char *denied_advice; /* ends the sentence "cannot write the ledger 'X' (why)" */
    const char *damage_advice; /* ends the sentence "the ledger 'X' is damaged (why)" */
    bool
        is_private; /* in a shared home each user has one: index.1001.db, which nobody else reads */
};
extern const struct database_kind database_ledger, database_index;

struct database {
    struct sqlite3 *db;
    const struct database_kind *kind;
    char path[PATH_MAX];
    uint64_t n_steps;  /* of the statement that runs, as far as the progress handler counted */
    unsigned n_losses; /* mapping_losses() when it was opened */
    bool is_damaged;   /* a call failed because the file is not a sound database of its kind */
};

enum database_mode {
    DATABASE_CREATE,    /* with the mode of a shared home (sharing.h) */
    DATABASE_EXISTING,  /* to read and to write */
    DATABASE_UNCHANGED, /* only to read, in a home that can only be read */
    DATABASE_IN_MEMORY,
};

/* The name of its file, or of one beside it, in a home. */
struct database_name {
    char text[48];
};
struct database_name database_name(const char *home, const struct database_kind *kind,
                                   const char *suffix);

/* Opens the database of that kind in a home. The caller zeroes *database before and closes it also
 * after a failure, which leaves is_damaged. */
MUST_CHECK int database_open(struct database *database, const char *home,
                             const struct database_kind *kind, enum database_mode mode, int busy_ms,
                             struct error *err);
void database_close(struct database *database);

/* Checks that a database and the files beside it are regular files that this process may use. A
 * file that is missing is no problem. */
MUST_CHECK int database_check_files(const struct database_kind *kind, const char *path,
                                    struct error *err);

/* What SQLite reports as a sentence with a way out. Returns -1. */
int database_fail(struct database *database, int code, struct error *err);
/* The same for content that is not ours. Returns -1. */
int database_reject(struct database *database, struct error *err, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Names the process that holds the lock, if the error is ERROR_UNAVAILABLE and the kernel tells. */
void database_blame(const char *home, const struct database_kind *kind, struct error *err);

/* ---- statements ---- */

/* Whether another process cut short what this one has mapped (mapping.h): every call fails with
 * ERROR_UNAVAILABLE until the database is opened again. */
bool database_is_lost(const struct database *database);

MUST_CHECK int database_execute(struct database *database, const char *sql, struct error *err);
MUST_CHECK int database_prepare(struct database *database, const char *sql,
                                struct sqlite3_stmt **out, struct error *err);
/* Runs a statement that returns no rows, and finalizes it. */
MUST_CHECK int database_finish(struct database *database, struct sqlite3_stmt *statement,
                               struct error *err);
/* Gives a statement that is kept and run again its full number of steps. */
void database_rearm(struct database *database);

/* PRAGMA user_version. */
MUST_CHECK int database_version(struct database *database, int *out, struct error *err);

/* ---- the schema ---- */

/* CREATE statements that a schema has together. */
struct database_tables {
    const char *const *sql;
    size_t n; /* at most 32 */
    bool is_optional;
};

/* Checks that the schema is these tables and indexes, and nothing else. Blanks do not count:
 * versions of SQLite differ there. */
MUST_CHECK int database_check_schema(struct database *database,
                                     const struct database_tables *tables, size_t n,
                                     struct error *err);
/* Whether two SQL texts are the same but for blanks. Pure. */
bool database_is_same_sql(const char *a, const char *b);

/* ---- replacing it ---- */

/* The database and the files beside it, in the order in which they are moved or removed: a new
 * database must not find the changes of an old one. */
enum { DATABASE_FILES = 4 };
extern const char *const database_suffixes[DATABASE_FILES];

/* Checks that this process may rename and remove the database: in a directory with the sticky bit
 * only the owners of file and directory, and root, may. The error names whom to ask. */
MUST_CHECK int database_check_replaceable(const char *home, const struct database_kind *kind,
                                          struct error *err);

/* Empties a database in place, outside of a transaction: no tables, version 0. For one that cannot
 * be replaced, because its files belong to several users; it may be damaged. */
MUST_CHECK int database_reset(struct database *database, struct error *err);

/* ---- values ---- */

/* Reads a column. False: it has another type or is outside of the bounds. */
bool database_integer(struct sqlite3_stmt *statement, int column, int64_t least, int64_t most,
                      int64_t *out);
/* NULL: it is not a text, has a NUL inside, or is longer than `most` bytes. Valid until the next
 * step. */
const char *database_text(struct sqlite3_stmt *statement, int column, size_t most);

#endif
