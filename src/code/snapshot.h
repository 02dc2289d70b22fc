/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive of the code that a run runs: of the repository that the working directory lies in,
 * else of the working directory, without what .gitignore, .polyaxonignore and .git/info/exclude
 * name. It is taken before anything of the run starts, so it is what the tasks find.
 *
 * Never in it: .git, the home of the runs, devices, pipes and sockets. A link that leads out of the
 * tree is told by its name and target instead. .polyaxonignore comes after the .gitignore of the
 * same folder, so it can take back (`!built.so`) what that ignores.
 */
#ifndef CODE_SNAPSHOT_H
#define CODE_SNAPSHOT_H

#include "archive/archive.h"
#include "store/code_facts.h"
#include "store/rundir.h"

/* Data does not belong into a snapshot: beyond these it is refused. */
enum { SNAPSHOT_FILES_MOST = 100 * 1000 };
#define SNAPSHOT_BYTES_MOST ((uint64_t)1 << 30)

#define SNAPSHOT_TOP "tree" /* all entries are below it */

/* Sets the archive's part of the facts, which live in the arena. */
MUST_CHECK int snapshot_take(const char *directory, const char *home, const struct rundir *rundir,
                             const struct archive_progress *progress, struct arena *arena,
                             struct code_facts *facts, struct error *err);

#endif
