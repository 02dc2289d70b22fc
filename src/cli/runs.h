/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands over runs share: a RUN of the command line to its record, the ways to end
 * one, and what is said of a run in few words.
 *
 * A run is never shown as living when it is not: one whose supervisor is gone without a word is
 * settled (supervise/supervisor.h) before anybody sees it.
 */
#ifndef CLI_RUNS_H
#define CLI_RUNS_H

#include <stdio.h>
#include <time.h>

#include "cli/command.h"
#include "codec/json.h"
#include "store/record.h"

/* For the description of each command that takes a RUN. */
#define RUN_NAMES                                                                                  \
    "A RUN is named by its id, its name (the newest run of that name), at least 4 digits of its "  \
    "uuid, or `@` for the newest run."

/* And of those for which only one that goes on makes sense. */
#define LIVING_RUN_NAMES                                                                           \
    "A RUN is named by its id, its name, at least 4 digits of its uuid, or `@` for any run. Of "   \
    "several runs that a name or `@` fits, the newest that is still going on is taken; if none "   \
    "is, the newest."

/* The home with an absolute path, also where it does not exist yet. */
MUST_CHECK int runs_home(struct arena *arena, const char **out, struct error *err);

/* A RUN to its directory. */
MUST_CHECK int runs_find(const char *text, struct arena *arena, struct rundir *out,
                         struct error *err);
/* The same for a command that is about a run which goes on: of those that a name or @ fits, the
 * newest that goes on; if none does, the newest. */
MUST_CHECK int runs_find_living(const char *text, struct arena *arena, struct rundir *out,
                                struct error *err);

/* Reads a run, settled. Of a living run elapsed_s counts on until now. The record is released by
 * the caller. */
MUST_CHECK int runs_read(const struct rundir *rundir, struct run_record *record, struct error *err);

/* For a command line that names no RUN: says so and returns the exit status. */
int runs_misuse_without_run(const struct invocation *invocation);

/* Of a living run the phase where it says more: "stopping"; "waiting", for its next attempt. */
const char *runs_status(const struct run_record *run);
/* The colour in which a state is shown, for table_paint: what went well is green, what failed is
 * red. NULL: none. */
const char *runs_colour(enum state state);
/* A word in that colour, if the stream shows colours. */
const char *runs_painted(struct arena *arena, FILE *out, enum state state, const char *word);
/* How many tasks are in that state. */
uint32_t runs_count(const struct run_record *run, enum state state);

/* "3m ago": how long ago the moment was at which the run had lasted so long. "" where that is not
 * known. */
const char *runs_ago(struct arena *arena, const struct run_record *run, double elapsed_s);
/* The same of a number of seconds. */
const char *runs_age(struct arena *arena, double seconds);
/* The present as the run's logs count it: from the time that the wall clock showed when the run was
 * made, whatever has been done to that clock since. */
int64_t runs_now_us(const struct run_record *run);
/* When a file was changed, in seconds. It may have been given any time: one beyond what fits is
 * told as the last that does. */
struct time_text runs_file_time(struct timespec at);
/* "1.2 MiB". */
const char *runs_bytes(struct arena *arena, uint64_t n);
/* A text that a run brings, for one line (visible_text of codec/visible.h): at most so many
 * columns, 0 for all. "" for NULL. */
const char *runs_text(struct arena *arena, const char *text, size_t most);

/* The long form, as `status` prints it, to standard output. Returns 0, or -1 when that cannot be
 * written, which is told once for all commands when the program ends. */
int runs_print_json(struct run_record *run);

/* Begins what came of an order to a run, as `stop` and `rm` print it; the caller ends the object.
 * `named`: as on the command line. The directory may have no path, where there is no such run;
 * `error` is NULL where there was none. */
void write_order_json(struct json *json, const char *named, const struct rundir *rundir,
                      const char *outcome, const char *error);

/* The short form, as `ps` prints it (docs/json.md). */
void write_run_summary_json(struct json *json, const struct run_record *run);

#endif
