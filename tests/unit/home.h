/* SPDX-License-Identifier: Apache-2.0 */
/* A home for runs in a directory of its own, and journals written as a test wants them. */
#ifndef TESTS_HOME_H
#define TESTS_HOME_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "store/rundir.h"

struct home {
    struct arena arena;
    char path[64];
};

static inline void home_make(struct home *home) {
    *home = (struct home){ .path = "/tmp/myelin-test.XXXXXX" };
    assert_non_null(mkdtemp(home->path));
}

static inline void home_release(struct home *home) {
    char command[128];

    snprintf(command, sizeof command, "rm -rf -- '%s'", home->path);
    assert_int_equal(system(command), 0);
    arena_release(&home->arena);
}

static inline struct rundir home_run(struct home *home) {
    struct rundir rundir;
    struct error err;

    if (rundir_make(home->path, &home->arena, &rundir, &err))
        fail_msg("%s", err.message);
    return rundir;
}

static inline void home_write(const struct rundir *rundir, const char *name, const char *text) {
    struct error err;

    if (rundir_write(rundir, name, text, strlen(text), &err))
        fail_msg("%s", err.message);
}

#endif
