/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times libmyelin: track_log DIRECTORY CALLS. Prints "<what> <nanoseconds>" lines, of processor
 * time for a call unless said otherwise.
 *
 * Nobody folds here, so each point takes fresh memory, which the kernel has to find and clear: the
 * mean has that in it. The median of short stretches is what a call costs between two segments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "myelin.h"

enum { METRICS = 5, STRETCH = 100 };

static double cpu_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Logs n metrics at once, `calls` times. */
static void measure(struct myelin *m, const uint32_t *names, size_t n, size_t calls) {
    const size_t stretches = calls / STRETCH;
    double *took = malloc(stretches * sizeof *took), values[METRICS] = { 0 };
    const double before = cpu_ns();

    if (!took)
        abort();
    for (size_t i = 0; i < stretches; i++) {
        const double start = clock_ns();

        for (size_t k = 0; k < STRETCH; k++) {
            values[0] = (double)k;
            myelin_log(m, names, values, n, MYELIN_AUTO, MYELIN_NOW);
        }
        took[i] = (clock_ns() - start) / STRETCH;
    }
    printf("mean_%zu %.1f\n", n, (cpu_ns() - before) / (double)(stretches * STRETCH));
    qsort(took, stretches, sizeof *took, by_size);
    printf("median_%zu %.1f\n", n, took[stretches / 2]);
    free(took);
}

int main(int argc, char **argv) {
    static const char *const texts[METRICS] = { "loss", "accuracy", "lr", "gradient norm",
                                                "throughput" };
    const size_t calls = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    uint32_t names[METRICS];
    struct myelin *m;
    struct timespec now;
    double before;

    if (calls < STRETCH) {
        fprintf(stderr, "usage: track_log DIRECTORY CALLS\n");
        return 2;
    }
    m = myelin_open_at(argv[1], 0);
    for (size_t i = 0; i < METRICS; i++)
        names[i] = myelin_name(m, texts[i]);
    measure(m, names, 1, calls);
    measure(m, names, METRICS, calls / METRICS);
    before = cpu_ns();
    for (size_t i = 0; i < calls; i++)
        clock_gettime(CLOCK_REALTIME, &now);
    printf("clock %.1f\n", (cpu_ns() - before) / (double)calls);
    printf("dropped %llu\n", (unsigned long long)myelin_dropped(m));
    myelin_close(m);
    return 0;
}
