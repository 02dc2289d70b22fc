/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/answer_cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/runs.h"
#include "cli/takeover.h"
#include "supervise/blocked.h"

bool cluster_run_waits(const struct run_record *run) {
    static const char *const beyond[] = { "running", "lingering", "stopping" };

    for (size_t i = 0; run->phase && i < ARRAY_LEN(beyond); i++)
        if (strcmp(run->phase, beyond[i]) == 0)
            return false;
    return true;
}

static int inquire(void *context, const struct run_venue *venue, struct error *err) {
    struct cluster_answer *answer = context;

    return pods_inquire(&venue->venue->options, venue->run->uuid, record_attempt(venue->run),
                        &answer->inquiry, err);
}

const struct cluster_answer *cluster_answer_for(const struct run_record *run, struct arena *arena) {
    struct cluster_answer *answer = ARENA_ARRAY(arena, struct cluster_answer, 1);
    const char *cluster = run->cluster ? run->cluster : "", *namespace = run->namespace;
    struct error err;

    *answer = (struct cluster_answer){ .cluster = arena_text(arena, cluster, strlen(cluster)),
                                       .namespace = arena_text(arena, namespace ? namespace : "",
                                                               namespace ? strlen(namespace) : 0) };
    answer->has_turns = strcmp(run->backend, "native") == 0 && run->n_tasks > 1;
    if (!run->uuid)
        answer->trouble = "its journal does not name it";
    else if (run_venue_open(run, inquire, answer, &err))
        answer->trouble = arena_text(arena, err.message, strlen(err.message));
    return answer;
}

/* ---- for people ---- */

static const char *gated_text(const struct inquiry *inquiry, struct arena *arena) {
    if (strcmp(inquiry->gate, MANIFEST_GATE) == 0)
        return "held back until their turn";
    if (strcmp(inquiry->gate, MANIFEST_GATE_KUEUE) == 0)
        return "held back by Kueue until it admits them";
    return arena_printf(arena, "held back by the gate %s", runs_text(arena, inquiry->gate, 0));
}

static void print_pods(const struct inquiry *inquiry, struct arena *arena) {
    const struct {
        uint32_t n;
        const char *what;
    } rows[] = {
        { inquiry->n_gated, gated_text(inquiry, arena) },
        { inquiry->n_unplaced, "without a node" },
        { inquiry->n_placed, "being started" },
        { inquiry->n_running, "running" },
        { inquiry->n_ended, "ended" },
    };
    const char *between = ": ";

    if (inquiry->n_pods == 0) {
        puts("  the cluster has no pod of it");
        return;
    }
    printf("  it has %" PRIu32 " pod%s", inquiry->n_pods, inquiry->n_pods == 1 ? "" : "s");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].n > 0) {
            printf("%s%" PRIu32 " %s", between, rows[i].n, rows[i].what);
            between = ", ";
        }
    putchar('\n');
}

static double seconds_since(int64_t us) {
    const double s = (double)(clock_wall_us() - us) / 1e6;

    return us > 0 && s > 0 ? s : 0;
}

static void print_turn(const struct inquiry *inquiry, struct arena *arena) {
    const struct lease *turn = &inquiry->turn;

    if (!turn->is_known)
        puts("  whose turn it is could not be read");
    else if (!turn->holder[0])
        puts("  no gang has the turn to be placed");
    else if (inquiry->is_ours)
        printf("  it has the turn to be placed, since %s\n",
               span_text(seconds_since(turn->taken_us)).text);
    else
        printf("  run %s of %s has the turn to be placed, since %s (pods: -l " MANIFEST_LABEL_RUN
               "=%.*s)\n",
               turn->run[0] ? runs_text(arena, turn->run, 0) : "?",
               turn->who[0] ? runs_text(arena, turn->who, 0) : "?",
               span_text(seconds_since(turn->taken_us)).text, (int)strcspn(turn->holder, "-"),
               runs_text(arena, turn->holder, 0));
}

void cluster_answer_print(const struct cluster_answer *answer) {
    AUTO(arena) arena = ARENA_INIT;

    if (answer->trouble) {
        printf("  the cluster cannot be asked: %s\n", runs_text(&arena, answer->trouble, 0));
        return;
    }
    print_pods(&answer->inquiry, &arena);
    if (answer->inquiry.troubled[0])
        printf("  %s: %s\n", runs_text(&arena, answer->inquiry.troubled, 0),
               runs_text(&arena, answer->inquiry.trouble, 0));
    if (answer->has_turns && !answer->inquiry.has_placer)
        print_turn(&answer->inquiry, &arena);
}

/* ---- for programs ---- */

static void write_text(struct json *json, const char *key, const char *text) {
    json_key(json, key);
    json_text(json, text && text[0] ? text : NULL);
}

static void write_count(struct json *json, const char *key, uint32_t n) {
    json_key(json, key);
    json_int(json, n);
}

static void write_turn(struct json *json, const struct inquiry *inquiry) {
    const struct lease *turn = &inquiry->turn;

    json_key(json, "turn");
    if (!turn->holder[0]) {
        json_null(json);
        return;
    }
    json_object(json);
    write_text(json, "holder", turn->holder);
    write_text(json, "run", turn->run);
    write_text(json, "owner", turn->who);
    write_text(json, "since",
               turn->taken_us > 0 ? time_text(turn->taken_us, TIME_SECONDS).text : NULL);
    json_key(json, "is_ours");
    json_bool(json, inquiry->is_ours);
    json_end(json);
}

void cluster_answer_write_json(struct json *json, const struct cluster_answer *answer) {
    const struct inquiry *inquiry = answer ? &answer->inquiry : NULL;

    if (!answer) {
        json_null(json);
        return;
    }
    json_object(json);
    write_text(json, "name", answer->cluster);
    write_text(json, "namespace", answer->namespace);
    write_text(json, "error", answer->trouble);
    json_key(json, "pods");
    json_object(json);
    write_count(json, "total", inquiry->n_pods);
    write_count(json, "gated", inquiry->n_gated);
    write_count(json, "unplaced", inquiry->n_unplaced);
    write_count(json, "placed", inquiry->n_placed);
    write_count(json, "running", inquiry->n_running);
    write_count(json, "ended", inquiry->n_ended);
    json_end(json);
    write_text(json, "gate", inquiry->gate);
    write_text(json, "troubled", inquiry->troubled);
    write_text(json, "trouble", inquiry->trouble);
    write_turn(json, inquiry);
    json_end(json);
}
