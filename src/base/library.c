/* SPDX-License-Identifier: Apache-2.0 */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

int library_load(const char *file, const struct library_symbol *symbols, size_t n, void **handle,
                 struct error *err) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return error_set(err, ERROR_UNAVAILABLE, "%s cannot be loaded", file);
    for (size_t i = 0; i < n; i++) {
        void *found = dlsym(library, symbols[i].name);

        if (!found) {
            dlclose(library);
            return error_set(err, ERROR_INVALID, "%s has no %s", file, symbols[i].name);
        }
        /* POSIX has dlsym give functions as object pointers; memcpy is how C takes one over. */
        memcpy(symbols[i].slot, &found, sizeof found);
    }
    *handle = library;
    return 0;
}

void library_unload(void *handle) {
    if (handle)
        dlclose(handle);
}
