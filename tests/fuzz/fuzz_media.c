/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as the path of an image or a text. Beyond "no crash": a path that is written from
 * what was read says the same.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/media.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4095 };

static void require(bool law) {
    if (!law)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[INPUT_MAX + 1], written[INPUT_MAX + 100];
    struct media media, again;
    size_t n, n_again;

    if (size > INPUT_MAX)
        return 0;
    memcpy(path, data, size);
    path[size] = '\0';
    if (!media_parse(path, &media, &n))
        return 0;
    require(n > 0 && n < strlen(path));
    snprintf(written, sizeof written, "media/%.*s/%" PRId64 "-%" PRIu32 "-%" PRIu32 ".%s", (int)n,
             path + 6, media.step, media.rank, media.attempt,
             media.kind == MEDIA_TEXT ? "txt" : "png");
    require(media_parse(written, &again, &n_again));
    require(n_again == n && again.step == media.step && again.rank == media.rank &&
            again.attempt == media.attempt && again.kind == media.kind);
    return 0;
}
