/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main of a fuzz target that is built without libFuzzer: gives each file, and each file of each
 * directory, to the target once. So the corpus is an ordinary test, and a crash found by fuzzing is
 * replayed by naming its file.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/attr.h"

enum { INPUT_MAX = 16 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path, size_t *count);

static int replay_file(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    uint8_t *data;
    size_t n;

    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    data = malloc(INPUT_MAX);
    if (!data)
        abort();
    n = fread(data, 1, INPUT_MAX, file);
    fclose(file);
    /* exactly as large as the input, so that a sanitizer sees a read beyond it */
    data = realloc(data, n ? n : 1);
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    (*count)++;
    return 0;
}

static int replay_directory(const char *path, size_t *count) {
    DIR *directory = opendir(path);
    struct dirent *entry;
    int failed = 0;

    if (!directory) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    while (!failed && (entry = readdir(directory))) {
        char *inner;

        if (entry->d_name[0] == '.')
            continue;
        if (asprintf(&inner, "%s/%s", path, entry->d_name) < 0)
            abort();
        failed = replay(inner, count);
        free(inner);
    }
    closedir(directory);
    return failed;
}

static int replay(const char *path, size_t *count) {
    struct stat st;

    if (stat(path, &st)) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    return S_ISDIR(st.st_mode) ? replay_directory(path, count) : replay_file(path, count);
}

int main(int argc, char **argv) {
    size_t count = 0;

    for (int i = 1; i < argc; i++)
        if (replay(argv[i], &count))
            return 1;
    printf("%zu inputs replayed\n", count);
    return count ? 0 : 1; /* an empty corpus proves nothing */
}
