/* SPDX-License-Identifier: Apache-2.0 */
#include "store/reindex.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "store/models.h"

enum { BUSY_MS = 2000, ASIDE_MOST = 1000 };

/* ---- is it sound? ---- */

/* The first column of the first row as text; *code is SQLite's. */
static void ask(sqlite3 *db, const char *sql, char *out, size_t size, int *code) {
    sqlite3_stmt *statement;
    const char *text;

    out[0] = '\0';
    *code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (*code != SQLITE_OK)
        return;
    *code = sqlite3_step(statement);
    text = *code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    snprintf(out, size, "%s", text ? text : "");
    *code = *code == SQLITE_ROW || *code == SQLITE_DONE ? SQLITE_OK : *code;
    sqlite3_finalize(statement);
}

/* Whether the tables are those that this version knows. */
static bool has_tables(sqlite3 *db) {
    static const char *const sql[] = {
        "SELECT run, host, boot, since, demand FROM queue LIMIT 0",
        "SELECT run, rank, host, boot, since, cpu, memory, tpu, gpus, cpus FROM reservations LIMIT "
        "0",
    };

    for (size_t i = 0; i < ARRAY_LEN(sql); i++)
        if (sqlite3_exec(db, sql[i], NULL, NULL, NULL) != SQLITE_OK)
            return false;
    return true;
}

static enum ledger_health judge(sqlite3 *db, struct reindexed *out) {
    char text[sizeof out->why];
    int code, version;

    ask(db, "PRAGMA quick_check(1)", text, sizeof text, &code);
    if (code != SQLITE_OK || strcmp(text, "ok") != 0) {
        snprintf(out->why, sizeof out->why, "%s", code == SQLITE_OK ? text : sqlite3_errmsg(db));
        return LEDGER_DAMAGED;
    }
    ask(db, "PRAGMA user_version", text, sizeof text, &code);
    version = atoi(text);
    if (version < 0 || version > LEDGER_VERSION) {
        snprintf(out->why, sizeof out->why, "its version is %d, this myelin makes %d", version,
                 LEDGER_VERSION);
        return LEDGER_FOREIGN;
    }
    /* One that was made a moment ago has no tables yet. */
    ask(db, "SELECT count(*) FROM sqlite_master", text, sizeof text, &code);
    if (version == 0 ? strcmp(text, "0") != 0 : version == LEDGER_VERSION && !has_tables(db)) {
        snprintf(out->why, sizeof out->why, "its tables are not those of a ledger");
        return LEDGER_FOREIGN;
    }
    return LEDGER_SOUND;
}

/* ---- putting aside ---- */

static bool is_free(const char *path) {
    struct stat st;

    return lstat(path, &st) < 0 && errno == ENOENT;
}

/* The parts are renamed before the file itself: a new ledger must not find the changes that belong
 * to the old one. */
static int put_aside(const char *path, struct reindexed *out, struct error *err) {
    static const char *const parts[] = { "-wal", "-shm", "" };
    char from[PATH_MAX + 8], to[PATH_MAX + 8];

    for (int i = 1; i <= ASIDE_MOST; i++) {
        if (snprintf(out->aside, sizeof out->aside, "%s.old.%d", path, i) >= (int)sizeof out->aside)
            return error_set(err, ERROR_INVALID, "the path of the home is too long");
        if (is_free(out->aside))
            break;
    }
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        snprintf(from, sizeof from, "%s%s", path, parts[i]);
        snprintf(to, sizeof to, "%s%s", out->aside, parts[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            return error_set_errno(err, errno, "cannot put '%.300s' aside", from);
    }
    return 0;
}

/* With the ledger locked as far as it can be: nobody reserves in it while it is put aside. */
static int examine(const char *path, struct reindexed *out, struct error *err) {
    sqlite3 *db = NULL;
    int status = 0, code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);

    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(db, BUSY_MS);
        /* What it is named now may be another's when it is closed. */
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    }
    if ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED) {
        status = error_set(err, ERROR_UNAVAILABLE, "the ledger '%.200s' is in use by others", path);
    } else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
        out->health = LEDGER_DAMAGED;
        snprintf(out->why, sizeof out->why, "%s", sqlite3_errmsg(db));
    } else if (code != SQLITE_OK) {
        status = error_set(err, ERROR_DENIED,
                           "cannot open the ledger '%.200s' (%.80s): make it and its directory "
                           "writable, or set MYELIN_HOME",
                           path, sqlite3_errmsg(db));
    } else {
        out->health = judge(db, out);
    }
    if (status == 0 && out->health != LEDGER_SOUND)
        status = put_aside(path, out, err);
    sqlite3_close(db);
    return status;
}

/* ---- all of it ---- */

static void count_rows(const struct ledger_view *view, struct reindexed *out) {
    out->n_waiting = view->queue.len;
    for (size_t i = 0; i < view->holds.len; i++)
        out->n_holding += i == 0 || view->holds.items[i].run != view->holds.items[i - 1].run;
}

/* A ledger that is made new begins with what living runs claim; a sound one is filled again. */
static int fill(const char *home, struct reindexed *out, struct error *err) {
    struct ledger_view view = { 0 };
    struct ledger *ledger;
    int status = -1;

    if (ledger_open(home, LEDGER_TO_WRITE, BUSY_MS, &ledger, err))
        return -1;
    if (ledger_begin(ledger, err) == 0) {
        status = ledger_rebuild(ledger, err) || ledger_read(ledger, &view, err) ||
                         ledger_commit(ledger, err)
                     ? -1
                     : 0;
        if (status)
            ledger_rollback(ledger);
    }
    if (status == 0)
        count_rows(&view, out);
    ledger_view_release(&view);
    ledger_close(ledger);
    return status;
}

int reindex(const char *home, struct reindexed *out, struct error *err) {
    struct reindexed done = { .health = LEDGER_MISSING };
    char path[PATH_MAX];
    struct statfs fs;
    struct stat st;

    if (snprintf(path, sizeof path, "%s/myelin.db", home) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, "the path of the home is too long");
    if (statfs(home, &fs) < 0)
        return error_set_errno(err, errno, "there is no home '%.300s'", home);
    if (ledger_check_filesystem(home, (long)fs.f_type, err))
        return -1;
    if ((stat(path, &st) == 0 && st.st_size > 0 && examine(path, &done, err)) ||
        fill(home, &done, err) || models_rebuild(home, err)) {
        ledger_blame(home, err);
        return -1;
    }
    done.next_id = rundir_last(home);
    if (done.next_id++ > 0 && rundir_retire(home, done.next_id - 1, err))
        return -1;
    *out = done;
    return 0;
}
