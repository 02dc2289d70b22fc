/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/attr.h"
#include "model/resources.h"
#include "spec/settings.h"

struct reading {
    struct sources sources;
    struct diags *diags;
    struct settings *settings;
};

static struct reading read_text(const char *text) {
    struct reading r = { .diags = diags_new() };
    uint16_t source = sources_add(&r.sources, "config.yml", text, strlen(text));

    r.settings = settings_compile(&r.sources, source, r.diags);
    return r;
}

static void reading_release(struct reading *r) {
    settings_free(r->settings);
    diags_free(r->diags);
    sources_release(&r->sources);
}

static void without_a_file_runs_stay_here_and_devices_have_their_usual_names(void **state) {
    struct sources sources = { 0 };
    struct diags *diags = diags_new();
    struct settings *settings = settings_read("/nonexistent/config.yml", &sources, diags);

    (void)state;
    assert_non_null(settings);
    assert_int_equal(diags->len, 0);
    assert_int_equal(settings->runs_on, RUNS_ON_THIS_MACHINE);
    assert_string_equal(settings->kubernetes.gpu_resource, "nvidia.com/gpu");
    assert_string_equal(settings->kubernetes.tpu_resource, "google.com/tpu");
    assert_null(settings->kubernetes.namespace);
    assert_true(settings->kubernetes.has_shim);
    assert_string_equal(settings->kubernetes.architecture, "amd64");
    assert_int_equal(settings->kubernetes.linger_s, 600);
    assert_int_equal(settings->kubernetes.user, ABSENT);
    settings_free(settings);
    diags_free(diags);
    sources_release(&sources);
}

static void an_empty_file_says_nothing(void **state) {
    static const char *const texts[] = { "", "# nothing\n", "kubernetes:\n", "runs_on:\n", "{}" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct reading r = read_text(texts[i]);

        assert_non_null(r.settings);
        assert_int_equal(r.settings->runs_on, RUNS_ON_THIS_MACHINE);
        assert_string_equal(r.settings->kubernetes.gpu_resource, "nvidia.com/gpu");
        assert_int_equal(r.settings->kubernetes.placement_patience_s, 30);
        reading_release(&r);
    }
}

/* Each field of a new file, alone, and those that it leaves out as where there is no file. */
static void what_a_section_leaves_out_is_as_without_it(void **state) {
    static const char *const sections[] = {
        "kubernetes: {namespace: ada}\n",  "kubernetes: {deadline: 5}\n",
        "kubernetes: {shim: true}\n",      "kubernetes: {}\n",
        "kubernetes: {scheduler: mine}\n",
    };
    struct settings *without = settings_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        struct reading r = read_text(sections[i]);
        const struct kubernetes_settings *k, *none = &without->kubernetes;

        assert_non_null(r.settings);
        k = &r.settings->kubernetes;
        assert_int_equal(k->placement_patience_s, none->placement_patience_s);
        assert_int_equal(k->linger_s, none->linger_s);
        assert_int_equal(k->log_limit_mib, none->log_limit_mib);
        assert_int_equal(k->shm_mib, none->shm_mib);
        assert_int_equal(k->user, none->user);
        assert_int_equal(k->group, none->group);
        assert_int_equal(k->has_shim, none->has_shim);
        assert_string_equal(k->architecture, none->architecture);
        assert_string_equal(k->gpu_resource, none->gpu_resource);
        assert_string_equal(k->tpu_resource, none->tpu_resource);
        reading_release(&r);
    }
    settings_free(without);
}

static void every_field_reaches_the_settings(void **state) {
    struct reading r = read_text(
        "runs_on: kubernetes\n"
        "kubernetes:\n"
        "  kubeconfig: /k\n  context: c\n  namespace: ada\n  image: train:1\n"
        "  gpu_resource: amd.com/gpu\n  tpu_resource: x.org/tpu\n"
        "  scheduler: mine\n  gang: volcano\n  placement_patience: 5\n  deadline: 60\n  shm: 64\n"
        "  outputs: {claim: o, sub_path: a/b}\n"
        "  data: {d: {claim: e, read_only: true}, f: {claim: g}}\n"
        "  artifacts: {m: {claim: h}}\n"
        "  shim: false\n  architecture: arm64\n  linger: 5\n  log_limit: 6\n"
        "  restricted: true\n  run_as_user: 7\n  run_as_group: 8\n"
        "  read_only_root: true\n");
    const struct kubernetes_settings *k;

    (void)state;
    assert_non_null(r.settings);
    k = &r.settings->kubernetes;
    assert_int_equal(r.settings->runs_on, RUNS_ON_KUBERNETES);
    assert_string_equal(k->kubeconfig, "/k");
    assert_string_equal(k->context, "c");
    assert_string_equal(k->namespace, "ada");
    assert_string_equal(k->image, "train:1");
    assert_string_equal(k->gpu_resource, "amd.com/gpu");
    assert_string_equal(k->tpu_resource, "x.org/tpu");
    assert_string_equal(k->scheduler, "mine");
    assert_string_equal(k->gang, "volcano");
    assert_int_equal(k->placement_patience_s, 5);
    assert_int_equal(k->deadline_s, 60);
    assert_int_equal(k->shm_mib, 64);
    assert_string_equal(k->outputs.claim, "o");
    assert_string_equal(k->outputs.sub_path, "a/b");
    assert_int_equal(k->n_data, 2);
    assert_true(volume_named(k->data, k->n_data, "d")->read_only);
    assert_string_equal(volume_named(k->data, k->n_data, "f")->claim, "g");
    assert_null(volume_named(k->data, k->n_data, "m"));
    assert_string_equal(volume_named(k->artifacts, k->n_artifacts, "m")->claim, "h");
    assert_false(k->has_shim);
    assert_string_equal(k->architecture, "arm64");
    assert_int_equal(k->linger_s, 5);
    assert_int_equal(k->log_limit_mib, 6);
    assert_true(k->is_restricted);
    assert_int_equal(k->user, 7);
    assert_int_equal(k->group, 8);
    assert_true(k->has_read_only_root);
    reading_release(&r);
}

static void a_gang_goes_to_its_scheduler_or_to_a_queue(void **state) {
    static const struct {
        const char *text, *queue, *scheduler, *gang;
    } rows[] = {
        { "kubernetes: {queue: q, scheduler: s}\n", "q", "s", NULL },
        { "kubernetes: {gang: coscheduling}\n", NULL, NULL, "coscheduling" },
        { "kubernetes: {gang: volcano}\n", NULL, "volcano", "volcano" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct reading r = read_text(rows[i].text);
        const struct kubernetes_settings *k = &r.settings->kubernetes;
        const char *const given[] = { k->queue, k->scheduler, k->gang };
        const char *const meant[] = { rows[i].queue, rows[i].scheduler, rows[i].gang };

        for (size_t n = 0; n < ARRAY_LEN(given); n++) {
            assert_int_equal(!given[n], !meant[n]);
            if (meant[n])
                assert_string_equal(given[n], meant[n]);
        }
        reading_release(&r);
    }
}

static void a_mistake_is_told_with_its_place(void **state) {
    static const struct {
        const char *text, *message;
        uint32_t line, column;
    } rows[] = {
        { "a", "these are no settings", 1, 1 },
        { "runs_on: mars\n", "`runs_on` may not be `mars`", 1, 10 },
        { "kubernetes: {architecture: m68k}\n", "`architecture` may not be `m68k`", 1, 28 },
        { "kubernetes: {restricted: true, run_as_user: 0}\n", "lets no task run as root", 1, 45 },
        { "kubernetes: [1]\n", "`kubernetes` takes a mapping", 1, 13 },
        { "kubernetes:\n  namespce: x\n", "kubernetes has no field `namespce`", 2, 3 },
        { "kubernetes: {deadline: -1}\n", "`deadline`", 1, 24 },
        { "kubernetes: {placement_patience: 0}\n", "`placement_patience`", 1, 34 },
        { "kubernetes: {queue: a b}\n", "`a b` is no name that Kubernetes takes", 1, 21 },
        { "kubernetes: {gang: all}\n", "`gang` may not be `all`", 1, 20 },
        { "kubernetes: {queue: q, gang: volcano}\n", "not by both", 1, 30 },
        { "kubernetes: {namespace: Ada}\n", "`Ada` is no name", 1, 25 },
        { "kubernetes: {outputs: {claim: a/b}}\n", "`a/b` is no name", 1, 31 },
        { "kubernetes: {outputs: {}}\n", "a volume needs the field `claim`", 1, 23 },
        { "kubernetes: {data: {a: b}}\n", "`a` is a volume", 1, 24 },
        { "kubernetes: {data: {a/b: {claim: c}}}\n", "a volume cannot be called `a/b`", 1, 21 },
        { "kubernetes: {data: {..: {claim: c}}}\n", "a volume cannot be called `..`", 1, 21 },
        { "kubernetes: {data: {a: {claim: c, sub_path: /x}}}\n", "`sub_path`", 1, 45 },
        { "kubernetes: {data: {a: {claim: c, sub_path: x/../y}}}\n", "`sub_path`", 1, 45 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct reading r = read_text(rows[i].text);
        struct position at;

        if (r.settings || r.diags->len == 0)
            fail_msg("taken: %s", rows[i].text);
        if (!strstr(r.diags->list[0].message, rows[i].message))
            fail_msg("%s: %s", rows[i].text, r.diags->list[0].message);
        at = sources_position(&r.sources, r.diags->list[0].place);
        assert_int_equal(at.line, rows[i].line);
        assert_int_equal(at.column, rows[i].column);
        reading_release(&r);
    }
}

static void a_file_that_cannot_be_read_is_an_error_and_not_the_defaults(void **state) {
    struct sources sources = { 0 };
    struct diags *diags = diags_new();

    (void)state;
    assert_null(settings_read("/", &sources, diags));
    assert_int_equal(diags->errors, 1);
    diags_free(diags);
    sources_release(&sources);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_file_runs_stay_here_and_devices_have_their_usual_names),
        cmocka_unit_test(an_empty_file_says_nothing),
        cmocka_unit_test(what_a_section_leaves_out_is_as_without_it),
        cmocka_unit_test(every_field_reaches_the_settings),
        cmocka_unit_test(a_gang_goes_to_its_scheduler_or_to_a_queue),
        cmocka_unit_test(a_mistake_is_told_with_its_place),
        cmocka_unit_test(a_file_that_cannot_be_read_is_an_error_and_not_the_defaults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
