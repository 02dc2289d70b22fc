/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program as a whole: what its parts may ask of each other.
 *
 *   WAITING ── shim_start ──► RUNNING ── nothing of the task is left ──► LINGERING ──► LEAVING
 *      └──────────── shim_refuse ──────────────────────────────────────────►┘ /end, or time
 */
#ifndef SHIM_SHIM_H
#define SHIM_SHIM_H

#include "shim/ending.h"
#include "shim/log.h"
#include "shim/loop.h"
#include "shim/server.h"
#include "shim/settings.h"
#include "shim/stream.h"
#include "shim/task.h"

struct gang;

enum shim_phase { SHIM_WAITING, SHIM_RUNNING, SHIM_LINGERING, SHIM_LEAVING };

struct shim {
    struct settings settings;
    struct loop loop;
    struct task task;
    struct log log;
    struct acks acks;
    struct spool spool;
    struct stream stream;
    struct server server;
    struct gang *member; /* what it has to do with the others; NULL: nothing yet */
    char **command;
    enum shim_phase phase;
    const char *refused, *gave_up;

    struct loop_watch signals;
    struct loop_timer last_resort; /* SIGKILL for a task that was given up */
    struct loop_timer gang;        /* the next line to those that ask for it */
    struct loop_timer linger;
    struct loop_timer leave;
    int64_t leaving_ms;
    int64_t farewell_ms; /* that others of the gang need us for, after a good end */
    uint64_t unsent;     /* by the last count */
    bool is_released;    /* nothing more is asked for */
    char message[ENDING_MAX];
};

/* Starts the command, or says why that cannot be. Once. */
void shim_start(struct shim *shim);

/* The command is not started at all; the text, which stays the caller's, is the cause. */
void shim_refuse(struct shim *shim, const char *cause);

/* Ends the task, which has a moment to obey; the text, which stays the caller's, says why. */
void shim_give_up(struct shim *shim, const char *why);

/* A signal that somebody sends to the task. Before the start one that would end it means that it is
 * not started. */
void shim_signal(struct shim *shim, int number);

/* Somebody has all that he wants: the shim ends. */
void shim_release(struct shim *shim);

/* Tells the gang whether the task runs: one that has just asked, or all where it is NULL. A line to
 * all for each that comes would be the square of their number. */
void shim_tell_gang(struct shim *shim, struct connection *newcomer);

/* Whether a supervisor is there: a stream is open. */
bool shim_is_watched(const struct shim *shim);

#endif
