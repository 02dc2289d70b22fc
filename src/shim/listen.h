/* SPDX-License-Identifier: Apache-2.0 */
/* A port of the pod that others may connect to. */
#ifndef SHIM_LISTEN_H
#define SHIM_LISTEN_H

#include <stdint.h>

/* A socket that listens on every address and does not block; -1 and errno. */
int listen_at(uint16_t port);

#endif
