/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command is one row, and so is each of its options. Parsing, help, shell completion
 * and the manual pages are all made from the rows, so they cannot disagree. The texts of
 * the rows are ASCII, which every terminal and every roff shows.
 *
 * To add a command: write cli/cmd_<name>.c that defines command_<name>, add it to the list in
 * cli/commands.c and its name to cli/meson.build. `myelin man --markdown` renews docs/cli.md.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* Exit statuses. `run` hands on its first failing task's own. */
enum {
    STATUS_OK = 0,
    STATUS_INVALID = 1,           /* the file is wrong, or the thing asked for does not exist */
    STATUS_MISUSE = 2,            /* the command line is wrong */
    STATUS_RUN_OWN_FAILURE = 125, /* of `run`: myelin's own failure, or misuse */
    STATUS_INTERRUPTED = 130,     /* who waits was told to go; of `run`: the run was stopped */
};

enum argument_kind {
    ARGUMENT_TEXT,
    ARGUMENT_FILE,
    ARGUMENT_DIRECTORY,
    ARGUMENT_CHOICE,
    ARGUMENT_COMMAND, /* the name of a command of the table */
};

struct option {
    const char *name;           /* "file": given as --file */
    char letter;                /* 'f': given as -f; or 0 */
    const char *argument;       /* "FILE"; NULL for a switch */
    enum argument_kind kind;    /* what completion offers for the argument */
    const char *const *choices; /* with ARGUMENT_CHOICE: the values, ended by NULL */
    bool repeats;
    const char *help; /* one line, no full stop, starts with a verb or noun in lower case */
};

/* One line of a command's "Exit status". */
struct status_help {
    const char *status;  /* "125", or words where there is no one number */
    const char *meaning; /* as an option's help */
};

struct invocation;

struct command {
    const char *name;
    const char *arguments; /* as shown after the name: "[FILE...]"; NULL: takes no operands */
    const char *summary;   /* one line, no full stop, starts with a verb */
    /* Paragraphs for help and manual, parted by blank lines. One that starts with a blank is
     * kept as it stands; the others are wrapped. `Backticks` enclose what is typed. */
    const char *description;
    const struct option *options; /* ended by a row without a name; NULL: none */
    const char *const *verbs;     /* what the first operand may be, ended by NULL; NULL: anything */
    enum argument_kind operand_kind;    /* of the other operands */
    const char *const *operand_choices; /* with ARGUMENT_CHOICE */
    const char *examples;               /* lines "command  # what it does", or NULL */
    const struct status_help *statuses; /* ended by a row without a status; NULL: the usual ones */
    int misuse_status;                  /* STATUS_MISUSE unless said */
    bool writes_data; /* standard output is for programs: into a pipe it passes byte for byte */
    bool operands_end_options; /* what follows the first operand belongs to that operand */
    int (*run)(const struct invocation *invocation); /* returns the exit status */
};

/* One parsed command line. */
struct invocation {
    const struct command *command;
    const char *const *operands;
    size_t n_operands;
    const struct given_option { /* in the order of the command line */
        const struct option *option;
        const char *value; /* NULL for a switch */
    } * given;
    size_t n_given;
};

bool invocation_has(const struct invocation *invocation, const char *option);
/* The last value given, or NULL. */
const char *invocation_value(const struct invocation *invocation, const char *option);

/* Prints "myelin: <what>" and how to get help; returns the command's misuse status. */
int invocation_misuse(const struct invocation *invocation, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Reads the words after the command's name. What it gives points into the words and the arena.
 * Options and operands may mix; "--" ends the options. Long names are never abbreviated: an
 * abbreviation in a script would change its meaning when an option is added. */
MUST_CHECK int invocation_parse(const struct command *command, const char *const *words, size_t n,
                                struct arena *arena, struct invocation *invocation,
                                struct error *err);

extern const struct command *const commands[]; /* ended by NULL */
const struct command *command_find(const char *name);

/* The program itself as a row: the options before a command's name. */
extern const struct command command_program;
/* What every command understands besides its own options. Ended as a command's are. */
extern const struct option common_options[];
/* The i-th option that a command understands, its own first; NULL after the last. */
const struct option *command_option(const struct command *command, size_t i);

/* The program: parses, finds, runs. Returns the exit status. */
int command_main(int argc, char **argv);

#endif
