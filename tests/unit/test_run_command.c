/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "spec/run_command.h"

static void continuation_backslashes_go_wherever_yaml_put_them(void **state) {
    static const struct {
        const char *text, *line;
    } cases[] = {
        { "python train.py", "python train.py" },
        { "python train.py \\\n  --a=1 \\\n  --b=2\n",
          "python train.py --a=1 --b=2" },                                      /* literal */
        { "python train.py \\ --a=1 \\ --b=2", "python train.py --a=1 --b=2" }, /* folded */
        { "python train.py\\\n--a=1", "python train.py --a=1" },
        { "python train.py --a=1 \\", "python train.py --a=1" },
        { "\\\npython train.py", "python train.py" },
        { "a \\\\ b \\\\\\", "a b" },
        { "  a\n\n  b  \n", "a b" },
        { "a\r\n b", "a b" },
        { "echo a\\ b", "echo a b" },
        { "echo 'x  y'", "echo 'x  y'" }, /* blanks within a line stay */
        { "sed s/a\\.b/c/ f", "sed s/a\\.b/c/ f" },
        { "echo \\$HOME", "echo $HOME" },
        { "\\", "" },
        { " \n\\\n ", "" },
        { "", "" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf) line = BUF_INIT(4096);
        struct error err;

        assert_int_equal(run_command_append(cases[i].text, &line, &err), 0);
        assert_string_equal(line.data ? line.data : "", cases[i].line);
    }
}

static void texts_of_a_list_run_one_after_the_other(void **state) {
    AUTO(buf) line = BUF_INIT(4096);
    struct error err;

    (void)state;
    assert_int_equal(run_command_append("\\", &line, &err), 0);
    assert_int_equal(run_command_append("pip install x \\\n", &line, &err), 0);
    assert_int_equal(run_command_append("python a.py \\\n --b", &line, &err), 0);
    assert_string_equal(line.data, "pip install x && python a.py --b");
}

static void what_is_clean_stays_as_it_is(void **state) {
    static const char *const texts[] = { "a \\ b\\\n c", "python  -c 'x'", "\\a\\ \\\n b && c" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO(buf) once = BUF_INIT(4096);
        AUTO(buf) twice = BUF_INIT(4096);
        struct error err;

        assert_int_equal(run_command_append(texts[i], &once, &err), 0);
        assert_int_equal(run_command_append(once.data, &twice, &err), 0);
        assert_string_equal(once.data, twice.data);
    }
}

static void several_commands_in_one_text_are_noticed(void **state) {
    static const struct {
        const char *text, *joined; /* NULL: nothing is wrong */
    } cases[] = {
        { "python train.py", NULL },
        { "pip install x\npython train.py\n", "python train.py" },
        { "cd src\n\n  python train.py --a\n", "python train.py --a" },
        { "# prepare\npython train.py", "python train.py" },
        { "python train.py \\\n--a \\\nb\n", NULL },
        { "python train.py\n  --a=1\n  --b=2", NULL },
        { "cd src &&\npython train.py", NULL },
        { "cd src\n&& python train.py", NULL },
        { "a;\nb", NULL },
        { "a |\nb", NULL },
        { "python -c 'import a\nprint(1)'", NULL },
        { "python -c \"import a\nprint(1)\"\necho done", "echo done" },
        { "python train.py\n'quoted argument'", NULL },
        { "\n\n", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *line = NULL;
        size_t n = 0;

        assert_int_equal(run_command_joins_commands(cases[i].text, &line, &n),
                         cases[i].joined != NULL);
        if (cases[i].joined) {
            assert_int_equal(n, strlen(cases[i].joined));
            assert_memory_equal(line, cases[i].joined, n);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(continuation_backslashes_go_wherever_yaml_put_them),
        cmocka_unit_test(texts_of_a_list_run_one_after_the_other),
        cmocka_unit_test(what_is_clean_stays_as_it_is),
        cmocka_unit_test(several_commands_in_one_text_are_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
