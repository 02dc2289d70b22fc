/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run as a process of its own. `supervisor_start` makes the run's directory, takes its lock,
 * begins its journal and leaves the rest to a supervisor with a keeper: the caller may follow,
 * or go. Everything that happens is in the journal.
 */
#ifndef SUPERVISE_SUPERVISOR_H
#define SUPERVISE_SUPERVISOR_H

#include "backend/backend.h"
#include "model/demand.h"
#include "store/code_facts.h"
#include "store/origin.h"
#include "store/rundir.h"

/* What whoever prepares a run has to tell of it. */
struct supervisor_prepared {
    /* What is known of the code: what the repository tells is looked up and put beside it, unless
     * that is known as well. */
    struct code_facts code;
    const char *notice; /* a sentence for who follows the run, or NULL */
};
/* *out comes empty, and what it points to lives as long as the context. */
typedef int supervisor_prepare(void *context, const struct rundir *rundir,
                               struct supervisor_prepared *out, struct error *err);

struct supervisor_options {
    const char *home;
    uint32_t grace_ms, linger_ms;
    struct process_ceiling processes;
    uint32_t backoff_ms; /* before the first restart */
    uint64_t log_limit;  /* bytes that are kept of what a task writes */
    const struct kept_file {
        const char *name, *bytes;
        size_t n;
    } * files; /* to be kept in the run's directory */
    size_t n_files;
    const struct origin *origin; /* which run it is made from; NULL: none */
    /* Puts into the run's directory what is to be there before anything starts; NULL: nothing. The
     * run is locked, and is removed where this fails. It may go to another working directory, which
     * is then that of the tasks. */
    supervisor_prepare *prepare;
    void *prepare_context;
    const struct demand
        *demand;        /* what it reserves, with ranks; NULL: nothing, it starts at once */
    int64_t timeout_ms; /* for its turn to come; QUEUE_NO_TIMEOUT: as long as it takes */
    const char *earlier_outputs; /* of runs that the plan names, as struct run_facts has it */
    const char *notice;          /* a sentence for who follows the run, or NULL */
    const char *unenforced; /* which limits will not hold, told before anything starts; or NULL */
    bool hides_gpus;        /* no task sees a GPU: a rehearsal */
    int *listener;          /* set to hear from the run (bell.h), or to -1; NULL: nobody follows */
    const struct backend_maker *elsewhere; /* NULL: the tasks are processes of this machine */
};

/* *out lives in the arena. The plan has to live until the call returns. */
MUST_CHECK int supervisor_start(const struct plan *plan, const struct supervisor_options *options,
                                struct arena *arena, struct rundir *out, struct error *err);

/* Goes on with a run whose tasks are elsewhere and that nobody watches any more. Of the options
 * those count that are about its tasks. Fails with ERROR_CONFLICT when somebody does watch it. */
MUST_CHECK int supervisor_take_over(const struct plan *plan,
                                    const struct supervisor_options *options,
                                    const struct rundir *rundir, struct error *err);

/* How long one waits for processes that do not end: they may be asleep in the kernel, or frozen. */
enum settling {
    SETTLE_PATIENTLY,  /* for seconds; then the end is written all the same */
    SETTLE_IN_PASSING, /* not at all: who looks again and again tries again then */
};

/* A run whose supervisor and keeper are both gone without a word gets its end written: killed,
 * or the machine went down. Does nothing for a run that lives, is another host's, or has its tasks
 * elsewhere, where they go on. Of one that is over, what is left of its processes is ended, and
 * what it holds is free then.
 * Returns whether it wrote something. */
bool supervisor_settle(const struct rundir *rundir, enum settling settling);

#endif
