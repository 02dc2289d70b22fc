/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/gang.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/rendezvous.h"

enum {
    PATIENCE_S = 600,
    GONE_S = 60,
    FAILED_S = 30,
    ENDED_S = 600,
    FAREWELL_S = 15,
    SECONDS_MAX = 7 * 24 * 3600,
};

/* Numbers that the environment may give, with what they are without it. */
struct numbers {
    int64_t patience, gone, failed, ended, rendezvous, port;
};

/* Returns the variable that is wrong, or NULL. */
static const char *read_numbers(struct numbers *out, const struct settings *settings) {
    const struct {
        const char *name;
        int64_t *to, without, most;
    } rows[] = {
        { SETTINGS_PREFIX "PATIENCE", &out->patience, PATIENCE_S, SECONDS_MAX },
        { SETTINGS_PREFIX "LEADER_GONE", &out->gone, GONE_S, SECONDS_MAX },
        { SETTINGS_PREFIX "LEADER_FAILED", &out->failed, FAILED_S, SECONDS_MAX },
        { SETTINGS_PREFIX "LEADER_ENDED", &out->ended, ENDED_S, SECONDS_MAX },
        { SETTINGS_PREFIX "LEADER_PORT", &out->port, settings->port, UINT16_MAX },
        { SETTINGS_PREFIX "RENDEZVOUS", &out->rendezvous, 0, UINT16_MAX },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i].to = settings_number(rows[i].name, rows[i].without, rows[i].most);
        if (*rows[i].to < 0)
            return rows[i].name;
    }
    return NULL;
}

static void refuse(struct gang *gang, const char *before, const char *what, const char *after) {
    snprintf(gang->cause, sizeof gang->cause, "%s%s%s", before, what, after);
    shim_refuse(gang->shim, gang->cause);
}

/* ---- the leader */

static bool is_watched(struct leader *leader) {
    return shim_is_watched(loop_owner(leader, struct gang, leader)->shim);
}

static void on_lost(struct leader *leader, const char *why) {
    struct shim *shim = loop_owner(leader, struct gang, leader)->shim;

    if (shim->task.phase < TASK_ENDED)
        shim_give_up(shim, why);
}

/* ---- the beginning */

static void on_names(struct names *names) {
    struct gang *gang = loop_owner(names, struct gang, names);

    if (!names->were_found) {
        refuse(gang, "the name ", names->missing,
               " was not found in the time that there is for it");
        return;
    }
    shim_start(gang->shim);
    if (gang->leader.name && gang->shim->phase == SHIM_RUNNING)
        leader_watch(&gang->leader, &gang->shim->loop, &gang->limits);
}

void gang_begin(struct gang *gang, struct shim *shim) {
    const char *wait = getenv(SETTINGS_PREFIX "WAIT"), *leader = getenv(SETTINGS_PREFIX "LEADER"),
               *wrong;
    struct numbers numbers;

    *gang = (struct gang){ .shim = shim };
    shim->member = gang;
    wrong = read_numbers(&numbers, &shim->settings);
    if (wrong) {
        refuse(gang, wrong, " is no number that it can be", "");
        return;
    }
    gang->limits = (struct vigil_limits){ .gone_ms = numbers.gone * 1000,
                                          .failed_ms = numbers.failed * 1000,
                                          .ended_ms = numbers.ended * 1000 };
    /* Without a key nobody would be answered. */
    if (leader && *leader && shim->settings.key)
        gang->leader = (struct leader){ .name = leader,
                                        .key = shim->settings.key,
                                        .port = (uint16_t)numbers.port,
                                        .is_watched = is_watched,
                                        .lost = on_lost };
    if (numbers.rendezvous &&
        rendezvous_serve(&shim->loop, (uint16_t)numbers.rendezvous, shim->settings.n_tasks)) {
        refuse(gang, "Horovod's rendezvous cannot be served: ", strerror(errno), "");
        return;
    }
    shim->farewell_ms = numbers.rendezvous ? FAREWELL_S * 1000 : 0;
    names_wait(&gang->names, &shim->loop, wait ? wait : "", numbers.patience * 1000, on_names);
}

void gang_end(struct gang *gang) {
    if (!gang)
        return;
    names_cancel(&gang->names);
    leader_stop(&gang->leader);
}
