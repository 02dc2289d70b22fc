/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/schema.h"

#include "base/attr.h"

#define SCHEMA(name_, help_, fields_, S, ...)                                                      \
    {                                                                                              \
        .name = name_, .help = help_, .fields = fields_, .n_fields = ARRAY_LEN(fields_),           \
        .size = sizeof(struct S), __VA_ARGS__                                                      \
    }
#define KEEPS_PLACE(S) .has_at = true, .at_offset = offsetof(struct S, at)

static const char *const backends[] = { "native", "kubeflow", "mpi", "other", NULL };
static const char *const build_backends[] = { "native", "kaniko", "other", NULL };
static const char *const log_levels[] = { "INFO", "DEBUG", "WARN", "ERROR", "FATAL", NULL };
static const char *const io_types[] = { "int",      "float",   "str",        "bool",
                                        "list",     "dict",    "path",       "uri",
                                        "auth",     "metric",  "metadata",   "dict_of_dicts",
                                        "gcs_path", "s3_path", "azure_path", NULL };

/* ---- resources ---- */

static const struct field range_rows[] = {
    FIELD(range_fields, requests, .kind = FIELD_AMOUNT, .alias = "request",
          .help = "what is reserved for the task; the limit where it is missing"),
    FIELD(range_fields, limits, .kind = FIELD_AMOUNT, .alias = "limit",
          .help = "what the task may use at most; no limit where it is missing"),
};
static const struct schema range_schema = SCHEMA(
    "a resource", "How much of one resource is reserved and allowed.", range_rows, range_fields);

#define RESOURCE_ROWS                                                                              \
    FIELD_AT(resources_fields, "cpu", of[RESOURCE_CPU], .kind = FIELD_OBJECT,                      \
             .schema = &range_schema, .help = "processor cores; fractions are allowed"),           \
        FIELD_AT(resources_fields, "memory", of[RESOURCE_MEMORY], .kind = FIELD_OBJECT,            \
                 .schema = &range_schema, .help = "memory in MiB"),                                \
        FIELD_AT(resources_fields, "gpu", of[RESOURCE_GPU], .kind = FIELD_OBJECT,                  \
                 .schema = &range_schema, .help = "GPUs"),                                         \
        FIELD_AT(resources_fields, "tpu", of[RESOURCE_TPU], .kind = FIELD_OBJECT,                  \
                 .schema = &range_schema, .help = "TPUs")

static const struct field resources_rows[] = { RESOURCE_ROWS };
static const struct schema resources_schema =
    SCHEMA("resources", "What a task needs.", resources_rows, resources_fields,
           KEEPS_PLACE(resources_fields));

#define INDEX_ROW(S)                                                                               \
    FIELD(S, index, .kind = FIELD_INT, .min = INT32_MIN, .max = INT32_MAX,                         \
          .help = "which one of the role this entry is for, from 0")

static const struct field indexed_resources_rows[] = { INDEX_ROW(resources_fields), RESOURCE_ROWS };
static const struct schema indexed_resources_schema =
    SCHEMA("an entry of resources", "What the task of one index needs.", indexed_resources_rows,
           resources_fields, KEEPS_PLACE(resources_fields));

/* ---- environment ---- */

static const struct field persistence_rows[] = {
    FIELD(persistence_fields, data, .kind = FIELD_TEXTS, .help = "names of data volumes"),
    FIELD(persistence_fields, outputs, .kind = FIELD_TEXT, .help = "name of the outputs volume"),
};
static const struct schema persistence_schema =
    SCHEMA("persistence", "The old form of data_refs and artifact_refs.", persistence_rows,
           persistence_fields);

static const struct field output_refs_rows[] = {
    FIELD(output_refs_fields, jobs, .kind = FIELD_REFS, .help = "jobs whose outputs are read"),
    FIELD(output_refs_fields, experiments, .kind = FIELD_REFS,
          .help = "experiments whose outputs are read"),
};
static const struct schema output_refs_schema = SCHEMA(
    "outputs", "Earlier runs whose outputs this one reads.", output_refs_rows, output_refs_fields);

#define ENVIRONMENT_ROWS                                                                           \
    FIELD_AT(environment_fields, "resources", pod.resources, .kind = FIELD_OBJECT,                 \
             .schema = &resources_schema, .help = "what the task needs"),                          \
        FIELD_AT(environment_fields, "labels", pod.given[ATTRIBUTE_LABELS], .kind = FIELD_MAP,     \
                 .help = "labels of the pod"),                                                     \
        FIELD_AT(environment_fields, "annotations", pod.given[ATTRIBUTE_ANNOTATIONS],              \
                 .kind = FIELD_MAP, .help = "annotations of the pod"),                             \
        FIELD_AT(environment_fields, "node_selector", pod.given[ATTRIBUTE_NODE_SELECTOR],          \
                 .kind = FIELD_MAP, .alias = "node_selectors",                                     \
                 .help = "labels of the nodes that the pod may run on"),                           \
        FIELD_AT(environment_fields, "affinity", pod.given[ATTRIBUTE_AFFINITY], .kind = FIELD_MAP, \
                 .help = "affinity of the pod, as Kubernetes has it"),                             \
        FIELD_AT(environment_fields, "tolerations", pod.given[ATTRIBUTE_TOLERATIONS],              \
                 .kind = FIELD_MAPS, .help = "tolerations of the pod, as Kubernetes has them"),    \
        FIELD_AT(environment_fields, "service_account", pod.given[ATTRIBUTE_SERVICE_ACCOUNT],      \
                 .kind = FIELD_TEXT, .help = "service account of the pod"),                        \
        FIELD_AT(environment_fields, "image_pull_secrets",                                         \
                 pod.given[ATTRIBUTE_IMAGE_PULL_SECRETS], .kind = FIELD_TEXTS,                     \
                 .help = "secrets to pull the image with"),                                        \
        FIELD_AT(environment_fields, "secret_refs", pod.given[ATTRIBUTE_SECRET_REFS],              \
                 .kind = FIELD_TEXTS,                                                              \
                 .help = "secrets whose entries become environment variables"),                    \
        FIELD_AT(environment_fields, "config_map_refs", pod.given[ATTRIBUTE_CONFIG_MAP_REFS],      \
                 .kind = FIELD_TEXTS, .alias = "configmap_refs",                                   \
                 .help = "config maps whose entries become environment variables"),                \
        FIELD_AT(environment_fields, "data_refs", pod.given[ATTRIBUTE_DATA_REFS],                  \
                 .kind = FIELD_TEXTS, .help = "names of data volumes"),                            \
        FIELD_AT(environment_fields, "artifact_refs", pod.given[ATTRIBUTE_ARTIFACT_REFS],          \
                 .kind = FIELD_TEXTS, .help = "names of artifact volumes"),                        \
        FIELD(environment_fields, persistence, .kind = FIELD_OBJECT,                               \
              .schema = &persistence_schema, .help = "old form of data_refs and artifact_refs")

#define OUTPUTS_ROW(...)                                                                           \
    FIELD(environment_fields, outputs, .kind = FIELD_OBJECT, .schema = &output_refs_schema,        \
          __VA_ARGS__)
#define RUN_OUTPUTS_ROW OUTPUTS_ROW(.help = "earlier runs whose outputs this one reads")

#define RESTARTS_ROW(...)                                                                          \
    FIELD(environment_fields, max_restarts, .kind = FIELD_INT, .max = 1000, .fallback = "0",       \
          __VA_ARGS__)
#define RUN_RESTARTS_ROW RESTARTS_ROW(.help = "how often a failed gang is started again, whole")

static const struct removed_key environment_removed[] = {
    { "cluster_uuid", "it is gone since Polyaxon 0.5: remove it" },
    { NULL, NULL },
};

static const struct field replica_rows[] = {
    INDEX_ROW(environment_fields),
    ENVIRONMENT_ROWS,
    RESTARTS_ROW(.flags = FIELD_WITHOUT_EFFECT,
                 .help = "a gang is started again whole: see `environment.max_restarts`"),
    OUTPUTS_ROW(.flags = FIELD_WITHOUT_EFFECT,
                .help = "all tasks read the same: see `environment.outputs`"),
    FIELD(environment_fields, config, .kind = FIELD_MAP, .flags = FIELD_WITHOUT_EFFECT,
          .help = "TensorFlow session settings of old files"),
};
static const struct schema replica_schema =
    SCHEMA("an entry of a role", "What the task of one index, or a role's default, is given.",
           replica_rows, environment_fields, KEEPS_PLACE(environment_fields));

static const struct field selector_rows[] = { INDEX_ROW(selector_fields) };
static const struct schema selector_schema =
    SCHEMA("an entry of node selectors", "Node labels for the task of one index.", selector_rows,
           selector_fields, KEEPS_PLACE(selector_fields), .open = true);

/* ---- topology ---- */

#define ROLE_ROWS(role, prefix, words)                                                             \
    FIELD_AT(topology_fields, "n_" words, roles[role].count, .kind = FIELD_INT, .max = TASKS_MAX,  \
             .fallback = "0", .help = "how many there are"),                                       \
        FIELD_AT(topology_fields, "default_" prefix, roles[role].defaults, .kind = FIELD_OBJECT,   \
                 .schema = &replica_schema, .help = "what those get that are not listed"),         \
        FIELD_AT(topology_fields, prefix, roles[role].list, .kind = FIELD_OBJECTS,                 \
                 .schema = &replica_schema, .help = "what single ones get, by index"),             \
        FIELD_AT(topology_fields, "default_" prefix "_resources", roles[role].default_resources,   \
                 .kind = FIELD_OBJECT, .schema = &resources_schema,                                \
                 .help = "resources of those that are not listed"),                                \
        FIELD_AT(topology_fields, prefix "_resources", roles[role].resources_list,                 \
                 .kind = FIELD_OBJECTS, .schema = &indexed_resources_schema,                       \
                 .help = "resources of single ones, by index"),                                    \
        FIELD_AT(topology_fields, "default_" prefix "_node_selectors",                             \
                 roles[role].default_selectors, .kind = FIELD_MAP,                                 \
                 .alias = "default_" prefix "_node_selector",                                      \
                 .help = "node labels for those that are not listed"),                             \
        FIELD_AT(topology_fields, prefix "_node_selectors", roles[role].selectors_list,            \
                 .kind = FIELD_OBJECTS, .schema = &selector_schema,                                \
                 .alias = prefix "_node_selector",                                                 \
                 .help = "node labels for single ones, by index")

#define UNUSED_ROW(name, number)                                                                   \
    FIELD_AT(topology_fields, name, unused[number], .kind = FIELD_ANY,                             \
             .flags = FIELD_WITHOUT_EFFECT, .help = "TensorFlow session settings of old files")

static const struct field topology_rows[] = {
    FIELD(topology_fields, master, .kind = FIELD_BOOL, .fallback = "true",
          .help = "false: no master, worker 0 is the chief (TensorFlow only)"),
    ROLE_ROWS(ROLE_WORKER, "worker", "workers"),
    ROLE_ROWS(ROLE_PS, "ps", "ps"),
    UNUSED_ROW("delay_workers_by_global_step", 0),
    UNUSED_ROW("run_config", 1),
    UNUSED_ROW("default_worker_config", 2),
    UNUSED_ROW("worker_configs", 3),
    UNUSED_ROW("default_ps_config", 4),
    UNUSED_ROW("ps_configs", 5),
};
static const struct schema topology_schema =
    SCHEMA("the topology", "How many tasks of which role there are, and what each is given.",
           topology_rows, topology_fields);

static const struct field experiment_environment_rows[] = {
    ENVIRONMENT_ROWS,
    RUN_OUTPUTS_ROW,
    RUN_RESTARTS_ROW,
    FIELD(environment_fields, replicas, .kind = FIELD_OBJECT, .schema = &topology_schema,
          .help = "the topology of a distributed experiment; `framework` says of which"),
    FIELD_AT(environment_fields, "tensorflow", frameworks[FRAMEWORK_TENSORFLOW],
             .kind = FIELD_OBJECT, .schema = &topology_schema,
             .help = "the topology, in the spelling that names the framework itself"),
    FIELD_AT(environment_fields, "mxnet", frameworks[FRAMEWORK_MXNET], .kind = FIELD_OBJECT,
             .schema = &topology_schema, .help = "likewise for MXNet"),
    FIELD_AT(environment_fields, "pytorch", frameworks[FRAMEWORK_PYTORCH], .kind = FIELD_OBJECT,
             .schema = &topology_schema, .help = "likewise for PyTorch"),
    FIELD_AT(environment_fields, "horovod", frameworks[FRAMEWORK_HOROVOD], .kind = FIELD_OBJECT,
             .schema = &topology_schema, .help = "likewise for Horovod"),
};
static const struct schema experiment_environment_schema =
    SCHEMA("environment", "Resources and placement of the master, and the topology.",
           experiment_environment_rows, environment_fields, KEEPS_PLACE(environment_fields),
           .removed = environment_removed);

static const struct field job_environment_rows[] = { ENVIRONMENT_ROWS, RUN_OUTPUTS_ROW,
                                                     RUN_RESTARTS_ROW };
static const struct schema job_environment_schema =
    SCHEMA("the environment of a job", "Resources and placement.", job_environment_rows,
           environment_fields, KEEPS_PLACE(environment_fields), .removed = environment_removed);

/* ---- the other sections ---- */

static const struct field logging_rows[] = {
    FIELD(logging_fields, level, .kind = FIELD_CHOICE, .choices = log_levels, .fallback = "INFO",
          .help = "given to the tasks as POLYAXON_LOG_LEVEL"),
    FIELD(logging_fields, formatter, .kind = FIELD_TEXT, .help = "kept for the user's own use"),
    FIELD(logging_fields, path, .kind = FIELD_TEXT, .flags = FIELD_WITHOUT_EFFECT,
          .help = "of old files"),
};
static const struct schema logging_schema =
    SCHEMA("logging", "How much the tasks' own code logs.", logging_rows, logging_fields);

static const struct field settings_rows[] = {
    FIELD(settings_fields, logging, .kind = FIELD_OBJECT, .schema = &logging_schema,
          .help = "old place of `logging`"),
};
static const struct schema settings_schema =
    SCHEMA("settings", "A section of old files.", settings_rows, settings_fields);

static const struct field build_rows[] = {
    FIELD(build_fields, image, .kind = FIELD_TEXT, .flags = FIELD_IMAGE,
          .help = "a container image"),
    FIELD(build_fields, dockerfile, .kind = FIELD_TEXT, .help = "a Dockerfile"),
    FIELD(build_fields, ref, .kind = FIELD_REF, .help = "an earlier build"),
    FIELD(build_fields, context, .kind = FIELD_TEXT, .help = "the directory to build in"),
    FIELD(build_fields, build_steps, .kind = FIELD_COMMAND, .help = "commands of the build"),
    FIELD(build_fields, env_vars, .kind = FIELD_PAIRS, .help = "variables of the build"),
    FIELD(build_fields, lang_env, .kind = FIELD_TEXT, .help = "the locale of the image"),
    FIELD(build_fields, commit, .kind = FIELD_TEXT, .help = "the commit to build"),
    FIELD(build_fields, branch, .kind = FIELD_TEXT, .help = "the branch to build"),
    FIELD(build_fields, nocache, .kind = FIELD_BOOL, .help = "whether to build all anew"),
    FIELD(build_fields, backend, .kind = FIELD_CHOICE, .choices = build_backends,
          .help = "what builds"),
    FIELD(build_fields, name, .kind = FIELD_TEXT, .flags = FIELD_NAME, .help = "name of the build"),
    FIELD(build_fields, description, .kind = FIELD_TEXT, .help = "what the build is for"),
    FIELD(build_fields, tags, .kind = FIELD_TEXTS, .help = "tags of the build"),
    FIELD(build_fields, environment, .kind = FIELD_OBJECT, .schema = &job_environment_schema,
          .help = "resources and placement of the build"),
    FIELD(build_fields, version, .kind = FIELD_ANY, .help = "version of the section"),
    FIELD(build_fields, kind, .kind = FIELD_ANY, .help = "kind of the section"),
    FIELD(build_fields, params, .kind = FIELD_MAP, .help = "params of the build"),
    FIELD(build_fields, inputs, .kind = FIELD_MAPS, .help = "inputs of the build"),
    FIELD(build_fields, outputs, .kind = FIELD_MAPS, .help = "outputs of the build"),
    FIELD(build_fields, logging, .kind = FIELD_MAP, .help = "logging of the build"),
};
static const struct schema build_schema =
    SCHEMA("build",
           "The container image that tasks run in on a cluster. Exactly one of image, "
           "dockerfile and ref.",
           build_rows, build_fields);

static const struct field run_rows[] = {
    FIELD(run_fields, cmd, .kind = FIELD_COMMAND,
          .help = "the command of every task; a list runs one after the other"),
    FIELD(run_fields, image, .kind = FIELD_TEXT, .flags = FIELD_IMAGE,
          .help = "old place of `build.image`"),
    FIELD(run_fields, build_steps, .kind = FIELD_COMMAND,
          .help = "old place of `build.build_steps`"),
    FIELD(run_fields, env_vars, .kind = FIELD_PAIRS, .help = "old place of `build.env_vars`"),
    FIELD(run_fields, git, .kind = FIELD_TEXT, .flags = FIELD_WITHOUT_EFFECT,
          .help = "of old files"),
};
static const struct schema run_schema =
    SCHEMA("run", "What the tasks execute.", run_rows, run_fields);

static const struct field io_rows[] = {
    FIELD(io_fields, name, .kind = FIELD_TEXT, .flags = FIELD_REQUIRED,
          .help = "name of the param"),
    FIELD(io_fields, description, .kind = FIELD_TEXT, .help = "what it is for"),
    FIELD(io_fields, type, .kind = FIELD_CHOICE, .choices = io_types, .help = "what it may hold"),
    FIELD_AT(io_fields, "default", fallback, .kind = FIELD_ANY,
             .help = "its value when no param is given"),
    FIELD(io_fields, is_optional, .kind = FIELD_BOOL, .fallback = "false",
          .help = "whether a param may be missing"),
    FIELD(io_fields, is_list, .kind = FIELD_BOOL, .fallback = "false",
          .help = "whether it is a list of the type"),
    FIELD(io_fields, is_flag, .kind = FIELD_BOOL, .fallback = "false",
          .help = "whether it becomes `--name` or nothing"),
    FIELD(io_fields, options, .kind = FIELD_ANY, .help = "the values it may have"),
};
static const struct schema io_schema =
    SCHEMA("an input or output", "A declared param.", io_rows, io_fields, KEEPS_PLACE(io_fields));

/* ---- whole files ---- */

#define COMMON_ROWS                                                                                \
    FIELD(file_fields, version, .kind = FIELD_INT, .flags = FIELD_REQUIRED, .min = 1, .max = 1,    \
          .help = "version of the format"),                                                        \
        FIELD(file_fields, kind, .kind = FIELD_TEXT, .flags = FIELD_REQUIRED,                      \
              .help = "what the file describes: experiment or job"),                               \
        FIELD(file_fields, name, .kind = FIELD_TEXT, .flags = FIELD_NAME,                          \
              .help = "name of the run"),                                                          \
        FIELD(file_fields, description, .kind = FIELD_TEXT, .help = "what the run is for"),        \
        FIELD(file_fields, tags, .kind = FIELD_TEXTS, .flags = FIELD_RENDERED,                     \
              .help = "words to find the run by"),                                                 \
        FIELD(file_fields, logging, .kind = FIELD_OBJECT, .schema = &logging_schema,               \
              .flags = FIELD_RENDERED, .help = "how much the tasks log"),                          \
        FIELD(file_fields, inputs, .kind = FIELD_OBJECTS, .schema = &io_schema,                    \
              .help = "params that the run takes"),                                                \
        FIELD(file_fields, outputs, .kind = FIELD_OBJECTS, .schema = &io_schema,                   \
              .help = "params that the run gives"),                                                \
        FIELD(file_fields, params, .kind = FIELD_MAP, .alias = "declarations",                     \
              .help = "values that templates in the file can use")

static const struct removed_key experiment_removed[] = {
    { "model", "the built-in model language is gone since Polyaxon 0.5: call your code in `run`" },
    { "train", "the built-in model language is gone since Polyaxon 0.5: call your code in `run`" },
    { "eval", "the built-in model language is gone since Polyaxon 0.5: call your code in `run`" },
    { "hptuning", "it belongs to `kind: group`, which myelin does not run" },
    { "matrix", "it belongs to `kind: group`, which myelin does not run" },
    { NULL, NULL },
};
static const struct field experiment_rows[] = {
    COMMON_ROWS,
    FIELD(file_fields, framework, .kind = FIELD_TEXT, .flags = FIELD_RENDERED,
          .help = "tensorflow, mxnet, pytorch or horovod for a topology; any text otherwise"),
    FIELD(file_fields, backend, .kind = FIELD_CHOICE, .choices = backends, .fallback = "native",
          .flags = FIELD_RENDERED, .help = "what makes the tasks exist"),
    FIELD(file_fields, environment, .kind = FIELD_OBJECT, .schema = &experiment_environment_schema,
          .flags = FIELD_RENDERED, .help = "resources, placement and topology"),
    FIELD(file_fields, build, .kind = FIELD_OBJECT, .schema = &build_schema,
          .flags = FIELD_RENDERED, .help = "the image that tasks run in on a cluster"),
    FIELD(file_fields, run, .kind = FIELD_OBJECT, .schema = &run_schema, .flags = FIELD_RENDERED,
          .help = "what the tasks execute"),
    FIELD(file_fields, settings, .kind = FIELD_OBJECT, .schema = &settings_schema,
          .flags = FIELD_RENDERED, .help = "old place of `logging`"),
};
const struct schema schema_experiment =
    SCHEMA("an experiment", "A training run, of one task or of many.", experiment_rows, file_fields,
           KEEPS_PLACE(file_fields), .removed = experiment_removed);

static const struct field job_rows[] = {
    COMMON_ROWS,
    FIELD(file_fields, framework, .kind = FIELD_TEXT, .flags = FIELD_RENDERED, .help = "any text"),
    FIELD(file_fields, backend, .kind = FIELD_TEXT, .flags = FIELD_RENDERED, .help = "any text"),
    FIELD(file_fields, environment, .kind = FIELD_OBJECT, .schema = &job_environment_schema,
          .flags = FIELD_RENDERED, .help = "resources and placement"),
    FIELD(file_fields, build, .kind = FIELD_OBJECT, .schema = &build_schema,
          .flags = FIELD_REQUIRED | FIELD_RENDERED,
          .help = "the image that the job runs in on a cluster"),
    FIELD(file_fields, run, .kind = FIELD_OBJECT, .schema = &run_schema,
          .flags = FIELD_REQUIRED | FIELD_RENDERED, .help = "what the job executes"),
};
const struct schema schema_job = SCHEMA("a job", "Any other work, of one task.", job_rows,
                                        file_fields, KEEPS_PLACE(file_fields));
