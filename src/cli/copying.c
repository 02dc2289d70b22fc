/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copying.h"

#include "cli/progress.h"

int copying_outputs(const char *what, const struct outputs *outputs, const struct rundir *rundir,
                    const char *directory, enum outputs_manner manner, size_t *left_out,
                    struct error *err) {
    const struct interrupts held = interrupts_hold();
    struct progress progress = progress_begin(what);
    const struct outputs_progress tell = { progress_tell, &progress };
    int status;

    for (size_t i = 0; i < outputs->list.len; i++)
        progress.total += outputs->list.items[i].target ? 0 : outputs->list.items[i].size;
    status = outputs_copy(outputs, rundir, directory, manner, &tell, left_out, err);
    progress_end(&progress);
    sigprocmask(SIG_SETMASK, &held.before, NULL);
    return status;
}
