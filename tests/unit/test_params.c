/* SPDX-License-Identifier: Apache-2.0 */
/* Params, templates over them, and declared inputs and outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "reading.h"
#include "spec/params.h"

#define HEAD "version: 1\nkind: experiment\n"

static struct reading reading_with(const char *text, const char *const *params) {
    return reading_all((const char *const[]){ text, NULL }, params);
}

static void params_are_rendered_against_each_other_and_into_the_command(void **state) {
    static const struct {
        const char *params, *cmd, *expected;
    } rows[] = {
        { "{lr: 0.1}", "x {{ lr }}", "x 0.1" },
        { "{a: 1, b: '{{ a }}2'}", "{{ b + 1 }}", "13" },
        { "{a: '{{ b }}', b: '{{ c }}', c: 7}", "{{ a }}", "7" },
        { "{a: \"[1, 'x']\"}", "{{ a[1] }}", "x" },
        { "{a: {b: [1, 2]}}", "{{ a.b[1] }}", "2" },
        { "{a: yes, b: ~}", "{{ a }} {{ b }}", "True None" },
        { "{n: 2}", "{% for i in range(n) %}{{ i }} {% endfor %}", "0 1" },
        { "{a: '{{ jobs.1.outputs.x }}'}", "x", "x" },
        { "{a: 1}", "x\\n  y \\\\\\n z", "x y z" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[500];

        snprintf(text, sizeof text, HEAD "params: %s\nrun: {cmd: \"%s\"}\n", rows[i].params,
                 rows[i].cmd);
        AUTO(reading) r = reading_of(text);

        if (!r.spec)
            fail_msg("%s", reading_said(&r));
        assert_string_equal(r.spec->command, rows[i].expected);
    }
}

static void params_of_the_command_line_win_and_the_last_of_them_first(void **state) {
    static const char text[] = HEAD "declarations: {a: 1, b: {x: 1}}\n"
                                    "run: {cmd: \"{{ a }} {{ b }} {{ c }}\"}\n";
    AUTO(reading)
    r = reading_with(text, (const char *const[]){ "a=2", "c=x=y", "a=3", "b={'x': 2}", NULL });
    AUTO(reading)
    none = reading_with(HEAD "run: {cmd: \"{{ a }}\"}\n", (const char *const[]){ "a=", NULL });

    (void)state;
    if (!r.spec)
        fail_msg("%s", reading_said(&r));
    assert_string_equal(r.spec->command, "3 {'x': 2} x=y");
    assert_null(none.spec); /* an empty command */
}

static void files_are_merged_from_left_to_right(void **state) {
    AUTO(reading)
    r = reading_all(
        (const char *const[]){ HEAD "params: {a: 1, b: 1}\nrun: {cmd: \"{{ a }} {{ b }}\"}\n",
                               "params: {b: 2}\nname: x\n", "name: y\n", NULL },
        (const char *const[]){ NULL });

    (void)state;
    if (!r.spec)
        fail_msg("%s", reading_said(&r));
    assert_string_equal(r.spec->command, "1 2");
    assert_string_equal(r.spec->name, "y");
}

static void a_mistake_is_told_in_the_file_that_made_it(void **state) {
    AUTO(reading)
    r = reading_all((const char *const[]){ HEAD, "\nnmae: x\n", NULL },
                    (const char *const[]){ NULL });
    AUTO(reading) param = reading_with(HEAD, (const char *const[]){ "a=1", "=3", NULL });
    AUTO(reading) dashes = reading_with(HEAD, (const char *const[]){ "novalue", NULL });

    (void)state;
    assert_diag(&r, 0, 2, 1, "has no field `nmae`", "`name`");
    assert_int_equal(r.diags->list[0].place.source, 1);
    assert_diag(&param, 0, 1, 1, "a param is given as name=value", "-P lr=0.1");
    assert_int_equal(param.diags->list[0].place.source, 2);
    assert_diag(&dashes, 0, 1, 1, "a param is given as name=value", "-P lr=0.1");
}

static void wrong_params_are_told(void **state) {
    static const struct {
        const char *text;
        uint32_t line, column;
        const char *message, *help;
    } rows[] = {
        { HEAD "params: {a: '{{ b }}', b: '{{ a }}'}\n", 3, 9, "in a circle", NULL },
        { HEAD "params: {a: 'x{{ a }}'}\n", 3, 13, "the rendered text is larger than", NULL },
        { HEAD "params: {rate: 1}\nrun: {cmd: \"x {{ rat }}\"}\n", 4, 18, "rat", "rate" },
        { HEAD "params: {rate: 1}\nrun:\n  cmd: x {{ rat }}\n", 5, 13, "rat", "rate" },
        { HEAD "params: {rate: 1}\nrun:\n  cmd: |\n    x;\n    y {{ rat }}\n", 6, 1,
          "at `rat` in this text", "rate" },
        { HEAD "params: {rate: 1, b: 'x {{ rat }}'}\n", 3, 28, "rat", "rate" },
        /* declared inputs and outputs */
        { HEAD "inputs: [{name: a, type: int}]\n", 3, 17, "the input `a` needs a param", NULL },
        { HEAD "inputs: [{name: a, type: int}]\nparams: {a: x}\n", 4, 13,
          "`a` takes a whole number, not text", NULL },
        { HEAD "inputs: [{name: a, type: float}]\nparams: {a: [1]}\n", 4, 13, "`a` takes a number",
          NULL },
        { HEAD "inputs: [{name: a, type: bool}]\nparams: {a: 1}\n", 4, 13,
          "`a` takes True or False", NULL },
        { HEAD "inputs: [{name: a, type: list}]\nparams: {a: 1}\n", 4, 13, "`a` takes a list",
          NULL },
        { HEAD "inputs: [{name: a, type: dict}]\nparams: {a: 1}\n", 4, 13, "`a` takes a mapping",
          NULL },
        { HEAD "inputs: [{name: a, type: dict_of_dicts}]\nparams: {a: {b: 1}}\n", 4, 13,
          "a mapping of mappings", NULL },
        { HEAD "inputs: [{name: a, type: int, is_list: true}]\nparams: {a: 1}\n", 4, 13,
          "`a` takes a list", NULL },
        { HEAD "inputs: [{name: a, type: int, is_list: true}]\nparams: {a: [1, x]}\n", 4, 17,
          "`a` takes a whole number, not text", NULL },
        { HEAD "inputs: [{name: a, options: [1, 2]}]\nparams: {a: 3}\n", 4, 13,
          "`a` may not have this value", NULL },
        { HEAD "inputs: [{name: a, type: int, is_flag: true}]\nparams: {a: 1}\n", 3, 26,
          "a flag has the type bool", NULL },
        { HEAD "inputs: [{name: a, default: 1}]\nparams: {a: 1}\n", 3, 20,
          "a default makes sense only for what is optional", "is_optional: true" },
        { HEAD "inputs: [{name: a}]\nparams: {a: 1, z: 2}\n", 4, 16,
          "the param `z` is neither an input nor an output", "declare it" },
        { HEAD "inputs: [{type: int}]\n", 3, 10, "needs the field `name`", NULL },
        { HEAD "inputs: [{name: a, type: integer}]\nparams: {a: 1}\n", 3, 26,
          "`type` may not be `integer`", "the choices are" },
    };
    size_t wrong = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(reading) r = reading_of(rows[i].text);
        bool differs =
            reading_differs(&r, 0, rows[i].line, rows[i].column, rows[i].message, rows[i].help);

        if (!differs && r.diags->errors + r.diags->warnings != 1) {
            differs = true;
            print_error("more is said:\n%s\n", reading_said(&r));
        }
        if (differs)
            print_error("of the file:\n%s\n", rows[i].text);
        wrong += differs;
    }
    assert_int_equal(wrong, 0);
}

static void a_param_that_the_file_does_not_use_is_told_with_the_one_that_was_meant(void **state) {
    static const struct {
        const char *text, *param;
        enum severity severity;
        const char *message, *help; /* NULL: nothing is said */
    } rows[] = {
        { "params: {lr: 1}\nrun: {cmd: 'x {{ lr }}'}\n", "lr=2", SEVERITY_WARNING, NULL, NULL },
        { "params: {lr: 1}\nrun: {cmd: x}\n", "lr=2", SEVERITY_WARNING, NULL, NULL },
        { "declarations: {lr: 1}\nrun: {cmd: x}\n", "lr=2", SEVERITY_WARNING, NULL, NULL },
        { "params: {lr: 1}\nrun: {cmd: x}\n", "learning_rate=2", SEVERITY_WARNING,
          "does not use a param `learning_rate`", "did you mean `lr`?" },
        { "params: {lr: 1, epochs: 2}\nrun: {cmd: x}\n", "momentum=2", SEVERITY_WARNING,
          "does not use a param `momentum`", "the file has the params lr, epochs" },
        { "run: {cmd: x}\n", "lr=2", SEVERITY_WARNING, "does not use a param `lr`",
          "the file has no params" },
        /* what a template names is known, also where it is not rendered now */
        { "run: {cmd: 'x {{ lr }}'}\n", "lr=2", SEVERITY_WARNING, NULL, NULL },
        { "run: {cmd: 'x {% if false %}{{ lr }}{% endif %}'}\n", "lr=2", SEVERITY_WARNING, NULL,
          NULL },
        { "run: {cmd: 'x {{ lr | default(1) }}'}\n", "lr=2", SEVERITY_WARNING, NULL, NULL },
        { "params: {a: '{{ lr }}'}\nrun: {cmd: x}\n", "lr=2", SEVERITY_WARNING, NULL, NULL },
        { "params: {a: {lr: 1}}\nrun: {cmd: 'x {{ a.lr }}'}\n", "lr=2", SEVERITY_WARNING,
          "does not use a param `lr`", "the file has the params a" },
        { "run: {cmd: 'x lr'}\n", "lr=2", SEVERITY_WARNING, "does not use a param `lr`",
          "the file has no params" },
        /* a file that declares its inputs refuses all others */
        { "inputs: [{name: lr, is_optional: true}]\nrun: {cmd: x}\n", "lr=2", SEVERITY_ERROR, NULL,
          NULL },
        { "inputs: [{name: lr, is_optional: true}]\nrun: {cmd: x}\n", "learning_rate=2",
          SEVERITY_ERROR, "`learning_rate` is neither an input nor an output",
          "did you mean `lr`?" },
        { "inputs: [{name: lr, is_optional: true}]\nrun: {cmd: x}\n", "momentum=2", SEVERITY_ERROR,
          "`momentum` is neither an input nor an output", "declare it under `inputs`" },
    };
    size_t wrong = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[500];
        bool differs;

        snprintf(text, sizeof text, HEAD "%s", rows[i].text);
        AUTO(reading) r = reading_with(text, (const char *const[]){ rows[i].param, NULL });

        differs = rows[i].message ? reading_differs(&r, 0, 1, 1, rows[i].message, rows[i].help) ||
                                        r.diags->list[0].severity != rows[i].severity ||
                                        r.diags->list[0].place.source != 1
                                  : r.diags->len > 0;
        if (differs)
            print_error("of -P %s and the file:\n%s%s\n", rows[i].param, text, reading_said(&r));
        wrong += differs;
    }
    assert_int_equal(wrong, 0);
}

static void declared_params_get_their_defaults_and_flags(void **state) {
    static const char text[] =
        HEAD "inputs:\n"
             "- {name: lr, type: float, default: 0.5, is_optional: true}\n"
             "- {name: debug, type: bool, is_flag: true, default: false, is_optional: true}\n"
             "- {name: sizes, type: int, is_list: true}\n"
             "- {name: none, is_optional: true}\n"
             "outputs: [{name: loss, type: metric}]\n"
             "run: {cmd: \"x {{ lr }} {{ debug }} {{ sizes[1] }} {{ none }}\"}\n";
    AUTO(reading)
    r = reading_with(text, (const char *const[]){ "sizes=[4, 5]", "debug=True", NULL });
    AUTO(reading) off = reading_with(text, (const char *const[]){ "sizes=[4, 5]", "lr=3", NULL });

    (void)state;
    if (!r.spec || !off.spec)
        fail_msg("%s%s", reading_said(&r), reading_said(&off));
    assert_string_equal(r.spec->command, "x 0.5 --debug 5 None");
    assert_string_equal(off.spec->command, "x 3  5 None");
}

static void a_reference_to_another_run_is_told_from_a_template(void **state) {
    static const struct {
        const char *text;
        bool is_reference;
    } rows[] = {
        { "{{ jobs.1.outputs.x }}", true },
        { "{{experiments.abc.outputs.loss}}", true },
        { " {{ ops.a.outputs.b }} ", true },
        { "{{ jobs.1.x }}", false },
        { "{{ jobs.1.outputs.x }} y", false },
        { "{{ job }}", false },
        { "jobs.1.outputs.x", false },
        { "{{ jobs.1.outputs.x", false },
        { "", false },
        { "{{", false },
        { "{{ jobs.", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(param_is_reference(rows[i].text), rows[i].is_reference);
}

static void a_section_may_come_whole_out_of_a_param(void **state) {
    AUTO(reading)
    r = reading_of(HEAD "framework: tensorflow\n"
                        "params:\n"
                        "  env: \"{'replicas': {'n_workers': 2, 'worker': [{'index': 1}]}}\"\n"
                        "environment: \"{{ env }}\"\n"
                        "run: {cmd: a}\n");
    AUTO(reading)
    list =
        reading_of(HEAD "framework: tensorflow\n"
                        "params: {workers: \"[{'index': 1}]\", n: 2}\n"
                        "environment: {replicas: {n_workers: '{{ n }}', worker: '{{ workers }}'}}\n"
                        "run: {cmd: a}\n");
    AUTO(reading)
    wrong = reading_of(HEAD "params: {env: '[1]'}\n"
                            "environment: '{{ env }}'\n"
                            "run: {cmd: a}\n");

    (void)state;
    if (!r.spec || !list.spec)
        fail_msg("%s%s", reading_said(&r), reading_said(&list));
    assert_int_equal(r.spec->roles[ROLE_WORKER].count, 2);
    assert_int_equal(r.spec->roles[ROLE_WORKER].n_replicas, 1);
    assert_int_equal(list.spec->roles[ROLE_WORKER].n_replicas, 1);
    assert_diag(&wrong, 0, 4, 14, "`environment` takes a mapping, not a list", NULL);
}

static void keys_that_templates_make_equal_are_told(void **state) {
    AUTO(reading)
    r = reading_of(HEAD "params: {k: level}\n"
                        "logging: {level: INFO, '{{ k }}': DEBUG}\n"
                        "run: {cmd: a}\n");

    (void)state;
    assert_diag(&r, 0, 4, 24, "`level` is given twice", NULL);
    assert_note(&r, 0, 4, 11, "it is given here already");
}

static void templates_cannot_make_more_text_than_a_limit(void **state) {
    AUTO(reading) r = reading_of(HEAD "params: {a: 'xx{{ a }}{{ a }}'}\nrun: {cmd: a}\n");

    (void)state;
    assert_null(r.spec);
    assert_true(r.diags->errors >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(params_are_rendered_against_each_other_and_into_the_command),
        cmocka_unit_test(params_of_the_command_line_win_and_the_last_of_them_first),
        cmocka_unit_test(files_are_merged_from_left_to_right),
        cmocka_unit_test(a_mistake_is_told_in_the_file_that_made_it),
        cmocka_unit_test(wrong_params_are_told),
        cmocka_unit_test(a_param_that_the_file_does_not_use_is_told_with_the_one_that_was_meant),
        cmocka_unit_test(declared_params_get_their_defaults_and_flags),
        cmocka_unit_test(a_reference_to_another_run_is_told_from_a_template),
        cmocka_unit_test(a_section_may_come_whole_out_of_a_param),
        cmocka_unit_test(keys_that_templates_make_equal_are_told),
        cmocka_unit_test(templates_cannot_make_more_text_than_a_limit),
    };

    return cmocka_run_group_tests_name("params", tests, NULL, NULL);
}
