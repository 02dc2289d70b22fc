/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models of a home: which artifact of which run is which version of a model, and which
 * version an alias ("production") names.
 *
 * A version is a number that counts up within a name, is given once, when the artifact is
 * recorded (inventory.h), and is never given again, also not when its run was removed. The run's
 * journal keeps the number; aliases and the highest number of each name belong to no run, so they
 * live in the database, $MYELIN_HOME/myelin.db, and are dumped to models.json beside it at every
 * change. Tables that are made new begin with what the dump and the journals say, so losing the
 * database loses nothing; losing both loses the aliases.
 *
 * A model is named NAME (its newest version), NAME:3, NAME:latest (the newest too) or NAME:alias.
 *
 * Names are 1 to 128 bytes without ':', blanks and control characters. Aliases are letters, digits,
 * '.', '_' and '-', begin with a letter, and are at most 64 bytes.
 */
#ifndef STORE_MODELS_H
#define STORE_MODELS_H

#include "store/ledger.h"

struct models;

/* The tables of models, which a ledger has or does not have. */
extern const struct database_tables models_tables;

struct model_row {
    const char *name;
    int64_t version; /* from 1 */
    uint64_t run;
    const char *path; /* below the run's outputs/ */
    const char *sha256;
    uint64_t size, files;
    const char **aliases; /* by name, ended by NULL */
};

enum { MODEL_NAME_MOST = 128, MODEL_ALIAS_MOST = 64, MODEL_VERSION_MOST = 2147483647 };

/* Whether name, path and hash are such as we write: the path stays below the outputs, the hash is
 * 64 digits. */
bool model_row_is_sound(const struct model_row *row);

MUST_CHECK int model_name_check(const char *name, struct error *err);
MUST_CHECK int model_alias_check(const char *alias, struct error *err);

/* As ledger_open. Where there is nothing to look at *out is NULL, which all that look accept. */
MUST_CHECK int models_open(const char *home, enum ledger_manner manner, struct models **out,
                           struct error *err);
void models_close(struct models *models); /* NULL is nothing */

/* A transaction for writing. The commit writes the dump first: what is in the database is in it. */
MUST_CHECK int models_begin(struct models *models, struct error *err);
MUST_CHECK int models_commit(struct models *models, struct error *err);
void models_rollback(struct models *models);

/* Gives a version to an artifact: the one that it has, the one that `row` asks for (0: none) if
 * nobody has that, else the next. Inside a transaction. */
MUST_CHECK int models_assign(struct models *models, const struct model_row *row, int64_t *version,
                             struct error *err);

/* The highest version that was ever given to a name; 0: none. */
MUST_CHECK int models_last(struct models *models, const char *name, int64_t *out,
                           struct error *err);

/* All versions of a name, or of all (NULL), by name, the newest first. They live in the arena. */
MUST_CHECK int models_list(struct models *models, const char *name, struct arena *arena,
                           struct model_row **list, size_t *n, struct error *err);
/* Fails with ERROR_NOT_FOUND, and says what there is. */
MUST_CHECK int models_find(struct models *models, const char *named, struct arena *arena,
                           struct model_row *out, struct error *err);

/* Gives a version an alias, which another version of that name loses; *before is that one, or 0. */
MUST_CHECK int models_alias(struct models *models, const struct model_row *row, const char *alias,
                            int64_t *before, struct error *err);
/* Fails with ERROR_NOT_FOUND where that version has no such alias. */
MUST_CHECK int models_unalias(struct models *models, const struct model_row *row, const char *alias,
                              struct error *err);

/* Before a run is removed: takes its versions out. Fails with ERROR_CONFLICT, and says how to go
 * on, where one of them has an alias. */
MUST_CHECK int models_release_run(const char *home, uint64_t run, struct error *err);

/* The runs whose artifacts were looked at after their end, ascending. */
MUST_CHECK int models_looked(struct models *models, struct arena *arena, uint64_t **runs, size_t *n,
                             struct error *err);
MUST_CHECK int models_mark_looked(struct models *models, const uint64_t *runs, size_t n,
                                  struct error *err);

/* Makes the tables anew from the dump, which is written before where it can be, and the journals.
 */
MUST_CHECK int models_rebuild(const char *home, struct error *err);

#endif
