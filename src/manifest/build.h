/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One manifest in the making: what its parts share. Private to src/manifest.
 */
#ifndef MANIFEST_BUILD_H
#define MANIFEST_BUILD_H

#include "base/vec.h"
#include "manifest/manifest.h"
#include "manifest/tree.h"
#include "manifest/variables.h"

/* Where things are in a pod, whatever the image. */
#define POD_OUTPUTS   "/myelin/outputs"
#define POD_LOGS      "/myelin/logs"
#define POD_SPOOL     "/myelin/spool"
#define POD_SHIM      "/myelin/shim"
#define POD_DATA      "/data"
#define POD_ARTIFACTS "/artifacts"

#define ARCHITECTURE_LABEL "kubernetes.io/arch" /* of a node: "amd64" */

enum { NATIVE_PORT = 2222, RENDEZVOUS_PORT = 2223 };

struct build {
    const struct manifest_input *input;
    const struct plan *plan;
    const struct kubernetes_settings *cluster;
    const struct kubeflow_kind *kind; /* NULL: native pods */
    struct manifest *out;
    struct arena *arena; /* of out */
    struct diags *diags;
    const char *image;
    bool has_shim; /* native pods with the shim before their tasks */
    struct run_facts facts;
    struct wiring wiring;
    VEC(struct node) objects;
    VEC(const char *) notes;
};

/* Checks the input and wires the tasks; -1: it cannot be built, and diags says why. Whatever the
 * outcome, build_close releases what build->out does not hold, and build->out if it is still there.
 */
MUST_CHECK int build_open(struct build *build, const struct manifest_input *input,
                          struct diags *diags);
void build_close(struct build *build);

void build_note(struct build *build, const char *sentence);
/* Whether nothing was said at that place yet: tasks share what the file gives them. */
bool build_is_new(const struct build *build, struct place place);

/* ---- check.c ---- */

/* Says what no pod of the plan could be given. */
void pods_check(struct build *build);
/* Kubernetes takes text alone where YAML easily gives a number. NULL for what is no scalar. */
const char *scalar_text(const struct node *node, struct arena *arena);

/* ---- pod.c ---- */

/* What a pod has of the shim. */
struct pod_shim {
    const char *architecture;
    const char *config_map; /* which has it */
    const char *key;        /* by which that has it for the architecture */
    struct variables variables;
};

/* The pods of some tasks that are given the same. */
struct pod_input {
    const struct profile *profile;
    enum role role;
    int64_t index; /* -1: the operator counts them */
    const char *container;
    const char *port_name; /* NULL: no port */
    uint16_t port;
    const struct variables *variables; /* NULL: none */
    const struct node *command;        /* NULL: the image's, or the operator's */
    const struct pod_shim *shim;       /* NULL: none stands beside the task */
};

/* The variables of n tasks of one role that are given the same. */
MUST_CHECK int task_variables(struct build *build, uint32_t rank, uint32_t n, struct variables *out,
                              struct error *err);
/* Both of one pod, or of the template of many. */
struct tree pod_metadata(struct build *build, const struct pod_input *input);
struct tree pod_spec(struct build *build, const struct pod_input *input);
/* metadata of an object that is no pod. */
struct tree object_metadata(struct build *build, const char *name);

/* What a shell has to export before the command: those of the list that count. */
const char *counted_exports(struct build *build, const struct variables *variables);
/* The words of the plan's command, behind a shell where one is needed for itself or for
 * `exports`, a piece of script that ends in "; " or is empty. */
struct node task_command(struct build *build, const char *exports);

/* ---- gang.c ---- */

#define KUEUE_QUEUE "kueue.x-k8s.io/queue-name" /* of what Kueue is to admit */

/* Whether nobody else places the pods of the gang together. */
bool gang_is_ours(const struct build *build);
/* The version of the PodGroup that its placer looks at; NULL: it looks at none. */
const char *gang_group_version(const struct build *build);
/* What a native pod says of its gang to who places it. */
void gang_mark(struct build *build, struct tree *labels, struct tree *annotations);
/* Whether it says something by this label or annotation. */
bool gang_is_mark(const char *key);
/* Our gate, where the manifest has it. */
void gang_gate(struct build *build, struct tree *spec);
/* What there is to know of how it is placed. */
void gang_note(struct build *build);

/* ---- shim.c ---- */

/* Says for which nodes there is no shim: where nothing else will do an error, else a note. */
void shim_check(struct build *build);
/* The ConfigMap that holds it, for every architecture that a task of the plan has. */
struct node shim_config_map(struct build *build, const struct tree *metadata);
const char *shim_config_map_name(struct build *build);
/* That of one task. */
struct pod_shim shim_of(struct build *build, uint32_t rank);
/* The command behind the shim. */
struct node shim_command(struct build *build, const struct node *command);

/* ---- the targets ---- */

void build_native(struct build *build);
void build_kubeflow(struct build *build);
/* Whether the job can hold the plan; says what it cannot. */
void kubeflow_check(struct build *build);

#endif
