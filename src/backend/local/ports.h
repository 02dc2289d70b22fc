/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP ports of this machine, leased so that two runs never get the same.
 *
 * Ports come in blocks of PORTS_BLOCK. A block is leased by binding the abstract unix
 * socket "@myelin-ports-<first port>": exclusive in the network namespace as the ports
 * are, and given back by the kernel when the process dies, without a file left anywhere.
 * A lease for each port would cost a descriptor a task, which every spawned child copies.
 *
 * The lease keeps other runs away, not strangers: each port is therefore probed, and
 * taken from outside the ephemeral range, where the kernel picks ports for outgoing
 * connections. When that range leaves nothing outside, ports come from inside it, and are counted:
 * a connection of anybody may take one before its task listens.
 */
#ifndef BACKEND_LOCAL_PORTS_H
#define BACKEND_LOCAL_PORTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

enum { PORTS_BLOCK = 16, PORTS_LOWEST = 10000 };

struct ports {
    VEC(uint16_t) list; /* the leased ports: list.items[0 .. list.len) */
    VEC(int) sockets;   /* what holds the blocks */
    size_t n_ephemeral; /* of the ports: inside the range that the kernel picks from */
};

/* Adds n free ports to the list. */
MUST_CHECK int ports_lease(struct ports *ports, size_t n, struct error *err);
void ports_release(struct ports *ports);

#endif
