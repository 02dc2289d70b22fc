/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gang of two tasks as a TFJob, on a cluster that a peer plays: the API server, the operator and
 * the nodes. What the gang is told stands in one line, in its order:
 *
 *   submitted; +0 +1 0:words| ended 0 exit 0; ended 1 lost: …; gone;
 */
#ifndef TESTS_TFJOB_H
#define TESTS_TFJOB_H

#include "backend/kubernetes/pods.h"
#include "peer.h"

#define UUID "0f8b3c1d2e4a5b6c7d8e9f0a1b2c3d4e"
#define NAME "myelin-0f8b3c1d2e4a-0"

/* Requests. */
#define GROUP  "GET /apis/kubeflow.org HTTP"
#define KINDS  "GET /apis/kubeflow.org/v1 HTTP"
#define CREATE "POST /apis/kubeflow.org/v1/namespaces/n/tfjobs"
#define LOOKUP "GET /apis/kubeflow.org/v1/namespaces/n/tfjobs/" NAME
#define JOBS   "GET /apis/kubeflow.org/v1/namespaces/n/tfjobs?"
#define PODS   "GET /api/v1/namespaces/n/pods?"
#define LOG0   "master-0/log?"
#define LOG1   "worker-0/log?"
#define DELETE "DELETE /apis/kubeflow.org/v1/namespaces/n/tfjobs/" NAME

/* Objects. */
#define META(name, uid, version, labels)                                                           \
    "\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":\"" uid                       \
    "\",\"resourceVersion\":\"" version "\",\"labels\":{\"myelin/run\":" labels "}}"
#define JOB(version, status)                                                                       \
    "{" META(NAME, "j", version, "\"" UUID "\"") ",\"status\":{" status "}}"
#define FOREIGN_JOB "{" META(NAME, "j", "1", "\"another\"") "}"
#define LABELS(role)                                                                               \
    "\"" UUID "\",\"myelin/role\":\"" role "\",\"training.kubeflow.org/replica-index\":\"0\""
#define CONTAINERS                                                                                 \
    "\"containers\":[{\"name\":\"tensorflow\",\"image\":\"train:1\",\"resources\":{\"limits\":{"   \
    "\"memory\":\"64Mi\"}}}]"
#define POD(role, uid, version, extra, status)                                                     \
    "{" META(NAME "-" role "-0", uid, version, LABELS(role)) ",\"spec\":{" extra CONTAINERS        \
                                                             "},\"status\":{" status "}}"
#define ON_NODE "\"nodeName\":\"node1\","
#define STATE(phase, state)                                                                        \
    "\"phase\":\"" phase "\",\"containerStatuses\":[{\"name\":\"tensorflow\",\"state\":{" state    \
    "}}]"
#define RUNS STATE("Running", "\"running\":{\"startedAt\":\"2026-03-01T12:00:00Z\"}")
#define ENDED_AT(phase, code, reason, moment)                                                      \
    STATE(phase, "\"terminated\":{\"exitCode\":" code ",\"reason\":\"" reason                      \
                 "\",\"startedAt\":\"2026-03-01T12:00:00Z\",\"finishedAt\":\"" moment "\"}")
#define ENDED(phase, code)  ENDED_AT(phase, code, "", "2026-03-01T13:00:00Z")
#define LIST(items)         "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"message\":\"" message "\",\"reason\":\"" reason "\",\"code\":" #code "}"

#define MASTER(version, status) POD("master", "p0", version, ON_NODE, status)
#define WORKER(version, status) POD("worker", "p1", version, ON_NODE, status)
#define BOTH_RUN                MASTER("3", RUNS) "," WORKER("4", RUNS)

#define MASTER_GOES EVENT("DELETED", MASTER("40", ENDED("Succeeded", "0")))
#define WORKER_GOES EVENT("DELETED", WORKER("41", ENDED("Succeeded", "0")))

struct fixture {
    struct event_base *loop;
    struct peer *peer;
    struct plan *plan;
    struct settings *settings;
    struct pods_options options;
    struct attempt_facts facts;
    struct backend *backend;
    char home[64], kubeconfig[96];
    uint64_t delivered[2];
    char told[8192];
    const char *until; /* what is waited for in `told` */
    int is_there;
};

/* For cmocka: `*state` is the fixture. A text that never came is printed with what came. */
int set_up(void **state);
int tear_down(void **state);

/* ---- the gang ---- */

void launch(struct fixture *f);
void stop(struct fixture *f, enum stop_manner manner);
/* Frees the backend, as the end of its process would. */
void leave(struct fixture *f);
void wait_for(struct fixture *f, const char *text);
/* Lets everything happen that is on its way. */
void breathe(struct fixture *f);

/* ---- the cluster: what it answers to requests that have `part` in their first line ---- */

void say(struct fixture *f, const char *part, int status, const char *body);
void hang(struct fixture *f, const char *part, const char *pieces);
/* The log of a pod, to which peer_more adds. Who hears of its end before that of the pod asks once
 * more, and there is nothing new. */
void logs(struct fixture *f, const char *part, const char *pieces);
void has_kinds(struct fixture *f, const char *kinds);
void has_operator(struct fixture *f);
void takes_job(struct fixture *f);
/* Lists and their streams, to which peer_more adds. */
void shows(struct fixture *f, const char *jobs, const char *pods);
/* The job and what it has of pods are deleted, and the watches see that. */
void deletes(struct fixture *f, const char *pods);

/* ---- what came of it ---- */

void contains(const char *text, const char *part);
/* How many requests begin so; and the first that has this in it. */
size_t count_asked(const struct fixture *f, const char *start);
const char *asked(const struct fixture *f, const char *part);

#endif
