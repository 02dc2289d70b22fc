/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/build.h"

enum { NAME_UUID_DIGITS = 12 }; /* of a name: two runs in 10^7 share them by chance at 1 : 5 */

void build_note(struct build *build, const char *sentence) {
    *VEC_PUSH(&build->notes) = sentence;
}

bool build_is_new(const struct build *build, struct place place) {
    for (size_t i = 0; i < build->diags->len; i++) {
        const struct diag *diag = &build->diags->list[i];

        if (diag->has_place && diag->severity == SEVERITY_ERROR &&
            diag->place.source == place.source && diag->place.offset == place.offset)
            return false;
    }
    return true;
}

void manifest_name(const struct manifest_run *run, char out[static MANIFEST_NAME_MAX]) {
    snprintf(out, MANIFEST_NAME_MAX, "myelin-%.*s-%" PRIu32, NAME_UUID_DIGITS, run->uuid,
             run->attempt);
}

int manifest_target_of(const struct plan *plan, struct diags *diags, enum manifest_target *out) {
    switch (plan->backend) {
    case BACKEND_NATIVE: *out = MANIFEST_NATIVE; return 0;
    case BACKEND_KUBEFLOW: *out = MANIFEST_KUBEFLOW; return 0;
    case BACKEND_MPI:
    case BACKEND_OTHER:
    case BACKEND_COUNT: break;
    }
    diag_help(diag_error(diags, plan->backend_place, "there is no `backend: %s` on a cluster",
                         backend_kind_name(plan->backend)),
              "use `backend: native` for pods of our own, or `backend: kubeflow`");
    return -1;
}

/* ---- where tasks are ---- */

static void native_host(const struct run_facts *facts, const struct plan *plan, uint32_t rank,
                        char *out, size_t size) {
    const struct build *build = facts->context;
    const struct task *task = &plan->tasks[rank];

    snprintf(out, size, "%s-%" PRIu32 ".%s", role_name(task->role), task->index, build->out->name);
}

static void native_port(const struct run_facts *facts, const struct plan *plan, uint32_t rank,
                        char *out, size_t size) {
    (void)facts, (void)plan, (void)rank;
    snprintf(out, size, "%d", NATIVE_PORT);
}

static void kubeflow_host(const struct run_facts *facts, const struct plan *plan, uint32_t rank,
                          char *out, size_t size) {
    const struct build *build = facts->context;
    const struct task *task = &plan->tasks[rank];
    const char *name = build->out->name, *type = build->kind->types[task->role];
    char lower[16];
    size_t n = 0;

    for (; type[n] && n < sizeof lower - 1; n++)
        lower[n] = (char)(type[n] | 0x20);
    lower[n] = '\0';
    if (plan->framework != FRAMEWORK_HOROVOD)
        snprintf(out, size, "%s-%s-%" PRIu32, name, lower, task->index);
    else if (task->role == ROLE_MASTER)
        snprintf(out, size, "%s-%s.%s", name, lower, name);
    else
        snprintf(out, size, "%s-%s-%" PRIu32 ".%s", name, lower, task->index, name);
}

static void kubeflow_port(const struct run_facts *facts, const struct plan *plan, uint32_t rank,
                          char *out, size_t size) {
    const struct build *build = facts->context;

    (void)plan, (void)rank;
    snprintf(out, size, "%u", build->kind->port);
}

static int wire(struct build *build, struct error *err) {
    const struct manifest_run *run = &build->input->run;
    bool is_native = build->input->target == MANIFEST_NATIVE;

    build->facts = (struct run_facts){
        .run_id = run->id,
        .run_uuid = run->uuid,
        .owner = run->owner,
        .project = run->project,
        .outputs_path = POD_OUTPUTS,
        .logs_path = POD_LOGS,
        .spool_path = POD_SPOOL,
        .attempt = arena_printf(build->arena, "%" PRIu32, run->attempt),
        .rendezvous_host = arena_printf(build->arena, "master-0.%s", build->out->name),
        .rendezvous_port = arena_printf(build->arena, "%d", RENDEZVOUS_PORT),
        .host = is_native ? native_host : kubeflow_host,
        .port = is_native ? native_port : kubeflow_port,
        .context = build,
    };
    return wiring_init(&build->wiring, build->plan, &build->facts, err);
}

/* ---- the image ---- */

static void find_image(struct build *build) {
    const struct image *image = &build->plan->image;

    build->image = build->input->image;
    if (build->image)
        return;
    if (image->obstacle) {
        diag_help(diag_error(build->diags, image->place,
                             "`%s` asks for an image to be built, which myelin does not do",
                             image->obstacle),
                  "build and push it yourself, and name it with --image");
        return;
    }
    build->image = image->name ? image->name : build->cluster->image;
    if (!build->image)
        diag_help(diag_error_nowhere(build->diags, "the file names no image to run in"),
                  "add `build: {image: NAME}`, name one with --image, or set `kubernetes.image` in "
                  "config.yml");
}

/* ---- all of it ---- */

static void check(struct build *build) {
    find_image(build);
    if (build->plan->command_manner == COMMAND_NONE)
        diag_help(diag_error_nowhere(build->diags, "the file does not say what to run"),
                  "add `run: {cmd: ...}`");
    if (build->input->target == MANIFEST_KUBEFLOW)
        kubeflow_check(build);
    else if (build->plan->n_tasks > MANIFEST_PODS_MAX)
        diag_error_nowhere(build->diags,
                           "a gang of %" PRIu32 " pods is more than the %d that are "
                           "made for one run",
                           build->plan->n_tasks, MANIFEST_PODS_MAX);
    pods_check(build);
    if (build->input->target == MANIFEST_NATIVE)
        shim_check(build);
}

static void note_common(struct build *build) {
    if (!build->cluster->outputs.claim && !build->has_shim)
        build_note(build, "what tasks write to " POD_OUTPUTS
                          " goes with their pods, and each task has its own: to keep it, name a "
                          "claim in `kubernetes.outputs` of config.yml");
    else if (build->cluster->outputs.read_only)
        build_note(build, "`kubernetes.outputs` of config.yml is read-only: tasks cannot write "
                          "their outputs");
}

static void finish(struct build *build) {
    build->out->objects = arena_copy(build->arena, build->objects.items,
                                     build->objects.len * sizeof *build->objects.items);
    build->out->n_objects = build->objects.len;
    build->out->notes =
        arena_copy(build->arena, build->notes.items, build->notes.len * sizeof *build->notes.items);
    build->out->n_notes = build->notes.len;
}

int build_open(struct build *build, const struct manifest_input *input, struct diags *diags) {
    struct manifest *manifest = calloc(1, sizeof *manifest);
    size_t errors = diags->errors;
    struct error err;

    if (!manifest)
        abort();
    *build = (struct build){ .input = input,
                             .plan = input->plan,
                             .cluster = &input->settings->kubernetes,
                             .out = manifest,
                             .arena = &manifest->arena,
                             .diags = diags };
    manifest_name(&input->run, manifest->name);
    manifest->namespace = input->namespace ? input->namespace : build->cluster->namespace;
    if (input->target == MANIFEST_KUBEFLOW)
        build->kind = kubeflow_kind_of(input->plan);
    else
        build->has_shim = manifest_wants_shim(input->plan, build->cluster) && !input->has_no_shim;
    check(build);
    if (diags->errors == errors && wire(build, &err))
        diag_error_nowhere(diags, "%s", err.message);
    return diags->errors == errors ? 0 : -1;
}

void build_close(struct build *build) {
    wiring_release(&build->wiring);
    VEC_RELEASE(&build->objects);
    VEC_RELEASE(&build->notes);
    manifest_free(build->out);
}

struct manifest *manifest_build(const struct manifest_input *input, struct diags *diags) {
    size_t errors = diags->errors;
    struct manifest *manifest = NULL;
    struct build build;

    if (build_open(&build, input, diags) == 0) {
        if (build.kind)
            build_kubeflow(&build);
        else
            build_native(&build);
    }
    if (diags->errors == errors) {
        note_common(&build);
        finish(&build);
        manifest = build.out;
        build.out = NULL;
    }
    build_close(&build);
    return manifest;
}

void manifest_free(struct manifest *manifest) {
    if (!manifest)
        return;
    arena_release(&manifest->arena);
    free(manifest);
}
