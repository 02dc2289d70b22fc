/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Horovod's meeting place for the processes of this machine: shim/meeting.h, which says what is
 * answered, served on 127.0.0.1.
 */
#ifndef SUPERVISE_RENDEZVOUS_H
#define SUPERVISE_RENDEZVOUS_H

#include <stdint.h>

#include "base/error.h"
#include "shim/meeting.h"

struct event_base;
struct rendezvous;

MUST_CHECK int rendezvous_new(struct event_base *base, uint16_t port,
                              const struct meeting_limits *limits, struct rendezvous **out,
                              struct error *err);
void rendezvous_free(struct rendezvous *rendezvous);

#endif
