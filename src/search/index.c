/* SPDX-License-Identifier: Apache-2.0 */
#include "search/index.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "store/ledger.h"
#include "track/map.h"

enum { BUSY_MS = 5 * 1000, PAIR = 1 + sizeof(cell) };

/* A column is read once from end to end: to keep its pages costs more than to read them again. */
#define READER_CACHE "-512"
#define WRITER_CACHE "-65536"

/* A file that another user wrote must not make us take more memory than these allow. */
enum {
    FIELDS_MOST = 1 << 24,
    WORDS_MOST = 1 << 26,
    BLOCKS_MOST = 1 << 18,
    FIELD_NAME_MOST = 1 << 20,
};

enum statement {
    GET_FIELD,
    ADD_FIELD,
    EACH_FIELD,
    GET_WORD,
    ADD_WORD,
    GET_TEXT,
    EACH_WORD,
    GET_CELLS,
    PUT_CELLS,
    DROP_CELLS,
    EACH_CELLS,
    GET_WATCHED,
    ADD_WATCHED,
    DROP_WATCHED,
    GET_SEEN,
    PUT_SEEN,
    STATEMENTS,
};

static const char *const texts[STATEMENTS] = {
    [GET_FIELD] = "SELECT id FROM fields WHERE name = ?",
    [ADD_FIELD] = "INSERT INTO fields (name) VALUES (?)",
    [EACH_FIELD] = "SELECT id, name FROM fields ORDER BY name",
    [GET_WORD] = "SELECT id FROM words WHERE text = ?",
    [ADD_WORD] = "INSERT INTO words (text) VALUES (?)",
    [GET_TEXT] = "SELECT text FROM words WHERE id = ?",
    [EACH_WORD] = "SELECT id, text FROM words ORDER BY text",
    [GET_CELLS] = "SELECT cells FROM columns WHERE place = ?",
    [PUT_CELLS] = "INSERT OR REPLACE INTO columns (place, cells) VALUES (?, ?)",
    [DROP_CELLS] = "DELETE FROM columns WHERE place = ?",
    [EACH_CELLS] = "SELECT place, cells FROM columns WHERE place BETWEEN ? AND ? ORDER BY place",
    [GET_WATCHED] = "SELECT run FROM watched ORDER BY run",
    [ADD_WATCHED] = "INSERT OR IGNORE INTO watched (run) VALUES (?)",
    [DROP_WATCHED] = "DELETE FROM watched WHERE run = ?",
    [GET_SEEN] = "SELECT changed FROM seen WHERE id = 1",
    [PUT_SEEN] = "INSERT OR REPLACE INTO seen (id, changed) VALUES (1, ?)",
};

static const char *const schema[] = {
    "CREATE TABLE fields (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE words (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    /* place: the field, and in the lower 32 bits the block. */
    "CREATE TABLE columns (place INTEGER PRIMARY KEY, cells BLOB NOT NULL)",
    "CREATE TABLE watched (run INTEGER PRIMARY KEY)",
    "CREATE TABLE seen (id INTEGER PRIMARY KEY, changed INTEGER NOT NULL)",
};
static const struct database_tables tables = { .sql = schema, .n = ARRAY_LEN(schema) };

/* The cells of one field in the block that is being written. */
struct slot {
    uint32_t field;
    bool is_changed;
    cell cells[INDEX_BLOCK];
};

struct search_index {
    struct database database;
    sqlite3_stmt *statements[STATEMENTS];

    struct map fields; /* name to number, once something is written */
    uint64_t block;    /* that is being written */
    VEC(struct slot *) slots;
    VEC(uint32_t) slot_of; /* by field: place in slots + 1 */
};

/* ---- statements ---- */

static int execute(struct search_index *index, const char *sql, struct error *err) {
    return database_execute(&index->database, sql, err);
}

static int statement(struct search_index *index, enum statement which, sqlite3_stmt **out,
                     struct error *err) {
    sqlite3_stmt **place = &index->statements[which];
    int code = SQLITE_OK;

    database_rearm(&index->database);
    if (!*place)
        code = sqlite3_prepare_v3(index->database.db, texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                  place, NULL);
    *out = *place;
    return code == SQLITE_OK ? 0 : database_fail(&index->database, code, err);
}

/* One step; the caller resets it when it is done with the row. */
static int step(struct search_index *index, sqlite3_stmt *running, bool *has_row,
                struct error *err) {
    const int code = sqlite3_step(running);

    *has_row = code == SQLITE_ROW;
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        return 0;
    database_fail(&index->database, code, err);
    sqlite3_reset(running);
    return -1;
}

/* Runs one that takes a number and gives nothing. */
static int change(struct search_index *index, enum statement which, int64_t number,
                  struct error *err) {
    sqlite3_stmt *running;
    bool has_row;

    if (statement(index, which, &running, err))
        return -1;
    sqlite3_bind_int64(running, 1, number);
    if (step(index, running, &has_row, err))
        return -1;
    sqlite3_reset(running);
    return 0;
}

/* ---- opening ---- */

/* SQLite does not wait for others who do the same at this moment. */
static int begin_log(struct search_index *index, struct error *err) {
    const int64_t until_us = clock_monotonic_us() + BUSY_MS * INT64_C(1000);

    while (execute(index, "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL", err)) {
        if (err->code != ERROR_UNAVAILABLE || clock_monotonic_us() >= until_us)
            return -1;
        clock_pause_ms(2);
    }
    return 0;
}

/* Version and schema of one moment. A version of 0 is an empty file. */
static int check_tables(struct search_index *index, int *version, struct error *err) {
    int found;

    if (database_version(&index->database, &found, err))
        return -1;
    if (found != 0 && found != INDEX_VERSION)
        return database_reject(&index->database, err, "its version is %d", found);
    if (database_check_schema(&index->database, &tables, found == 0 ? 0 : 1, err))
        return -1;
    *version = found;
    return 0;
}

static int write_tables(struct search_index *index, struct error *err) {
    char set[64];

    for (size_t i = 0; i < ARRAY_LEN(schema); i++)
        if (execute(index, schema[i], err))
            return -1;
    snprintf(set, sizeof set, "PRAGMA user_version = %d", INDEX_VERSION);
    return execute(index, set, err);
}

static int make_tables(struct search_index *index, struct error *err) {
    int version, status;

    if (execute(index, "BEGIN", err))
        return -1;
    status = check_tables(index, &version, err);
    index_rollback(index);
    if (status || version == INDEX_VERSION)
        return status;
    if (begin_log(index, err) || execute(index, "BEGIN IMMEDIATE", err))
        return -1;
    /* Somebody else may have made them meanwhile. */
    if (check_tables(index, &version, err) == 0 &&
        (version == INDEX_VERSION || write_tables(index, err) == 0) &&
        execute(index, "COMMIT", err) == 0)
        return 0;
    index_rollback(index);
    return -1;
}

static int open_once(const char *home, enum index_place place, struct search_index **out,
                     bool *is_damaged, struct error *err) {
    struct search_index *index = calloc(1, sizeof *index);

    if (!index)
        abort();
    index->block = UINT64_MAX;
    if (database_open(&index->database, home, &database_index,
                      place == INDEX_IN_MEMORY ? DATABASE_IN_MEMORY : DATABASE_CREATE, BUSY_MS,
                      err) ||
        execute(index, "PRAGMA synchronous = NORMAL; PRAGMA cache_size = " READER_CACHE, err) ||
        make_tables(index, err)) {
        *is_damaged = index->database.is_damaged;
        index_free(index);
        return -1;
    }
    *out = index;
    return 0;
}

int index_open(const char *home, enum index_place place, struct search_index **out,
               struct error *err) {
    bool is_damaged = false;
    struct statfs fs;

    if (place == INDEX_IN_HOME && statfs(home, &fs) == 0 &&
        ledger_check_filesystem(home, (long)fs.f_type, err))
        return -1;
    if (open_once(home, place, out, &is_damaged, err) == 0)
        return 0;
    if (!is_damaged || place == INDEX_IN_MEMORY)
        return -1;
    index_discard(home);
    return open_once(home, place, out, &is_damaged, err);
}

static void forget_block(struct search_index *index) {
    for (size_t i = 0; i < index->slots.len; i++) {
        index->slot_of.items[index->slots.items[i]->field] = 0;
        free(index->slots.items[i]);
    }
    index->slots.len = 0;
    index->block = UINT64_MAX;
}

void index_free(struct search_index *index) {
    if (!index)
        return;
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(index->statements[i]);
    database_close(&index->database);
    forget_block(index);
    VEC_RELEASE(&index->slots);
    VEC_RELEASE(&index->slot_of);
    map_release(&index->fields);
    free(index);
}

bool index_is_damaged(const struct search_index *index) {
    return index->database.is_damaged;
}

/* Where the files cannot be removed (a sticky home, another owner), the content can. */
static void empty(const char *home) {
    struct database database = { 0 };
    struct error ignored;

    if (database_open(&database, home, &database_index, DATABASE_EXISTING, BUSY_MS, &ignored) == 0)
        (void)!database_reset(&database, &ignored);
    database_close(&database);
}

void index_discard(const char *home) {
    char path[PATH_MAX];
    struct error ignored;

    if (database_check_replaceable(home, &database_index, &ignored)) {
        empty(home);
        return;
    }
    for (size_t i = DATABASE_FILES; i-- > 0;)
        if (snprintf(path, sizeof path, "%s/%s", home,
                     database_name(home, &database_index, database_suffixes[i]).text) <
            (int)sizeof path)
            (void)remove(path);
}

/* ---- fields and words ---- */

/* Numbers of fields and words are indexes of arrays, and those of runs are ids. */
static bool read_number(sqlite3_stmt *running, enum statement which, uint64_t *out) {
    const int64_t most = which == GET_FIELD || which == EACH_FIELD ? FIELDS_MOST
                         : which == GET_WATCHED                    ? RUNDIR_ID_LAST
                                                                   : WORDS_MOST;
    int64_t number;

    if (!database_integer(running, 0, which == GET_WATCHED ? 0 : 1, most, &number))
        return false;
    *out = (uint64_t)number;
    return true;
}

/* Content that we did not write. */
static int refuse(struct search_index *index, sqlite3_stmt *running, enum statement which,
                  struct error *err) {
    sqlite3_reset(running);
    return database_reject(&index->database, err, "what '%.60s' finds makes no sense",
                           texts[which]);
}

static int number_of(struct search_index *index, enum statement which, const char *text, size_t n,
                     uint64_t *out, struct error *err) {
    sqlite3_stmt *running;
    bool has_row;

    if (statement(index, which, &running, err))
        return -1;
    sqlite3_bind_text(running, 1, text, (int)n, SQLITE_STATIC);
    if (step(index, running, &has_row, err))
        return -1;
    *out = 0;
    if (has_row && !read_number(running, which, out))
        return refuse(index, running, which, err);
    sqlite3_reset(running);
    return 0;
}

/* A word ends before a character that does not fit whole. */
static size_t word_length(const char *text) {
    size_t n = strnlen(text, INDEX_WORD_MOST + 1);

    if (n > INDEX_WORD_MOST)
        for (n = INDEX_WORD_MOST; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
            n--;
    return n;
}

int index_field(struct search_index *index, const char *name, uint32_t *out, struct error *err) {
    uint64_t number;

    if (number_of(index, GET_FIELD, name, strlen(name), &number, err))
        return -1;
    *out = (uint32_t)number;
    return 0;
}

int index_word(struct search_index *index, const char *text, uint64_t *out, struct error *err) {
    return number_of(index, GET_WORD, text, word_length(text), out, err);
}

int index_text(struct search_index *index, uint64_t word, struct arena *arena, const char **out,
               struct error *err) {
    sqlite3_stmt *running;
    const char *text;
    bool has_row;

    if (statement(index, GET_TEXT, &running, err))
        return -1;
    sqlite3_bind_int64(running, 1, (int64_t)word);
    if (step(index, running, &has_row, err))
        return -1;
    text = has_row ? database_text(running, 0, INDEX_WORD_MOST) : "";
    if (!text)
        return refuse(index, running, GET_TEXT, err);
    *out = arena_text(arena, text, strlen(text));
    sqlite3_reset(running);
    return 0;
}

static int each(struct search_index *index, enum statement which, index_visit *visit, void *context,
                struct error *err) {
    const size_t most = which == EACH_WORD ? INDEX_WORD_MOST : FIELD_NAME_MOST;
    sqlite3_stmt *running;
    bool has_row;

    if (statement(index, which, &running, err))
        return -1;
    while (step(index, running, &has_row, err) == 0) {
        const char *text;
        uint64_t number;

        if (!has_row) {
            sqlite3_reset(running);
            return 0;
        }
        text = which == GET_WATCHED ? "" : database_text(running, 1, most);
        if (!text || !read_number(running, which, &number))
            return refuse(index, running, which, err);
        visit(context, number, text);
    }
    return -1;
}

int index_each_word(struct search_index *index, index_visit *visit, void *context,
                    struct error *err) {
    return each(index, EACH_WORD, visit, context, err);
}

int index_each_field(struct search_index *index, index_visit *visit, void *context,
                     struct error *err) {
    return each(index, EACH_FIELD, visit, context, err);
}

/* ---- cells ---- */

static int64_t place_of(uint32_t field, uint64_t block) {
    return (int64_t)((uint64_t)field << 32 | block);
}

static void unpack(const unsigned char *bytes, size_t n, cell out[INDEX_BLOCK]) {
    if (n == INDEX_BLOCK * sizeof(cell)) {
        memcpy(out, bytes, n);
        return;
    }
    for (size_t i = 0; i < INDEX_BLOCK; i++)
        out[i] = CELL_NOTHING;
    for (; n >= PAIR; bytes += PAIR, n -= PAIR)
        memcpy(&out[bytes[0]], bytes + 1, sizeof(cell));
}

static size_t pack(const cell cells[INDEX_BLOCK], unsigned char out[INDEX_BLOCK * sizeof(cell)]) {
    size_t n = 0;

    for (size_t i = 0; i < INDEX_BLOCK; i++) {
        if (cell_kind(cells[i]) == CELL_NONE)
            continue;
        if (n + PAIR >= INDEX_BLOCK * sizeof(cell)) {
            memcpy(out, cells, INDEX_BLOCK * sizeof(cell));
            return INDEX_BLOCK * sizeof(cell);
        }
        out[n] = (unsigned char)i;
        memcpy(out + n + 1, &cells[i], sizeof(cell));
        n += PAIR;
    }
    return n;
}

static int get_cells(struct search_index *index, uint32_t field, uint64_t block,
                     cell out[INDEX_BLOCK], struct error *err) {
    sqlite3_stmt *running;
    bool has_row;

    if (statement(index, GET_CELLS, &running, err))
        return -1;
    sqlite3_bind_int64(running, 1, place_of(field, block));
    if (step(index, running, &has_row, err))
        return -1;
    unpack(has_row ? sqlite3_column_blob(running, 0) : NULL,
           has_row ? (size_t)sqlite3_column_bytes(running, 0) : 0, out);
    sqlite3_reset(running);
    return 0;
}

int index_cell(struct search_index *index, uint32_t field, uint64_t run, cell *out,
               struct error *err) {
    cell cells[INDEX_BLOCK];

    if (get_cells(index, field, run / INDEX_BLOCK, cells, err))
        return -1;
    *out = cells[run % INDEX_BLOCK];
    return 0;
}

int index_blocks(struct search_index *index, uint32_t field, struct index_blocks *out,
                 struct error *err) {
    sqlite3_stmt *running;
    bool has_row;

    if (statement(index, EACH_CELLS, &running, err))
        return -1;
    sqlite3_bind_int64(running, 1, place_of(field, 0));
    sqlite3_bind_int64(running, 2, place_of(field, UINT32_MAX));
    while (step(index, running, &has_row, err) == 0) {
        if (!has_row) {
            sqlite3_reset(running);
            return 0;
        }
        if (out->numbers.len == BLOCKS_MOST)
            return refuse(index, running, EACH_CELLS, err);
        *VEC_PUSH(&out->numbers) = (uint64_t)sqlite3_column_int64(running, 0) & UINT32_MAX;
    }
    return -1;
}

int index_column(struct search_index *index, uint32_t field, const struct index_blocks *blocks,
                 cell *out, struct error *err) {
    sqlite3_stmt *running;
    bool has_row = true;
    size_t at = 0;

    if (statement(index, EACH_CELLS, &running, err))
        return -1;
    sqlite3_bind_int64(running, 1, place_of(field, 0));
    sqlite3_bind_int64(running, 2, place_of(field, UINT32_MAX));
    while (at < blocks->numbers.len) {
        uint64_t block = UINT64_MAX;

        if (has_row && step(index, running, &has_row, err))
            return -1;
        if (has_row)
            block = (uint64_t)sqlite3_column_int64(running, 0) & UINT32_MAX;
        for (; at < blocks->numbers.len && blocks->numbers.items[at] < block; at++)
            unpack(NULL, 0, out + at * INDEX_BLOCK);
        if (at < blocks->numbers.len && blocks->numbers.items[at] == block) {
            unpack(sqlite3_column_blob(running, 1), (size_t)sqlite3_column_bytes(running, 1),
                   out + at * INDEX_BLOCK);
            at++;
        }
    }
    sqlite3_reset(running);
    return 0;
}

/* ---- writing ---- */

static int flush_block(struct search_index *index, struct error *err) {
    unsigned char bytes[INDEX_BLOCK * sizeof(cell)];
    sqlite3_stmt *running;
    bool has_row;

    for (size_t i = 0; i < index->slots.len; i++) {
        struct slot *slot = index->slots.items[i];
        const size_t n = pack(slot->cells, bytes);
        const int64_t place = place_of(slot->field, index->block);

        if (!slot->is_changed)
            continue;
        slot->is_changed = false;
        if (n == 0) {
            if (change(index, DROP_CELLS, place, err))
                return -1;
            continue;
        }
        if (statement(index, PUT_CELLS, &running, err))
            return -1;
        sqlite3_bind_int64(running, 1, place);
        sqlite3_bind_blob(running, 2, bytes, (int)n, SQLITE_STATIC);
        if (step(index, running, &has_row, err))
            return -1;
        sqlite3_reset(running);
    }
    return 0;
}

int index_begin(struct search_index *index, struct error *err) {
    /* What was read before the transaction may have been changed by others. */
    forget_block(index);
    map_release(&index->fields);
    index->fields = (struct map){ 0 };
    return execute(index, "PRAGMA cache_size = " WRITER_CACHE "; BEGIN IMMEDIATE", err);
}

int index_commit(struct search_index *index, struct error *err) {
    return flush_block(index, err) ||
                   execute(index, "COMMIT; PRAGMA cache_size = " READER_CACHE, err)
               ? -1
               : 0;
}

int index_look(struct search_index *index, struct error *err) {
    return execute(index, "BEGIN", err);
}

void index_rollback(struct search_index *index) {
    forget_block(index);
    sqlite3_exec(index->database.db, "ROLLBACK", NULL, NULL, NULL);
}

static int find_or_add(struct search_index *index, enum statement get, enum statement add,
                       const char *text, size_t n, uint64_t *out, struct error *err) {
    sqlite3_stmt *running;
    bool has_row;

    if (number_of(index, get, text, n, out, err))
        return -1;
    if (*out)
        return 0;
    if (statement(index, add, &running, err))
        return -1;
    sqlite3_bind_text(running, 1, text, (int)n, SQLITE_STATIC);
    if (step(index, running, &has_row, err))
        return -1;
    sqlite3_reset(running);
    *out = (uint64_t)sqlite3_last_insert_rowid(index->database.db);
    /* SQLite counts on from the highest number that there is, or takes any. */
    if (*out == 0 || *out > (add == ADD_FIELD ? FIELDS_MOST : WORDS_MOST))
        return refuse(index, running, get, err);
    return 0;
}

static int writable_field(struct search_index *index, const char *name, uint32_t *out,
                          struct error *err) {
    const size_t n = strlen(name);
    uint64_t number;

    if (!map_get(&index->fields, name, n, &number)) {
        if (find_or_add(index, GET_FIELD, ADD_FIELD, name, n, &number, err))
            return -1;
        map_put(&index->fields, name, n, number);
    }
    *out = (uint32_t)number;
    return 0;
}

/* The cells of a field in the block that is being written. */
static int open_slot(struct search_index *index, uint32_t field, struct slot **out,
                     struct error *err) {
    struct slot *slot;

    while (index->slot_of.len <= field)
        *VEC_PUSH(&index->slot_of) = 0;
    if (index->slot_of.items[field] == 0) {
        slot = calloc(1, sizeof *slot);
        if (!slot)
            abort();
        slot->field = field;
        if (get_cells(index, field, index->block, slot->cells, err)) {
            free(slot);
            return -1;
        }
        *VEC_PUSH(&index->slots) = slot;
        index->slot_of.items[field] = (uint32_t)index->slots.len;
    }
    *out = index->slots.items[index->slot_of.items[field] - 1];
    return 0;
}

static void note_field(void *context, uint64_t number, const char *name) {
    struct index_ids *ids = context;

    (void)name;
    *VEC_PUSH(&ids->list) = number;
}

/* Takes out what was known of a run. */
static int clear_run(struct search_index *index, uint64_t run, struct error *err) {
    struct index_ids fields = { 0 };
    struct slot *slot;
    int status = index_each_field(index, note_field, &fields, err);

    for (size_t i = 0; status == 0 && i < fields.list.len; i++) {
        status = open_slot(index, (uint32_t)fields.list.items[i], &slot, err);
        if (status == 0 && cell_kind(slot->cells[run % INDEX_BLOCK]) != CELL_NONE) {
            slot->cells[run % INDEX_BLOCK] = CELL_NOTHING;
            slot->is_changed = true;
        }
    }
    VEC_RELEASE(&fields.list);
    return status;
}

static int put_fact(struct search_index *index, uint64_t run, const struct fact *fact,
                    struct error *err) {
    struct slot *slot;
    uint64_t word = 0;
    uint32_t field;

    if (writable_field(index, fact->field, &field, err) || open_slot(index, field, &slot, err))
        return -1;
    if (fact->kind == CELL_WORD &&
        find_or_add(index, GET_WORD, ADD_WORD, fact->text, word_length(fact->text), &word, err))
        return -1;
    slot->cells[run % INDEX_BLOCK] = fact->kind == CELL_WORD    ? cell_of_word(word)
                                     : fact->kind == CELL_TRUTH ? cell_of_truth(fact->number != 0)
                                                                : cell_of_number(fact->number);
    slot->is_changed = true;
    return 0;
}

int index_put(struct search_index *index, uint64_t run, const struct fact *facts, size_t n,
              struct error *err) {
    struct slot *slot;
    uint32_t status;

    if (run > RUNDIR_ID_LAST)
        return error_set(err, ERROR_INVALID, "the id of run %llu is too large for an index",
                         (unsigned long long)run);
    if (run / INDEX_BLOCK != index->block) {
        if (flush_block(index, err))
            return -1;
        forget_block(index);
        index->block = run / INDEX_BLOCK;
    }
    /* What is known of a run at all has a status. */
    if (writable_field(index, "status", &status, err) || open_slot(index, status, &slot, err))
        return -1;
    if (cell_kind(slot->cells[run % INDEX_BLOCK]) != CELL_NONE && clear_run(index, run, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (put_fact(index, run, &facts[i], err))
            return -1;
    return 0;
}

/* ---- what has to be looked at again ---- */

int index_watch(struct search_index *index, uint64_t run, bool is_watched, struct error *err) {
    return change(index, is_watched ? ADD_WATCHED : DROP_WATCHED, (int64_t)run, err);
}

static void add_watched(void *context, uint64_t run, const char *text) {
    struct index_ids *out = context;

    (void)text; /* there is no such column */
    *VEC_PUSH(&out->list) = run;
}

int index_watched(struct search_index *index, struct index_ids *out, struct error *err) {
    return each(index, GET_WATCHED, add_watched, out, err);
}

int index_seen(struct search_index *index, int64_t *out, struct error *err) {
    sqlite3_stmt *running;
    bool has_row;

    if (statement(index, GET_SEEN, &running, err) || step(index, running, &has_row, err))
        return -1;
    *out = has_row ? sqlite3_column_int64(running, 0) : 0;
    sqlite3_reset(running);
    return 0;
}

int index_see(struct search_index *index, int64_t changed_ns, struct error *err) {
    return change(index, PUT_SEEN, changed_ns, err);
}
