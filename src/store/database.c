/* SPDX-License-Identifier: Apache-2.0 */
#include "store/database.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "store/locks.h"
#include "store/mapping.h"
#include "store/sharing.h"

enum {
    /* A page can name one child many times, so a small file can describe a table of any length. */
    STEPS_EVERY = 100 * 1000,
    STEPS_MOST = 100 * 1000 * 1000,
};

const struct database_kind database_ledger = {
    .file = "myelin.db",
    .noun = "ledger",
    .denied_advice = ", and without it nothing can be reserved: make it and its directory "
                     "writable, or set MYELIN_HOME",
    .damage_advice = ": 'myelin reindex' puts it aside and makes a new one from the journals of "
                     "the runs",
};

const struct database_kind database_index = {
    .file = "index.db",
    .noun = "index",
    .denied_advice = "",
    .damage_advice = ": 'myelin reindex' makes a new one",
    .is_private = true,
};

const char *const database_suffixes[DATABASE_FILES] = { "-wal", "-shm", "-journal", "" };

/* ---- errors ---- */

static int damaged(struct database *database, const char *why, struct error *err) {
    database->is_damaged = true;
    return error_set(err, ERROR_IO, "the %s '%.200s' is damaged (%.120s)%s", database->kind->noun,
                     database->path, why, database->kind->damage_advice);
}

int database_reject(struct database *database, struct error *err, const char *fmt, ...) {
    char why[160];
    va_list arguments;

    va_start(arguments, fmt);
    vsnprintf(why, sizeof why, fmt, arguments);
    va_end(arguments);
    return damaged(database, why, err);
}

int database_fail(struct database *database, int code, struct error *err) {
    const char *says = database->db ? sqlite3_errmsg(database->db) : sqlite3_errstr(code);
    const struct database_kind *kind = database->kind;

    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, ERROR_UNAVAILABLE, "the %s '%.200s' is in use by others", kind->noun,
                         database->path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR: /* its tables are others */
    case SQLITE_MISMATCH:
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG: return damaged(database, says, err);
    case SQLITE_INTERRUPT: return damaged(database, "reading it does not end", err);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
        return error_set(err, ERROR_DENIED, "cannot write the %s '%.200s' (%.80s)%s", kind->noun,
                         database->path, says, kind->denied_advice);
    case SQLITE_FULL:
        return error_set(err, ERROR_EXHAUSTED, "the disk of the %s '%.200s' is full", kind->noun,
                         database->path);
    default:
        return error_set(err, ERROR_IO, "the %s '%.200s' fails: %.120s", kind->noun, database->path,
                         says);
    }
}

struct database_name database_name(const char *home, const struct database_kind *kind,
                                   const char *suffix) {
    const char *end = strrchr(kind->file, '.');
    struct database_name name;

    if (kind->is_private && home_is_shared(home))
        snprintf(name.text, sizeof name.text, "%.*s.%u%s%s", (int)(end - kind->file), kind->file,
                 (unsigned)geteuid(), end, suffix);
    else
        snprintf(name.text, sizeof name.text, "%s%s", kind->file, suffix);
    return name;
}

void database_blame(const char *home, const struct database_kind *kind, struct error *err) {
    static const char *const suffixes[] = { "-shm", "" };
    char path[PATH_MAX], who[96];
    pid_t pid = 0;

    if (err->code != ERROR_UNAVAILABLE)
        return;
    for (size_t i = 0; pid == 0 && i < ARRAY_LEN(suffixes); i++)
        if (snprintf(path, sizeof path, "%s/%s", home,
                     database_name(home, kind, suffixes[i]).text) < (int)sizeof path)
            pid = locks_writer(path);
    if (pid == 0)
        return;
    locks_describe(pid, who, sizeof who);
    error_set(err, ERROR_UNAVAILABLE,
              "the %s '%.200s/%s' is in use by %s, which does not let go of it: it is "
              "free again when that process ends",
              kind->noun, home, database_name(home, kind, "").text, who);
}

/* ---- files ---- */

/* What SQLite calls in the place of open(2). It opens the database and the files beside it, their
 * directory to flush it, and the source of random numbers. */
static int open_guarded(const char *path, int flags, int mode) {
    const bool may_be_directory = (flags & (O_ACCMODE | O_CREAT)) == O_RDONLY;
    struct stat st;
    int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, (mode_t)mode);

    if (fd < 0 ||
        (fstat(fd, &st) == 0 &&
         (S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && may_be_directory) ||
          (S_ISCHR(st.st_mode) && may_be_directory && strcmp(path, "/dev/urandom") == 0))))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* What SQLite calls in the place of unlink(2). In a directory with the sticky bit nobody removes
 * the journal that another user's crash has left; an empty journal means the same as none. */
static int unlink_or_empty(const char *path) {
    static const char journal[] = "-journal";
    const size_t n = strlen(path), tail = sizeof journal - 1;
    int fd, status;

    if (unlink(path) == 0)
        return 0;
    if ((errno != EPERM && errno != EACCES) || n < tail || strcmp(path + n - tail, journal) != 0)
        return -1;
    fd = open_guarded(path, O_WRONLY, 0);
    if (fd < 0)
        return -1;
    status = ftruncate(fd, 0);
    close(fd);
    return status;
}

static void guard_files(void) {
    static bool is_done;
    sqlite3_vfs *vfs = is_done ? NULL : sqlite3_vfs_find(NULL);

    if (!vfs || !vfs->xSetSystemCall)
        return;
    vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_guarded);
    vfs->xSetSystemCall(vfs, "unlink", (sqlite3_syscall_ptr)unlink_or_empty);
    vfs->xSetSystemCall(vfs, "mmap", (sqlite3_syscall_ptr)mapping_make);
    vfs->xSetSystemCall(vfs, "munmap", (sqlite3_syscall_ptr)mapping_drop);
    is_done = true;
}

static const char *type_name(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFLNK: return "a symbolic link";
    case S_IFIFO: return "a FIFO";
    case S_IFDIR: return "a directory";
    case S_IFSOCK: return "a socket";
    default: return "a device";
    }
}

int database_check_files(const struct database_kind *kind, const char *path, struct error *err) {
    char file[PATH_MAX + 16];
    struct stat st;

    for (size_t i = 0; i < DATABASE_FILES; i++) {
        snprintf(file, sizeof file, "%s%s", path, database_suffixes[i]);
        if (lstat(file, &st) < 0)
            continue;
        if (!S_ISREG(st.st_mode))
            return error_set(err, ERROR_IO, "the %s is not used: '%.200s' is %s%s", kind->noun,
                             file, type_name(st.st_mode), kind->damage_advice);
        if (database_suffixes[i][0] && faccessat(AT_FDCWD, file, R_OK | W_OK, AT_EACCESS) < 0 &&
            errno == EACCES)
            return error_set(err, ERROR_DENIED,
                             "cannot use the %s: '%.200s' belongs to %s and cannot be written by "
                             "you: %s or root can run 'myelin reindex'",
                             kind->noun, file, file_owner(file).text, file_owner(file).text);
    }
    return 0;
}

int database_check_replaceable(const char *home, const struct database_kind *kind,
                               struct error *err) {
    const uid_t self = geteuid();
    struct stat directory, st;
    char path[PATH_MAX];

    if (self == 0 || stat(home, &directory) < 0 || !(directory.st_mode & S_ISVTX) ||
        directory.st_uid == self)
        return 0;
    for (size_t i = 0; i < DATABASE_FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", home,
                 database_name(home, kind, database_suffixes[i]).text);
        if (lstat(path, &st) == 0 && st.st_uid != self)
            return error_set(err, ERROR_DENIED,
                             "cannot replace '%.200s': it belongs to %s, and in this home only the "
                             "owner of a file may rename it: %s or root has to run 'myelin "
                             "reindex'",
                             path, file_owner(path).text, file_owner(path).text);
    }
    return 0;
}

/* ---- opening ---- */

static int count_steps(void *context) {
    struct database *database = context;

    database->n_steps += STEPS_EVERY;
    return database->n_steps > STEPS_MOST;
}

void database_rearm(struct database *database) {
    database->n_steps = 0;
}

/* "file:/home/a%20b/myelin.db?immutable=1" */
static int open_immutable(const char *path, sqlite3 **out) {
    char uri[3 * PATH_MAX + 32] = "file:";
    size_t n = strlen(uri);

    for (const char *p = path; *p; p++)
        n += (size_t)snprintf(uri + n, sizeof uri - n,
                              isalnum((unsigned char)*p) || strchr("/._-", *p) ? "%c" : "%%%02x",
                              (unsigned char)*p);
    snprintf(uri + n, sizeof uri - n, "?immutable=1");
    return sqlite3_open_v2(uri, out, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOFOLLOW,
                           NULL);
}

/* SQLite takes an empty file for a new database, and gives its mode to the files beside it. */
static void make_private(const char *home, const char *path) {
    const int fd = home_is_shared(home)
                       ? file_open_regular(path, O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR)
                       : -1;

    if (fd >= 0)
        close(fd);
}

/* SQLITE_OPEN_NOFOLLOW refuses links in every part of a path, and the home itself may be reached
 * by one. */
static int open_by_path(struct database *database, const char *home, enum database_mode mode) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW;
    char real[PATH_MAX + 32];

    if (!realpath(home, real))
        return SQLITE_CANTOPEN;
    snprintf(real + strlen(real), sizeof real - strlen(real), "/%s",
             database_name(home, database->kind, "").text);
    if (mode == DATABASE_UNCHANGED)
        return open_immutable(real, &database->db);
    if (mode == DATABASE_CREATE) {
        if (database->kind->is_private)
            make_private(home, real);
        else
            shared_prepare_database(home, database->path);
        flags |= SQLITE_OPEN_CREATE;
    }
    return sqlite3_open_v2(real, &database->db, flags, NULL);
}

/* Another user may have put a file of that name there. */
static int check_private(const struct database *database, const char *home, struct error *err) {
    struct stat st;

    if (!database->kind->is_private || !home_is_shared(home) || lstat(database->path, &st) < 0 ||
        (st.st_uid == geteuid() && !(st.st_mode & (S_IRWXG | S_IRWXO))))
        return 0;
    return error_set(err, ERROR_DENIED,
                     "the %s '%.200s' is not used: it is yours alone, and %s owns it or others may "
                     "use it: have it removed",
                     database->kind->noun, database->path, user_text(st.st_uid).text);
}

static void harden(sqlite3 *db) {
    static const struct {
        int option, value;
    } options[] = {
        { SQLITE_DBCONFIG_DEFENSIVE, 1 },
        { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
        { SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },
        { SQLITE_DBCONFIG_ENABLE_VIEW, 0 },
        { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 },
        { SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0 },
        { SQLITE_DBCONFIG_DQS_DDL, 0 },
        { SQLITE_DBCONFIG_DQS_DML, 0 },
    };
    static const struct {
        int limit, value;
    } limits[] = {
        { SQLITE_LIMIT_LENGTH, 20 << 20 }, /* a demand has at most 16 MiB */
        { SQLITE_LIMIT_SQL_LENGTH, 64 << 10 }, { SQLITE_LIMIT_COLUMN, 32 },
        { SQLITE_LIMIT_EXPR_DEPTH, 64 },       { SQLITE_LIMIT_COMPOUND_SELECT, 4 },
        { SQLITE_LIMIT_VDBE_OP, 25000 },       { SQLITE_LIMIT_FUNCTION_ARG, 8 },
        { SQLITE_LIMIT_ATTACHED, 0 },          { SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64 },
        { SQLITE_LIMIT_VARIABLE_NUMBER, 16 },  { SQLITE_LIMIT_TRIGGER_DEPTH, 0 },
        { SQLITE_LIMIT_WORKER_THREADS, 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        sqlite3_db_config(db, options[i].option, options[i].value, NULL);
    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        sqlite3_limit(db, limits[i].limit, limits[i].value);
}

int database_open(struct database *database, const char *home, const struct database_kind *kind,
                  enum database_mode mode, int busy_ms, struct error *err) {
    int code;

    database->kind = kind;
    database->n_losses = mapping_losses();
    guard_files();
    if (mode == DATABASE_IN_MEMORY) {
        snprintf(database->path, sizeof database->path, ":memory:");
        code = sqlite3_open_v2(":memory:", &database->db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    } else {
        if (snprintf(database->path, sizeof database->path, "%s/%s", home,
                     database_name(home, kind, "").text) >= (int)sizeof database->path)
            return error_set(err, ERROR_INVALID, "the path of the home is too long");
        if (check_private(database, home, err))
            return -1;
        if (mode != DATABASE_UNCHANGED && database_check_files(kind, database->path, err)) {
            database->is_damaged = true;
            return -1;
        }
        code = open_by_path(database, home, mode);
    }
    if (code != SQLITE_OK)
        return database_fail(database, code, err);
    sqlite3_extended_result_codes(database->db, 1);
    sqlite3_busy_timeout(database->db, busy_ms);
    sqlite3_progress_handler(database->db, STEPS_EVERY, count_steps, database);
    harden(database->db);
    return database_execute(database, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", err);
}

void database_close(struct database *database) {
    sqlite3_close(database->db);
    database->db = NULL;
}

/* ---- statements ---- */

bool database_is_lost(const struct database *database) {
    return database->n_losses != mapping_losses();
}

static int check_not_lost(const struct database *database, struct error *err) {
    if (!database_is_lost(database))
        return 0;
    return error_set(
        err, ERROR_UNAVAILABLE,
        "the %s '%.200s' is in use by a process that cut its -shm file short: try again",
        database->kind->noun, database->path);
}

int database_execute(struct database *database, const char *sql, struct error *err) {
    int code;

    if (check_not_lost(database, err))
        return -1;
    database_rearm(database);
    code = sqlite3_exec(database->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : database_fail(database, code, err);
}

int database_prepare(struct database *database, const char *sql, sqlite3_stmt **out,
                     struct error *err) {
    int code;

    if (check_not_lost(database, err))
        return -1;
    database_rearm(database);
    code = sqlite3_prepare_v2(database->db, sql, -1, out, NULL);
    return code == SQLITE_OK ? 0 : database_fail(database, code, err);
}

int database_finish(struct database *database, sqlite3_stmt *statement, struct error *err) {
    const int code = sqlite3_step(statement);
    const int status = code == SQLITE_DONE ? 0 : database_fail(database, code, err);

    sqlite3_finalize(statement);
    return status;
}

int database_version(struct database *database, int *out, struct error *err) {
    sqlite3_stmt *statement;
    int code;

    if (database_prepare(database, "PRAGMA user_version", &statement, err))
        return -1;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *out = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? 0 : database_fail(database, code, err);
}

/* ---- the schema ---- */

bool database_is_same_sql(const char *a, const char *b) {
    for (;; a++, b++) {
        while (isspace((unsigned char)*a))
            a++;
        while (isspace((unsigned char)*b))
            b++;
        if (*a != *b)
            return false;
        if (*a == '\0')
            return true;
    }
}

enum { PARTS_MOST = 4, OBJECTS_MOST = 32 };

/* Marks what the row is. An index that SQLite makes for a key has no text. */
static bool mark_known(sqlite3_stmt *row, const struct database_tables *tables, size_t n,
                       uint32_t seen[static PARTS_MOST]) {
    const char *type = database_text(row, 0, 16), *name = database_text(row, 1, 256);
    const char *sql = database_text(row, 2, 64 << 10);

    if (!type || !name)
        return false;
    if (sqlite3_column_type(row, 2) == SQLITE_NULL)
        return strcmp(type, "index") == 0 && strncmp(name, "sqlite_autoindex_", 17) == 0;
    if (!sql || (strcmp(type, "table") != 0 && strcmp(type, "index") != 0))
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < tables[i].n; j++)
            if (database_is_same_sql(sql, tables[i].sql[j])) {
                seen[i] |= UINT32_C(1) << j;
                return true;
            }
    return false;
}

static int refuse_object(struct database *database, sqlite3_stmt *row, struct error *err) {
    const char *type = database_text(row, 0, 16), *name = database_text(row, 1, 64);

    return database_reject(database, err, "its %s '%.64s' is not of myelin's making",
                           type ? type : "schema", name ? name : "?");
}

int database_check_schema(struct database *database, const struct database_tables *tables, size_t n,
                          struct error *err) {
    uint32_t seen[PARTS_MOST] = { 0 };
    sqlite3_stmt *statement;
    int code, status = 0;

    if (n > PARTS_MOST)
        abort();
    if (database_prepare(database, "SELECT type, name, sql FROM sqlite_master", &statement, err))
        return -1;
    while (status == 0 && (code = sqlite3_step(statement)) == SQLITE_ROW)
        if (!mark_known(statement, tables, n, seen))
            status = refuse_object(database, statement, err);
    if (status == 0 && code != SQLITE_DONE)
        status = database_fail(database, code, err);
    sqlite3_finalize(statement);
    for (size_t i = 0; status == 0 && i < n; i++) {
        const uint32_t all = (uint32_t)((UINT64_C(1) << tables[i].n) - 1);

        if (tables[i].n > OBJECTS_MOST)
            abort();
        if (seen[i] != all && !(tables[i].is_optional && seen[i] == 0))
            status = database_reject(database, err, "some of its tables are missing");
    }
    return status;
}

int database_reset(struct database *database, struct error *err) {
    int status;

    /* VACUUM writes to a temporary database that it attaches. */
    sqlite3_limit(database->db, SQLITE_LIMIT_ATTACHED, 1);
    sqlite3_db_config(database->db, SQLITE_DBCONFIG_RESET_DATABASE, 1, NULL);
    status = database_execute(database, "VACUUM", err);
    sqlite3_db_config(database->db, SQLITE_DBCONFIG_RESET_DATABASE, 0, NULL);
    sqlite3_limit(database->db, SQLITE_LIMIT_ATTACHED, 0);
    return status;
}

/* ---- values ---- */

bool database_integer(sqlite3_stmt *statement, int column, int64_t least, int64_t most,
                      int64_t *out) {
    int64_t value;

    if (sqlite3_column_type(statement, column) != SQLITE_INTEGER)
        return false;
    value = sqlite3_column_int64(statement, column);
    if (value < least || value > most)
        return false;
    *out = value;
    return true;
}

const char *database_text(sqlite3_stmt *statement, int column, size_t most) {
    const char *text;
    size_t n;

    if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
        return NULL;
    text = (const char *)sqlite3_column_text(statement, column);
    n = (size_t)sqlite3_column_bytes(statement, column);
    return text && n <= most && memchr(text, '\0', n) == NULL ? text : NULL;
}
