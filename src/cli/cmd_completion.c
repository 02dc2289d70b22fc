/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/command.h"
#include "cli/pages.h"

static const char *const shells[] = { "bash", "zsh", NULL };

static int completion(const struct invocation *invocation) {
    if (invocation->n_operands != 1)
        return invocation_misuse(invocation, "'completion' takes one shell: bash or zsh");
    if (strcmp(invocation->operands[0], "bash") == 0)
        completion_bash(stdout);
    else
        completion_zsh(stdout);
    return STATUS_OK;
}

const struct command command_completion = {
    .name = "completion",
    .arguments = "SHELL",
    .summary = "print the completion script of a shell",
    .description =
        "Prints a script that teaches the shell, bash or zsh, to complete the commands of myelin, "
        "their options and what the options take. Where myelin is installed for all users, so is "
        "the script.\n"
        "\n"
        "For zsh, the line goes after the one that runs `compinit`.",
    .operand_kind = ARGUMENT_CHOICE,
    .operand_choices = shells,
    .examples = "source <(myelin completion bash)  # in ~/.bashrc\n"
                "source <(myelin completion zsh)   # in ~/.zshrc\n",
    .writes_data = true,
    .run = completion,
};
