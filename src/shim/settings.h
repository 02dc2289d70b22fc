/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment tells the shim: MYELIN_SHIM_*, which docs/shim.md lists. */
#ifndef SHIM_SETTINGS_H
#define SHIM_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Our variables begin with it. */
#define SETTINGS_PREFIX "MYELIN_SHIM_"

enum { SETTINGS_KEY = 32, SETTINGS_TASKS_MAX = 1000000 };

struct settings {
    const char *key; /* NULL: nobody is served */
    const char *message;
    char directory[PATH_MAX - 64];
    char log[PATH_MAX], spool[PATH_MAX], outputs[PATH_MAX];
    uint16_t port;
    int64_t linger_ms;
    uint32_t n_tasks; /* of the gang */
    uint64_t log_limit;
    bool sends_outputs;
    char **environment; /* the task's: without ours */
};

/* Returns 0, or -1 and a sentence about what is wrong; `message` is set either way. */
int settings_read(struct settings *settings, char **environment, const char **wrong);

/* A number of decimal digits, as other settings have it; `without` where the variable is not there.
 * Returns -1 if it is no number or over the limit. */
int64_t settings_number(const char *name, int64_t without, int64_t limit);

#endif
