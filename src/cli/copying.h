/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs copied for people: they see how far it is, and an interrupt leaves no half file. */
#ifndef CLI_COPYING_H
#define CLI_COPYING_H

#include "store/outputs.h"

/* As outputs_copy. `what` stands before the progress. An interrupt that comes meanwhile, and is not
 * held back by the caller, ends the process, as soon as the file in hand is put away. */
MUST_CHECK int copying_outputs(const char *what, const struct outputs *outputs,
                               const struct rundir *rundir, const char *directory,
                               enum outputs_manner manner, size_t *left_out, struct error *err);

#endif
