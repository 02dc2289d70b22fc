/* SPDX-License-Identifier: Apache-2.0 */
/* One logged value. */
#ifndef TRACK_POINT_H
#define TRACK_POINT_H

#include <stdint.h>

struct point {
    int64_t step;
    int64_t time_us; /* since 1970 */
    double value;
};

#endif
