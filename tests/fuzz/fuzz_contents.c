/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as what an archive of runs says of itself. Beyond "no crash": what is taken is
 * written and read again as the same, and what is refused says why.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "archive/contents.h"
#include "model/uuid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16 };

static void require(bool law) {
    if (!law)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct contents contents = { 0 }, again = { 0 };
    AUTO(buf) text = BUF_INIT(CONTENTS_MOST), second = BUF_INIT(CONTENTS_MOST);
    struct error err = { .code = ERROR_NONE };

    if (size > INPUT_MAX)
        return 0;
    if (contents_parse((const char *)data, size, &contents, &err)) {
        require(err.code == ERROR_INVALID && err.message[0]);
        return 0;
    }
    require(contents.runs.len > 0);
    for (size_t i = 0; i < contents.runs.len; i++)
        require(strlen(contents.runs.items[i].uuid) == UUID_DIGITS &&
                contents.runs.items[i].id > 0);
    require(contents_format(&contents, &text, &err) == 0);
    require(contents_parse(text.data, text.len, &again, &err) == 0);
    require(contents_format(&again, &second, &err) == 0);
    require(text.len == second.len && memcmp(text.data, second.data, text.len) == 0);
    contents_release(&contents);
    contents_release(&again);
    return 0;
}
