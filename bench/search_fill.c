/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the home with the index of RUNS runs that do not exist but for their directories, each with
 * PARAMS params and METRICS metrics, by the calls that a search makes for real runs once it has
 * read them. Prints what it took as JSON.
 *
 *     search_fill HOME FROM TO PARAMS METRICS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "search/index.h"
#include "store/rundir.h"

enum { NAMES_MOST = 64, COMMIT_EVERY = 512 };

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

static int put_run(struct search_index *index, uint64_t run, int n_params, int n_metrics,
                   struct error *err) {
    static const char *const statuses[] = { "succeeded", "succeeded", "succeeded", "failed" };
    static const char *const texts[] = { "adam", "sgd", "rmsprop" };
    uint64_t seed = run * 0x9e3779b97f4a7c15ULL | 1;
    struct fact facts[16 + 4 * NAMES_MOST];
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
    for (int i = 0; i < n_params; i++)
        facts[n++] = i % 4 == 3
                         ? (struct fact){ names[0][i], CELL_WORD, 0, texts[next_random(&seed) % 3] }
                         : (struct fact){ names[0][i], CELL_NUMBER,
                                          (double)(next_random(&seed) % 10) / 10, NULL };
    for (int i = 0; i < n_metrics; i++) {
        const double last = part(&seed);

        facts[n++] = (struct fact){ names[1][i], CELL_NUMBER, last, NULL };
        facts[n++] = (struct fact){ names[2][i], CELL_NUMBER, last / 2, NULL };
        facts[n++] = (struct fact){ names[3][i], CELL_NUMBER, last * 2, NULL };
    }
    return index_put(index, run, facts, n, err);
}

static int fill(struct search_index *index, const char *home, uint64_t from, uint64_t to,
                int n_params, int n_metrics, struct error *err) {
    char path[4096];

    if (index_begin(index, err))
        return -1;
    for (uint64_t run = from; run <= to; run++) {
        snprintf(path, sizeof path, "%s/runs/%" PRIu64, home, run);
        if (mkdir(path, 0700) < 0)
            return error_set(err, ERROR_IO, "cannot make '%s'", path);
        if (put_run(index, run, n_params, n_metrics, err))
            return -1;
        if (run % COMMIT_EVERY == 0 && (index_commit(index, err) || index_begin(index, err)))
            return -1;
    }
    return index_commit(index, err);
}

int main(int argc, char **argv) {
    const int64_t begun = clock_monotonic_us();
    struct search_index *index;
    struct error err;
    char runs[4096];

    if (argc != 6 || atoi(argv[4]) > NAMES_MOST || atoi(argv[5]) > NAMES_MOST) {
        fputs("usage: search_fill HOME FROM TO PARAMS METRICS\n", stderr);
        return 2;
    }
    for (int i = 0; i < NAMES_MOST; i++) {
        snprintf(names[0][i], sizeof names[0][i], "params.p%d", i);
        snprintf(names[1][i], sizeof names[1][i], "metrics.m%d", i);
        snprintf(names[2][i], sizeof names[2][i], "min.m%d", i);
        snprintf(names[3][i], sizeof names[3][i], "max.m%d", i);
    }
    mkdir(argv[1], 0700);
    snprintf(runs, sizeof runs, "%s/runs", argv[1]);
    mkdir(runs, 0700);
    if (index_open(argv[1], INDEX_IN_HOME, &index, &err) ||
        fill(index, argv[1], strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
             atoi(argv[4]), atoi(argv[5]), &err)) {
        fprintf(stderr, "search_fill: %s\n", err.message);
        return 1;
    }
    index_free(index);
    printf("{\"seconds\": %.3f}\n", (double)(clock_monotonic_us() - begun) / 1e6);
    return 0;
}
