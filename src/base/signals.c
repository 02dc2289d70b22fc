/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signals.h"

#include <stdio.h>
#include <string.h>

struct signal_text signal_name(int number) {
    const char *name = sigabbrev_np(number);
    struct signal_text out = { "" };

    if (name)
        snprintf(out.text, sizeof out.text, "SIG%s", name);
    return out;
}

struct signal_text signal_text(int number) {
    const char *name = sigabbrev_np(number);
    struct signal_text out;

    if (name)
        snprintf(out.text, sizeof out.text, "signal %d (SIG%s)", number, name);
    else
        snprintf(out.text, sizeof out.text, "signal %d", number);
    return out;
}
