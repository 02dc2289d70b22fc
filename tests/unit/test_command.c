/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/pages.h"
#include "cli/prose.h"
#include "cli/terminal.h"
#include "search/query.h"

static const char *const sizes[] = { "small", "large", NULL };

static const struct option sample_options[] = {
    { .name = "file",
      .letter = 'f',
      .argument = "FILE",
      .kind = ARGUMENT_FILE,
      .repeats = true,
      .help = "read FILE" },
    { .name = "all", .letter = 'a', .help = "take all" },
    { .name = "brief", .letter = 'b', .help = "say less" },
    { .name = "size",
      .letter = 's',
      .argument = "SIZE",
      .kind = ARGUMENT_CHOICE,
      .choices = sizes,
      .help = "how large" },
    { 0 },
};

static const struct command sample = {
    .name = "sample",
    .arguments = "[WORD...]",
    .summary = "try a back\\slash",
    .description = ".dot starts a request, machine-learning does not --dry-run\n"
                   "\n"
                   "Type `a-b` or '*x*' <y>.\n"
                   "\n"
                   "  kept   as\n"
                   ".it stands",
    .options = sample_options,
    .examples = "myelin sample -f x  # one\n",
};

static const struct command bare = { .name = "bare" };
static const struct command outer = {
    .name = "outer", .arguments = "WORD...", .options = sample_options, .operands_end_options = true
};

#define WORDS(...)                                                                                 \
    (const char *const[]){ __VA_ARGS__ }, ARRAY_LEN(((const char *[]){ __VA_ARGS__ }))

/* The outcome of parsing as one line: "file=x all | operand operand", or the error. */
static const char *outcome(const struct command *command, const char *const *words, size_t n) {
    static char text[1000];
    AUTO(arena) arena = ARENA_INIT;
    struct invocation invocation = { 0 };
    struct error err = { 0 };
    size_t len = 0;

    if (invocation_parse(command, words, n, &arena, &invocation, &err)) {
        assert_null(invocation.command);
        assert_int_equal(err.code, ERROR_INVALID);
        snprintf(text, sizeof text, "%s", err.message);
        return text;
    }
    assert_ptr_equal(invocation.command, command);
    text[0] = '\0';
    for (size_t i = 0; i < invocation.n_given; i++) {
        const struct given_option *given = &invocation.given[i];

        assert_int_equal(given->option->argument != NULL, given->value != NULL);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s%s ", given->option->name,
                                given->value ? "=" : "", given->value ? given->value : "");
        assert_true(len < sizeof text);
    }
    len += (size_t)snprintf(text + len, sizeof text - len, "|");
    for (size_t i = 0; i < invocation.n_operands; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, " %s", invocation.operands[i]);
    return text;
}

#define ASSERT_OUTCOME(command, expected, ...)                                                     \
    assert_string_equal(outcome(command, WORDS(__VA_ARGS__)), expected)

static void a_value_stands_in_the_same_word_or_in_the_next(void **state) {
    (void)state;
    ASSERT_OUTCOME(&sample, "file=x |", "--file", "x");
    ASSERT_OUTCOME(&sample, "file=x |", "--file=x");
    ASSERT_OUTCOME(&sample, "file=x |", "-f", "x");
    ASSERT_OUTCOME(&sample, "file=x |", "-fx");
    ASSERT_OUTCOME(&sample, "file= |", "--file=");
    ASSERT_OUTCOME(&sample, "file=a=b |", "--file=a=b");
    ASSERT_OUTCOME(&sample, "file=--all |", "--file", "--all");
    ASSERT_OUTCOME(&sample, "file=-1 |", "-f", "-1");
}

static void switches_combine_and_the_last_letter_may_take_a_value(void **state) {
    (void)state;
    ASSERT_OUTCOME(&sample, "all brief |", "-ab");
    ASSERT_OUTCOME(&sample, "all brief file=x |", "-abfx");
    ASSERT_OUTCOME(&sample, "all brief file=x |", "-abf", "x");
    ASSERT_OUTCOME(&sample, "file=ab |", "-fab");
}

static void options_and_operands_mix_until_two_hyphens(void **state) {
    (void)state;
    ASSERT_OUTCOME(&sample, "all file=x | one two", "one", "-a", "two", "--file", "x");
    ASSERT_OUTCOME(&sample, "all | -b --", "-a", "--", "-b", "--");
    ASSERT_OUTCOME(&sample, "all | - ", "-a", "-", "");
}

static void an_operand_may_own_what_follows_it(void **state) {
    (void)state;
    ASSERT_OUTCOME(&outer, "all | go -b --no-such", "-a", "go", "-b", "--no-such");
    ASSERT_OUTCOME(&outer, "| go -- -b", "go", "--", "-b");
}

static void every_command_knows_the_common_options(void **state) {
    (void)state;
    ASSERT_OUTCOME(&bare, "help color=never |", "-h", "--color", "never");
    ASSERT_OUTCOME(&sample, "help all |", "--help", "-a");
}

static void a_long_name_is_never_abbreviated(void **state) {
    char name[20];

    (void)state;
    for (size_t n = 1; n < strlen("brief"); n++) {
        snprintf(name, sizeof name, "--%.*s", (int)n, "brief");
        assert_non_null(strstr(outcome(&sample, WORDS(name)), "unknown option '--b"));
    }
    ASSERT_OUTCOME(&sample, "brief |", "--brief");
}

static void misuse_is_told_with_the_way_out(void **state) {
    (void)state;
    ASSERT_OUTCOME(&sample, "unknown option '--flie'; did you mean '--file'?", "--flie=x");
    ASSERT_OUTCOME(&sample, "unknown option '--zzzzzzzz'", "--zzzzzzzz");
    ASSERT_OUTCOME(&sample, "unknown option '-z'", "-z");
    ASSERT_OUTCOME(&sample, "unknown option '-z' in '-az'", "-az");
    ASSERT_OUTCOME(&sample, "option '--file' needs a value: --file FILE", "-af");
    ASSERT_OUTCOME(&sample, "option '--all' takes no value", "--all=yes");
    ASSERT_OUTCOME(&sample, "the value of '--size' cannot be 'huge'; it is one of: small, large",
                   "-shuge");
    ASSERT_OUTCOME(&bare, "'bare' takes only options, not 'x'", "x");
    ASSERT_OUTCOME(&command_program, "unknown command 'hepl'; did you mean 'help'?", "hepl", "--x");
}

static void the_last_value_counts_and_all_are_kept(void **state) {
    AUTO(arena) arena = ARENA_INIT;
    struct invocation invocation;
    struct error err;

    (void)state;
    assert_int_equal(
        invocation_parse(&sample, WORDS("-fx", "-a", "--file=y"), &arena, &invocation, &err), 0);
    assert_string_equal(invocation_value(&invocation, "file"), "y");
    assert_int_equal(invocation.n_given, 3);
    assert_string_equal(invocation.given[0].value, "x");
    assert_true(invocation_has(&invocation, "all"));
    assert_null(invocation_value(&invocation, "all"));
    assert_false(invocation_has(&invocation, "size"));
    assert_null(invocation_value(&invocation, "size"));
}

/* Whatever is typed: parsed, or refused with a sentence. */
static void any_words_are_parsed_or_refused(void **state) {
    static const char alphabet[] = "--==fabsx \xc3\xa9\033";
    char storage[6][9];
    const char *words[6];
    size_t refused = 0;

    (void)state;
    srandom(1);
    for (int round = 0; round < 20000; round++) {
        size_t n = (size_t)random() % 7;

        for (size_t i = 0; i < n; i++) {
            size_t length = (size_t)random() % sizeof storage[i];

            for (size_t k = 0; k < length; k++)
                storage[i][k] = alphabet[(size_t)random() % (sizeof alphabet - 1)];
            storage[i][length] = '\0';
            words[i] = storage[i];
        }
        assert_true(strlen(outcome(&sample, words, n)) > 0);
        refused += strchr(outcome(&sample, words, n), '|') == NULL;
    }
    assert_true(refused > 0 && refused < 20000);
}

static void a_word_of_any_length_is_refused(void **state) {
    size_t n = 1 << 20;
    char *word = malloc(n + 1);

    (void)state;
    memset(word, 'x', n);
    memcpy(word, "--", 2);
    word[n] = '\0';
    assert_non_null(strstr(outcome(&sample, WORDS(word)), "unknown option '--xxx"));
    free(word);
}

/* ---- the rows ---- */

static bool is_name(const char *name) {
    return name[0] && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name) &&
           name[0] != '-';
}

static void assert_ascii(const char *text) {
    for (; text && *text; text++)
        if (*text != '\n' && !isprint((unsigned char)*text))
            fail_msg("not ASCII: ...%.40s", text);
}

/* One line, in lower case unless it starts with a name in capitals, no full stop. */
static void assert_phrase(const char *text) {
    assert_non_null(text);
    assert_ascii(text);
    if (!text[0] || strchr(text, '\n') || text[strlen(text) - 1] == '.')
        fail_msg("not a phrase: '%s'", text);
    if (isupper((unsigned char)text[0]) && !isupper((unsigned char)text[1]))
        fail_msg("starts with a capital: '%s'", text);
}

static void check_options(const struct command *command) {
    const struct option *option, *other;
    char label[OPTION_LABEL_MAX], text[OPTION_TEXT_MAX];

    for (size_t i = 0; (option = command_option(command, i)); i++) {
        assert_true(is_name(option->name));
        assert_phrase(option->help);
        if (option->letter)
            assert_true(isalpha((unsigned char)option->letter));
        if (option->kind == ARGUMENT_CHOICE)
            assert_true(option->choices && option->choices[0]);
        option_label(option, label);
        option_text(option, text);
        assert_true(strlen(label) < sizeof label - 1 && strlen(text) < sizeof text - 1);
        for (size_t k = 0; k < i; k++) {
            other = command_option(command, k);
            assert_string_not_equal(option->name, other->name);
            if (option->letter && option->letter == other->letter)
                fail_msg("%s: -%c is --%s and --%s", command->name, option->letter, other->name,
                         option->name);
        }
    }
}

static void check_row(const struct command *command) {
    const char *rest = command->examples;
    struct span line, example, remark;

    assert_true(is_name(command->name));
    assert_phrase(command->summary);
    assert_true(islower((unsigned char)command->summary[0]));
    assert_true(strlen(command->summary) <= 72);
    assert_ascii(command->arguments);
    assert_non_null(command->description);
    assert_ascii(command->description);
    assert_ascii(command->examples);
    if (command->operand_kind == ARGUMENT_CHOICE)
        assert_true(command->operand_choices && command->operand_choices[0]);
    while (prose_line(&rest, &line)) {
        prose_example(line, &example, &remark);
        if (!example.n || !remark.n)
            fail_msg("%s: an example needs a command and '  # what it does'", command->name);
        assert_non_null(memmem(example.text, example.n, "myelin", 6));
    }
    for (const struct status_help *row = command_statuses(command); row->status; row++)
        assert_phrase(row->meaning);
    check_options(command);
}

static void every_row_is_complete_and_its_names_are_unique(void **state) {
    (void)state;
    check_row(&command_program);
    for (size_t i = 0; commands[i]; i++) {
        check_row(commands[i]);
        assert_non_null(commands[i]->run);
        assert_ptr_equal(command_find(commands[i]->name), commands[i]);
    }
    assert_null(command_find(""));
    assert_null(command_find("no-such-command"));
}

static void the_help_of_runs_tells_every_field_of_a_query(void **state) {
    const char *text = command_find("runs")->description;
    char name[64];

    (void)state;
    for (const struct query_own_field *own = query_own_fields; own->name; own++) {
        snprintf(name, sizeof name, "`%s`", own->name);
        if (!strstr(text, name))
            fail_msg("the help of runs lacks %s", name);
    }
}

/* ---- what is made from the rows ---- */

static char *page_of(void (*make)(FILE *, const struct command *), const struct command *command) {
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);

    make(out, command);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void assert_contains(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void check_width(const struct command *command) {
    char *text = page_of(help_command, command);
    const char *rest = text;
    struct span line;

    while (prose_line(&rest, &line)) {
        if (line.n > TERMINAL_USUAL)
            fail_msg("help of %s: wider than 80: %.*s", command->name, (int)line.n, line.text);
        if (line.n && line.text[line.n - 1] == ' ')
            fail_msg("help of %s: blank at the end: '%.*s'", command->name, (int)line.n, line.text);
    }
    free(text);
}

static void help_fits_in_eighty_columns(void **state) {
    (void)state;
    check_width(&command_program);
    check_width(&sample);
    for (size_t i = 0; commands[i]; i++)
        check_width(commands[i]);
}

static void help_shows_all_that_the_row_says(void **state) {
    char *text = page_of(help_command, &sample);

    (void)state;
    assert_contains(text, "Usage: myelin sample [OPTION...] [WORD...]\n");
    assert_contains(text, "Try a back\\slash.\n");
    assert_contains(text, "  -f, --file FILE   read FILE; may be given more than once\n");
    assert_contains(text, "  -s, --size SIZE   how large; one of small, large\n");
    assert_contains(text, "  -h, --help        ");
    assert_contains(text, "\n  kept   as\n.it stands\n");
    assert_contains(text, "  myelin sample -f x  # one\n");
    assert_null(strstr(text, "\033"));
    free(text);
}

static void headings_are_bold_only_where_colour_is_asked_for(void **state) {
    char *text;

    (void)state;
    terminal_choose_colour(COLOUR_ALWAYS);
    text = page_of(help_command, &sample);
    terminal_choose_colour(COLOUR_AUTO);
    assert_contains(text, "\033[1mOptions:\033[0m\n");
    free(text);
}

static void roff_shows_every_character_as_written(void **state) {
    char *text = page_of(manual_page, &sample);

    (void)state;
    assert_contains(text, "\nmyelin\\-sample \\- try a back\\(rsslash\n");
    assert_contains(text,
                    "\n\\&.dot starts a request, machine-learning does not \\-\\-dry\\-run\n");
    assert_contains(text, "Type \\fBa\\-b\\fR or \\(aq*x*\\(aq <y>.\n");
    assert_contains(text, ".nf\n  kept   as\n\\&.it stands\n.fi\n");
    assert_contains(text, "\\fB\\-f\\fR, \\fB\\-\\-file\\fR \\fIFILE\\fR\n");
    free(text);
}

static void markdown_escapes_markup_outside_of_code(void **state) {
    char *text = page_of(reference_section, &sample);

    (void)state;
    assert_contains(text, "## myelin sample\n\ntry a back\\\\slash\n");
    assert_contains(text, "\nType `a-b` or '\\*x\\*' \\<y\\>.\n");
    assert_contains(text, "\n```\n  kept   as\n.it stands\n```\n");
    assert_contains(text, "| `-s`, `--size SIZE` | how large; one of small, large |\n");
    assert_null(strstr(text, "--help"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_stands_in_the_same_word_or_in_the_next),
        cmocka_unit_test(switches_combine_and_the_last_letter_may_take_a_value),
        cmocka_unit_test(options_and_operands_mix_until_two_hyphens),
        cmocka_unit_test(an_operand_may_own_what_follows_it),
        cmocka_unit_test(every_command_knows_the_common_options),
        cmocka_unit_test(a_long_name_is_never_abbreviated),
        cmocka_unit_test(misuse_is_told_with_the_way_out),
        cmocka_unit_test(the_last_value_counts_and_all_are_kept),
        cmocka_unit_test(any_words_are_parsed_or_refused),
        cmocka_unit_test(a_word_of_any_length_is_refused),
        cmocka_unit_test(every_row_is_complete_and_its_names_are_unique),
        cmocka_unit_test(the_help_of_runs_tells_every_field_of_a_query),
        cmocka_unit_test(help_fits_in_eighty_columns),
        cmocka_unit_test(help_shows_all_that_the_row_says),
        cmocka_unit_test(headings_are_bold_only_where_colour_is_asked_for),
        cmocka_unit_test(roff_shows_every_character_as_written),
        cmocka_unit_test(markdown_escapes_markup_outside_of_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
