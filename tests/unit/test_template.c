/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "template/template.h"
#include "test_template_rows.inc"

struct fixture {
    struct arena arena;
    struct node names;
    struct diags *diags;
};

static int setup(void **state) {
    static struct fixture fixture;

    fixture = (struct fixture){ .diags = diags_new() };
    if (literal_read(&fixture.arena, rows_params, strlen(rows_params), (struct place){ 0 },
                     &fixture.names))
        return -1;
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;

    diags_free(fixture->diags);
    arena_release(&fixture->arena);
    return 0;
}

/* The text stands in its source at 100, letter by letter. */
static struct node plain(const char *text) {
    return node_text(text, strlen(text), (struct place){ 100, (uint32_t)strlen(text), 2 });
}

static int render(struct fixture *fixture, struct node text, struct node *out) {
    const struct template_context context = { .names = &fixture->names, .arena = &fixture->arena };

    return template_render(&context, &text, out, fixture->diags);
}

static void assert_renders(struct fixture *fixture, const char *text, const char *expected) {
    struct node out;

    if (render(fixture, plain(text), &out))
        fail_msg("%s: %s", text, fixture->diags->list[0].message);
    if (strcmp(out.text, expected) != 0)
        fail_msg("%s: gives `%s`, not `%s`", text, out.text, expected);
}

/* The one error or warning of a text, whose diagnostics are gone at the next call. */
static const struct diag *failure(struct fixture *fixture, struct node text) {
    struct node out;

    diags_free(fixture->diags);
    fixture->diags = diags_new();
    if (render(fixture, text, &out) == 0 && fixture->diags->warnings == 0)
        fail_msg("%s: gives `%s`, and nothing is said", text.text, out.text);
    assert_int_equal(fixture->diags->errors + fixture->diags->warnings, 1);
    return &fixture->diags->list[0];
}

static void templates_render_as_jinja2_renders_them(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(renderings); i++)
        assert_renders(*state, renderings[i].text, renderings[i].expected);
}

static void what_jinja2_lacks_works_as_documented(void **state) {
    static const struct {
        const char *text, *expected;
    } rows[] = {
        { "{{ 1e-3 }}", "0.001" },
        { "{{ 2.5e+2 }}", "250.0" },
        { "{{ path | basename }}", "train.csv" },
        { "{{ 'a/' | basename }}|", "|" },
        { "{{ 'x' | basename }}", "x" },
        { "{{ 'a,b' | split(',') }}", "['a', 'b']" },
        { "{{ ' a  b ' | split }}", "['a', 'b']" },
        { "{{ range(3) }}", "[0, 1, 2]" },
        { "{{ [1, 1] | unique }}", "[1]" },
        { "{{ deep.keys() }}", "['a']" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_renders(*state, rows[i].text, rows[i].expected);
}

static void a_rendered_text_has_the_place_of_its_template(void **state) {
    struct node out;

    assert_int_equal(render(*state, plain("{{ n }}!"), &out), 0);
    assert_int_equal(out.kind, NODE_TEXT);
    assert_int_equal(out.flags, NODE_RENDERED);
    assert_int_equal(out.count, 2);
    assert_int_equal(out.offset, 100);
    assert_int_equal(out.length, 8);
    assert_int_equal(out.source, 2);
}

static void only_a_text_with_a_tag_is_not_plain(void **state) {
    (void)state;
    assert_true(template_is_plain("", 0));
    assert_true(template_is_plain("a { b } }} %}", 13));
    assert_true(template_is_plain("{", 1));
    assert_false(template_is_plain("a {{ b", 6));
    assert_false(template_is_plain("{%", 2));
    assert_false(template_is_plain("x{#", 3));
    assert_true(template_is_plain("x{#", 2));
}

static const struct bad {
    const char *text, *piece, *message, *help;
} bad[] = {
    { "{{ nam }}", "nam", "`nam` is not defined", "did you mean `name`?" },
    { "{{ 1 + zzzzzzzz }}", "zzzzzzzz", "`zzzzzzzz` is not defined", "defined are: lr, n, " },
    { "{% if nope %}{% endif %}", "nope", "`nope` is not defined", NULL },
    { "{{ nope or 3 }}", "nope", "`nope` is not defined", NULL },
    { "{{ nope.x | default(3) }}", "nope", "`nope` is not defined", NULL },
    { "{{ opt.nane }}", "opt.nane", "there is no `nane` in this mapping", "did you mean `name`?" },
    { "{{ xs[7] }}", "xs[7]", "there is no item [7] in a list of 3", NULL },
    { "{{ n[0] }}", "n[0]", "a whole number has no items", NULL },
    { "{{ n.foo }}", "n.foo", "a whole number has no member `foo`", NULL },
    { "{{ opt.beta.append(1) }}", "opt.beta.append", "there is no method `append`", NULL },
    { "{{ n.items() }}", "n.items()", "a whole number has no method `items`", NULL },
    { "{{ [] | first }}", "first", "`first` of nothing is not defined", NULL },
    { "{{ ('a' if off) ~ 'x' }}", "'a' if off", "there is no `else`", NULL },
    { "{{ name | uper }}", "uper", "there is no filter `uper`", "did you mean `upper`?" },
    { "{{ n is od }}", "od", "there is no test `od`", "did you mean `odd`?" },
    { "{{ rang(3) }}", "rang", "there is no function `rang`", "did you mean `range`?" },
    { "{% fro x in xs %}", "fro", "there is no statement `fro`", "did you mean `for`?" },
    { "{% macro x() %}", "macro", "there is no statement `macro`", "if, for, set, raw" },
    { "{{ name | replace('a') }}", "replace", "needs the argument `new`", NULL },
    { "{{ n | round(1, 'up') }}", "round", "common, ceil or floor", NULL },
    { "{{ n | round(x=1) }}", "x", "`round` has no argument `x`", NULL },
    { "{{ n | abs(1) }}", "1", "`abs` takes at most 0 arguments", NULL },
    { "{{ 'a' + 1 }}", "'a' + 1", "`+` does not work between text and a whole number",
      "`~` joins" },
    { "{{ '3' < 4 }}", "'3' < 4", "have no order", "| int" },
    { "{{ -name }}", "-name", "`-` does not work on text", NULL },
    { "{{ 1 / 0 }}", "1 / 0", "division by zero", NULL },
    { "{{ 1 % 0 }}", "1 % 0", "division by zero", NULL },
    { "{{ 1.0 // 0 }}", "1.0 // 0", "division by zero", NULL },
    { "{{ 0 ** -1 }}", "0 ** -1", "division by zero", NULL },
    { "{{ 9223372036854775807 + 1 }}", "9223372036854775807 + 1", "beyond 64 bits", NULL },
    { "{{ 2 ** 63 }}", "2 ** 63", "beyond 64 bits", NULL },
    { "{{ 5000000000 * 5000000000 }}", "5000000000 * 5000000000", "beyond 64 bits", NULL },
    { "{{ 9223372036854775808 }}", "9223372036854775808", "beyond 64 bits", NULL },
    { "{{ 10.0 ** 400 }}", "10.0 ** 400", "too large", NULL },
    { "{{ (-8) ** 0.5 }}", "(-8) ** 0.5", "not a real number", NULL },
    { "{{ {1: 2} }}", "1", "the key of a mapping is text", "quotes" },
    { "{% for x in 3 %}{% endfor %}", "3", "no items to go through", "range(n)" },
    { "{% for a, b in [1] %}{% endfor %}", "[1]", "no items to go through", NULL },
    { "{% set a, b = [1, 2, 3] %}", "[1, 2, 3]", "2 names cannot take 3 values", NULL },
    { "{{ n", "{{", "`{{` is never closed by `}}`", NULL },
    { "{% if n", "{%", "`{%` is never closed by `%}`", NULL },
    { "{% if n %}x", "if", "never closed by `{% endif %}`", NULL },
    { "{% for x in xs %}", "for", "never closed by `{% endfor %}`", NULL },
    { "{# x", "{#", "the comment is never closed", NULL },
    { "{% raw %}x", "{% raw %}", "`raw` is never closed", NULL },
    { "{% endif %}", "endif", "`endif` without `if` before it", NULL },
    { "{{ 'abc }}", "'", "never closed", NULL },
    { "{{ (1 }}", "}", "`}` stands where `)` is expected", NULL },
    { "{{ ) }}", ")", "`)` closes nothing", NULL },
    { "{{ 1 2 }}", "2", "an operator or `}}` is expected", NULL },
    { "{{ }}", "}}", "the end stands where a value is expected", NULL },
    { "{{ n $ 2 }}", "$", "has no meaning", NULL },
    { "{{ '\\x00' }}", "'\\x00'", "an escape that is no character", NULL },
    { "{{ '%d' % 'x' }}", "'%d' % 'x'", "takes a number", NULL },
    { "{{ '%d %d' % 1 }}", "'%d %d' % 1", "more than the 1 values", NULL },
};

static void an_error_points_at_the_exact_piece_and_says_how_to_mend_it(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct diag *diag = failure(*state, plain(bad[i].text));
        const char *piece = bad[i].text + diag->place.offset - 100;

        if (diag->place.offset < 100 || diag->place.length != strlen(bad[i].piece) ||
            strncmp(piece, bad[i].piece, diag->place.length) != 0)
            fail_msg("%s: points at `%.*s`", bad[i].text, (int)diag->place.length, piece);
        if (!strstr(diag->message, bad[i].message))
            fail_msg("%s: says `%s`", bad[i].text, diag->message);
        if (bad[i].help && (!diag->help || !strstr(diag->help, bad[i].help)))
            fail_msg("%s: helps with `%s`", bad[i].text, diag->help ? diag->help : "nothing");
    }
}

/* As Jinja2 does. */
static void what_is_not_defined_prints_as_nothing_and_is_an_error_elsewhere(void **state) {
    static const struct {
        const char *text, *rendered; /* NULL: it is an error */
    } cases[] = {
        { "a {{ nope }} b", "a  b" },
        { "{{ nope }}{{ nope2 }}", "" },
        { "{{ opt.nope }}x", "x" },
        { "{{ xs[7] }}", "" },
        { "{{ nope + 1 }}", NULL },
        { "{{ nope.x }}", NULL },
        { "{% for x in nope %}{% endfor %}", NULL },
        { "{{ nope | upper }}", NULL },
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node out;
        int status;

        diags_free(fixture->diags);
        fixture->diags = diags_new();
        status = render(fixture, plain(cases[i].text), &out);
        assert_int_equal(status, cases[i].rendered ? 0 : -1);
        assert_true(cases[i].rendered ? fixture->diags->warnings > 0 && fixture->diags->errors == 0
                                      : fixture->diags->errors == 1);
        if (cases[i].rendered)
            assert_string_equal(out.text, cases[i].rendered);
    }
}

static void a_quoted_text_without_escapes_is_pointed_into_behind_its_quote(void **state) {
    struct node text = plain("{{ nam }}");
    const struct diag *diag;

    text.flags = NODE_QUOTED;
    text.length += 2;
    diag = failure(*state, text);
    assert_int_equal(diag->place.offset, 100 + 1 + 3);
    assert_int_equal(diag->place.length, 3);
}

static void a_text_that_differs_from_its_source_is_pointed_at_whole(void **state) {
    struct node escaped = plain("a {{ nam }}"), rendered = plain("a {{ nam }}");
    const struct diag *diag;

    escaped.flags = NODE_QUOTED;
    escaped.length += 5;
    diag = failure(*state, escaped);
    assert_int_equal(diag->place.offset, 100);
    assert_int_equal(diag->place.length, escaped.length);
    assert_string_equal(diag->message,
                        "`nam` is not defined, at `nam` in this text: it becomes an empty text");

    rendered.flags = NODE_RENDERED;
    assert_int_equal(failure(*state, rendered)->place.offset, 100);
}

static void without_params_the_help_says_where_to_add_them(void **state) {
    struct fixture *fixture = *state;

    fixture->names = node_map(NULL, 0, (struct place){ 0 });
    assert_non_null(strstr(failure(fixture, plain("{{ lr }}"))->help, "add `lr` to `params`"));
}

/* Texts that would take for ever, or all memory. */
static void a_bomb_is_an_error_in_bounded_time(void **state) {
    static const char *const bombs[] = {
        "{{ range(1000000000000000000) }}",
        "{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}",
        "{{ 'x' * 1000000000000 }}",
        "{{ [0] * 1000000000000 }}",
        "{{ '%999999999d' % 1 }}",
        "{% set s = 'xxxxxxxxxxxxxxxx' * 60000 %}{{ s ~ s }}",
        "{% set s = 'x' * 60000 %}{{ s | replace('', s) }}",
        "{% set s = 'x' * 900000 %}{% for i in range(9999) %}{% if s == s ~ '' %}{% endif %}{% "
        "endfor %}",
        "{% for i in range(999) %}{% set x = range(9999) | list %}{% endfor %}",
    };
    clock_t before = clock();

    for (size_t i = 0; i < ARRAY_LEN(bombs); i++)
        failure(*state, plain(bombs[i]));
    assert_true(clock() - before < 20 * CLOCKS_PER_SEC);
}

static char *repeated(struct fixture *fixture, const char *head, const char *body, int n,
                      const char *tail) {
    struct buf text = BUF_INIT(1 << 20);
    struct error err;
    char *kept;

    assert_int_equal(buf_printf(&text, &err, "%s", head), 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(buf_printf(&text, &err, "%s", body), 0);
    assert_int_equal(buf_printf(&text, &err, "%s", tail), 0);
    kept = arena_text(&fixture->arena, text.data, text.len);
    buf_release(&text);
    return kept;
}

static void nesting_has_a_floor(void **state) {
    struct fixture *f = *state;

    failure(f, plain(repeated(f, "{{ ", "(", 5000, "1")));
    failure(f, plain(repeated(f, "{{ ", "[", 5000, "1")));
    failure(f, plain(repeated(f, "{{ ", "-", 5000, "1 }}")));
    failure(f, plain(repeated(f, "{{ ", "not ", 5000, "1 }}")));
    failure(f, plain(repeated(f, "{{ 1", "+1", 5000, " }}")));
    failure(f, plain(repeated(f, "{{ n", "|abs", 5000, " }}")));
    failure(f, plain(repeated(f, "{{ n", ".a", 5000, " }}")));
    failure(f, plain(repeated(f, "{{ 1", " if 1 else 1", 5000, " }}")));
    failure(f, plain(repeated(f, "", "{% if 1 %}", 5000, "")));
    failure(f, plain(repeated(f, "{% set x = [] %}", "{% set x = [x] %}", 500, "{{ x }}")));
    failure(f, plain(repeated(f, "{% set x = [1] %}", "{% set x = [x, x] %}", 60, "{{ x }}")));
    failure(f, plain(repeated(f, "{% set x = [1] %}{% set y = [1] %}",
                              "{% set x = [x, x] %}{% set y = [y, y] %}", 60, "{{ x == y }}")));
    assert_renders(f, repeated(f, "{{ ", "(", 20, "1))))))))))))))))))))  }}"), "1");
    assert_renders(f, repeated(f, "{{ 1", "+1", 99, " }}"), "100");
    assert_renders(f, repeated(f, "{% if 0 %}", "{% elif 0 %}", 5000, "{% else %}x{% endif %}"),
                   "x");
}

static void the_output_and_the_steps_end_where_the_context_says(void **state) {
    struct fixture *fixture = *state;
    const struct template_context narrow = {
        .names = &fixture->names, .arena = &fixture->arena, .output_max = 4, .steps_max = 20
    };
    struct node exact = plain("{{ 'abcd' }}"), over = plain("abcde"),
                steps = plain("{% for i in range(20) %}{% endfor %}"), out;

    assert_int_equal(template_render(&narrow, &exact, &out, fixture->diags), 0);
    assert_string_equal(out.text, "abcd");
    assert_int_equal(template_render(&narrow, &over, &out, fixture->diags), -1);
    assert_int_equal(template_render(&narrow, &steps, &out, fixture->diags), -1);
}

static void literals_read_as_python_reads_them(void **state) {
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_LEN(literals); i++) {
        AUTO(buf) printed = BUF_INIT(4096);
        struct node value;
        struct error err;
        int failed = literal_read(&fixture->arena, literals[i].text, strlen(literals[i].text),
                                  (struct place){ 9, 1, 1 }, &value);

        if (failed != (literals[i].expected ? 0 : -1))
            fail_msg("%s: %s", literals[i].text, failed ? "is no literal" : "is a literal");
        if (failed)
            continue;
        assert_int_equal(value.offset, 9);
        assert_int_equal(value_print_quoted(&value, &printed, &err), 0);
        assert_string_equal(printed.data, literals[i].expected);
    }
}

static void what_a_node_cannot_hold_is_no_literal(void **state) {
    struct fixture *fixture = *state;
    struct node value;

    for (size_t i = 0; i < ARRAY_LEN(beyond_nodes); i++)
        assert_int_equal(literal_read(&fixture->arena, beyond_nodes[i], strlen(beyond_nodes[i]),
                                      (struct place){ 0 }, &value),
                         -1);
    for (int n = 60; n < 70; n++) {
        const char *text = repeated(fixture, "", "[", n, "");

        assert_int_equal(
            literal_read(&fixture->arena, text, strlen(text), (struct place){ 0 }, &value), -1);
    }
}

static void printing_that_does_not_fit_leaves_the_buffer_as_it_was(void **state) {
    struct fixture *fixture = *state;
    AUTO(buf) out = BUF_INIT(8);
    struct error err;

    assert_int_equal(buf_append(&out, "ab", 2, &err), 0);
    assert_int_equal(value_print(node_get(&fixture->names, "xs"), &out, &err), -1);
    assert_string_equal(out.data, "ab");
}

#define LAW(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest laws[] = {
        LAW(templates_render_as_jinja2_renders_them),
        LAW(what_jinja2_lacks_works_as_documented),
        LAW(a_rendered_text_has_the_place_of_its_template),
        LAW(only_a_text_with_a_tag_is_not_plain),
        LAW(an_error_points_at_the_exact_piece_and_says_how_to_mend_it),
        LAW(what_is_not_defined_prints_as_nothing_and_is_an_error_elsewhere),
        LAW(a_quoted_text_without_escapes_is_pointed_into_behind_its_quote),
        LAW(a_text_that_differs_from_its_source_is_pointed_at_whole),
        LAW(without_params_the_help_says_where_to_add_them),
        LAW(a_bomb_is_an_error_in_bounded_time),
        LAW(nesting_has_a_floor),
        LAW(the_output_and_the_steps_end_where_the_context_says),
        LAW(literals_read_as_python_reads_them),
        LAW(what_a_node_cannot_hold_is_no_literal),
        LAW(printing_that_does_not_fit_leaves_the_buffer_as_it_was),
    };

    return cmocka_run_group_tests(laws, NULL, NULL);
}
