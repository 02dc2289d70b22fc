/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes runs FROM to TO, each with PARAMS params and METRICS metrics, the same ones each time:
 *
 *     search_fill index HOME FROM TO PARAMS METRICS   their index alone, by the calls that a search
 *                                                     makes once it has read them; the runs are
 * empty directories search_fill runs HOME FROM TO PARAMS METRICS    whole runs: journal and series,
 * no index search_fill dump - FROM TO PARAMS METRICS       prints them, a JSON object a line
 *
 * The first two print what it took as JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "search/index.h"
#include "store/journal.h"
#include "store/rundir.h"
#include "track/disk.h"
#include "track/series.h"

enum { NAMES_MOST = 64, COMMIT_EVERY = 512, FACTS_MOST = 16 + 4 * NAMES_MOST, OWN_FACTS = 7 };

struct wish {
    const char *home;
    uint64_t from, to;
    int n_params, n_metrics;
};

static char names[4][NAMES_MOST][32]; /* params, metrics, min, max */

/* xorshift: the same runs each time. */
static uint64_t next_random(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static double part(uint64_t *seed) {
    return (double)(next_random(seed) >> 11) / 9007199254740992.0;
}

/* What is known of a run: its own fields, then params, then last, least and greatest value of each
 * metric. */
static size_t make_facts(const struct wish *wish, uint64_t run,
                         struct fact facts[static FACTS_MOST]) {
    static const char *const statuses[] = { "succeeded", "succeeded", "succeeded", "failed" };
    static const char *const texts[] = { "adam", "sgd", "rmsprop" };
    uint64_t seed = run * 0x9e3779b97f4a7c15ULL | 1;
    size_t n = 0;

    for (int i = 0; i < 8; i++)
        next_random(&seed);
    facts[n++] = (struct fact){ "status", CELL_WORD, 0, statuses[next_random(&seed) % 4] };
    facts[n++] = (struct fact){ "name", CELL_WORD, 0, "search" };
    facts[n++] = (struct fact){ "owner", CELL_WORD, 0, "bench" };
    facts[n++] = (struct fact){ "framework", CELL_WORD, 0, "pytorch" };
    facts[n++] = (struct fact){ "created_at", CELL_NUMBER, 1.7e9 + (double)run, NULL };
    facts[n++] = (struct fact){ "duration", CELL_NUMBER, 100 * part(&seed), NULL };
    facts[n++] = (struct fact){ "tasks", CELL_NUMBER, 1, NULL };
    for (int i = 0; i < wish->n_params; i++)
        facts[n++] = i % 4 == 3
                         ? (struct fact){ names[0][i], CELL_WORD, 0, texts[next_random(&seed) % 3] }
                         : (struct fact){ names[0][i], CELL_NUMBER,
                                          (double)(next_random(&seed) % 10) / 10, NULL };
    for (int i = 0; i < wish->n_metrics; i++) {
        const double last = part(&seed);

        facts[n++] = (struct fact){ names[1][i], CELL_NUMBER, last, NULL };
        facts[n++] = (struct fact){ names[2][i], CELL_NUMBER, last / 2, NULL };
        facts[n++] = (struct fact){ names[3][i], CELL_NUMBER, last * 2, NULL };
    }
    return n;
}

/* ---- the index ---- */

static int fill_index(const struct wish *wish, struct search_index *index, struct error *err) {
    struct fact facts[FACTS_MOST];
    char path[4096];

    if (index_begin(index, err))
        return -1;
    for (uint64_t run = wish->from; run <= wish->to; run++) {
        snprintf(path, sizeof path, "%s/runs/%" PRIu64, wish->home, run);
        if (mkdir(path, 0700) < 0)
            return error_set(err, ERROR_IO, "cannot make '%s'", path);
        if (index_put(index, run, facts, make_facts(wish, run, facts), err))
            return -1;
        if (run % COMMIT_EVERY == 0 && (index_commit(index, err) || index_begin(index, err)))
            return -1;
    }
    return index_commit(index, err);
}

static int make_index(const struct wish *wish, struct error *err) {
    struct search_index *index;
    char runs[4096];
    int status;

    mkdir(wish->home, 0700);
    snprintf(runs, sizeof runs, "%s/runs", wish->home);
    mkdir(runs, 0700);
    if (index_open(wish->home, INDEX_IN_HOME, &index, err))
        return -1;
    status = fill_index(wish, index, err);
    index_free(index);
    return status;
}

/* ---- whole runs ---- */

static const char *bare(const char *field) {
    return strchr(field, '.') + 1;
}

static void write_status(struct journal *journal, const char *status, int exit_status) {
    struct json *json = journal_begin(journal, "status");

    json_key(json, "status");
    json_text(json, status);
    if (exit_status >= 0) {
        json_key(json, "exit_status");
        json_int(json, exit_status);
    }
    journal_end(journal, JOURNAL_GATHERED);
}

static void write_created(struct journal *journal, uint64_t run) {
    struct json *json = journal_begin(journal, "created");
    char uuid[33];

    snprintf(uuid, sizeof uuid, "%032" PRIx64, run);
    json_key(json, "uuid");
    json_text(json, uuid);
    json_key(json, "name");
    json_text(json, "search");
    json_key(json, "owner");
    json_text(json, "bench");
    json_key(json, "framework");
    json_text(json, "pytorch");
    json_key(json, "command");
    json_text(json, "python3 train.py");
    json_key(json, "counts");
    json_object(json);
    json_key(json, "master");
    json_int(json, 1);
    json_end(json);
    journal_end(journal, JOURNAL_GATHERED);
}

static void write_params(struct journal *journal, const struct fact *params, int n) {
    struct json *json = journal_begin(journal, "tracked");

    json_key(json, "kind");
    json_text(json, "params");
    json_key(json, "values");
    json_object(json);
    for (int i = 0; i < n; i++) {
        json_key(json, bare(params[i].field));
        if (params[i].kind == CELL_WORD)
            json_text(json, params[i].text);
        else
            json_number(json, params[i].number);
    }
    json_end(json);
    journal_end(journal, JOURNAL_GATHERED);
}

static int write_journal(const struct wish *wish, const struct rundir *rundir, uint64_t run,
                         const struct fact *facts, struct error *err) {
    struct journal journal;

    if (journal_create(&journal, rundir, 1, err))
        return -1;
    write_created(&journal, run);
    write_status(&journal, "starting", -1);
    write_params(&journal, facts + OWN_FACTS, wish->n_params);
    write_status(&journal, "running", -1);
    write_status(&journal, facts[0].text, facts[0].text[0] == 'f');
    journal_flush(&journal);
    journal_close(&journal);
    return 0;
}

static int no_sync(int fd) {
    (void)fd;
    return 0;
}

/* Three points of each metric, of which one is the least, one the greatest and one the last. */
static int write_series(const struct wish *wish, const struct rundir *rundir,
                        const struct fact *metrics, struct error *err) {
    struct disk disk = disk_real;
    const struct series_options options = { .disk = &disk };
    struct series_store *store;
    int status;

    disk.sync = disk.sync_directory = no_sync; /* what takes time here is not what is measured */
    if (series_store_open(rundir->series, &options, &store, err))
        return -1;
    for (int i = 0; i < wish->n_metrics; i++, metrics += 3) {
        const char *name = bare(metrics[0].field);
        const uint32_t series = series_find(store, name, strlen(name), 0, 0);

        series_add(store, series, 0, 1, metrics[1].number);
        series_add(store, series, 1, 2, metrics[2].number);
        series_add(store, series, 2, 3, metrics[0].number);
    }
    status = series_finish(store, err);
    series_store_close(store);
    return status;
}

static int make_runs(const struct wish *wish, struct error *err) {
    struct fact facts[FACTS_MOST];

    for (uint64_t run = wish->from; run <= wish->to; run++) {
        AUTO(arena) arena = ARENA_INIT;
        struct rundir rundir;

        make_facts(wish, run, facts);
        if (rundir_make(wish->home, &arena, &rundir, err) ||
            write_journal(wish, &rundir, run, facts, err) ||
            write_series(wish, &rundir, facts + OWN_FACTS + wish->n_params, err))
            return -1;
    }
    return 0;
}

/* ---- for others ---- */

static int dump(const struct wish *wish, struct error *err) {
    struct fact facts[FACTS_MOST];
    struct json json;

    for (uint64_t run = wish->from; run <= wish->to; run++) {
        const size_t n = make_facts(wish, run, facts);

        json_init(&json, JSON_COMPACT, json_to_file, stdout);
        json_object(&json);
        json_key(&json, "run");
        json_int(&json, (int64_t)run);
        for (size_t i = 0; i < n; i++) {
            json_key(&json, facts[i].field);
            if (facts[i].kind == CELL_WORD)
                json_text(&json, facts[i].text);
            else
                json_number(&json, facts[i].number);
        }
        json_end(&json);
        if (json_finish(&json, err))
            return -1;
        fputs("\n", stdout);
    }
    return 0;
}

static const struct {
    const char *name;
    int (*make)(const struct wish *wish, struct error *err);
} modes[] = { { "index", make_index }, { "runs", make_runs }, { "dump", dump } };

static int usage(void) {
    fputs("usage: search_fill index|runs|dump HOME FROM TO PARAMS METRICS\n", stderr);
    return 2;
}

int main(int argc, char **argv) {
    const int64_t begun = clock_monotonic_us();
    struct wish wish;
    struct error err;
    size_t mode = 0;

    if (argc != 7)
        return usage();
    while (mode < ARRAY_LEN(modes) && strcmp(modes[mode].name, argv[1]) != 0)
        mode++;
    wish = (struct wish){ argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10),
                          atoi(argv[5]), atoi(argv[6]) };
    if (mode == ARRAY_LEN(modes) || wish.n_params < 0 || wish.n_params > NAMES_MOST ||
        wish.n_metrics < 0 || wish.n_metrics > NAMES_MOST)
        return usage();
    for (int i = 0; i < NAMES_MOST; i++) {
        snprintf(names[0][i], sizeof names[0][i], "params.p%d", i);
        snprintf(names[1][i], sizeof names[1][i], "metrics.m%d", i);
        snprintf(names[2][i], sizeof names[2][i], "min.m%d", i);
        snprintf(names[3][i], sizeof names[3][i], "max.m%d", i);
    }
    if (modes[mode].make(&wish, &err)) {
        fprintf(stderr, "search_fill: %s\n", err.message);
        return 1;
    }
    if (modes[mode].make != dump)
        printf("{\"seconds\": %.3f}\n", (double)(clock_monotonic_us() - begun) / 1e6);
    return 0;
}
