/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A home that several people share: a directory that exists and that its group, or everybody, may
 * write to. What is made in it has the home's own mode in the place of the umask's, from the moment
 * it is there:
 *
 *   all of them write     runs (with the sticky bit: nobody moves another's run), the databases,
 *                         last-run
 *   they only read        the directory of a run, its lock and its journal: the queue is worked
 *                         out from these
 *
 * What else a run has is its owner's, by the umask. In a home of one everything is made as ever.
 */
#ifndef STORE_SHARING_H
#define STORE_SHARING_H

#include <stdbool.h>
#include <sys/types.h>

enum sharing {
    SHARED_TO_WRITE,
    SHARED_TO_READ,
};

/* Whether others may write to the home. */
bool home_is_shared(const char *home);

/* mkdir and open of something in a home; `usual` is the mode where nobody shares it. The home is
 * only looked at where a file may be made (O_CREAT). */
int shared_mkdir(const char *home, const char *path, enum sharing sharing, mode_t usual);
int shared_open(const char *home, const char *path, int flags, enum sharing sharing, mode_t usual);

/* Makes an empty file that SQLite then takes for a new database, with that mode also for the files
 * that it puts beside it. Nothing where the home is not shared, or where there is one. */
void shared_prepare_database(const char *home, const char *path);

/* "ann", who owns the file, or "user 1001" where nobody knows the name. */
struct owner_text {
    char text[64];
};
struct owner_text file_owner(const char *path);

#endif
