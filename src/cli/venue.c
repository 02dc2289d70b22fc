/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/venue.h"

#include <string.h>

#include "backend/kubernetes/kubeconfig.h"

const char *const venue_places[] = { "this-machine", "kubernetes", NULL };

static const char *const cluster_only[] = { "image", "namespace", "context", "kubeconfig" };

/* What the command line says, else the settings. */
static bool goes_to_cluster(const struct invocation *in, const struct settings *settings) {
    const char *on = invocation_value(in, "on");

    return on ? strcmp(on, "kubernetes") == 0 : settings->runs_on == RUNS_ON_KUBERNETES;
}

static int check_here(const struct invocation *in, const struct plan *plan, struct error *err) {
    for (size_t i = 0; i < ARRAY_LEN(cluster_only); i++)
        if (invocation_value(in, cluster_only[i]))
            return error_set(err, ERROR_INVALID,
                             "--%s is for a run on a cluster: add `--on kubernetes`",
                             cluster_only[i]);
    if (plan->backend == BACKEND_KUBEFLOW)
        return error_set(err, ERROR_INVALID,
                         "`backend: kubeflow` needs a cluster: add `--on kubernetes`, or set "
                         "`runs_on: kubernetes` in config.yml; to run on this machine, use "
                         "`backend: native`, or leave `backend` out");
    return 0;
}

/* Finds the cluster, and says what it is called. */
static int find_cluster(struct venue *venue, struct error *err) {
    struct pods_options *options = &venue->options;
    const struct kubeconfig_request request = pods_way_in(options);
    struct kubeconfig config;

    if (kubeconfig_find(&request, &config, err))
        return -1;
    options->context = arena_text(&venue->arena, config.context, strlen(config.context));
    options->namespace = arena_text(&venue->arena, config.namespace, strlen(config.namespace));
    kubeconfig_release(&config);
    venue->maker = (struct backend_maker){ .kind = pods_form_name(options->form),
                                           .cluster = options->context,
                                           .namespace = options->namespace,
                                           .make = pods_make,
                                           .context = options };
    venue->is_chosen = true;
    return 0;
}

/* What the resource cannot express is said before anything is sent. */
static int check_manifest(const struct venue *venue, struct diags *diags, struct error *err) {
    const struct manifest_input input = {
        .plan = venue->options.plan,
        .settings = venue->settings,
        .target = pods_form_target(venue->options.form),
        .run = { .id = "0",
                 .uuid = "00000000000000000000000000000000",
                 .owner = "owner",
                 .project = "default" },
        .image = venue->options.image,
        .namespace = venue->options.namespace,
    };
    struct manifest *manifest = manifest_build(&input, diags);

    if (!manifest)
        return error_set(err, ERROR_INVALID, "%s", "");
    manifest_free(manifest);
    return 0;
}

static int read_settings(struct loaded *loaded, const char *home, struct venue *out,
                         struct error *err) {
    const char *path = arena_printf(&out->arena, "%s/config.yml", home);

    out->settings = settings_read(path, &loaded->sources, loaded->diags);
    return out->settings ? 0 : error_set(err, ERROR_INVALID, "%s", "");
}

static void take_options(const struct invocation *in, struct venue *venue) {
    venue->options.settings = venue->settings;
    venue->options.kubeconfig = invocation_value(in, "kubeconfig");
    venue->options.context = invocation_value(in, "context");
    venue->options.namespace = invocation_value(in, "namespace");
    venue->options.image = invocation_value(in, "image");
    venue->options.timeout_ms = -1;
}

/* Which form the file's `backend` means, where it can be run. */
static int choose_form(struct venue *venue, struct diags *diags, struct error *err) {
    const struct plan *plan = venue->options.plan;
    enum manifest_target target;

    if (manifest_target_of(plan, diags, &target))
        return error_set(err, ERROR_INVALID, "%s", "");
    if (target == MANIFEST_NATIVE && plan->framework == FRAMEWORK_HOROVOD &&
        !venue->settings->kubernetes.has_shim) {
        static const char why[] =
            "without the shim nothing serves Horovod's rendezvous in pods of our own";

        diag_help(
            plan->backend_place.length ? diag_error(diags, plan->backend_place, "%s", why)
                                       : diag_error_nowhere(diags, "%s", why),
            "set `kubernetes.shim: true` in config.yml, or use `backend: kubeflow`, which runs "
            "it as an MPIJob");
        return error_set(err, ERROR_INVALID, "%s", "");
    }
    venue->options.form = pods_form_of(target);
    return 0;
}

int venue_choose(const struct invocation *in, struct loaded *loaded, const char *home,
                 struct venue *out, struct error *err) {
    *out = (struct venue){ .options.plan = loaded->plan };
    if (read_settings(loaded, home, out, err))
        return -1;
    if (!goes_to_cluster(in, out->settings))
        return check_here(in, loaded->plan, err);
    take_options(in, out);
    if (choose_form(out, loaded->diags, err) || find_cluster(out, err))
        return -1;
    return check_manifest(out, loaded->diags, err);
}

int venue_of_run(const struct invocation *in, struct loaded *loaded, const char *home,
                 const struct run_record *run, struct venue *out, struct error *err) {
    *out = (struct venue){ .options.plan = loaded->plan };
    if (read_settings(loaded, home, out, err))
        return -1;
    take_options(in, out);
    out->options.form = run->backend ? pods_form_named(run->backend) : NULL;
    if (!out->options.form)
        return error_set(err, ERROR_INVALID, "this myelin does not know the backend `%.40s`",
                         run->backend ? run->backend : "");
    out->options.context = run->cluster;
    out->options.namespace = run->namespace;
    return find_cluster(out, err);
}

void venue_release(struct venue *venue) {
    settings_free(venue->settings);
    arena_release(&venue->arena);
    *venue = (struct venue){ 0 };
}
