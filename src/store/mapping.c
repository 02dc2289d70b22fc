/* SPDX-License-Identifier: Apache-2.0 */
#include "store/mapping.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/attr.h"

/* One for each 32 KiB of a -shm, of which a ledger rarely has more than one. What has no place here
 * is as without this file. */
static struct mapping {
    char *volatile start;
    volatile size_t n;
} mappings[256];

static volatile sig_atomic_t n_losses;
static uintptr_t page_size;

static bool is_ours(const char *address) {
    for (size_t i = 0; i < ARRAY_LEN(mappings); i++) {
        const char *start = mappings[i].start;

        if (start && address >= start && address < start + mappings[i].n)
            return true;
    }
    return false;
}

/* Only calls what may be called at any moment: mmap and sigaction are system calls. */
static void on_bus_error(int number, siginfo_t *info, void *context) {
    const struct sigaction usual = { .sa_handler = SIG_DFL };
    char *page = (char *)info->si_addr - (uintptr_t)info->si_addr % page_size;

    (void)context;
    if (info->si_code > 0 && is_ours(info->si_addr) &&
        mmap(page, page_size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
             0) != MAP_FAILED) {
        n_losses = n_losses + 1;
        return;
    }
    sigaction(number, &usual, NULL); /* the same access fails again, and ends us */
}

static void handle_bus_errors(void) {
    struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };

    if (page_size > 0)
        return;
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, &action, NULL);
}

void *mapping_make(void *address, size_t n, int protection, int flags, int fd, off_t offset) {
    void *made = mmap(address, n, protection, flags, fd, offset);

    handle_bus_errors();
    for (size_t i = 0; made != MAP_FAILED && i < ARRAY_LEN(mappings); i++)
        if (!mappings[i].start) {
            mappings[i].n = n;
            mappings[i].start = made;
            break;
        }
    return made;
}

int mapping_drop(void *address, size_t n) {
    for (size_t i = 0; i < ARRAY_LEN(mappings); i++)
        if (mappings[i].start == address)
            mappings[i].start = NULL;
    return munmap(address, n);
}

unsigned mapping_losses(void) {
    return (unsigned)n_losses;
}
