/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of a run on Kubernetes, made from its plan. Pure: the same input gives the same
 * objects, to the byte; no cluster is asked and no file is read.
 *
 *   MANIFEST_KUBEFLOW   one object of the operator's: TFJob, PyTorchJob, MXJob or MPIJob. The
 *                       operator makes the pods, and wires them.
 *   MANIFEST_NATIVE     a Pod for each task, a headless Service that gives them names, a ConfigMap
 *                       that owns all, and one with the shim (docs/shim.md), which starts the tasks
 *                       and brings back what they leave. The wiring is ours. Where the settings
 *                       name a gang scheduler, a PodGroup of its kind. Pods stand last.
 *
 * What a target cannot express is an error with its place in the polyaxonfile and the way out;
 * nothing is changed silently. What is lost without anybody's mistake is a note.
 *
 * Laws (tests/unit/test_manifest.c):
 *   1. Each task of the plan appears exactly once: as a pod, or as an index of a replica type.
 *   2. The sums of what the pods reserve are the plan's totals.
 *   3. What a task finds in its environment is the contract of docs/contract.md, but for the rows
 *      of manifest/variables.h.
 *   4. Every name is a DNS label, and made from the run's uuid and attempt alone: to create twice
 *      is to create once.
 *   5. Every object and every pod has the labels of the run, the attempt and the manager.
 */
#ifndef MANIFEST_MANIFEST_H
#define MANIFEST_MANIFEST_H

#include "codec/diag.h"
#include "model/plan.h"
#include "spec/settings.h"

enum manifest_target { MANIFEST_NATIVE, MANIFEST_KUBEFLOW };

enum {
    MANIFEST_NAME_MAX = 40,   /* bytes of an object's name with its NUL: a pod's is longer */
    MANIFEST_PODS_MAX = 5000, /* of native pods in one run: each holds the names of all */
};

/* By these everything of a run is found again. */
#define MANIFEST_LABEL_RUN     "myelin/run"     /* the uuid */
#define MANIFEST_LABEL_ATTEMPT "myelin/attempt" /* "0", "1" */
#define MANIFEST_LABEL_ROLE    "myelin/role"    /* master, worker, ps; of a pod */
#define MANIFEST_LABEL_INDEX   "myelin/index"   /* of a native pod; Kubeflow's is below */
#define MANIFEST_LABEL_MANAGED "app.kubernetes.io/managed-by" /* "myelin" */
/* The gate that keeps the scheduler from the pods of a gang before all of them exist and its turn
 * has come; who makes them opens it. */
#define MANIFEST_GATE "myelin/gang"
/* The one that Kueue gives what it has not admitted yet. */
#define MANIFEST_GATE_KUEUE "kueue.x-k8s.io/admission"
/* What the operators put on their pods, beside our labels. The launcher of an MPIJob has neither;
 * the workers of one have the index alone. */
#define KUBEFLOW_LABEL_INDEX "training.kubeflow.org/replica-index"
#define KUBEFLOW_LABEL_TYPE  "training.kubeflow.org/replica-type"

/* The facts of a run that its plan does not have. */
struct manifest_run {
    const char *id;   /* "7" */
    const char *uuid; /* 32 hexadecimal digits */
    uint32_t attempt; /* how often the gang was started before */
    uint32_t grace_s; /* that tasks get when they are stopped; 0: as the cluster has it */
    const char *owner, *project;
    const char *outputs_of; /* the uuid of the run whose outputs it goes on with; NULL: its own */
    const char *owner_uid;  /* native: the uid of the ConfigMap once it exists; NULL: not yet */
    const char *shim_key;   /* native: 32 hexadecimal digits, by which we are known; NULL: none */
};

struct manifest_input {
    const struct plan *plan;
    const struct settings *settings;
    enum manifest_target target;
    struct manifest_run run;
    const char *image;     /* wins over the file's and the settings'; or NULL */
    bool has_no_shim;      /* native: nobody could ask it, whatever the settings say */
    bool is_shim_unasked;  /* native: it is there for the tasks to meet, and nobody asks it */
    const char *namespace; /* wins over the settings'; NULL and none there: the objects name none */
    /* What the cluster serves, as "kubeflow.org/v1/TFJob", ended by NULL. NULL: nobody asked, and
     * each kind is taken to be there in the version that we know. */
    const char *const *apis;
};

struct manifest {
    struct arena arena; /* holds all that is below */
    char name[MANIFEST_NAME_MAX];
    const char *namespace;      /* or NULL */
    const struct node *objects; /* in the order in which they are to be created */
    size_t n_objects;
    const char *const *notes; /* sentences on what a user should know, each without a full stop */
    size_t n_notes;
    bool is_gated; /* each pod has MANIFEST_GATE: nobody else places the gang whole */
};

/* The objects point into the texts and nodes of the input, which outlive them.
 * Returns NULL when there are errors, which are in diags; their places are those of the plan's and
 * the settings' nodes, whose sources the caller has. */
struct manifest *manifest_build(const struct manifest_input *input, struct diags *diags);
void manifest_free(struct manifest *manifest);
DEFINE_AUTO_PTR(manifest)

/* "myelin-0f8b3c1d2e4a-0": the name of the job, or of the ConfigMap and the Service. */
/* Says what of the plan no job of Kubeflow's could hold, on whatever cluster. */
void manifest_check_kubeflow(const struct plan *plan, struct diags *diags);

void manifest_name(const struct manifest_run *run, char out[static MANIFEST_NAME_MAX]);

/* Whether native pods have the shim: the settings do not switch it off, and there is one for the
 * nodes of each task. */
bool manifest_wants_shim(const struct plan *plan, const struct kubernetes_settings *cluster);
/* The shim as a program in a pod that has it. */
#define MANIFEST_SHIM "/myelin/shim/shim"

/* Whether somebody else places a native pod together with its gang, by what its metadata say. */
bool manifest_has_placer(const struct node *metadata);

/* Which target a file's `backend` means on a cluster. Fails, into diags, for mpi and other. */
MUST_CHECK int manifest_target_of(const struct plan *plan, struct diags *diags,
                                  enum manifest_target *out);

/* The kind that Kubeflow has for a plan: what to ask a cluster for, and where its objects are. */
struct kubeflow_kind {
    const char *kind, *plural; /* "TFJob", "tfjobs" */
    const char *api_version;   /* "kubeflow.org/v1" */
    const char *specs_key;     /* "tfReplicaSpecs" */
    const char *container;     /* the name that the operator looks for */
    const char *port_name;     /* NULL: no port is declared */
    uint16_t port;
    const char *types[ROLE_COUNT]; /* "Chief", "Worker", "PS"; NULL: no such role */
};
/* NULL: Kubeflow has none. */
const struct kubeflow_kind *kubeflow_kind_of(const struct plan *plan);

#endif
