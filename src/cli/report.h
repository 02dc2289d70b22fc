/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of a run: the line at its start, the sentences at its end, and the same as JSON
 * (docs/json.md).
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <stdio.h>

#include "base/clock.h"
#include "codec/json.h"
#include "store/record.h"

/* "run 12: 4 tasks (master.0, worker[0-2]), pytorch, logs in …". */
void report_start(FILE *out, const struct plan *plan, const struct rundir *rundir);

/* Whether the reader has the last lines of the tasks on the screen already. */
enum report_lines { REPORT_LINES, REPORT_LINES_ARE_ABOVE };

/* The report goes to `out`; the lines were shown on `lines`, all of them or not. */
enum report_lines report_lines_after(FILE *out, FILE *lines, bool has_shown_all);

/* How it ended; if it failed, the first failing task with its last lines, or where those are. */
void report_end(FILE *out, const struct run_record *run, enum report_lines lines);

/* A run whose directory was removed while it went on, and of which nobody is left to write the end.
 */
void report_gone(FILE *out, const struct rundir *rundir);

/* What belongs to a failure besides its sentence: the hint, the last lines of the first failing
 * task, who was stopped or not started because of it, where the logs are. */
void report_failure(FILE *out, const struct run_record *run, enum report_lines lines);

/* "3.2s", "2m05s", "1h20m". */
struct duration_text {
    char text[24];
};
struct duration_text duration_text(double seconds);

/* Appends "exited with code 3", "was ended by signal 9 (SIGKILL)" or the like; nothing while it
 * lives. */
void describe_end(const struct task_record *task, char *out, size_t size);

/* The time `seconds` after an ISO 8601 one, to milliseconds; "?" and null where that is none. What
 * happens in a run is told by its start and what has passed since, so that no end is before its
 * start. */
struct time_text time_after(const char *start, double seconds);
void json_time_after(struct json *json, const char *start, double seconds);

void write_run_json(struct json *json, const struct run_record *run);

#endif
