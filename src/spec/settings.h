/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a home: $MYELIN_HOME/config.yml, which says where runs go and what the cluster
 * is called there. All of it may be missing.
 *
 *   runs_on: this-machine              # or kubernetes
 *   kubernetes:
 *     kubeconfig: ~/.kube/config       # else $KUBECONFIG, else ~/.kube/config
 *     context: training
 *     namespace: ada
 *     image: registry.example.org/train:1
 *     gpu_resource: nvidia.com/gpu
 *     tpu_resource: google.com/tpu
 *     queue: research                  # Kueue's local queue
 *     scheduler: volcano
 *     gang: volcano                    # that scheduler places gangs whole, or coscheduling
 *     placement_patience: 30           # seconds
 *     deadline: 86400                  # seconds
 *     shm: 1024                        # MiB
 *     shim: true                       # in pods of our own
 *     architecture: amd64              # of nodes that the file does not select by it
 *     linger: 600                      # seconds
 *     log_limit: 10240                 # MiB
 *     restricted: true                 # what the pod security level of that name asks for
 *     run_as_user: 1000
 *     run_as_group: 1000
 *     read_only_root: true
 *     outputs: {claim: runs, sub_path: ada}
 *     data: {imagenet: {claim: datasets, sub_path: imagenet, read_only: true}}
 *     artifacts: {models: {claim: models}}
 *
 * It is decoded by rows of fields as a polyaxonfile is (field.h): mistakes come with their place,
 * and docs/kubernetes.md has what each field means.
 */
#ifndef SPEC_SETTINGS_H
#define SPEC_SETTINGS_H

#include "codec/diag.h"

enum { SETTINGS_BYTES_MAX = 1 << 20 };

enum runs_on { RUNS_ON_THIS_MACHINE, RUNS_ON_KUBERNETES };

/* A volume of the cluster: a persistent volume claim, or a part of one. */
struct volume_settings {
    const char *name;     /* by which the polyaxonfile knows it; NULL for the outputs */
    const char *claim;    /* NULL: none is configured */
    const char *sub_path; /* the directory in it, without a slash at its start; or NULL */
    bool read_only;
    struct place place;
};

struct kubernetes_settings {
    /* Texts are NULL where the file says nothing, unless said. */
    const char *kubeconfig, *context;
    const char *namespace;                   /* NULL: that of the context */
    const char *image;                       /* for files that name none */
    const char *gpu_resource, *tpu_resource; /* never NULL */
    const char *queue, *scheduler;
    const char *gang; /* whose PodGroups the scheduler places whole: "coscheduling", "volcano" */
    int64_t placement_patience_s; /* with a gang for which the scheduler finds no room */
    int64_t deadline_s;           /* after which the cluster ends a run by itself; 0: never */
    int64_t shm_mib; /* the most that /dev/shm of a task takes; 0: as much as its memory */
    /* Of pods of our own (docs/shim.md). */
    bool has_shim;
    const char *architecture; /* never NULL */
    int64_t linger_s, log_limit_mib;
    /* Of every pod. */
    bool is_restricted, has_read_only_root;
    int64_t user, group; /* ABSENT: the image's */
    struct volume_settings outputs;
    const struct volume_settings *data, *artifacts;
    uint32_t n_data, n_artifacts;
};

struct settings {
    struct arena arena; /* holds all that is below */
    enum runs_on runs_on;
    struct kubernetes_settings kubernetes;
};

/* Reads the file at `path` and adds it to sources, so that diagnostics can point into it. A file
 * that does not exist gives the defaults, and so does one of another user, with a warning: settings
 * name programs that are executed, so they count only if root or this user owns them, and nobody
 * else may write them. Returns NULL when there are errors, which are in diags. */
struct settings *settings_read(const char *path, struct sources *sources, struct diags *diags);

/* The same for a text that is a source already. */
struct settings *settings_compile(const struct sources *sources, uint16_t source,
                                  struct diags *diags);

/* What counts where there is no file. */
struct settings *settings_new(void);
void settings_free(struct settings *settings);
DEFINE_AUTO_PTR(settings)

/* The volume of that name, or NULL. */
const struct volume_settings *volume_named(const struct volume_settings *volumes, uint32_t n,
                                           const char *name);

#endif
