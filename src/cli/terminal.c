/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

bool terminal_colour(FILE *out) {
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

    if (chosen != COLOUR_AUTO)
        return chosen == COLOUR_ALWAYS;
    if (no_colour && *no_colour)
        return false;
    if (!term || strcmp(term, "dumb") == 0)
        return false;
    return isatty(fileno(out)) == 1;
}

size_t terminal_width(FILE *out) {
    struct winsize size = { 0 };

    if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return TERMINAL_USUAL;
    if (size.ws_col < TERMINAL_NARROWEST)
        return TERMINAL_NARROWEST;
    return size.ws_col > TERMINAL_WIDEST ? TERMINAL_WIDEST : size.ws_col;
}
