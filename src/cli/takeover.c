/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/takeover.h"

#include <string.h>

#include "cli/anew.h"
#include "cli/runs.h"
#include "store/host.h"
#include "store/owner.h"

extern const struct command command_run;

/* What was asked for is compiled again, and held against the run that came of it. */
static int start_supervisor(const struct run_record *run, struct loaded *loaded,
                            const struct invocation *in, struct arena *arena, struct error *err) {
    struct supervisor_options options;
    struct venue venue = { 0 };
    const char *home;
    int status;

    if (launch_read_options(in, &options))
        return error_set(err, ERROR_INVALID, "the options of run %s cannot be read",
                         run->rundir.id);
    status = runs_home(arena, &home, err) || venue_of_run(in, loaded, home, run, &venue, err);
    options.home = home;
    options.elsewhere = &venue.maker;
    if (status == 0)
        status = supervisor_take_over(loaded->plan, &options, &run->rundir, err);
    /* Somebody else was faster: it is watched. */
    if (status && err->code == ERROR_CONFLICT)
        status = 0;
    venue_release(&venue);
    return status ? -1 : 0;
}

static int take_over(const struct run_record *run, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    struct invocation in = { .command = &command_run };
    struct given_option *given;
    struct request request;
    struct loaded loaded;
    int status;

    if (request_read(&run->rundir, &request, err))
        return -1;
    status =
        anew_kept_options(&run->rundir, &request, in.command, &arena, &given, &in.n_given, err);
    if (status == 0) {
        in.given = given;
        load(&in, NULL, &loaded);
        if (!loaded.plan || loaded.plan->n_tasks != run->n_tasks)
            status = error_set(err, ERROR_INVALID,
                               "the file that run %s keeps does not give its tasks any more",
                               run->rundir.id);
        else
            status = start_supervisor(run, &loaded, &in, &arena, err);
        loaded_release(&loaded);
    }
    request_release(&request);
    return status;
}

int take_over_if_alone(const struct run_record *run, struct error *err) {
    char host[HOST_TEXT];
    pid_t pid;

    if (!run->backend || state_is_final(run->state) || owner_lives(&run->rundir, &pid) ||
        !run->host || strcmp(run->host, host_name(host)) != 0)
        return 0;
    return take_over(run, err) ? error_wrap(err, "nobody watches run %s", run->rundir.id) : 0;
}
