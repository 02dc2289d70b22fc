/* SPDX-License-Identifier: Apache-2.0 */
/* `myelin export RUN...` to an archive (archive/export.h). */
#ifndef CLI_EXPORT_ARCHIVE_H
#define CLI_EXPORT_ARCHIVE_H

#include "cli/command.h"

/* Returns the exit status. */
int export_archive(const struct invocation *invocation);

#endif
