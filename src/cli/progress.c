/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/guard.h"
#include "cli/runs.h"

enum { EVERY_S = 1, SELDOM_S = 10 };

static const int interrupting[] = { SIGINT, SIGTERM, SIGHUP };

static time_t seconds_now(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

struct progress progress_begin(const char *what) {
    return (struct progress){ .what = what,
                              .is_terminal = isatty(STDERR_FILENO) == 1,
                              .last = seconds_now() };
}

bool progress_tell(void *context, uint64_t bytes) {
    struct progress *progress = context;
    const time_t now = seconds_now();
    AUTO(arena) arena = ARENA_INIT;

    if (interrupts_came())
        return false;
    if (now - progress->last < (progress->is_terminal ? EVERY_S : SELDOM_S))
        return true;
    progress->last = now;
    progress->is_shown = true;
    if (progress->is_terminal)
        guard_control(stderr, "\r\x1b[K");
    fprintf(stderr, "myelin: %s: %s%s%s%s", progress->what, runs_bytes(&arena, bytes),
            progress->total ? " of " : "",
            progress->total ? runs_bytes(&arena, progress->total) : "",
            progress->is_terminal ? "" : "\n");
    return true;
}

void progress_end(struct progress *progress) {
    if (progress->is_shown && progress->is_terminal)
        guard_control(stderr, "\r\x1b[K");
    progress->is_shown = false;
}

static sigset_t all_interrupting(void) {
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(interrupting); i++)
        sigaddset(&set, interrupting[i]);
    return set;
}

struct interrupts interrupts_hold(void) {
    const sigset_t set = all_interrupting();
    struct interrupts held;

    sigprocmask(SIG_BLOCK, &set, &held.before);
    return held;
}

bool interrupts_came(void) {
    sigset_t pending;

    if (sigpending(&pending) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(interrupting); i++)
        if (sigismember(&pending, interrupting[i]) == 1)
            return true;
    return false;
}

bool progress_unseen(void *unused, uint64_t bytes) {
    (void)unused, (void)bytes;
    return !interrupts_came();
}

void interrupts_release(const struct interrupts *interrupts) {
    const sigset_t set = all_interrupting();
    const struct timespec at_once = { 0 };

    while (sigtimedwait(&set, NULL, &at_once) > 0)
        continue;
    sigprocmask(SIG_SETMASK, &interrupts->before, NULL);
}
