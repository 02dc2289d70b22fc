/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/takeover.h"

#include <string.h>

#include "cli/anew.h"
#include "cli/runs.h"
#include "store/host.h"
#include "store/owner.h"
#include "store/rights.h"

extern const struct command command_run;

/* ---- the cluster of a run ---- */

/* What was asked for is compiled again, and held against the run that came of it. */
static int open_venue(const struct run_record *run, const struct invocation *in, run_venue_use *use,
                      void *context, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    struct run_venue opened = { .run = run, .in = in };
    struct venue venue = { 0 };
    struct loaded loaded;
    int status;

    load(in, NULL, &loaded);
    opened.loaded = &loaded;
    opened.venue = &venue;
    if (!loaded.plan || loaded.plan->n_tasks != run->n_tasks)
        status = error_set(err, ERROR_INVALID,
                           "the file that run %s keeps does not give its tasks any more",
                           run->rundir.id);
    else
        status = runs_home(&arena, &opened.home, err) ||
                 venue_of_run(in, &loaded, opened.home, run, &venue, err) ||
                 use(context, &opened, err);
    venue_release(&venue);
    loaded_release(&loaded);
    return status ? -1 : 0;
}

int run_venue_open(const struct run_record *run, run_venue_use *use, void *context,
                   struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    struct invocation in = { .command = &command_run };
    struct given_option *given;
    struct request request;
    int status;

    if (rights_trust(&run->rundir, "ask its cluster about the run", err) ||
        request_read(&run->rundir, &request, err))
        return -1;
    status =
        anew_kept_options(&run->rundir, &request, in.command, &arena, &given, &in.n_given, err);
    if (status == 0) {
        in.given = given;
        status = open_venue(run, &in, use, context, err);
    }
    request_release(&request);
    return status;
}

/* ---- taking over ---- */

static int start_supervisor(void *context, const struct run_venue *opened, struct error *err) {
    struct supervisor_options options;

    (void)context;
    if (launch_read_options(opened->in, &options))
        return error_set(err, ERROR_INVALID, "the options of run %s cannot be read",
                         opened->run->rundir.id);
    options.home = opened->home;
    options.elsewhere = &opened->venue->maker;
    /* Somebody else was faster: it is watched. */
    if (supervisor_take_over(opened->loaded->plan, &options, &opened->run->rundir, err))
        return err->code == ERROR_CONFLICT ? 0 : -1;
    return 0;
}

int take_over_if_alone(const struct run_record *run, struct error *err) {
    char host[HOST_TEXT];
    pid_t pid;

    if (!run->backend || state_is_final(run->state) || owner_lives(&run->rundir, &pid) ||
        !run->host || strcmp(run->host, host_name(host)) != 0)
        return 0;
    if (rights_check(&run->rundir, err))
        return error_wrap(err, "nobody watches run %s, and only its owner can do so again",
                          run->rundir.id);
    return run_venue_open(run, start_supervisor, NULL, err)
               ? error_wrap(err, "nobody watches run %s", run->rundir.id)
               : 0;
}
