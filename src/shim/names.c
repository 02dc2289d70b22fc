/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/names.h"

#include <string.h>

enum { FIRST_PAUSE_MS = 100, LAST_PAUSE_MS = 5000 };

static void ask(struct names *names) {
    if (lookup_ask(&names->lookup, names->missing))
        loop_after(names->lookup.loop, &names->again, names->pause_ms);
}

static void finish(struct names *names, bool were_found) {
    names_cancel(names);
    names->were_found = were_found;
    names->done(names);
}

/* Goes on with the next name of the list. A longer one than any that exists is asked for as far as
 * it is kept, and not found. */
static void next(struct names *names) {
    size_t n;

    names->rest += strspn(names->rest, " ");
    n = strcspn(names->rest, " ");
    if (n == 0) {
        finish(names, true);
        return;
    }
    memset(names->missing, 0, sizeof names->missing);
    memcpy(names->missing, names->rest, n < NAMES_MOST ? n : NAMES_MOST);
    names->rest += n;
    names->pause_ms = FIRST_PAUSE_MS;
    ask(names);
}

static void on_lookup(struct lookup *lookup) {
    struct names *names = loop_owner(lookup, struct names, lookup);

    if (lookup->length) {
        next(names);
        return;
    }
    loop_after(lookup->loop, &names->again, names->pause_ms);
    names->pause_ms *= 2;
    if (names->pause_ms > LAST_PAUSE_MS)
        names->pause_ms = LAST_PAUSE_MS;
}

static void on_again(struct loop_timer *timer) {
    ask(loop_owner(timer, struct names, again));
}

static void on_over(struct loop_timer *timer) {
    finish(loop_owner(timer, struct names, over), false);
}

void names_wait(struct names *names, struct loop *loop, const char *list, int64_t patience_ms,
                void (*done)(struct names *names)) {
    *names = (struct names){
        .done = done, .rest = list, .again = { .fire = on_again }, .over = { .fire = on_over }
    };
    lookup_init(&names->lookup, loop, on_lookup);
    loop_after(loop, &names->over, patience_ms);
    next(names);
}

void names_cancel(struct names *names) {
    if (!names->lookup.loop)
        return;
    loop_cancel(names->lookup.loop, &names->again);
    loop_cancel(names->lookup.loop, &names->over);
    lookup_cancel(&names->lookup);
}
