/* SPDX-License-Identifier: Apache-2.0 */
#include "store/models.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "store/artifact.h"
#include "store/journal.h"
#include "store/models_dump.h"

enum {
    BUSY_MS = 5000,
    VERSION = 1, /* of the tables */
    ROWS_MOST = 10 * 1000 * 1000,
};

struct models {
    struct ledger *ledger;
    struct database *database;
    char *home;
};

/* Has its own version: the tables of the ledger come and go without these. */
static const char *const schema[] = {
    "CREATE TABLE models_schema (version INTEGER NOT NULL)",
    "CREATE TABLE models (name TEXT NOT NULL, version INTEGER NOT NULL, run INTEGER NOT NULL,"
    " path TEXT NOT NULL, sha256 TEXT NOT NULL, size INTEGER NOT NULL, files INTEGER NOT NULL,"
    " PRIMARY KEY (name, version), UNIQUE (name, run)) WITHOUT ROWID",
    "CREATE INDEX models_by_run ON models (run)",
    "CREATE TABLE models_last (name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE models_aliases (name TEXT NOT NULL, alias TEXT NOT NULL,"
    " version INTEGER NOT NULL, PRIMARY KEY (name, alias)) WITHOUT ROWID",
    "CREATE TABLE models_looked (run INTEGER PRIMARY KEY)",
};

const struct database_tables models_tables = { .sql = schema,
                                               .n = ARRAY_LEN(schema),
                                               .is_optional = true };

static const char drop[] = "DROP TABLE IF EXISTS models_schema; DROP TABLE IF EXISTS models;"
                           "DROP TABLE IF EXISTS models_last; DROP TABLE IF EXISTS models_aliases;"
                           "DROP TABLE IF EXISTS models_looked;";

/* ---- statements ---- */

/* Prepares with a name as ?1 and a number as ?2; a statement may be without either. */
static int prepare(struct models *models, const char *sql, const char *name, int64_t number,
                   sqlite3_stmt **out, struct error *err) {
    if (database_prepare(models->database, sql, out, err))
        return -1;
    sqlite3_bind_text(*out, 1, name, -1, SQLITE_TRANSIENT);
    if (sqlite3_bind_parameter_count(*out) > 1)
        sqlite3_bind_int64(*out, 2, number);
    return 0;
}

static int refuse_row(struct models *models, const char *table, struct error *err) {
    return database_reject(models->database, err, "a row of its table '%s' makes no sense", table);
}

/* A number from 0 to `most`, the first column of the first row; 0 for none. */
static int ask(struct models *models, const char *sql, const char *name, int64_t number,
               int64_t most, int64_t *out, struct error *err) {
    sqlite3_stmt *statement;
    int code, status = 0;

    if (prepare(models, sql, name, number, &statement, err))
        return -1;
    code = sqlite3_step(statement);
    *out = 0;
    if (code == SQLITE_ROW && !database_integer(statement, 0, 0, most, out))
        status = refuse_row(models, "models", err);
    else if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = database_fail(models->database, code, err);
    sqlite3_finalize(statement);
    return status;
}

static int change(struct models *models, const char *sql, const char *name, int64_t number,
                  struct error *err) {
    sqlite3_stmt *statement;

    return prepare(models, sql, name, number, &statement, err)
               ? -1
               : database_finish(models->database, statement, err);
}

/* ---- versions ---- */

static int insert(struct models *models, const struct model_row *row, int64_t version,
                  struct error *err) {
    sqlite3_stmt *statement;

    if (prepare(models, "INSERT INTO models VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", row->name,
                version, &statement, err))
        return -1;
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)row->run);
    sqlite3_bind_text(statement, 4, row->path, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 5, row->sha256, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 6, (sqlite3_int64)row->size);
    sqlite3_bind_int64(statement, 7, (sqlite3_int64)row->files);
    return database_finish(models->database, statement, err);
}

static int raise_last(struct models *models, const char *name, int64_t version, struct error *err) {
    return change(models,
                  "INSERT INTO models_last VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE"
                  " SET version = max(version, excluded.version)",
                  name, version, err);
}

int models_last(struct models *models, const char *name, int64_t *out, struct error *err) {
    return ask(models, "SELECT version FROM models_last WHERE name = ?1", name, 0,
               MODEL_VERSION_MOST, out, err);
}

int models_assign(struct models *models, const struct model_row *row, int64_t *version,
                  struct error *err) {
    int64_t has, taken = 1, last, given = row->version;

    if (model_name_check(row->name, err))
        return -1;
    if (!model_row_is_sound(row))
        return error_set(err, ERROR_INVALID, "the path or the hash of the model '%.130s' is none",
                         row->name);
    if (ask(models, "SELECT version FROM models WHERE name = ?1 AND run = ?2", row->name,
            (int64_t)row->run, MODEL_VERSION_MOST, &has, err) ||
        models_last(models, row->name, &last, err) ||
        ask(models, "SELECT count(*) FROM models WHERE name = ?1 AND version = ?2", row->name,
            given, 1, &taken, err))
        return -1;
    if (has == 0) {
        if (given < 1 || given > MODEL_VERSION_MOST || taken)
            given = last + 1;
        if (given > MODEL_VERSION_MOST)
            return error_set(err, ERROR_EXHAUSTED, "the model '%.130s' has no versions left",
                             row->name);
        if (insert(models, row, given, err) || raise_last(models, row->name, given, err))
            return -1;
    }
    *version = has ? has : given;
    return 0;
}

/* ---- tables that are made new ---- */

static int restore_one(void *context, const struct models_fact *fact, struct error *err) {
    struct models *models = context;
    sqlite3_stmt *statement;

    if (raise_last(models, fact->name, fact->version, err))
        return -1;
    if (!fact->alias)
        return 0;
    if (prepare(models,
                "INSERT OR REPLACE INTO models_aliases (name, version, alias) VALUES (?1, "
                "?2, ?3)",
                fact->name, fact->version, &statement, err))
        return -1;
    sqlite3_bind_text(statement, 3, fact->alias, -1, SQLITE_STATIC);
    return database_finish(models->database, statement, err);
}

/* Whether the journal may tell of artifacts: most tell of none, and need not be parsed. */
static bool may_have_artifacts(const struct rundir *rundir) {
    static const char event[] = "\"artifact\"";
    AUTO(buf) text = BUF_INIT(JOURNAL_MOST);
    struct error err;

    return journal_load(rundir, &text, &err) == 0 && text.len > 0 &&
           memmem(text.data, text.len, event, sizeof event - 1);
}

/* A run that cannot be read has nothing to tell: it does not stand in the way of the others. */
static int adopt_run(struct models *models, unsigned long id, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    struct run_record record;
    struct artifacts artifacts;
    struct rundir rundir;
    struct error ignored;
    int64_t version;
    int status = 0;

    if (rundir_open(models->home, id, &arena, &rundir, &ignored) || !may_have_artifacts(&rundir) ||
        record_read(&record, &rundir, &ignored))
        return 0;
    artifacts = artifacts_read(&record, &arena);
    for (size_t i = 0; status == 0 && i < artifacts.n; i++) {
        const struct artifact *artifact = &artifacts.list[i];
        const struct model_row row = { .name = artifact->name,
                                       .version = artifact->version,
                                       .run = id,
                                       .path = artifact->path,
                                       .sha256 = artifact->sha256,
                                       .size = artifact->size,
                                       .files = artifact->files };

        if (row.version > 0 && row.sha256 && model_row_is_sound(&row))
            status = models_assign(models, &row, &version, err);
    }
    record_release(&record);
    return status;
}

static int fill(struct models *models, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    unsigned long *ids;
    size_t n;

    for (size_t i = 0; i < ARRAY_LEN(schema); i++)
        if (database_execute(models->database, schema[i], err))
            return -1;
    if (change(models, "INSERT INTO models_schema VALUES (?2)", NULL, VERSION, err) ||
        models_dump_read(models->home, restore_one, models, err) ||
        rundir_list(models->home, &arena, &ids, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (adopt_run(models, ids[i], err))
            return -1;
    return 0;
}

/* ---- opening ---- */

static int read_version(struct models *models, int64_t *out, struct error *err) {
    int64_t there;

    *out = 0;
    if (ask(models, "SELECT count(*) FROM sqlite_master WHERE name = ?1", "models_schema", 0,
            INT32_MAX, &there, err))
        return -1;
    if (!there)
        return 0;
    return ask(models, "SELECT version FROM models_schema", NULL, 0, INT32_MAX, out, err);
}

static int make_tables(struct models *models, struct error *err) {
    int64_t version;

    if (ledger_begin(models->ledger, err))
        return -1;
    /* Somebody else may have been first. */
    if (read_version(models, &version, err) || (version == 0 && fill(models, err)) ||
        ledger_commit(models->ledger, err)) {
        models_rollback(models);
        return -1;
    }
    return 0;
}

static int bring_up_to_date(struct models *models, enum ledger_manner manner, bool *is_there,
                            struct error *err) {
    int64_t version;

    if (read_version(models, &version, err))
        return -1;
    if (version > VERSION)
        return error_set(err, ERROR_INVALID,
                         "the models of '%.200s' were written by a newer myelin (version %d, this "
                         "one knows %d): use that one",
                         models->home, (int)version, VERSION);
    *is_there = version == VERSION || manner == LEDGER_TO_WRITE;
    return version == VERSION || manner == LEDGER_TO_LOOK ? 0 : make_tables(models, err);
}

static int open_ledger(const char *home, enum ledger_manner manner, struct models **out,
                       struct error *err) {
    struct models *models;
    struct ledger *ledger;

    if (ledger_open(home, manner, BUSY_MS, &ledger, err)) {
        ledger_blame(home, err);
        return -1;
    }
    *out = NULL;
    if (!ledger)
        return 0;
    models = calloc(1, sizeof *models);
    if (!models || !(models->home = strdup(home)))
        abort();
    models->ledger = ledger;
    models->database = ledger_database(ledger);
    /* Unlike a reservation an alias outlives the machine's crash. */
    sqlite3_exec(models->database->db, "PRAGMA synchronous = FULL", NULL, NULL, NULL);
    *out = models;
    return 0;
}

int models_open(const char *home, enum ledger_manner manner, struct models **out,
                struct error *err) {
    struct models *models;
    bool is_there = false;

    if (open_ledger(home, manner, &models, err))
        return -1;
    if (models && bring_up_to_date(models, manner, &is_there, err)) {
        models_close(models);
        return -1;
    }
    if (!is_there) {
        models_close(models);
        models = NULL;
    }
    *out = models;
    return 0;
}

void models_close(struct models *models) {
    if (!models)
        return;
    ledger_close(models->ledger);
    free(models->home);
    free(models);
}

/* ---- transactions and the dump ---- */

int models_begin(struct models *models, struct error *err) {
    if (ledger_begin(models->ledger, err) == 0)
        return 0;
    ledger_blame(models->home, err);
    return -1;
}

void models_rollback(struct models *models) {
    ledger_rollback(models->ledger);
}

/* One row of the dump. False: no myelin has written it, so it does not count. */
static bool read_fact(sqlite3_stmt *statement, struct arena *arena, struct models_fact *out) {
    const char *name = database_text(statement, 0, MODEL_NAME_MOST);
    const char *alias = database_text(statement, 2, MODEL_ALIAS_MOST);
    struct error ignored;

    *out = (struct models_fact){ 0 };
    if (!name || model_name_check(name, &ignored) ||
        !database_integer(statement, 1, 1, MODEL_VERSION_MOST, &out->version) ||
        (sqlite3_column_type(statement, 2) != SQLITE_NULL && !alias) ||
        (alias && model_alias_check(alias, &ignored)))
        return false;
    out->name = arena_text(arena, name, strlen(name));
    out->alias = alias ? arena_text(arena, alias, strlen(alias)) : NULL;
    return true;
}

/* The dump is a list of names, each with its aliases: an alias without its name has no place. */
static bool may_follow(const struct models_fact *fact, const struct models_fact *before) {
    return !fact->alias || (before && strcmp(before->name, fact->name) == 0);
}

static int write_dump(struct models *models, struct error *err) {
    static const char sql[] =
        "SELECT name, version, NULL AS alias FROM models_last"
        " UNION ALL SELECT name, version, alias FROM models_aliases ORDER BY 1, 3";
    VEC(struct models_fact) facts = { 0 };
    AUTO(arena) arena = ARENA_INIT;
    sqlite3_stmt *statement;
    int code, status;

    if (prepare(models, sql, NULL, 0, &statement, err))
        return -1;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW && facts.len < ROWS_MOST) {
        struct models_fact fact;

        if (read_fact(statement, &arena, &fact) &&
            may_follow(&fact, facts.len ? &facts.items[facts.len - 1] : NULL))
            *VEC_PUSH(&facts) = fact;
    }
    sqlite3_finalize(statement);
    status = code == SQLITE_DONE ? models_dump_write(models->home, facts.items, facts.len, err)
                                 : database_fail(models->database, code, err);
    VEC_RELEASE(&facts);
    return status;
}

int models_commit(struct models *models, struct error *err) {
    return write_dump(models, err) || ledger_commit(models->ledger, err) ? -1 : 0;
}

/* If the tables cannot be read, the dump that there is counts. */
static int keep_dump(struct models *models, struct error *err) {
    int64_t version;

    if (read_version(models, &version, err) == 0 &&
        (version != VERSION || write_dump(models, err) == 0))
        return 0;
    return models->database->is_damaged ? 0 : -1;
}

static int make_anew(struct models *models, struct error *err) {
    return keep_dump(models, err) || database_execute(models->database, drop, err) ||
                   fill(models, err) || models_commit(models, err)
               ? -1
               : 0;
}

int models_rebuild(const char *home, struct error *err) {
    struct models *models;
    int status = -1;

    if (open_ledger(home, LEDGER_TO_LOOK, &models, err))
        return -1;
    if (!models)
        return 0;
    if (ledger_begin(models->ledger, err) == 0) {
        status = make_anew(models, err);
        if (status)
            models_rollback(models);
    }
    models_close(models);
    return status;
}

/* ---- looking ---- */

static int read_aliases(struct models *models, struct model_row *row, struct arena *arena,
                        struct error *err) {
    VEC(const char *) found = { 0 };
    sqlite3_stmt *statement;
    struct error ignored;
    int code;

    if (prepare(models,
                "SELECT alias FROM models_aliases WHERE name = ?1 AND version = ?2 ORDER BY alias",
                row->name, row->version, &statement, err))
        return -1;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW && found.len < ROWS_MOST) {
        const char *alias = database_text(statement, 0, MODEL_ALIAS_MOST);

        if (alias && model_alias_check(alias, &ignored) == 0)
            *VEC_PUSH(&found) = arena_text(arena, alias, strlen(alias));
    }
    sqlite3_finalize(statement);
    *VEC_PUSH(&found) = NULL;
    row->aliases = arena_copy(arena, found.items, found.len * sizeof *found.items);
    VEC_RELEASE(&found);
    if (code == SQLITE_ROW)
        return refuse_row(models, "models_aliases", err);
    return code == SQLITE_DONE ? 0 : database_fail(models->database, code, err);
}

/* False: no myelin has written it, so it does not count. */
static bool read_row(sqlite3_stmt *statement, struct arena *arena, struct model_row *out) {
    const char *name = database_text(statement, 0, MODEL_NAME_MOST);
    const char *path = database_text(statement, 3, PATH_MAX);
    const char *sha256 = database_text(statement, 4, SHA256_TEXT);
    int64_t run, size, files;

    *out = (struct model_row){ .name = name, .path = path, .sha256 = sha256 };
    if (!name || !path || !sha256 ||
        !database_integer(statement, 1, 1, MODEL_VERSION_MOST, &out->version) ||
        !database_integer(statement, 2, 1, RUNDIR_ID_LAST, &run) ||
        !database_integer(statement, 5, 0, INT64_MAX, &size) ||
        !database_integer(statement, 6, 0, INT64_MAX, &files) || !model_row_is_sound(out))
        return false;
    out->name = arena_text(arena, name, strlen(name));
    out->path = arena_text(arena, path, strlen(path));
    out->sha256 = arena_text(arena, sha256, strlen(sha256));
    out->run = (uint64_t)run;
    out->size = (uint64_t)size;
    out->files = (uint64_t)files;
    return true;
}

int models_list(struct models *models, const char *name, struct arena *arena,
                struct model_row **list, size_t *n, struct error *err) {
    VEC(struct model_row) rows = { 0 };
    sqlite3_stmt *statement;
    int code, status = 0;

    if (models) {
        if (prepare(models,
                    "SELECT name, version, run, path, sha256, size, files FROM models"
                    " WHERE ?1 IS NULL OR name = ?1 ORDER BY name, version DESC",
                    name, 0, &statement, err))
            return -1;
        while ((code = sqlite3_step(statement)) == SQLITE_ROW && rows.len < ROWS_MOST) {
            struct model_row row;

            if (read_row(statement, arena, &row))
                *VEC_PUSH(&rows) = row;
        }
        sqlite3_finalize(statement);
        status = code == SQLITE_ROW    ? refuse_row(models, "models", err)
                 : code == SQLITE_DONE ? 0
                                       : database_fail(models->database, code, err);
    }
    for (size_t i = 0; status == 0 && i < rows.len; i++)
        status = read_aliases(models, &rows.items[i], arena, err);
    if (status == 0) {
        *list = arena_copy(arena, rows.items, rows.len * sizeof *rows.items);
        *n = rows.len;
    }
    VEC_RELEASE(&rows);
    return status;
}

/* ---- aliases ---- */

static int write_alias(struct models *models, const struct model_row *row, const char *alias,
                       int64_t *before, struct error *err) {
    sqlite3_stmt *statement;
    int64_t exists;
    int code;

    /* Its run may have been removed since it was looked up. */
    if (ask(models, "SELECT count(*) FROM models WHERE name = ?1 AND version = ?2", row->name,
            row->version, 1, &exists, err))
        return -1;
    if (!exists)
        return error_set(err, ERROR_NOT_FOUND, "%.200s:%" PRId64 " was removed meanwhile",
                         row->name, row->version);
    if (prepare(models,
                "SELECT version FROM models_aliases WHERE name = ?1 AND alias = ?3"
                " AND version <> ?2",
                row->name, row->version, &statement, err))
        return -1;
    sqlite3_bind_text(statement, 3, alias, -1, SQLITE_STATIC);
    code = sqlite3_step(statement);
    *before = 0;
    if (code == SQLITE_ROW && !database_integer(statement, 0, 1, MODEL_VERSION_MOST, before))
        *before = 0; /* it is replaced */
    sqlite3_finalize(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return database_fail(models->database, code, err);
    return restore_one(
        models, &(struct models_fact){ .name = row->name, .alias = alias, .version = row->version },
        err);
}

int models_alias(struct models *models, const struct model_row *row, const char *alias,
                 int64_t *before, struct error *err) {
    int64_t was = 0;

    if (model_alias_check(alias, err) || models_begin(models, err))
        return -1;
    if (write_alias(models, row, alias, &was, err) || models_commit(models, err)) {
        models_rollback(models);
        return -1;
    }
    *before = was;
    return 0;
}

static int delete_alias(struct models *models, const struct model_row *row, const char *alias,
                        struct error *err) {
    sqlite3_stmt *statement;

    if (prepare(models,
                "DELETE FROM models_aliases WHERE name = ?1 AND version = ?2 AND alias = ?3",
                row->name, row->version, &statement, err))
        return -1;
    sqlite3_bind_text(statement, 3, alias, -1, SQLITE_STATIC);
    if (database_finish(models->database, statement, err))
        return -1;
    if (sqlite3_changes(models->database->db) == 0)
        return error_set(err, ERROR_NOT_FOUND, "%.200s:%" PRId64 " has no alias '%.100s'",
                         row->name, row->version, alias);
    return 0;
}

int models_unalias(struct models *models, const struct model_row *row, const char *alias,
                   struct error *err) {
    if (models_begin(models, err))
        return -1;
    if (delete_alias(models, row, alias, err) || models_commit(models, err)) {
        models_rollback(models);
        return -1;
    }
    return 0;
}

/* ---- runs ---- */

static int check_unaliased(struct models *models, uint64_t run, struct error *err) {
    sqlite3_stmt *statement;
    int code, status = 0;

    if (prepare(models,
                "SELECT m.name, m.version, a.alias FROM models m JOIN models_aliases a"
                " ON a.name = m.name AND a.version = m.version"
                " WHERE m.run = ?2",
                NULL, (int64_t)run, &statement, err))
        return -1;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        const char *name = database_text(statement, 0, MODEL_NAME_MOST);
        const char *alias = database_text(statement, 2, MODEL_ALIAS_MOST);
        int64_t version;

        if (!name || !alias || !database_integer(statement, 1, 1, MODEL_VERSION_MOST, &version))
            status = refuse_row(models, "models", err);
        else
            status =
                error_set(err, ERROR_CONFLICT,
                          "run %" PRIu64 " has the model %s:%" PRId64 ", which is '%s': give that "
                          "alias to another version, or take it away ('myelin model alias "
                          "%s:%" PRId64 " %s --remove'), then remove the run",
                          run, name, version, alias, name, version, alias);
    } else if (code != SQLITE_DONE) {
        status = database_fail(models->database, code, err);
    }
    sqlite3_finalize(statement);
    return status;
}

int models_release_run(const char *home, uint64_t run, struct error *err) {
    struct models *models;
    int status = -1;

    if (models_open(home, LEDGER_TO_LOOK, &models, err))
        return -1;
    if (!models)
        return 0;
    if (models_begin(models, err) == 0) {
        status =
            check_unaliased(models, run, err) ||
                    change(models, "DELETE FROM models WHERE run = ?2", NULL, (int64_t)run, err) ||
                    change(models, "DELETE FROM models_looked WHERE run = ?2", NULL, (int64_t)run,
                           err) ||
                    models_commit(models, err)
                ? -1
                : 0;
        if (status)
            models_rollback(models);
    }
    models_close(models);
    return status;
}

int models_looked(struct models *models, struct arena *arena, uint64_t **runs, size_t *n,
                  struct error *err) {
    VEC(uint64_t) found = { 0 };
    sqlite3_stmt *statement;
    int code, status;

    if (prepare(models, "SELECT run FROM models_looked ORDER BY run", NULL, 0, &statement, err))
        return -1;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW && found.len < ROWS_MOST) {
        int64_t run;

        if (database_integer(statement, 0, 1, RUNDIR_ID_LAST, &run))
            *VEC_PUSH(&found) = (uint64_t)run;
    }
    sqlite3_finalize(statement);
    status = code == SQLITE_ROW    ? refuse_row(models, "models_looked", err)
             : code == SQLITE_DONE ? 0
                                   : database_fail(models->database, code, err);
    if (status == 0) {
        *runs = arena_copy(arena, found.items, found.len * sizeof *found.items);
        *n = found.len;
    }
    VEC_RELEASE(&found);
    return status;
}

int models_mark_looked(struct models *models, const uint64_t *runs, size_t n, struct error *err) {
    int status = 0;

    if (n == 0)
        return 0;
    if (models_begin(models, err))
        return -1;
    for (size_t i = 0; status == 0 && i < n; i++)
        status = change(models, "INSERT OR IGNORE INTO models_looked VALUES (?2)", NULL,
                        (int64_t)runs[i], err);
    /* The dump does not hold it. */
    if (status == 0)
        status = ledger_commit(models->ledger, err);
    if (status)
        models_rollback(models);
    return status;
}
