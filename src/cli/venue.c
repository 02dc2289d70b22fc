/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/venue.h"

#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/kubeconfig.h"

const char *const venue_places[] = { "this-machine", "kubernetes", NULL };

static const char *const cluster_only[] = { "image", "namespace", "context", "kubeconfig" };

/* What the command line says, else the settings. */
static bool goes_to_cluster(const struct invocation *in, const struct settings *settings) {
    const char *on = invocation_value(in, "on");

    return on ? strcmp(on, "kubernetes") == 0 : settings->runs_on == RUNS_ON_KUBERNETES;
}

/* A run that leaves its cluster leaves behind what it was told of it. */
static int check_here(const struct invocation *in, const struct run_record *original,
                      struct error *err) {
    const bool leaves_a_cluster = original && original->backend;

    for (size_t i = 0; i < ARRAY_LEN(cluster_only) && !leaves_a_cluster; i++)
        if (invocation_value(in, cluster_only[i]))
            return error_set(err, ERROR_INVALID,
                             "--%s is for a run on a cluster: add `--on kubernetes`",
                             cluster_only[i]);
    return 0;
}

static const char *image_of(const struct venue *venue) {
    const struct pods_options *options = &venue->options;
    const char *of_file = options->plan->image.name;

    if (options->image)
        return options->image;
    return of_file ? of_file : venue->settings->kubernetes.image;
}

static const char *volume_of(struct venue *venue) {
    const struct volume_settings *outputs = &venue->settings->kubernetes.outputs;

    return outputs->claim && outputs->sub_path
               ? arena_printf(&venue->arena, "%s/%s", outputs->claim, outputs->sub_path)
               : outputs->claim;
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
                                           .image = image_of(venue),
                                           .volume = volume_of(venue),
                                           .make = pods_make,
                                           .context = options };
    venue->is_chosen = true;
    return 0;
}

/* What the resource cannot express is said before anything is sent. */
static int check_manifest(struct venue *venue, struct diags *diags, struct error *err) {
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
    AUTO_PTR(manifest) manifest = manifest_build(&input, diags);
    const char **notes;

    if (!manifest)
        return error_set(err, ERROR_INVALID, "%s", "");
    notes = ARENA_ARRAY(&venue->arena, const char *, manifest->n_notes + 1);
    for (size_t i = 0; i < manifest->n_notes; i++)
        notes[i] = arena_text(&venue->arena, manifest->notes[i], strlen(manifest->notes[i]));
    venue->notes = notes;
    venue->n_notes = manifest->n_notes;
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

/* Where an earlier run was stands in the place of what the settings say now. */
static void stand_where(const struct run_record *run, struct settings *settings) {
    settings->runs_on = run->backend ? RUNS_ON_KUBERNETES : RUNS_ON_THIS_MACHINE;
    if (!run->backend)
        return;
    settings->kubernetes.context = run->cluster;
    settings->kubernetes.namespace = run->namespace;
    if (run->image)
        settings->kubernetes.image = run->image;
}

int venue_choose(const struct invocation *in, struct loaded *loaded, const char *home,
                 const struct run_record *original, struct venue *out, struct error *err) {
    *out = (struct venue){ .options.plan = loaded->plan };
    if (read_settings(loaded, home, out, err))
        return -1;
    if (original)
        stand_where(original, out->settings);
    if (!goes_to_cluster(in, out->settings))
        return check_here(in, original, err);
    take_options(in, out);
    if (choose_form(out, loaded->diags, err) || find_cluster(out, err))
        return -1;
    return check_manifest(out, loaded->diags, err);
}

int venue_foresee(const struct invocation *in, struct loaded *loaded, const char *home,
                  struct venue *out, struct error *err) {
    *out = (struct venue){ .options.plan = loaded->plan };
    if (read_settings(loaded, home, out, err))
        return -1;
    if (!goes_to_cluster(in, out->settings))
        return 0;
    take_options(in, out);
    out->is_chosen = true;
    return choose_form(out, loaded->diags, err) || check_manifest(out, loaded->diags, err) ? -1 : 0;
}

/* The uuid of the run that has the outputs: pods know their directory by it. */
static int find_outputs(const char *home, const struct run_record *run, struct venue *venue,
                        struct error *err) {
    struct run_record keeper;
    struct rundir rundir;

    if (strcmp(run->rundir.outputs_of, run->rundir.id) == 0) {
        venue->options.outputs_of = run->uuid;
        return 0;
    }
    if (rundir_open(home, strtoul(run->rundir.outputs_of, NULL, 10), &venue->arena, &rundir, err) ||
        record_read(&keeper, &rundir, err))
        return error_wrap(err, "the run that has the outputs of run %s is gone", run->rundir.id);
    venue->options.outputs_of =
        keeper.uuid ? arena_text(&venue->arena, keeper.uuid, strlen(keeper.uuid)) : NULL;
    record_release(&keeper);
    return 0;
}

/* Whether the pods of the new run find what those of the original left. */
static int check_volume(const struct venue *venue, const struct run_record *original,
                        struct error *err) {
    const struct backend_maker *maker = &venue->maker;
    const char *id = original->rundir.id;

    if (!original->volume)
        return error_set(err, ERROR_INVALID,
                         "the outputs of run %s were its pods' own, and went with them: name a "
                         "claim as `outputs` in config.yml, and those of later runs stay; 'myelin "
                         "restart %s' begins it anew",
                         id, id);
    if (strcmp(maker->cluster, original->cluster) != 0 ||
        strcmp(maker->namespace, original->namespace) != 0)
        return error_set(err, ERROR_INVALID,
                         "the outputs of run %s are on %.80s, namespace %.64s, and nowhere else: "
                         "leave out --context and --namespace; 'myelin restart %s' begins it anew",
                         id, original->cluster, original->namespace, id);
    if (!maker->volume || strcmp(maker->volume, original->volume) != 0)
        return error_set(err, ERROR_INVALID,
                         "the outputs of run %s are on the claim `%.120s`, and `outputs` in "
                         "config.yml names %s%.120s%s now: set it as it was; 'myelin restart %s' "
                         "begins it anew",
                         id, original->volume, maker->volume ? "`" : "",
                         maker->volume ? maker->volume : "none", maker->volume ? "`" : "", id);
    return 0;
}

/* Whether the new run finds the outputs of the original. */
static int inherit_outputs(struct venue *venue, const char *home, const struct run_record *original,
                           enum origin_manner manner, struct error *err) {
    const char *id = original->rundir.id;

    if (!venue->is_chosen && !original->backend)
        return 0;
    if (!venue->is_chosen)
        return error_set(err, ERROR_INVALID,
                         "the outputs of run %s are on a cluster (%.80s), where tasks of this "
                         "machine do not see them: leave out --on; 'myelin restart %s' begins it "
                         "anew anywhere",
                         id, original->cluster, id);
    if (!original->backend)
        return error_set(err, ERROR_INVALID,
                         "the outputs of run %s are on this machine, where pods do not see them: "
                         "leave out --on; 'myelin restart %s' begins it anew anywhere",
                         id, id);
    if (manner == ORIGIN_COPIED)
        return error_set(err, ERROR_INVALID,
                         "outputs on a cluster are not copied: no image is known to have the "
                         "programs for it; 'myelin resume %s' goes on with those of run %s, "
                         "'myelin restart %s' begins with none",
                         id, id, id);
    return check_volume(venue, original, err) || find_outputs(home, original, venue, err) ? -1 : 0;
}

int venue_inherit(struct venue *venue, const char *home, const struct run_record *original,
                  enum origin_manner manner, struct error *err) {
    switch (manner) {
    case ORIGIN_RESUMED:
    case ORIGIN_COPIED: return inherit_outputs(venue, home, original, manner, err);
    case ORIGIN_RERUN:
        if (venue->is_chosen || original->backend)
            return error_set(err, ERROR_INVALID,
                             "on a cluster the code is what the image holds, and no code is put "
                             "into it: 'myelin restart %s' runs its image again",
                             original->rundir.id);
        return 0;
    case ORIGIN_NONE:
    case ORIGIN_RESTARTED:
    case ORIGIN_MANNER_COUNT: break;
    }
    return 0;
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
    stand_where(run, out->settings);
    out->options.context = run->cluster;
    out->options.namespace = run->namespace;
    return find_outputs(home, run, out, err) || find_cluster(out, err) ? -1 : 0;
}

void venue_release(struct venue *venue) {
    settings_free(venue->settings);
    arena_release(&venue->arena);
    *venue = (struct venue){ 0 };
}
