/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the CPUs of this machine lie, by hwloc, which is loaded when it is asked for: `node`, and
 * runs that have pinned tasks. Other commands do not pay for it. Without the library every CPU
 * stands alone on one node, which is enough to pin, and the layout says so.
 *
 * hwloc's own variables (HWLOC_SYNTHETIC, HWLOC_XMLFILE) describe another machine: the layout is
 * then that one's, and is_this_machine is false.
 */
#ifndef BACKEND_LOCAL_TOPOLOGY_H
#define BACKEND_LOCAL_TOPOLOGY_H

#include "model/layout.h"

/* Costs some milliseconds, and reads /sys. */
void topology_read(struct layout *out);

/* The CPUs that this process may use now; a system call. */
void topology_allowed(struct cpus *out);

#endif
