/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as a models.json. Beyond "no crash": what is handed on could stand in the
 * database, and what is refused says why.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/models.h"
#include "store/models_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16 };

static void require(bool law) {
    if (!law)
        abort();
}

static int check(void *context, const struct models_fact *fact, struct error *err) {
    int64_t *last = context;
    struct error ignored;

    (void)err;
    require(model_name_check(fact->name, &ignored) == 0);
    require(!fact->alias || model_alias_check(fact->alias, &ignored) == 0);
    require(fact->version >= 1 && (!fact->alias || fact->version <= *last));
    if (!fact->alias)
        *last = fact->version;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct error err = { .code = ERROR_NONE };
    int64_t last = 0;

    if (size <= INPUT_MAX && models_dump_parse((const char *)data, size, check, &last, &err))
        require(err.code != ERROR_NONE && err.message[0]);
    return 0;
}
