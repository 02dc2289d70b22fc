/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images and texts that tasks log with a step. Each is a file below outputs/, and its path is all
 * that is known of it; nothing of it stands in the journal, so that a hundred thousand of them cost
 * nobody who does not ask:
 *
 *   media/<name>/<step>-<rank>[-<attempt>].<suffix>       media/val/samples/000000400-0.png
 *
 * The name may have slashes. Numbers are decimal, the step may be negative, and leading zeros mean
 * nothing. The suffix decides what it is. Time is the file's own. Whatever else lies below media/
 * is an output like any other.
 */
#ifndef STORE_MEDIA_H
#define STORE_MEDIA_H

#include "store/outputs.h"

enum media_kind { MEDIA_IMAGE, MEDIA_TEXT };

struct media {
    const char *name, *path; /* path: below outputs/ */
    enum media_kind kind;
    int64_t step;
    uint32_t rank, attempt;
    uint64_t size;
    struct timespec logged;
};

struct media_list {
    struct media *items; /* by name, attempt, step and rank */
    size_t n;
};

const char *media_kind_name(enum media_kind kind);

/* What a path says: kind, step, rank, attempt, and how many bytes of it, from the sixth on, are the
 * name. False where it is no media. */
bool media_parse(const char *path, struct media *out, size_t *name_length);

/* All of a run whose name is one of the patterns (as a shell has them); all where there are none.
 * They live in the arena. */
MUST_CHECK int media_read(const struct rundir *rundir, const char *const *patterns,
                          size_t n_patterns, struct arena *arena, struct media_list *out,
                          struct error *err);

/* The beginning of a text, cut at so many bytes; "" where it cannot be read. */
const char *media_excerpt(const struct rundir *rundir, const struct media *media, size_t most,
                          struct arena *arena);

#endif
