/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/queue.h"

#include <assert.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "backend/local/affinity.h"
#include "backend/local/cgroup.h"
#include "backend/local/topology.h"
#include "base/clock.h"
#include "store/find.h"
#include "store/owner.h"
#include "supervise/blocked.h"
#include "supervise/supervisor.h"

enum {
    LOOK_EVERY_MS = 500,
    LOOK_SOON_MS = 10,   /* after a change: changes come in flocks */
    BUSY_MS = 20,        /* of the loop for another writer */
    ENTER_BUSY_MS = 200, /* of a command, each time it tries */
    ENTER_TRIES = 50,
    LEAVE_BUSY_MS = 2000,
    FORGET_BUSY_MS = 200,    /* of who only happens to see a dead run */
    STUCK_MS = 5000,         /* of no look that succeeded, before that is told */
    FOLLOW_MS = 1000,        /* after a change, when it runs */
    FOLLOW_EVERY_MS = 10000, /* while it yields to others: who was killed says nothing */
    LOOK_AT_ALL_EVERY = 10,  /* looks; the others look at those next to them */
    NOWHERE = -1,
};

struct queue {
    struct queue_options options;
    struct queue_observer observer;
    uint64_t run;
    struct ledger *ledger;
    struct machine machine;
    struct gpus gpu_list;
    bool knows_gpus;
    struct event *look_event, *change_event, *timeout_event;
    int change_fd;
    unsigned n_looks;
    bool is_over, has_told, has_blamed;
    bool is_in_trouble; /* the last look failed of something that does not pass by itself */
    bool follows;       /* some of its tasks are not pinned, and there are CPUs to keep off */
    int64_t looked;     /* when a look last succeeded, in microseconds */
    gpu_set *gpus;      /* by rank */
    struct layout layout;
    struct pinning pinning;
    struct placement placement;
    char why[BLOCKED_MOST];
};

static uint64_t run_number(const struct rundir *rundir) {
    return strtoull(rundir->id, NULL, 10);
}

/* ---- entering ---- */

static int try_to_enter(const char *home, uint64_t run, const struct demand *demand,
                        struct error *err) {
    struct ledger *ledger;
    int status = -1;

    if (ledger_open(home, LEDGER_TO_WRITE, ENTER_BUSY_MS, &ledger, err))
        return -1;
    if (ledger_begin(ledger, err) == 0) {
        status = ledger_enter(ledger, run, demand, err) || ledger_commit(ledger, err) ? -1 : 0;
        if (status)
            ledger_rollback(ledger);
    }
    ledger_close(ledger);
    return status;
}

int queue_enter(const char *home, const struct rundir *rundir, const struct demand *demand,
                struct error *err) {
    for (int i = 0; i < ENTER_TRIES; i++) {
        if (try_to_enter(home, run_number(rundir), demand, err) == 0)
            return 0;
        if (err->code != ERROR_UNAVAILABLE)
            return -1;
        clock_pause_ms((i % 7 + 1) * 2);
    }
    ledger_blame(home, err);
    return -1;
}

void queue_forget(const struct rundir *rundir) {
    AUTO(arena) arena = ARENA_INIT;
    struct ledger *ledger;
    struct error err;

    if (ledger_open(rundir_home_of(rundir, &arena), LEDGER_TO_LOOK, FORGET_BUSY_MS, &ledger, &err))
        return;
    if (ledger && ledger_forget(ledger, run_number(rundir), &err))
        ledger_rollback(ledger);
    ledger_close(ledger);
}

/* ---- the dead ---- */

/* A run that died without a word may have left processes, which its control groups give away: what
 * it holds is free only when there are none. What cannot be looked at is not over: it may be
 * another user's. */
static bool is_over(const char *home, uint64_t run) {
    AUTO(arena) arena = ARENA_INIT;
    struct run_identity identity;
    struct rundir rundir;
    struct error err;
    pid_t pid;

    if (rundir_open(home, (unsigned long)run, &arena, &rundir, &err))
        return err.code == ERROR_NOT_FOUND;
    if (owner_lives(&rundir, &pid))
        return false;
    identify_run(&rundir, &arena, &identity);
    return !identity.is_hidden && (!identity.uuid || !cgroups_are_left(identity.uuid));
}

/* Ends what is left of a run without an owner, and frees what it holds. */
static void settle_dead(const char *home, uint64_t run, enum settling settling) {
    AUTO(arena) arena = ARENA_INIT;
    struct rundir rundir;
    struct error err;

    if (!ledger_run_lives(home, run) &&
        rundir_open(home, (unsigned long)run, &arena, &rundir, &err) == 0)
        supervisor_settle(&rundir, settling);
}

static void settle_holders(const char *home, const struct ledger_view *view,
                           enum settling settling) {
    for (size_t i = 0; i < view->holds.len; i++)
        if (i == 0 || view->holds.items[i].run != view->holds.items[i - 1].run)
            settle_dead(home, view->holds.items[i].run, settling);
}

/* ---- looking ---- */

bool queue_wants_gpus(const struct ledger_view *view, const struct demand *demand) {
    for (size_t i = 0; i < view->queue.len; i++)
        if (view->queue.items[i].demand.total[RESOURCE_GPU] > 0)
            return true;
    return demand->total[RESOURCE_GPU] > 0;
}

struct situation queue_situation(struct ledger_view *view, const struct machine *machine,
                                 const struct waiting *extra) {
    const size_t n = view->queue.len;
    struct waiting *queue = ARENA_ARRAY(&view->arena, struct waiting, n + 1);

    for (size_t i = 0; i < n; i++)
        queue[i] = (struct waiting){ view->queue.items[i].run, view->queue.items[i].demand };
    if (extra)
        queue[n] = *extra;
    return (struct situation){ .machines = machine,
                               .n_machines = 1,
                               .holds = view->holds.items,
                               .n_holds = view->holds.len,
                               .queue = queue,
                               .n_queue = n + (extra ? 1 : 0) };
}

int queue_look(const char *home, struct ledger_view *view, struct error *err) {
    struct ledger *ledger;
    size_t kept = 0;
    int status;

    if (ledger_open(home, LEDGER_TO_LOOK, LEAVE_BUSY_MS, &ledger, err)) {
        ledger_blame(home, err);
        return -1;
    }
    status = ledger_read(ledger, view, err);
    ledger_close(ledger);
    if (status)
        return -1;
    settle_holders(home, view, SETTLE_PATIENTLY);
    for (size_t i = 0; i < view->queue.len; i++)
        if (ledger_run_lives(home, view->queue.items[i].run))
            view->queue.items[kept++] = view->queue.items[i];
    view->queue.len = kept;
    kept = 0;
    for (size_t i = 0; i < view->holds.len; i++)
        if (!is_over(home, view->holds.items[i].run))
            view->holds.items[kept++] = view->holds.items[i];
    view->holds.len = kept;
    return 0;
}

/* Where the run stands in the queue, or NOWHERE. */
static int64_t find_own(const struct queue *queue, const struct ledger_view *view) {
    for (size_t i = 0; i < view->queue.len; i++)
        if (view->queue.items[i].run == queue->run)
            return (int64_t)i;
    return NOWHERE;
}

static void decide(struct queue *queue, struct ledger_view *view, size_t own,
                   struct decision *decision, struct spot *spots) {
    struct situation situation;

    if (!queue->knows_gpus && queue_wants_gpus(view, queue->options.demand)) {
        inventory_read(INVENTORY_WHOLE, &queue->machine, &queue->gpu_list);
        queue->knows_gpus = true;
    }
    situation = queue_situation(view, &queue->machine, NULL);
    sched_decide(&situation, own, decision, spots);
}

static bool is_gone(const struct queue *queue, uint64_t run) {
    return !ledger_run_lives(queue->options.home, run);
}

/* Whether somebody who stands in the way died without a word. Each looks at the one before it, the
 * head at those that hold something: together that is everybody, and costs little however many
 * wait. Now and then each looks at all, as the one before may be asleep. */
static bool somebody_is_gone(struct queue *queue, const struct ledger_view *view, size_t own) {
    const bool looks_at_all = ++queue->n_looks % LOOK_AT_ALL_EVERY == 0;

    if (own > 0 && is_gone(queue, view->queue.items[own - 1].run))
        return true;
    for (size_t i = 0; looks_at_all && i < own; i++)
        if (is_gone(queue, view->queue.items[i].run))
            return true;
    for (size_t i = 0; (looks_at_all || own == 0) && i < view->holds.len; i++)
        if ((i == 0 || view->holds.items[i].run != view->holds.items[i - 1].run) &&
            is_gone(queue, view->holds.items[i].run))
            return true;
    return false;
}

/* ---- reserving ---- */

void queue_read_layout(const struct plan *plan, const struct demand *demand, struct layout *out) {
    if (pinning_is_wanted(plan, demand)) {
        topology_read(out);
        return;
    }
    *out = (struct layout){ .is_this_machine = true };
    topology_allowed(&out->allowed);
}

/* What is given to the run is not taken by others: the caller is in a transaction. */
static void choose_cpus(struct queue *queue, const struct ledger_view *view) {
    if (queue->layout.is_this_machine)
        topology_allowed(&queue->layout.allowed); /* it may have changed while we waited */
    pinning_release(&queue->pinning);
    pinning_choose(&queue->pinning, queue->options.plan, queue->options.demand, &queue->layout,
                   view->holds.items, view->holds.len);
}

/* One row for each task with GPUs or CPUs of its own, one for all others together. */
static size_t make_holds(struct queue *queue, const struct spot *spots, struct hold *holds) {
    const struct demand *demand = queue->options.demand;
    struct hold rest = { .rank = HOLD_OF_SEVERAL };
    size_t n = 0;
    uint32_t at = 0;

    for (size_t g = 0; g < demand->n_groups; g++)
        for (uint32_t i = 0; i < demand->groups[g].n; i++, at++) {
            const milli *amount = demand->groups[g].amount;
            const uint32_t rank = demand->ranks[at];
            const struct cpus *cpus = pinning_of(&queue->pinning, rank);

            if (queue->gpus)
                queue->gpus[rank] = spots[at].gpus;
            if (spots[at].gpus || cpus) {
                holds[n] = (struct hold){ .rank = rank, .gpus = spots[at].gpus };
                if (cpus)
                    holds[n].cpus = *cpus;
                memcpy(holds[n++].amount, amount, sizeof rest.amount);
                continue;
            }
            for (enum resource r = 0; r < RESOURCE_COUNT; r++)
                rest.amount[r] += amount[r];
        }
    holds[n++] = rest;
    return n;
}

static int write_placement(struct queue *queue, const struct spot *spots, struct error *err) {
    struct hold *holds = calloc(queue->options.demand->n_tasks + 1u, sizeof *holds);
    int status;
    size_t n;

    if (!holds)
        abort();
    n = make_holds(queue, spots, holds);
    status = ledger_reserve(queue->ledger, queue->run, holds, n, err);
    if (status == 0)
        queue->observer.reserves(queue->observer.context, holds, n);
    free(holds);
    return status;
}

/* Inside a transaction, with all that is stale taken out: decides for good. */
static int decide_for_good(struct queue *queue, struct decision *decision, struct spot *spots,
                           struct error *err) {
    struct ledger_view view = { 0 };
    int64_t own;
    int status = 0;

    if (ledger_settle(queue->ledger, is_over, err) || ledger_read(queue->ledger, &view, err))
        return -1;
    own = find_own(queue, &view);
    if (own == NOWHERE) { /* somebody emptied the ledger meanwhile */
        ledger_view_release(&view);
        if (ledger_enter(queue->ledger, queue->run, queue->options.demand, err) ||
            ledger_read(queue->ledger, &view, err))
            return -1;
        own = find_own(queue, &view);
        assert(own != NOWHERE);
    }
    decide(queue, &view, (size_t)own, decision, spots);
    if (decision->fit == FIT_NOW) {
        choose_cpus(queue, &view);
        status = write_placement(queue, spots, err);
    }
    ledger_view_release(&view);
    return status;
}

/* Opens the ledger, again if it was put aside. */
static int open_current(struct queue *queue, struct error *err) {
    if (queue->ledger && ledger_was_moved(queue->ledger)) {
        ledger_close(queue->ledger);
        queue->ledger = NULL;
    }
    if (queue->ledger)
        return 0;
    return ledger_open(queue->options.home, LEDGER_TO_WRITE, BUSY_MS, &queue->ledger, err);
}

/* What is written to a ledger that was put aside, nobody sees. */
static int check_current(struct queue *queue, struct error *err) {
    if (!ledger_was_moved(queue->ledger))
        return 0;
    return error_set(err, ERROR_UNAVAILABLE, "the ledger was put aside");
}

static int take_turn(struct queue *queue, struct decision *decision, struct error *err) {
    struct spot *spots = calloc(queue->options.demand->n_tasks, sizeof *spots);
    int status = -1;

    if (!spots)
        abort();
    if (ledger_begin(queue->ledger, err) == 0) {
        status = check_current(queue, err) || decide_for_good(queue, decision, spots, err) ||
                         ledger_commit(queue->ledger, err)
                     ? -1
                     : 0;
        if (status)
            ledger_rollback(queue->ledger);
    }
    free(spots);
    return status;
}

/* ---- the loop ---- */

static void arm(struct event *event, uint32_t ms) {
    const struct timeval delay = clock_timeval(ms);

    evtimer_add(event, &delay);
}

static void end_waiting(struct queue *queue) {
    queue->is_over = true;
    evtimer_del(queue->look_event);
    evtimer_del(queue->timeout_event);
    if (queue->change_event && !queue->follows)
        event_del(queue->change_event);
}

/* ---- while it runs ---- */

static void keep_living(const struct queue *queue, struct ledger_view *view) {
    size_t kept = 0;

    for (size_t i = 0; i < view->holds.len; i++)
        if (cpus_count(&view->holds.items[i].cpus) > 0 && !is_gone(queue, view->holds.items[i].run))
            view->holds.items[kept++] = view->holds.items[i];
    view->holds.len = kept;
}

/* Has its tasks that are not pinned keep off the CPUs that are somebody's now. */
static void follow(struct queue *queue) {
    struct ledger_view view = { 0 };
    struct cpus before;
    struct error err;

    if (open_current(queue, &err) == 0 && ledger_read(queue->ledger, &view, &err) == 0) {
        keep_living(queue, &view);
        if (pinning_follow(&queue->pinning, view.holds.items, view.holds.len, &before))
            affinity_move(&before, &queue->pinning.shared);
        ledger_view_release(&view);
    }
    if (!cpus_are_equal(&queue->pinning.shared, &queue->pinning.allowed))
        arm(queue->look_event, FOLLOW_EVERY_MS);
}

static void refuse(struct queue *queue, const char *sentence) {
    end_waiting(queue);
    queue->observer.refused(queue->observer.context, sentence);
}

static void remember_why(struct queue *queue, const struct ledger_view *view,
                         const struct decision *decision) {
    AUTO(buf) text = BUF_INIT(BLOCKED_MOST);
    struct error err;

    if (blocked_sentence(decision, view, BLOCKED_KEPT, &text, &err) == 0)
        snprintf(queue->why, sizeof queue->why, "%s", text.data);
}

/* Looks without standing in anybody's way, and takes its turn where that may succeed. */
static int look(struct queue *queue, struct decision *decision, struct error *err) {
    struct ledger_view view = { 0 };
    int64_t own;
    int status = 0;

    if (open_current(queue, err) || ledger_read(queue->ledger, &view, err))
        return -1;
    own = find_own(queue, &view);
    if (own != NOWHERE)
        decide(queue, &view, (size_t)own, decision, NULL);
    if (own == NOWHERE || decision->fit == FIT_NOW || somebody_is_gone(queue, &view, (size_t)own)) {
        settle_holders(queue->options.home, &view, SETTLE_IN_PASSING);
        status = take_turn(queue, decision, err);
    }
    if (status == 0 && decision->fit == FIT_LATER)
        remember_why(queue, &view, decision);
    ledger_view_release(&view);
    return status;
}

/* Somebody else is at the ledger. That is usual for a moment; who stays in the way is told. */
static void look_again(struct queue *queue, struct error *err) {
    arm(queue->look_event, LOOK_SOON_MS + (uint32_t)(queue->run * 7 % 30));
    if (queue->has_blamed || clock_monotonic_us() - queue->looked < STUCK_MS * INT64_C(1000))
        return;
    queue->has_blamed = true;
    ledger_blame(queue->options.home, err);
    snprintf(queue->why, sizeof queue->why, "%s", err->message);
    queue->observer.waits(queue->observer.context, queue->why);
}

/* The ledger is damaged, its disk is full, it cannot be written: somebody can mend that, and until
 * then the run keeps its place. */
static void wait_for_mending(struct queue *queue, const struct error *err) {
    if (queue->is_in_trouble)
        return;
    queue->is_in_trouble = true;
    snprintf(queue->why, sizeof queue->why, "waiting until it is mended: %s", err->message);
    queue->observer.waits(queue->observer.context, queue->why);
}

static void on_trouble(struct queue *queue, struct error *err) {
    if (err->code == ERROR_UNAVAILABLE)
        look_again(queue, err);
    else if (err->code == ERROR_NOT_FOUND) /* the home, and with it the run itself */
        refuse(queue, err->message);
    else
        wait_for_mending(queue, err);
}

static void on_look(evutil_socket_t fd, short what, void *context) {
    struct queue *queue = context;
    struct decision decision;
    struct error err;

    (void)fd, (void)what;
    if (queue->is_over) {
        follow(queue);
        return;
    }
    /* Not all at the same moment, however they were woken. */
    arm(queue->look_event, LOOK_EVERY_MS + (uint32_t)(queue->run * 37 % 100));
    if (look(queue, &decision, &err)) {
        on_trouble(queue, &err);
        return;
    }
    queue->looked = clock_monotonic_us();
    if (queue->is_in_trouble) /* what it waits for now is told anew */
        queue->is_in_trouble = queue->has_told = false;
    if (decision.fit == FIT_NOW) {
        queue->follows = queue->pinning.n_pins < queue->options.plan->n_tasks &&
                         cpus_count(&queue->pinning.allowed) > 1 && queue->layout.is_this_machine;
        end_waiting(queue);
        if (queue->follows) /* what came to pass since the transaction is seen too */
            arm(queue->look_event, FOLLOW_MS);
        queue->placement = (struct placement){ queue->gpus, &queue->pinning };
        queue->observer.placed(queue->observer.context, &queue->placement);
    } else if (decision.fit == FIT_NEVER) {
        never_fits(queue->options.plan, queue->options.demand, &decision, &err);
        refuse(queue, err.message);
    } else if (!queue->has_told) {
        queue->has_told = true;
        queue->observer.waits(queue->observer.context, queue->why);
    }
}

/* A second after the first of several changes, not the last. */
static void follow_soon(struct queue *queue) {
    struct timeval at, now, soon;

    evutil_gettimeofday(&now, NULL);
    soon = now;
    soon.tv_sec += FOLLOW_MS / 1000;
    if (!evtimer_pending(queue->look_event, &at) || evutil_timercmp(&at, &soon, >))
        arm(queue->look_event, FOLLOW_MS);
}

static void on_change(evutil_socket_t fd, short what, void *context) {
    struct queue *queue = context;
    char bytes[4096];

    (void)what;
    while (read(fd, bytes, sizeof bytes) > 0)
        continue;
    if (queue->is_over) {
        follow_soon(queue);
        return;
    }
    arm(queue->look_event, LOOK_SOON_MS + (uint32_t)(queue->run * 7 % 30));
}

static void on_timeout(evutil_socket_t fd, short what, void *context) {
    struct queue *queue = context;
    char sentence[BLOCKED_MOST + 64];

    (void)fd, (void)what;
    snprintf(sentence, sizeof sentence, "its turn did not come within %gs: %s",
             (double)queue->options.timeout_ms / 1000,
             queue->why[0] ? queue->why : "the ledger was in use by others");
    refuse(queue, sentence);
}

/* Every commit writes to a file of the home. Without notifications the slow look remains. */
static void watch_changes(struct queue *queue, struct event_base *base) {
    queue->change_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (queue->change_fd < 0 ||
        inotify_add_watch(queue->change_fd, queue->options.home, IN_MODIFY) < 0)
        return;
    queue->change_event = event_new(base, queue->change_fd, EV_READ | EV_PERSIST, on_change, queue);
    if (!queue->change_event)
        abort();
    event_add(queue->change_event, NULL);
}

struct queue *queue_new(struct event_base *base, const struct queue_options *options,
                        const struct queue_observer *observer) {
    struct queue *queue = calloc(1, sizeof *queue);

    if (!queue)
        abort();
    queue->options = *options;
    queue->observer = *observer;
    queue->run = run_number(options->rundir);
    queue->looked = clock_monotonic_us();
    inventory_read(INVENTORY_WITHOUT_GPUS, &queue->machine, &queue->gpu_list);
    queue_read_layout(options->plan, options->demand, &queue->layout);
    if (options->demand->total[RESOURCE_GPU] > 0)
        queue->gpus = calloc(options->plan->n_tasks, sizeof *queue->gpus);
    queue->look_event = evtimer_new(base, on_look, queue);
    queue->timeout_event = evtimer_new(base, on_timeout, queue);
    if (!queue->look_event || !queue->timeout_event ||
        (options->demand->total[RESOURCE_GPU] > 0 && !queue->gpus))
        abort();
    watch_changes(queue, base);
    if (options->timeout_ms != QUEUE_NO_TIMEOUT)
        arm(queue->timeout_event, (uint32_t)options->timeout_ms);
    event_active(queue->look_event, EV_TIMEOUT, 0);
    return queue;
}

/* Where this fails the rows end with the owner's lock, a moment later. */
static void leave(struct queue *queue) {
    struct error err;

    if (!queue->ledger &&
        ledger_open(queue->options.home, LEDGER_TO_WRITE, LEAVE_BUSY_MS, &queue->ledger, &err))
        return;
    ledger_set_busy(queue->ledger, LEAVE_BUSY_MS);
    if (ledger_begin(queue->ledger, &err))
        return;
    if (ledger_forget(queue->ledger, queue->run, &err) || ledger_commit(queue->ledger, &err))
        ledger_rollback(queue->ledger);
}

void queue_free(struct queue *queue) {
    if (!queue)
        return;
    leave(queue);
    ledger_close(queue->ledger);
    event_free(queue->look_event);
    event_free(queue->timeout_event);
    if (queue->change_event)
        event_free(queue->change_event);
    if (queue->change_fd >= 0)
        close(queue->change_fd);
    pinning_release(&queue->pinning);
    free(queue->gpus);
    free(queue);
}
