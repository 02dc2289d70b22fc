/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a task failed, in one sentence, from how it ended and the last that it wrote. Pure: no clock,
 * no files.
 *
 *   struct diagnosis why;
 *   diagnose("worker.2", &end, output, n, OUTPUT_WHOLE, &why);
 *   why.sentence   worker.2 raised ValueError: shapes do not match (train.py, line 41, in step)
 *   why.hint       "" or how to mend it, where something honest can be said
 *
 * What is looked for, in this order: that it could not be started; that the kernel killed it for
 * its memory limit; a Python exception that ended
 * it; a line that symptom.h knows; then the exit code or signal alone. docs/failures.md is the page
 * for users.
 *
 * Invariants, for any input:
 *   1. The texts end with a NUL, are printable UTF-8 on one line, and are cut with "…" at the size
 *      of their arrays.
 *   2. The sentence is never empty and names the task.
 *   3. The same input gives the same diagnosis.
 */
#ifndef SUPERVISE_DIAGNOSIS_H
#define SUPERVISE_DIAGNOSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"

enum diagnosis_kind {
    DIAGNOSIS_EXIT_CODE, /* nothing but the code is known */
    DIAGNOSIS_SIGNAL,
    DIAGNOSIS_NOT_STARTED,
    DIAGNOSIS_LOST,      /* with its pod or its node */
    DIAGNOSIS_NOT_FOUND, /* the program or the script */
    DIAGNOSIS_NOT_EXECUTABLE,
    DIAGNOSIS_NO_INTERPRETER,
    DIAGNOSIS_NO_LIBRARY, /* a shared library */
    DIAGNOSIS_USAGE,      /* the program refused its arguments */
    DIAGNOSIS_PYTHON_EXCEPTION,
    DIAGNOSIS_PYTHON_MODULE, /* is missing */
    DIAGNOSIS_PYTHON_SYNTAX,
    DIAGNOSIS_OUT_OF_MEMORY,
    DIAGNOSIS_DISK_FULL,
    DIAGNOSIS_ADDRESS_IN_USE,
    DIAGNOSIS_UNREACHABLE, /* a peer or the rendezvous was not reached */
    DIAGNOSIS_PEER_LOST,   /* a peer was reached, and went away */
    DIAGNOSIS_COLLECTIVE,  /* NCCL, Gloo: any other failure of theirs */
    DIAGNOSIS_GPU,
    DIAGNOSIS_ASSERTION,
    DIAGNOSIS_ABORT, /* a C++ exception that nobody caught, a broken heap */
    DIAGNOSIS_SEGMENTATION_FAULT,
    DIAGNOSIS_KIND_COUNT,
};
/* "python_exception": for JSON. */
const char *diagnosis_kind_name(enum diagnosis_kind kind);

/* How much the failure points at another task. */
enum diagnosis_blame {
    BLAMES_NOBODY,
    BLAMES_ABSENT, /* it waited for someone who never came: perhaps it is the one that is wrong */
    BLAMES_LOST,   /* someone whom it had met went away */
};

enum {
    DIAGNOSIS_SENTENCE_MOST = 640,
    DIAGNOSIS_HINT_MOST = 256,
    DIAGNOSIS_FILE_MOST = 256,
    DIAGNOSIS_FUNCTION_MOST = 96,
    DIAGNOSIS_PROGRAM_MOST = 64,
};

struct diagnosis_place {
    char file[DIAGNOSIS_FILE_MOST];         /* as the program named it */
    char function[DIAGNOSIS_FUNCTION_MOST]; /* "": not within one */
    uint32_t line;                          /* 0: the place is not known */
};

struct diagnosis {
    enum diagnosis_kind kind;
    enum diagnosis_blame blame;
    bool failed;                   /* it did anything but exit 0 */
    struct diagnosis_place place;  /* in the user's own code where there is any */
    struct diagnosis_place raised; /* where a library raised it; line 0 if `place` is where */
    char sentence[DIAGNOSIS_SENTENCE_MOST];
    char hint[DIAGNOSIS_HINT_MOST];
    char
        program[DIAGNOSIS_PROGRAM_MOST]; /* of NOT_FOUND: the name that PATH lacks; "": not known */
};

/* Whether all that a task wrote was kept, as far as its log goes back. */
enum output_extent { OUTPUT_WHOLE, OUTPUT_LOST };

/* `output` is the last that the task wrote, of which DIAGNOSIS looks at 64 KiB at most; it may be
 * cut anywhere. `task` is how the sentence names it. */
void diagnose(const char *task, const struct task_end *end, const char *output, size_t n,
              enum output_extent extent, struct diagnosis *out);

/* Is `suspect` rather a consequence of `culprit` than the other way round? So when a task that lost
 * its peer is reaped before the peer that broke. It never holds both ways, and never of a task that
 * blames nobody.
 *
 * The caller compares tasks that ended by themselves within a short time: one that died of a signal
 * which the supervisor sent is no culprit. */
bool diagnosis_is_echo(const struct diagnosis *culprit, const struct diagnosis *suspect);

#endif
