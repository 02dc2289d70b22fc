/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of Kubeflow's operators. Each kind is a row; the MPIJob differs in more than a row can
 * say, because its ranks are not the processes of pods: mpirun starts them, by ssh.
 */
#include <inttypes.h>
#include <string.h>

#include "base/attr.h"
#include "manifest/build.h"

/* Nobody deleted it by then: whoever watched it is gone, and so are what its pods hold. */
enum { FINISHED_JOB_S = 24 * 3600 };

static const struct kubeflow_kind kinds[FRAMEWORK_COUNT] = {
    [FRAMEWORK_TENSORFLOW] = { "TFJob",
                               "tfjobs",
                               "kubeflow.org/v1",
                               "tfReplicaSpecs",
                               "tensorflow",
                               "tfjob-port",
                               2222,
                               { "Chief", "Worker", "PS" } },
    [FRAMEWORK_PYTORCH] = { "PyTorchJob",
                            "pytorchjobs",
                            "kubeflow.org/v1",
                            "pytorchReplicaSpecs",
                            "pytorch",
                            "pytorchjob-port",
                            23456,
                            { "Master", "Worker", NULL } },
    [FRAMEWORK_MXNET] = { "MXJob",
                          "mxjobs",
                          "kubeflow.org/v1",
                          "mxReplicaSpecs",
                          "mxnet",
                          "mxjob-port",
                          9091,
                          { "Scheduler", "Worker", "Server" } },
    [FRAMEWORK_HOROVOD] = { "MPIJob",
                            "mpijobs",
                            "kubeflow.org/v2beta1",
                            "mpiReplicaSpecs",
                            "mpi",
                            NULL,
                            23456,
                            { "Launcher", "Worker", NULL } },
};

const struct kubeflow_kind *kubeflow_kind_of(const struct plan *plan) {
    enum framework framework = plan->framework;

    if (framework == FRAMEWORK_NONE && plan->framework_label)
        framework = framework_named(plan->framework_label);
    /* A single task is a job of one where the kind has a replica that trains alone. */
    if (framework == FRAMEWORK_NONE ||
        (plan->n_tasks == 1 && framework != FRAMEWORK_TENSORFLOW && framework != FRAMEWORK_PYTORCH))
        return NULL;
    return &kinds[framework];
}

/* ---- what a job cannot hold ---- */

static void check_kind(struct build *build) {
    const struct plan *plan = build->plan;
    struct diag *diag;

    if (build->kind)
        return;
    diag = diag_error(build->diags, plan->backend_place,
                      plan->framework_label ? "Kubeflow has no job for a single task of %.100s"
                                            : "Kubeflow has no job for a file without a framework",
                      plan->framework_label);
    diag_help(diag, "use `backend: native`: it runs as pods of our own");
}

static bool serves(const char *const *apis, const char *api_version, const char *kind) {
    for (; *apis; apis++) {
        size_t n = strlen(api_version);

        if (strncmp(*apis, api_version, n) == 0 && (*apis)[n] == '/' &&
            strcmp(*apis + n + 1, kind) == 0)
            return true;
    }
    return false;
}

static void check_apis(struct build *build) {
    const struct kubeflow_kind *kind = build->kind;
    struct diag *diag;

    if (!kind || !build->input->apis || serves(build->input->apis, kind->api_version, kind->kind))
        return;
    diag = diag_error(build->diags, build->plan->backend_place,
                      "the cluster does not know %s of %s", kind->kind, kind->api_version);
    diag_help(diag, "install the operator that has it, or use `backend: native`");
}

/* One template makes all pods of a role, so they are given the same or nothing. */
static void say_unlike(struct build *build, const struct task *first, const struct task *task,
                       const char *what, const struct node *at) {
    struct diag *diag;

    if (!at || !build_is_new(build, node_place(at)))
        return;
    diag = diag_error(build->diags, node_place(at),
                      "%s is given other `%s` than %s, and one template of a %s makes them all",
                      task_name(task).text, what, task_name(first).text, build->kind->kind);
    diag_help(diag, "use `backend: native`, which gives each task its own, or give all of them the "
                    "same");
}

static void check_alike(struct build *build, const struct task *first, const struct task *task) {
    const struct profile *a = first->profile, *b = task->profile;

    for (enum resource i = 0; i < RESOURCE_COUNT; i++) {
        const struct resource_range *x = &a->resources.of[i], *y = &b->resources.of[i];
        const struct node *at = node_get(b->resources_at, resource_name(i));

        if (x->requests != y->requests || x->limits != y->limits)
            say_unlike(build, first, task, resource_name(i),
                       at ? at : node_get(a->resources_at, resource_name(i)));
    }
    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++) {
        const struct node *x = a->given[i], *y = b->given[i];

        if (x != y && (!x || !y || !node_equal(x, y)))
            say_unlike(build, first, task, attribute_name(i), y ? y : x);
    }
}

static void check_roles(struct build *build) {
    const struct plan *plan = build->plan;
    const struct task *first = NULL;

    for (uint32_t i = 0; i < plan->n_tasks; i++) {
        const struct task *task = &plan->tasks[i];

        if (!first || first->role != task->role)
            first = task;
        if (task->profile != first->profile)
            check_alike(build, first, task);
    }
}

/* ssh starts the ranks of an MPIJob: what the pod has in its environment does not reach them. */
static void check_mpi_refs(struct build *build) {
    static const enum attribute refs[] = { ATTRIBUTE_SECRET_REFS, ATTRIBUTE_CONFIG_MAP_REFS };
    const struct plan *plan = build->plan;

    for (uint32_t i = 1; plan->framework == FRAMEWORK_HOROVOD && i < plan->n_tasks; i++)
        for (size_t k = 0; k < ARRAY_LEN(refs); k++) {
            const struct node *list = plan->tasks[i].profile->given[refs[k]];

            if (list && list->count && build_is_new(build, node_place(list)))
                diag_help(
                    diag_error(build->diags, node_place(list),
                               "`%s` of a worker does not reach the ranks of an MPIJob, which "
                               "ssh starts",
                               attribute_name(refs[k])),
                    "use `backend: native`");
        }
}

void kubeflow_check(struct build *build) {
    check_kind(build);
    check_apis(build);
    if (!build->kind)
        return;
    check_roles(build);
    check_mpi_refs(build);
}

void manifest_check_kubeflow(const struct plan *plan, struct diags *diags) {
    const struct manifest_input input = { .plan = plan, .target = MANIFEST_KUBEFLOW };
    struct build build = {
        .input = &input, .plan = plan, .kind = kubeflow_kind_of(plan), .diags = diags
    };

    kubeflow_check(&build);
}

/* ---- MPI ---- */

#define MPI_HOSTS "/myelin/logs/hosts" /* on the volume of the pod: the image may be read-only */

/* " NAME=value" for each variable that is a task's own; the shell's $i is its index. */
static const char *own_exports(struct build *build, const struct variables *variables) {
    struct arena *arena = build->arena;
    const char *list = "";

    for (size_t i = 0; i < variables->len; i++)
        if (!variables->list[i].is_shared)
            list = arena_printf(arena, "%s %s", list,
                                variable_assignment(&variables->list[i], "i", arena));
    return list;
}

/* Each rank finds out which task it is, and becomes the user's command. */
static const char *rank_script(struct build *build, const struct variables *master,
                               const struct variables *workers) {
    return arena_printf(build->arena,
                        "if [ \"$OMPI_COMM_WORLD_RANK\" = 0 ]; then export%s; else "
                        "i=$((OMPI_COMM_WORLD_RANK - 1)); export%s; fi; exec \"$@\"",
                        own_exports(build, master), own_exports(build, workers));
}

/* mpirun gives up where a name has no address yet, and the cluster takes a moment to know the pods
 * that it has just started. The launcher calls itself by the name that it has for itself, and so
 * needs none to start its own rank; the others are waited for where the image can look them up. */
static const char prepare_hosts[] =
    "f=$OMPI_MCA_orte_default_hostfile; if [ -r \"$f\" ]; then h=${HOSTNAME:-$(hostname)}; "
    "while read -r n s; do case $n in \"$h\".*) n=$h ;; esac; i=0; "
    "until [ $i -ge 60 ] || ! command -v getent >/dev/null || getent hosts \"$n\" >/dev/null; do "
    "i=$((i + 1)); sleep 1; done; echo \"$n $s\"; done <\"$f\" >" MPI_HOSTS " && "
    "export OMPI_MCA_orte_default_hostfile=" MPI_HOSTS "; fi; ";

/* The launcher: mpirun over the hosts that the operator lists, itself the first. Ranks elsewhere
 * get their variables from mpirun alone, by name, if they are set here. The script of the ranks
 * is $0, so that nothing is quoted twice. */
static struct node mpi_command(struct build *build, const struct variables *master,
                               const struct variables *workers) {
    struct arena *arena = build->arena;
    const struct node user = task_command(build, "");
    const char *names = "PATH LD_LIBRARY_PATH PYTHONPATH";
    struct tree words = tree_list(arena);

    for (size_t i = 0; i < master->len; i++)
        if (master->list[i].is_shared)
            names = arena_printf(arena, "%s %s", names, master->list[i].name);
    tree_add_text(&words, "/bin/sh");
    tree_add_text(&words, "-c");
    tree_add_text(&words, kubernetes_escape(
                              arena_printf(arena,
                                           "%sx=; for v in %s; do "
                                           "eval \"[ -z \\\"\\${$v+set}\\\" ]\" || x=\"$x -x $v\"; "
                                           "done; exec mpirun --allow-run-as-root --bind-to none "
                                           "-np %" PRIu32 " $x /bin/sh -c \"$0\" sh \"$@\"",
                                           prepare_hosts, names, build->plan->n_tasks),
                              0, arena));
    tree_add_text(&words, kubernetes_escape(rank_script(build, master, workers), 0, arena));
    for (uint32_t i = 0; i < user.count; i++)
        tree_add(&words, user.items[i]);
    return tree_node(&words);
}

/* ---- replicas ---- */

/* The tasks of one role. */
struct replica_type {
    const struct task *first;
    uint32_t rank, n;
    struct variables variables;
};

static struct node replica_spec(struct build *build, const struct replica_type *type,
                                const struct node *command) {
    struct tree spec = tree_map(build->arena), template = tree_map(build->arena);
    const struct pod_input input = {
        .profile = type->first->profile,
        .role = type->first->role,
        .index = -1,
        .container = build->kind->container,
        .port_name = build->kind->port_name,
        .port = build->kind->port,
        .variables = command ? &type->variables : NULL,
        .command = command,
    };
    struct tree metadata = pod_metadata(build, &input), pod = pod_spec(build, &input);

    tree_int(&spec, "replicas", type->n);
    tree_text(&spec, "restartPolicy",
              "Never"); /* a new attempt is a new object, and ours to make */
    tree_put(&template, "metadata", tree_node(&metadata));
    tree_put(&template, "spec", tree_node(&pod));
    tree_put(&spec, "template", tree_node(&template));
    return tree_node(&spec);
}

/* Fills in those roles that have tasks; returns how many. */
static size_t find_types(struct build *build, struct replica_type *types, struct error *err) {
    const struct plan *plan = build->plan;
    uint32_t rank = 0;
    size_t n = 0;

    for (enum role role = 0; role < ROLE_COUNT; rank += plan->n_role[role], role++) {
        struct replica_type type = { &plan->tasks[rank], rank, plan->n_role[role], { 0 } };

        if (type.n == 0)
            continue;
        if (task_variables(build, rank, type.n, &type.variables, err))
            return 0;
        types[n++] = type;
    }
    return n;
}

static struct node replica_specs(struct build *build, const struct replica_type *types, size_t n) {
    struct tree specs = tree_map(build->arena);
    bool is_mpi = build->plan->framework == FRAMEWORK_HOROVOD;

    for (size_t i = 0; i < n; i++) {
        const char *key = build->kind->types[types[i].first->role];
        struct node command;

        if (is_mpi && i > 0) {
            tree_put(&specs, key, replica_spec(build, &types[i], NULL));
            continue;
        }
        command = is_mpi ? mpi_command(build, &types[0].variables, &types[1].variables)
                         : task_command(build, counted_exports(build, &types[i].variables));
        tree_put(&specs, key, replica_spec(build, &types[i], &command));
    }
    return tree_node(&specs);
}

static struct node run_policy(struct build *build) {
    const struct kubernetes_settings *cluster = build->cluster;
    struct tree policy = tree_map(build->arena), scheduling = tree_map(build->arena);

    /* Pods that ended stay until the job is deleted: their logs and their ends are read from them.
     * A PyTorchJob is over with its master; the ranks that take a moment longer are left in peace,
     * as each of them has to succeed. */
    tree_text(&policy, "cleanPodPolicy",
              build->plan->framework == FRAMEWORK_PYTORCH ? "None" : "Running");
    tree_int(&policy, "ttlSecondsAfterFinished", FINISHED_JOB_S);
    tree_int(&policy, "backoffLimit", 0);
    if (cluster->deadline_s)
        tree_int(&policy, "activeDeadlineSeconds", cluster->deadline_s);
    if (cluster->gang) {
        tree_int(&scheduling, "minAvailable", build->plan->n_tasks);
        tree_put(&policy, "schedulingPolicy", tree_node(&scheduling));
    }
    return tree_node(&policy);
}

static void add_mpi_fields(struct build *build, struct tree *spec) {
    tree_int(spec, "slotsPerWorker", 1);
    tree_bool(spec, "runLauncherAsWorker", true);
    tree_text(spec, "mpiImplementation", "OpenMPI");
    /* A launcher that is there before its workers fails; but a gang of which the launcher is to be
     * created later would never be placed whole. */
    tree_text(spec, "launcherCreationPolicy",
              build->cluster->gang ? "AtStartup" : "WaitForWorkersReady");
    build_note(build, "the image needs mpirun of Open MPI and sshd: an MPIJob starts its ranks "
                      "with them");
}

static const char without_tracking[] =
    "metrics, params and artifacts that tasks log stay in the pods of a Kubeflow job, and go with "
    "them: in pods of `backend: native` they come here";

void build_kubeflow(struct build *build) {
    struct replica_type types[ROLE_COUNT];
    struct tree object = tree_map(build->arena), spec = tree_map(build->arena);
    struct tree metadata = object_metadata(build, build->out->name);
    struct error err;
    size_t n = find_types(build, types, &err);

    if (n == 0) {
        diag_error_nowhere(build->diags, "%s", err.message);
        return;
    }
    if (build->plan->framework == FRAMEWORK_HOROVOD)
        add_mpi_fields(build, &spec);
    if (build->plan->framework == FRAMEWORK_MXNET)
        tree_text(&spec, "jobMode", "MXTrain");
    tree_put(&spec, "runPolicy", run_policy(build));
    tree_put(&spec, build->kind->specs_key, replica_specs(build, types, n));
    tree_text(&object, "apiVersion", build->kind->api_version);
    tree_text(&object, "kind", build->kind->kind);
    tree_put(&object, "metadata", tree_node(&metadata));
    tree_put(&object, "spec", tree_node(&spec));
    *VEC_PUSH(&build->objects) = tree_node(&object);
    build_note(build, without_tracking);
}
