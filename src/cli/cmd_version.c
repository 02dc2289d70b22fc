/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "codec/json.h"
#include "shim/program.h"

static int version(const struct invocation *invocation) {
    struct json json;
    struct error err;

    if (!invocation_has(invocation, "json")) {
        printf("myelin %s\n", MYELIN_VERSION);
        return STATUS_OK;
    }
    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_object(&json);
    json_key(&json, "name");
    json_text(&json, "myelin");
    json_key(&json, "version");
    json_text(&json, MYELIN_VERSION);
    json_key(&json, "shims");
    json_array(&json);
    for (size_t i = 0; shim_architectures[i]; i++)
        if (shim_program_for(shim_architectures[i]))
            json_text(&json, shim_architectures[i]);
    json_end(&json);
    json_end(&json);
    /* A failure to write is told once for all commands, when the program ends. */
    return json_finish(&json, &err) ? STATUS_INVALID : STATUS_OK;
}

static const struct option options[] = {
    { .name = "json",
      .help = "print a JSON object with `name`, `version` and `shims`, the processors whose pods "
              "it can serve" },
    { 0 },
};

const struct command command_version = {
    .name = "version",
    .summary = "print the version of myelin",
    .description = "`myelin --version` prints the same line.",
    .options = options,
    .examples = "myelin version --json  # for programs\n",
    .run = version,
};
