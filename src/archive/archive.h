/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Archives: tar, compressed with zstd, which `tar --zstd` and every other tool reads. Made and read
 * by libarchive, which is loaded by the first that needs it.
 *
 * Writing:
 *
 *   struct pack *pack;
 *   pack_begin(path, PACK_NEW_ONLY, &pack, err)     or pack_begin_at(fd, …) for a pipe
 *   pack_add(pack, "run/a", AT_FDCWD, "a", err)     a file, a folder or a symbolic link, as it is
 *   pack_add_bytes(pack, "facts.json", …)
 *   pack_finish(pack, err)
 *
 * A file appears under its name when it is whole and on the disk, or not at all. The same entries
 * in the same order give the same bytes: owners are left out, times are whole seconds, and of the
 * mode the nine bits of rights are kept. The last entry, `.sha256`, is a seal over all others.
 *
 * Reading: `unpack` makes a directory from an archive of any origin, or leaves nothing. It refuses
 *
 *   names that are absolute, or have an empty part, "." or ".."; two entries of one name
 *   symbolic links that do not stay inside (archive_link_stays), and hard links
 *   devices, pipes, sockets; set-user-id, set-group-id and sticky bits
 *   more entries or bytes than the caller allows, and folders that lie too deep
 *   what does not fit its seal; an archive of another tool has none
 *
 * Nothing is ever written through a symbolic link: folders are opened one from the other, and links
 * are made after everything else.
 */
#ifndef ARCHIVE_ARCHIVE_H
#define ARCHIVE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { ARCHIVE_DEPTH_MOST = 256, ARCHIVE_NAME_MOST = 4000 };

/* Told every now and then how many bytes of content were written; false ends it. */
struct archive_progress {
    bool (*tell)(void *context, uint64_t bytes);
    void *context;
};

/* Whether a symbolic link of that name stays inside the archive, wherever that is unpacked: its
 * target is relative, ".." stands only at its beginning, and does not lead above the top. So no
 * chain of such links leads out. */
bool archive_link_stays(const char *name, const char *target);

/* ---- writing ---- */

struct pack;

enum pack_manner {
    PACK_NEW_ONLY, /* a file of that name is an error, found before anything is written */
    PACK_REPLACE,
};

MUST_CHECK int pack_begin(const char *path, enum pack_manner manner, struct pack **out,
                          struct error *err);
/* To a descriptor, which stays the caller's: what was written when it fails stays written. */
MUST_CHECK int pack_begin_at(int fd, struct pack **out, struct error *err);
/* NULL: nobody is told. */
void pack_tell(struct pack *pack, const struct archive_progress *progress);

/* Adds what is at a path, which is looked up from a directory as openat does: a file with its
 * content, a folder without, a link as a link. Fails with ERROR_INVALID for anything else, and for
 * a link that does not stay; with ERROR_CONFLICT for a file that became shorter meanwhile. */
MUST_CHECK int pack_add(struct pack *pack, const char *name, int directory, const char *path,
                        struct error *err);
/* Adds a file that is not one yet, with the rights 0644 and a time in seconds. */
MUST_CHECK int pack_add_bytes(struct pack *pack, const char *name, const void *bytes, size_t n,
                              int64_t modified_s, struct error *err);

/* The end of all that is added. Frees it, also when it fails; *size is that of the archive. */
MUST_CHECK int pack_finish(struct pack *pack, uint64_t *size, struct error *err);
/* Nothing is left of it. Takes NULL. After a failure of one of the above this is all that can be
 * done. */
void pack_discard(struct pack *pack);

/* ---- reading ---- */

enum unpack_seal { UNPACK_SEALED_ONLY, UNPACK_ALSO_UNSEALED };

struct unpack_terms {
    uint64_t entries_most, bytes_most;
    enum unpack_seal seal;
    const struct archive_progress *progress; /* or NULL */
};

/* Unpacks an archive into a directory that does not exist yet. It appears when it is whole and on
 * the disk, or not at all. `name` is what the archive is called in messages. */
MUST_CHECK int unpack(int fd, const char *name, const char *directory,
                      const struct unpack_terms *terms, struct error *err);

#endif
