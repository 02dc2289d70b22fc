/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows what the tasks of a run write as it comes: whole lines, each behind the padded name
 * of its task, coloured on a terminal.
 *
 * On a terminal the lines are made harmless, what several tasks say alike is folded into one
 * line (fold_lines.h), and a status line can stand below, with what a task has begun to write and
 * not ended: of progress bars the newest, at most once a second; elsewhere lines are passed on byte
 * for byte, or as JSON. A reader that is slow slows only this: the run goes on, and its logs are
 * whole. A reader that goes away is no failure; a disk that is full is.
 */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include <stdio.h>

#include "base/clock.h"
#include "cli/fold_lines.h"
#include "cli/lines.h"
#include "cli/statusline.h"
#include "model/plan.h"

enum follow_style {
    FOLLOW_AS_IT_IS, /* as the output takes it */
    FOLLOW_PLAIN,    /* as to a pipe, even on a terminal, except that lines cannot control it */
    FOLLOW_JSON,     /* one object a line, as docs/json.md has them */
};

struct follow_options {
    FILE *out;
    enum follow_style style;
    bool is_bare;    /* of one task: no names */
    bool has_stamps; /* each line starts with its time */
    bool has_status; /* a status line, where it is a terminal */
};

enum { PREFIX_MOST = LINES_SLACK, STAMP_BYTES = 25, FOLLOW_PIECE_MOST = 256 * 1024 };

/* What is known of one task. */
struct followed {
    struct lines lines;
    int64_t stamp;     /* of the line that is not whole yet */
    size_t prefix_len; /* 0: not made yet */
    char prefix[PREFIX_MOST];
};

struct follow {
    const struct plan *plan;
    struct follow_options options;
    int fd;
    bool is_terminal, is_coloured;
    bool is_filtered; /* it ends on a terminal, which lines must not control, whatever the style */
    unsigned visible; /* flags of codec/visible.h for the tasks' lines */
    bool is_raw;      /* one task's bytes as they are */
    bool is_plain;    /* lines as they are, behind names */
    bool is_broken;   /* nothing more can be written: nobody reads any more, or `trouble` */
    int trouble;      /* why a write failed, where that is to be told; 0: it is not */
    int width;        /* of names */

    uint32_t attempt;  /* of the run: told with each line of JSON; set by who knows */
    uint32_t rank;     /* whose lines are being shown */
    int64_t stamp;     /* of the next line */
    int64_t new_stamp; /* of the lines behind it */
    int64_t now_us;
    struct followed *tasks;  /* by rank */
    struct fold_lines *fold; /* NULL: lines are not folded */
    struct statusline status;
    uint32_t unended_rank; /* whose line stands above the status */

    char *out; /* what is to be written */
    size_t len;
    struct buf harmless;
    int64_t told_stamp; /* that is in stamp_text */
    struct time_text stamp_text;
};

#define FOLLOW_NO_STAMP INT64_MIN

/* The plan is borrowed. */
void follow_init(struct follow *follow, const struct plan *plan,
                 const struct follow_options *options);
void follow_release(struct follow *follow);

/* At most FOLLOW_PIECE_MOST bytes. `stamp`: microseconds since 1970 when the bytes came, or
 * FOLLOW_NO_STAMP. `now_us`: of the clock by which lines are held for folding. */
void follow_output(struct follow *follow, uint32_t rank, int64_t stamp, int64_t now_us,
                   const char *bytes, size_t n);
/* So many bytes were lost here. */
void follow_lost(struct follow *follow, uint32_t rank, uint64_t lost);
/* The task is over: its last line may have no end. */
void follow_ended(struct follow *follow, uint32_t rank);

/* Another attempt of the task begins. */
void follow_goes_on(struct follow *follow, uint32_t rank);

/* Whether somebody still reads: also found out where nothing is written. */
bool follow_is_read(struct follow *follow);
/* Fails when lines could not be written for another reason than that nobody reads them. */
MUST_CHECK int follow_check(const struct follow *follow, struct error *err);

/* Lines that were held long enough are shown; what is shown reaches the reader. */
void follow_tick(struct follow *follow, int64_t now_us);
/* All that is held is shown. */
void follow_settle(struct follow *follow);
bool follow_holds(const struct follow *follow);

/* The status line with what is known now; and away, for who writes past us. */
void follow_show_status(struct follow *follow, const struct run_record *record, pid_t owner);
void follow_hide_status(struct follow *follow);

#endif
