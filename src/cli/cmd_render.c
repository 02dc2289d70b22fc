/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/load.h"
#include "cli/render_diff.h"
#include "codec/yaml_write.h"
#include "manifest/manifest.h"
#include "store/rundir.h"

enum { OBJECT_BYTES_MAX = 256 << 20 };

/* What a rendering knows besides the file. */
struct rendering {
    struct arena arena;
    struct loaded loaded;
    struct settings *settings;
    struct manifest_input input;
    char uuid[SHA256_TEXT];
};

/* ---- from the command line to a manifest ---- */

/* In the place of a run's uuid, which does not exist: the same texts give the same output. */
static void invent_uuid(struct rendering *r) {
    struct sha256 hash;

    sha256_init(&hash);
    for (size_t i = 0; i < r->loaded.sources.list.len; i++)
        sha256_add(&hash, r->loaded.sources.list.items[i].text,
                   r->loaded.sources.list.items[i].len);
    sha256_finish(&hash, r->uuid);
    r->uuid[32] = '\0';
}

static void read_settings(struct rendering *r) {
    const char *home;
    struct error err;

    if (rundir_home(&r->arena, &home, &err)) {
        diag_error_nowhere(r->loaded.diags, "%s", err.message);
        return;
    }
    r->settings = settings_read(arena_printf(&r->arena, "%s/config.yml", home), &r->loaded.sources,
                                r->loaded.diags);
}

static int choose_target(const struct invocation *invocation, struct rendering *r) {
    const char *backend = invocation_value(invocation, "backend");

    if (!backend)
        return manifest_target_of(r->loaded.plan, r->loaded.diags, &r->input.target);
    r->input.target = strcmp(backend, "kubeflow") == 0 ? MANIFEST_KUBEFLOW : MANIFEST_NATIVE;
    return 0;
}

static int prepare(const struct invocation *invocation, struct rendering *r) {
    load(invocation, invocation->n_operands > 0 ? invocation->operands[0] : NULL, &r->loaded);
    invent_uuid(r);
    if (!r->loaded.plan)
        return -1;
    read_settings(r);
    if (!r->settings || choose_target(invocation, r))
        return -1;
    r->input.plan = r->loaded.plan;
    r->input.settings = r->settings;
    r->input.run =
        (struct manifest_run){ .id = "0", .uuid = r->uuid, .owner = "owner", .project = "default" };
    r->input.image = invocation_value(invocation, "image");
    r->input.namespace = invocation_value(invocation, "namespace");
    return 0;
}

static void rendering_release(struct rendering *r) {
    settings_free(r->settings);
    loaded_release(&r->loaded);
    arena_release(&r->arena);
}

/* ---- out ---- */

static int print_json(const struct manifest *manifest, struct error *err) {
    struct json json;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_object(&json);
    json_key(&json, "apiVersion");
    json_text(&json, "v1");
    json_key(&json, "kind");
    json_text(&json, "List");
    json_key(&json, "items");
    json_array(&json);
    for (size_t i = 0; i < manifest->n_objects; i++)
        json_node(&json, &manifest->objects[i]);
    json_end(&json);
    json_end(&json);
    return json_finish(&json, err);
}

static int print_yaml(const struct manifest *manifest, struct error *err) {
    AUTO(buf) text = BUF_INIT(OBJECT_BYTES_MAX);

    for (size_t i = 0; i < manifest->n_objects; i++) {
        buf_clear(&text);
        if (yaml_write(&manifest->objects[i], &text, err))
            return -1;
        fputs("---\n", stdout);
        fwrite(text.data, 1, text.len, stdout);
    }
    return 0;
}

static int print_manifest(const struct invocation *invocation, struct rendering *r) {
    AUTO_PTR(manifest) manifest = manifest_build(&r->input, r->loaded.diags);
    struct error err;
    int status;

    print_diags(&r->loaded);
    if (!manifest)
        return STATUS_INVALID;
    status = invocation_has(invocation, "json") ? print_json(manifest, &err)
                                                : print_yaml(manifest, &err);
    if (status) {
        complain("%s", err.message);
        return STATUS_INVALID;
    }
    fflush(stdout); /* where both go to one place, notes stand behind the objects */
    for (size_t i = 0; i < manifest->n_notes; i++)
        fprintf(stderr, "note: %s\n", manifest->notes[i]);
    if (manifest->is_gated)
        fputs("note: these pods wait at the gate `" MANIFEST_GATE
              "`, which `run` opens when it is their turn: who creates them by hand takes "
              "`schedulingGates` out\n",
              stderr);
    return STATUS_OK;
}

static int print_diff(const struct invocation *invocation, struct rendering *r) {
    AUTO_PTR(comparison) comparison = NULL;
    struct error err;

    print_diags(&r->loaded);
    /* Which image it is makes no difference between the targets. */
    if (!r->input.image)
        r->input.image = "<image>";
    comparison = comparison_new(&r->input);
    if (invocation_has(invocation, "json") ? render_diff_json(comparison, r->loaded.plan, &err)
                                           : render_diff_print(comparison, r->loaded.plan, &err)) {
        complain("%s", err.message);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static int render(const struct invocation *invocation) {
    struct rendering r = { 0 };
    int status = STATUS_INVALID;

    if (invocation->n_operands > 1)
        return invocation_misuse(invocation, "one FILE is rendered at a time");
    if (prepare(invocation, &r))
        print_diags(&r.loaded);
    else
        status = invocation_has(invocation, "diff") ? print_diff(invocation, &r)
                                                    : print_manifest(invocation, &r);
    rendering_release(&r);
    return status;
}

static const char *const targets[] = { "kubernetes", NULL };
static const char *const backends[] = { "native", "kubeflow", NULL };

static const struct option options[] = {
    LOAD_OPTIONS,
    { .name = "on",
      .argument = "WHERE",
      .kind = ARGUMENT_CHOICE,
      .choices = targets,
      .help = "where the run would go; kubernetes is all there is so far" },
    { .name = "backend",
      .argument = "BACKEND",
      .kind = ARGUMENT_CHOICE,
      .choices = backends,
      .help = "render for this backend in the place of the file's" },
    { .name = "image",
      .argument = "IMAGE",
      .help = "run in this image in the place of the file's" },
    { .name = "namespace", .argument = "NAME", .help = "make the objects in this namespace" },
    { .name = "diff",
      .help = "show what tasks see here, in native pods and in Kubeflow's, where it differs" },
    { .name = "json", .help = "print JSON: one List, or with --diff every task" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "the objects were printed" },
    { "1", "the file is not valid, or no such objects can hold it" },
    { "2", "the command line is wrong" },
    { 0 },
};

const struct command command_render = {
    .name = "render",
    .arguments = "[FILE]",
    .summary = "print the Kubernetes objects that a polyaxonfile comes to",
    .description =
        "Prints what would be created on a cluster, as YAML that `kubectl apply -f -` takes. No "
        "cluster is asked, and nothing is created. With `backend: kubeflow` that is one TFJob, "
        "PyTorchJob, MXJob or MPIJob; with `backend: native` a Pod for each task, a Service that "
        "gives them names, and a ConfigMap with the plan.\n"
        "\n"
        "`--diff` compares the environment of each task, and what becomes of the other fields.\n"
        "\n"
        "What only a run has, such as its uuid, is made from the content of the file, so that the "
        "same file gives the same output. What the cluster calls its GPUs, its queue and its "
        "volumes is read from `$MYELIN_HOME/config.yml`; docs/kubernetes.md describes it.",
    .options = options,
    .operand_kind = ARGUMENT_FILE,
    .examples =
        "myelin render polyaxonfile.yml --diff                # before moving to a cluster\n"
        "myelin render polyaxonfile.yml | kubectl apply -f -  # create it by hand\n"
        "myelin render polyaxonfile.yml --image train:2       # in another image\n",
    .statuses = statuses,
    .writes_data = true,
    .run = render,
};
