/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/found.h"
#include "cli/runs.h"
#include "codec/json.h"
#include "search/search.h"
#include "store/owner.h"
#include "store/reindex.h"
#include "store/rights.h"
#include "supervise/supervisor.h"

enum { PATIENCE_MS = 10000 }; /* for all runs of other users together */

struct tally {
    size_t n_runs, n_living, n_settled;
    uint64_t n_indexed;
};

/* The index over all runs is thrown away and made again. */
static int index_runs(const char *home, struct tally *tally, struct error *err) {
    struct search_opened opened;

    index_discard(home);
    if (search_open(home, INDEX_IN_HOME, runs_read, &opened, err))
        return -1;
    found_note_index(&opened.unused);
    tally->n_indexed = opened.n_read;
    index_free(opened.index);
    return 0;
}

/* Root puts the runs of others in order with the rights of their owners. An owner can hold the
 * locks of many runs, each of which is waited for: *waited_us has how long that took so far. */
static bool settle_as_owner(const struct rundir *rundir, int64_t *waited_us) {
    const int64_t began_us = clock_monotonic_us();
    const bool is_patient = rights_has(rundir) || *waited_us < PATIENCE_MS * INT64_C(1000);
    struct rights rights;
    struct error err;
    bool settled;

    if (rights_take(rundir, &rights, &err))
        return false;
    settled = supervisor_settle(rundir, is_patient ? SETTLE_PATIENTLY : SETTLE_IN_PASSING);
    rights_return(&rights);
    if (!rights_has(rundir))
        *waited_us += clock_monotonic_us() - began_us;
    return settled;
}

/* Ends what died without a word, so that nothing of it counts as held. */
static int settle_all(const char *home, struct tally *tally, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    int64_t waited_us = 0;
    unsigned long *ids;
    size_t n;

    if (rundir_list(home, &arena, &ids, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct rundir rundir;
        struct error ignored;
        pid_t pid;

        if (rundir_open(home, ids[i], &arena, &rundir, &ignored))
            continue; /* removed meanwhile */
        tally->n_runs++;
        if (owner_lives(&rundir, &pid))
            tally->n_living++;
        else
            tally->n_settled += settle_as_owner(&rundir, &waited_us);
    }
    return 0;
}

static void say(struct arena *arena, const char *home, const struct tally *tally,
                const struct reindexed *done) {
    const char *path = runs_text(arena, home, 0);

    printf("runs: %zu, of which %zu %s going on", tally->n_runs, tally->n_living,
           tally->n_living == 1 ? "is" : "are");
    if (tally->n_settled)
        printf("; %zu had lost %s supervisor and got an end", tally->n_settled,
               tally->n_settled == 1 ? "its" : "their");
    switch (done->health) {
    case LEDGER_SOUND: printf("\nledger: %s/myelin.db, written anew", path); break;
    case LEDGER_MISSING: printf("\nledger: there was none; made %s/myelin.db", path); break;
    case LEDGER_DAMAGED:
    case LEDGER_FOREIGN:
        printf("\nledger: the one there was %s (%s) and is now %s; made %s/myelin.db",
               done->health == LEDGER_DAMAGED ? "was damaged" : "cannot be used",
               runs_text(arena, done->why, 0),
               done->aside[0] ? runs_text(arena, done->aside, 0) : "emptied", path);
        break;
    }
    printf(": %zu run%s something, %zu wait%s\n", done->n_holding,
           done->n_holding == 1 ? " holds" : "s hold", done->n_waiting,
           done->n_waiting == 1 ? "s" : "");
    printf("index: %s/index.db, made anew from %llu run%s\n", path,
           (unsigned long long)tally->n_indexed, tally->n_indexed == 1 ? "" : "s");
    printf("next run: %lu\n", done->next_id);
}

static const char *health_name(enum ledger_health health) {
    switch (health) {
    case LEDGER_SOUND: return "sound";
    case LEDGER_MISSING: return "missing";
    case LEDGER_DAMAGED: return "damaged";
    case LEDGER_FOREIGN: break;
    }
    return "foreign";
}

static int print_json(const struct tally *tally, const struct reindexed *done) {
    const struct {
        const char *key;
        size_t n;
    } counts[] = {
        { "runs", tally->n_runs },       { "living", tally->n_living },
        { "settled", tally->n_settled }, { "holding", done->n_holding },
        { "waiting", done->n_waiting },  { "next_id", done->next_id },
        { "indexed", tally->n_indexed },
    };
    struct json json;
    struct error err;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_object(&json);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        json_key(&json, counts[i].key);
        json_int(&json, (int64_t)counts[i].n);
    }
    json_key(&json, "ledger_was");
    json_text(&json, health_name(done->health));
    json_key(&json, "put_aside");
    json_text(&json, done->aside[0] ? done->aside : NULL);
    json_end(&json);
    return json_finish(&json, &err) ? STATUS_INVALID : STATUS_OK;
}

static int reindex_home(const struct invocation *in) {
    AUTO(arena) arena = ARENA_INIT;
    struct tally tally = { 0 };
    struct reindexed done;
    struct error err;
    const char *home;

    if (in->n_operands > 0)
        return invocation_misuse(in, "it takes no arguments: the home is $MYELIN_HOME");
    if (runs_home(&arena, &home, &err) || settle_all(home, &tally, &err) ||
        reindex(home, &done, &err) || index_runs(home, &tally, &err)) {
        complain("%s", runs_text(&arena, err.message, 0));
        return STATUS_INVALID;
    }
    if (invocation_has(in, "json"))
        return print_json(&tally, &done);
    say(&arena, home, &tally, &done);
    return STATUS_OK;
}

static const struct option options[] = {
    { .name = "json", .help = "print what was done as a JSON object" },
    { 0 },
};

const struct command command_reindex = {
    .name = "reindex",
    .summary = "make the ledger and the index of this home again from its runs",
    .description =
        "Makes again what is derived from the directories of the runs: the ledger of who waits and "
        "who holds what (`$MYELIN_HOME/myelin.db`), the versions of models, the index that `runs` "
        "looks into (`index.db`), and the id of the next "
        "run. Runs that died "
        "without a word get their end. It is the way out when the ledger is damaged or of another "
        "version; otherwise it changes nothing that counts.\n"
        "\n"
        "Runs that go on are not touched and keep what they hold, which their journals say. A "
        "ledger "
        "that cannot be used is renamed to `myelin.db.old.1` and so on. If its files belong to "
        "other members of a shared home, it is emptied instead.",
    .options = options,
    .examples = "myelin reindex    # once the ledger was told to be damaged\n",
    .run = reindex_home,
};
