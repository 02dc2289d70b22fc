/* SPDX-License-Identifier: Apache-2.0 */
/*
 * $MYELIN_HOME/models.json: what the database knows of models and no run does (docs/models.md).
 * Written whole or not at all; read when the database has to be made again.
 */
#ifndef STORE_MODELS_DUMP_H
#define STORE_MODELS_DUMP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct models_fact {
    const char *name;
    const char *alias; /* NULL: `version` is the highest that was given */
    int64_t version;   /* else the one that the alias names */
};

/* Of each name the highest version stands before its aliases. */
MUST_CHECK int models_dump_write(const char *home, const struct models_fact *facts, size_t n,
                                 struct error *err);

/* Hands on each fact; one that makes no sense is an error that names the file, so that nothing is
 * lost in silence. No file is no facts. */
typedef int (*models_take)(void *context, const struct models_fact *fact, struct error *err);
MUST_CHECK int models_dump_read(const char *home, models_take take, void *context,
                                struct error *err);

/* The same of a text. */
MUST_CHECK int models_dump_parse(const char *text, size_t n, models_take take, void *context,
                                 struct error *err);

#endif
