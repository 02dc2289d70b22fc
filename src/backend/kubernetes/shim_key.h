/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key by which the shims of an attempt know their supervisor: 32 hexadecimal digits, made once
 * and kept beside the logs, readable by their owner alone, so that whoever takes the run over has
 * it. Where there is none, the pods of the attempt have no shim.
 */
#ifndef BACKEND_KUBERNETES_SHIM_KEY_H
#define BACKEND_KUBERNETES_SHIM_KEY_H

#include "base/error.h"

enum { SHIM_KEY_TEXT = 33 }; /* with its NUL */

/* Takes the one that is there, or makes it: it is on the disk when this returns. */
MUST_CHECK int shim_key_make(const char *directory, char out[static SHIM_KEY_TEXT],
                             struct error *err);

/* NOT_FOUND: there is none. */
MUST_CHECK int shim_key_read(const char *directory, char out[static SHIM_KEY_TEXT],
                             struct error *err);

/* The attempt gets none after all. */
void shim_key_remove(const char *directory);

#endif
