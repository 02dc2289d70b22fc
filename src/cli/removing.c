/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/removing.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/runs.h"
#include "store/artifact.h"
#include "store/models.h"
#include "store/origin.h"
#include "store/owner.h"
#include "store/remove.h"

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
int removing_remove(const struct rundir *rundir, enum removing_manner manner, uint64_t *freed,
                    struct error *err) {
    pid_t pid;
    int lock, status;

    if (owner_lives(rundir, &pid))
        return error_set(err, ERROR_CONFLICT,
                         "run %s is going on: stop it first (myelin stop %s), or use rm --force",
                         rundir->id, rundir->id);
    if ((manner == REMOVING_IF_OVER && check_over(rundir, err)) || owner_take(rundir, &lock, err))
        return -1;
    status =
        check_unused(rundir, err) || check_models(rundir, err) || remove_run(rundir, freed, err)
            ? -1
            : 0;
    close(lock);
    return status;
}
