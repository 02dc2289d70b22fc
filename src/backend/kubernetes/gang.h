/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One gang of pods, from inside: what the parts of pods.h share. Private to them.
 *
 *   gang.c        its life: making, watching, deleting; the clock
 *   gang_tasks.c  its tasks: what is seen of their pods, their logs, their ends
 *   turn.c        its turn: whose pods the scheduler may look at
 *   gang_pull.c   what the shims in them bring
 *   kueue.c       what Kueue keeps of it
 *   kubeflow.c, native.c   the forms: what is made, and in which order
 */
#ifndef BACKEND_KUBERNETES_GANG_H
#define BACKEND_KUBERNETES_GANG_H

#include <event2/event_struct.h>

#include "backend/kubernetes/api.h"
#include "backend/kubernetes/cursors.h"
#include "backend/kubernetes/pod.h"
#include "backend/kubernetes/pods.h"
#include "backend/kubernetes/shim_key.h"
#include "backend/kubernetes/watch.h"

enum { SENTENCE_MOST = 480 };

struct pod_gang;

/* One task, and the pod that is it. */
struct task_pod {
    struct pod_gang *gang;
    struct pod pod; /* what was seen last; its texts are in `texts` */
    struct arena texts;
    bool was_made;             /* we made it, and nobody makes it again */
    bool is_there;             /* the object exists */
    bool is_started, is_ended; /* was told */
    bool has_end;              /* its end was seen, and waits for its turn and its log */
    uint64_t end_order;
    int64_t end_seen_us, trouble_seen_us;
    int64_t deletion_seen_us;  /* from when it was to go; 0: it is not */
    bool is_cut_off;           /* that its node does not answer was told */
    bool was_given_up;         /* its object was removed though its node does not answer */
    bool was_stopped;          /* its pod was deleted before its owner */
    struct follower *follower; /* NULL: its log is not read by the log API */
    struct pull *pull;         /* NULL: no shim is asked */
    struct log_rest *rest;     /* of a log whose shim is gone */
    bool awaits_rest;          /* others are being fetched */
    bool is_unreachable;       /* the shim cannot be asked yet: the log API takes its place */
    bool is_log_done;
    bool is_log_missed; /* that its end is missing was told, or counted */
    bool has_shim_end;  /* the shim has told its end */
    struct shim_end shim_end;
};

/* How the pods of a gang come to be. */
struct pods_form {
    const char *name;
    enum manifest_target target;
    /* Fills in owner, owner_kind and container. */
    void (*prepare)(struct pod_gang *g);
    /* Begins to make all of it; fails where nothing can be asked for. The outcome is gang_made or
     * gang_refuse, from the loop. It looks at `is_stopping` before it asks for more. */
    MUST_CHECK int (*make)(struct pod_gang *g, struct error *err);
    /* Makes the pods again, once those of before are gone, while the rest stays; the outcome is as
     * of `make`. NULL: they have no gate, and are never taken back. */
    void (*make_again)(struct pod_gang *g);
    /* Whether the owner says that it makes no more pods, with its sentence. NULL: it never does. */
    bool (*is_over)(const struct node *owner, char *why, size_t size);
    /* Nobody makes a pod again that was deleted: a task whose pod is not there has lost it. */
    bool pods_are_made_once;
    /* Gives back what `make` holds, at any time; its calls end with the API. NULL: nothing. */
    void (*release)(struct pod_gang *g);
};

enum stage {
    STAGE_ASKING, /* we have made nothing */
    STAGE_MAKING,
    STAGE_WATCHING,
    STAGE_DELETING,
    STAGE_GONE,
};

struct pod_gang {
    struct backend backend;
    const struct pods_form *form;
    const struct pods_options *options;
    const struct attempt_facts *facts;
    struct gang gang;
    struct api *api;
    struct arena arena;

    char name[MANIFEST_NAME_MAX]; /* of the owner */
    const char *namespace;
    struct api_resource owner; /* whose deletion deletes all */
    const char *owner_kind;    /* "PyTorchJob" */
    const char *container;     /* which of a pod's is the task */
    bool master_speaks_for_all;
    const char *owner_uid; /* native: once it is known; else NULL */
    void *making;          /* of the form */
    struct turn *turn;     /* NULL: it needs none */
    /* Nothing is told of the tasks: not all of them have a place yet, and they may lose those that
     * they have. */
    bool is_held;
    /* It ended before all had a place: what tasks did until then is nobody's concern. */
    bool was_held_to_the_end;
    /* By which the shims of the pods know us; "": they have none. */
    char shim_key[SHIM_KEY_TEXT];
    bool is_shim_denied; /* they have, for the tasks to meet, but we may not ask them */

    bool has_past; /* a process before this one was at work on the attempt */

    enum stage stage;
    struct api_call *call; /* that asks or deletes */
    struct watch *owners, *pods;
    bool owners_synced, pods_synced, is_owner_there;
    int64_t over_us;                /* when the owner was seen to be over; 0: it is not */
    char owner_says[SENTENCE_MOST]; /* why there are no more pods */
    char last_words[SENTENCE_MOST]; /* why nobody knows what became of the tasks; or "" */

    struct task_pod *tasks;
    struct cursors cursors, positions;
    struct gather *gather; /* NULL: the outputs do not come here */
    bool has_told_unreachable, has_told_reachable, has_told_refused; /* of the shims */
    uint32_t n_rests;                                                /* that are being fetched */
    uint64_t n_ends;
    uint32_t n_ended;
    bool is_stopping;
    int64_t killed_us; /* when it was to be ended at once; 0: it was not */
    int64_t launched_us, looked_us;
    struct event look_event, gone_event;
    char waits[SENTENCE_MOST]; /* as it was told */
    uint32_t waits_topic;
    bool is_cut_off; /* that the cluster cannot be reached was told */
    uint32_t n_logs_missed;
};

/* ---- gang.c ---- */

/* All that the form makes exists, or as much as the cluster took: it is watched from here on. */
void gang_made(struct pod_gang *g);
/* The same of pods that wait at our gate: they are held until all have a place. */
void gang_take_turn(struct pod_gang *g);
/* They have it: it goes on without us from here on, and what is known of the tasks is told. */
void gang_placed(struct pod_gang *g);
/* What exists of a gang that the cluster did not take. */
enum gang_remains { NOTHING_REMAINS, OWNER_REMAINS, NOBODY_KNOWS };
/* None of it runs, and all tasks end by the sentence. What nobody knows of is told as left. */
void gang_refuse(struct pod_gang *g, enum gang_remains remains, const char *sentence);
/* The objects of the attempt; NULL: they cannot be expressed. */
struct manifest *gang_manifest(const struct pod_gang *g, const char *const *apis,
                               const char *owner_uid, struct error *err);
/* Whether an object of that kind is there and this run's, whichever process made it. */
MUST_CHECK int gang_check_made(const struct pod_gang *g, const char *kind,
                               const struct api_answer *answer, struct error *err);
/* Once each task has ended, or is to end. While outputs of tasks that have ended are on their way,
 * the pods of the others alone are deleted, and the rest when they are here. */
void gang_delete(struct pod_gang *g);
/* Something is over that the end may have waited for. */
void gang_go_on(struct pod_gang *g);
/* Goes on with a call for as long as the cluster does not answer (api_insist), which is told. */
struct api_call *gang_insist(struct pod_gang *g, struct api_call *call);
/* The cluster cannot be asked, or does not know any more who asks: told once, until it answers. */
void gang_tell_trouble(struct pod_gang *g, const struct error *err);

/* ---- kueue.c ---- */

/* Has Kueue let go of pods that are to go, where it holds them. */
void kueue_let_go(struct pod_gang *g);

/* ---- gang_tasks.c ---- */

void tasks_init(struct pod_gang *g);
void tasks_release(struct pod_gang *g);
/* All that have not ended could not be started, or are lost. */
void tasks_end_all(struct pod_gang *g, const char *message);
/* Those that have no pod get none any more. Those that have one go on. */
void tasks_end_without_pods(struct pod_gang *g, const char *message);
/* The pod of a task was not taken. */
void tasks_refuse(struct pod_gang *g, uint32_t rank, const char *sentence);
/* Tells what may be told. */
void tasks_tell_ends(struct pod_gang *g);
/* What a watch saw. */
void tasks_see(struct pod_gang *g, const struct watch_event *event);
/* All that there is was seen: what was made and is not there was removed. */
void tasks_miss(struct pod_gang *g);
/* Patience, lost nodes, and what the tasks wait for. */
void tasks_look(struct pod_gang *g);
/* Of pods that are to go, those go without their node that have lost it, or never ran on it. */
void tasks_give_up_lost(struct pod_gang *g);
/* What is known is old: whatever had a time limit gets it anew. */
void tasks_wake(struct pod_gang *g, int64_t now_us);
bool tasks_all_started(const struct pod_gang *g);
bool tasks_any_there(const struct pod_gang *g);
bool tasks_any_untold(struct pod_gang *g); /* an end was seen, and waits for its log */
/* What was held back is told. */
void tasks_let_go(struct pod_gang *g);
/* One that was held back has ended, and not well: the gang will not run. */
bool tasks_any_failed(const struct pod_gang *g);
/* Their pods are gone by our hand, and will be made again. */
void tasks_forget(struct pod_gang *g);
/* What the gang waits for, once for each topic: a pod_trouble, or what begins at WAITS_TURN. */
enum { WAITS_TURN = POD_TROUBLE_COUNT, WAITS_ROOM, WAITS_RELEASED /* and each time on */ };
void tasks_tell_waits(struct pod_gang *g, uint32_t topic, const char *sentence);
/* Nobody will see them any more. */
void tasks_forget_pods(struct pod_gang *g);
/* Deletes the pods of those that have not ended; they have their grace time. */
void tasks_stop(struct pod_gang *g);
/* Ends their pods without a grace time. */
void tasks_kill(struct pod_gang *g);

uint32_t task_rank(const struct task_pod *task);
struct task_name task_label(const struct task_pod *task);
/* The task has ended; it is told in its turn. */
void tasks_see_end(struct task_pod *task);
/* By the log API; to its end, where the task has ended. */
void tasks_follow_log(struct task_pod *task);
/* The end of its log is missing: told with the reason for the first of a gang, counted for the
 * rest.
 */
void tasks_miss_log(struct task_pod *task, const char *why);

/* ---- gang_pull.c ---- */

/* Of the gang, once it has its key, and of one task. */
void gang_pull_open(struct pod_gang *g);
void gang_pull_close(struct pod_gang *g);
void gang_pull_begin(struct task_pod *task);
void gang_pull_release(struct task_pod *task);
/* We slept: its connections may be dead. */
void gang_pull_wake(struct task_pod *task);
/* Once all tasks run, the leading one's shim may go when it is done: until then they wait for its
 * name. */
void gang_pull_look(struct pod_gang *g);
/* Its end was told: nobody waits for the rest of its log any more. */
void gang_pull_told(struct task_pod *task);
/* False: what is seen of the pod says how it ended. */
bool gang_pull_end(struct task_pod *task, struct task_end *out);
/* Whether the task has ended, and what it left is still on its way. */
bool gang_pull_is_bringing(const struct task_pod *task);
bool gang_pull_any_bringing(const struct pod_gang *g);
/* Whether its end waits a moment for what the pod says of it. */
bool gang_pull_holds_end(const struct task_pod *task);
/* Nobody gets through to the shims: what is lost by that. Told once. */
void gang_pull_tell_unreachable(struct pod_gang *g, const char *why);
/* Nothing comes any more: what became of the outputs is told, and half of a file does not stay. */
void gang_pull_finish(struct pod_gang *g);

/* Whether that much time has passed since then; 0: it never began. */
bool gang_is_past(int64_t since_us, int64_t ms);

#endif
