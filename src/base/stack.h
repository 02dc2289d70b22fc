/* SPDX-License-Identifier: Apache-2.0 */
/* Room for the stack. The kernel lets it grow when it is used, and sends SIGSEGV if there is no
 * memory then (ulimit -v, for example): no function can answer that with a sentence. So the room is
 * taken before anything begins. */
#ifndef BASE_STACK_H
#define BASE_STACK_H

#include <stdbool.h>

/* Takes address space for the stack of this process and of its children; memory only when it is
 * used. False: there is not enough address space. */
bool stack_reserve(void);

#endif
