/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "codec/visible.h"

const char *const colour_choices[] = {
    [COLOUR_AUTO] = "auto",
    [COLOUR_ALWAYS] = "always",
    [COLOUR_NEVER] = "never",
    NULL,
};

static enum colour_choice chosen = COLOUR_AUTO;

void terminal_choose_colour(enum colour_choice choice) {
    chosen = choice;
}

int terminal_fd(FILE *out) {
    return out == stdout ? STDOUT_FILENO : out == stderr ? STDERR_FILENO : fileno(out);
}

bool terminal_is(FILE *out) {
    return isatty(terminal_fd(out)) == 1;
}

bool terminal_colour(FILE *out) {
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

    if (chosen != COLOUR_AUTO)
        return chosen == COLOUR_ALWAYS;
    if (no_colour && *no_colour)
        return false;
    if (!term || strcmp(term, "dumb") == 0)
        return false;
    return terminal_is(out);
}

bool terminal_is_shared(FILE *a, FILE *b) {
    struct stat x, y;

    return fstat(terminal_fd(a), &x) == 0 && fstat(terminal_fd(b), &y) == 0 &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

size_t terminal_width(FILE *out) {
    struct winsize size = { 0 };

    if (ioctl(terminal_fd(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return TERMINAL_USUAL;
    if (size.ws_col < TERMINAL_NARROWEST)
        return TERMINAL_NARROWEST;
    return size.ws_col > TERMINAL_WIDEST ? TERMINAL_WIDEST : size.ws_col;
}

size_t terminal_columns(FILE *out) {
    struct winsize size = { 0 };

    if (ioctl(terminal_fd(out), TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col ? size.ws_col : TERMINAL_USUAL;
}

/* The first that is set decides, as of setlocale(3). */
static const char *locale_name(void) {
    static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const char *value = getenv(variables[i]);

        if (value && *value)
            return value;
    }
    return NULL;
}

static bool read_charset(void) {
    const char *name = locale_name();
    locale_t locale;
    bool is_utf8;

    if (!name)
        return true; /* containers often set none, and every terminal of today shows UTF-8 */
    locale = newlocale(LC_CTYPE_MASK, name, (locale_t)0);
    if (locale == (locale_t)0) /* not installed here: its name says it */
        return strcasestr(name, "utf-8") || strcasestr(name, "utf8");
    is_utf8 = strcasecmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return is_utf8;
}

bool terminal_is_utf8(void) {
    static enum { UNKNOWN, IS_UTF8, IS_OTHER } charset = UNKNOWN;

    if (charset == UNKNOWN)
        charset = read_charset() ? IS_UTF8 : IS_OTHER;
    return charset == IS_UTF8;
}

unsigned terminal_visible(FILE *out) {
    const bool is_terminal = terminal_is(out);
    unsigned flags = 0;

    if (terminal_colour(out))
        flags |= VISIBLE_COLOURS | VISIBLE_DIM;
    if (!terminal_is_utf8())
        flags |= is_terminal ? VISIBLE_ASCII : VISIBLE_ASCII_DRAWINGS;
    return flags;
}
