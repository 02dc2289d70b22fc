/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polyaxonfiles named on the command line, compiled: what `check`, `plan` and `run` share.
 * Files are merged in the order given, the operand first; `-P` values lie over them. Without
 * a file the usual names are looked for in the working directory; a directory that is named stands
 * for the file of a usual name in it. Where tasks run does not depend on where their file is.
 */
#ifndef CLI_LOAD_H
#define CLI_LOAD_H

#include <limits.h>

#include "cli/command.h"
#include "codec/diag.h"
#include "model/plan.h"

/* Rows for a command's table of options. */
/* clang-format off */
#define LOAD_OPTIONS                                                                               \
    { .name = "file", .letter = 'f', .argument = "FILE", .kind = ARGUMENT_FILE, .repeats = true,   \
      .help = "read this polyaxonfile too; later ones win where both say something" },             \
    { .name = "param", .letter = 'P', .argument = "NAME=VALUE", .repeats = true,                   \
      .help = "set a param of the file, or change its value; one that the file does not use is warned "   \
              "of" },                                                                              \
    { .name = "strict", .help = "take every warning about the file for an error" }
/* clang-format on */

/* A compilation: its texts, what was found wrong, and the plan if nothing was. */
struct loaded {
    struct sources sources;
    size_t n_given; /* of the sources: files and params; what is read later stands behind them */
    struct diags *diags;
    struct plan *plan; /* NULL: there are errors, in diags */
};

/* Whether a name ends as those of polyaxonfiles do. */
bool load_is_name_of_file(const char *text);

/* The polyaxonfile of a directory, by the usual names; false if it has none. */
bool load_find_in(const char *directory, char path[static PATH_MAX]);

/* Compiles `file` (NULL: none beside the options) with the options of the invocation. */
void load(const struct invocation *invocation, const char *file, struct loaded *out);
void loaded_release(struct loaded *loaded);

/* Prints diagnostics to standard error, in colours on a terminal. */
void print_diags(const struct loaded *loaded);

/* Compiles the first operand and the options, prints what is to be said, and returns the plan,
 * or NULL when there are errors. */
struct plan *load_plan(const struct invocation *invocation);

#endif
