/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/pages.h"

static int help(const struct invocation *invocation) {
    if (invocation->n_operands > 1)
        return invocation_misuse(invocation, "'help' takes one command, not %zu",
                                 invocation->n_operands);
    help_command(stdout,
                 invocation->n_operands ? command_find(invocation->operands[0]) : &command_program);
    return STATUS_OK;
}

const struct command command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "tell how to use myelin or one of its commands",
    .description = "Without a command, lists the commands. `myelin COMMAND --help` prints the same "
                   "as `myelin help COMMAND`.",
    .operand_kind = ARGUMENT_COMMAND,
    .examples = "myelin help             # list the commands\n"
                "myelin help completion  # tell about one of them\n",
    .run = help,
};
