/* SPDX-License-Identifier: Apache-2.0 */
#include "store/locks.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"

enum { LOCKS_MOST = 16 * 1024 * 1024, COMM_MOST = 64 };

/* "3: POSIX  ADVISORY  WRITE 4711 fe:00:262147 120 120"; waiters have "->" behind the number. */
pid_t locks_find(const char *text, dev_t device, ino_t inode) {
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        unsigned major_number, minor_number;
        unsigned long long number;
        char kind[16], manner[16];
        int pid;

        line += *line == '\n';
        if (sscanf(line, "%*d: %15s %*s %15s %d %x:%x:%llu", kind, manner, &pid, &major_number,
                   &minor_number, &number) == 6 &&
            strcmp(manner, "WRITE") == 0 && strcmp(kind, "FLOCK") != 0 && pid > 0 &&
            number == inode && major_number == major(device) && minor_number == minor(device))
            return pid;
    }
    return 0;
}

pid_t locks_writer(const char *path) {
    AUTO(buf) text = BUF_INIT(LOCKS_MOST);
    struct error ignored;
    struct stat st;
    pid_t pid;

    if (stat(path, &st) < 0 || file_read("/proc/locks", &text, &ignored) || text.len == 0)
        return 0;
    pid = locks_find(text.data, st.st_dev, st.st_ino);
    return pid == getpid() ? 0 : pid;
}

void locks_describe(pid_t pid, char *out, size_t size) {
    AUTO(buf) name = BUF_INIT(COMM_MOST);
    struct error ignored;
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    if (file_read(path, &name, &ignored) || name.len == 0)
        snprintf(out, size, "process %d", (int)pid);
    else
        snprintf(out, size, "process %d (%.*s)", (int)pid, (int)strcspn(name.data, "\n"),
                 name.data);
}
