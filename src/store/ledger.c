/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ledger.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/claim.h"
#include "store/host.h"
#include "store/models.h"
#include "store/owner.h"

enum { LOOK_ROOM = 128 * 1024 };

struct ledger {
    struct database database;
    char *home;
    char host[HOST_TEXT], boot[BOOT_TEXT];
};

#define QUEUE                                                                                      \
    "CREATE TABLE queue (run INTEGER PRIMARY KEY, host TEXT NOT NULL, boot TEXT NOT NULL,"         \
    " since REAL NOT NULL, demand TEXT NOT NULL)"
#define RESERVATIONS(more)                                                                         \
    "CREATE TABLE reservations (run INTEGER NOT NULL, rank INTEGER NOT NULL, host TEXT NOT NULL,"  \
    " boot TEXT NOT NULL, since REAL NOT NULL, cpu INTEGER NOT NULL, memory INTEGER NOT NULL,"     \
    " tpu INTEGER NOT NULL, gpus INTEGER NOT NULL" more ", PRIMARY KEY (run, rank)) WITHOUT ROWID"

/* What makes a ledger of version i one of version i + 1. A row is never changed once it was
 * released: what comes later is a new row. */
static const char *const migrations[] = {
    QUEUE ";" RESERVATIONS("") ";",
    /* The words of a set of CPUs, or nothing. */
    "ALTER TABLE reservations ADD COLUMN cpus BLOB;",
};

/* The schema that each version has then, as SQLite keeps it. */
static const char *const tables_1[] = { QUEUE, RESERVATIONS("") };
static const char *const tables_2[] = { QUEUE, RESERVATIONS(", cpus BLOB") };
static const struct database_tables tables[] = {
    { 0 },
    { .sql = tables_1, .n = ARRAY_LEN(tables_1) },
    { .sql = tables_2, .n = ARRAY_LEN(tables_2) },
};

static_assert(ARRAY_LEN(migrations) == LEDGER_VERSION, "each version has its migration");
static_assert(ARRAY_LEN(tables) == LEDGER_VERSION + 1, "the schema of each version is known");

struct database *ledger_database(struct ledger *ledger) {
    return &ledger->database;
}

void ledger_blame(const char *home, struct error *err) {
    database_blame(home, &database_ledger, err);
}

int ledger_check_filesystem(const char *home, long type, struct error *err) {
    static const struct {
        long type;
        const char *name;
    } refused[] = {
        { NFS_SUPER_MAGIC, "NFS" },
        { SMB_SUPER_MAGIC, "SMB" },
        { CIFS_SUPER_MAGIC, "CIFS" },
        { SMB2_SUPER_MAGIC, "SMB" },
    };

    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (refused[i].type == (type & 0xffffffffL))
            return error_set(err, ERROR_INVALID,
                             "'%.200s' is on %s, where locks cannot be relied on, and a ledger of "
                             "reservations needs them: set MYELIN_HOME to a directory on a disk of "
                             "this machine",
                             home, refused[i].name);
    return 0;
}

/* ---- rows ---- */

enum {
    ROWS_MOST = 1 << 20,
    DEMANDS_MOST = 64 << 20, /* bytes, of all rows */
};

/* What a row has that we wrote. Other rows of this host do not count, and ledger_settle removes
 * them. The bound of amounts keeps the sum over ROWS_MOST rows within 63 bits. */
#define RUN_AND_SINCE                                                                              \
    " typeof(run) = 'integer' AND run BETWEEN 1 AND 999999999 AND typeof(since) = 'real'"          \
    " AND since BETWEEN -1e12 AND 1e12"
#define AMOUNT(column)                                                                             \
    " AND typeof(" column ") = 'integer' AND " column " BETWEEN 0 AND 4398046511104"
#define SOUND_WAIT "(" RUN_AND_SINCE " AND typeof(demand) = 'text')"
#define SOUND_HOLD                                                                                 \
    "(" RUN_AND_SINCE                                                                              \
    " AND typeof(rank) = 'integer' AND rank BETWEEN -1 AND 4294967295" AMOUNT("cpu")               \
        AMOUNT("memory") AMOUNT("tpu") " AND typeof(gpus) = 'integer')"

static_assert(HOLD_OF_SEVERAL == -1, "the least rank of SOUND_HOLD");

/* ---- times ---- */

/* What `since` is in the tables. A row counts only within its boot, and on this clock nobody can
 * make it older or younger. */
static double now(void) {
    return (double)clock_monotonic_us() / 1e6;
}

/* The same as a time on the wall clock as it goes now. */
static double on_the_wall(double since) {
    return (double)(clock_wall_us() - clock_monotonic_us()) / 1e6 + since;
}

/* And back. */
static double on_our_clock(double since) {
    return since - (double)(clock_wall_us() - clock_monotonic_us()) / 1e6;
}

/* ---- opening ---- */

int ledger_check_tables(struct database *database, int *version, struct error *err) {
    struct database_tables expected[2];
    int found;

    if (database_version(database, &found, err))
        return -1;
    if (found < 0)
        return database_reject(database, err, "its version is %d", found);
    if (found > LEDGER_VERSION)
        return error_set(err, ERROR_INVALID,
                         "the ledger '%.150s' was made by a newer myelin (version %d, this one "
                         "knows %d): use that one, or another MYELIN_HOME; 'myelin reindex' puts "
                         "it aside and makes one of this version",
                         database->path, found, LEDGER_VERSION);
    expected[0] = tables[found];
    expected[1] = models_tables;
    if (database_check_schema(database, expected, found == 0 ? 1 : 2, err))
        return -1;
    *version = found;
    return 0;
}

/* Inside a transaction: nobody else does the same. A new one is never empty while runs go on: the
 * one before it may have been lost, and what they hold is still held. */
static int migrate(struct ledger *ledger, struct error *err) {
    char set[64];
    bool is_new;
    int version;

    if (ledger_check_tables(&ledger->database, &version, err))
        return -1;
    is_new = version == 0;
    for (; version < LEDGER_VERSION; version++)
        if (database_execute(&ledger->database, migrations[version], err))
            return -1;
    if (is_new && ledger_rebuild(ledger, err))
        return -1;
    snprintf(set, sizeof set, "PRAGMA user_version = %d", version);
    return database_execute(&ledger->database, set, err);
}

/* Version and schema of one moment: another process may be making the tables. */
static int look_at_tables(struct ledger *ledger, int *version, struct error *err) {
    int status;

    if (database_execute(&ledger->database, "BEGIN", err))
        return -1;
    status = ledger_check_tables(&ledger->database, version, err);
    ledger_rollback(ledger);
    return status;
}

static int bring_up_to_date(struct ledger *ledger, struct error *err) {
    int version;

    if (look_at_tables(ledger, &version, err))
        return -1;
    if (version == LEDGER_VERSION)
        return 0;
    if (database_execute(&ledger->database, "PRAGMA journal_mode = WAL", err) ||
        database_execute(&ledger->database, "BEGIN IMMEDIATE", err))
        return -1;
    if (migrate(ledger, err) || ledger_commit(ledger, err)) {
        ledger_rollback(ledger);
        return -1;
    }
    return 0;
}

/* SQLite puts a file of 32 KiB beside the ledger, also to read it. */
static bool has_no_room(const char *home) {
    struct statvfs disk;

    return statvfs(home, &disk) == 0 && disk.f_blocks > 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize < LOOK_ROOM;
}

/* In a home that can only be read, or is full, SQLite cannot put its lock file beside the ledger.
 * One that was closed whole, without changes of its own in a -wal, is read as it is. */
static bool can_only_be_read(const char *home, const char *path) {
    char wal[PATH_MAX + 8];

    snprintf(wal, sizeof wal, "%s-wal", path);
    return access(wal, F_OK) < 0 &&
           (faccessat(AT_FDCWD, home, W_OK, AT_EACCESS) < 0 || has_no_room(home));
}

static int open_database(struct ledger *ledger, enum database_mode mode, int busy_ms,
                         struct error *err) {
    if (database_open(&ledger->database, ledger->home, &database_ledger, mode, busy_ms, err))
        return -1;
    /* A crash of the machine ends every run and with it every reservation: no need to wait for
     * the disk at each commit. */
    if (database_execute(&ledger->database, "PRAGMA synchronous = NORMAL", err))
        return -1;
    return bring_up_to_date(ledger, err);
}

int ledger_open(const char *home, enum ledger_manner manner, int busy_ms, struct ledger **out,
                struct error *err) {
    enum database_mode mode = DATABASE_CREATE;
    struct ledger *ledger;
    struct statfs fs;
    struct stat st;
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/myelin.db", home) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, "the path of the home is too long");
    if (manner == LEDGER_TO_LOOK)
        mode = can_only_be_read(home, path) ? DATABASE_UNCHANGED : DATABASE_EXISTING;
    if (manner == LEDGER_TO_LOOK &&
        (lstat(path, &st) < 0 || (S_ISREG(st.st_mode) && st.st_size == 0))) {
        *out = NULL;
        return 0;
    }
    if (statfs(home, &fs) < 0)
        return error_set_errno(err, errno, "cannot keep a ledger in '%.300s'", home);
    if (ledger_check_filesystem(home, (long)fs.f_type, err))
        return -1;
    ledger = calloc(1, sizeof *ledger);
    if (!ledger || !(ledger->home = strdup(home)))
        abort();
    host_name(ledger->host);
    boot_id(ledger->boot);
    if (open_database(ledger, mode, busy_ms, err)) {
        ledger_close(ledger);
        return -1;
    }
    *out = ledger;
    return 0;
}

void ledger_close(struct ledger *ledger) {
    if (!ledger)
        return;
    database_close(&ledger->database);
    free(ledger->home);
    free(ledger);
}

bool ledger_was_moved(struct ledger *ledger) {
    int moved = 0;

    if (database_is_lost(&ledger->database))
        return true;
    return sqlite3_file_control(ledger->database.db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) ==
               SQLITE_OK &&
           moved;
}

void ledger_set_busy(struct ledger *ledger, int busy_ms) {
    sqlite3_busy_timeout(ledger->database.db, busy_ms);
}

/* The schema is checked in each transaction: another process may change it at any time. */
static int check_current(struct ledger *ledger, struct error *err) {
    int version;

    if (ledger_check_tables(&ledger->database, &version, err))
        return -1;
    return version == LEDGER_VERSION
               ? 0
               : database_reject(&ledger->database, err, "its version became %d", version);
}

int ledger_begin(struct ledger *ledger, struct error *err) {
    if (database_execute(&ledger->database, "BEGIN IMMEDIATE", err))
        return -1;
    if (check_current(ledger, err)) {
        ledger_rollback(ledger);
        return -1;
    }
    return 0;
}

int ledger_commit(struct ledger *ledger, struct error *err) {
    return database_execute(&ledger->database, "COMMIT", err);
}

void ledger_rollback(struct ledger *ledger) {
    if (!sqlite3_get_autocommit(ledger->database.db))
        sqlite3_exec(ledger->database.db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- writing ---- */

bool ledger_run_lives(const char *home, uint64_t run) {
    AUTO(arena) arena = ARENA_INIT;
    struct rundir rundir;
    struct error err;
    pid_t pid;

    if (rundir_open(home, (unsigned long)run, &arena, &rundir, &err))
        return err.code != ERROR_NOT_FOUND;
    return owner_lives(&rundir, &pid);
}

int ledger_forget(struct ledger *ledger, uint64_t run, struct error *err) {
    static const char *const sql[] = { "DELETE FROM queue WHERE run = ?1",
                                       "DELETE FROM reservations WHERE run = ?1" };
    sqlite3_stmt *statement;

    for (size_t i = 0; i < ARRAY_LEN(sql); i++) {
        if (database_prepare(&ledger->database, sql[i], &statement, err))
            return -1;
        sqlite3_bind_int64(statement, 1, (sqlite3_int64)run);
        if (database_finish(&ledger->database, statement, err))
            return -1;
    }
    return 0;
}

static bool has_no_owner(const char *home, uint64_t run) {
    return !ledger_run_lives(home, run);
}

static int delete_own(struct ledger *ledger, const char *sql, struct error *err) {
    sqlite3_stmt *statement;

    if (database_prepare(&ledger->database, sql, &statement, err))
        return -1;
    sqlite3_bind_text(statement, 1, ledger->host, -1, SQLITE_STATIC);
    return database_finish(&ledger->database, statement, err);
}

static int delete_unsound(struct ledger *ledger, struct error *err) {
    return delete_own(ledger, "DELETE FROM queue WHERE host = ?1 AND NOT " SOUND_WAIT, err) ||
                   delete_own(ledger,
                              "DELETE FROM reservations WHERE host = ?1 AND NOT " SOUND_HOLD, err)
               ? -1
               : 0;
}

int ledger_settle(struct ledger *ledger, ledger_is_over is_over, struct error *err) {
    static const char sql[] =
        "SELECT run, min(boot) FROM (SELECT run, boot FROM queue WHERE host = ?1"
        " UNION ALL SELECT run, boot FROM reservations WHERE host = ?1) GROUP BY run";
    VEC(uint64_t) gone = { 0 };
    sqlite3_stmt *statement;
    int code, status = 0;

    if (!is_over)
        is_over = has_no_owner;
    if (delete_unsound(ledger, err) || database_prepare(&ledger->database, sql, &statement, err))
        return -1;
    sqlite3_bind_text(statement, 1, ledger->host, -1, SQLITE_STATIC);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const uint64_t run = (uint64_t)sqlite3_column_int64(statement, 0);
        const char *boot = (const char *)sqlite3_column_text(statement, 1);

        if (!boot || strcmp(boot, ledger->boot) != 0 || is_over(ledger->home, run))
            *VEC_PUSH(&gone) = run;
    }
    sqlite3_finalize(statement);
    if (code != SQLITE_DONE)
        status = database_fail(&ledger->database, code, err);
    for (size_t i = 0; status == 0 && i < gone.len; i++)
        status = ledger_forget(ledger, gone.items[i], err);
    VEC_RELEASE(&gone);
    return status;
}

static int enter_since(struct ledger *ledger, uint64_t run, const struct demand *demand,
                       double since, struct error *err) {
    AUTO(buf) text = BUF_INIT(DEMAND_TEXT_MOST);
    sqlite3_stmt *statement;

    if (demand_write(demand, &text, err) || ledger_forget(ledger, run, err) ||
        database_prepare(&ledger->database, "INSERT INTO queue VALUES (?1, ?2, ?3, ?4, ?5)",
                         &statement, err))
        return -1;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)run);
    sqlite3_bind_text(statement, 2, ledger->host, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, ledger->boot, -1, SQLITE_STATIC);
    sqlite3_bind_double(statement, 4, since);
    sqlite3_bind_text(statement, 5, text.data, (int)text.len, SQLITE_STATIC);
    return database_finish(&ledger->database, statement, err);
}

int ledger_enter(struct ledger *ledger, uint64_t run, const struct demand *demand,
                 struct error *err) {
    return enter_since(ledger, run, demand, now(), err);
}

static int insert_hold(struct ledger *ledger, uint64_t run, const struct hold *hold, double since,
                       struct error *err) {
    sqlite3_stmt *statement;

    if (database_prepare(
            &ledger->database,
            "INSERT INTO reservations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)", &statement,
            err))
        return -1;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)run);
    sqlite3_bind_int64(statement, 2, hold->rank);
    sqlite3_bind_text(statement, 3, ledger->host, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 4, ledger->boot, -1, SQLITE_STATIC);
    sqlite3_bind_double(statement, 5, since);
    sqlite3_bind_int64(statement, 6, hold->amount[RESOURCE_CPU]);
    sqlite3_bind_int64(statement, 7, hold->amount[RESOURCE_MEMORY]);
    sqlite3_bind_int64(statement, 8, hold->amount[RESOURCE_TPU]);
    sqlite3_bind_int64(statement, 9, (sqlite3_int64)hold->gpus);
    if (cpus_count(&hold->cpus) > 0)
        sqlite3_bind_blob(statement, 10, hold->cpus.words, sizeof hold->cpus.words, SQLITE_STATIC);
    return database_finish(&ledger->database, statement, err);
}

static int reserve_since(struct ledger *ledger, uint64_t run, const struct hold *holds, size_t n,
                         double since, struct error *err) {
    if (ledger_forget(ledger, run, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (insert_hold(ledger, run, &holds[i], since, err))
            return -1;
    return 0;
}

int ledger_reserve(struct ledger *ledger, uint64_t run, const struct hold *holds, size_t n,
                   struct error *err) {
    return reserve_since(ledger, run, holds, n, now(), err);
}

/* ---- making it again ---- */

/* Whether a run without an owner may have left processes: it died in this boot without an end, or
 * with one that tells of some. Who settles looks closer, and takes it out where there are none. */
static bool may_have_left(const struct ledger *ledger, const struct claim *claim) {
    return claim->host && strcmp(claim->host, ledger->host) == 0 && claim->boot &&
           strcmp(claim->boot, ledger->boot) == 0 && (!claim->has_ended || claim->leaves_groups);
}

static int write_claim(struct ledger *ledger, uint64_t run, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    struct claim claim;
    struct rundir rundir;
    int status = 0;
    double since;
    bool lives;
    pid_t pid;

    if (rundir_open(ledger->home, (unsigned long)run, &arena, &rundir, err))
        return err->code == ERROR_NOT_FOUND ? 0 : -1; /* removed meanwhile */
    if (claim_read(&rundir, &claim, err))
        return error_wrap(err, "what run %" PRIu64 " holds is not known", run);
    lives = owner_lives(&rundir, &pid);
    since = on_our_clock(claim.since);
    if (claim.holds.len && (lives || may_have_left(ledger, &claim)))
        status = reserve_since(ledger, run, claim.holds.items, claim.holds.len, since, err);
    else if (claim.waits && lives)
        status = enter_since(ledger, run, &claim.demand, since, err);
    claim_release(&claim);
    return status;
}

int ledger_rebuild(struct ledger *ledger, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    unsigned long *ids;
    size_t n;

    if (delete_own(ledger, "DELETE FROM queue WHERE host = ?1", err) ||
        delete_own(ledger, "DELETE FROM reservations WHERE host = ?1", err) ||
        rundir_list(ledger->home, &arena, &ids, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (write_claim(ledger, ids[i], err))
            return -1;
    return 0;
}

/* ---- reading ---- */

static int read_queue(struct ledger *ledger, struct ledger_view *view, struct error *err) {
    sqlite3_stmt *statement;
    size_t n_bytes = 0;
    int code;

    if (database_prepare(&ledger->database,
                         "SELECT run, since, demand FROM queue WHERE host = ?1 AND " SOUND_WAIT
                         " ORDER BY run",
                         &statement, err))
        return -1;
    sqlite3_bind_text(statement, 1, ledger->host, -1, SQLITE_STATIC);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW && n_bytes <= DEMANDS_MOST &&
           view->queue.len <= ROWS_MOST) {
        const char *text = database_text(statement, 2, DEMAND_TEXT_MOST);
        struct ledger_wait row = { .run = (uint64_t)sqlite3_column_int64(statement, 0),
                                   .since = on_the_wall(sqlite3_column_double(statement, 1)) };
        struct error ignored;

        n_bytes += text ? strlen(text) : 0;
        /* A run whose row does not count enters the queue again. */
        if (text && demand_read(text, &view->arena, &row.demand, &ignored) == 0)
            *VEC_PUSH(&view->queue) = row;
    }
    sqlite3_finalize(statement);
    if (code == SQLITE_ROW)
        return database_reject(&ledger->database, err, "its queue is too long");
    return code == SQLITE_DONE ? 0 : database_fail(&ledger->database, code, err);
}

static struct hold hold_of(sqlite3_stmt *statement) {
    struct hold hold = {
        .run = (uint64_t)sqlite3_column_int64(statement, 0),
        .rank = sqlite3_column_int64(statement, 1),
        .since = on_the_wall(sqlite3_column_double(statement, 2)),
        .gpus = (gpu_set)sqlite3_column_int64(statement, 6),
    };
    const void *cpus = sqlite3_column_blob(statement, 7);

    hold.amount[RESOURCE_CPU] = sqlite3_column_int64(statement, 3);
    hold.amount[RESOURCE_MEMORY] = sqlite3_column_int64(statement, 4);
    hold.amount[RESOURCE_TPU] = sqlite3_column_int64(statement, 5);
    hold.amount[RESOURCE_GPU] = (milli)__builtin_popcountll(hold.gpus) * 1000;
    if (cpus && sqlite3_column_bytes(statement, 7) == (int)sizeof hold.cpus.words)
        memcpy(hold.cpus.words, cpus, sizeof hold.cpus.words);
    return hold;
}

static int read_holds(struct ledger *ledger, struct ledger_view *view, struct error *err) {
    sqlite3_stmt *statement;
    int code;

    if (database_prepare(&ledger->database,
                         "SELECT run, rank, since, cpu, memory, tpu, gpus, cpus FROM reservations"
                         " WHERE host = ?1 AND " SOUND_HOLD " ORDER BY run, rank",
                         &statement, err))
        return -1;
    sqlite3_bind_text(statement, 1, ledger->host, -1, SQLITE_STATIC);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW && view->holds.len < ROWS_MOST)
        *VEC_PUSH(&view->holds) = hold_of(statement);
    sqlite3_finalize(statement);
    if (code == SQLITE_ROW)
        return database_reject(&ledger->database, err, "it has too many reservations");
    return code == SQLITE_DONE ? 0 : database_fail(&ledger->database, code, err);
}

int ledger_read(struct ledger *ledger, struct ledger_view *view, struct error *err) {
    const bool is_alone = ledger && sqlite3_get_autocommit(ledger->database.db);
    int status;

    *view = (struct ledger_view){ 0 };
    if (!ledger)
        return 0;
    /* Both tables at one moment: a run moves from one to the other. */
    if (is_alone && database_execute(&ledger->database, "BEGIN", err))
        return -1;
    status = (is_alone && check_current(ledger, err)) || read_queue(ledger, view, err) ||
                     read_holds(ledger, view, err)
                 ? -1
                 : 0;
    if (is_alone)
        ledger_rollback(ledger);
    if (status)
        ledger_view_release(view);
    return status;
}

void ledger_view_release(struct ledger_view *view) {
    VEC_RELEASE(&view->queue);
    VEC_RELEASE(&view->holds);
    arena_release(&view->arena);
    *view = (struct ledger_view){ 0 };
}
