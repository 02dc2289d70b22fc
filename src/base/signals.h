/* SPDX-License-Identifier: Apache-2.0 */
/* Signals in words. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

struct signal_text {
    char text[40];
};

/* "SIGKILL"; "" for a number that has no name, as those of real time have none. */
struct signal_text signal_name(int number);
/* "signal 9 (SIGKILL)", or "signal 40". */
struct signal_text signal_text(int number);

#endif
