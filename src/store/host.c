/* SPDX-License-Identifier: Apache-2.0 */
#include "store/host.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"

const char *host_name(char out[HOST_TEXT]) {
    if (gethostname(out, HOST_TEXT) < 0)
        snprintf(out, HOST_TEXT, "unknown");
    out[HOST_TEXT - 1] = '\0';
    return out;
}

const char *boot_id(char out[BOOT_TEXT]) {
    AUTO(buf) text = BUF_INIT(BOOT_TEXT);
    struct error err;

    snprintf(out, BOOT_TEXT, "unknown");
    if (file_read("/proc/sys/kernel/random/boot_id", &text, &err) == 0)
        snprintf(out, BOOT_TEXT, "%.*s", (int)strcspn(text.data, "\n"), text.data);
    return out;
}

/* Its name tells the version (python3.11), its place which installation it is. */
static void find_python(char out[PYTHON_TEXT]) {
    const char *path = getenv("PATH");

    out[0] = '\0';
    while (path && *path) {
        const size_t n = strcspn(path, ":");
        char file[PATH_MAX], real[PATH_MAX];

        if (snprintf(file, sizeof file, "%.*s/python3", (int)n, path) < (int)sizeof file &&
            access(file, X_OK) == 0 && realpath(file, real)) {
            snprintf(out, PYTHON_TEXT, "%.*s", PYTHON_TEXT - 1, real);
            return;
        }
        path += n + (path[n] == ':');
    }
}

void host_look(struct host_facts *out) {
    struct utsname name;
    cpu_set_t cpus;

    snprintf(out->kernel, sizeof out->kernel, "%s", uname(&name) == 0 ? name.release : "unknown");
    out->cpus = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
    find_python(out->python);
}
