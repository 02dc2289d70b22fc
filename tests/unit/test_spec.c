/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong polyaxonfiles and what is said of them. What is right in a file is test_topology.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "reading.h"

#define HEAD "version: 1\nkind: experiment\n" /* lines 1 and 2 */
#define CMD  "run: {cmd: a}\n"                /* line 3 */

struct row {
    const char *text;
    uint32_t line, column;
    const char *message, *help;
    uint32_t note_line, note_column; /* 0: no note */
};

static void assert_rows(const struct row *rows, size_t n, size_t warnings_only) {
    size_t wrong = 0;

    for (size_t i = 0; i < n; i++) {
        AUTO(reading) r = reading_of(rows[i].text);
        bool differs =
            reading_differs(&r, 0, rows[i].line, rows[i].column, rows[i].message, rows[i].help);

        if (!differs && rows[i].note_line)
            differs = reading_note_differs(&r, 0, rows[i].note_line, rows[i].note_column, "");
        if (!differs && !rows[i].note_line && r.diags->list[0].note)
            differs = true;
        if (!differs && r.diags->errors + r.diags->warnings != 1)
            differs = true;
        if (!differs && (r.spec != NULL) != (warnings_only == 1))
            differs = true;
        if (differs)
            print_error("file %zu:\n%s\n---- says:\n%s----\n", i, rows[i].text, reading_said(&r));
        wrong += differs;
    }
    assert_int_equal(wrong, 0);
}

static void a_file_that_is_no_polyaxonfile_is_told(void **state) {
    static const struct row rows[] = {
        { "", 1, 1, "there is nothing in this file", "version: 1", 0, 0 },
        { "# x\n", 1, 1, "there is nothing in this file", "version: 1", 0, 0 },
        { "hello\n", 1, 1, "this is no polyaxonfile: it is text", "kind: experiment", 0, 0 },
        { "- a\n", 1, 1, "it is a list, not a mapping", "version: 1", 0, 0 },
        { "version: 1\n", 1, 1, "does not say its `kind`", "add `kind: experiment`", 0, 0 },
        { "version: 1\nkind:\n", 1, 1, "does not say its `kind`", "add", 0, 0 },
        { "version: 1\nkind: experimnt\n", 2, 7, "there is no kind `experimnt`", "experiment", 0,
          0 },
        { "version: 1\nkind: [x]\n", 2, 7, "`kind` takes text, not a list", "experiment and job", 0,
          0 },
        { "version: 1\nkind: group\n", 2, 7, "does not run files of kind `group`", "kind: job", 0,
          0 },
        { "version: 1.1\nkind: component\n", 2, 7, "a file of Polyaxon 1.x", "Polyaxon 0.x", 0, 0 },
        { "version: 1\nkind: operation\n", 2, 7, "a file of Polyaxon 1.x", "Polyaxon 0.x", 0, 0 },
        { "version: 1\nkind: notebook\n", 2, 7, "does not run files of kind", "kind: job", 0, 0 },
        { "kind: experiment\nrun: {cmd: a}\n", 1, 1, "needs the field `version`", NULL, 0, 0 },
        { "version:\nkind: experiment\n", 1, 1, "needs the field `version`", NULL, 0, 0 },
        { "version: 2\nkind: experiment\n", 1, 10, "`version` is out of range", "it has to be 1", 0,
          0 },
        { "version: 1.5\nkind: experiment\n", 1, 10, "`version` takes a whole number", NULL, 0, 0 },
        { "version: one\nkind: experiment\n", 1, 10, "`version` takes a whole number", NULL, 0, 0 },
        { "version: [1]\nkind: experiment\n", 1, 10, "whole number, not a list", NULL, 0, 0 },
        { "version: 1\nkind: job\nrun: {cmd: a}\n", 1, 1, "a job needs the field `build`", NULL, 0,
          0 },
        { "version: 1\nkind: job\nbuild: {image: a}\n", 1, 1, "needs the field `run`", NULL, 0, 0 },
        { "version: 1\nkind: job\nbuild: {image: a}\nrun: {cmd: a}\nenvironment: {replicas: {}}\n",
          5, 15, "has no field `replicas`", NULL, 0, 0 },
    };

    (void)state;
    assert_rows(rows, ARRAY_LEN(rows), 0);
}

static void an_unknown_field_is_told_with_what_was_meant(void **state) {
    static const struct row rows[] = {
        { HEAD CMD "enviroment: {}\n", 4, 1, "an experiment has no field `enviroment`",
          "did you mean `environment`?", 0, 0 },
        { HEAD CMD "zzz: {}\n", 4, 1, "has no field `zzz`", NULL, 0, 0 },
        { HEAD CMD "model: {}\n", 4, 1, "has no field `model`", "gone since Polyaxon 0.5", 0, 0 },
        { HEAD CMD "hptuning: {}\n", 4, 1, "has no field `hptuning`", "kind: group", 0, 0 },
        { HEAD CMD "environment: {cluster_uuid: x}\n", 4, 15, "has no field `cluster_uuid`", "gone",
          0, 0 },
        { HEAD CMD "environment: {resource: {}}\n", 4, 15, "has no field `resource`", "`resources`",
          0, 0 },
        { HEAD CMD "environment: {resources: {cpus: {}}}\n", 4, 27, "resources has no field `cpus`",
          "`cpu`", 0, 0 },
        { HEAD CMD "environment: {resources: {cpu: {limts: 1}}}\n", 4, 33,
          "a resource has no field `limts`", "`limits`", 0, 0 },
        { HEAD "run: {comand: a}\n", 3, 7, "run has no field `comand`", NULL, 0, 0 },
        { HEAD CMD "build: {image: a, imgae: b}\n", 4, 19, "build has no field `imgae`", "`image`",
          0, 0 },
        { HEAD CMD "framework: pytorch\nenvironment:\n  replicas: {n_workers: 1, n_worker: 2}\n", 6,
          28, "the topology has no field `n_worker`", "did you mean `n_workers`?", 0, 0 },
        { HEAD CMD "logging: {lvel: INFO}\n", 4, 11, "logging has no field `lvel`", "`level`", 0,
          0 },
    };

    (void)state;
    assert_rows(rows, ARRAY_LEN(rows), 0);
}

static void a_value_of_the_wrong_type_is_told(void **state) {
    static const struct row rows[] = {
        { HEAD CMD "name: 3\n", 4, 7, "`name` takes text, not a whole number", "quotes", 0, 0 },
        { HEAD CMD "name: yes\n", 4, 7, "`name` takes text, not a truth value", "quotes", 0, 0 },
        { HEAD CMD "name: [x]\n", 4, 7, "`name` takes text, not a list", NULL, 0, 0 },
        { HEAD CMD "name: a b\n", 4, 7, "`name` may hold only letters", NULL, 0, 0 },
        { HEAD CMD "name: ''\n", 4, 7, "`name` may hold only letters", NULL, 0, 0 },
        { HEAD CMD "tags: x\n", 4, 7, "`tags` takes a list of texts, not text", "write `tags: [x]`",
          0, 0 },
        { HEAD CMD "tags: [a, 1]\n", 4, 11, "`tags` takes a list of texts", NULL, 0, 0 },
        { HEAD CMD "tags: {a: b}\n", 4, 7, "`tags` takes a list of texts, not a mapping", NULL, 0,
          0 },
        { HEAD CMD "params: [a]\n", 4, 9, "`params` takes a mapping, not a list", NULL, 0, 0 },
        { HEAD CMD "environment: x\n", 4, 14, "`environment` takes a mapping, not text", NULL, 0,
          0 },
        { HEAD CMD "environment: [x]\n", 4, 14, "`environment` takes a mapping, not a list", NULL,
          0, 0 },
        { HEAD CMD "environment: {max_restarts: 1.5}\n", 4, 29, "takes a whole number", NULL, 0,
          0 },
        { HEAD CMD "environment: {max_restarts: -1}\n", 4, 29, "out of range", "0 to 1000", 0, 0 },
        { HEAD CMD "environment: {max_restarts: 1001}\n", 4, 29, "out of range", "0 to 1000", 0,
          0 },
        { HEAD CMD "environment: {max_restarts: .nan}\n", 4, 29, "takes a whole number", NULL, 0,
          0 },
        { HEAD CMD "environment: {max_restarts: 99999999999999999999999}\n", 4, 29, "out of range",
          "0 to 1000", 0, 0 },
        { HEAD CMD "environment: {labels: [a]}\n", 4, 23, "`labels` takes a mapping", NULL, 0, 0 },
        { HEAD CMD "environment: {tolerations: {a: b}}\n", 4, 28, "takes a list of mappings", NULL,
          0, 0 },
        { HEAD CMD "environment: {tolerations: [a]}\n", 4, 29, "takes a list of mappings", NULL, 0,
          0 },
        { HEAD CMD "environment: {outputs: {jobs: [[]]}}\n", 4, 32, "a list of names or ids", NULL,
          0, 0 },
        { HEAD "run: x\n", 3, 6, "`run` takes a mapping, not text", NULL, 0, 0 },
        { HEAD "run: {cmd: 3}\n", 3, 12, "`cmd` takes a text or a list of texts", "quotes", 0, 0 },
        { HEAD "run: {cmd: [a, 3]}\n", 3, 16, "`cmd` takes a text or a list of texts", NULL, 0, 0 },
        { HEAD "run: {cmd: ''}\n", 3, 7, "the command is empty", NULL, 0, 0 },
        { HEAD "run: {cmd: [' ', \"\\n\"]}\n", 3, 7, "the command is empty", NULL, 0, 0 },
        { HEAD "run: {cmd: []}\n", 3, 7, "the command is empty", NULL, 0, 0 },
        { HEAD CMD "logging: {level: LOUD}\n", 4, 18, "`level` may not be `LOUD`",
          "the choices are INFO, DEBUG, WARN, ERROR, FATAL", 0, 0 },
        { HEAD CMD "logging: {level: debug}\n", 4, 18, "`level` may not be `debug`",
          "did you mean `DEBUG`?", 0, 0 },
        { HEAD CMD "backend: nativ\n", 4, 10, "`backend` may not be `nativ`",
          "did you mean `native`?", 0, 0 },
        { HEAD CMD "backend: 1\n", 4, 10, "`backend` takes text", "quotes", 0, 0 },
        { HEAD CMD "build: {nocache: 1, image: a}\n", 4, 18, "`nocache` takes true or false", NULL,
          0, 0 },
        { HEAD CMD "build: {env_vars: [[a]], image: a}\n", 4, 20, "a list of [name, value]", NULL,
          0, 0 },
        { HEAD CMD "build: {env_vars: {a: b}, image: a}\n", 4, 19, "a list of [name, value]", NULL,
          0, 0 },
        { HEAD CMD "inputs: {a: b}\n", 4, 9, "`inputs` takes a list of mappings, not a mapping",
          NULL, 0, 0 },
        { HEAD CMD "inputs: [a]\n", 4, 10, "`inputs` takes a list of mappings, not text", NULL, 0,
          0 },
    };

    (void)state;
    assert_rows(rows, ARRAY_LEN(rows), 0);
}

#define CPU(what)    HEAD CMD "environment:\n  resources:\n    cpu: " what "\n"
#define MEMORY(what) HEAD CMD "environment:\n  resources:\n    memory: " what "\n"
#define GPU(what)    HEAD CMD "environment:\n  resources:\n    gpu: " what "\n"

static void wrong_resources_are_told(void **state) {
    static const struct row rows[] = {
        { CPU("1"), 6, 10, "`cpu` takes a mapping, not a whole number", NULL, 0, 0 },
        { CPU("{requests: 2, limits: 1}"), 6, 21, "cpu requests 2, which is more than its limit",
          NULL, 6, 32 },
        { CPU("{requests: -1}"), 6, 21, "`requests` may not be negative", NULL, 0, 0 },
        { CPU("{requests: -.inf}"), 6, 21, "`requests` may not be negative", NULL, 0, 0 },
        { CPU("{requests: .inf}"), 6, 21, "`requests` may be at most", NULL, 0, 0 },
        { CPU("{requests: .nan}"), 6, 21, "`requests` takes a number", NULL, 0, 0 },
        { CPU("{limits: 500m}"), 6, 19, "`500m` is not a number", "write 0.5", 0, 0 },
        { CPU("{limits: many}"), 6, 19, "`many` is not a number", NULL, 0, 0 },
        { CPU("{limits: [1]}"), 6, 19, "`limits` takes a number, not a list", NULL, 0, 0 },
        { CPU("{limits: 1, limit: 2}"), 6, 22, "two spellings of one field", NULL, 6, 11 },
        { MEMORY("{limits: 256Mi}"), 6, 22, "`256Mi` is not a number", "without a unit: write 256",
          0, 0 },
        { MEMORY("{limits: 2Gi}"), 6, 22, "`2Gi` is not a number", "write 2048", 0, 0 },
        { MEMORY("{limits: 9999999999}"), 6, 22, "`limits` may be at most 1000000000", NULL, 0, 0 },
        { GPU("{limits: 0.5}"), 6, 19, "a gpu cannot be divided", NULL, 0, 0 },
        { GPU("{requests: 1.5}"), 6, 21, "a gpu cannot be divided", NULL, 0, 0 },
    };

    (void)state;
    assert_rows(rows, ARRAY_LEN(rows), 0);
}

#define TF HEAD CMD "framework: tensorflow\nenvironment:\n  replicas:\n" /* lines 4 to 6 */

static void wrong_topologies_are_told_with_both_places(void **state) {
    static const struct row rows[] = {
        { TF "    n_workers: 2\n    worker: [{index: 2}]\n", 8, 22,
          "there is no worker with index 2", "valid indexes are 0 to 1", 7, 5 },
        { TF "    n_workers: 2\n    worker: [{index: -1}]\n", 8, 22, "no worker with index -1",
          "valid indexes are 0 to 1", 7, 5 },
        { TF "    n_workers: 1\n    worker: [{index: 1}]\n", 8, 22, "no worker with index 1",
          "the only valid index is 0", 7, 5 },
        { TF "    worker: [{index: 0}]\n", 7, 22, "no worker with index 0", "there is none", 0, 0 },
        { TF "    n_workers: 2\n    worker: [{labels: {a: b}}]\n", 8, 14,
          "this entry has no `index`", "valid indexes are 0 to 1", 0, 0 },
        { TF "    n_workers: 2\n    worker: [{index: 1}, {index: 1}]\n", 8, 34,
          "index 1 of worker is listed twice", NULL, 8, 22 },
        { TF "    n_workers: 2\n    worker: [{index: x}]\n", 8, 22, "`index` takes a whole number",
          NULL, 0, 0 },
        { TF "    n_ps: 1\n    ps: [{index: 3}]\n", 8, 18, "there is no ps with index 3", "is 0", 7,
          5 },
        { TF "    n_workers: -1\n", 7, 16, "`n_workers` is out of range", "0 to 1000000", 0, 0 },
        { TF "    n_workers: 1000001\n", 7, 16, "`n_workers` is out of range", "0 to 1000000", 0,
          0 },
        { TF "    n_workers: 1000000\n", 7, 5, "at most 1000000 tasks", NULL, 0, 0 },
        { TF "    n_workers: two\n", 7, 16, "`n_workers` takes a whole number", NULL, 0, 0 },
        { TF "    worker: {index: 1}\n", 7, 13, "takes a list of mappings, not a mapping", NULL, 0,
          0 },
        { TF "    n_workers: 2\n    worker: [{index: 1, resources: {}}]\n"
             "    worker_resources: [{index: 1}]\n",
          9, 24, "`resources` of worker 1 is given twice", NULL, 8, 25 },
        { TF "    n_workers: 2\n    default_worker: {resources: {}}\n"
             "    default_worker_resources: {}\n",
          9, 5, "`resources` of worker is given twice", NULL, 8, 22 },
        { TF "    n_workers: 2\n  tensorflow:\n    n_workers: 2\n", 7, 5,
          "`n_workers` of the topology is given twice", NULL, 9, 5 },
        { TF "    master: false\n", 7, 5, "without a master there has to be a worker", NULL, 0, 0 },
        { TF "    n_workers: 1\n    master: false\n  resources: {}\n", 9, 3,
          "`resources` is for the master here, and there is none",
          "`replicas: {default_worker: {resources: ...}}`", 8, 5 },
        { TF "    n_workers: 1\n    master: false\n  tolerations: []\n", 9, 3,
          "`tolerations` is for the master here, and there is none", "default_worker", 8, 5 },
        { HEAD CMD "environment:\n  pytorch: {n_workers: 1, master: false}\n", 5, 27,
          "pytorch always has a master", "only tensorflow can do without", 0, 0 },
        { HEAD CMD "environment:\n  pytorch: {n_workers: 1, n_ps: 1}\n", 5, 27,
          "pytorch has no parameter servers", "remove `n_ps`", 0, 0 },
        { HEAD CMD "environment:\n  horovod: {n_workers: 1, default_ps: {}}\n", 5, 27,
          "horovod has no parameter servers", "remove `default_ps`", 0, 0 },
        { HEAD CMD "environment:\n  replicas: {n_workers: 1}\n", 5, 3,
          "`replicas` needs to know the framework", "add `framework: tensorflow`", 0, 0 },
        { HEAD CMD "framework: pytroch\nenvironment:\n  replicas: {n_workers: 1}\n", 4, 12,
          "`pytroch` has no topology", "did you mean `pytorch`?", 0, 0 },
        { HEAD CMD "framework: jax\nenvironment:\n  replicas: {n_workers: 1}\n", 4, 12,
          "`jax` has no topology", "tensorflow, mxnet, pytorch and horovod", 0, 0 },
        { HEAD CMD "framework: pytorch\nenvironment:\n  tensorflow: {n_workers: 1}\n", 6, 3,
          "this section is for tensorflow, but `framework` says otherwise", NULL, 4, 12 },
        { HEAD CMD "environment:\n  tensorflow: {n_workers: 1}\n  pytorch: {}\n", 6, 3,
          "two frameworks are named: `tensorflow` and `pytorch`", NULL, 5, 3 },
        { HEAD CMD "backend: mpi\nframework: horovod\nenvironment:\n  replicas:\n    n_workers: 2\n"
                   "    worker: [{index: 0}]\n",
          9, 5, "the mpi backend has no `worker`", "all its workers are alike", 0, 0 },
    };

    (void)state;
    assert_rows(rows, ARRAY_LEN(rows), 0);
}

static void two_forms_of_one_thing_are_told(void **state) {
    static const struct row rows[] = {
        { HEAD CMD "params: {a: 1}\ndeclarations: {b: 1}\n", 5, 1, "two spellings of one field",
          NULL, 4, 1 },
        { HEAD CMD "environment: {node_selector: {}, node_selectors: {}}\n", 4, 34,
          "`node_selector` and `node_selectors` are two spellings", NULL, 4, 15 },
        { HEAD CMD "environment: {persistence: {}, data_refs: [a]}\n", 4, 15,
          "`persistence` is the old form of `data_refs`", NULL, 4, 32 },
        { TF "    n_workers: 1\n    default_worker: {artifact_refs: [a], persistence: {}}\n", 8, 42,
          "`persistence` is the old form of `artifact_refs`", NULL, 8, 22 },
        { HEAD CMD "build: {image: a, dockerfile: b}\n", 4, 1,
          "more than one of image, dockerfile and", "exactly one", 0, 0 },
        { HEAD CMD "build: {context: a}\n", 4, 1, "names no image, dockerfile or ref",
          "exactly one", 0, 0 },
        { HEAD CMD "build: {image: 'a b'}\n", 4, 16, "`a b` is not an image name", "[registry", 0,
          0 },
        { HEAD CMD "build: {image: 'a:b:c'}\n", 4, 16, "`a:b:c` is not an image name", "name[:tag]",
          0, 0 },
        { HEAD "run: {cmd: a, image: b}\nbuild: {image: c}\n", 3, 15, "the image is given twice",
          NULL, 4, 1 },
    };

    (void)state;
    assert_rows(rows, ARRAY_LEN(rows), 0);
}

static void what_has_no_effect_is_a_warning(void **state) {
    static const struct row rows[] = {
        { HEAD CMD "framework: pytroch\n", 4, 12, "the framework `pytroch` is not known",
          "did you mean `pytorch`?", 0, 0 },
        { TF "    n_workers: 1\n    run_config: {a: b}\n", 8, 5, "`run_config` has no effect", NULL,
          0, 0 },
        { TF "    n_workers: 1\n    default_worker: {index: 0}\n", 8, 22,
          "`index` has no effect in a default", NULL, 0, 0 },
        { HEAD CMD "logging: {path: x}\n", 4, 11, "`path` has no effect", NULL, 0, 0 },
        { HEAD CMD "environment:\n  pytorch:\n    n_workers: 1\n"
                   "    default_worker: {resources: {gpu: {limits: 2}}}\n",
          7, 22, "a rank uses one GPU of these 2", "2 times as many workers", 0, 0 },
        { HEAD CMD "environment: {mxnet: {n_workers: 1}}\n", 4, 23, "have nobody to talk to",
          "n_ps: 1", 0, 0 },
        { HEAD CMD "name: a\nname: b\n", 5, 1, "`name` is given twice; this one counts", NULL, 4,
          1 },
    };

    (void)state;
    assert_rows(rows, ARRAY_LEN(rows), 1);
}

static void all_mistakes_of_a_file_are_told_at_once(void **state) {
    AUTO(reading)
    r = reading_of("version: 2\n"
                   "kind: experiment\n"
                   "nmae: x\n"
                   "environment:\n"
                   "  resources: {gpu: {limits: 0.5}}\n"
                   "  max_restarts: -1\n"
                   "build: {}\n"
                   "run: {cmd: 3}\n");

    (void)state;
    assert_null(r.spec);
    assert_int_equal(r.diags->errors, 6);
    for (size_t i = 0; i < r.diags->len; i++)
        assert_non_null(r.diags->list[i].message);
    assert_diag(&r, 0, 1, 10, "`version` is out of range", "it has to be 1");
    assert_diag(&r, 1, 3, 1, "has no field `nmae`", "`name`");
    assert_diag(&r, 2, 6, 17, "`max_restarts` is out of range", "0 to 1000");
    assert_diag(&r, 3, 8, 12, "`cmd` takes", "quotes");
    assert_diag(&r, 4, 7, 1, "`build` names no image", "exactly one");
    assert_diag(&r, 5, 5, 29, "a gpu cannot be divided", NULL);
}

static void a_file_of_a_million_mistakes_is_told_in_a_hundred(void **state) {
    AUTO(buf) text = BUF_INIT(1 << 20);
    struct error err;
    int failed = buf_printf(&text, &err, TF "    n_workers: 2\n    worker:\n");

    (void)state;
    for (int i = 0; i < 5000; i++)
        failed |= buf_printf(&text, &err, "    - {index: %d, x: 1}\n", i + 2);
    assert_int_equal(failed, 0);
    AUTO(reading) r = reading_of(text.data);

    assert_int_equal(r.diags->errors, 10000);
    assert_int_equal(r.diags->len, DIAGS_MOST);
}

static void a_command_has_a_ceiling(void **state) {
    AUTO(buf) text = BUF_INIT(16 << 20);
    struct error err;
    int failed = buf_printf(&text, &err, HEAD "run:\n  cmd:\n");

    (void)state;
    for (int i = 0; i < 700000; i++)
        failed |= buf_append(&text, "  - a\n", 6, &err);
    assert_int_equal(failed, 0);
    AUTO(reading) r = reading_of(text.data);

    assert_diag(&r, 0, 4, 3, "the command is larger than", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_no_polyaxonfile_is_told),
        cmocka_unit_test(an_unknown_field_is_told_with_what_was_meant),
        cmocka_unit_test(a_value_of_the_wrong_type_is_told),
        cmocka_unit_test(wrong_resources_are_told),
        cmocka_unit_test(wrong_topologies_are_told_with_both_places),
        cmocka_unit_test(two_forms_of_one_thing_are_told),
        cmocka_unit_test(what_has_no_effect_is_a_warning),
        cmocka_unit_test(all_mistakes_of_a_file_are_told_at_once),
        cmocka_unit_test(a_file_of_a_million_mistakes_is_told_in_a_hundred),
        cmocka_unit_test(a_command_has_a_ceiling),
    };

    return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
