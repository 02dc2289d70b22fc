/* SPDX-License-Identifier: Apache-2.0 */
/* Pods as API servers tell them, and what is made of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "backend/kubernetes/pod.h"
#include "codec/json_read.h"

#define META "\"metadata\":{\"name\":\"r-worker-0\",\"uid\":\"5776397b\"%s}"
#define SPEC                                                                                       \
    "\"spec\":{\"nodeName\":\"%s\",\"containers\":[{\"name\":\"sidecar\",\"image\":\"s\"},{"       \
    "\"name\":\"tensorflow\",\"image\":\"reg/"                                                     \
    "tf:2\",\"resources\":{\"limits\":{\"memory\":\"512Mi\"}}}]}"

static struct arena arena;

static int release(void **state) {
    (void)state;
    arena_release(&arena);
    return 0;
}

/* A pod with this metadata beside the usual, on this node, in this status. */
static struct pod read_pod(const char *metadata, const char *node, const char *status) {
    char *text = arena_printf(&arena, "{\"kind\":\"Pod\"," META "," SPEC ",\"status\":%s}",
                              metadata, node, status);
    struct node *root = ARENA_NEW(&arena, struct node);
    struct error err;
    struct pod pod;

    if (json_read(text, strlen(text), &arena, root, &err))
        fail_msg("%s in %s", err.message, text);
    pod_read(root, "tensorflow", &pod);
    return pod;
}

/* The same whose container is in this state. */
static struct pod in_state(const char *metadata, const char *phase, const char *state) {
    return read_pod(metadata, "node-1",
                    arena_printf(&arena,
                                 "{\"phase\":\"%s\",\"containerStatuses\":[{\"name\":\"sidecar\","
                                 "\"state\":{\"running\":{}}},"
                                 "{\"name\":\"tensorflow\",\"restartCount\":2,\"state\":{%s}}]}",
                                 phase, state));
}

static struct pod waiting(const char *reason, const char *message) {
    return in_state("", "Pending",
                    arena_printf(&arena, "\"waiting\":{\"reason\":\"%s\",\"message\":\"%s\"}",
                                 reason, message));
}

static struct pod ended(int code, const char *reason) {
    return in_state(
        "", code ? "Failed" : "Succeeded",
        arena_printf(&arena,
                     "\"terminated\":{\"exitCode\":%d,\"reason\":\"%s\",\"startedAt\":\"2026-03-"
                     "01T12:00:00Z\",\"finishedAt\":\"2026-03-01T12:01:00Z\"}",
                     code, reason));
}

static void says(const struct pod *pod, const char *sentence) {
    assert_string_equal(pod->sentence, sentence);
}

static void a_pod_without_a_node_tells_the_schedulers_reason(void **state) {
    struct pod pod = read_pod("", "",
                              "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\","
                              "\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/2 "
                              "nodes are available: 2 Insufficient nvidia.com/gpu.\"}]}");

    (void)state;
    assert_int_equal(pod.phase, POD_WAITING);
    assert_int_equal(pod.trouble, POD_UNSCHEDULABLE);
    assert_false(pod.is_hopeless); /* a node may come */
    says(&pod, "no node can take the pod: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu.");
    pod = read_pod("", "",
                   "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
                   "\"False\",\"reason\":\"SchedulingGated\",\"message\":\"waiting\"}]}");
    assert_int_equal(pod.trouble, POD_GATED);
    says(&pod, "the pod is held back by the gate of somebody: waiting");
}

#define UNPLACED(reason, message)                                                                  \
    "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","      \
    "\"reason\":\"" reason "\",\"message\":\"" message "\"}]}"

static void a_pod_that_is_held_back_since_another_has_no_room_says_so(void **state) {
    static const char *const rows[] = {
        UNPLACED("Unschedulable", "1 optimistic rejection in PostFilter."), /* coscheduling */
        UNPLACED("Schedulable", "it can possibly be assigned to node1"),    /* Volcano */
        UNPLACED("Undetermined", "others first"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct pod pod = read_pod("", "", rows[i]);

        assert_int_equal(pod.phase, POD_WAITING);
        assert_int_equal(pod.trouble, POD_PUT_OFF);
        assert_non_null(strstr(pod.sentence, "another pod of its gang found no room: "));
    }
}

#define GATED(gates)                                                                               \
    "{\"spec\":{\"schedulingGates\":[" gates "]},\"status\":{\"phase\":\"Pending\","               \
    "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"                  \
    "\"SchedulingGated\"}]}}"

static void a_pod_that_is_held_back_says_by_whom(void **state) {
    static const struct {
        const char *text, *gate, *sentence;
    } rows[] = {
        { GATED("{\"name\":\"myelin/gang\"}"), "myelin/gang",
          "the pod is held back until its turn" },
        { GATED("{\"name\":\"kueue.x-k8s.io/admission\"}"), "kueue.x-k8s.io/admission",
          "the pod is held back until Kueue admits it" },
        { GATED("{\"name\":\"myelin/gang\"},{\"name\":\"a.b/c\"}"), "a.b/c",
          "the pod is held back by the gate a.b/c" },
        { GATED("7"), "", "the pod is held back by the gate of somebody" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err;
        struct node root;
        struct pod pod;

        assert_int_equal(json_read(rows[i].text, strlen(rows[i].text), &arena, &root, &err), 0);
        pod_read(&root, "task", &pod);
        assert_true(pod.is_gated);
        assert_string_equal(pod.gate, rows[i].gate);
        says(&pod, rows[i].sentence);
    }
}

static void a_new_pod_waits_without_trouble(void **state) {
    const struct pod pod = read_pod("", "", "{\"phase\":\"Pending\"}");

    (void)state;
    assert_int_equal(pod.phase, POD_WAITING);
    assert_int_equal(pod.trouble, POD_FINE);
    assert_string_equal(pod.name, "r-worker-0");
    assert_string_equal(pod.uid, "5776397b");
    says(&pod, "");
}

static void the_way_to_running_has_its_steps(void **state) {
    struct pod pod = waiting("ContainerCreating", "");

    (void)state;
    assert_int_equal(pod.phase, POD_SCHEDULED);
    assert_string_equal(pod.node, "node-1");
    pod = read_pod("", "node-1",
                   "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Initialized\",\"status\":"
                   "\"True\"},{\"type\":\"PodReadyToStartContainers\",\"status\":\"True\"}]}");
    assert_int_equal(pod.phase, POD_PULLING);
    pod = in_state("", "Running", "\"running\":{\"startedAt\":\"2026-03-01T12:00:00Z\"}");
    assert_int_equal(pod.phase, POD_RUNNING);
    assert_int_equal(pod.started_us, 1772366400000000);
    assert_int_equal(pod.restarts, 2);
    assert_int_equal(pod.end, POD_NOT_ENDED);
}

static void an_image_that_is_not_pulled_is_named(void **state) {
    struct pod pod = waiting("ErrImagePull", "not found");

    (void)state;
    assert_int_equal(pod.trouble, POD_IMAGE);
    assert_int_equal(pod.phase, POD_PULLING);
    assert_false(pod.is_hopeless); /* registries recover */
    says(&pod, "the image reg/tf:2 cannot be pulled: not found");
    pod = waiting("ImagePullBackOff", "Back-off");
    assert_int_equal(pod.trouble, POD_IMAGE);
    pod = waiting("InvalidImageName", "");
    assert_int_equal(pod.trouble, POD_IMAGE);
    assert_true(pod.is_hopeless);
    says(&pod, "the image reg/tf:2 has a name that no image can have");
}

static void a_missing_secret_is_told(void **state) {
    const struct pod pod = waiting("CreateContainerConfigError", "secret \\\"s\\\" not found");

    (void)state;
    assert_int_equal(pod.trouble, POD_CONFIG);
    says(&pod, "the container needs a secret, a config map or a key that is not there: secret "
               "\"s\" not found");
}

static void an_image_that_would_be_root_where_none_may_be_is_hopeless(void **state) {
    static const char *const words[] = {
        "container has runAsNonRoot and image will run as root (pod: \\\"x\\\", container: task)",
        "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is "
        "non-root",
        "container's runAsUser breaks non-root policy",
    };

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const struct pod pod = waiting("CreateContainerConfigError", words[i]);

        assert_int_equal(pod.trouble, POD_CONFIG);
        assert_true(pod.is_hopeless);
        assert_non_null(strstr(pod.sentence, "the container may not run as root"));
        assert_non_null(strstr(pod.sentence, "set `run_as_user` in config.yml"));
        assert_null(strstr(pod.sentence, "secret"));
    }
}

static void a_container_that_cannot_start_is_hopeless(void **state) {
    struct pod pod = waiting("RunContainerError", "exec: \\\"trian\\\": not found");

    (void)state;
    assert_int_equal(pod.trouble, POD_START);
    assert_true(pod.is_hopeless);
    says(&pod, "the container cannot be started: exec: \"trian\": not found");
    pod = in_state(
        "", "Failed",
        "\"terminated\":{\"exitCode\":128,\"reason\":\"StartError\",\"message\":\"exec: trian\"}");
    assert_int_equal(pod.end, POD_NOT_STARTED);
    says(&pod, "the container cannot be started: exec: trian");
}

static void a_shim_that_its_node_does_not_start_is_told_with_the_way_out(void **state) {
    static const struct {
        const char *message, *hint;
    } rows[] = {
        { "exec: \\\"/myelin/shim/shim\\\": permission denied",
          "(noexec): `kubernetes.shim: false`" },
        { "exec /myelin/shim/shim: exec format error", "`kubernetes.architecture`" },
        { "exec /myelin/shim/shim: no such file or directory", "`kubernetes.shim: false`" },
        { "exec: \\\"/bin/train\\\": permission denied", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows) * 2; i++) {
        const char *message = rows[i / 2].message, *hint = rows[i / 2].hint;
        const char *status = arena_printf(
            &arena,
            i % 2
                ? "{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"tensorflow\",\"state\":"
                  "{\"terminated\":{\"exitCode\":128,\"reason\":\"StartError\",\"message\":"
                  "\"%s\"}}}]}"
                : "{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"tensorflow\","
                  "\"state\":"
                  "{\"waiting\":{\"reason\":\"RunContainerError\",\"message\":\"%s\"}}}]}",
            message);
        const struct pod pod = read_pod("", "n", status);

        if (hint && !strstr(pod.sentence, hint))
            fail_msg("no `%s` in: %s", hint, pod.sentence);
        if (!hint && strstr(pod.sentence, "kubernetes."))
            fail_msg("a hint in: %s", pod.sentence);
        assert_non_null(strstr(pod.sentence, "the container cannot be started: exec"));
    }
}

static void a_pod_whose_place_kueue_takes_back_is_told_so(void **state) {
    struct pod pod = read_pod(
        ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", "n",
        "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"TerminationTarget\",\"status\":"
        "\"True\","
        "\"reason\":\"WorkloadEvicted\",\"message\":\"Preempted to accommodate a workload\"}]}");

    (void)state;
    assert_int_equal(pod.if_gone, POD_EVICTED);
    pod_vanished(&pod);
    assert_int_equal(pod.end, POD_EVICTED);
    says(&pod, "Kueue took the pod's place back: Preempted to accommodate a workload");
}

static void an_exit_is_its_code(void **state) {
    struct pod pod = ended(0, "Completed");

    (void)state;
    assert_int_equal(pod.phase, POD_ENDED);
    assert_int_equal(pod.end, POD_EXITED);
    assert_int_equal(pod.detail, 0);
    assert_int_equal(pod.ended_us - pod.started_us, 60000000);
    says(&pod, "");
    pod = ended(3, "Error");
    assert_int_equal(pod.end, POD_EXITED);
    assert_int_equal(pod.detail, 3);
    says(&pod, "the container exited with code 3");
}

static void a_signal_is_told_as_a_signal(void **state) {
    struct pod pod = ended(137, "Error");

    (void)state;
    assert_int_equal(pod.end, POD_SIGNALLED);
    assert_int_equal(pod.detail, 9);
    says(&pod, "the container was ended by signal 9 (SIGKILL)");
    pod = ended(255, "Error");
    assert_int_equal(pod.end, POD_EXITED);
}

static void a_memory_limit_is_told_with_its_size(void **state) {
    const struct pod pod = ended(137, "OOMKilled");

    (void)state;
    assert_int_equal(pod.end, POD_OOM);
    assert_int_equal(pod.memory_limit, 512 << 20);
    says(&pod, "the container was killed because it used more than its memory limit of 512 MiB");
}

static void an_eviction_is_told_by_the_node(void **state) {
    const struct pod pod = read_pod("", "node-1",
                                    "{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":"
                                    "\"The node was low on resource: memory.\"}");

    (void)state;
    assert_int_equal(pod.end, POD_EVICTED);
    says(&pod, "the node evicted the pod: The node was low on resource: memory.");
}

static void a_deadline_is_told_as_one(void **state) {
    static const char over[] =
        "{\"phase\":\"Failed\",\"reason\":\"DeadlineExceeded\",\"message\":\"Pod was active on the "
        "node longer than the specified deadline\",\"containerStatuses\":[{\"name\":"
        "\"tensorflow\",\"state\":{%s}}]}";
    static const char *const states[] = { "\"running\":{}", "\"terminated\":{\"exitCode\":143}" };

    (void)state;
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        const struct pod pod = read_pod("", "node-1", arena_printf(&arena, over, states[i]));

        assert_int_equal(pod.phase, POD_ENDED);
        assert_int_equal(pod.end, POD_DELETED);
        says(&pod, "the pod ran longer than the cluster lets it: Pod was active on the node longer "
                   "than the specified deadline");
    }
}

static void a_node_that_refuses_started_nothing(void **state) {
    const struct pod pod = read_pod("", "node-1",
                                    "{\"phase\":\"Failed\",\"reason\":\"OutOfnvidia.com/"
                                    "gpu\",\"message\":\"Node didn't have enough resource\"}");

    (void)state;
    assert_int_equal(pod.end, POD_NOT_STARTED);
    says(&pod, "the node refused the pod: Node didn't have enough resource");
}

#define DELETED ",\"deletionTimestamp\":\"2026-03-01T12:01:20Z\",\"deletionGracePeriodSeconds\":30"
#define TAINTED                                                                                    \
    "\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":"               \
    "\"DeletionByTaintManager\",\"message\":\"Taint manager: deleting due to NoExecute taint\"}]"

static void a_deleted_pod_failed_by_deletion_only_if_it_ended_after_it(void **state) {
    struct pod pod = in_state(DELETED, "Running", "\"running\":{}");

    (void)state;
    assert_int_equal(pod.phase, POD_RUNNING);
    assert_true(pod.is_being_deleted);
    pod = in_state(DELETED, "Failed",
                   "\"terminated\":{\"exitCode\":143,\"reason\":\"Error\",\"finishedAt\":\"2026-03-"
                   "01T12:00:51Z\"}");
    assert_int_equal(pod.end, POD_DELETED);
    says(&pod, "somebody deleted the pod before it was done");
    pod = in_state(DELETED, "Failed",
                   "\"terminated\":{\"exitCode\":1,\"reason\":\"Error\",\"finishedAt\":\"2026-03-"
                   "01T12:00:49Z\"}");
    assert_int_equal(pod.end, POD_EXITED);
    pod = in_state(DELETED, "Succeeded",
                   "\"terminated\":{\"exitCode\":0,\"finishedAt\":\"2026-03-01T12:00:51Z\"}");
    assert_int_equal(pod.end, POD_EXITED);
    assert_int_equal(pod.detail, 0);
}

static struct pod taken_away(const char *condition, const char *reason, const char *message) {
    return read_pod(DELETED, "node-1",
                    arena_printf(&arena,
                                 "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"%s\","
                                 "\"status\":\"True\",\"reason\":\"%s\",\"message\":\"%s\"}],"
                                 "\"containerStatuses\":[{\"name\":\"tensorflow\",\"state\":{"
                                 "\"running\":{}}}]}",
                                 condition, reason, message));
}

static void a_pod_that_vanishes_ended_by_what_was_done_to_it(void **state) {
    struct pod pod = in_state("", "Running", "\"running\":{}");

    (void)state;
    pod_vanished(&pod);
    assert_int_equal(pod.phase, POD_ENDED);
    assert_int_equal(pod.end, POD_DELETED);
    pod =
        read_pod(DELETED, "node-1",
                 "{\"phase\":\"Running\"," TAINTED
                 ",\"containerStatuses\":[{\"name\":\"tensorflow\",\"state\":{\"running\":{}}}]}");
    assert_int_equal(pod.phase, POD_RUNNING);
    assert_int_equal(pod.if_gone, POD_NODE_LOST);
    assert_int_equal(pod.deletion_us, 1772366480000000);
    pod_vanished(&pod);
    assert_int_equal(pod.end, POD_NODE_LOST);
    pod =
        read_pod(DELETED, "node-1",
                 "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
                 "\"True\",\"reason\":\"EvictionByEvictionAPI\"}],\"containerStatuses\":[{\"name\":"
                 "\"tensorflow\",\"state\":{\"running\":{}}}]}");
    pod_vanished(&pod);
    assert_int_equal(pod.end, POD_EVICTED);
    says(&pod, "the pod was evicted, as when a node is drained");
    /* Reasons are added with each release. */
    pod = taken_away("DisruptionTarget", "SomethingNew", "make way");
    pod_vanished(&pod);
    assert_int_equal(pod.end, POD_EVICTED);
    says(&pod, "the cluster took the pod away: make way");
    pod = ended(3, "Error");
    pod_vanished(&pod);
    assert_int_equal(pod.end, POD_EXITED);
    assert_int_equal(pod.detail, 3);
}

static void a_lost_node_is_told(void **state) {
    struct pod pod =
        read_pod("", "node-1",
                 "{\"phase\":\"Running\",\"reason\":\"NodeLost\",\"message\":\"Node node-1 is "
                 "unresponsive\",\"containerStatuses\":[{\"name\":\"tensorflow\",\"state\":{"
                 "\"running\":{}}}]}");

    (void)state;
    assert_int_equal(pod.end, POD_NODE_LOST);
    says(&pod, "the node of the pod is lost: Node node-1 is unresponsive");
    pod = read_pod(DELETED, "node-1",
                   "{\"phase\":\"Failed\"," TAINTED
                   ",\"containerStatuses\":[{\"name\":\"tensorflow\",\"state\":{\"terminated\":{"
                   "\"exitCode\":137}}}]}");
    assert_int_equal(pod.end, POD_NODE_LOST);
}

#define READY(ready, reason, containers)                                                           \
    "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready               \
    "\",\"reason\":\"" reason "\"},{\"type\":\"ContainersReady\",\"status\":\"" containers         \
    "\"}],\"containerStatuses\":[{\"name\":\"tensorflow\",\"state\":{\"running\":{}}}]}"

static void a_node_that_does_not_answer_is_known_by_what_it_takes_back(void **state) {
    struct pod pod = read_pod("", "node-1", READY("False", "", "True"));

    (void)state;
    assert_int_equal(pod.phase, POD_RUNNING);
    assert_true(pod.is_cut_off);
    assert_true(pod_has_lost_its_node(&pod));
    pod_vanished(&pod);
    assert_int_equal(pod.end, POD_NODE_LOST);
    pod = read_pod("", "node-1", READY("True", "", "True"));
    assert_false(pod.is_cut_off);
    pod = read_pod("", "node-1", READY("False", "ContainersNotReady", "False"));
    assert_false(pod.is_cut_off);
    pod = read_pod("", "node-1", READY("False", "ReadinessGatesNotReady", "True"));
    assert_false(pod.is_cut_off);
    assert_false(pod_has_lost_its_node(&pod));
}

static void an_init_container_that_fails_is_named(void **state) {
    struct pod pod =
        read_pod("", "node-1",
                 "{\"phase\":\"Failed\",\"initContainerStatuses\":[{\"name\":\"init-pytorch\","
                 "\"state\":{\"terminated\":{\"exitCode\":2}}}],\"containerStatuses\":[{\"name\":"
                 "\"tensorflow\",\"state\":{\"waiting\":{\"reason\":\"PodInitializing\"}}}]}");

    (void)state;
    assert_int_equal(pod.end, POD_NOT_STARTED);
    assert_int_equal(pod.trouble, POD_INIT);
    says(&pod, "its init container init-pytorch failed with exit code 2");
    pod = read_pod("", "node-1",
                   "{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"name\":\"i\",\"state\":{"
                   "\"waiting\":{\"reason\":\"ErrImagePull\",\"message\":\"m\"}}}]}");
    assert_int_equal(pod.trouble, POD_IMAGE);
    says(&pod, "the image of the pod cannot be pulled: m");
}

static void nothing_is_assumed_of_a_pod(void **state) {
    static const char *const texts[] = {
        "null",
        "[]",
        "{}",
        "{\"metadata\":3,\"spec\":[],\"status\":\"x\"}",
        "{\"status\":{\"containerStatuses\":{\"a\":1},\"conditions\":3,\"phase\":[]}}",
        "{\"status\":{\"phase\":\"Failed\"}}"
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct node root;
        struct error err;
        struct pod pod;

        assert_int_equal(json_read(texts[i], strlen(texts[i]), &arena, &root, &err), 0);
        pod_read(&root, NULL, &pod);
        assert_string_equal(pod.name, "");
        assert_int_equal(pod.phase, i == 5 ? POD_ENDED : POD_WAITING);
    }
}

#define CASE(law) cmocka_unit_test_teardown(law, release)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(a_pod_without_a_node_tells_the_schedulers_reason),
        CASE(a_pod_that_is_held_back_since_another_has_no_room_says_so),
        CASE(a_pod_that_is_held_back_says_by_whom),
        CASE(a_new_pod_waits_without_trouble),
        CASE(the_way_to_running_has_its_steps),
        CASE(an_image_that_is_not_pulled_is_named),
        CASE(a_missing_secret_is_told),
        CASE(a_container_that_cannot_start_is_hopeless),
        CASE(an_image_that_would_be_root_where_none_may_be_is_hopeless),
        CASE(a_deadline_is_told_as_one),
        CASE(a_shim_that_its_node_does_not_start_is_told_with_the_way_out),
        CASE(a_pod_whose_place_kueue_takes_back_is_told_so),
        CASE(an_exit_is_its_code),
        CASE(a_signal_is_told_as_a_signal),
        CASE(a_memory_limit_is_told_with_its_size),
        CASE(an_eviction_is_told_by_the_node),
        CASE(a_node_that_refuses_started_nothing),
        CASE(a_deleted_pod_failed_by_deletion_only_if_it_ended_after_it),
        CASE(a_pod_that_vanishes_ended_by_what_was_done_to_it),
        CASE(a_lost_node_is_told),
        CASE(a_node_that_does_not_answer_is_known_by_what_it_takes_back),
        CASE(an_init_container_that_fails_is_named),
        CASE(nothing_is_assumed_of_a_pod),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
