/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/file.h"
#include "codec/yaml.h"
#include "shim/frame.h"
#include "spec/decode.h"

#define SCHEMA(name_, help_, fields_, S)                                                           \
    {                                                                                              \
        .name = name_, .help = help_, .fields = fields_, .n_fields = ARRAY_LEN(fields_),           \
        .size = sizeof(struct S),                                                                  \
    }

enum {
    DEADLINE_MAX = 365 * 24 * 3600,
    PLACEMENT_PATIENCE_MAX = 3600,
    SHM_MIB_MAX = 1 << 24,
    LOG_LIMIT_MIB = 10 << 10,
    LOG_LIMIT_MIB_MAX = 1 << 24,
    ID_MAX = INT32_MAX, /* of a user or a group, to Kubernetes */
};

/* Three looks of the cluster autoscaler, which then makes nodes whether the pods stay or not. */
#define PLACEMENT_PATIENCE "30"

struct volume_fields {
    struct field_node claim, sub_path;
    struct field_bool read_only;
};

struct kubernetes_fields {
    struct field_node kubeconfig, context, namespace, image;
    struct field_node gpu_resource, tpu_resource, queue, scheduler, gang;
    struct field_int placement_patience, deadline, shm;
    struct field_bool shim;
    struct field_node architecture;
    struct field_int linger, log_limit;
    struct field_bool restricted;
    struct field_int run_as_user, run_as_group;
    struct field_bool read_only_root;
    struct field_object outputs;       /* struct volume_fields */
    struct field_node data, artifacts; /* of names to volumes */
};

struct home_fields {
    struct field_node runs_on;
    struct field_object kubernetes; /* struct kubernetes_fields */
};

/* ---- the rows ---- */

static const char *const architectures[] = { "amd64", "arm64", NULL };
static const char *const gangs[] = { "coscheduling", "volcano", NULL };
static const char *const places[] = { "this-machine", "kubernetes", NULL };

static const struct field volume_rows[] = {
    FIELD(volume_fields, claim, .kind = FIELD_TEXT, .flags = FIELD_REQUIRED,
          .help = "the persistent volume claim"),
    FIELD(volume_fields, sub_path, .kind = FIELD_TEXT, .help = "the directory in it"),
    FIELD(volume_fields, read_only, .kind = FIELD_BOOL, .fallback = "false",
          .help = "whether tasks may only read it"),
};
static const struct schema volume_schema = SCHEMA(
    "a volume", "A persistent volume claim, or a directory of one.", volume_rows, volume_fields);

static const struct field kubernetes_rows[] = {
    FIELD(kubernetes_fields, kubeconfig, .kind = FIELD_TEXT,
          .help = "the file that says how to reach the cluster"),
    FIELD(kubernetes_fields, context, .kind = FIELD_TEXT, .help = "the context of that file"),
    FIELD(kubernetes_fields, namespace, .kind = FIELD_TEXT, .help = "where the objects are made"),
    FIELD(kubernetes_fields, image, .kind = FIELD_TEXT, .flags = FIELD_IMAGE,
          .help = "the image of files that name none"),
    FIELD(kubernetes_fields, gpu_resource, .kind = FIELD_TEXT, .fallback = "nvidia.com/gpu",
          .help = "what the cluster calls its GPUs"),
    FIELD(kubernetes_fields, tpu_resource, .kind = FIELD_TEXT, .fallback = "google.com/tpu",
          .help = "what the cluster calls its TPUs"),
    FIELD(kubernetes_fields, queue, .kind = FIELD_TEXT, .help = "the local queue of Kueue"),
    FIELD(kubernetes_fields, scheduler, .kind = FIELD_TEXT, .help = "the scheduler of the pods"),
    FIELD(kubernetes_fields, gang, .kind = FIELD_CHOICE, .choices = gangs,
          .help = "the kind of group that this scheduler places whole"),
    FIELD(kubernetes_fields, placement_patience, .kind = FIELD_INT, .min = 1,
          .max = PLACEMENT_PATIENCE_MAX, .fallback = PLACEMENT_PATIENCE,
          .help = "seconds that a gang of pods keeps its turn when no node has room for it"),
    FIELD(kubernetes_fields, deadline, .kind = FIELD_INT, .max = DEADLINE_MAX, .fallback = "0",
          .help = "seconds after which the cluster ends a run by itself; 0: never"),
    FIELD(kubernetes_fields, shm, .kind = FIELD_INT, .max = SHM_MIB_MAX, .fallback = "0",
          .help = "MiB of /dev/shm; 0: as much as the task's memory"),
    FIELD(kubernetes_fields, shim, .kind = FIELD_BOOL, .fallback = "true",
          .help = "whether pods of our own bring metrics and outputs back"),
    FIELD(kubernetes_fields, architecture, .kind = FIELD_CHOICE, .choices = architectures,
          .fallback = "amd64",
          .help = "the processor of nodes that the file does not select by it"),
    FIELD(kubernetes_fields, linger, .kind = FIELD_INT, .max = SHIM_LINGER_MAX_S, .fallback = "600",
          .help = "seconds that a pod keeps what nobody has fetched yet"),
    FIELD(kubernetes_fields, log_limit, .kind = FIELD_INT, .min = 1, .max = LOG_LIMIT_MIB_MAX,
          .fallback = "10240", .help = "MiB of log that a pod keeps"),
    FIELD(kubernetes_fields, restricted, .kind = FIELD_BOOL, .fallback = "false",
          .help = "whether pods are what the restricted pod security level asks for"),
    FIELD(kubernetes_fields, run_as_user, .kind = FIELD_INT, .max = ID_MAX,
          .help = "the number of the user that tasks run as"),
    FIELD(kubernetes_fields, run_as_group, .kind = FIELD_INT, .max = ID_MAX,
          .help = "the number of the group that tasks run as"),
    FIELD(kubernetes_fields, read_only_root, .kind = FIELD_BOOL, .fallback = "false",
          .help = "whether tasks can write to their volumes and /tmp alone"),
    FIELD(kubernetes_fields, outputs, .kind = FIELD_OBJECT, .schema = &volume_schema,
          .help = "where the outputs of runs are kept"),
    FIELD(kubernetes_fields, data, .kind = FIELD_MAP, .help = "the volumes of `data_refs`"),
    FIELD(kubernetes_fields, artifacts, .kind = FIELD_MAP,
          .help = "the volumes of `artifact_refs`"),
};
static const struct schema kubernetes_schema =
    SCHEMA("kubernetes", "The cluster that runs can go to.", kubernetes_rows, kubernetes_fields);

static const struct field home_rows[] = {
    FIELD(home_fields, runs_on, .kind = FIELD_CHOICE, .choices = places, .fallback = "this-machine",
          .help = "where runs go that do not say it"),
    FIELD(home_fields, kubernetes, .kind = FIELD_OBJECT, .schema = &kubernetes_schema,
          .help = "the cluster that runs can go to"),
};
static const struct schema home_schema =
    SCHEMA("config.yml", "The settings of a home.", home_rows, home_fields);

/* ---- from fields to settings ---- */

/* Kubernetes refuses such a path only when the pod starts, long after the run was asked for. */
static void check_sub_path(struct decoder *decoder, const struct field_node *path) {
    const char *text = field_text(*path);
    bool climbs = false;

    for (const char *p = text; p && *p; p += strcspn(p, "/"), p += *p == '/')
        climbs = climbs || (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'));
    if (text && (text[0] == '/' || text[0] == '\0' || climbs))
        diag_help(diag_error(decoder->diags, node_place(&path->at->value),
                             "`sub_path` is no directory inside the volume"),
                  "write it without a slash at its start and without `..`, as in `runs/ada`");
}

/* Names of objects and their labels: what Kubernetes would refuse long after it was written. */
static void check_object_name(struct decoder *decoder, struct field_node field) {
    static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    const char *text = field_text(field);
    size_t n = text ? strlen(text) : 0;

    if (text && (n == 0 || n > 63 || text[strspn(text, good)] != '\0' || strchr("-.", text[0]) ||
                 strchr("-.", text[n - 1])))
        diag_help(diag_error(decoder->diags, node_place(&field.at->value),
                             "`%.100s` is no name that Kubernetes takes", text),
                  "names have at most 63 lower-case letters, digits, `-` and `.`");
}

/* The name is the last part of the path at which tasks find the volume. */
static void check_name(struct decoder *decoder, const struct member *member) {
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

    if (member->key[0] && member->key[strspn(member->key, good)] == '\0' &&
        member->key[strspn(member->key, ".")] != '\0')
        return;
    diag_help(diag_error(decoder->diags, member_place(member), "a volume cannot be called `%.100s`",
                         member->key),
              "names have letters, digits, `-`, `_` and `.`");
}

static struct volume_settings volume(struct decoder *decoder, const char *name,
                                     const struct volume_fields *fields, struct place place) {
    check_object_name(decoder, fields->claim);
    check_sub_path(decoder, &fields->sub_path);
    return (struct volume_settings){ .name = name,
                                     .claim = field_text(fields->claim),
                                     .sub_path = field_text(fields->sub_path),
                                     .read_only = fields->read_only.value,
                                     .place = place };
}

static const struct volume_settings *volumes(struct decoder *decoder, const struct field_node *map,
                                             uint32_t *n) {
    struct volume_settings *list;

    if (!map->at)
        return NULL;
    list = ARENA_ARRAY(decoder->arena, struct volume_settings, map->at->value.count);
    for (uint32_t i = 0; i < map->at->value.count; i++) {
        const struct member *member = &map->at->value.members[i];
        struct volume_fields fields = { 0 };

        if (member->value.kind != NODE_MAP) {
            diag_help(diag_error(decoder->diags, node_place(&member->value),
                                 "`%.100s` is a volume, and takes a mapping, not %s", member->key,
                                 node_kind_name(&member->value)),
                      "write `{claim: NAME}`");
            continue;
        }
        check_name(decoder, member);
        decode_object(decoder, &volume_schema, &member->value, &fields);
        list[(*n)++] = volume(decoder, member->key, &fields, member_place(member));
    }
    return list;
}

static const char *or_else(struct field_node field, const char *otherwise) {
    return field.at ? field_text(field) : otherwise;
}

static int64_t int_or(struct field_int field, int64_t otherwise) {
    return field.at ? field.value : otherwise;
}

/* What stands beside the task in a pod, and what the pod may do. */
static void take_pods(struct decoder *decoder, const struct kubernetes_fields *fields,
                      struct kubernetes_settings *out) {
    out->has_shim = fields->shim.at ? fields->shim.value : out->has_shim;
    out->architecture = or_else(fields->architecture, out->architecture);
    out->linger_s = int_or(fields->linger, out->linger_s);
    out->log_limit_mib = int_or(fields->log_limit, out->log_limit_mib);
    out->is_restricted = fields->restricted.value;
    out->has_read_only_root = fields->read_only_root.value;
    out->user = int_or(fields->run_as_user, out->user);
    out->group = int_or(fields->run_as_group, out->group);
    if (out->is_restricted && out->user == 0)
        diag_help(diag_error(decoder->diags, node_place(&fields->run_as_user.at->value),
                             "`restricted` lets no task run as root"),
                  "give another number than 0, or leave `run_as_user` out where the image has one");
}

/* Who places the pods of a gang. */
static void take_placing(struct decoder *decoder, const struct kubernetes_fields *fields,
                         struct kubernetes_settings *out) {
    check_object_name(decoder, fields->queue);
    check_object_name(decoder, fields->scheduler);
    out->queue = field_text(fields->queue);
    out->gang = field_text(fields->gang);
    out->scheduler = field_text(fields->scheduler);
    /* Volcano's groups are for its own scheduler; the other's is a plugin of any. */
    if (out->gang && !out->scheduler && strcmp(out->gang, "volcano") == 0)
        out->scheduler = "volcano";
    if (out->queue && out->gang)
        diag_help(diag_error(decoder->diags, node_place(&fields->gang.at->value),
                             "gangs are placed by Kueue's `queue` or as a `gang`, not by both"),
                  "leave one of them out");
    out->placement_patience_s = int_or(fields->placement_patience, out->placement_patience_s);
}

static void take_kubernetes(struct decoder *decoder, const struct kubernetes_fields *fields,
                            struct kubernetes_settings *out) {
    check_object_name(decoder, fields->namespace);
    out->kubeconfig = field_text(fields->kubeconfig);
    out->context = field_text(fields->context);
    out->namespace = field_text(fields->namespace);
    out->image = field_text(fields->image);
    out->gpu_resource = or_else(fields->gpu_resource, out->gpu_resource);
    out->tpu_resource = or_else(fields->tpu_resource, out->tpu_resource);
    out->deadline_s = fields->deadline.value;
    out->shm_mib = fields->shm.value;
    take_placing(decoder, fields, out);
    take_pods(decoder, fields, out);
    if (fields->outputs.object)
        out->outputs =
            volume(decoder, NULL, fields->outputs.object, member_place(fields->outputs.at));
    out->data = volumes(decoder, &fields->data, &out->n_data);
    out->artifacts = volumes(decoder, &fields->artifacts, &out->n_artifacts);
}

struct settings *settings_new(void) {
    struct settings *settings = calloc(1, sizeof *settings);

    if (!settings)
        abort();
    settings->kubernetes.gpu_resource = "nvidia.com/gpu";
    settings->kubernetes.tpu_resource = "google.com/tpu";
    settings->kubernetes.placement_patience_s = atoi(PLACEMENT_PATIENCE);
    settings->kubernetes.has_shim = true;
    settings->kubernetes.architecture = "amd64";
    settings->kubernetes.linger_s = SHIM_LINGER_S;
    settings->kubernetes.log_limit_mib = LOG_LIMIT_MIB;
    settings->kubernetes.user = settings->kubernetes.group = ABSENT;
    return settings;
}

void settings_free(struct settings *settings) {
    if (!settings)
        return;
    arena_release(&settings->arena);
    free(settings);
}

struct settings *settings_compile(const struct sources *sources, uint16_t source,
                                  struct diags *diags) {
    struct settings *settings = settings_new();
    struct decoder decoder = { &settings->arena, diags };
    struct home_fields *fields = ARENA_NEW(&settings->arena, struct home_fields);
    /* Decoded values point at the root's members, not at the root. */
    struct node root;
    size_t errors = diags->errors;

    if (yaml_read(sources, source, &settings->arena, diags, &root) == 0) {
        if (root.kind == NODE_MAP)
            decode_object(&decoder, &home_schema, &root, fields);
        else if (root.kind != NODE_NULL)
            diag_error(diags, node_place(&root), "these are no settings: it is %s, not a mapping",
                       node_kind_name(&root));
        if (fields->runs_on.at && strcmp(field_text(fields->runs_on), "kubernetes") == 0)
            settings->runs_on = RUNS_ON_KUBERNETES;
        if (fields->kubernetes.object)
            take_kubernetes(&decoder, fields->kubernetes.object, &settings->kubernetes);
    }
    if (diags->errors > errors) {
        settings_free(settings);
        return NULL;
    }
    return settings;
}

/* ---- whose settings count ---- */

/* The settings name programs that are executed (a kubeconfig has plugins), so they must not be
 * written by anybody but root and the user who reads them. */
static bool is_trusted(uid_t owner) {
    return owner == 0 || owner == geteuid();
}

enum opened { SETTINGS_ABSENT, SETTINGS_REFUSED, SETTINGS_OPEN };

/* Another user's file in a shared home is passed over: else one member could stop all others. */
static enum opened pass_over(const char *path, uid_t owner, struct diags *diags) {
    const struct passwd *user = getpwuid(owner);
    struct diag *diag = diag_warning_nowhere(
        diags,
        "the settings in %s are ignored: they belong to %s, and only your own or root's count",
        path, user ? user->pw_name : "a user without a name");

    diag_help(diag, "have root own the file: `chown root %s`, or remove it", path);
    return SETTINGS_ABSENT;
}

static enum opened refuse(const char *path, const char *why, struct diags *diags) {
    diag_error_nowhere(diags, "cannot read the settings: %s: %s", path, why);
    return SETTINGS_REFUSED;
}

static enum opened check_file(const char *path, int fd, struct diags *diags) {
    struct stat st;

    if (fstat(fd, &st) < 0)
        return refuse(path, strerror(errno), diags);
    if (!is_trusted(st.st_uid))
        return pass_over(path, st.st_uid, diags);
    if (!S_ISREG(st.st_mode))
        return refuse(path, "it is not a regular file", diags);
    if (st.st_mode & (S_IWGRP | S_IWOTH)) {
        diag_help(
            diag_error_nowhere(diags, "the settings in %s can be written by other users", path),
            "they name programs that are executed: `chmod go-w %s`", path);
        return SETTINGS_REFUSED;
    }
    return SETTINGS_OPEN;
}

/* A link to a file elsewhere is followed if it was made by somebody who is trusted. */
static enum opened open_trusted(const char *path, struct diags *diags, int *out) {
    struct stat st;
    enum opened opened;
    int fd;

    if (lstat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? SETTINGS_ABSENT
                                                   : refuse(path, strerror(errno), diags);
    if (!is_trusted(st.st_uid))
        return pass_over(path, st.st_uid, diags);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return refuse(path, strerror(errno), diags);
    opened = check_file(path, fd, diags);
    if (opened == SETTINGS_OPEN)
        *out = fd;
    else
        close(fd);
    return opened;
}

struct settings *settings_read(const char *path, struct sources *sources, struct diags *diags) {
    AUTO(buf) text = BUF_INIT(SETTINGS_BYTES_MAX);
    struct error err;
    int fd;

    switch (open_trusted(path, diags, &fd)) {
    case SETTINGS_ABSENT: return settings_new();
    case SETTINGS_REFUSED: return NULL;
    case SETTINGS_OPEN: break;
    }
    if (file_read_rest(fd, &text, &err)) {
        diag_error_nowhere(diags, "cannot read the settings: %s: %s", path, err.message);
        close(fd);
        return NULL;
    }
    close(fd);
    return settings_compile(sources, sources_take(sources, path, &text), diags);
}

const struct volume_settings *volume_named(const struct volume_settings *volumes, uint32_t n,
                                           const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(volumes[i].name, name) == 0)
            return &volumes[i];
    return NULL;
}
