/* SPDX-License-Identifier: Apache-2.0 */
/* What `compare` says of the code, the environment and the files of runs. */
#ifndef CLI_COMPARE_CODE_H
#define CLI_COMPARE_CODE_H

#include "search/facts.h"
#include "store/record.h"

/* Adds fields code.* and environment.*: more than the index keeps. */
void compare_code_facts(struct facts *facts, const struct run_record *run);

/* Prints which files of the code differ, where the code does and git knows both; else nothing, or
 * one line that says why not. */
void compare_code_outline(const struct run_record *here, const struct run_record *there);
/* Prints how the code differs, as a unified diff. Where the repository is gone, what each run has
 * kept of its changes. */
MUST_CHECK int compare_code_print(const struct run_record *here, const struct run_record *there,
                                  struct error *err);
/* Prints how the outputs differ, by content. */
MUST_CHECK int compare_files_print(const struct run_record *here, const struct run_record *there,
                                   struct error *err);

#endif
