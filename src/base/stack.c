/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stack.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* More than any command needs: its largest frame has 260 KiB (watch_run). */
enum { RESERVE_BYTES = 1 << 20 };

/* Whether the stack may be as large, and more: a smaller limit is the user's wish. */
static bool is_allowed(void) {
    struct rlimit limit;

    return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= 2 * (rlim_t)RESERVE_BYTES;
}

bool stack_reserve(void) {
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    void *room;

    if (!is_allowed())
        return true;
    /* A failure to grow would be a signal: first see whether there is as much address space. */
    room = mmap(NULL, RESERVE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return false;
    munmap(room, RESERVE_BYTES);
    (void)*(volatile const char *)(here - RESERVE_BYTES); /* the kernel maps all up to here */
    return true;
}
