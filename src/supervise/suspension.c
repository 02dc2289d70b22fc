/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/suspension.h"

bool suspension_seen(struct suspension *suspension, int64_t now_us) {
    const bool is_first = suspension->seen_us == 0 ||
                          now_us - suspension->seen_us > (int64_t)SUSPENSION_GAP_MS * 1000;

    if (is_first)
        suspension->since_us = now_us;
    suspension->seen_us = now_us;
    return now_us - suspension->since_us >= (int64_t)SUSPENSION_PATIENCE_MS * 1000;
}
