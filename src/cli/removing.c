/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/removing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/runs.h"
#include "store/artifact.h"
#include "store/models.h"
#include "store/origin.h"
#include "store/owner.h"
#include "store/remove.h"
#include "store/rights.h"

/* Another host's run may be living there, where its lock is not seen here. */
static int check_over(const struct rundir *rundir, struct error *err) {
    struct run_record run;
    int status = 0;

    if (runs_read(rundir, &run, err))
        return -1;
    if (run.backend && !state_is_final(run.state))
        status = error_set(err, ERROR_CONFLICT,
                           "run %s goes on on its cluster: stop it first (myelin stop %s), or use "
                           "rm --force",
                           rundir->id, rundir->id);
    else if (run.uuid && !state_is_final(run.state))
        status = error_set(err, ERROR_CONFLICT,
                           "run %s may still be going on at %s: remove it there, or use rm --force",
                           rundir->id, run.host ? run.host : "another host");
    record_release(&run);
    return status;
}

/* Its outputs may be those of other runs too. */
static int check_unused(const struct rundir *rundir, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    const char *home, *user;

    if (strcmp(rundir->outputs_of, rundir->id) != 0)
        return 0;
    if (runs_home(&arena, &home, err) ||
        outputs_user(home, rundir, OUTPUTS_USERS_ANY, &arena, &user, err))
        return -1;
    if (user)
        return error_set(err, ERROR_CONFLICT,
                         "run %s has the outputs of run %s, which resumed it: remove that first",
                         rundir->id, user);
    return 0;
}

/* A run without a version of a model never asks the database. */
static int check_models(const struct rundir *rundir, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    struct run_record run;
    struct artifacts artifacts;
    bool has_model = false;

    if (record_read(&run, rundir, err))
        return -1;
    artifacts = artifacts_read(&run, &arena);
    for (size_t i = 0; i < artifacts.n; i++)
        has_model |= artifacts.list[i].version > 0;
    record_release(&run);
    return has_model ? models_release_run(rundir_home_of(rundir, &arena),
                                          strtoull(rundir->id, NULL, 10), err)
                     : 0;
}

/* Under the run's lock nobody settles, resumes or removes it at the same time. */
static int remove_locked(const struct rundir *rundir, enum removing_manner manner, uint64_t *freed,
                         struct error *err) {
    int lock, status;

    if ((manner == REMOVING_IF_OVER && check_over(rundir, err)) || owner_take(rundir, &lock, err))
        return -1;
    status =
        check_unused(rundir, err) || check_models(rundir, err) || remove_run(rundir, freed, err)
            ? -1
            : 0;
    close(lock);
    return status;
}

/* Another command that has it for a moment, as to remove it, announces nobody: it is waited for.
 * What is read the moment that it takes the lock may be the old announcement, a second look not. */
static bool goes_on(const struct rundir *rundir) {
    const int64_t until_us = clock_monotonic_us() + OWNER_PASSING_MS * 1000;
    pid_t pid, before = 0;

    while (owner_lives(rundir, &pid)) {
        if ((pid > 0 && pid == before) || clock_monotonic_us() >= until_us)
            return true;
        before = pid;
        clock_pause_ms(2);
    }
    return false;
}

bool removing_is_gone(const struct rundir *rundir) {
    return access(rundir->path, F_OK) < 0 && errno == ENOENT;
}

static int remove_as_owner(const struct rundir *rundir, enum removing_manner manner,
                           uint64_t *freed, struct error *err) {
    const bool was_there = !removing_is_gone(rundir);
    int status;

    if (goes_on(rundir))
        return error_set(err, ERROR_CONFLICT,
                         "run %s is going on: stop it first (myelin stop %s), or use rm --force",
                         rundir->id, rundir->id);
    status = remove_locked(rundir, manner, freed, err);
    if (status && was_there && !goes_on(rundir) && removing_is_gone(rundir)) {
        *freed = 0; /* another was faster */
        status = 0;
    }
    return status;
}

int removing_remove(const struct rundir *rundir, enum removing_manner manner, uint64_t *freed,
                    struct error *err) {
    struct rights rights;
    int status;

    if (rights_take(rundir, &rights, err))
        return -1;
    status = rights_check(rundir, err) || remove_as_owner(rundir, manner, freed, err) ? -1 : 0;
    rights_return(&rights);
    return status;
}
