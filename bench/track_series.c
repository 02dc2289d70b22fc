/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a store of series as the fold of a run does, and draws charts from it. Prints one line of
 * JSON; bench/query says what is wanted.
 *
 *   track_series write DIRECTORY float32|float64 POINTS   durable points a second, bytes a point
 *   track_series chart DIRECTORY PIXELS REPEAT            from summaries, and from the raw points
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "track/query.h"
#include "track/series.h"

enum { BATCH = 50000 }; /* points: what a second of heavy logging leaves for one commit */

static double seconds(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int complain(const struct error *err) {
    fprintf(stderr, "track_series: %s\n", err->message);
    return 1;
}

static uint64_t roll(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Normally distributed, nearly: a sum of twelve. */
static double gauss(uint64_t *state) {
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += (double)(roll(state) >> 11) / 9007199254740992.0;
    return sum;
}

/* A loss that falls and is noisy; a step takes 10 ms, give or take 5 %, and now and then 2 s. */
static struct point next_point(uint64_t *state, uint64_t i, int64_t time_us) {
    const double loss = (0.3 + 2 * exp(-(double)i / 2e5)) * (1 + 0.05 * gauss(state));
    const int64_t pause = i % 5000 == 4999 ? 2000000 : 0;

    return (struct point){ .step = (int64_t)i,
                           .time_us = time_us + 10000 + (int64_t)(500 * gauss(state)) + pause,
                           .value = loss };
}

static uint64_t directory_bytes(const char *path) {
    DIR *entries = opendir(path);
    struct dirent *entry;
    uint64_t total = 0;

    while (entries && (entry = readdir(entries))) {
        struct stat st;

        if (fstatat(dirfd(entries), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            total += (uint64_t)st.st_size;
    }
    if (entries)
        closedir(entries);
    return total;
}

static int write_series(const char *directory, const char *kind, uint64_t n) {
    const bool is_float = strcmp(kind, "float32") == 0;
    struct point *batch = calloc(BATCH, sizeof *batch);
    struct series_store *store;
    struct error err;
    double wall = 0, cpu = 0, open_bytes;
    uint64_t state = 1, commits = 0;
    int64_t time_us = 1700000000000000;
    uint32_t id;

    if (!batch || series_store_open(directory, NULL, &store, &err))
        return complain(&err);
    id = series_find(store, "loss", 4, 0, 0);
    for (uint64_t at = 0; at < n; at += BATCH) {
        const uint64_t size = n - at < BATCH ? n - at : BATCH;
        double wall_0, cpu_0;

        for (uint64_t i = 0; i < size; i++) {
            batch[i] = next_point(&state, at + i, time_us);
            time_us = batch[i].time_us;
            if (is_float)
                batch[i].value = (double)(float)batch[i].value;
        }
        wall_0 = seconds(CLOCK_MONOTONIC);
        cpu_0 = seconds(CLOCK_PROCESS_CPUTIME_ID);
        for (uint64_t i = 0; i < size; i++)
            series_add(store, id, batch[i].step, batch[i].time_us, batch[i].value);
        series_mark(store, "spool", at + size);
        if (series_commit(store, &err))
            return complain(&err);
        commits++;
        wall += seconds(CLOCK_MONOTONIC) - wall_0;
        cpu += seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_0;
    }
    open_bytes = (double)directory_bytes(directory);
    const double finish_0 = seconds(CLOCK_MONOTONIC);
    const double finish_cpu_0 = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (series_finish(store, &err))
        return complain(&err);
    const double finish = seconds(CLOCK_MONOTONIC) - finish_0;
    const double finish_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - finish_cpu_0;
    series_store_close(store);
    free(batch);
    printf(
        "{\"points\": %llu, \"commits\": %llu, \"seconds\": %.6f, \"cpu\": %.6f, "
        "\"finish_seconds\": %.6f, \"finish_cpu\": %.6f, \"bytes_open\": %.3f, \"bytes\": %.3f}\n",
        (unsigned long long)n, (unsigned long long)commits, wall, cpu, finish, finish_cpu,
        open_bytes / (double)n, (double)directory_bytes(directory) / (double)n);
    return 0;
}

struct raw {
    struct summary *out;
    uint64_t n, width;
};

static bool add_raw(void *context, const struct point *point) {
    struct raw *raw = context;
    const struct summary one = summary_of(point, 1);

    summary_append(&raw->out[(uint64_t)point->step * raw->n / raw->width], &one);
    return true;
}

static int draw(const char *directory, size_t pixels, const uint32_t *id, struct summary *out,
                uint64_t *points, struct error *err) {
    AUTO_PTR(series_reader) reader = NULL;
    struct series_range range;

    if (series_reader_open(directory, &reader, err))
        return -1;
    if (!series_extent(reader, id, 1, SERIES_BY_STEP, &range))
        return error_set(err, ERROR_NOT_FOUND, "no points");
    *points = series_reader_info(reader, *id).all.count;
    return series_buckets(reader, id, 1, &range, pixels, out, err);
}

static int draw_raw(const char *directory, size_t pixels, struct summary *out, struct error *err) {
    AUTO_PTR(series_reader) reader = NULL;
    struct raw raw = { out, pixels, 0 };

    if (series_reader_open(directory, &reader, err))
        return -1;
    raw.width = series_reader_info(reader, 0).all.count;
    memset(out, 0, pixels * sizeof *out);
    return series_points(reader, 0, 0, UINT64_MAX, add_raw, &raw, err);
}

/* Both from the opening of the files on, as a command that draws one chart does. */
static int chart_series(const char *directory, size_t pixels, int repeat) {
    struct summary *fast = calloc(pixels, sizeof *fast), *raw = calloc(pixels, sizeof *raw);
    const uint32_t id = 0;
    struct error err;
    double best = INFINITY, best_cpu = INFINITY, raw_wall, raw_cpu;
    uint64_t points = 0;
    size_t different = 0;

    if (!fast || !raw)
        return 1;
    for (int i = 0; i < repeat; i++) {
        const double wall_0 = seconds(CLOCK_MONOTONIC);
        const double cpu_0 = seconds(CLOCK_PROCESS_CPUTIME_ID);

        if (draw(directory, pixels, &id, fast, &points, &err))
            return complain(&err);
        best = fmin(best, seconds(CLOCK_MONOTONIC) - wall_0);
        best_cpu = fmin(best_cpu, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_0);
    }
    raw_wall = seconds(CLOCK_MONOTONIC);
    raw_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (draw_raw(directory, pixels, raw, &err))
        return complain(&err);
    raw_wall = seconds(CLOCK_MONOTONIC) - raw_wall;
    raw_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - raw_cpu;
    for (size_t i = 0; i < pixels; i++)
        if (fast[i].count != raw[i].count || fast[i].min != raw[i].min || fast[i].max != raw[i].max)
            different++;
    printf("{\"points\": %llu, \"pixels\": %zu, \"seconds\": %.6f, \"cpu\": %.6f, "
           "\"raw_seconds\": %.6f, \"raw_cpu\": %.6f, \"different\": %zu}\n",
           (unsigned long long)points, pixels, best, best_cpu, raw_wall, raw_cpu, different);
    free(fast);
    free(raw);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "write") == 0)
        return write_series(argv[2], argv[3], strtoull(argv[4], NULL, 10));
    if (argc == 5 && strcmp(argv[1], "chart") == 0)
        return chart_series(argv[2], strtoul(argv[3], NULL, 10), atoi(argv[4]));
    fputs("usage: track_series write DIRECTORY float32|float64 POINTS\n"
          "       track_series chart DIRECTORY PIXELS REPEAT\n",
          stderr);
    return 2;
}
