/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a run goes: to this machine, or to a cluster because the command line or the settings
 * ($MYELIN_HOME/config.yml) say so. A kubeconfig is never used by itself.
 */
#ifndef CLI_VENUE_H
#define CLI_VENUE_H

#include "backend/kubernetes/pods.h"
#include "cli/command.h"
#include "cli/load.h"
#include "store/record.h"

extern const char *const venue_places[];

/* Rows for a command's table of options. */
/* clang-format off */
#define VENUE_OPTIONS                                                                            \
    { .name = "on", .argument = "WHERE", .kind = ARGUMENT_CHOICE, .choices = venue_places,       \
      .help = "where it runs: kubernetes, or this-machine, which it is unless the settings say "   \
              "otherwise" },                                                                       \
    { .name = "image", .argument = "IMAGE",                                                        \
      .help = "on a cluster: run in this image in the place of the file's" },                      \
    { .name = "namespace", .argument = "NAME", .help = "on a cluster: in this namespace" },        \
    { .name = "context", .argument = "NAME",                                                       \
      .help = "on a cluster: the one that the kubeconfig knows by this name" },                    \
    { .name = "kubeconfig", .argument = "FILE", .kind = ARGUMENT_FILE,                             \
      .help = "on a cluster: find it by this file" }
/* Of those who look ahead, with the beginning of a sentence. */
#define VENUE_FORESEEN_OPTIONS(meaning)                                                          \
    { .name = "on", .argument = "WHERE", .kind = ARGUMENT_CHOICE, .choices = venue_places,       \
      .help = meaning "kubernetes, or this-machine, which it is unless the settings say otherwise" }, \
    { .name = "image", .argument = "IMAGE",                                                        \
      .help = "on a cluster: run in this image in the place of the file's" }
/* clang-format on */

struct venue {
    struct settings *settings;
    struct pods_options options;
    struct backend_maker maker;
    bool is_chosen;           /* the run goes to it */
    const char *const *notes; /* what is to be known of a run there, as of a manifest */
    size_t n_notes;
    struct arena arena;
};

/* Decides, and holds the file against what the cluster's resource can express; nothing is sent.
 * Mistakes go to loaded->diags. Fails with a sentence for the rest, which is empty where the
 * diagnostics say it all. A run that is made from an `original` (else NULL) goes where that was,
 * and to its image, unless the command line or the file says otherwise; the original outlives
 * the venue. */
MUST_CHECK int venue_choose(const struct invocation *in, struct loaded *loaded, const char *home,
                            const struct run_record *original, struct venue *out,
                            struct error *err);

/* The same for who looks ahead: no cluster is looked for, and what a run would be there is told by
 * the notes alone. Of a run that stays here nothing is checked. Mistakes go to loaded->diags. */
MUST_CHECK int venue_foresee(const struct invocation *in, struct loaded *loaded, const char *home,
                             struct venue *out, struct error *err);

/* Whether a run there may take over what it does by this manner; decided before anything is made.
 * Outputs go on where they are: on the same claim, or here. */
MUST_CHECK int venue_inherit(struct venue *venue, const char *home,
                             const struct run_record *original, enum origin_manner manner,
                             struct error *err);

/* The cluster that a run went to, for whoever takes it over. */
MUST_CHECK int venue_of_run(const struct invocation *in, struct loaded *loaded, const char *home,
                            const struct run_record *run, struct venue *out, struct error *err);

void venue_release(struct venue *venue);

#endif
