/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times the fold of a run: track_fold DIRECTORY TASKS CALLS STEPS. Each of TASKS tasks makes CALLS
 * calls of five metrics between two steps, as in a second of training; prints the processor time of
 * a step, in ms, with its commit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "myelin.h"
#include "track/fold.h"

enum { METRICS = 5 };

static double cpu_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int64_t rank_of(void *context, const char *task) {
    (void)context;
    return strtol(task, NULL, 10);
}

static int take_record(void *context, const struct fold_record *record) {
    (void)context;
    (void)record;
    return 0;
}

static struct myelin *open_task(const char *directory, unsigned task) {
    char path[4096];

    snprintf(path, sizeof path, "%s/spool/%u", directory, task);
    mkdir(path, 0755);
    return myelin_open_at(path, 0);
}

static void train(struct myelin *m, size_t calls) {
    static const char *const texts[METRICS] = { "loss", "accuracy", "lr", "gradient norm",
                                                "throughput" };
    uint32_t names[METRICS];
    double values[METRICS];

    for (size_t i = 0; i < METRICS; i++)
        names[i] = myelin_name(m, texts[i]);
    for (size_t i = 0; i < calls; i++) {
        for (size_t k = 0; k < METRICS; k++)
            values[k] = (float)drand48();
        myelin_log(m, names, values, METRICS, MYELIN_AUTO, MYELIN_NOW);
    }
}

int main(int argc, char **argv) {
    const size_t tasks = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
    struct fold_given given = { .rank = rank_of, .record = take_record };
    char spool[4096], series[4096];
    struct myelin **handles = calloc(tasks + 1, sizeof(struct myelin *));
    struct fold_result result;
    struct error err;
    struct fold *fold;
    uint64_t points = 0;
    double took = 0;
    size_t steps;

    if (!tasks || !handles) {
        fprintf(stderr, "usage: track_fold DIRECTORY TASKS CALLS STEPS\n");
        return 2;
    }
    steps = strtoul(argv[4], NULL, 10);
    snprintf(spool, sizeof spool, "%s/spool", argv[1]);
    snprintf(series, sizeof series, "%s/series", argv[1]);
    mkdir(spool, 0755);
    for (unsigned i = 0; i < tasks; i++)
        handles[i] = open_task(argv[1], i);
    given.directory = spool;
    if (series_store_open(series, NULL, &given.store, &err)) {
        fprintf(stderr, "track_fold: %s\n", err.message);
        return 1;
    }
    fold = fold_new(&given);
    for (size_t step = 0; step < steps; step++) {
        for (size_t i = 0; i < tasks; i++)
            train(handles[i], strtoul(argv[3], NULL, 10));
        took -= cpu_ms();
        do {
            if (fold_step(fold, FOLD_LIVING, &result, &err)) {
                fprintf(stderr, "track_fold: %s\n", err.message);
                return 1;
            }
            points += result.points;
        } while (result.more);
        took += cpu_ms();
    }
    printf("step_ms %.3f\npoints %llu\n", took / (double)steps, (unsigned long long)points);
    fold_free(fold);
    series_store_close(given.store);
    for (size_t i = 0; i < tasks; i++)
        myelin_close(handles[i]);
    free(handles);
    return 0;
}
