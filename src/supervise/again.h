/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a gang that has failed started again? Pure: no clock, no processes.
 *
 *   the user asked for the end ................................... no
 *   it did anything but fail ..................................... no
 *   something of it still runs, which nobody could end ........... no
 *   what failed can never succeed (a command that is not found) .. no
 *   an address was in use at its start, for the first time ....... yes, at once, on other ports;
 *                                                                  not counted
 *   restarts are left of `max_restarts` .......................... yes, after a delay
 *   else ......................................................... no
 *
 * The delay doubles from restart to restart, up to AGAIN_DELAY_MOST_MS.
 */
#ifndef SUPERVISE_AGAIN_H
#define SUPERVISE_AGAIN_H

#include "supervise/diagnosis.h"
#include "supervise/verdict.h"

enum {
    AGAIN_DELAY_FIRST_MS = 2 * 1000,
    AGAIN_DELAY_MOST_MS = 5 * 60 * 1000,
    /* An address that is in use later than this was not found so at the start: frameworks take
     * their time to be imported. */
    AGAIN_START_MS = 60 * 1000,
};

struct again_terms {
    uint32_t max_restarts;
    uint32_t first_delay_ms; /* 0: every restart comes at once */
};

/* How the attempt ended, and what was before it. */
struct again_case {
    enum verdict_state verdict;
    enum diagnosis_kind kind; /* with VERDICT_FAILED */
    bool is_stopped;          /* the user asked for the end, also after the verdict */
    int64_t lasted_ms;
    uint32_t n_restarts; /* those that counted */
    bool has_moved;      /* it was started again on other ports before */
    bool is_left;        /* some of it goes on: the next one would not be alone */
};

enum again { AGAIN_NO, AGAIN_RESTART, AGAIN_OTHER_PORTS };

/* *delay_ms is set unless the answer is no. */
enum again again_decide(const struct again_terms *terms, const struct again_case *last,
                        uint32_t *delay_ms);

/* Whether another attempt could end differently. */
bool again_may_help(enum diagnosis_kind kind);

#endif
