/* SPDX-License-Identifier: Apache-2.0 */
#include "store/host.h"

#include <stdio.h>
#include <string.h>
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
