/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/chronicle.h"

#include <assert.h>
#include <stdio.h>

#include "codec/json_read.h"
#include "store/host.h"
#include "store/record.h"
#include "track/fold.h"

/* ---- the run ---- */

static void write_origin(struct json *json, const struct origin *origin) {
    json_key(json, "origin");
    json_object(json);
    json_key(json, "manner");
    json_text(json, origin_manner_name(origin->manner));
    json_key(json, "id");
    json_int(json, (int64_t)origin->id);
    json_key(json, "uuid");
    json_text(json, origin->uuid);
    json_end(json);
}

static void write_elsewhere(struct json *json, const struct backend_maker *elsewhere) {
    const struct {
        const char *key, *value;
    } texts[] = {
        { "backend", elsewhere->kind },        { "cluster", elsewhere->cluster },
        { "namespace", elsewhere->namespace }, { "image", elsewhere->image },
        { "volume", elsewhere->volume },
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_key(json, texts[i].key);
        json_text(json, texts[i].value);
    }
}

/* Without this line there is no run for anybody: however long a file's texts are, it fits. */
enum { CREATED_TEXT_MOST = 8 * 1024 };

static void write_cut(struct json *json, const char *text) {
    char cut[CREATED_TEXT_MOST + sizeof "…"];
    size_t n;

    if (!text || strlen(text) <= CREATED_TEXT_MOST) {
        json_text(json, text);
        return;
    }
    n = CREATED_TEXT_MOST;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    json_text_n(json, cut, (size_t)snprintf(cut, sizeof cut, "%.*s…", (int)n, text));
}

void chronicle_created(struct journal *journal, const struct chronicle_birth *birth) {
    const struct plan *plan = birth->plan;
    struct json *json = journal_begin(journal, "created");
    char host[HOST_TEXT], boot[BOOT_TEXT];
    struct host_facts machine;
    const struct {
        const char *key, *value;
    } texts[] = {
        { "uuid", birth->uuid },      { "name", plan->name },
        { "owner", birth->owner },    { "host", host_name(host) },
        { "boot_id", boot_id(boot) }, { "framework", plan->framework_label },
        { "command", plan->command }, { "directory", birth->directory },
    };

    host_look(&machine);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_key(json, texts[i].key);
        write_cut(json, texts[i].value);
    }
    json_key(json, "machine");
    json_object(json);
    json_key(json, "kernel");
    json_text(json, machine.kernel);
    json_key(json, "cpus");
    json_int(json, machine.cpus);
    json_key(json, "python");
    json_text(json, machine.python[0] ? machine.python : NULL);
    json_end(json);
    json_key(json, "monotonic");
    json_number(json, (double)journal->started_us / 1e6);
    if (birth->elsewhere)
        write_elsewhere(json, birth->elsewhere);
    if (birth->origin)
        write_origin(json, birth->origin);
    json_key(json, "counts");
    json_object(json);
    for (enum role role = 0; role < ROLE_COUNT; role++) {
        json_key(json, role_name(role));
        json_int(json, plan->n_role[role]);
    }
    json_end(json);
    journal_end(journal, JOURNAL_SOON);
}

static struct json *begin_given(struct journal *journal, const char *kind) {
    struct json *json = journal_begin(journal, "tracked");

    json_key(json, "kind");
    json_text(json, kind);
    json_key(json, "rank");
    json_null(json);
    json_key(json, "values");
    return json;
}

/* What the file says of a run, as if its tasks had said it before all else: one place to look for
 * both. Its tags have no values. */
void chronicle_given(struct journal *journal, const struct plan *plan) {
    const struct node *tags = plan->tags;
    struct json *json;

    if (plan->params && plan->params->count > 0 && plan->params->count <= TRACKED_MOST) {
        json = begin_given(journal, "params");
        json_node(json, plan->params);
        journal_end(journal, JOURNAL_SOON);
    }
    if (!tags || tags->kind != NODE_LIST || tags->count == 0 || tags->count > TRACKED_MOST)
        return;
    json = begin_given(journal, "tags");
    json_object(json);
    for (uint32_t i = 0; i < tags->count; i++)
        if (tags->items[i].kind == NODE_TEXT) {
            json_key(json, tags->items[i].text);
            json_bool(json, true);
        }
    json_end(json);
    journal_end(journal, JOURNAL_SOON);
}

void chronicle_code(struct journal *journal, const struct code_facts *facts) {
    code_facts_write(journal_begin(journal, "code"), facts);
    journal_end(journal, JOURNAL_SOON);
}

static struct json *begin_status(struct journal *journal, const char *event, enum state state,
                                 const char *reason) {
    struct json *json = journal_begin(journal, event);

    json_key(json, "status");
    json_text(json, state_name(state));
    if (reason && *reason) {
        json_key(json, "reason");
        json_text(json, reason);
    }
    return json;
}

void chronicle_status(struct journal *journal, enum state state, const char *reason) {
    begin_status(journal, "status", state, reason);
    journal_end(journal, JOURNAL_SOON);
}

static void write_diagnosis(struct json *json, const struct diagnosis *why) {
    if (why->place.line > 0) {
        char place[DIAGNOSIS_FILE_MOST + 16];

        snprintf(place, sizeof place, "%s:%u", why->place.file, why->place.line);
        json_key(json, "place");
        json_text(json, place);
    }
    if (why->hint[0]) {
        json_key(json, "hint");
        json_text(json, why->hint);
    }
    json_key(json, "kind");
    json_text(json, diagnosis_kind_name(why->kind));
}

static void write_end(struct json *json, const struct chronicle_end *end) {
    if (end->first_failed >= 0) {
        json_key(json, "first_failed");
        json_int(json, end->first_failed);
    }
    if (end->why)
        write_diagnosis(json, end->why);
    json_key(json, "exit_status");
    json_int(json, end->exit_status);
}

void chronicle_end(struct journal *journal, const struct chronicle_end *end) {
    write_end(begin_status(journal, "status", end->state, end->reason), end);
    journal_end(journal, JOURNAL_DURABLE);
}

/* ---- attempts ---- */

void chronicle_attempt(struct journal *journal, uint32_t attempt) {
    journal->attempt = attempt;
    begin_status(journal, "attempt", STATE_STARTING, NULL);
    journal_end(journal, JOURNAL_SOON);
}

void chronicle_attempt_failed(struct journal *journal, const struct chronicle_end *end,
                              uint32_t delay_ms) {
    struct json *json = begin_status(journal, "attempt", end->state, end->reason);

    write_end(json, end);
    json_key(json, "delay");
    json_number(json, delay_ms / 1000.0);
    journal_end(journal, JOURNAL_DURABLE);
}

void chronicle_checked(struct journal *journal, size_t listeners, unsigned cgroups) {
    struct json *json = journal_begin(journal, "checked");

    json_key(json, "processes");
    json_int(json, 0);
    if (listeners != CHRONICLE_NOT_LOOKED_FOR) {
        json_key(json, "listeners");
        json_int(json, (int64_t)listeners);
    }
    json_key(json, "cgroups");
    json_int(json, cgroups);
    journal_end(journal, JOURNAL_SOON);
}

void chronicle_groups_left(struct journal *journal, unsigned cgroups) {
    struct json *json = journal_begin(journal, "checked");

    json_key(json, "cgroups");
    json_int(json, cgroups);
    journal_end(journal, JOURNAL_SOON);
}

void chronicle_left(struct journal *journal, const char *sentence) {
    struct json *json = journal_begin(journal, "checked");

    json_key(json, "left");
    json_text(json, sentence);
    journal_end(journal, JOURNAL_SOON);
}

/* ---- tasks ---- */

static struct json *begin_task(struct journal *journal, uint32_t rank, enum state state) {
    struct json *json = journal_begin(journal, "task");

    json_key(json, "rank");
    json_int(json, rank);
    json_key(json, "status");
    json_text(json, state_name(state));
    return json;
}

void chronicle_task_started(struct journal *journal, uint32_t rank, int64_t pid,
                            const struct cpus *cpus) {
    struct json *json = begin_task(journal, rank, STATE_RUNNING);
    AUTO(buf) list = BUF_INIT(CPUS_TEXT_MOST);
    struct error err;

    json_key(json, "pid");
    json_int(json, pid);
    if (cpus && cpus_write(cpus, &list, &err) == 0) {
        json_key(json, "cpus");
        json_text(json, list.data);
    }
    journal_end(journal, JOURNAL_GATHERED);
}

static const enum state state_of_fate[] = {
    [FATE_RUNNING] = STATE_RUNNING,    [FATE_SUCCEEDED] = STATE_SUCCEEDED,
    [FATE_FAILED] = STATE_FAILED,      [FATE_STOPPED] = STATE_STOPPED,
    [FATE_NOT_STARTED] = STATE_FAILED,
};
static_assert(ARRAY_LEN(state_of_fate) == FATE_COUNT, "every fate has a state");

static const char *const scope_names[] = {
    [LIMIT_OF_TASK] = "task",
    [LIMIT_OF_RUN] = "run",
    [LIMIT_OUTSIDE] = "outside",
};

/* The limit that the task ran into. */
static void write_limit(struct json *json, const struct task_limit *limit) {
    json_key(json, "limit");
    json_object(json);
    json_key(json, "resource");
    json_text(json, limit->kind == TASK_LIMIT_MEMORY ? "memory" : "processes");
    json_key(json, "of");
    json_text(json, scope_names[limit->scope]);
    json_key(json, "limit");
    json_int(json, limit->limit);
    json_key(json, "peak");
    json_int(json, limit->peak);
    json_end(json);
}

void chronicle_task_ended(struct journal *journal, uint32_t rank, const struct task_state *task) {
    struct json *json = begin_task(journal, rank, state_of_fate[task->fate]);
    const struct task_end *end = &task->end;

    if (end->kind == TASK_EXITED) {
        json_key(json, "exit_code");
        json_int(json, end->detail);
    } else if (end->kind == TASK_SIGNALLED) {
        json_key(json, "signal");
        json_int(json, end->detail);
    } else {
        json_key(json, "reason");
        json_text(json, end->message);
    }
    /* A task that was only stopped need not be the one that ran into what all share. */
    if (end->limit.kind != TASK_LIMIT_NONE &&
        (end->limit.scope == LIMIT_OF_TASK || task->fate != FATE_STOPPED))
        write_limit(json, &end->limit);
    if (task->log_lost) {
        json_key(json, "log_lost");
        json_int(json, (int64_t)task->log_lost);
    }
    journal_end(journal, JOURNAL_GATHERED);
}

/* ---- what it is about ---- */

static void write_text(struct journal *journal, const char *event, const char *key,
                       const char *text) {
    struct json *json = journal_begin(journal, event);

    json_key(json, key);
    json_text(json, text);
    journal_end(journal, JOURNAL_SOON);
}

void chronicle_phase(struct journal *journal, const char *phase) {
    write_text(journal, "phase", "phase", phase);
}

void chronicle_notice(struct journal *journal, const char *sentence) {
    write_text(journal, "notice", "message", sentence);
}

void chronicle_losses(struct journal *journal, const struct losses *losses) {
    struct json *json = journal_begin(journal, "losses");
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = { { "dropped", losses->dropped }, { "refused", losses->refused },
                   { "lost", losses->lost },       { "damaged", losses->damaged },
                   { "others", losses->others },   { "version", losses->version },
                   { "waiting", losses->waiting } };

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        json_key(json, counts[i].key);
        json_int(json, (int64_t)(counts[i].value > INT64_MAX ? INT64_MAX : counts[i].value));
    }
    journal_end(journal, JOURNAL_SOON);
}

enum chronicle_outcome chronicle_tracked(struct journal *journal,
                                         const struct fold_record *record) {
    static const char *const kinds[] = { [MYELIN_PARAMS] = "params",
                                         [MYELIN_TAGS] = "tags",
                                         [MYELIN_SUMMARY] = "summary",
                                         [MYELIN_ARTIFACT] = "artifact" };
    const uint64_t lost = journal->lost;
    AUTO(arena) arena = ARENA_INIT;
    struct node values;
    struct json *json;
    struct error err;

    if (record->kind >= ARRAY_LEN(kinds) || !kinds[record->kind] ||
        json_read(record->json, record->n, &arena, &values, &err) || values.kind != NODE_MAP)
        return CHRONICLE_NO_OBJECT;
    json = journal_begin(journal, "tracked");
    json_key(json, "kind");
    json_text(json, kinds[record->kind]);
    json_key(json, "rank");
    json_int(json, record->rank);
    json_key(json, "values");
    json_node(json, &values);
    if (!journal_end(journal, JOURNAL_SPARE))
        return CHRONICLE_NO_ROOM;
    return journal->lost == lost ? CHRONICLE_WRITTEN : CHRONICLE_LOST;
}
