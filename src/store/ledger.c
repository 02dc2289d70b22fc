/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ledger.h"

#include <assert.h>
#include <ctype.h>
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
#include "store/locks.h"
#include "store/owner.h"
#include "store/sharing.h"

enum { LOOK_ROOM = 128 * 1024 };

struct ledger {
    sqlite3 *db;
    char *home;
    char path[PATH_MAX];
    char host[HOST_TEXT], boot[BOOT_TEXT];
};

/* What makes a ledger of version i one of version i + 1. A row is never changed once it was
 * released: what comes later is a new row. */
static const char *const migrations[] = {
    "CREATE TABLE queue (run INTEGER PRIMARY KEY, host TEXT NOT NULL, boot TEXT NOT NULL,"
    " since REAL NOT NULL, demand TEXT NOT NULL);"
    "CREATE TABLE reservations (run INTEGER NOT NULL, rank INTEGER NOT NULL, host TEXT NOT NULL,"
    " boot TEXT NOT NULL, since REAL NOT NULL, cpu INTEGER NOT NULL, memory INTEGER NOT NULL,"
    " tpu INTEGER NOT NULL, gpus INTEGER NOT NULL, PRIMARY KEY (run, rank)) WITHOUT ROWID;",
    /* The words of a set of CPUs, or nothing. */
    "ALTER TABLE reservations ADD COLUMN cpus BLOB;",
};

static_assert(ARRAY_LEN(migrations) == LEDGER_VERSION, "each version has its migration");

/* ---- errors ---- */

/* What SQLite says, as a sentence with a way out. */
static int fail(const struct ledger *ledger, int code, struct error *err) {
    const char *says = ledger->db ? sqlite3_errmsg(ledger->db) : sqlite3_errstr(code);

    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, ERROR_UNAVAILABLE, "the ledger '%.200s' is in use by others",
                         ledger->path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return error_set(err, ERROR_IO,
                         "the ledger '%.200s' is damaged (%.80s): 'myelin reindex' puts it aside "
                         "and makes a new one from the journals of the runs",
                         ledger->path, says);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
        return error_set(err, ERROR_DENIED,
                         "cannot write the ledger '%.200s' (%.80s), and without it nothing can be "
                         "reserved: make it and its directory writable, or set MYELIN_HOME",
                         ledger->path, says);
    case SQLITE_FULL:
        return error_set(err, ERROR_EXHAUSTED, "the disk of the ledger '%.200s' is full",
                         ledger->path);
    default:
        return error_set(err, ERROR_IO, "the ledger '%.200s' fails: %.120s", ledger->path, says);
    }
}

int ledger_fail(const struct ledger *ledger, int code, struct error *err) {
    return fail(ledger, code, err);
}

struct sqlite3 *ledger_database(struct ledger *ledger) {
    return ledger->db;
}

void ledger_blame(const char *home, struct error *err) {
    static const char *const names[] = { "myelin.db-shm", "myelin.db" };
    char path[PATH_MAX], who[96];
    pid_t pid = 0;

    for (size_t i = 0; pid == 0 && i < ARRAY_LEN(names); i++)
        if (snprintf(path, sizeof path, "%s/%s", home, names[i]) < (int)sizeof path)
            pid = locks_writer(path);
    if (err->code != ERROR_UNAVAILABLE || pid == 0)
        return;
    locks_describe(pid, who, sizeof who);
    error_set(err, ERROR_UNAVAILABLE,
              "the ledger '%.200s/myelin.db' is in use by %s, which does not let go of it: it is "
              "free again when that process ends",
              home, who);
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

/* ---- statements ---- */

static int execute(struct ledger *ledger, const char *sql, struct error *err) {
    int code = sqlite3_exec(ledger->db, sql, NULL, NULL, NULL);

    return code == SQLITE_OK ? 0 : fail(ledger, code, err);
}

static int prepare(struct ledger *ledger, const char *sql, sqlite3_stmt **out, struct error *err) {
    int code = sqlite3_prepare_v2(ledger->db, sql, -1, out, NULL);

    return code == SQLITE_OK ? 0 : fail(ledger, code, err);
}

/* Runs a statement that gives no rows, and ends it. */
static int finish(struct ledger *ledger, sqlite3_stmt *statement, struct error *err) {
    int code = sqlite3_step(statement);
    int status = code == SQLITE_DONE ? 0 : fail(ledger, code, err);

    sqlite3_finalize(statement);
    return status;
}

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

static int read_version(struct ledger *ledger, int *out, struct error *err) {
    sqlite3_stmt *statement;
    int code;

    if (prepare(ledger, "PRAGMA user_version", &statement, err))
        return -1;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *out = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? 0 : fail(ledger, code, err);
}

/* Inside a transaction: nobody else does the same. A new one is never empty while runs go on: the
 * one before it may have been lost, and what they hold is still held. */
static int migrate(struct ledger *ledger, struct error *err) {
    char set[64];
    bool is_new;
    int version;

    if (read_version(ledger, &version, err))
        return -1;
    is_new = version == 0;
    for (; version < LEDGER_VERSION; version++)
        if (execute(ledger, migrations[version], err))
            return -1;
    if (is_new && ledger_rebuild(ledger, err))
        return -1;
    snprintf(set, sizeof set, "PRAGMA user_version = %d", version);
    return execute(ledger, set, err);
}

static int bring_up_to_date(struct ledger *ledger, struct error *err) {
    int version;

    if (read_version(ledger, &version, err))
        return -1;
    if (version > LEDGER_VERSION)
        return error_set(err, ERROR_INVALID,
                         "the ledger '%.150s' was made by a newer myelin (version %d, this one "
                         "knows %d): use that one, or another MYELIN_HOME; 'myelin reindex' puts "
                         "it aside and makes one of this version",
                         ledger->path, version, LEDGER_VERSION);
    if (version == LEDGER_VERSION)
        return 0;
    if (execute(ledger, "PRAGMA journal_mode = WAL", err) || ledger_begin(ledger, err))
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
static bool can_only_be_read(const struct ledger *ledger) {
    char wal[PATH_MAX + 8];

    snprintf(wal, sizeof wal, "%s-wal", ledger->path);
    return access(wal, F_OK) < 0 &&
           (faccessat(AT_FDCWD, ledger->home, W_OK, AT_EACCESS) < 0 || has_no_room(ledger->home));
}

/* "file:/home/a%20b/myelin.db?immutable=1" */
static int open_unchanging(struct ledger *ledger) {
    char uri[3 * PATH_MAX + 32] = "file:";
    size_t n = strlen(uri);

    for (const char *p = ledger->path; *p; p++)
        n += (size_t)snprintf(uri + n, sizeof uri - n,
                              isalnum((unsigned char)*p) || strchr("/._-", *p) ? "%c" : "%%%02x",
                              (unsigned char)*p);
    snprintf(uri + n, sizeof uri - n, "?immutable=1");
    return sqlite3_open_v2(uri, &ledger->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
}

static int open_database(struct ledger *ledger, enum ledger_manner manner, int busy_ms,
                         struct error *err) {
    int flags = SQLITE_OPEN_READWRITE | (manner == LEDGER_TO_WRITE ? SQLITE_OPEN_CREATE : 0);
    int code;

    if (manner == LEDGER_TO_WRITE)
        shared_prepare_database(ledger->home, ledger->path);
    code = manner == LEDGER_TO_LOOK && can_only_be_read(ledger)
               ? open_unchanging(ledger)
               : sqlite3_open_v2(ledger->path, &ledger->db, flags, NULL);
    if (code != SQLITE_OK)
        return fail(ledger, code, err);
    sqlite3_extended_result_codes(ledger->db, 1);
    sqlite3_busy_timeout(ledger->db, busy_ms);
    /* A crash of the machine ends every run and with it every reservation: no need to wait for
     * the disk at each commit. */
    if (execute(ledger, "PRAGMA synchronous = NORMAL", err))
        return -1;
    return bring_up_to_date(ledger, err);
}

int ledger_open(const char *home, enum ledger_manner manner, int busy_ms, struct ledger **out,
                struct error *err) {
    struct ledger *ledger;
    struct statfs fs;
    struct stat st;
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/myelin.db", home) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, "the path of the home is too long");
    if (manner == LEDGER_TO_LOOK && (stat(path, &st) < 0 || st.st_size == 0)) {
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
    memcpy(ledger->path, path, sizeof path);
    host_name(ledger->host);
    boot_id(ledger->boot);
    if (open_database(ledger, manner, busy_ms, err)) {
        ledger_close(ledger);
        return -1;
    }
    *out = ledger;
    return 0;
}

void ledger_close(struct ledger *ledger) {
    if (!ledger)
        return;
    sqlite3_close(ledger->db);
    free(ledger->home);
    free(ledger);
}

bool ledger_was_moved(struct ledger *ledger) {
    int moved = 0;

    return sqlite3_file_control(ledger->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
           moved;
}

void ledger_set_busy(struct ledger *ledger, int busy_ms) {
    sqlite3_busy_timeout(ledger->db, busy_ms);
}

int ledger_begin(struct ledger *ledger, struct error *err) {
    return execute(ledger, "BEGIN IMMEDIATE", err);
}

int ledger_commit(struct ledger *ledger, struct error *err) {
    return execute(ledger, "COMMIT", err);
}

void ledger_rollback(struct ledger *ledger) {
    if (!sqlite3_get_autocommit(ledger->db))
        sqlite3_exec(ledger->db, "ROLLBACK", NULL, NULL, NULL);
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
        if (prepare(ledger, sql[i], &statement, err))
            return -1;
        sqlite3_bind_int64(statement, 1, (sqlite3_int64)run);
        if (finish(ledger, statement, err))
            return -1;
    }
    return 0;
}

static bool has_no_owner(const char *home, uint64_t run) {
    return !ledger_run_lives(home, run);
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
    if (prepare(ledger, sql, &statement, err))
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
        status = fail(ledger, code, err);
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
        prepare(ledger, "INSERT INTO queue VALUES (?1, ?2, ?3, ?4, ?5)", &statement, err))
        return -1;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)run);
    sqlite3_bind_text(statement, 2, ledger->host, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, ledger->boot, -1, SQLITE_STATIC);
    sqlite3_bind_double(statement, 4, since);
    sqlite3_bind_text(statement, 5, text.data, (int)text.len, SQLITE_STATIC);
    return finish(ledger, statement, err);
}

int ledger_enter(struct ledger *ledger, uint64_t run, const struct demand *demand,
                 struct error *err) {
    return enter_since(ledger, run, demand, now(), err);
}

static int insert_hold(struct ledger *ledger, uint64_t run, const struct hold *hold, double since,
                       struct error *err) {
    sqlite3_stmt *statement;

    if (prepare(ledger, "INSERT INTO reservations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                &statement, err))
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
    return finish(ledger, statement, err);
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

static int delete_own(struct ledger *ledger, const char *sql, struct error *err) {
    sqlite3_stmt *statement;

    if (prepare(ledger, sql, &statement, err))
        return -1;
    sqlite3_bind_text(statement, 1, ledger->host, -1, SQLITE_STATIC);
    return finish(ledger, statement, err);
}

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
    int code;

    if (prepare(ledger, "SELECT run, since, demand FROM queue WHERE host = ?1 ORDER BY run",
                &statement, err))
        return -1;
    sqlite3_bind_text(statement, 1, ledger->host, -1, SQLITE_STATIC);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 2);
        struct ledger_wait row = { .run = (uint64_t)sqlite3_column_int64(statement, 0),
                                   .since = on_the_wall(sqlite3_column_double(statement, 1)) };

        if (demand_read(text ? text : "", &view->arena, &row.demand, err)) {
            sqlite3_finalize(statement);
            return error_wrap(err, "the ledger '%.200s', run %" PRIu64, ledger->path, row.run);
        }
        *VEC_PUSH(&view->queue) = row;
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? 0 : fail(ledger, code, err);
}

static int read_holds(struct ledger *ledger, struct ledger_view *view, struct error *err) {
    sqlite3_stmt *statement;
    int code;

    if (prepare(ledger,
                "SELECT run, rank, since, cpu, memory, tpu, gpus, cpus FROM reservations"
                " WHERE host = ?1 ORDER BY run, rank",
                &statement, err))
        return -1;
    sqlite3_bind_text(statement, 1, ledger->host, -1, SQLITE_STATIC);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        struct hold *hold = VEC_PUSH(&view->holds);

        *hold = (struct hold){
            .run = (uint64_t)sqlite3_column_int64(statement, 0),
            .rank = sqlite3_column_int64(statement, 1),
            .since = on_the_wall(sqlite3_column_double(statement, 2)),
            .gpus = (gpu_set)sqlite3_column_int64(statement, 6),
        };
        hold->amount[RESOURCE_CPU] = sqlite3_column_int64(statement, 3);
        hold->amount[RESOURCE_MEMORY] = sqlite3_column_int64(statement, 4);
        hold->amount[RESOURCE_TPU] = sqlite3_column_int64(statement, 5);
        hold->amount[RESOURCE_GPU] = (milli)__builtin_popcountll(hold->gpus) * 1000;
        if (sqlite3_column_bytes(statement, 7) == (int)sizeof hold->cpus.words)
            memcpy(hold->cpus.words, sqlite3_column_blob(statement, 7), sizeof hold->cpus.words);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? 0 : fail(ledger, code, err);
}

int ledger_read(struct ledger *ledger, struct ledger_view *view, struct error *err) {
    const bool is_alone = ledger && sqlite3_get_autocommit(ledger->db);
    int status;

    *view = (struct ledger_view){ 0 };
    if (!ledger)
        return 0;
    /* Both tables at one moment: a run moves from one to the other. */
    if (is_alone && execute(ledger, "BEGIN", err))
        return -1;
    status = read_queue(ledger, view, err) || read_holds(ledger, view, err) ? -1 : 0;
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
