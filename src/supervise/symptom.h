/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts by which known failures are recognised, as rows of one table. Pure.
 *
 * To add one: a row in symptom.c at the place of its kind, and a row of the test
 * (tests/unit/test_diagnosis.c) with a line as a program really prints it. Rows are tried from the
 * top, so what is more telling stands above what is more general.
 */
#ifndef SUPERVISE_SYMPTOM_H
#define SUPERVISE_SYMPTOM_H

#include "supervise/diagnosis.h"
#include "supervise/transcript.h"

struct symptom {
    enum diagnosis_kind kind;
    enum diagnosis_blame blame;
    const char *text;   /* what the line holds */
    const char *also;   /* and this too, or NULL */
    const char *phrase; /* "worker.2 <phrase>: <the line>" */
    const char *hint;   /* how to mend it, or NULL */
    int code;           /* only with this exit code; 0: with any end */
};

/* The first row that the line of a task with this exit code (0: it has none) fits, or NULL. */
const struct symptom *symptom_find(struct slice line, int code);

/* The hint for the line that fits the row; "" if there is none. */
void symptom_hint(const struct symptom *symptom, struct slice line, char *out, size_t size);

/* Every row, for those who show or test them. */
const struct symptom *symptom_at(size_t i); /* NULL past the last */

#endif
