/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Horovod's meeting place for the pods of a gang: shim/meeting.h, which says what is answered,
 * served on every address of the master's pod. Ranks ask with a connection for each request; it
 * stays for those that are done later than the master.
 *
 * Whoever reaches the pod may ask: Horovod's client sends no key. What anybody can do to the memory
 * of the shim is bounded by the number of connections and the limits of the store.
 */
#ifndef SHIM_RENDEZVOUS_H
#define SHIM_RENDEZVOUS_H

#include "shim/loop.h"

/* Serves it from now on, to the end of the program. Returns 0, or -1 and errno. */
int rendezvous_serve(struct loop *loop, uint16_t port, uint32_t n_tasks);

#endif
