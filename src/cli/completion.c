/* SPDX-License-Identifier: Apache-2.0 */
/* The completion scripts. What is the same for every program stands in the fixed texts; the
 * rows fill in the cases. */
#include <string.h>

#include "cli/pages.h"
#include "cli/prose.h"

/* Names, choices and patterns of the rows are words of letters, digits and hyphens; only help
 * texts hold more, and those are quoted. */

static void put_choices(FILE *out, const char *const *choices) {
    for (size_t i = 0; choices[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", choices[i]);
}

static void put_command_names(FILE *out) {
    for (size_t i = 0; commands[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", commands[i]->name);
}

/* ---- bash ---- */

static const char bash_start[] =
    "# Completion of myelin for bash; made by 'myelin completion bash'.\n"
    "\n"
    "# Offers what starts with $word: files, directories, or of the words of $2.\n"
    "_myelin_offer() {\n"
    "    case $1 in\n"
    "    files) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
    "    directories) mapfile -t COMPREPLY < <(compgen -d -- \"$word\") ;;\n"
    "    words) mapfile -t COMPREPLY < <(compgen -W \"$2\" -- \"$word\") ;;\n"
    "    esac\n"
    "    [[ $1 == words ]] || compopt -o filenames 2>/dev/null\n"
    "}\n"
    "\n"
    "_myelin() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local command= verb= ended= i\n"
    "\n"
    "    COMPREPLY=()\n"
    "    # bash makes three words of --name=value.\n"
    "    if [[ $word == = ]]; then\n"
    "        word=\n"
    "    elif [[ $before == = ]]; then\n"
    "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case $command:${COMP_WORDS[i]} in\n"
    "        *:--) ended=1 ;;\n";

static const char bash_values[] = "        :-*) ;;\n"
                                  "        :*) command=${COMP_WORDS[i]} ;;\n"
                                  "        *:-*) ;;\n"
                                  "        *) verb=${verb:-${COMP_WORDS[i]}} ;;\n"
                                  "        esac\n"
                                  "    done\n"
                                  "\n"
                                  "    [[ $ended ]] || case $command:$before in\n";

static const char bash_options[] = "    esac\n"
                                   "\n"
                                   "    if [[ $word == -* && ! $ended ]]; then\n"
                                   "        case $command in\n";

static const char bash_operands[] = "        esac\n"
                                    "        return\n"
                                    "    fi\n"
                                    "    case $command in\n";

static const char bash_end[] = "    esac\n"
                               "}\n"
                               "\n"
                               "complete -F _myelin myelin\n";

/* What fits in the place of an argument, as a call of _myelin_offer. */
static void put_bash_offer(FILE *out, enum argument_kind kind, const char *const *choices) {
    switch (kind) {
    case ARGUMENT_TEXT: fputs(":", out); break;
    case ARGUMENT_FILE: fputs("_myelin_offer files", out); break;
    case ARGUMENT_DIRECTORY: fputs("_myelin_offer directories", out); break;
    case ARGUMENT_CHOICE:
        fputs("_myelin_offer words '", out);
        put_choices(out, choices);
        fputs("'", out);
        break;
    case ARGUMENT_COMMAND:
        fputs("_myelin_offer words '", out);
        put_command_names(out);
        fputs("'", out);
        break;
    }
}

/* The values of options; `place` is the command's name, or the pattern of any. */
static void put_bash_values(FILE *out, const char *place, const struct option *options) {
    for (; options && options->name; options++) {
        if (!options->argument)
            continue;
        fputs("    ", out);
        if (options->letter)
            fprintf(out, "%s:-%c | ", place, options->letter);
        fprintf(out, "%s:--%s) ", place, options->name);
        put_bash_offer(out, options->kind, options->choices);
        fputs("; return ;;\n", out);
    }
}

static void put_bash_options(FILE *out, const char *place, const struct command *command) {
    const struct option *option;

    fprintf(out, "        %s) _myelin_offer words '", place);
    for (size_t i = 0; (option = command_option(command, i)); i++)
        fprintf(out, "%s--%s", i ? " " : "", option->name);
    fputs("' ;;\n", out);
}

void completion_bash(FILE *out) {
    const struct option *option;

    fputs(bash_start, out);
    for (size_t i = 0; (option = command_option(&command_program, i)); i++)
        if (option->argument)
            fprintf(out, "        *:--%s) ((i++)); [[ ${COMP_WORDS[i]} == = ]] && ((i++)) ;;\n",
                    option->name);
    fputs(bash_values, out);
    put_bash_values(out, "*", common_options);
    for (size_t i = 0; commands[i]; i++)
        put_bash_values(out, commands[i]->name, commands[i]->options);
    fputs(bash_options, out);
    put_bash_options(out, "''", &command_program);
    for (size_t i = 0; commands[i]; i++)
        put_bash_options(out, commands[i]->name, commands[i]);
    fputs(bash_operands, out);
    fputs("    '') ", out);
    put_bash_offer(out, ARGUMENT_COMMAND, NULL);
    fputs(" ;;\n", out);
    for (size_t i = 0; commands[i]; i++) {
        if (!commands[i]->arguments)
            continue;
        fprintf(out, "    %s) ", commands[i]->name);
        if (commands[i]->verbs) {
            fputs("if [[ ! $verb ]]; then ", out);
            put_bash_offer(out, ARGUMENT_CHOICE, commands[i]->verbs);
            fputs("; return; fi; ", out);
        }
        put_bash_offer(out, commands[i]->operand_kind, commands[i]->operand_choices);
        fputs(" ;;\n", out);
    }
    fputs(bash_end, out);
}

/* ---- zsh ---- */

static const char zsh_start[] = "#compdef myelin\n"
                                "# Completion of myelin for zsh; made by 'myelin completion zsh'.\n"
                                "\n"
                                "_myelin_commands() {\n"
                                "    local -a list=(\n";

static const char zsh_program[] = "    )\n"
                                  "    _describe -t commands command list\n"
                                  "}\n"
                                  "\n"
                                  "_myelin() {\n"
                                  "    local curcontext=$curcontext state line\n"
                                  "    local -A opt_args\n"
                                  "\n"
                                  "    _arguments -C -S";

static const char zsh_commands[] =
    " \\\n"
    "        '(-)1:command:_myelin_commands' '(-)*::argument:->arguments' && return\n"
    "    [[ $state == arguments ]] || return\n"
    "    case $words[1] in\n";

static const char zsh_end[] = "    esac\n"
                              "}\n"
                              "\n"
                              "# Run as a file of fpath, or sourced.\n"
                              "if [[ $funcstack[1] == _myelin ]]; then\n"
                              "    _myelin \"$@\"\n"
                              "elif (( $+functions[compdef] )); then\n"
                              "    compdef _myelin myelin\n"
                              "fi\n";

/* Inside single quotes and, for _arguments, inside brackets. */
static void put_zsh_text(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", out);
        else if (strchr("\\[]:", *text))
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void put_zsh_action(FILE *out, enum argument_kind kind, const char *const *choices) {
    switch (kind) {
    case ARGUMENT_TEXT: fputs(" ", out); break;
    case ARGUMENT_FILE: fputs("_files", out); break;
    case ARGUMENT_DIRECTORY: fputs("_files -/", out); break;
    case ARGUMENT_CHOICE:
        fputs("(", out);
        put_choices(out, choices);
        fputs(")", out);
        break;
    case ARGUMENT_COMMAND: fputs("_myelin_commands", out); break;
    }
}

/* One option as _arguments takes it: '(-f --file)'{-f+,--file=}'[help]:FILE:_files'. */
static void put_zsh_option(FILE *out, const struct option *option) {
    const char *joint = option->argument ? "=" : "";

    fputs(" \\\n        '", out);
    if (option->letter && option->repeats)
        fprintf(out, "*'{-%c%s,--%s%s}'", option->letter, option->argument ? "+" : "", option->name,
                joint);
    else if (option->letter)
        fprintf(out, "(-%c --%s)'{-%c%s,--%s%s}'", option->letter, option->name, option->letter,
                option->argument ? "+" : "", option->name, joint);
    else
        fprintf(out, "%s--%s%s", option->repeats ? "*" : "", option->name, joint);
    fputs("[", out);
    put_zsh_text(out, option->help);
    fputs("]", out);
    if (option->argument) {
        fputs(":", out);
        put_zsh_text(out, option->argument);
        fputs(":", out);
        put_zsh_action(out, option->kind, option->choices);
    }
    fputs("'", out);
}

static void put_zsh_options(FILE *out, const struct command *command) {
    const struct option *option;

    for (size_t i = 0; (option = command_option(command, i)); i++)
        put_zsh_option(out, option);
}

void completion_zsh(FILE *out) {
    fputs(zsh_start, out);
    for (size_t i = 0; commands[i]; i++) {
        fprintf(out, "        '%s:", commands[i]->name);
        put_zsh_text(out, commands[i]->summary);
        fputs("'\n", out);
    }
    fputs(zsh_program, out);
    put_zsh_options(out, &command_program);
    fputs(zsh_commands, out);
    for (size_t i = 0; commands[i]; i++) {
        fprintf(out, "    %s)\n        _arguments -s -S", commands[i]->name);
        put_zsh_options(out, commands[i]);
        if (commands[i]->arguments) {
            if (commands[i]->verbs) {
                fputs(" \\\n        '1:what to do:", out);
                put_zsh_action(out, ARGUMENT_CHOICE, commands[i]->verbs);
                fputs("'", out);
            }
            fputs(" \\\n        '*:argument:", out);
            put_zsh_action(out, commands[i]->operand_kind, commands[i]->operand_choices);
            fputs("'", out);
        }
        fputs("\n        ;;\n", out);
    }
    fputs(zsh_end, out);
}
