/* SPDX-License-Identifier: Apache-2.0 */
#include "store/find.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/json_read.h"
#include "model/uuid.h"
#include "store/journal.h"
#include "store/owner.h"
#include "store/record.h"
#include "store/rights.h"

enum { FIRST_LINE_MOST = 1 << 20, PIECE = 4096, ID_DIGITS_MOST = 9 };

/* ---- what a run is called ---- */

/* The first line of the journal; false where there is none yet, or where it cannot be read. */
static bool read_first_line(const struct rundir *rundir, struct buf *line, bool *is_hidden) {
    char piece[PIECE];
    bool found = false;
    struct error err;
    ssize_t n;
    int fd;

    fd = journal_open_to_read(rundir);
    *is_hidden =
        fd < 0 && (errno == EACCES || errno == EPERM || errno == EMFILE || errno == ENFILE);
    if (fd < 0)
        return false;
    while (!found && (n = read(fd, piece, sizeof piece)) > 0) {
        const char *end = memchr(piece, '\n', (size_t)n);

        found = end != NULL;
        if (buf_append(line, piece, found ? (size_t)(end - piece) : (size_t)n, &err))
            break; /* no line of ours is that long */
    }
    close(fd);
    return found;
}

void identify_run(const struct rundir *rundir, struct arena *arena, struct run_identity *out) {
    AUTO(buf) line = BUF_INIT(FIRST_LINE_MOST);
    AUTO(arena) scratch = ARENA_INIT;
    const char *uuid;
    struct node node;
    struct error err;

    *out = (struct run_identity){ 0 };
    if (!read_first_line(rundir, &line, &out->is_hidden) ||
        json_read(line.data, line.len, &scratch, &node, &err))
        return;
    uuid = node_keep_text(&node, "uuid", arena);
    out->uuid = uuid_is_valid(uuid) ? uuid : NULL;
    out->name = node_keep_text(&node, "name", arena);
    out->is_elsewhere = node_keep_text(&node, "backend", arena) != NULL;
}

/* ---- looking ---- */

/* What is looked for. */
struct wanted {
    const char *text;
    enum find_preference preference;
    char digits[UUID_DIGITS + 1]; /* as a uuid's beginning; empty: it cannot be one */
    size_t n_digits;
};

static void read_uuid(struct wanted *wanted) {
    size_t n = 0;

    for (const char *p = wanted->text; *p; p++) {
        if (*p == '-' && n > 0)
            continue;
        if (!isxdigit((unsigned char)*p) || n == UUID_DIGITS) {
            n = 0;
            break;
        }
        wanted->digits[n++] = (char)tolower((unsigned char)*p);
    }
    wanted->digits[n] = '\0';
    wanted->n_digits = n;
}

/* The number that a text is as an id is written, or 0. */
static unsigned long read_id(const char *text) {
    const size_t n = strlen(text);

    if (n == 0 || n > ID_DIGITS_MOST || text[0] == '0' || strspn(text, "0123456789") != n)
        return 0;
    return strtoul(text, NULL, 10);
}

/* Runs whose uuid begins so, newest first. */
struct found {
    struct rundir newest, next;
    const char *newest_uuid, *next_uuid;
    size_t n;
};

static void note_uuid(struct found *found, const struct rundir *rundir, const char *uuid) {
    if (found->n == 0) {
        found->newest = *rundir;
        found->newest_uuid = uuid;
    } else if (found->n == 1) {
        found->next = *rundir;
        found->next_uuid = uuid;
    }
    found->n++;
}

static int say_what_was_found(const struct wanted *wanted, const struct found *found,
                              struct rundir *out, struct error *err) {
    if (found->n == 0)
        return error_set(err, ERROR_NOT_FOUND,
                         "there is no run '%.100s': give an id, a name, %d or more digits of a "
                         "uuid, or @ for the newest; 'myelin ps -a' lists them",
                         wanted->text, FIND_UUID_LEAST);
    if (wanted->n_digits < FIND_UUID_LEAST)
        return error_set(err, ERROR_INVALID,
                         "'%.100s' is too short for a uuid: give at least %d digits, as in %.8s",
                         wanted->text, FIND_UUID_LEAST, found->newest_uuid);
    if (found->n == 1) {
        *out = found->newest;
        return 0;
    }
    return error_set(err, ERROR_INVALID,
                     "%zu uuids begin with '%.100s': run %s is %s, run %s is %s%s; give more "
                     "digits, or the id",
                     found->n, wanted->text, found->newest.id, found->newest_uuid, found->next.id,
                     found->next_uuid, found->n > 2 ? ", ..." : "");
}

/* Whether a run goes on. One that is on a cluster does so without a supervisor here too. */
static bool goes_on(const struct rundir *rundir, const struct run_identity *identity) {
    struct run_record record;
    struct error err;
    bool is_over;
    pid_t pid;

    if (owner_lives(rundir, &pid))
        return true;
    if (!identity->is_elsewhere || record_read(&record, rundir, &err))
        return false;
    is_over = state_is_final(record.state);
    record_release(&record);
    return !is_over;
}

/* How well a run fits that a name or @ means: one's own before those of others in a shared home,
 * and then one that goes on, if that is asked for. BEST needs no further look. */
enum fit { FIT_NONE, FIT_OTHERS, FIT_OTHERS_WANTED, FIT_OWN, FIT_BEST };

static enum fit fit_of(const struct rundir *rundir, const struct run_identity *identity,
                       enum find_preference preference) {
    const bool is_wanted = preference == FIND_NEWEST || goes_on(rundir, identity);

    if (rights_has(rundir))
        return is_wanted ? FIT_BEST : FIT_OWN;
    return is_wanted ? FIT_OTHERS_WANTED : FIT_OTHERS;
}

/* Walks from the newest run to the oldest until the text is decided. */
static int look_through(const char *home, const unsigned long *ids, size_t n,
                        const struct wanted *wanted, struct arena *arena, struct rundir *out,
                        struct error *err) {
    const bool is_newest = strcmp(wanted->text, "@") == 0;
    enum fit best = FIT_NONE; /* of the runs that the name or @ means */
    struct found found = { 0 };

    for (size_t i = n; i > 0 && best < FIT_BEST; i--) {
        struct run_identity identity;
        struct rundir rundir;

        if (rundir_open(home, ids[i - 1], arena, &rundir, err))
            continue; /* removed meanwhile */
        identify_run(&rundir, arena, &identity);
        if (!identity.uuid)
            continue; /* not begun, or not a run */
        if (is_newest || (identity.name && strcmp(identity.name, wanted->text) == 0)) {
            const enum fit fit = fit_of(&rundir, &identity, wanted->preference);

            if (fit > best)
                *out = rundir;
            best = fit > best ? fit : best;
        }
        if (wanted->n_digits && strncmp(identity.uuid, wanted->digits, wanted->n_digits) == 0)
            note_uuid(&found, &rundir, identity.uuid);
    }
    if (best > FIT_NONE)
        return 0;
    return say_what_was_found(wanted, &found, out, err);
}

int find_run(const char *home, const char *text, enum find_preference preference,
             struct arena *arena, struct rundir *out, struct error *err) {
    struct wanted wanted = { .text = text, .preference = preference };
    unsigned long id = read_id(text), *ids;
    size_t n;

    if (id && rundir_open(home, id, arena, out, err) == 0)
        return 0;
    if (id && err->code != ERROR_NOT_FOUND)
        return -1;
    if (rundir_list(home, arena, &ids, &n, err))
        return -1;
    if (n == 0)
        return error_set(err, ERROR_NOT_FOUND, "there are no runs in '%.300s/runs'", home);
    if (!id)
        read_uuid(&wanted); /* else the id of a run that was removed would become another one */
    return look_through(home, ids, n, &wanted, arena, out, err);
}
