/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as the request of a run. Beyond "no crash": what is taken is written and read
 * again as the same, and what is refused says why.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16 };

static void require(bool law) {
    if (!law)
        abort();
}

static bool same_pair(const struct request_pair *a, const struct request_pair *b) {
    return strcmp(a->name, b->name) == 0 && !a->value == !b->value &&
           (!a->value || strcmp(a->value, b->value) == 0);
}

static void check_round_trip(const struct request *request) {
    AUTO(buf) text = BUF_INIT(REQUEST_MAX);
    struct request again;
    struct error err;

    require(request_format(request, &text, &err) == 0);
    require(request_parse(text.data, text.len, &again, &err) == 0);
    require(again.options.len == request->options.len &&
            again.environment.len == request->environment.len);
    for (size_t i = 0; i < again.options.len; i++)
        require(same_pair(&again.options.items[i], &request->options.items[i]));
    for (size_t i = 0; i < again.environment.len; i++)
        require(same_pair(&again.environment.items[i], &request->environment.items[i]));
    request_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct request request;
    struct error err = { .code = ERROR_NONE };

    if (size > INPUT_MAX)
        return 0;
    if (request_parse((const char *)data, size, &request, &err)) {
        require(err.code == ERROR_INVALID && err.message[0]);
        return 0;
    }
    check_round_trip(&request);
    request_release(&request);
    return 0;
}
