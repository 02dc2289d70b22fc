/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other users of a shared home need of a run: runs/<id>/public.jsonl. Its lines are lines of
 * the journal, reduced to the members below: who waits for what and who holds what, since when, and
 * whether the run is over. Names, parameters, commands, reasons and output are not among them, so a
 * umask of 077 keeps those private.
 *
 * Only a home that is shared has the file. Whoever may not read the journal reads this instead
 * (journal_load), with the same functions.
 */
#ifndef STORE_PUBLIC_LINE_H
#define STORE_PUBLIC_LINE_H

#include "base/buf.h"

#define PUBLIC_FILE "public.jsonl"

/* Appends the public part of a line of the journal, with a newline; nothing for an event of which
 * others need nothing. The line has no newline. Pure. */
MUST_CHECK int public_line(const char *line, size_t n, struct buf *out, struct error *err);

#endif
