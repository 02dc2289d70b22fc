/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "backend/local/cgroup.h"
#include "store/host.h"
#include "store/owner.h"
#include "store/rights.h"
#include "supervise/chronicle.h"
#include "supervise/queue.h"
#include "supervise/supervisor_state.h"
#include "supervise/tracker.h"

enum { CLEAR_MS = 3000 }; /* large processes take their time to end */

/* Ends what is left of the run in its control groups, and frees what is reserved for it if nothing
 * is: what lives in them still uses it. Returns how many groups are left. */
static unsigned free_what_is_left(const struct rundir *rundir, const struct run_record *record,
                                  enum settling settling) {
    const unsigned most_ms = settling == SETTLE_PATIENTLY ? CLEAR_MS : 0;
    const unsigned cgroups = record->uuid ? cgroups_clear(record->uuid, most_ms) : 0;

    if (cgroups == 0)
        queue_forget(rundir);
    return cgroups;
}

/* False: not yet, as something of it still lives, and the caller does not wait for it. */
static bool write_lost_end(const struct rundir *rundir, const struct run_record *record,
                           const char *reason, bool was_swept, enum settling settling) {
    const unsigned cgroups = free_what_is_left(rundir, record, settling);
    struct journal journal;
    struct error err;

    if ((cgroups > 0 && settling == SETTLE_IN_PASSING) ||
        journal_reopen(&journal, rundir, record->seq, tracker_elapsed_s(record), &err))
        return false;
    journal.attempt = record_attempt(record);
    if (was_swept)
        chronicle_checked(&journal, CHRONICLE_NOT_LOOKED_FOR, cgroups);
    else if (cgroups > 0)
        chronicle_groups_left(&journal, cgroups);
    chronicle_end(&journal, &(struct chronicle_end){ .state = STATE_FAILED,
                                                     .reason = reason,
                                                     .first_failed = -1,
                                                     .exit_status = SUPERVISOR_FAILED });
    journal_close(&journal);
    return true;
}

void supervisor_write_lost_end(const struct rundir *rundir, const char *reason, bool was_swept) {
    struct run_record record;
    struct error err;

    if (record_read(&record, rundir, &err))
        return;
    if (!state_is_final(record.state))
        write_lost_end(rundir, &record, reason, was_swept, SETTLE_PATIENTLY);
    record_release(&record);
}

/* Why a run of this machine lost its owner. */
static const char *loss_of(const struct run_record *record, bool same_boot) {
    if (!same_boot)
        return "the machine went down while the run was going on";
    if (record->made_by && strcmp(record->made_by, "init") == 0)
        return "the process that made the run was killed";
    return "the supervisor and its keeper were killed";
}

bool supervisor_settle(const struct rundir *rundir, enum settling settling) {
    struct run_record record;
    struct error err;
    char host[HOST_TEXT], boot[BOOT_TEXT];
    bool settles = false;
    int lock;

    if (!rights_has(rundir))
        return false;
    tracker_settle(rundir); /* how long it went on is known from what it logged */
    if (owner_pass(rundir, settling == SETTLE_PATIENTLY ? OWNER_PASSING_MS : 0, &lock, &err))
        return false;
    if (record_read(&record, rundir, &err) == 0) {
        bool is_ours = record.host && strcmp(record.host, host_name(host)) == 0;
        bool same_boot = record.boot_id && strcmp(record.boot_id, boot_id(boot)) == 0;

        if (is_ours && !record.backend && state_is_final(record.state))
            free_what_is_left(rundir, &record, SETTLE_IN_PASSING); /* it was waited for before */
        else if (is_ours && !record.backend)
            settles =
                write_lost_end(rundir, &record, loss_of(&record, same_boot), !same_boot, settling);
        record_release(&record);
    }
    close(lock);
    return settles;
}
