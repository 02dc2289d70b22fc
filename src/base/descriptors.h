/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a process may open enough files for what it is about to begin. */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

#include "base/error.h"

/* For libevent's event_base_new, which ends the process if one of them is missing: the poll, and
 * the two ends of the pipe for signals. One more is for the files that are opened in turn. */
enum { DESCRIPTORS_OF_LOOP = 4 };

/* Checks that `n` more descriptors can be open at once. Fails with ERROR_EXHAUSTED and a sentence
 * that names the limit. Nothing stays open. */
MUST_CHECK int descriptors_check(unsigned n, struct error *err);

#endif
