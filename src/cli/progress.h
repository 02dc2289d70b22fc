/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far long work with bytes is, on standard error: on a terminal one line that is renewed once
 * a second, else a line now and then. Interrupts that are held back end the work, not the process,
 * so that it leaves nothing half done.
 *
 *   struct interrupts before = interrupts_hold();
 *   struct progress progress = progress_begin("copying");
 *   ... progress_tell is called ...
 *   progress_end(&progress);
 *   interrupts_release(&before);      an interrupt that came meanwhile is forgotten
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct progress {
    const char *what; /* "copying the outputs of run 12" */
    uint64_t total;   /* bytes; 0: not known */
    bool is_terminal, is_shown;
    time_t last;
};

struct progress progress_begin(const char *what);
/* For the `tell` of who does the work; false: it was interrupted. */
bool progress_tell(void *progress, uint64_t bytes);
void progress_end(struct progress *progress);
/* Likewise, of work that is not shown: it needs no context. */
bool progress_unseen(void *unused, uint64_t bytes);

struct interrupts {
    sigset_t before;
};
struct interrupts interrupts_hold(void);
/* Whether one came since they are held. */
bool interrupts_came(void);
void interrupts_release(const struct interrupts *interrupts);

#endif
