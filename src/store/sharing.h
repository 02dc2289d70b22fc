/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A home that several users share: a directory that exists and that its group, or everybody, may
 * write to. What is made in it gets its mode from the home instead of the umask, from the moment it
 * exists:
 *
 *   all of them write     runs, the databases, last-run
 *   they only enter       the directory of a run (they cannot list it)
 *   they only read        its public lines (public_line.h): the queue is worked out from these
 *
 * Everything else of a run gets its mode from its owner's umask. In a home of one user, all files
 * do.
 *
 * A shared home is safe if no member can replace what another member made: home and runs have the
 * sticky bit, and runs belongs to root or to the owner of the home. Nothing is started in one that
 * is not.
 */
#ifndef STORE_SHARING_H
#define STORE_SHARING_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"

enum sharing {
    SHARED_TO_WRITE,
    SHARED_TO_READ,
    SHARED_TO_ENTER,
};

/* Whether others may write to the home. */
bool home_is_shared(const char *home);

/* Fails with ERROR_DENIED, and says how to mend it, if the home is shared and not safe. `runs` is
 * the path of its directory of runs, which exists. */
MUST_CHECK int home_check_safe(const char *home, const char *runs, struct error *err);
/* Fails with ERROR_DENIED, and says how to mend it, if this user may not make the directory of
 * runs: its owner could replace the runs of others. */
MUST_CHECK int home_check_maker(const char *home, struct error *err);

/* mkdir and open of something in a home; `usual` is the mode if nobody shares it. The home is only
 * looked at if a file may be made (O_CREAT). Only regular files are opened (file_open_regular). */
int shared_mkdir(const char *home, const char *path, enum sharing sharing, mode_t usual);
int shared_open(const char *home, const char *path, int flags, enum sharing sharing, mode_t usual);
/* Gives an open file of a run the mode with which others may read it. */
void shared_let_read(const char *home, int fd);

/* Makes an empty file that SQLite then takes for a new database, with that mode also for the files
 * that it puts beside it. Nothing where the home is not shared, or where there is one. */
void shared_prepare_database(const char *home, const char *path);

/* "ann", or "user 1001" if no database knows the name. */
struct user_text {
    char text[64];
};
struct user_text user_text(uid_t user);
/* Who owns a file; of a link its own owner. */
struct user_text file_owner(const char *path);

#endif
