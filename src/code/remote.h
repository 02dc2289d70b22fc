/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a remote repository, without what lets one in. Pure. */
#ifndef CODE_REMOTE_H
#define CODE_REMOTE_H

#include "base/arena.h"

/* A copy of the address without credentials: of a web address everything before the '@', a token
 * that stands alone too, and what follows a '?' or '#', where tokens are given as well; of others
 * the password alone, since the user's name is a part of the address (git@host). Whatever stands
 * in the place of a password goes, also where the address is none that git would take. */
const char *remote_clean(const char *address, struct arena *arena);

#endif
