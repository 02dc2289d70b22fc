/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/code_watch.h"

#include <event2/event.h>
#include <stdlib.h>

#include "supervise/chronicle.h"

void code_watch_release(struct code_watch *watch) {
    if (watch->event)
        event_free(watch->event);
    recorder_release(&watch->recorder);
    arena_release(&watch->arena);
    *watch = (struct code_watch)CODE_WATCH_NONE;
}

/* Where the journal does not take what is long, it may take a word of it. */
static void tell(struct journal *journal, const struct code_facts *facts) {
    const uint64_t lost = journal->lost;

    chronicle_code(journal, facts);
    if (journal->lost > lost)
        chronicle_notice(journal, "what is known of the code could not be recorded: it is longer "
                                  "than a line of the journal, 256 KiB, or the disk did not take "
                                  "it");
}

/* ---- before the supervisor ---- */

void code_watch_know(struct code_watch *watch, const struct code_facts *facts) {
    watch->facts = code_facts_copy(facts, &watch->arena);
}

void code_watch_look_up(struct code_watch *watch, const char *directory,
                        const struct rundir *rundir) {
    if (watch->facts.repository)
        return;
    recorder_start(&watch->recorder, directory, rundir);
    if (!recorder_wait(&watch->recorder, RECORDER_GRACE_MS))
        return;
    recorder_facts(&watch->recorder, &watch->arena, &watch->facts);
    recorder_reap(&watch->recorder);
}

void code_watch_tell(const struct code_watch *watch, struct journal *journal) {
    if (code_facts_any(&watch->facts))
        tell(journal, &watch->facts);
}

/* ---- in the supervisor ---- */

/* Nothing more is to come. */
static void tell_last(struct code_watch *watch) {
    if (recorder_facts(&watch->recorder, &watch->arena, &watch->facts)) {
        watch->facts.is_late = watch->has_started;
        tell(watch->journal, &watch->facts);
    }
    event_free(watch->event);
    watch->event = NULL;
    recorder_end(&watch->recorder);
}

static void on_more(evutil_socket_t fd, short what, void *context) {
    struct code_watch *watch = context;

    (void)fd, (void)what;
    /* The wait closes what it has read to its end. The keeper holds the same pipe: what is closed
     * before it is taken from the loop wakes the loop from then on, and nothing takes it out. */
    event_del(watch->event);
    if (recorder_wait(&watch->recorder, 0))
        tell_last(watch);
    else
        event_add(watch->event, NULL);
}

void code_watch_await(struct code_watch *watch, struct event_base *base, struct journal *journal) {
    watch->journal = journal;
    if (watch->recorder.fd < 0)
        return;
    watch->event = event_new(base, watch->recorder.fd, EV_READ | EV_PERSIST, on_more, watch);
    if (!watch->event)
        abort();
    event_add(watch->event, NULL);
}

void code_watch_finish(struct code_watch *watch) {
    if (!watch->event)
        return;
    event_del(watch->event);
    if (!recorder_wait(&watch->recorder, RECORDER_END_MS))
        chronicle_notice(watch->journal, "the repository is large: the run was over before its "
                                         "code was looked up");
    tell_last(watch);
}
