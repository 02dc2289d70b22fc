/* SPDX-License-Identifier: Apache-2.0 */
/* Who listens on this machine, from the kernel's own table (its listeners alone: all of its
 * connections take milliseconds to walk): a port that was used a moment ago
 * cannot be bound, though nobody is there any more, so binding would not tell. */
#ifndef BACKEND_LOCAL_LISTENERS_H
#define BACKEND_LOCAL_LISTENERS_H

#include <stddef.h>
#include <stdint.h>

/* How many of the ports have a TCP listener in this network namespace. */
size_t listeners_count(const uint16_t *ports, size_t n);

#endif
