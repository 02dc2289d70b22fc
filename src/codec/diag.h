/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diagnostics: what is wrong in a text, where, and what would be right.
 *
 * Everything that reads a user's text adds to one list, so that a user sees all
 * mistakes of a file at once. The list never prints: `cli` formats it.
 *
 *   struct diag *d = diag_error(diags, node_place(index), "worker index %d is out of range", i);
 *   diag_note(d, node_place(n_workers), "n_workers is %d here", n);
 *   diag_help(d, "valid indexes are 0 to %d", n - 1);
 *
 * The calls always return a diagnostic that can be added to; past DIAGS_MOST the
 * further ones are only counted.
 */
#ifndef CODEC_DIAG_H
#define CODEC_DIAG_H

#include "base/buf.h"
#include "codec/json.h"
#include "codec/node.h"

enum { DIAGS_MOST = 100 };

enum severity { SEVERITY_ERROR, SEVERITY_WARNING };

struct diag {
    enum severity severity;
    struct place place;
    bool has_place;
    const char *message;
    const char *note; /* about a second place, or NULL */
    struct place note_place;
    const char *help; /* how to mend it, or NULL */
    struct arena *arena;
};

struct diags {
    struct arena arena;
    struct diag list[DIAGS_MOST];
    size_t len;
    size_t errors, warnings; /* all, also those beyond the list */
    struct diag beyond;      /* where the further ones go */
};

/* Returns a new list on the heap: it is large. */
struct diags *diags_new(void);
void diags_free(struct diags *diags);
DEFINE_AUTO_PTR(diags)

struct diag *diag_error(struct diags *diags, struct place place, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
struct diag *diag_warning(struct diags *diags, struct place place, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* Of the whole, which stands at no place of a text. */
struct diag *diag_error_nowhere(struct diags *diags, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct diag *diag_warning_nowhere(struct diags *diags, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Adds to the end of the message. */
void diag_append(struct diag *diag, const char *text);
void diag_note(struct diag *diag, struct place place, const char *fmt, ...) PRINTF_LIKE(3, 4);
void diag_help(struct diag *diag, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Makes every warning an error. */
void diags_make_errors(struct diags *diags);

enum diag_style { DIAG_PLAIN, DIAG_COLOURED };

/* Appends the list as a compiler prints it: file:line:column, source line, caret, notes. */
MUST_CHECK int diags_format(const struct diags *diags, const struct sources *sources,
                            enum diag_style style, struct buf *out, struct error *err);

/* Writes the list as an array of objects: severity, message, file, line, column, length, help,
 * note. */
void diags_write_json(const struct diags *diags, const struct sources *sources, struct json *json);

#endif
