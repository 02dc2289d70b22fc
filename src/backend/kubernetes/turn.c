/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/turn.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/gang.h"
#include "backend/kubernetes/lease.h"
#include "base/clock.h"
#include "manifest/tree.h"

enum {
    IN_FLIGHT_MAX = 16,    /* requests for pods at once */
    TOLD_AFTER_MS = 1500,  /* a turn that comes sooner is not waited for */
    GOING_MOST_MS = 10000, /* with pods that should be gone: then others need not wait for them */
    ASK_AGAIN_MS = 1000,   /* about a Lease that could not be written; doubles up to the last */
    ASK_AGAIN_LAST_MS = 15 * 1000,
    GRACE_OF_RELEASED_S = 1, /* nothing that they did counts */
};

enum turn_state { TURN_WAITING, TURN_PLACING, TURN_ASKING, TURN_RELEASING, TURN_MAKING, TURN_OVER };

/* What a pod was asked for in this state. */
enum mark { MARK_NONE, MARK_ASKED };

struct turn;

struct pod_request {
    struct turn *turn;
    struct api_call *call; /* NULL: it is free */
    uint32_t rank;
};

enum writing { WRITES_TAKE, WRITES_BACK };

struct turn {
    struct pod_gang *g;
    enum turn_state state;
    char identity[LEASE_IDENTITY_MAX];
    int64_t began_us, entered_us; /* of the whole, of the state */

    struct lease lease;
    struct watch *leases;
    struct api_call *call; /* that writes the Lease, or reads it again */
    enum writing writing;
    int64_t asked_us;      /* when the write was sent */
    int64_t renewed_us;    /* when the last that succeeded was; 0: it is not ours */
    int64_t not_before_us; /* back-off */
    int64_t try_us;        /* when a free Lease is to be taken; 0: it was not free */
    bool has_waited;       /* it was somebody else's */
    bool was_written;      /* by us, once: we have the right */
    uint32_t n_unwritten;  /* times on end that it could not be written */
    int64_t again_us;      /* when that is tried again */
    struct event step_event;

    struct pod_request requests[IN_FLIGHT_MAX];
    uint8_t *marks; /* by rank */
    uint32_t n_placed;
    int64_t stuck_us;    /* since when some find no room; 0: they do, or nobody said so */
    uint32_t n_stuck;    /* when the last word was asked for */
    char last_word[400]; /* of the scheduler */
    uint32_t n_released;
};

static void pursue(struct turn *turn);
static void finish(struct turn *turn);
static void forget_requests(struct turn *turn);

static void enter(struct turn *turn, enum turn_state state) {
    turn->state = state;
    turn->entered_us = clock_monotonic_us();
    turn->stuck_us = 0;
    turn->n_placed = 0;
    memset(turn->marks, MARK_NONE, turn->g->gang.n_tasks);
}

/* The gang cannot run. */
static void fail(struct turn *turn, const char *what, const struct error *err) {
    struct pod_gang *g = turn->g;
    char sentence[SENTENCE_MOST];

    snprintf(sentence, sizeof sentence, "%s: %.380s", what, err->message);
    turn_stop(turn);
    g->gang.submitted(g->gang.context);
    tasks_end_all(g, sentence);
}

/* ---- the Lease ---- */

static struct api_resource leases(const struct turn *turn) {
    return (struct api_resource){ .group = "coordination.k8s.io",
                                  .version = "v1",
                                  .plural = "leases",
                                  .namespace = turn->g->namespace };
}

static bool wants_lease(const struct turn *turn) {
    const bool has_it = turn->renewed_us > 0;

    switch (turn->state) {
    case TURN_WAITING: return clock_monotonic_us() >= turn->not_before_us;
    case TURN_PLACING:
    case TURN_ASKING: return true;
    case TURN_RELEASING: return has_it && !gang_is_past(turn->entered_us, GOING_MOST_MS);
    case TURN_MAKING:
    case TURN_OVER: break;
    }
    return false;
}

static void step_at(struct turn *turn, int64_t us) {
    const int64_t wait = us - clock_monotonic_us();
    const int64_t sane = wait < 1000 ? 1000 : wait;
    const struct timeval when = { .tv_sec = sane / 1000000, .tv_usec = sane % 1000000 };

    evtimer_add(&turn->step_event, &when);
}

/* The gates that are open stay so: it waits for its turn with what it has. */
static void lose_lease(struct turn *turn) {
    api_cancel(turn->call);
    turn->call = NULL;
    turn->renewed_us = 0;
    if (turn->state == TURN_PLACING) {
        forget_requests(turn);
        enter(turn, TURN_WAITING);
    }
}

static void on_read(void *context, const struct api_answer *answer) {
    struct turn *turn = context;

    turn->call = NULL;
    if (answer->err.code == ERROR_NONE || answer->err.code == ERROR_NOT_FOUND) {
        lease_see(&turn->lease, answer->object, clock_monotonic_us());
        if (strcmp(turn->lease.holder, turn->identity) != 0)
            lose_lease(turn);
        pursue(turn);
    } else {
        step_at(turn, clock_monotonic_us() + ASK_AGAIN_MS * 1000ll);
    }
}

/* An answer that took too long to come is as good as none: it is asked for again. */
static void has_lease(struct turn *turn) {
    if (!lease_is_held(turn->asked_us, clock_monotonic_us()))
        return;
    turn->renewed_us = turn->asked_us;
    turn->try_us = 0;
    if (turn->state == TURN_WAITING)
        enter(turn, TURN_PLACING);
}

/* Whether it will not be taken however often it is asked for. A right that was there may come back,
 * as does who has to log in again: a gang that has waited for hours waits for that too. */
static bool is_refused(const struct turn *turn, const struct error *err) {
    return err->code == ERROR_INVALID || (err->code == ERROR_DENIED && !turn->was_written);
}

static void write_later(struct turn *turn, const struct error *err) {
    int64_t ms = ASK_AGAIN_MS;

    for (uint32_t i = 0; i < turn->n_unwritten && ms < ASK_AGAIN_LAST_MS; i++)
        ms *= 2;
    if (turn->n_unwritten++ == 0)
        gang_tell_trouble(turn->g, err);
    turn->again_us =
        clock_monotonic_us() + 1000 * (ms < ASK_AGAIN_LAST_MS ? ms : ASK_AGAIN_LAST_MS);
    step_at(turn, turn->again_us);
}

static void on_written(void *context, const struct api_answer *answer) {
    struct turn *turn = context;
    const struct api_resource resource = leases(turn);
    const struct error *err = &answer->err;
    const bool is_lost = err->code == ERROR_CONFLICT || err->code == ERROR_NOT_FOUND;

    turn->call = NULL;
    if (err->code == ERROR_NONE) {
        turn->was_written = true;
        turn->n_unwritten = 0;
        lease_see(&turn->lease, answer->object, clock_monotonic_us());
    }
    if (is_lost) {
        turn->call = api_get(turn->g->api, &resource, LEASE_NAME, on_read, turn);
        return;
    }
    if (turn->writing == WRITES_BACK) {
        turn->renewed_us = 0; /* what the cluster did not hear of expires */
    } else if (is_refused(turn, err)) {
        fail(turn, "the gang cannot take its turn", err);
        return;
    } else if (err->code == ERROR_NONE && !answer->existed) {
        has_lease(turn);
    } else if (err->code != ERROR_NONE) {
        write_later(turn, err);
        return;
    }
    turn_look(turn);
    pursue(turn);
}

static void write_lease(struct turn *turn, enum writing writing) {
    const struct api_resource resource = leases(turn);
    const struct lease_writer writer = { .identity = turn->identity,
                                         .run = turn->g->facts->run_id,
                                         .who = turn->g->facts->owner,
                                         .namespace = turn->g->namespace,
                                         .wall_us = clock_wall_us() };
    AUTO(arena) arena = ARENA_INIT;
    const struct node object = writing == WRITES_TAKE
                                   ? lease_taken(&turn->lease, &writer, &arena)
                                   : lease_given_back(&turn->lease, &writer, &arena);

    turn->writing = writing;
    turn->asked_us = clock_monotonic_us();
    turn->call = turn->lease.exists
                     ? api_update(turn->g->api, &resource, &object, on_written, turn)
                     : api_create(turn->g->api, &resource, &object, on_written, turn);
}

/* It is ours: it is renewed, or was lost because nobody answered. */
static void keep_lease(struct turn *turn, int64_t now_us) {
    const int64_t renew_us = turn->renewed_us + LEASE_RENEW_MS * 1000ll;

    if (!turn->call && now_us >= renew_us)
        write_lease(turn, WRITES_TAKE);
    step_at(turn, now_us < renew_us ? renew_us : turn->renewed_us + LEASE_HELD_MS * 1000ll);
}

static void take_lease(struct turn *turn, int64_t now_us) {
    int64_t until_us;

    if (lease_decide(&turn->lease, turn->identity, now_us, &until_us) == LEASE_WAIT) {
        turn->try_us = 0;
        turn->has_waited = turn->lease.is_known;
        if (turn->has_waited)
            step_at(turn, until_us);
        return;
    }
    if (turn->try_us == 0 && turn->has_waited)
        turn->try_us = now_us + 1000ll * lease_delay_ms(now_us - turn->began_us, arc4random());
    if (now_us >= turn->try_us || strcmp(turn->lease.holder, turn->identity) == 0)
        write_lease(turn, WRITES_TAKE);
    else
        step_at(turn, turn->try_us);
}

/* Does what is next about the Lease; harmless at any moment. */
static void pursue(struct turn *turn) {
    const int64_t now_us = clock_monotonic_us();

    if (turn->renewed_us > 0 && !lease_is_held(turn->renewed_us, now_us))
        lose_lease(turn);
    if (wants_lease(turn) && turn->renewed_us > 0)
        keep_lease(turn, now_us);
    else if (turn->call)
        return;
    else if (wants_lease(turn) && now_us < turn->again_us)
        step_at(turn, turn->again_us);
    else if (wants_lease(turn))
        take_lease(turn, now_us);
    else if (turn->renewed_us > 0)
        write_lease(turn, WRITES_BACK);
    else if (turn->state == TURN_WAITING)
        step_at(turn, turn->not_before_us);
}

static void on_step(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    pursue(context);
}

static void on_lease(void *context, const struct watch_event *event) {
    struct turn *turn = context;

    lease_see(&turn->lease, event->kind == WATCH_DELETED ? NULL : event->object,
              clock_monotonic_us());
    pursue(turn);
}

static void on_leases_synced(void *context) {
    struct turn *turn = context;

    if (!turn->lease.is_known)
        lease_see(&turn->lease, NULL, clock_monotonic_us());
    pursue(turn);
}

static void on_leases_failed(void *context, const struct error *err) {
    fail(context, "the gang cannot wait for its turn", err);
}

/* ---- pods ---- */

static void advance(struct turn *turn);

static void on_pod_asked(void *context, const struct api_answer *answer) {
    struct pod_request *request = context;
    struct turn *turn = request->turn;
    const enum error_code code = answer->err.code;

    request->call = NULL;
    if (code == ERROR_DENIED || code == ERROR_INVALID) {
        fail(turn,
             turn->state == TURN_RELEASING ? "a pod cannot be taken back"
                                           : "the gate of a pod cannot be opened",
             &answer->err);
        return;
    }
    /* One that is gone is missed by the watch; for the rest it is asked again by and by. */
    if (code == ERROR_NONE || code == ERROR_NOT_FOUND)
        advance(turn);
    else
        turn->marks[request->rank] = MARK_NONE;
}

static struct api_call *open_gate(struct pod_request *request, const struct api_resource *pods,
                                  const struct pod *pod) {
    AUTO(arena) arena = ARENA_INIT;
    struct tree patch = tree_map(&arena), spec = tree_map(&arena), gates = tree_list(&arena);
    struct tree gate = tree_map(&arena);
    struct node object;

    tree_text(&gate, "name", MANIFEST_GATE);
    tree_text(&gate, "$patch", "delete");
    tree_add(&gates, tree_node(&gate));
    tree_put(&spec, "schedulingGates", tree_node(&gates));
    tree_put(&patch, "spec", tree_node(&spec));
    object = tree_node(&patch);
    return api_patch(request->turn->g->api, pods, pod->name, NULL, API_PATCH_STRATEGIC, &object,
                     on_pod_asked, request);
}

static struct api_call *take_away(struct pod_request *request, const struct api_resource *pods,
                                  const struct pod *pod) {
    const struct api_delete how = { .propagation = API_DELETE_BACKGROUND,
                                    .grace_s = GRACE_OF_RELEASED_S,
                                    .uid = pod->uid };

    return api_delete(request->turn->g->api, pods, pod->name, &how, on_pod_asked, request);
}

static bool is_to_be_asked(const struct turn *turn, uint32_t rank) {
    const struct task_pod *task = &turn->g->tasks[rank];

    if (!task->is_there || turn->marks[rank] != MARK_NONE)
        return false;
    return turn->state == TURN_RELEASING || (turn->state == TURN_PLACING && task->pod.is_gated);
}

static struct pod_request *free_request(struct turn *turn) {
    for (size_t i = 0; i < IN_FLIGHT_MAX; i++)
        if (!turn->requests[i].call)
            return &turn->requests[i];
    return NULL;
}

/* Asks for the next pods: their gates to be opened, or themselves to be taken away. */
static void advance(struct turn *turn) {
    struct pod_gang *g = turn->g;
    const struct api_resource pods = { .version = "v1",
                                       .plural = "pods",
                                       .namespace = g->namespace };
    struct pod_request *request = free_request(turn);

    for (uint32_t rank = 0; request && rank < g->gang.n_tasks; rank++) {
        if (!is_to_be_asked(turn, rank))
            continue;
        turn->marks[rank] = MARK_ASKED;
        *request = (struct pod_request){ .turn = turn, .rank = rank };
        request->call = turn->state == TURN_RELEASING
                            ? take_away(request, &pods, &g->tasks[rank].pod)
                            : open_gate(request, &pods, &g->tasks[rank].pod);
        request = free_request(turn);
    }
}

static void forget_requests(struct turn *turn) {
    for (size_t i = 0; i < IN_FLIGHT_MAX; i++) {
        api_cancel(turn->requests[i].call);
        turn->requests[i].call = NULL;
    }
}

/* ---- whether they have a place ---- */

struct places {
    uint32_t n_placed, n_stuck;
    const struct task_pod *stuck; /* the first of them */
};

/* The scheduler finds no room, or somebody else's gate is closed behind ours. */
static bool is_stuck(const struct turn *turn, const struct task_pod *task) {
    if (task->pod.is_gated)
        return turn->state == TURN_PLACING && turn->marks[task - turn->g->tasks] == MARK_ASKED;
    return task->pod.trouble == POD_UNSCHEDULABLE;
}

static struct places look_at_places(const struct turn *turn) {
    struct places places = { 0 };

    for (uint32_t rank = 0; rank < turn->g->gang.n_tasks; rank++) {
        const struct task_pod *task = &turn->g->tasks[rank];

        if (task->has_end || (task->is_there && task->pod.node[0])) {
            places.n_placed++;
        } else if (task->is_there && is_stuck(turn, task)) {
            places.n_stuck++;
            if (!places.stuck)
                places.stuck = task;
        }
    }
    return places;
}

static void tell_release(struct turn *turn, uint32_t rank) {
    struct pod_gang *g = turn->g;
    const int64_t patience_s = g->options->settings->kubernetes.placement_patience_s;
    const uint32_t wait_ms = lease_backoff_ms(++turn->n_released, arc4random());
    const struct task_name name = task_name(&g->options->plan->tasks[rank]);
    char sentence[SENTENCE_MOST];

    turn->not_before_us = clock_monotonic_us() + wait_ms * 1000ll;
    snprintf(sentence, sizeof sentence,
             "no room for %" PRIu32 " of %" PRIu32 " tasks after %" PRId64
             "s: all give back what they have, and try again in %" PRIu32 "s; %s: %.240s",
             turn->n_stuck, g->gang.n_tasks, patience_s, (wait_ms + 500) / 1000, name.text,
             turn->last_word);
    tasks_tell_waits(g, WAITS_RELEASED + turn->n_released, sentence);
}

/* The pod was as it was seen: without it the others have no use of their places. */
static void release(struct turn *turn, uint32_t rank) {
    tell_release(turn, rank);
    enter(turn, TURN_RELEASING);
    turn->marks[rank] = MARK_ASKED;
    turn_look(turn);
}

static void ask_for_last_word(struct turn *turn, uint32_t rank);

static void on_last_word(void *context, const struct api_answer *answer) {
    struct pod_request *request = context;
    struct turn *turn = request->turn;

    request->call = NULL;
    if (answer->err.code == ERROR_NONE) {
        release(turn, request->rank);
    } else if (answer->err.code == ERROR_DENIED || answer->err.code == ERROR_INVALID) {
        fail(turn, "a pod cannot be taken back", &answer->err);
    } else if (answer->err.code == ERROR_UNAVAILABLE) {
        ask_for_last_word(turn, request->rank); /* it may have been taken */
    } else {
        enter(turn, turn->renewed_us > 0 ? TURN_PLACING : TURN_WAITING);
    }
}

static void ask_for_last_word(struct turn *turn, uint32_t rank) {
    const struct pod *pod = &turn->g->tasks[rank].pod;
    const struct api_resource pods = { .version = "v1",
                                       .plural = "pods",
                                       .namespace = turn->g->namespace };
    const struct api_delete how = { .propagation = API_DELETE_BACKGROUND,
                                    .grace_s = GRACE_OF_RELEASED_S,
                                    .uid = pod->uid,
                                    .version = pod->version };
    struct pod_request *request = &turn->requests[0];

    forget_requests(turn);
    enter(turn, TURN_ASKING);
    *request = (struct pod_request){ .turn = turn, .rank = rank };
    request->call = api_delete(turn->g->api, &pods, pod->name, &how, on_last_word, request);
}

/* The patience begins anew with each pod that gets a place: nodes may be coming one by one. */
static void mind_patience(struct turn *turn, const struct places *places) {
    const int64_t patience_s = turn->g->options->settings->kubernetes.placement_patience_s;

    if (places->n_stuck == 0)
        turn->stuck_us = 0;
    else if (turn->stuck_us == 0 || places->n_placed > turn->n_placed)
        turn->stuck_us = clock_monotonic_us();
    turn->n_placed = places->n_placed;
    if (turn->state != TURN_PLACING || !gang_is_past(turn->stuck_us, patience_s * 1000))
        return;
    turn->n_stuck = places->n_stuck;
    snprintf(turn->last_word, sizeof turn->last_word, "%s", places->stuck->pod.sentence);
    ask_for_last_word(turn, (uint32_t)(places->stuck - turn->g->tasks));
}

static void tell_others_turn(struct turn *turn) {
    const struct lease *lease = &turn->lease;
    char before[80] = "", sentence[SENTENCE_MOST];

    if (turn->n_released > 0)
        snprintf(before, sizeof before,
                 "; when it had it last, there was no room for %" PRIu32 " of %" PRIu32 " tasks",
                 turn->n_stuck, turn->g->gang.n_tasks);
    snprintf(sentence, sizeof sentence,
             "it waits for its turn: run %s of %s is being given its place in namespace %s%s",
             lease->run[0] ? lease->run : lease->holder, lease->who[0] ? lease->who : "somebody",
             turn->g->namespace, before);
    tasks_tell_waits(turn->g, WAITS_TURN, sentence);
}

/* After a release its sentence stands for the time of the back-off that it names; then what is so
 * by then. */
static void tell_waits(struct turn *turn, const struct places *places) {
    struct pod_gang *g = turn->g;
    const int64_t since_us =
        turn->entered_us > turn->not_before_us ? turn->entered_us : turn->not_before_us;
    char sentence[SENTENCE_MOST];

    if (!gang_is_past(since_us, TOLD_AFTER_MS))
        return;
    if (turn->state == TURN_PLACING && places->n_stuck > 0) {
        snprintf(sentence, sizeof sentence,
                 "%" PRIu32 " of %" PRIu32 " tasks wait for room; %s: %s", places->n_stuck,
                 g->gang.n_tasks,
                 task_name(&g->options->plan->tasks[places->stuck - g->tasks]).text,
                 places->stuck->pod.sentence);
        tasks_tell_waits(g, WAITS_ROOM, sentence);
    } else if (turn->state == TURN_WAITING && turn->lease.holder[0]) {
        tell_others_turn(turn);
    }
}

static void place(struct turn *turn) {
    const struct places places = look_at_places(turn);

    if (places.n_placed == turn->g->gang.n_tasks || tasks_any_failed(turn->g)) {
        finish(turn);
        gang_placed(turn->g);
        return;
    }
    advance(turn);
    tell_waits(turn, &places);
    mind_patience(turn, &places);
}

void turn_look(struct turn *turn) {
    if (!turn || !turn->g->pods_synced || turn->g->stage != STAGE_WATCHING)
        return;
    if (turn->state == TURN_RELEASING && !tasks_any_there(turn->g)) {
        forget_requests(turn);
        tasks_forget(turn->g);
        enter(turn, TURN_MAKING);
        turn->g->form->make_again(turn->g);
    } else if (turn->state == TURN_RELEASING) {
        advance(turn);
        tasks_give_up_lost(turn->g); /* nobody else says when they are gone */
    } else if (turn->state == TURN_WAITING || turn->state == TURN_PLACING) {
        place(turn);
    }
    pursue(turn);
}

/* ---- its life ---- */

static struct turn *turn_new(struct pod_gang *g) {
    const struct api_resource resource = { .group = "coordination.k8s.io",
                                           .version = "v1",
                                           .plural = "leases",
                                           .namespace = g->namespace };
    struct turn *turn = calloc(1, sizeof *turn);

    if (!turn || !(turn->marks = calloc(g->gang.n_tasks, 1)))
        abort();
    turn->g = g;
    turn->began_us = clock_monotonic_us();
    lease_identity(g->facts->uuid, g->facts->number, turn->identity);
    evtimer_assign(&turn->step_event, api_loop(g->api), on_step, turn);
    turn->leases = watch_new(
        g->api, &resource, &(struct api_selector){ .fields = "metadata.name=" LEASE_NAME },
        &(struct watch_observer){ on_lease, on_leases_synced, NULL, on_leases_failed, turn });
    return turn;
}

void turn_begin(struct pod_gang *g) {
    if (!g->turn)
        g->turn = turn_new(g);
    enter(g->turn, TURN_WAITING);
    pursue(g->turn);
}

/* Nothing more is done about the pods, and the Lease is given back. */
static void finish(struct turn *turn) {
    enter(turn, TURN_OVER);
    forget_requests(turn);
    watch_free(turn->leases);
    turn->leases = NULL;
    pursue(turn);
}

void turn_stop(struct turn *turn) {
    if (!turn || turn->state == TURN_OVER)
        return;
    turn->g->was_held_to_the_end = turn->g->is_held;
    turn->g->is_held = false;
    finish(turn);
}

void turn_abandon(struct turn *turn) {
    if (!turn)
        return;
    turn_stop(turn);
    api_cancel(turn->call);
    turn->call = NULL;
    turn->renewed_us = 0;
    evtimer_del(&turn->step_event);
}

bool turn_is_over(const struct turn *turn) {
    return !turn || (turn->state == TURN_OVER && !turn->call && turn->renewed_us == 0);
}

void turn_free(struct turn *turn) {
    if (!turn)
        return;
    forget_requests(turn);
    api_cancel(turn->call);
    watch_free(turn->leases);
    event_del(&turn->step_event);
    free(turn->marks);
    free(turn);
}
