/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/failure.h"
#include "cli/guard.h"
#include "cli/pages.h"
#include "cli/terminal.h"
#include "codec/visible.h"

const struct option common_options[] = {
    { .name = "color",
      .argument = "WHEN",
      .kind = ARGUMENT_CHOICE,
      .choices = colour_choices,
      .help = "use colour in the output" },
    { .name = "help", .letter = 'h', .help = "print what the command does, and do nothing" },
    { 0 },
};

static const struct option program_options[] = {
    { .name = "version", .help = "print the version, and do nothing" },
    { 0 },
};

const struct command command_program = {
    .name = "myelin",
    .arguments = "COMMAND [ARGUMENT...]",
    .summary = "run distributed machine-learning experiments from a polyaxonfile",
    .description =
        "myelin compiles a polyaxonfile to a plan of tasks, starts all of them together with the "
        "environment that their framework expects, watches them as one experiment, and says in "
        "one sentence how it ended.\n"
        "\n"
        "Options and operands may mix; `--` ends the options. The names of options are never "
        "abbreviated. Colour is used on a terminal, unless the environment variable `NO_COLOR` "
        "is set; `--color` overrules both. Lines and charts are drawn in ASCII if the character "
        "set "
        "of the locale is not UTF-8. Control characters and marks that change the direction of "
        "reading are shown as text, such as `^[` or `<U+202E>`.",
    .options = program_options,
    .operand_kind = ARGUMENT_COMMAND,
    .operands_end_options = true,
};

static int print_misuse(const struct command *command, const char *message) {
    AUTO(arena) arena = ARENA_INIT;

    complain("%s", visible_text(&arena, message, 0));
    if (command == &command_program)
        fprintf(stderr, "try 'myelin help'\n");
    else
        fprintf(stderr, "try 'myelin help %s'\n", command->name);
    return command->misuse_status ? command->misuse_status : STATUS_MISUSE;
}

int invocation_misuse(const struct invocation *invocation, const char *fmt, ...) {
    char message[480];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    return print_misuse(invocation->command, message);
}

/* What is printed as to a pipe has no colours of ours, unless they are asked for. */
static void apply_colour(const struct invocation *invocation) {
    const char *when = invocation_value(invocation, "color");

    if (!when && invocation_has(invocation, "plain"))
        terminal_choose_colour(COLOUR_NEVER);
    for (size_t i = 0; when && colour_choices[i]; i++)
        if (strcmp(colour_choices[i], when) == 0)
            terminal_choose_colour((enum colour_choice)i);
}

static int parse_and_run(const struct command *command, const char *const *words, size_t n) {
    AUTO(arena) arena = ARENA_INIT;
    struct invocation invocation;
    struct error err;

    if (invocation_parse(command, words, n, &arena, &invocation, &err))
        return print_misuse(command, err.message);
    apply_colour(&invocation);
    if (invocation_has(&invocation, "help")) {
        help_command(stdout, command);
        return STATUS_OK;
    }
    if (command->writes_data || invocation_has(&invocation, "json") ||
        invocation_has(&invocation, "csv"))
        guard_pass_data();
    return command->run(&invocation);
}

/* By the words themselves: a command line that cannot be parsed is answered in JSON too. */
static bool wants_json(const struct command *command, const char *const *words, size_t n) {
    const struct option *option;
    bool has_json = false;

    for (size_t i = 0; (option = command_option(command, i)); i++)
        has_json |= strcmp(option->name, "json") == 0;
    for (size_t i = 0; has_json && i < n && strcmp(words[i], "--") != 0; i++)
        if (strcmp(words[i], "--json") == 0)
            return true;
    return false;
}

/* Runs one command with the words after its name. */
static int run_command(const struct command *command, const char *const *words, size_t n) {
    const int status = parse_and_run(command, words, n);

    if (status != STATUS_OK && wants_json(command, words, n))
        failure_print_json(status);
    return status;
}

/* The options before the command's name, then the command. `*command` says whose the status is. */
static int run_program(const char *const *words, size_t n, const struct command **command) {
    AUTO(arena) arena = ARENA_INIT;
    struct invocation program;
    struct error err;

    if (invocation_parse(&command_program, words, n, &arena, &program, &err))
        return print_misuse(&command_program, err.message);
    apply_colour(&program);
    if (program.n_operands)
        *command = command_find(program.operands[0]);

    if (invocation_has(&program, "help")) {
        help_command(stdout, *command);
        return STATUS_OK;
    }
    if (invocation_has(&program, "version")) {
        printf("myelin %s\n", MYELIN_VERSION);
        return STATUS_OK;
    }
    if (program.n_operands == 0) {
        help_short(stderr);
        return STATUS_MISUSE;
    }
    return run_command(*command, program.operands + 1, program.n_operands - 1);
}

/* Output that was lost makes a success a failure: a script must not go on with half a plan.
 * A reader that left (EPIPE) knows that it did, so it is told nothing. */
static int check_output(const struct command *command, int status) {
    int cause;

    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    cause = errno;
    if (cause != EPIPE)
        fprintf(stderr, "myelin: cannot write the output%s%s\n", cause ? ": " : "",
                cause ? strerror(cause) : "");
    if (status != STATUS_OK)
        return status;
    return command->misuse_status == STATUS_RUN_OWN_FAILURE ? STATUS_RUN_OWN_FAILURE
                                                            : STATUS_INVALID;
}

int command_main(int argc, char **argv) {
    const struct command *command = &command_program;
    size_t n = argc > 1 ? (size_t)argc - 1 : 0;
    int status = run_program((const char *const *)argv + (n ? 1 : 0), n, &command);

    status = check_output(command, status);
    guard_end();
    return status;
}
