/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "cli/command.h"
#include "cli/load.h"
#include "codec/nearest.h"

struct parser {
    const struct command *command;
    const char *const *words;
    size_t n, at; /* at: the next word */
    struct arena *arena;
    VEC(const char *) operands;
    VEC(struct given_option) given;
};

typedef VEC(const char *) names;

/* Says that a name is unknown, and which one was probably meant. */
static int unknown_name(struct error *err, const char *what, const char *prefix, const char *typed,
                        const names *known) {
    const char *near = nearest_name(typed, known->items, known->len);

    if (near)
        return error_set(err, ERROR_INVALID, "unknown %s '%s%s'; did you mean '%s%s'?", what,
                         prefix, typed, prefix, near);
    return error_set(err, ERROR_INVALID, "unknown %s '%s%s'", what, prefix, typed);
}

const struct option *command_option(const struct command *command, size_t i) {
    for (const struct option *own = command->options; own && own->name; own++)
        if (i-- == 0)
            return own;
    for (const struct option *common = common_options; common->name; common++)
        if (i-- == 0)
            return common;
    return NULL;
}

static const struct option *find_option(const struct command *command, const char *name, size_t n,
                                        char letter) {
    const struct option *option;

    for (size_t i = 0; (option = command_option(command, i)); i++)
        if (letter ? option->letter == letter
                   : strlen(option->name) == n && memcmp(option->name, name, n) == 0)
            return option;
    return NULL;
}

static int unknown_option(const struct parser *parser, const char *typed, struct error *err) {
    const struct option *option;
    names known = { 0 };

    for (size_t i = 0; (option = command_option(parser->command, i)); i++)
        *VEC_PUSH(&known) = option->name;
    unknown_name(err, "option", "--", typed, &known);
    VEC_RELEASE(&known);
    return -1;
}

static int check_choice(const char *value, const char *const *choices, const char *of,
                        struct error *err) {
    char list[200] = "";
    size_t len = 0;

    for (size_t i = 0; choices[i]; i++) {
        if (strcmp(choices[i], value) == 0)
            return 0;
        if (len < sizeof list)
            len +=
                (size_t)snprintf(list + len, sizeof list - len, "%s%s", i ? ", " : "", choices[i]);
    }
    return error_set(err, ERROR_INVALID, "%s cannot be '%s'; it is one of: %s", of, value, list);
}

static int check_command_name(const char *name, struct error *err) {
    names known = { 0 };

    if (command_find(name))
        return 0;
    for (size_t i = 0; commands[i]; i++)
        *VEC_PUSH(&known) = commands[i]->name;
    unknown_name(err, "command", "", name, &known);
    if (load_is_name_of_file(name))
        error_set(err, ERROR_INVALID, "unknown command '%.200s'; did you mean 'myelin run %.200s'?",
                  name, name);
    VEC_RELEASE(&known);
    return -1;
}

static int check_value(enum argument_kind kind, const char *const *choices, const char *value,
                       const char *of, struct error *err) {
    if (kind == ARGUMENT_CHOICE)
        return check_choice(value, choices, of, err);
    if (kind == ARGUMENT_COMMAND)
        return check_command_name(value, err);
    return 0;
}

/* Notes an option; `value` is what stood in the same word, or NULL: then the next word is it. */
static int give(struct parser *parser, const struct option *option, const char *value,
                struct error *err) {
    char of[80];

    if (option->argument && !value) {
        if (parser->at == parser->n)
            return error_set(err, ERROR_INVALID, "option '--%s' needs a value: --%s %s",
                             option->name, option->name, option->argument);
        value = parser->words[parser->at++];
    }
    if (option->argument) {
        snprintf(of, sizeof of, "the value of '--%s'", option->name);
        if (check_value(option->kind, option->choices, value, of, err))
            return -1;
    }
    *VEC_PUSH(&parser->given) = (struct given_option){ .option = option, .value = value };
    return 0;
}

/* "--name" or "--name=value". */
static int parse_long(struct parser *parser, const char *word, struct error *err) {
    const char *name = word + 2;
    size_t n = strcspn(name, "=");
    const struct option *option = find_option(parser->command, name, n, 0);

    if (!option)
        return unknown_option(parser, arena_text(parser->arena, name, n), err);
    if (name[n] == '=' && !option->argument)
        return error_set(err, ERROR_INVALID, "option '--%s' takes no value", option->name);
    return give(parser, option, name[n] == '=' ? name + n + 1 : NULL, err);
}

/* "-a", "-abc" of switches, "-fvalue", and "-abfvalue". */
static int parse_letters(struct parser *parser, const char *word, struct error *err) {
    for (const char *letter = word + 1; *letter; letter++) {
        const struct option *option = find_option(parser->command, NULL, 0, *letter);
        char other;

        other = (char)(*letter ^ ('a' ^ 'A'));
        if (!option && isalpha((unsigned char)*letter) &&
            find_option(parser->command, NULL, 0, other))
            return error_set(err, ERROR_INVALID, "unknown option '-%c'; did you mean '-%c'?",
                             *letter, other);
        if (!option && *letter > ' ' && *letter < 0x7f)
            return error_set(err, ERROR_INVALID, "unknown option '-%c'%s%s%s", *letter,
                             word[2] ? " in '" : "", word[2] ? word : "", word[2] ? "'" : "");
        if (!option)
            return error_set(err, ERROR_INVALID, "unknown option '%s'", word);
        if (option->argument)
            return give(parser, option, letter[1] ? letter + 1 : NULL, err);
        if (give(parser, option, NULL, err))
            return -1;
    }
    return 0;
}

static int add_operand(struct parser *parser, const char *word, struct error *err) {
    const struct command *command = parser->command;
    bool is_checked = parser->operands.len == 0 || !command->operands_end_options;

    if (!command->arguments)
        return error_set(err, ERROR_INVALID, "'%s' takes only options, not '%s'", command->name,
                         word);
    if (command->verbs && parser->operands.len == 0) {
        if (check_choice(word, command->verbs, "what to do", err))
            return -1;
    } else if (is_checked && check_value(command->operand_kind, command->operand_choices, word,
                                         command->arguments, err)) {
        return -1;
    }
    *VEC_PUSH(&parser->operands) = word;
    return 0;
}

static int parse_words(struct parser *parser, struct error *err) {
    bool options_ended = false;

    while (parser->at < parser->n) {
        const char *word = parser->words[parser->at++];
        int failed;

        if (!options_ended && strcmp(word, "--") == 0) {
            options_ended = true;
            continue;
        }
        if (options_ended || word[0] != '-' || word[1] == '\0') {
            failed = add_operand(parser, word, err);
            options_ended |= parser->command->operands_end_options;
        } else if (word[1] == '-') {
            failed = parse_long(parser, word, err);
        } else {
            failed = parse_letters(parser, word, err);
        }
        if (failed)
            return -1;
    }
    return 0;
}

int invocation_parse(const struct command *command, const char *const *words, size_t n,
                     struct arena *arena, struct invocation *invocation, struct error *err) {
    struct parser parser = { .command = command, .words = words, .n = n, .arena = arena };
    int failed = parse_words(&parser, err);

    if (!failed)
        *invocation = (struct invocation){
            .command = command,
            .operands = arena_copy(arena, parser.operands.items,
                                   parser.operands.len * sizeof *parser.operands.items),
            .n_operands = parser.operands.len,
            .given = arena_copy(arena, parser.given.items,
                                parser.given.len * sizeof *parser.given.items),
            .n_given = parser.given.len,
        };
    VEC_RELEASE(&parser.operands);
    VEC_RELEASE(&parser.given);
    return failed;
}

bool invocation_has(const struct invocation *invocation, const char *option) {
    for (size_t i = 0; i < invocation->n_given; i++)
        if (strcmp(invocation->given[i].option->name, option) == 0)
            return true;
    return false;
}

const char *invocation_value(const struct invocation *invocation, const char *option) {
    for (size_t i = invocation->n_given; i > 0; i--)
        if (strcmp(invocation->given[i - 1].option->name, option) == 0)
            return invocation->given[i - 1].value;
    return NULL;
}
