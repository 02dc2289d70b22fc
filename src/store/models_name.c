/* SPDX-License-Identifier: Apache-2.0 */
/* How models and aliases may be named, and what a name of the command line stands for. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "store/models.h"

int model_name_check(const char *name, struct error *err) {
    const size_t n = strlen(name);
    bool is_good = n > 0 && n <= MODEL_NAME_MOST;

    for (size_t i = 0; is_good && i < n; i++)
        is_good = (unsigned char)name[i] > ' ' && name[i] != ':' && name[i] != 0x7f;
    if (!is_good)
        return error_set(err, ERROR_INVALID,
                         "'%.130s' cannot be the name of a model: it is at most %d bytes, without "
                         "blanks and ':'",
                         name, MODEL_NAME_MOST);
    return 0;
}

int model_alias_check(const char *alias, struct error *err) {
    const size_t n = strlen(alias);
    bool is_good = n > 0 && n <= MODEL_ALIAS_MOST && isalpha((unsigned char)alias[0]);

    for (size_t i = 0; is_good && i < n; i++)
        is_good = isalnum((unsigned char)alias[i]) || strchr("._-", alias[i]);
    if (!is_good)
        return error_set(err, ERROR_INVALID,
                         "'%.70s' cannot be an alias: it is letters, digits, '.', '_' and '-', "
                         "begins with a letter, and is at most %d long",
                         alias, MODEL_ALIAS_MOST);
    if (strcmp(alias, "latest") == 0)
        return error_set(err, ERROR_INVALID,
                         "'latest' is the newest version by itself: it cannot "
                         "be given to one");
    return 0;
}

static bool is_below_outputs(const char *path) {
    if (path[0] == '\0' || path[0] == '/')
        return false;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strcmp(part, "..") == 0 || strncmp(part, "../", 3) == 0)
            return false;
    }
    return true;
}

bool model_row_is_sound(const struct model_row *row) {
    struct error ignored;

    return model_name_check(row->name, &ignored) == 0 && is_below_outputs(row->path) &&
           strlen(row->sha256) == SHA256_TEXT - 1 &&
           strspn(row->sha256, "0123456789abcdef") == SHA256_TEXT - 1;
}

/* Whether a version is what stands after the colon; NULL: nothing does. */
static bool is_meant(const struct model_row *row, const struct model_row *newest,
                     const char *which) {
    char *end;
    const long long number = which ? strtoll(which, &end, 10) : 0;

    if (!which || strcmp(which, "latest") == 0)
        return row == newest;
    if (isdigit((unsigned char)which[0]) && *end == '\0')
        return number == row->version;
    for (size_t i = 0; row->aliases[i]; i++)
        if (strcmp(row->aliases[i], which) == 0)
            return true;
    return false;
}

int models_find(struct models *models, const char *named, struct arena *arena,
                struct model_row *out, struct error *err) {
    const char *colon = strchr(named, ':'), *which = colon ? colon + 1 : NULL;
    const char *name = arena_text(arena, named, colon ? (size_t)(colon - named) : strlen(named));
    struct model_row *rows;
    size_t n;

    if (models_list(models, name, arena, &rows, &n, err))
        return -1;
    if (n == 0)
        return error_set(err, ERROR_NOT_FOUND,
                         "there is no model '%.200s': 'myelin model ls' lists those there are",
                         name);
    for (size_t i = 0; i < n; i++)
        if (is_meant(&rows[i], &rows[0], which)) {
            *out = rows[i];
            return 0;
        }
    return error_set(err, ERROR_NOT_FOUND,
                     "the model '%.200s' has no version or alias '%.100s': its newest version is "
                     "%" PRId64 ", and 'myelin model ls %.200s' lists all",
                     name, which, rows[0].version, name);
}
