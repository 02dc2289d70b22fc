/* SPDX-License-Identifier: Apache-2.0 */
#include "store/unbegun.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "store/journal.h"
#include "store/owner.h"

/* False also if the journal cannot be read, or has more than any line of ours. */
static bool has_no_line(const struct rundir *rundir) {
    AUTO(buf) text = BUF_INIT(JOURNAL_LINE_MOST);
    struct error ignored;

    return journal_load(rundir, &text, &ignored) == 0 && !memchr(text.data, '\n', text.len);
}

/* A directory from the future was made before the clock was set back. */
static bool is_new(const struct rundir *rundir, int64_t moment_s) {
    const int64_t now_s = time(NULL);
    struct stat st;

    return lstat(rundir->path, &st) < 0 ||
           (now_s - st.st_mtim.tv_sec < moment_s && st.st_mtim.tv_sec - now_s < moment_s);
}

enum unbegun unbegun_look(const struct rundir *rundir, int64_t moment_s) {
    pid_t pid;

    if (owner_lives(rundir, &pid) || is_new(rundir, moment_s))
        return UNBEGUN_STARTS;
    return has_no_line(rundir) && !owner_was_announced(rundir) ? UNBEGUN_NEVER : UNBEGUN_DAMAGED;
}
