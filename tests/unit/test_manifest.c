/* SPDX-License-Identifier: Apache-2.0 */
/* The laws of manifest/manifest.h, over random plans. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/base64.h"
#include "codec/yaml_write.h"
#include "compile.h"
#include "manifest/compare.h"
#include "manifest/variables.h"
#include "manifests.h"
#include "shim/program.h"

enum { ROUNDS = 200, TEXT_MAX = 1 << 16, WRITTEN_MAX = 8 << 20, LABEL_LENGTH_MAX = 63 };

static uint64_t state;

static uint32_t pick(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static const char *const frameworks[] = { "tensorflow", "mxnet", "pytorch", "horovod" };
enum { N_FRAMEWORKS = 4 };

/* ---- random plans ---- */

static int add_resources(char *text, size_t size) {
    uint32_t cpu = 1 + pick(8), memory = 64 + pick(4000), gpu = pick(3);

    return snprintf(text, size,
                    "{cpu: {requests: %u.5, limits: %u}, memory: {requests: %u}, gpu: {limits: "
                    "%u}}",
                    cpu, cpu + 1, memory, gpu);
}

/* Per index only where the target can hold it. */
static struct plan *random_plan(const char *framework, enum manifest_target target) {
    char text[TEXT_MAX], some[512];
    bool has_ps = strcmp(framework, "tensorflow") == 0 || strcmp(framework, "mxnet") == 0;
    uint32_t n_workers = 1 + pick(14), n_ps = has_ps ? pick(4) : 0;
    int n = snprintf(text, sizeof text,
                     "version: 1\nkind: experiment\nframework: %s\nbuild: {image: train:1}\n"
                     "params: {price: '$(HOME) $$ $'}\nrun: {cmd: %s}\nenvironment:\n",
                     framework, pick(2) ? "python3 train.py" : "'cd x && python3 $HOME$(pwd)'");

    add_resources(some, sizeof some);
    if (pick(2))
        n += snprintf(text + n, sizeof text - (size_t)n, "  resources: %s\n", some);
    n += snprintf(text + n, sizeof text - (size_t)n, "  replicas:\n    n_workers: %u\n", n_workers);
    if (n_ps)
        n += snprintf(text + n, sizeof text - (size_t)n, "    n_ps: %u\n", n_ps);
    add_resources(some, sizeof some);
    if (pick(2))
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "    default_worker: {resources: %s, labels: {team: a}}\n", some);
    if (target == MANIFEST_NATIVE) {
        add_resources(some, sizeof some);
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "    worker: [{index: %u, resources: %s, node_selector: {disk: ssd}}]\n",
                      pick(n_workers), some);
    }
    return compile_text(text);
}

static struct manifest *build(const struct plan *plan, enum manifest_target target) {
    AUTO_PTR(settings) settings = settings_new();
    struct diags *diags = diags_new();
    struct manifest *manifest = manifest_build(
        &(struct manifest_input){
            .plan = plan, .settings = settings, .target = target, .run = run },
        diags);

    if (!manifest)
        fail_msg("%s", diags->list[0].message);
    diags_free(diags);
    return manifest;
}

/* Calls check for plans of every framework and both targets. */
static void for_each_plan(void (*check)(const struct plan *, enum manifest_target,
                                        const struct manifest *)) {
    for (int i = 0; i < ROUNDS; i++) {
        enum manifest_target target = i % 2 ? MANIFEST_KUBEFLOW : MANIFEST_NATIVE;
        AUTO_PTR(plan) plan = random_plan(frameworks[(i / 2) % N_FRAMEWORKS], target);
        AUTO_PTR(manifest) manifest = build(plan, target);

        check(plan, target, manifest);
    }
}

/* ---- laws ---- */

static void check_tasks(const struct plan *plan, enum manifest_target target,
                        const struct manifest *manifest) {
    struct found_pod pods[100];
    size_t n = find_pods(manifest, pods);
    uint32_t seen[ROLE_COUNT] = { 0 };
    bool is_there[ROLE_COUNT][50] = { 0 };

    for (size_t i = 0; i < n; i++) {
        for (enum role role = 0; role < ROLE_COUNT; role++) {
            const struct node *labels = at(pods[i].metadata, "labels");

            if (strcmp(node_get(labels, MANIFEST_LABEL_ROLE)->text, role_name(role)) != 0)
                continue;
            seen[role] += pods[i].n;
            if (target == MANIFEST_NATIVE) {
                int index = atoi(node_get(labels, MANIFEST_LABEL_INDEX)->text);

                assert_false(is_there[role][index]);
                is_there[role][index] = true;
                assert_true((uint32_t)index < plan->n_role[role]);
            }
        }
    }
    for (enum role role = 0; role < ROLE_COUNT; role++)
        assert_int_equal(seen[role], plan->n_role[role]);
}

static void every_task_of_the_plan_appears_exactly_once(void **unused) {
    (void)unused;
    for_each_plan(check_tasks);
}

/* An amount as Kubernetes reads it, in thousandths of our unit. */
static milli amount(const struct node *resources, const char *list, const char *key, bool is_mib) {
    const struct node *node = node_get(node_get(resources, list), key);
    char *end;
    milli value;

    if (!node)
        return ABSENT;
    value = strtoll(node->text, &end, 10);
    if (strcmp(end, "m") == 0)
        return value;
    assert_string_equal(end, is_mib ? "Mi" : "");
    return value * 1000;
}

static void check_totals(const struct plan *plan, enum manifest_target target,
                         const struct manifest *manifest) {
    static const char *const keys[] = { "cpu", "memory", "nvidia.com/gpu" };
    struct found_pod pods[100];
    size_t n = find_pods(manifest, pods);

    (void)target;
    for (size_t key = 0; key < ARRAY_LEN(keys); key++) {
        milli reserved = 0, wanted = 0;

        for (uint32_t i = 0; i < plan->n_tasks; i++)
            wanted += resources_reserved(&plan->tasks[i].profile->resources, (enum resource)key);
        for (size_t i = 0; i < n; i++) {
            const struct node *containers = node_get(pods[i].spec, "containers");
            const struct node *resources = node_get(&containers->items[0], "resources");
            milli request = amount(resources, "requests", keys[key], key == 1);
            milli limit = amount(resources, "limits", keys[key], key == 1);

            /* A request that is missing is the limit, to Kubernetes too. */
            reserved += pods[i].n * (request != ABSENT ? request : limit != ABSENT ? limit : 0);
        }
        assert_int_equal(reserved, wanted);
    }
}

static void what_the_pods_reserve_sums_up_to_the_plan(void **unused) {
    (void)unused;
    for_each_plan(check_totals);
}

static bool is_dns_label(const char *name) {
    size_t n = strlen(name);

    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) && name[i] != '-')
            return false;
    return n > 0 && n <= LABEL_LENGTH_MAX && islower((unsigned char)name[0]) && name[n - 1] != '-';
}

static void check_names(const struct plan *plan, enum manifest_target target,
                        const struct manifest *manifest) {
    (void)plan, (void)target;
    for (size_t i = 0; i < manifest->n_objects; i++) {
        const struct node *object = &manifest->objects[i];

        assert_true(is_dns_label(text_at(object, "metadata.name")));
        if (strcmp(text_at(object, "kind"), "Pod") == 0) {
            assert_true(is_dns_label(text_at(object, "spec.hostname")));
            assert_string_equal(text_at(object, "spec.subdomain"), manifest->name);
        }
    }
}

static void every_name_is_a_dns_label(void **unused) {
    char name[MANIFEST_NAME_MAX];
    struct manifest_run last = run;

    (void)unused;
    for_each_plan(check_names);
    /* The longest that an operator makes of it is a label too. */
    last.attempt = UINT32_MAX;
    manifest_name(&last, name);
    assert_true(strlen(name) + strlen("-scheduler-1000000") <= LABEL_LENGTH_MAX);
}

static void check_labels(const struct plan *plan, enum manifest_target target,
                         const struct manifest *manifest) {
    struct found_pod pods[100];
    size_t n = find_pods(manifest, pods);

    (void)plan, (void)target;
    for (size_t i = 0; i < n + manifest->n_objects; i++) {
        const struct node *metadata =
            i < n ? pods[i].metadata : node_get(&manifest->objects[i - n], "metadata");
        const struct node *labels = node_get(metadata, "labels");

        assert_string_equal(node_get(labels, MANIFEST_LABEL_RUN)->text, run.uuid);
        assert_string_equal(node_get(labels, MANIFEST_LABEL_ATTEMPT)->text, "0");
        assert_string_equal(node_get(labels, MANIFEST_LABEL_MANAGED)->text, "myelin");
    }
}

static void everything_is_found_by_its_labels(void **unused) {
    (void)unused;
    for_each_plan(check_labels);
}

static void check_repeats(const struct plan *plan, enum manifest_target target,
                          const struct manifest *manifest) {
    AUTO_PTR(manifest) again = build(plan, target);

    assert_int_equal(again->n_objects, manifest->n_objects);
    for (size_t i = 0; i < manifest->n_objects; i++) {
        AUTO(buf) a = BUF_INIT(WRITTEN_MAX);
        AUTO(buf) b = BUF_INIT(WRITTEN_MAX);
        struct error err;

        assert_int_equal(yaml_write(&manifest->objects[i], &a, &err), 0);
        assert_int_equal(yaml_write(&again->objects[i], &b, &err), 0);
        assert_string_equal(a.data, b.data);
    }
}

static void the_same_input_gives_the_same_objects_to_the_byte(void **unused) {
    (void)unused;
    for_each_plan(check_repeats);
}

/* ---- the environment ---- */

static const char *value_of(const struct environment *environment, const char *name) {
    size_t n = strlen(name);

    for (size_t i = 0; i < environment->len; i++)
        if (strncmp(environment->items[i], name, n) == 0 && environment->items[i][n] == '=')
            return environment->items[i] + n + 1;
    return NULL;
}

/* Of the tasks of one role, that their rules give each what the contract gives it. */
static void check_role(const struct wiring *wiring, uint32_t first, uint32_t n,
                       enum manifest_target target) {
    struct arena arena = ARENA_INIT;
    struct variables variables;
    struct error err;

    assert_int_equal(variables_of(wiring, first, n, target, &arena, &variables, &err), 0);
    for (uint32_t i = 0; i < n; i++) {
        struct environment contract = { 0 };
        size_t differing = 0;

        assert_int_equal(wiring_environment(wiring, first + i, &contract, &err), 0);
        for (size_t k = 0; k < variables.len; k++) {
            const struct variable *variable = &variables.list[k];

            if (difference_find(variable->name, wiring->plan->framework, target))
                continue;
            assert_string_equal(variable_value(variable, i, &arena),
                                value_of(&contract, variable->name));
            differing++;
        }
        for (size_t k = 0; k < contract.len; k++) {
            char name[64];

            snprintf(name, sizeof name, "%.*s", (int)strcspn(contract.items[k], "="),
                     contract.items[k]);
            if (difference_find(name, wiring->plan->framework, target))
                differing++;
        }
        assert_int_equal(differing, contract.len);
        environment_release(&contract);
    }
    arena_release(&arena);
}

static void the_rules_of_a_role_give_each_task_its_contract(void **unused) {
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        enum manifest_target target = i % 2 ? MANIFEST_KUBEFLOW : MANIFEST_NATIVE;
        AUTO_PTR(plan)
        plan = random_plan(frameworks[(i / 2) % N_FRAMEWORKS], MANIFEST_KUBEFLOW);
        struct wiring wiring;
        struct error err;
        uint32_t rank = 0;

        assert_int_equal(wiring_init(&wiring, plan, &facts_symbolic, &err), 0);
        for (enum role role = 0; role < ROLE_COUNT; rank += plan->n_role[role], role++)
            if (plan->n_role[role])
                check_role(&wiring, rank, plan->n_role[role], target);
        wiring_release(&wiring);
    }
}

/* What Kubernetes makes of a value or a word of a command. */
static void kubernetes_expand(const char *text, char *out) {
    while (*text) {
        if (text[0] == '$' && text[1] == '$') {
            *out++ = '$';
            text += 2;
        } else if (text[0] == '$' && text[1] == '(' && strchr(text, ')')) {
            memcpy(out, "EXPANDED", 8);
            out += 8;
            text = strchr(text, ')') + 1;
        } else {
            *out++ = *text++;
        }
    }
    *out = '\0';
}

static void a_text_of_the_users_comes_out_of_kubernetes_as_it_went_in(void **unused) {
    static const char letters[] = "$$$()aA ";

    (void)unused;
    for (int i = 0; i < ROUNDS * 50; i++) {
        struct arena arena = ARENA_INIT;
        char text[20] = "", out[400];

        for (uint32_t n = pick(sizeof text), k = 0; k < n; k++)
            text[k] = letters[pick(sizeof letters - 1)];
        text[sizeof text - 1] = '\0';
        kubernetes_expand(kubernetes_escape(text, 0, &arena), out);
        assert_string_equal(out, text);
        arena_release(&arena);
    }
}

/* ---- refusals ---- */

static void what_cannot_be_expressed_is_told_with_its_place_and_the_way_out(void **unused) {
    static const struct {
        const char *text;
        enum manifest_target target;
        const char *message, *help;
        uint32_t line;
    } rows[] = {
        { HEAD, MANIFEST_NATIVE, "names no image", "--image", 0 },
        { "version: 1\nkind: experiment\nbuild: {image: a}\n", MANIFEST_NATIVE,
          "does not say what to run", "run: {cmd", 0 },
        { HEAD "build: {dockerfile: D}\n", MANIFEST_NATIVE, "`dockerfile` asks for an image",
          "--image", 4 },
        { HEAD "build:\n  image: a\n  build_steps: [b]\n", MANIFEST_NATIVE,
          "`build_steps` asks for an image", "--image", 6 },
        { HEAD "build: {ref: 3}\n", MANIFEST_NATIVE, "`ref` asks for an image", "--image", 4 },
        { HEAD "backend: kubeflow\nbuild: {image: a}\n", MANIFEST_KUBEFLOW,
          "has no job for a file without a framework", "backend: native", 4 },
        { HEAD "backend: kubeflow\nbuild: {image: a}\nframework: mxnet\n", MANIFEST_KUBEFLOW,
          "has no job for a single task of mxnet", "backend: native", 4 },
        { HEAD
          "build: {image: a}\nframework: pytorch\nenvironment:\n  replicas:\n"
          "    n_workers: 3\n    worker:\n    - index: 1\n      resources: {cpu: {limits: 2}}\n",
          MANIFEST_KUBEFLOW, "worker.1 is given other `cpu` than worker.0", "backend: native", 11 },
        { HEAD "build: {image: a}\nframework: tensorflow\nenvironment:\n  replicas:\n"
               "    n_workers: 2\n    worker:\n    - index: 1\n      node_selector: {a: b}\n",
          MANIFEST_KUBEFLOW, "worker.1 is given other `node_selector`", "backend: native", 11 },
        { HEAD "build: {image: a}\nframework: horovod\nenvironment:\n  replicas:\n"
               "    n_workers: 2\n    default_worker:\n      secret_refs: [s]\n",
          MANIFEST_KUBEFLOW, "does not reach the ranks of an MPIJob", "backend: native", 10 },
        { HEAD "build: {image: a}\nenvironment:\n  labels: {myelin/run: x}\n", MANIFEST_NATIVE,
          "is not the file's to give", "another name", 6 },
        { HEAD "build: {image: a}\nenvironment:\n  labels: {kueue.x-k8s.io/queue-name: x}\n",
          MANIFEST_NATIVE, "is not the file's to give", "another name", 6 },
        { HEAD "build: {image: a}\nenvironment:\n"
               "  annotations: {kueue.x-k8s.io/retriable-in-group: true}\n",
          MANIFEST_NATIVE, "the annotation `kueue.x-k8s.io/retriable-in-group` is not",
          "another name", 6 },
        { HEAD "build: {image: a}\nenvironment:\n  labels: {a: {b: c}}\n", MANIFEST_NATIVE,
          "the value of `a`", "letters", 6 },
        { HEAD "build: {image: a}\nenvironment:\n  labels: {'a b': c}\n", MANIFEST_NATIVE,
          "`a b` is no name", "letters", 6 },
        { HEAD "build: {image: a}\nenvironment:\n  secret_refs: [Big]\n", MANIFEST_NATIVE,
          "`Big` is no name", "lower-case", 6 },
        { HEAD "build: {image: a}\nenvironment:\n  service_account: A b\n", MANIFEST_NATIVE,
          "`A b` is no name of a service account", "lower-case", 6 },
        { HEAD "build: {image: a}\nframework: horovod\nenvironment:\n  replicas: {n_workers: 1}\n"
               "  node_selector: {kubernetes.io/arch: s390x}\n",
          MANIFEST_NATIVE, "no shim for nodes of `s390x`, and nothing else serves Horovod's",
          "backend: kubeflow", 0 },
        { HEAD "build: {image: a}\nenvironment:\n  data_refs: [d]\n", MANIFEST_NATIVE,
          "`data_refs` names `d`", "config.yml", 6 },
        { HEAD "build: {image: a}\nenvironment:\n  resources:\n    gpu: {requests: 1, limits: 2}\n",
          MANIFEST_NATIVE, "gpu asks for 1 and allows 2", "same value", 7 },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sources sources = { 0 };
        struct diags *diags = diags_new();
        AUTO_PTR(settings) settings = settings_new();
        uint16_t file = sources_add(&sources, "test.yml", rows[i].text, strlen(rows[i].text));
        struct spec *spec =
            spec_compile(&(struct spec_input){ &sources, &file, 1, NULL, 0 }, diags);
        struct error err;
        AUTO_PTR(plan) plan = spec ? plan_build(spec, &err) : NULL;
        const struct diag *diag = &diags->list[0];

        if (!plan)
            fail_msg("no plan: %s\n%s", diag->message, rows[i].text);
        assert_null(manifest_build(
            &(struct manifest_input){
                .plan = plan, .settings = settings, .target = rows[i].target, .run = run },
            diags));
        if (diags->errors != 1 || !strstr(diag->message, rows[i].message))
            fail_msg("%zu errors, the first: %s\n%s", diags->errors, diag->message, rows[i].text);
        if (!diag->help || !strstr(diag->help, rows[i].help))
            fail_msg("no way out of: %s", diag->message);
        assert_int_equal(diag->has_place ? sources_position(&sources, diag->place).line : 0,
                         rows[i].line);
        diags_free(diags);
        sources_release(&sources);
    }
}

static void a_kind_that_the_cluster_lacks_is_refused(void **unused) {
    static const char *const old[] = { "kubeflow.org/v1/MPIJob", "kubeflow.org/v1/TFJob", NULL };
    static const char *const both[] = { "kubeflow.org/v1/TFJob", "kubeflow.org/v2beta1/MPIJob",
                                        NULL };
    AUTO_PTR(plan) plan = random_plan("horovod", MANIFEST_KUBEFLOW);
    AUTO_PTR(settings) settings = settings_new();
    struct diags *diags = diags_new();
    struct manifest_input input = {
        .plan = plan, .settings = settings, .target = MANIFEST_KUBEFLOW, .run = run, .apis = both
    };
    struct manifest *manifest = manifest_build(&input, diags);

    (void)unused;
    assert_non_null(manifest);
    manifest_free(manifest);
    input.apis = old;
    assert_null(manifest_build(&input, diags));
    assert_non_null(strstr(diags->list[0].message, "does not know MPIJob of kubeflow.org/v2beta1"));
    diags_free(diags);
}

/* ---- settings ---- */

static void what_the_settings_say_reaches_every_pod(void **unused) {
    static const char config[] =
        "kubernetes: {namespace: ada, gang: volcano, deadline: 60, shm: 64,\n"
        "  outputs: {claim: runs, sub_path: x}, data: {d: {claim: e, read_only: true}}}\n";
    static const char file[] =
        "version: 1\nkind: experiment\nframework: pytorch\nrun: {cmd: a}\nbuild: {image: b}\n"
        "environment:\n  data_refs: [d]\n  replicas: {n_workers: 2, default_worker: {data_refs: "
        "[d]}}\n";
    struct sources sources = { 0 };
    struct diags *diags = diags_new();
    AUTO_PTR(settings)
    settings = settings_compile(&sources,
                                sources_add(&sources, "config.yml", config, strlen(config)), diags);
    AUTO_PTR(plan) plan = compile_text(file);

    (void)unused;
    assert_non_null(settings);
    for (enum manifest_target target = 0; target <= MANIFEST_KUBEFLOW; target++) {
        struct found_pod pods[10];
        AUTO_PTR(manifest)
        manifest = manifest_build(
            &(struct manifest_input){
                .plan = plan, .settings = settings, .target = target, .run = run },
            diags);
        size_t n;

        assert_non_null(manifest);
        assert_string_equal(manifest->namespace, "ada");
        n = find_pods(manifest, pods);
        for (size_t i = 0; i < n; i++) {
            AUTO(buf) text = BUF_INIT(WRITTEN_MAX);
            struct error err;

            assert_int_equal(yaml_write(pods[i].spec, &text, &err), 0);
            assert_non_null(strstr(text.data, "claimName: runs"));
            assert_non_null(strstr(text.data, "subPath: x/0f8b3c1d2e4a5b6c7d8e9f0a1b2c3d4e"));
            assert_non_null(strstr(text.data, "mountPath: /data/d"));
            assert_non_null(strstr(text.data, "sizeLimit: \"64Mi\""));
            assert_non_null(strstr(text.data, "schedulerName: volcano"));
            assert_non_null(strstr(text.data, "name: POLYAXON_RUN_DATA_PATHS"));
            assert_int_equal(target == MANIFEST_NATIVE,
                             !!strstr(text.data, "activeDeadlineSeconds: 60"));
        }
        if (target == MANIFEST_KUBEFLOW) {
            const struct node *policy = at(&manifest->objects[0], "spec.runPolicy");

            assert_int_equal(at(policy, "activeDeadlineSeconds")->integer, 60);
            assert_int_equal(at(policy, "schedulingPolicy.minAvailable")->integer, 3);
        }
    }
    diags_free(diags);
    sources_release(&sources);
}

/* ---- the shim ---- */

static const struct node *container_of(const struct manifest *manifest, size_t i) {
    struct found_pod pods[10];

    assert_true(i < find_pods(manifest, pods));
    return &node_get(pods[i].spec, "containers")->items[0];
}

static const char *variable_in(const struct manifest *manifest, size_t i, const char *name) {
    const struct node *env = node_get(container_of(manifest, i), "env");

    for (uint32_t k = 0; k < env->count; k++)
        if (strcmp(text_at(&env->items[k], "name"), name) == 0)
            return text_at(&env->items[k], "value");
    return NULL;
}

#define GANG HEAD "build: {image: a}\nframework: pytorch\nenvironment: {replicas: {n_workers: 1}}\n"

static void the_shim_of_a_pod_is_the_one_of_this_program(void **unused) {
    AUTO_PTR(plan) plan = NULL;
    AUTO_PTR(settings) settings = NULL;
    AUTO_PTR(manifest) manifest = build_with("", GANG, &plan, &settings);
    const struct node *map = &manifest->objects[1];
    const char *encoded = text_at(node_get(map, "binaryData"), "shim-amd64");
    const struct shim_program *program = shim_program_for("amd64");
    char *bytes = malloc(strlen(encoded) / 4 * 3 + 4);
    size_t n;

    (void)unused;
    assert_true(base64_decode(encoded, strlen(encoded), bytes, &n));
    assert_int_equal(n, program->size);
    assert_memory_equal(bytes, program->bytes, n);
    free(bytes);
    assert_true(node_get(map, "immutable")->truth);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(node_get(container_of(manifest, i), "command")->items[0].text,
                            "/myelin/shim/shim");
        assert_string_equal(node_get(container_of(manifest, i), "command")->items[1].text, "a");
        assert_string_equal(variable_in(manifest, i, "MYELIN_SHIM_WAIT"),
                            "master-0.myelin-0f8b3c1d2e4a-0");
        assert_string_equal(variable_in(manifest, i, "MYELIN_SHIM_OUTPUTS"), "1");
    }
    assert_null(variable_in(manifest, 0, "MYELIN_SHIM_LEADER"));
    assert_string_equal(variable_in(manifest, 1, "MYELIN_SHIM_LEADER"),
                        "master-0.myelin-0f8b3c1d2e4a-0");
}

/* One that is printed is everybody's. */
static void a_pod_has_the_key_that_was_made_for_it_and_no_other(void **unused) {
    static const char key[] = "0123456789abcdef0123456789abcdef";
    AUTO_PTR(plan) plan = NULL;
    AUTO_PTR(settings) settings = NULL;
    AUTO_PTR(manifest) without = build_with("", GANG, &plan, &settings);
    AUTO_PTR(diags) diags = diags_new();
    struct manifest_input input = { .plan = plan, .settings = settings, .run = run };
    struct manifest *with;

    (void)unused;
    input.run.shim_key = key;
    with = manifest_build(&input, diags);
    assert_non_null(with);
    for (size_t i = 0; i < 2; i++) {
        assert_null(variable_in(without, i, "MYELIN_SHIM_KEY"));
        assert_string_equal(variable_in(with, i, "MYELIN_SHIM_KEY"), key);
    }
    manifest_free(with);
}

static void the_shim_of_horovods_master_serves_the_rendezvous_that_all_are_told_of(void **unused) {
    static const char text[] =
        HEAD "build: {image: a}\nframework: horovod\nenvironment: {replicas: {n_workers: 2}}\n";
    AUTO_PTR(plan) plan = NULL;
    AUTO_PTR(settings) settings = NULL;
    AUTO_PTR(manifest) manifest = build_with("", text, &plan, &settings);
    const char *port = variable_in(manifest, 0, "MYELIN_SHIM_RENDEZVOUS");

    (void)unused;
    assert_non_null(port);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(variable_in(manifest, i, "HOROVOD_GLOO_RENDEZVOUS_PORT"), port);
        assert_string_equal(variable_in(manifest, i, "HOROVOD_GLOO_RENDEZVOUS_ADDR"),
                            variable_in(manifest, i, "MYELIN_SHIM_WAIT"));
        assert_string_equal(variable_in(manifest, i, "MYELIN_SHIM_TASKS"), "3");
        assert_true(i == 0 || !variable_in(manifest, i, "MYELIN_SHIM_RENDEZVOUS"));
    }
    for (size_t i = 0; i < manifest->n_notes; i++)
        assert_null(strstr(manifest->notes[i], "rendezvous"));
}

static void a_pod_goes_only_where_its_shim_can_run(void **unused) {
    AUTO_PTR(plan) plan = NULL;
    AUTO_PTR(settings) settings = NULL;
    AUTO_PTR(manifest) manifest = build_with("", GANG, &plan, &settings);

    (void)unused;
    for (size_t i = 3; i < 5; i++) {
        const struct node *selector = at(&manifest->objects[i], "spec.nodeSelector");

        assert_int_equal(selector->count, 1);
        assert_string_equal(node_get(selector, "kubernetes.io/arch")->text, "amd64");
    }
}

#define AFFINITY(expression)                                                                       \
    HEAD "build: {image: a}\nenvironment:\n  affinity:\n    nodeAffinity:\n"                       \
         "      requiredDuringSchedulingIgnoredDuringExecution:\n        nodeSelectorTerms:\n"     \
         "        - matchExpressions:\n            - {key: kubernetes.io/arch, " expression "}\n"

static void a_pod_without_a_shim_for_its_nodes_goes_without_and_that_is_told(void **unused) {
    static const struct {
        const char *text, *selector; /* NULL: the pods have no shim */
    } rows[] = {
        { HEAD "build: {image: a}\nenvironment:\n  node_selector: {kubernetes.io/arch: s390x}\n",
          NULL },
        { HEAD "build: {image: a}\nframework: pytorch\nenvironment:\n  replicas:\n"
               "    n_workers: 1\n    worker:\n"
               "    - {index: 0, node_selector: {kubernetes.io/arch: s390x}}\n",
          NULL },
        { AFFINITY("operator: In, values: [ppc64le]"), NULL },
        { AFFINITY("operator: In, values: [s390x, amd64]"), "amd64" },
        { AFFINITY("operator: NotIn, values: [arm64]"), "amd64" },
        { AFFINITY("operator: Exists"), "amd64" },
        { AFFINITY("operator: In, values: [arm64]"), "arm64" },
        { AFFINITY("operator: NotIn, values: [amd64]"), "arm64" },
        { AFFINITY("operator: In, values: 7"), NULL },
        { HEAD "build: {image: a}\nenvironment:\n  affinity: {nodeAffinity: {}}\n", "amd64" },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_PTR(plan) plan = NULL;
        AUTO_PTR(settings) settings = NULL;
        AUTO_PTR(manifest) manifest = build_with("", rows[i].text, &plan, &settings);
        const char *selector = rows[i].selector;
        struct found_pod pods[4];
        const struct node *found;

        if (selector && !shim_program_for(selector))
            selector = NULL; /* this build has none for it */
        assert_int_equal(manifest_wants_shim(plan, &settings->kubernetes), selector != NULL);
        assert_int_equal(variable_in(manifest, 0, "MYELIN_SHIM_TASKS") != NULL, selector != NULL);
        assert_int_equal(is_noted(manifest, "has no shim for nodes of"), selector == NULL);
        find_pods(manifest, pods);
        found = at(pods[0].spec, "nodeSelector");
        if (selector)
            assert_string_equal(node_get(found, "kubernetes.io/arch")->text, selector);
    }
}

static void where_the_settings_switch_the_shim_off_nothing_of_it_is_left(void **unused) {
    AUTO_PTR(plan) plan = NULL;
    AUTO_PTR(settings) settings = NULL;
    AUTO_PTR(manifest)
    manifest = build_with("kubernetes: {shim: false}", GANG, &plan, &settings);
    bool is_told = false;

    (void)unused;
    for (size_t i = 0; i < manifest->n_objects; i++) {
        AUTO(buf) text = BUF_INIT(WRITTEN_MAX);
        struct error err;

        assert_int_equal(yaml_write(&manifest->objects[i], &text, &err), 0);
        assert_null(strcasestr(text.data, "shim"));
    }
    for (size_t i = 0; i < manifest->n_notes; i++)
        is_told = is_told || strstr(manifest->notes[i], "stay in the pods");
    assert_true(is_told);
}

static void a_claim_keeps_the_outputs_where_they_are(void **unused) {
    AUTO_PTR(plan) plan = NULL;
    AUTO_PTR(settings) settings = NULL;
    AUTO_PTR(manifest)
    manifest = build_with("kubernetes: {outputs: {claim: c}}", GANG, &plan, &settings);

    (void)unused;
    assert_null(variable_in(manifest, 0, "MYELIN_SHIM_OUTPUTS"));
}

static void restricted_pods_ask_for_what_their_level_allows(void **unused) {
    AUTO_PTR(plan) plan = NULL;
    AUTO_PTR(settings) settings = NULL;
    AUTO_PTR(manifest)
    manifest = build_with("kubernetes: {restricted: true, run_as_user: 7, run_as_group: 8, "
                          "read_only_root: true}",
                          GANG, &plan, &settings);
    const struct node *pod = at(&manifest->objects[3], "spec.securityContext");
    const struct node *own = node_get(container_of(manifest, 0), "securityContext");

    (void)unused;
    assert_true(node_get(pod, "runAsNonRoot")->truth);
    assert_string_equal(text_at(pod, "seccompProfile.type"), "RuntimeDefault");
    assert_int_equal(node_get(pod, "runAsUser")->integer, 7);
    assert_int_equal(node_get(pod, "runAsGroup")->integer, 8);
    assert_int_equal(node_get(pod, "fsGroup")->integer, 8);
    assert_false(node_get(own, "allowPrivilegeEscalation")->truth);
    assert_string_equal(at(own, "capabilities.drop")->items[0].text, "ALL");
    assert_true(node_get(own, "readOnlyRootFilesystem")->truth);
}

static void the_owner_is_named_once_its_uid_is_known(void **unused) {
    AUTO_PTR(plan) plan = random_plan("pytorch", MANIFEST_NATIVE);
    AUTO_PTR(settings) settings = settings_new();
    struct diags *diags = diags_new();
    struct manifest_input input = { .plan = plan, .settings = settings, .run = run };

    (void)unused;
    input.run.owner_uid = "u-i-d";
    AUTO_PTR(manifest) manifest = manifest_build(&input, diags);

    assert_string_equal(text_at(&manifest->objects[0], "kind"), "ConfigMap");
    assert_null(at(&manifest->objects[0], "metadata.ownerReferences"));
    for (size_t i = 1; i < manifest->n_objects; i++) {
        const struct node *owners = at(&manifest->objects[i], "metadata.ownerReferences");

        assert_string_equal(text_at(&owners->items[0], "uid"), "u-i-d");
        assert_string_equal(text_at(&owners->items[0], "name"), manifest->name);
    }
    diags_free(diags);
}

static void a_comparison_shows_what_differs_and_nothing_else(void **unused) {
    AUTO_PTR(plan) plan = random_plan("mxnet", MANIFEST_KUBEFLOW);
    AUTO_PTR(settings) settings = settings_new();
    struct manifest_input input = { .plan = plan, .settings = settings, .run = run };
    AUTO_PTR(comparison) comparison = comparison_new(&input);
    struct compared_list rows;
    struct error err;
    bool has_address = false;

    (void)unused;
    assert_null(comparison_refusal(comparison, SIDE_KUBEFLOW));
    assert_int_equal(comparison_task(comparison, 1, &rows, &err), 0);
    for (size_t i = 0; i < rows.len; i++) {
        assert_string_not_equal(rows.list[i].name, "MYELIN_TASK");
        assert_string_not_equal(rows.list[i].name, "POLYAXON_PARAMS");
        if (strcmp(rows.list[i].name, "DMLC_NODE_HOST") == 0) {
            has_address = true;
            assert_string_equal(rows.list[i].on[SIDE_NATIVE], "<pod.address>");
            assert_non_null(rows.list[i].reason);
        }
    }
    assert_true(has_address);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_of_the_plan_appears_exactly_once),
        cmocka_unit_test(what_the_pods_reserve_sums_up_to_the_plan),
        cmocka_unit_test(every_name_is_a_dns_label),
        cmocka_unit_test(everything_is_found_by_its_labels),
        cmocka_unit_test(the_same_input_gives_the_same_objects_to_the_byte),
        cmocka_unit_test(the_rules_of_a_role_give_each_task_its_contract),
        cmocka_unit_test(a_text_of_the_users_comes_out_of_kubernetes_as_it_went_in),
        cmocka_unit_test(what_cannot_be_expressed_is_told_with_its_place_and_the_way_out),
        cmocka_unit_test(a_kind_that_the_cluster_lacks_is_refused),
        cmocka_unit_test(what_the_settings_say_reaches_every_pod),
        cmocka_unit_test(the_shim_of_a_pod_is_the_one_of_this_program),
        cmocka_unit_test(a_pod_has_the_key_that_was_made_for_it_and_no_other),
        cmocka_unit_test(the_shim_of_horovods_master_serves_the_rendezvous_that_all_are_told_of),
        cmocka_unit_test(a_pod_goes_only_where_its_shim_can_run),
        cmocka_unit_test(a_pod_without_a_shim_for_its_nodes_goes_without_and_that_is_told),
        cmocka_unit_test(where_the_settings_switch_the_shim_off_nothing_of_it_is_left),
        cmocka_unit_test(a_claim_keeps_the_outputs_where_they_are),
        cmocka_unit_test(restricted_pods_ask_for_what_their_level_allows),
        cmocka_unit_test(the_owner_is_named_once_its_uid_is_known),
        cmocka_unit_test(a_comparison_shows_what_differs_and_nothing_else),
    };
    const char *given = getenv("MYELIN_SEED");

    state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("# MYELIN_SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
