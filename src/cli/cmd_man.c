/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/pages.h"

static int man(const struct invocation *invocation) {
    const struct command *command = &command_program;

    if (invocation->n_operands > 1)
        return invocation_misuse(invocation, "'man' takes one command, not %zu",
                                 invocation->n_operands);
    if (invocation->n_operands)
        command = command_find(invocation->operands[0]);

    if (!invocation_has(invocation, "markdown"))
        manual_page(stdout, command);
    else if (invocation->n_operands)
        reference_section(stdout, command);
    else
        reference_page(stdout);
    return STATUS_OK;
}

static const struct option options[] = {
    { .name = "markdown", .help = "print Markdown; without a command, the reference of all" },
    { 0 },
};

const struct command command_man = {
    .name = "man",
    .arguments = "[COMMAND]",
    .summary = "print a manual page",
    .description =
        "Prints the page of myelin or of a command in the format that man(1) reads. The pages are "
        "installed with myelin; this is for where they are not.",
    .options = options,
    .operand_kind = ARGUMENT_COMMAND,
    .examples = "myelin man version | man -l -         # read a page\n"
                "myelin man --markdown > docs/cli.md   # renew the reference\n",
    .writes_data = true,
    .run = man,
};
