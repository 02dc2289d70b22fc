/* SPDX-License-Identifier: Apache-2.0 */
#include "store/inventory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/models.h"
#include "store/owner.h"

struct stock {
    const struct run_record *record;
    struct journal *journal;
    const struct inventory_terms *terms;
    uint64_t bytes;        /* hashed so far */
    struct models *models; /* opened for the first model */
    bool has_left;         /* an artifact to who looks next */
    struct error left;     /* why */
    struct arena arena;
};

static bool is_model(const struct artifact *artifact) {
    return artifact->type && strcmp(artifact->type, ARTIFACT_MODEL) == 0;
}

static bool is_missing(const struct artifact *artifact) {
    return !artifact->problem &&
           (!artifact->sha256 || (is_model(artifact) && artifact->version == 0));
}

static void write_line(struct journal *journal, const struct artifact *artifact,
                       const struct content *content, int64_t version, const char *problem) {
    struct json *json = journal_begin(journal, "artifact");

    json_key(json, "name");
    json_text(json, artifact->name);
    json_key(json, "path");
    json_text(json, artifact->path);
    if (problem) {
        json_key(json, "problem");
        json_text(json, problem);
    } else {
        json_key(json, "sha256");
        json_text(json, content->sha256);
        json_key(json, "size");
        json_int(json, (int64_t)content->size);
        json_key(json, "files");
        json_int(json, (int64_t)content->files);
    }
    if (version > 0) {
        json_key(json, "version");
        json_int(json, version);
    }
    journal_end(journal, version > 0 ? JOURNAL_DURABLE : JOURNAL_SOON);
}

void inventory_write(struct journal *journal, const struct artifact *artifact, int64_t version) {
    struct content content = { .size = artifact->size, .files = artifact->files };

    snprintf(content.sha256, sizeof content.sha256, "%s", artifact->sha256 ? artifact->sha256 : "");
    write_line(journal, artifact, &content, version, artifact->problem);
}

static int open_models(struct stock *stock, struct error *err) {
    const char *home = rundir_home_of(&stock->record->rundir, &stock->arena);

    return stock->models ? 0 : models_open(home, LEDGER_TO_WRITE, &stock->models, err);
}

/* The line is on the disk before the transaction ends: a number that the database knows is in the
 * journal too. One that the database lost stands there and is asked for again. */
static int record_model(struct stock *stock, const struct artifact *artifact,
                        const struct content *content, struct error *err) {
    const struct model_row row = { .name = artifact->name,
                                   .version = artifact->version,
                                   .run = strtoull(stock->record->rundir.id, NULL, 10),
                                   .path = artifact->path,
                                   .sha256 = content->sha256,
                                   .size = content->size,
                                   .files = content->files };
    int64_t version;

    if (open_models(stock, err) || models_begin(stock->models, err))
        return -1;
    if (models_assign(stock->models, &row, &version, err)) {
        models_rollback(stock->models);
        return -1;
    }
    write_line(stock->journal, artifact, content, version, NULL);
    if (models_commit(stock->models, err)) {
        models_rollback(stock->models);
        return -1;
    }
    return 0;
}

/* Why an artifact can never be recorded, whoever tries; false where it can. */
static bool find_problem(const struct artifact *artifact, struct error *why) {
    if (!artifact->path[0]) {
        error_set(why, ERROR_INVALID, "no path was logged for it");
        return true;
    }
    return is_model(artifact) && model_name_check(artifact->name, why);
}

static void refuse(struct stock *stock, const struct artifact *artifact, const char *problem) {
    char sentence[640];

    write_line(stock->journal, artifact, NULL, 0, problem);
    snprintf(sentence, sizeof sentence, "the artifact '%.100s' is not recorded: %s", artifact->name,
             problem);
    if (stock->terms->tell)
        stock->terms->tell(stock->terms->context, sentence);
}

static void tell_special(const struct stock *stock, const struct artifact *artifact, uint64_t n) {
    char sentence[320];

    snprintf(sentence, sizeof sentence,
             "the artifact '%.100s' has %llu FIFO%s, sockets or devices in it: they are left out",
             artifact->name, (unsigned long long)n, n == 1 ? "" : "s");
    if (stock->terms->tell)
        stock->terms->tell(stock->terms->context, sentence);
}

static bool is_bounded(const struct stock *stock) {
    return stock->terms->bytes_most < UINT64_MAX;
}

/* To who looks next; what is told is the first that is left. */
static void leave(struct stock *stock, const struct error *why) {
    if (!stock->has_left)
        stock->left = *why;
    stock->has_left = true;
}

/* Of files that were not hashed. A refusal is for ever, so only what whoever tries again finds
 * alike is refused: a disk that fails, or rights that are missing, may be mended. */
static void give_up(struct stock *stock, const struct artifact *artifact, struct error *why) {
    if (why->code == ERROR_EXHAUSTED && is_bounded(stock))
        return; /* who looks next has no bound */
    if (why->code == ERROR_INVALID)
        error_set(why, ERROR_INVALID,
                  "its path '%.200s' leaves the outputs of the run: log files that lie below "
                  "MYELIN_OUTPUTS_PATH",
                  artifact->path);
    if (why->code == ERROR_INVALID || why->code == ERROR_NOT_FOUND || why->code == ERROR_EXHAUSTED)
        refuse(stock, artifact, why->message);
    else
        leave(stock, why);
}

static int take_one(struct stock *stock, const struct artifact *artifact, struct error *err) {
    const uint64_t room = is_bounded(stock) ? stock->terms->bytes_most - stock->bytes : UINT64_MAX;
    struct content content = { 0 };
    struct error why;

    if (find_problem(artifact, &why)) {
        refuse(stock, artifact, why.message);
        return 0;
    }
    if (content_hash(&stock->record->rundir, artifact->path, room, &content, &why)) {
        give_up(stock, artifact, &why);
        return 0;
    }
    stock->bytes += content.size;
    if (content.special > 0)
        tell_special(stock, artifact, content.special);
    if (is_model(artifact))
        return record_model(stock, artifact, &content, err);
    write_line(stock->journal, artifact, &content, 0, NULL);
    return 0;
}

int inventory_take(const struct run_record *record, struct journal *journal,
                   const struct inventory_terms *terms, struct error *err) {
    struct stock stock = { .record = record, .journal = journal, .terms = terms };
    const struct artifacts artifacts = artifacts_read(record, &stock.arena);
    int status = 0;

    for (size_t i = 0; status == 0 && i < artifacts.n; i++)
        if (is_missing(&artifacts.list[i]))
            status = take_one(&stock, &artifacts.list[i], err);
    if (status == 0 && stock.has_left) {
        *err = stock.left;
        status = -1;
    }
    models_close(stock.models);
    arena_release(&stock.arena);
    return status;
}

static bool has_missing(const struct run_record *record) {
    AUTO(arena) arena = ARENA_INIT;
    const struct artifacts artifacts = artifacts_read(record, &arena);

    for (size_t i = 0; i < artifacts.n; i++)
        if (is_missing(&artifacts.list[i]))
            return true;
    return false;
}

/* Under the run's lock: nobody else writes its journal or removes it. */
static int settle_owned(const struct rundir *rundir, struct error *err) {
    static const struct inventory_terms terms = { .bytes_most = UINT64_MAX };
    struct run_record record;
    struct journal journal;
    int status;

    if (record_read(&record, rundir, err))
        return -1;
    status = journal_reopen(&journal, rundir, record.seq, record.elapsed_s, err);
    if (status == 0) {
        status = inventory_take(&record, &journal, &terms, err);
        journal_close(&journal);
    }
    record_release(&record);
    return status;
}

int inventory_settle(const struct rundir *rundir, bool *is_done, struct error *err) {
    struct run_record record;
    bool is_over, is_missing_some;
    struct error ignored;
    int lock, status;

    if (record_read(&record, rundir, err))
        return -1;
    is_over = state_is_final(record.state);
    is_missing_some = has_missing(&record);
    record_release(&record);
    *is_done = is_over && !is_missing_some;
    if (*is_done || !is_over || owner_pass(rundir, 0, &lock, &ignored))
        return 0;
    status = settle_owned(rundir, err);
    *is_done = status == 0;
    close(lock);
    return status;
}
