/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/keys.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"

/* Signals that would end the process without a word of ours. Where a handler stands already, it
 * ends the view, and keys_end follows. */
static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static struct termios usual, keyboard;
static volatile sig_atomic_t is_on;

static bool is_foreground(void) {
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* All of these may be called from a handler: tcsetattr, tcgetpgrp, sigaction and raise are
 * async-signal-safe. */
static void restore(void) {
    if (is_on && is_foreground())
        tcsetattr(STDIN_FILENO, TCSANOW, &usual);
}

static void end_by(int number, int flags) {
    struct sigaction as_usual;

    memset(&as_usual, 0, sizeof as_usual);
    as_usual.sa_handler = SIG_DFL;
    as_usual.sa_flags = flags;
    sigaction(number, &as_usual, NULL);
    raise(number); /* comes when the handler returns */
}

static void on_end(int number) {
    restore();
    end_by(number, 0);
}

static void take(int number, void (*handler)(int)) {
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void on_stop(int number) {
    restore();
    end_by(number, 0);
}

static void on_continue(int number) {
    (void)number;
    if (!is_on)
        return;
    take(SIGTSTP, on_stop);
    if (is_foreground())
        tcsetattr(STDIN_FILENO, TCSANOW, &keyboard);
}

/* One that is ignored stays ignored, and one that has a handler keeps it. */
static void take_if_usual(int number, void (*handler)(int)) {
    struct sigaction now;

    if (sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        take(number, handler);
}

int keys_begin(void) {
    static bool has_exit_handler;

    if (is_on || isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 || !is_foreground() ||
        tcgetattr(STDIN_FILENO, &usual) < 0)
        return -1;
    keyboard = usual;
    keyboard.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* Ctrl-C and Ctrl-Z stay signals */
    keyboard.c_cc[VMIN] = 1;
    keyboard.c_cc[VTIME] = 0;
    is_on = 1;
    take_if_usual(SIGTSTP, on_stop);
    take_if_usual(SIGCONT, on_continue);
    for (size_t i = 0; i < ARRAY_LEN(ending); i++)
        take_if_usual(ending[i], on_end);
    if (!has_exit_handler)
        atexit(keys_end);
    has_exit_handler = true;
    tcsetattr(STDIN_FILENO, TCSANOW, &keyboard);
    return STDIN_FILENO;
}

static void give_back(int number, void (*handler)(int)) {
    struct sigaction now;

    if (sigaction(number, NULL, &now) == 0 && now.sa_handler == handler)
        signal(number, SIG_DFL);
}

void keys_end(void) {
    restore();
    is_on = 0;
    give_back(SIGTSTP, on_stop);
    give_back(SIGCONT, on_continue);
    for (size_t i = 0; i < ARRAY_LEN(ending); i++)
        give_back(ending[i], on_end);
}

static bool has_key(int64_t ms) {
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

    return poll(&input, 1, (int)ms) > 0;
}

enum keys_answer keys_take(void) {
    enum keys_answer answer = KEYS_GO_ON;
    char keys[64];

    if (!is_on || !is_foreground())
        return KEYS_AWAY;
    while (has_key(0)) {
        const ssize_t n = read(STDIN_FILENO, keys, sizeof keys);

        if (n <= 0)
            return answer == KEYS_QUIT ? KEYS_QUIT : KEYS_AWAY;
        if (memchr(keys, 'q', (size_t)n))
            answer = KEYS_QUIT;
    }
    return answer;
}

bool keys_wait_ms(int64_t ms) {
    const int64_t until = clock_monotonic_us() + ms * 1000;
    enum keys_answer answer = is_on ? KEYS_GO_ON : KEYS_AWAY;
    int64_t left_us;

    while (answer == KEYS_GO_ON && (left_us = until - clock_monotonic_us()) > 0)
        if (has_key(left_us / 1000 + 1))
            answer = keys_take();
    left_us = until - clock_monotonic_us();
    if (answer == KEYS_AWAY && left_us > 0)
        clock_pause_ms(left_us / 1000 + 1);
    return answer == KEYS_QUIT;
}
