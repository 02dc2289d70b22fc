/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a shim has to do with the other pods of its gang: it waits for their names before it starts
 * the command, serves Horovod's rendezvous where it is told to, and ends the task when there is
 * neither a leader nor a supervisor any more.
 */
#ifndef SHIM_GANG_H
#define SHIM_GANG_H

#include "shim/leader.h"
#include "shim/names.h"
#include "shim/shim.h"

struct gang {
    struct shim *shim;
    struct names names;
    struct leader leader;
    struct vigil_limits limits;
    char cause[NAMES_MOST + 96];
};

/* Does all of that, from the environment: shim_start follows, or shim_refuse. */
void gang_begin(struct gang *gang, struct shim *shim);

/* The task has ended, or will not start: neither a name nor the leader matters any more. The
 * rendezvous goes on. Takes NULL. */
void gang_end(struct gang *gang);

#endif
