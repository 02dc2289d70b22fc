/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shared library that is loaded when it is needed. A library that only some commands use is
 * not linked: loading it and all that it depends on would cost every command milliseconds, and
 * its absence would cost all of them instead of one.
 */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stddef.h>

#include "base/error.h"

struct library_symbol {
    const char *name;
    void *slot; /* a pointer to the pointer that the function is called by */
};

/* Fills in every slot. Fails with ERROR_UNAVAILABLE where the library cannot be loaded, with
 * ERROR_INVALID where it lacks one of the symbols. `*handle` is for library_unload. */
MUST_CHECK int library_load(const char *file, const struct library_symbol *symbols, size_t n,
                            void **handle, struct error *err);

/* Takes NULL. */
void library_unload(void *handle);

#endif
