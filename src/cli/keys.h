/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads single keys while a view goes on: `q` ends it.
 *
 * Only where somebody sits: standard input and standard output are both terminals, and this process
 * is in the foreground. Otherwise nothing is touched, and no key ever comes: a pager behind a pipe
 * keeps the keyboard, and a background job is not stopped for touching the terminal.
 *
 * The terminal's settings are put back by keys_end, when the process exits, before it is stopped
 * (Ctrl-Z; set again when it goes on in the foreground), and before a signal ends it.
 */
#ifndef CLI_KEYS_H
#define CLI_KEYS_H

#include <stdbool.h>
#include <stdint.h>

/* Keys come without Enter and are not echoed from now on. Returns the descriptor to wait on, or -1
 * if there is no keyboard. */
int keys_begin(void);
void keys_end(void);

/* Takes the keys that were pressed, without waiting. */
enum keys_answer {
    KEYS_GO_ON,
    KEYS_QUIT, /* `q` is among them */
    KEYS_AWAY, /* no key can be read now: in the background, or the terminal is gone */
};
enum keys_answer keys_take(void);

/* Waits so long, or until `q` is pressed, which is what it returns. */
bool keys_wait_ms(int64_t ms);

#endif
