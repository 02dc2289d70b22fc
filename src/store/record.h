/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a run, made from its journal: by whoever follows it while it goes on, and
 * by whoever looks at it years later. Feeding the same lines gives the same record.
 *
 * Final is final: what follows the line that ends a run is counted as bad and changes nothing
 * else, but for what tasks have logged, which may be read from their spools later, what of it was
 * not kept, and what their artifacts are, which may be looked up later. Tasks whose end no line
 * tells ended with the run.
 *
 * A run may be attempted more than once (supervise/attempts.h). What is known of the tasks is
 * that of the newest attempt; of those before it the record keeps how each ended.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "model/plan.h"
#include "model/state.h"
#include "store/code_facts.h"
#include "store/origin.h"
#include "store/rundir.h"

enum { EXIT_STATUS_NONE = -1 };

/* What the tasks have said of the run, by name; a later word replaces an earlier one. */
enum { TRACKED_MOST = 4096 }; /* names of a kind that are kept */
enum { TRACKED_PARAMS, TRACKED_TAGS, TRACKED_SUMMARY, TRACKED_ARTIFACTS, TRACKED_KINDS };
const char *tracked_kind_name(int kind); /* "params" */

struct tracked {
    struct tracked_value {
        const char *key;
        const char *json; /* as compact JSON */
    } * values;           /* in the order in which they were first said */
    size_t n;
};

struct task_record {
    enum state state;
    const char *reason;        /* why it is in that state, or NULL */
    int64_t pid;               /* 0: unknown */
    const char *cpus;          /* those that are its own, as "0-3,8", or NULL */
    int exit_code;             /* -1: did not exit */
    int signal;                /* 0: was not ended by one */
    double started_s, ended_s; /* since the run was made; -1: not yet */
    uint64_t log_lost;         /* bytes of output that could not be kept */
};

struct attempt_record {
    enum state state;          /* starting, running, then how it ended */
    double started_s, ended_s; /* since the run was made; ended_s is -1 before */
    const char *reason;        /* why it ended so, or NULL */
    int64_t first_failed;      /* rank, or -1 */
    int exit_status;           /* EXIT_STATUS_NONE where it has none */
};

/* What tasks have logged and the run's series do not have; the newest line `losses` counts. */
struct losses {
    uint64_t dropped; /* points and records that the tasks could not write: no room, no number */
    uint64_t refused; /* points of more metrics than a run keeps */
    uint64_t lost;    /* segments of the spool that somebody removed */
    uint64_t damaged; /* segments that are kept in the spool, because not all of them can be read */
    uint64_t others;  /* segments that are kept there, of another version of the format ... */
    uint64_t version; /* ... this one */
    uint64_t waiting; /* segments that can be read, and could not be folded yet */
};
bool losses_any(const struct losses *losses);

struct run_record {
    struct arena arena; /* holds all that is below */
    struct rundir rundir;

    const char *uuid, *name, *owner, *host, *boot_id, *framework, *command, *directory;
    const char *made_by; /* "init": a process of its own; NULL: a supervisor */
    const char
        *backend; /* "kubeflow", "native": its tasks are elsewhere; NULL: processes of the host */
    const char *cluster, *namespace; /* where those are */
    const char *image;               /* that they run in */
    const char *volume;              /* that has their outputs; NULL: each pod has its own */
    struct machine_record {
        const char *kernel, *python; /* or NULL */
        int64_t cpus;                /* 0: not known */
    } machine;                       /* as it was when the run was made (host.h) */
    const char *created_at;          /* wall clock, ISO 8601, UTC */
    double created_s;                /* elapsed at that moment: next to nothing */
    char updated_at[32];             /* likewise, of the newest line */
    double monotonic_s; /* what the clock of that boot said when it was made; -1: not known */
    const char *phase;  /* of a living run: launching, submitted, running, lingering, stopping,
                           waiting */
    enum state state;
    const char *reason;   /* why it is in that state, or NULL */
    const char *place;    /* file and line of the user's code that failed, or NULL */
    const char *hint;     /* how to mend it, or NULL */
    int exit_status;      /* of `run`; EXIT_STATUS_NONE before the end */
    int64_t first_failed; /* rank, or -1 */
    bool left_nothing;    /* it was checked that nothing of the run is left */
    const char *left;   /* a sentence on what may be left of it, where nobody could look; or NULL */
    double elapsed_s;   /* of the newest line: once final, the run's duration */
    uint64_t seq;       /* of the newest line */
    uint64_t bad_lines; /* that could not be read */

    struct origin origin; /* which run it was made from */
    struct code_facts code;
    struct attempt_record *attempts;
    uint32_t n_attempts; /* 0: nothing of it was started yet */
    uint32_t n_over;     /* attempts whose end is known */

    struct losses losses;
    struct tracked tracked[TRACKED_KINDS];
    struct tracked found; /* the `artifact` lines by name: what the artifacts are (artifact.h) */

    uint32_t n_role[ROLE_COUNT], n_tasks;
    struct task *task_names;   /* role and index by rank; no profiles */
    struct task_record *tasks; /* by rank */
};

/* An empty record of a run's directory. */
void record_init(struct run_record *record, const struct rundir *rundir);
void record_release(struct run_record *record);

/* Adds one line of the journal, without its newline. *notice is set to a sentence when the line
 * is one for people, else to NULL. A line that is none is counted. */
void record_feed(struct run_record *record, const char *line, size_t n, const char **notice);

/* Reads a whole journal. The run's directory is there, its journal may not be yet: the record is
 * then as record_init left it. */
MUST_CHECK int record_read(struct run_record *record, const struct rundir *rundir,
                           struct error *err);

/* The number of the newest attempt, from 0. */
uint32_t record_attempt(const struct run_record *record);

bool record_is_of_this_boot(const struct run_record *record);
/* The seconds since a run was made, whether it lives or not. */
double record_elapsed(const struct run_record *record);

/* The names of its tasks, for fold_tasks and the like: a plan without profiles. Borrowed. */
struct plan record_plan(const struct run_record *record);

#endif
