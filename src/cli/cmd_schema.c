/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/pages.h"
#include "spec/catalog.h"

static int schema(const struct invocation *invocation) {
    struct json json;
    struct error err;

    if (invocation_has(invocation, "markdown")) {
        fields_page(stdout);
        return STATUS_OK;
    }
    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    schema_write_json(&json);
    return json_finish(&json, &err) ? STATUS_INVALID : STATUS_OK;
}

static const struct option options[] = {
    { .name = "markdown", .help = "print the reference of every field as Markdown" },
    { 0 },
};

const struct command command_schema = {
    .name = "schema",
    .summary = "print the JSON Schema of polyaxonfiles, for editors",
    .description =
        "The schema (draft 7) tells an editor which fields there are, what they mean and "
        "what they take, for files of kind experiment and job. Templates are allowed "
        "wherever `myelin` renders them.\n"
        "\n"
        "For the YAML language server, which most editors use, put this line at the top "
        "of a polyaxonfile:\n"
        "\n"
        "  # yaml-language-server: $schema=polyaxonfile.schema.json\n"
        "\n"
        "A file that the schema accepts may still be wrong, such as with an index beyond "
        "the number of workers: `myelin check` says all that is wrong.",
    .options = options,
    .examples = "myelin schema > polyaxonfile.schema.json      # for an editor\n"
                "myelin schema --markdown > docs/reference.md  # renew the reference\n",
    .writes_data = true,
    .run = schema,
};
