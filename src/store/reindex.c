/* SPDX-License-Identifier: Apache-2.0 */
#include "store/reindex.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
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

static enum ledger_health judge(struct database *database, struct reindexed *out) {
    char text[sizeof out->why];
    struct error err;
    int code, version;

    ask(database->db, "PRAGMA quick_check(1)", text, sizeof text, &code);
    if (code != SQLITE_OK || strcmp(text, "ok") != 0) {
        snprintf(out->why, sizeof out->why, "%s",
                 code == SQLITE_OK ? text : sqlite3_errmsg(database->db));
        return LEDGER_DAMAGED;
    }
    if (database_version(database, &version, &err) || version < 0 || version > LEDGER_VERSION) {
        snprintf(out->why, sizeof out->why, "its version is %d, this myelin makes %d", version,
                 LEDGER_VERSION);
        return LEDGER_FOREIGN;
    }
    /* One that was made a moment ago has no tables yet. */
    if (ledger_check_tables(database, &version, &err)) {
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

static int put_aside(const char *path, struct reindexed *out, struct error *err) {
    char from[PATH_MAX + 16], to[PATH_MAX + 16];

    for (int i = 1; i <= ASIDE_MOST; i++) {
        if (snprintf(out->aside, sizeof out->aside, "%s.old.%d", path, i) >= (int)sizeof out->aside)
            return error_set(err, ERROR_INVALID, "the path of the home is too long");
        if (is_free(out->aside))
            break;
    }
    for (size_t i = 0; i < DATABASE_FILES; i++) {
        snprintf(from, sizeof from, "%s%s", path, database_suffixes[i]);
        snprintf(to, sizeof to, "%s%s", out->aside, database_suffixes[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            return error_set_errno(err, errno, "cannot put '%.300s' aside", from);
    }
    return 0;
}

/* Opens the ledger and locks it as far as possible: no run reserves in it while it is put aside.
 * Returns 0 also if it turned out to be damaged, which *out then says. */
static int lock(const char *home, struct database *database, struct reindexed *out,
                struct error *err) {
    struct error why;

    out->health = LEDGER_SOUND;
    if (database_open(database, home, &database_ledger, DATABASE_EXISTING, BUSY_MS, &why) == 0) {
        /* By the time that it is closed, its name may belong to another. */
        sqlite3_db_config(database->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        if (database_execute(database, "BEGIN IMMEDIATE", &why) == 0)
            return 0;
    }
    if (!database->is_damaged) {
        *err = why;
        return -1;
    }
    out->health = LEDGER_DAMAGED;
    snprintf(out->why, sizeof out->why, "%s",
             database->db ? sqlite3_errmsg(database->db)
                          : "one of its files is not a regular file");
    return 0;
}

/* In a home with the sticky bit the ledger and its -wal may belong to two members, and then neither
 * can rename both. Each of them can empty it in place. */
static int replace(const char *home, const char *path, struct database *database,
                   struct reindexed *out, struct error *err) {
    struct error ignored;

    if (database_check_replaceable(home, &database_ledger, err) == 0)
        return put_aside(path, out, err);
    if (!database->db)
        return -1;
    sqlite3_exec(database->db, "ROLLBACK", NULL, NULL, NULL);
    return database_reset(database, &ignored);
}

static int examine(const char *home, const char *path, struct reindexed *out, struct error *err) {
    struct database database = { 0 };
    int status = lock(home, &database, out, err);

    if (status == 0 && out->health == LEDGER_SOUND)
        out->health = judge(&database, out);
    if (status == 0 && out->health != LEDGER_SOUND)
        status = replace(home, path, &database, out, err);
    database_close(&database);
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

/* Whether there is a ledger, or something beside its name that keeps one from being made. */
static bool has_files(const char *path) {
    struct error ignored;
    struct stat st;

    return (lstat(path, &st) == 0 && st.st_size > 0) ||
           database_check_files(&database_ledger, path, &ignored);
}

int reindex(const char *home, struct reindexed *out, struct error *err) {
    struct reindexed done = { .health = LEDGER_MISSING };
    char path[PATH_MAX];
    struct statfs fs;

    if (snprintf(path, sizeof path, "%s/myelin.db", home) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, "the path of the home is too long");
    if (statfs(home, &fs) < 0)
        return error_set_errno(err, errno, "there is no home '%.300s'", home);
    if (ledger_check_filesystem(home, (long)fs.f_type, err))
        return -1;
    if ((has_files(path) && examine(home, path, &done, err)) || fill(home, &done, err) ||
        models_rebuild(home, err)) {
        ledger_blame(home, err);
        return -1;
    }
    done.next_id = rundir_last(home);
    if (done.next_id++ > 0 && rundir_retire(home, done.next_id - 1, err))
        return -1;
    *out = done;
    return 0;
}
