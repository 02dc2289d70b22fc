/* SPDX-License-Identifier: Apache-2.0 */
#include "base/descriptors.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { DESCRIPTORS_MOST = 64 };

static int say_missing(unsigned n, int errnum, struct error *err) {
    struct rlimit limit;

    if (errnum != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return error_set_errno(err, errnum, "cannot open %u more files", n);
    return error_set(err, ERROR_EXHAUSTED,
                     "too many open files: %u more are needed, and the limit is %llu (raise it "
                     "with 'ulimit -n')",
                     n, (unsigned long long)limit.rlim_cur);
}

int descriptors_check(unsigned n, struct error *err) {
    int open_ones[DESCRIPTORS_MOST], errnum = 0;
    unsigned n_open = 0;

    assert(n <= DESCRIPTORS_MOST);
    /* Opened and not copied: a copy would not notice that the whole system has no file left. */
    while (n_open < n && errnum == 0) {
        const int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0)
            open_ones[n_open++] = fd;
        else
            errnum = errno;
    }
    for (unsigned i = 0; i < n_open; i++)
        close(open_ones[i]);
    return errnum ? say_missing(n, errnum, err) : 0;
}
