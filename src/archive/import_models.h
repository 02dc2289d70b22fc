/* SPDX-License-Identifier: Apache-2.0 */
/* The models of a run that is imported (import.h): they leave the versions of the other home behind
 * and get those of this one. */
#ifndef ARCHIVE_IMPORT_MODELS_H
#define ARCHIVE_IMPORT_MODELS_H

#include "archive/contents.h"
#include "archive/import.h"
#include "store/rundir.h"

/* Writes to the journal that no model has a version: before the run is in its place, so that a
 * crash leaves one whose models are given versions by who looks next. */
MUST_CHECK int import_models_forget(const struct rundir *rundir, struct error *err);

/* Gives them versions and aliases, once the run is in its place. The caller holds its lock. */
MUST_CHECK int import_models_adopt(const char *home, const struct rundir *rundir,
                                   const struct contents_run *told, struct arena *arena,
                                   struct imported *out, struct error *err);

#endif
