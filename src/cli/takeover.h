/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run on a cluster goes on when its supervisor and its keeper are gone. Whoever wants to do
 * something with it gives it a supervisor again, which finds its tasks by their labels.
 */
#ifndef CLI_TAKEOVER_H
#define CLI_TAKEOVER_H

#include "store/record.h"

/* Does nothing for a run that is over, is watched, is another host's, or has its tasks here. */
MUST_CHECK int take_over_if_alone(const struct run_record *run, struct error *err);

#endif
