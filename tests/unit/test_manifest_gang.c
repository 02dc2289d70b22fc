/* SPDX-License-Identifier: Apache-2.0 */
/* Who places the pods of a gang together, and what they are given for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"
#include "manifests.h"

static void what_kueue_places_says_so_and_one_pod_alone_is_no_group(void **unused) {
    for (int n_workers = 0; n_workers < 3; n_workers++) {
        AUTO_PTR(plan) plan = NULL;
        AUTO_PTR(settings) settings = NULL;
        struct found_pod pods[4];
        char file[256], count[16];

        snprintf(file, sizeof file,
                 HEAD "framework: pytorch\nbuild: {image: b}\n"
                      "environment: {replicas: {n_workers: %d}}\n",
                 n_workers);
        snprintf(count, sizeof count, "%d", n_workers + 1);
        AUTO_PTR(manifest)
        manifest = build_with("kubernetes: {queue: q}", file, &plan, &settings);

        for (size_t i = 0; i < find_pods(manifest, pods); i++) {
            const struct node *labels = node_get(pods[i].metadata, "labels");
            const struct node *annotations = node_get(pods[i].metadata, "annotations");

            assert_string_equal(node_get(labels, "kueue.x-k8s.io/queue-name")->text, "q");
            assert_true(manifest_has_placer(pods[i].metadata));
            if (n_workers == 0) {
                assert_null(annotations);
                assert_null(node_get(labels, "kueue.x-k8s.io/pod-group-name"));
                continue;
            }
            assert_string_equal(node_get(labels, "kueue.x-k8s.io/pod-group-name")->text,
                                manifest->name);
            assert_string_equal(node_get(annotations, "kueue.x-k8s.io/pod-group-total-count")->text,
                                count);
            assert_string_equal(node_get(annotations, "kueue.x-k8s.io/retriable-in-group")->text,
                                "false");
        }
    }
    (void)unused;
}

static void a_job_of_kubeflows_is_kueues_as_a_whole(void **unused) {
    AUTO_PTR(plan)
    plan = compile_text(HEAD "framework: pytorch\nbuild: {image: b}\n"
                             "environment: {replicas: {n_workers: 2}}\n");
    AUTO_PTR(settings) settings = settings_new();
    struct diags *diags = diags_new();
    struct found_pod pods[4];

    (void)unused;
    settings->kubernetes.queue = "q";
    AUTO_PTR(manifest)
    manifest = manifest_build(
        &(struct manifest_input){
            .plan = plan, .settings = settings, .target = MANIFEST_KUBEFLOW, .run = run },
        diags);
    assert_non_null(
        node_get(at(&manifest->objects[0], "metadata.labels"), "kueue.x-k8s.io/queue-name"));
    for (size_t i = 0; i < find_pods(manifest, pods); i++)
        assert_false(manifest_has_placer(pods[i].metadata));
    diags_free(diags);
}

static void a_gang_scheduler_is_given_its_group_and_no_gate_of_ours(void **unused) {
    static const struct {
        const char *config, *version, *member, *key;
        const char *scheduler;
    } rows[] = {
        { "kubernetes: {gang: coscheduling}", "scheduling.x-k8s.io/v1alpha1", "labels",
          "scheduling.x-k8s.io/pod-group", NULL },
        { "kubernetes: {gang: volcano}", "scheduling.volcano.sh/v1beta1", "annotations",
          "scheduling.k8s.io/group-name", "volcano" },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int n_workers = 0; n_workers < 2; n_workers++) {
            AUTO_PTR(plan) plan = NULL;
            AUTO_PTR(settings) settings = NULL;
            struct found_pod pods[4];
            char file[256];

            snprintf(file, sizeof file,
                     HEAD "framework: pytorch\nbuild: {image: b}\n"
                          "environment: {replicas: {n_workers: %d}}\n",
                     n_workers);
            AUTO_PTR(manifest) manifest = build_with(rows[i].config, file, &plan, &settings);
            const struct node *group = &manifest->objects[3]; /* before the pods */

            assert_false(manifest->is_gated);
            assert_int_equal(strcmp(text_at(group, "kind"), "PodGroup") == 0, n_workers == 1);
            if (n_workers == 1) {
                assert_string_equal(text_at(group, "apiVersion"), rows[i].version);
                assert_int_equal(at(group, "spec.minMember")->integer, 2);
                assert_string_equal(text_at(group, "metadata.name"), manifest->name);
            }
            for (size_t k = 0; k < find_pods(manifest, pods); k++) {
                const struct node *map = node_get(pods[k].metadata, rows[i].member);
                const struct node *mark = map ? node_get(map, rows[i].key) : NULL;

                assert_null(node_get(pods[k].spec, "schedulingGates"));
                assert_int_equal(mark != NULL, n_workers == 1);
                assert_true(!mark || strcmp(mark->text, manifest->name) == 0);
                assert_true(!rows[i].scheduler ||
                            strcmp(text_at(pods[k].spec, "schedulerName"), rows[i].scheduler) == 0);
            }
        }
}

static void a_file_may_give_kueue_what_we_do_not(void **unused) {
    AUTO_PTR(plan) plan = NULL;
    AUTO_PTR(settings) settings = NULL;
    struct found_pod pods[4];
    AUTO_PTR(manifest)
    manifest = build_with("kubernetes: {queue: q}",
                          HEAD "build: {image: b}\nenvironment:\n"
                               "  labels: {kueue.x-k8s.io/priority-class: high}\n",
                          &plan, &settings);

    (void)unused;
    assert_int_equal(find_pods(manifest, pods), 1);
    assert_string_equal(
        node_get(node_get(pods[0].metadata, "labels"), "kueue.x-k8s.io/priority-class")->text,
        "high");
}

static void a_gang_of_more_shapes_than_kueue_takes_is_told(void **unused) {
    for (int n = 7; n < 10; n++) { /* with that of the master and that of most workers */
        AUTO_PTR(plan) plan = NULL;
        AUTO_PTR(settings) settings = NULL;
        char file[2048];
        int len = snprintf(file, sizeof file,
                           HEAD "framework: pytorch\nbuild: {image: b}\nenvironment:\n"
                                "  replicas:\n    n_workers: 20\n    default_worker: "
                                "{resources: {cpu: {limits: 99}}}\n    worker:\n");

        for (int i = 0; i < n - 2; i++)
            len += snprintf(file + len, sizeof file - (size_t)len,
                            "    - {index: %d, resources: {cpu: {limits: %d}}}\n", i, i + 1);
        AUTO_PTR(manifest)
        manifest = build_with("kubernetes: {queue: q}", file, &plan, &settings);

        assert_int_equal(is_noted(manifest, "Kueue never admit"), n > 8);
    }
    (void)unused;
}

static void pods_wait_at_our_gate_only_where_nobody_else_places_them_together(void **unused) {
    static const struct {
        const char *config;
        int n_workers;
        bool is_gated;
    } rows[] = {
        { "runs_on: kubernetes\n", 2, true },
        { "runs_on: kubernetes\n", 0, false },
        { "kubernetes: {queue: q}\n", 2, false },
        { "kubernetes: {scheduler: mine}\n", 2, true }, /* any scheduler keeps to gates */
        { "kubernetes: {gang: volcano}\n", 2, false },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sources sources = { 0 };
        struct diags *diags = diags_new();
        AUTO_PTR(settings)
        settings = settings_compile(
            &sources, sources_add(&sources, "config.yml", rows[i].config, strlen(rows[i].config)),
            diags);
        char file[256];

        snprintf(file, sizeof file,
                 "version: 1\nkind: experiment\nframework: pytorch\nbuild: {image: b}\n"
                 "environment: {replicas: {n_workers: %d}}\nrun: {cmd: a}\n",
                 rows[i].n_workers);
        AUTO_PTR(plan) plan = compile_text(file);
        AUTO_PTR(manifest)
        manifest = manifest_build(
            &(struct manifest_input){ .plan = plan, .settings = settings, .run = run }, diags);
        struct found_pod pods[4];
        const size_t n = find_pods(manifest, pods);

        assert_int_equal(manifest->is_gated, rows[i].is_gated);
        assert_int_equal(n, rows[i].n_workers + 1);
        for (size_t k = 0; k < n; k++) {
            const struct node *gates = node_get(pods[k].spec, "schedulingGates");

            assert_int_equal(gates != NULL, rows[i].is_gated);
            if (gates)
                assert_string_equal(text_at(&gates->items[0], "name"), MANIFEST_GATE);
        }
        diags_free(diags);
        sources_release(&sources);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_kueue_places_says_so_and_one_pod_alone_is_no_group),
        cmocka_unit_test(a_job_of_kubeflows_is_kueues_as_a_whole),
        cmocka_unit_test(a_gang_scheduler_is_given_its_group_and_no_gate_of_ours),
        cmocka_unit_test(a_file_may_give_kueue_what_we_do_not),
        cmocka_unit_test(a_gang_of_more_shapes_than_kueue_takes_is_told),
        cmocka_unit_test(pods_wait_at_our_gate_only_where_nobody_else_places_them_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
