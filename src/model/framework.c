/* SPDX-License-Identifier: Apache-2.0 */
#include "model/framework.h"

#include <assert.h>
#include <string.h>

#include "base/attr.h"

static const struct framework_facts facts[] = {
    [FRAMEWORK_NONE] = { .role_names = { "master" }, .success = SUCCESS_OF_ALL },
    [FRAMEWORK_TENSORFLOW] = { .name = "tensorflow",
                               .role_names = { "master", "worker", "ps" },
                               .success = SUCCESS_OF_CHIEF,
                               .may_be_masterless = true },
    [FRAMEWORK_MXNET] = { .name = "mxnet",
                          .role_names = { "master", "worker", "server" },
                          .success = SUCCESS_OF_WORKERS },
    [FRAMEWORK_PYTORCH] = { .name = "pytorch",
                            .role_names = { "master", "worker" },
                            .success = SUCCESS_OF_ALL },
    [FRAMEWORK_HOROVOD] = { .name = "horovod",
                            .role_names = { "master", "worker" },
                            .success = SUCCESS_OF_ALL },
};
static_assert(ARRAY_LEN(facts) == FRAMEWORK_COUNT, "every framework has a row");

const struct framework_facts *framework_facts(enum framework framework) {
    assert(framework < FRAMEWORK_COUNT);
    return &facts[framework];
}

enum framework framework_named(const char *name) {
    for (enum framework i = FRAMEWORK_NONE + 1; i < FRAMEWORK_COUNT; i++)
        if (strcmp(facts[i].name, name) == 0)
            return i;
    return FRAMEWORK_NONE;
}

const char *role_name(enum role role) {
    static const char *const names[] = { "master", "worker", "ps" };

    static_assert(ARRAY_LEN(names) == ROLE_COUNT, "every role has a name");
    return names[role];
}
