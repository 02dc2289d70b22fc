/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/pod.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/signals.h"
#include "manifest/manifest.h"

enum { US_PER_S = 1000000, SIGNALS_FROM = 128, SIGNALS_MOST = 64 };

/* ---- values that may be anything ---- */

static bool is(const struct node *map, const char *key, const char *value) {
    return strcmp(node_get_text(map, key, ""), value) == 0;
}

static int64_t number_of(const struct node *map, const char *key, int64_t otherwise) {
    const struct node *node = node_get(map, key);

    return node && node->kind == NODE_INT ? node->integer : otherwise;
}

static int64_t time_of(const struct node *map, const char *key) {
    int64_t us = 0;

    return time_read(node_get_text(map, key, ""), &us) ? us : 0;
}

/* The entry of a list that has this member, or NULL; `value` NULL: the first one. */
static const struct node *entry_of(const struct node *list, const char *key, const char *value) {
    for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++)
        if (!value || is(&list->items[i], key, value))
            return &list->items[i];
    return NULL;
}

/* "256Mi", "1.5G", "1e9"; 0 for what is none. */
static int64_t bytes_of(const struct node *quantity) {
    static const struct {
        const char *suffix;
        double factor;
    } units[] = {
        { "", 1 },
        { "m", 1e-3 },
        { "k", 1e3 },
        { "M", 1e6 },
        { "G", 1e9 },
        { "T", 1e12 },
        { "P", 1e15 },
        { "Ki", 1024.0 },
        { "Mi", 1048576.0 },
        { "Gi", 1073741824.0 },
        { "Ti", 1099511627776.0 },
        { "Pi", 1125899906842624.0 },
    };
    double value = 0;
    char *rest;

    if (quantity && quantity->kind == NODE_INT)
        return quantity->integer > 0 ? quantity->integer : 0;
    if (!quantity || quantity->kind != NODE_TEXT)
        return 0;
    value = strtod(quantity->text, &rest);
    for (size_t i = 0; rest != quantity->text && i < ARRAY_LEN(units); i++)
        if (strcmp(rest, units[i].suffix) == 0 && value > 0 && value * units[i].factor < 9e18)
            return (int64_t)(value * units[i].factor);
    return 0;
}

static void say(struct pod *pod, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(struct pod *pod, const char *fmt, ...) {
    va_list args;

    va_start(args, fmt);
    vsnprintf(pod->sentence, sizeof pod->sentence, fmt, args);
    va_end(args);
}

/* ---- ends ---- */

static void end_with(struct pod *pod, enum pod_end end) {
    pod->phase = POD_ENDED;
    pod->end = end;
}

/* What a pod's own reason means, whatever its containers say. */
static const struct reason_row {
    const char *reason; /* a '*' at the end stands for anything */
    enum pod_end end;
    const char *sentence;
} pod_reasons[] = {
    { "Evicted", POD_EVICTED, "the node evicted the pod" },
    { "Preempting", POD_EVICTED, "the pod made room for one of higher priority" },
    { "Preempted", POD_EVICTED, "the pod made room for one of higher priority" },
    { "NodeLost", POD_NODE_LOST, "the node of the pod is lost" },
    { "NodeShutdown", POD_NODE_LOST, "the node of the pod was shut down" },
    { "Shutdown", POD_NODE_LOST, "the node of the pod was shut down" },
    { "Terminated", POD_NODE_LOST, "the node of the pod was shut down" },
    { "DeadlineExceeded", POD_DELETED, "the pod ran longer than the cluster lets it" },
    { "OutOf*", POD_NOT_STARTED, "the node refused the pod" },
    { "UnexpectedAdmissionError", POD_NOT_STARTED, "the node refused the pod" },
    { "NodeAffinity", POD_NOT_STARTED, "the node refused the pod" },
    { "NodePorts", POD_NOT_STARTED, "the node refused the pod" },
    { "AppArmor", POD_NOT_STARTED, "the node refused the pod" },
    { "SysctlForbidden", POD_NOT_STARTED, "the node refused the pod" },
};

/* Why somebody takes the pod away: reasons of the conditions DisruptionTarget, which the cluster
 * sets, and TerminationTarget, which queues do. */
static const struct reason_row disruptions[] = {
    { "PreemptionByScheduler", POD_EVICTED, "the pod made room for one of higher priority" },
    { "EvictionByEvictionAPI", POD_EVICTED, "the pod was evicted, as when a node is drained" },
    { "TerminationByKubelet", POD_EVICTED, "the node evicted the pod" },
    { "DeletionByTaintManager", POD_NODE_LOST, "the node of the pod is lost or was closed to it" },
    { "DeletionByPodGC", POD_NODE_LOST, "the node of the pod is gone" },
    { "WorkloadEvicted", POD_EVICTED, "Kueue took the pod's place back" },
    { "WorkloadDeleted", POD_DELETED, "somebody deleted Kueue's Workload of the pod" },
    { "NotAdmitted", POD_EVICTED, "Kueue took the pod's place back" },
    { "*", POD_EVICTED, "the cluster took the pod away" },
};

static const struct reason_row *row_of(const struct reason_row *rows, size_t n,
                                       const char *reason) {
    for (size_t i = 0; i < n; i++) {
        const size_t len = strcspn(rows[i].reason, "*");

        if (rows[i].reason[len] == '*' ? strncmp(rows[i].reason, reason, len) == 0
                                       : strcmp(rows[i].reason, reason) == 0)
            return &rows[i];
    }
    return NULL;
}

static void say_with(struct pod *pod, const char *sentence, const char *message) {
    say(pod, "%s%s%s", sentence, message[0] ? ": " : "", message);
}

/* The condition that it is in, with its status, or NULL. */
static const struct node *condition_of(const struct node *status, const char *type,
                                       const char *truth) {
    const struct node *condition = entry_of(node_get(status, "conditions"), "type", type);

    return condition && is(condition, "status", truth) ? condition : NULL;
}

/* Whether the container ended after somebody had asked for the pod's end. */
static bool ended_by_deletion(const struct pod *pod) {
    if (!pod->is_being_deleted)
        return false;
    return pod->ended_us == 0 || pod->deletion_us == 0 ||
           pod->ended_us >= pod->deletion_us - pod->deletion_grace_s * US_PER_S;
}

/* What keeps a node from starting the shim, which nobody who wrote the file knows of; "" of any
 * other program. */
static const char *shim_hint(const char *message) {
    static const struct {
        const char *part, *hint;
    } rows[] = {
        { "exec format error", "; its node has another processor than `kubernetes.architecture` of "
                               "config.yml, or the file, says" },
        { "permission denied",
          "; its node starts no program from a volume (noexec): "
          "`kubernetes.shim: false` in config.yml runs tasks without the shim" },
        { "", "; `kubernetes.shim: false` in config.yml runs tasks without the shim" },
    };
    size_t i = 0;

    if (!strstr(message, MANIFEST_SHIM))
        return "";
    while (!strstr(message, rows[i].part))
        i++;
    return rows[i].hint;
}

static void say_not_started(struct pod *pod, const char *who, const char *sentence,
                            const char *message) {
    say(pod, "%s %s%s%.200s%s", who, sentence, message[0] ? ": " : "", message, shim_hint(message));
}

static void say_memory(struct pod *pod) {
    if (pod->memory_limit > 0)
        say(pod, "the container was killed because it used more than its memory limit of %.4g MiB",
            (double)pod->memory_limit / 1048576);
    else
        say(pod, "the container was killed because its node ran out of memory (it has no limit)");
}

/* How a container ended by itself. */
static void take_exit(struct pod *pod, const struct node *terminated) {
    const char *reason = node_get_text(terminated, "reason", "");
    const char *message = node_get_text(terminated, "message", "");
    const int64_t code = number_of(terminated, "exitCode", 0);
    const int64_t number = number_of(terminated, "signal", 0);
    const int64_t by_code =
        code > SIGNALS_FROM && code <= SIGNALS_FROM + SIGNALS_MOST ? code - SIGNALS_FROM : 0;

    pod->detail = code >= INT32_MIN && code <= INT32_MAX ? (int)code : -1;
    if (strcmp(reason, "OOMKilled") == 0) {
        end_with(pod, POD_OOM);
        say_memory(pod);
    } else if (strcmp(reason, "StartError") == 0 || strcmp(reason, "ContainerCannotRun") == 0) {
        end_with(pod, POD_NOT_STARTED);
        say_not_started(pod, "the container", "cannot be started", message);
    } else if ((number > 0 && number <= SIGNALS_MOST) || by_code > 0) {
        /* Runtimes tell a signal as 128 and its number. */
        end_with(pod, POD_SIGNALLED);
        pod->detail = (int)(number > 0 && number <= SIGNALS_MOST ? number : by_code);
        say(pod, "the container was ended by %s", signal_text(pod->detail).text);
    } else {
        end_with(pod, POD_EXITED);
        if (code != 0)
            say(pod, "the container exited with code %d", pod->detail);
    }
}

static void take_terminated(struct pod *pod, const struct node *terminated,
                            const struct node *disruption) {
    const int64_t code = number_of(terminated, "exitCode", 0);

    const char *message = node_get_text(terminated, "message", "");

    pod->has_message = shim_end_read(message, strlen(message), &pod->message);
    pod->started_us = time_of(terminated, "startedAt");
    pod->ended_us = time_of(terminated, "finishedAt");
    take_exit(pod, terminated);
    if (code == 0 || pod->end == POD_OOM || pod->end == POD_NOT_STARTED)
        return;
    /* A failure that was done to it is told by who did it. */
    if (disruption || ended_by_deletion(pod)) {
        end_with(pod, pod->if_gone);
        say(pod, "%s", disruption ? pod->why_gone : "somebody deleted the pod before it was done");
    }
}

/* ---- waiting ---- */

#define MAY_NOT_BE_ROOT                                                                            \
    "may not run as root, and its image does not say that it will not: set `run_as_user` in "      \
    "config.yml to a number other than 0"

static const struct waiting_row {
    const char *reason;
    enum pod_trouble trouble;
    bool is_hopeless;
    const char *sentence;
    const char *part; /* what the message has in it; NULL: anything */
} waiting_rows[] = {
    { "ErrImagePull", POD_IMAGE, false, "cannot be pulled" },
    { "ImagePullBackOff", POD_IMAGE, false, "cannot be pulled" },
    { "InvalidImageName", POD_IMAGE, true, "has a name that no image can have" },
    { "ErrImageNeverPull", POD_IMAGE, true,
      "is not on the node, and imagePullPolicy: Never forbids to pull it" },
    { "ImageInspectError", POD_IMAGE, false, "cannot be read on the node" },
    { "RegistryUnavailable", POD_IMAGE, false, "is in a registry that does not answer" },
    { "SignatureValidationFailed", POD_IMAGE, true, "has no signature that the node accepts" },
    { "CreateContainerConfigError", POD_CONFIG, true, MAY_NOT_BE_ROOT, "runAsNonRoot" },
    { "CreateContainerConfigError", POD_CONFIG, true, MAY_NOT_BE_ROOT, "non-root policy" },
    { "CreateContainerConfigError", POD_CONFIG, false,
      "needs a secret, a config map or a key that is not there" },
    { "CreateContainerError", POD_START, true, "cannot be made" },
    { "RunContainerError", POD_START, true, "cannot be started" },
    { "StartError", POD_START, true, "cannot be started" },
    { "ContainerCannotRun", POD_START, true, "cannot be started" },
    { "PostStartHookError", POD_START, true, "failed in its postStart hook" },
    { "CrashLoopBackOff", POD_START, true, "ends again and again" },
};

/* True: the container waits for something that is wrong. `who` names it: "the container". */
static bool take_waiting(struct pod *pod, const struct node *container, const char *who,
                         const struct node *spec) {
    const struct node *waiting = node_get(node_get(container, "state"), "waiting");
    const char *reason = node_get_text(waiting, "reason", "");
    const char *message = node_get_text(waiting, "message", "");
    const char *image = node_get_text(spec, "image", "");

    for (size_t i = 0; i < ARRAY_LEN(waiting_rows); i++) {
        const struct waiting_row *row = &waiting_rows[i];

        if (strcmp(row->reason, reason) != 0 || (row->part && !strstr(message, row->part)))
            continue;
        pod->trouble = row->trouble;
        pod->is_hopeless = row->is_hopeless;
        if (row->trouble == POD_IMAGE)
            say(pod, "the image %.120s %s%s%.200s", image[0] ? image : "of the pod", row->sentence,
                message[0] ? ": " : "", message);
        else
            say_not_started(pod, who, row->sentence, message);
        return true;
    }
    return false;
}

static void take_init_failure(struct pod *pod, const struct node *init,
                              const struct node *terminated) {
    const char *message = node_get_text(terminated, "message", "");

    pod->trouble = POD_INIT;
    say(pod, "its init container %.60s failed with exit code %lld%s%.200s",
        node_get_text(init, "name", ""), (long long)number_of(terminated, "exitCode", 0),
        message[0] ? ": " : "", message);
}

/* Init containers that fail or wait for what is wrong. */
static void take_init(struct pod *pod, const struct node *spec, const struct node *status) {
    const struct node *list = node_get(status, "initContainerStatuses");

    for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
        const struct node *init = &list->items[i];
        const struct node *terminated = node_get(node_get(init, "state"), "terminated");
        char who[80];

        if (terminated && number_of(terminated, "exitCode", 0) != 0) {
            take_init_failure(pod, init, terminated);
            return;
        }
        snprintf(who, sizeof who, "the init container %.50s", node_get_text(init, "name", ""));
        if (take_waiting(pod, init, who,
                         entry_of(node_get(spec, "initContainers"), "name",
                                  node_get_text(init, "name", ""))))
            return;
    }
}

/* Ours is opened when it is the gang's turn; who waits at another as well waits for its owner. */
static void take_gates(struct pod *pod, const struct node *gates) {
    pod->gate = "";
    for (uint32_t i = 0; gates && gates->kind == NODE_LIST && i < gates->count; i++) {
        const char *name = node_get_text(&gates->items[i], "name", "");

        pod->is_gated = true;
        if (!pod->gate[0] || strcmp(pod->gate, MANIFEST_GATE) == 0)
            pod->gate = name;
    }
}

static void say_gated(struct pod *pod, const char *message) {
    const char *colon = message[0] ? ": " : "";

    if (strcmp(pod->gate, MANIFEST_GATE) == 0)
        say(pod, "the pod is held back until its turn%s%s", colon, message);
    else if (strcmp(pod->gate, MANIFEST_GATE_KUEUE) == 0)
        say(pod, "the pod is held back until Kueue admits it%s%s", colon, message);
    else
        say(pod, "the pod is held back by the gate %.100s%s%.200s",
            pod->gate[0] ? pod->gate : "of somebody", colon, message);
}

/* A scheduler that places gangs finds room for one of the pods, or does not look for it, and holds
 * it back since another has none. */
static bool was_put_off(const struct node *condition) {
    return is(condition, "reason", "Schedulable") || is(condition, "reason", "Undetermined") ||
           strstr(node_get_text(condition, "message", ""),
                  "optimistic rejection"); /* coscheduling's words */
}

static void take_unscheduled(struct pod *pod, const struct node *status) {
    const struct node *condition = condition_of(status, "PodScheduled", "False");
    const char *message = node_get_text(condition, "message", "");

    pod->phase = POD_WAITING;
    if (!condition)
        return;
    if (is(condition, "reason", "SchedulingGated")) {
        pod->trouble = POD_GATED;
        say_gated(pod, message);
    } else if (was_put_off(condition)) {
        pod->trouble = POD_PUT_OFF;
        say_with(pod, "another pod of its gang found no room", message);
    } else {
        pod->trouble = POD_UNSCHEDULABLE;
        say_with(pod, "no node can take the pod", message);
    }
}

/* ---- the whole ---- */

static void take_deletion(struct pod *pod, const struct node *metadata,
                          const struct node *disruption) {
    const struct reason_row *row = disruption ? row_of(disruptions, ARRAY_LEN(disruptions),
                                                       node_get_text(disruption, "reason", ""))
                                              : NULL;

    const char *message = node_get_text(disruption, "message", "");
    const int64_t grace_s = number_of(metadata, "deletionGracePeriodSeconds", 0);

    pod->is_being_deleted = node_get_text(metadata, "deletionTimestamp", "")[0] != '\0';
    pod->deletion_grace_s = grace_s > 0 && grace_s < INT32_MAX ? grace_s : 0;
    pod->deletion_us = time_of(metadata, "deletionTimestamp");
    pod->if_gone = row ? row->end : POD_DELETED;
    if (row)
        snprintf(pod->why_gone, sizeof pod->why_gone, "%s%s%s", row->sentence,
                 message[0] ? ": " : "", message);
}

/* Whether somebody takes it away, and says why. */
static const struct node *disruption_of(const struct node *status) {
    const struct node *by_cluster = condition_of(status, "DisruptionTarget", "True");

    return by_cluster ? by_cluster : condition_of(status, "TerminationTarget", "True");
}

/* A pod that has no container that ended says what is known of it. */
static void take_failed(struct pod *pod, const struct node *status) {
    const struct reason_row *row =
        row_of(pod_reasons, ARRAY_LEN(pod_reasons), node_get_text(status, "reason", ""));
    const char *message = node_get_text(status, "message", "");

    if (row) {
        end_with(pod, row->end);
        say_with(pod, row->sentence, message);
        return;
    }
    if (pod->end != POD_NOT_ENDED)
        return;
    end_with(pod, POD_NOT_STARTED);
    if (!pod->sentence[0])
        say_with(pod, "the pod failed before its container ran", message);
}

/* The part before the container exists. */
static void take_pending(struct pod *pod, const struct node *spec, const struct node *status,
                         const struct node *own, const struct node *container) {
    if (!pod->node[0]) {
        take_unscheduled(pod, status);
        return;
    }
    pod->phase = POD_SCHEDULED;
    if (condition_of(status, "Initialized", "True") &&
        (condition_of(status, "PodReadyToStartContainers", "True") ||
         condition_of(status, "PodHasNetwork", "True")))
        pod->phase = POD_PULLING;
    if (take_waiting(pod, container, "the container", own)) {
        if (pod->trouble == POD_IMAGE)
            pod->phase = POD_PULLING;
        return;
    }
    take_init(pod, spec, status);
}

/* The cluster takes back that a pod is ready when its node does not answer, and nothing else of it:
 * its containers are as ready as they were when the node was last heard of. */
static bool is_cut_off(const struct node *status) {
    const struct node *ready = condition_of(status, "Ready", "False");

    return ready && !is(ready, "reason", "ReadinessGatesNotReady") &&
           condition_of(status, "ContainersReady", "True");
}

void pod_read(const struct node *object, const char *container, struct pod *out) {
    const struct node *metadata = node_get(object, "metadata"), *spec = node_get(object, "spec"),
                      *status = node_get(object, "status");
    const struct node *own = entry_of(node_get(spec, "containers"), "name", container);
    const struct node *state, *terminated, *running, *disruption, *seen;

    *out = (struct pod){ .name = node_get_text(metadata, "name", ""),
                         .uid = node_get_text(metadata, "uid", ""),
                         .version = node_get_text(metadata, "resourceVersion", ""),
                         .node = node_get_text(spec, "nodeName", "") };
    out->memory_limit =
        bytes_of(node_get(node_get(node_get(own, "resources"), "limits"), "memory"));
    disruption = disruption_of(status);
    take_gates(out, node_get(spec, "schedulingGates"));
    take_deletion(out, metadata, disruption);
    seen = entry_of(node_get(status, "containerStatuses"), "name",
                    own ? node_get_text(own, "name", "") : container);
    state = node_get(seen, "state");
    terminated = node_get(state, "terminated");
    running = node_get(state, "running");
    out->restarts = (uint32_t)(number_of(seen, "restartCount", 0) & INT32_MAX);
    if (terminated && terminated->kind == NODE_MAP)
        take_terminated(out, terminated, disruption);
    else if (running && running->kind == NODE_MAP) {
        out->phase = POD_RUNNING;
        out->started_us = time_of(running, "startedAt");
        out->is_cut_off = is_cut_off(status);
    } else
        take_pending(out, spec, status, own, seen);
    if (is(status, "phase", "Failed"))
        take_failed(out, status);
    else if (is(status, "phase", "Succeeded") && out->end == POD_NOT_ENDED)
        end_with(out, POD_EXITED);
    else if (is(status, "reason", "NodeLost") && out->end == POD_NOT_ENDED)
        take_failed(out, status);
}

bool pod_has_lost_its_node(const struct pod *pod) {
    return pod->is_cut_off || (pod->is_being_deleted && pod->if_gone == POD_NODE_LOST);
}

bool pod_tells_more(enum pod_trouble trouble, enum pod_trouble than) {
    return than == POD_FINE || (than == POD_PUT_OFF && trouble != POD_PUT_OFF);
}

void pod_vanished(struct pod *last) {
    if (last->end != POD_NOT_ENDED)
        return;
    if (last->is_cut_off && last->if_gone != POD_EVICTED)
        last->if_gone = POD_NODE_LOST;
    end_with(last, last->if_gone == POD_NOT_ENDED ? POD_DELETED : last->if_gone);
    if (last->end == POD_NODE_LOST)
        say(last, "the node of the pod is lost");
    else if (last->end == POD_EVICTED)
        say(last, "%s", last->why_gone[0] ? last->why_gone : "the pod was evicted");
    else
        say(last, "somebody deleted the pod before it was done");
}
