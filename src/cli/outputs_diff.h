/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the outputs of one run are beside those of another: files only here, only there, and those
 * of both that differ or are the same by their content. Only files of equal size are read.
 */
#ifndef CLI_OUTPUTS_DIFF_H
#define CLI_OUTPUTS_DIFF_H

#include "store/outputs.h"

struct outputs_side {
    const struct rundir *rundir;
    const struct outputs *outputs; /* sorted */
};

/* Print to standard output. */
MUST_CHECK int outputs_diff_print(const struct outputs_side *here, const struct outputs_side *there,
                                  struct error *err);
MUST_CHECK int outputs_diff_print_json(const struct outputs_side *here,
                                       const struct outputs_side *there, struct error *err);

#endif
