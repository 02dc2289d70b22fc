/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds any lines to a record. Beyond "no crash": the record is sane, a second one that is fed the
 * same is the same, and nothing changes how a run that is over has ended.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/artifact.h"
#include "store/claim.h"
#include "store/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16, TASKS_MOST = 1000000 };

static void require(bool law) {
    if (!law)
        abort();
}

/* What is read as a time is told as one, and reads back as the same. */
static void check_time(const char *text) {
    int64_t us, again;

    if (time_read(text, &us))
        require(time_read(time_text(us, TIME_MICROSECONDS).text, &again) && again == us);
}

static void check_sane(const struct run_record *record) {
    uint64_t n = 0;

    require(record->state < STATE_COUNT);
    require(record->first_failed >= -1 && record->first_failed < (int64_t)record->n_tasks);
    require(record->elapsed_s >= 0 && record->elapsed_s < 1e11);
    require(memchr(record->updated_at, '\0', sizeof record->updated_at));
    check_time(record->created_at);
    check_time(record->updated_at);
    require(record->n_over <= record->n_attempts && record->n_attempts - record->n_over <= 1);
    require(!state_is_final(record->state) || record->n_over == record->n_attempts);
    for (uint32_t i = 0; i < record->n_attempts; i++) {
        require(state_is_final(record->attempts[i].state) == (i < record->n_over));
        require(record->attempts[i].first_failed < (int64_t)record->n_tasks);
    }
    for (enum role role = 0; role < ROLE_COUNT; role++)
        n += record->n_role[role];
    require(n == record->n_tasks && n <= TASKS_MOST);
    for (uint32_t rank = 0; rank < record->n_tasks; rank++) {
        const struct task_record *task = &record->tasks[rank];

        require(task->state < STATE_COUNT);
        require(!state_is_final(record->state) || state_is_final(task->state));
        require(state_is_final(task->state) || task->ended_s < 0);
        require(task_name(&record->task_names[rank]).text[0]);
    }
}

static void feed(struct run_record *record, const char *text, size_t size) {
    while (size > 0) {
        const char *end = memchr(text, '\n', size), *notice = "unset";
        const size_t n = end ? (size_t)(end - text) : size;
        const bool was_final = state_is_final(record->state);
        const enum state before = record->state;
        const uint64_t bad = record->bad_lines, seq = record->seq;

        record_feed(record, text, n, &notice);
        require(!notice || strlen(notice) <= n);
        /* What was logged, and what the artifacts are, may be told after the end. */
        require(!was_final || (record->state == before && !notice));
        require(record->bad_lines - bad <= 1 && (record->bad_lines == bad || record->seq == seq));
        text += n + (end != NULL);
        size -= n + (end != NULL);
    }
}

/* Each has a name that is its own, and a version only with a hash. */
static void check_artifacts(const struct run_record *record) {
    AUTO(arena) arena = ARENA_INIT;
    const struct artifacts artifacts = artifacts_read(record, &arena);

    require(artifacts.n <= record->tracked[TRACKED_ARTIFACTS].n);
    for (size_t i = 0; i < artifacts.n; i++) {
        const struct artifact *artifact = &artifacts.list[i];

        require(artifact->name && artifact->path && artifact->version >= 0 && artifact->step >= -1);
        require(!artifact->problem || (!artifact->sha256 && artifact->version == 0));
        for (size_t j = 0; j < i; j++)
            require(strcmp(artifacts.list[j].name, artifact->name) != 0);
    }
}

/* What it claims is something that could be held. */
static void check_claim(const char *text, size_t size) {
    struct claim claim = { 0 };

    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        const size_t n = end ? (size_t)(end - text) : size;

        claim_feed(&claim, text, n);
        require(claim.holds.len <= CLAIM_HOLDS_MOST && !(claim.waits && claim.holds.len));
        text += n + (end != NULL);
        size -= n + (end != NULL);
    }
    for (size_t i = 0; i < claim.holds.len; i++)
        for (enum resource r = 0; r < RESOURCE_COUNT; r++)
            require(claim.holds.items[i].amount[r] >= 0);
    claim_release(&claim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct rundir nowhere = { .id = "1", .path = "/nowhere/1" };
    struct run_record record, again;

    if (size > INPUT_MAX)
        return 0;
    record_init(&record, &nowhere);
    record_init(&again, &nowhere);
    feed(&record, (const char *)data, size);
    feed(&again, (const char *)data, size);
    check_sane(&record);
    check_artifacts(&record);
    require(record.state == again.state && record.seq == again.seq &&
            record.bad_lines == again.bad_lines && record.n_tasks == again.n_tasks &&
            record.exit_status == again.exit_status && record.elapsed_s == again.elapsed_s);
    record_release(&record);
    record_release(&again);
    check_claim((const char *)data, size);
    return 0;
}
