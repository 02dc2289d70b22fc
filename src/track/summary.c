/* SPDX-License-Identifier: Apache-2.0 */
#include "track/summary.h"

#include <math.h>

/* The mean of what may add up to more than a double holds: each is divided first. */
static double careful_mean(const struct point *points, size_t n, uint64_t n_values) {
    double mean = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(points[i].value))
            mean += points[i].value / (double)n_values;
    return mean;
}

/* Rounding may carry a mean past the values it is of, near the largest double to infinity. */
static void keep_mean_inside(struct summary *s) {
    if (s->mean > s->max)
        s->mean = s->max;
    if (s->mean < s->min)
        s->mean = s->min;
}

static void summarize_values(struct summary *out, const struct point *points, size_t n) {
    double min = INFINITY, max = -INFINITY, sum = 0;
    uint64_t nans = 0;

    for (size_t i = 0; i < n; i++) {
        const double value = points[i].value;

        if (isnan(value)) {
            nans++;
            continue;
        }
        min = value < min ? value : min;
        max = value > max ? value : max;
        sum += value;
    }
    out->nans = nans;
    out->last = points[n - 1].value;
    if (nans == n) {
        out->min = out->max = out->mean = NAN;
        return;
    }
    out->min = min;
    out->max = max;
    out->mean = isfinite(sum) ? sum / (double)(n - nans) : careful_mean(points, n, n - nans);
    keep_mean_inside(out);
}

struct summary summary_of(const struct point *points, size_t n) {
    struct summary out = { .count = n };

    if (n == 0)
        return out;
    summarize_values(&out, points, n);
    out.first_step = out.min_step = out.max_step = points[0].step;
    out.first_time_us = out.min_time_us = out.max_time_us = points[0].time_us;
    out.last_step = points[n - 1].step;
    out.last_time_us = points[n - 1].time_us;
    for (size_t i = 1; i < n; i++) {
        const int64_t step = points[i].step, time_us = points[i].time_us;

        out.min_step = step < out.min_step ? step : out.min_step;
        out.max_step = step > out.max_step ? step : out.max_step;
        out.min_time_us = time_us < out.min_time_us ? time_us : out.min_time_us;
        out.max_time_us = time_us > out.max_time_us ? time_us : out.max_time_us;
    }
    return out;
}

static void append_values(struct summary *summary, const struct summary *next) {
    const double a = (double)(summary->count - summary->nans);
    const double b = (double)(next->count - next->nans);

    summary->last = next->last;
    if (b == 0)
        return;
    if (a == 0) {
        summary->min = next->min;
        summary->max = next->max;
        summary->mean = next->mean;
        return;
    }
    summary->min = next->min < summary->min ? next->min : summary->min;
    summary->max = next->max > summary->max ? next->max : summary->max;
    /* Weights first: neither a sum nor a difference may overflow on the way. */
    summary->mean = summary->mean * (a / (a + b)) + next->mean * (b / (a + b));
    keep_mean_inside(summary);
}

void summary_append(struct summary *summary, const struct summary *next) {
    if (next->count == 0)
        return;
    if (summary->count == 0) {
        *summary = *next;
        return;
    }
    append_values(summary, next);
    summary->count += next->count;
    summary->nans += next->nans;
    summary->last_step = next->last_step;
    summary->last_time_us = next->last_time_us;
    if (next->min_step < summary->min_step)
        summary->min_step = next->min_step;
    if (next->max_step > summary->max_step)
        summary->max_step = next->max_step;
    if (next->min_time_us < summary->min_time_us)
        summary->min_time_us = next->min_time_us;
    if (next->max_time_us > summary->max_time_us)
        summary->max_time_us = next->max_time_us;
}

enum { VALUES_ARE_FLOATS = 1, STEPS_ASCEND = 2, TIMES_ASCEND = 4, HAS_NANS = 8, FLAGS_ALL = 15 };

static bool is_float(double value) {
    return isnan(value) || (double)(float)value == value;
}

static void put_value(struct bytes *out, double value, unsigned flags) {
    float narrow = (float)value;
    uint32_t bits;

    if (!(flags & VALUES_ARE_FLOATS)) {
        bytes_double(out, value);
        return;
    }
    memcpy(&bits, &narrow, sizeof bits);
    bytes_u32(out, bits);
}

static double take_value(struct cursor *in, unsigned flags) {
    uint32_t bits;
    float narrow;

    if (!(flags & VALUES_ARE_FLOATS))
        return cursor_double(in);
    bits = cursor_u32(in);
    memcpy(&narrow, &bits, sizeof narrow);
    return (double)narrow;
}

void summary_put(const struct summary *s, struct summary_origin origin, struct bytes *out) {
    unsigned flags = 0;

    if (is_float(s->min) && is_float(s->max) && is_float(s->last))
        flags |= VALUES_ARE_FLOATS;
    if (s->min_step == s->first_step && s->max_step == s->last_step)
        flags |= STEPS_ASCEND;
    if (s->min_time_us == s->first_time_us && s->max_time_us == s->last_time_us)
        flags |= TIMES_ASCEND;
    if (s->nans)
        flags |= HAS_NANS;
    bytes_u8(out, flags);
    if (flags & HAS_NANS)
        bytes_varint(out, s->nans);
    put_value(out, s->min, flags);
    put_value(out, s->max, flags);
    put_value(out, s->last, flags);
    bytes_double(out, s->mean);
    bytes_zigzag(out, wrapping_sub(s->first_step, origin.step));
    bytes_zigzag(out, wrapping_sub(s->last_step, s->first_step));
    if (!(flags & STEPS_ASCEND)) {
        bytes_zigzag(out, wrapping_sub(s->min_step, s->first_step));
        bytes_zigzag(out, wrapping_sub(s->max_step, s->first_step));
    }
    bytes_zigzag(out, wrapping_sub(s->first_time_us, origin.time_us));
    bytes_zigzag(out, wrapping_sub(s->last_time_us, s->first_time_us));
    if (!(flags & TIMES_ASCEND)) {
        bytes_zigzag(out, wrapping_sub(s->min_time_us, s->first_time_us));
        bytes_zigzag(out, wrapping_sub(s->max_time_us, s->first_time_us));
    }
}

bool summary_take(struct cursor *in, uint64_t count, struct summary_origin origin,
                  struct summary *out) {
    const unsigned flags = cursor_u8(in);
    struct summary s = { .count = count };

    if (flags & HAS_NANS)
        s.nans = cursor_varint(in);
    s.min = take_value(in, flags);
    s.max = take_value(in, flags);
    s.last = take_value(in, flags);
    s.mean = cursor_double(in);
    s.first_step = s.min_step = wrapping_add(origin.step, cursor_zigzag(in));
    s.last_step = s.max_step = wrapping_add(s.first_step, cursor_zigzag(in));
    if (!(flags & STEPS_ASCEND)) {
        s.min_step = wrapping_add(s.first_step, cursor_zigzag(in));
        s.max_step = wrapping_add(s.first_step, cursor_zigzag(in));
    }
    s.first_time_us = s.min_time_us = wrapping_add(origin.time_us, cursor_zigzag(in));
    s.last_time_us = s.max_time_us = wrapping_add(s.first_time_us, cursor_zigzag(in));
    if (!(flags & TIMES_ASCEND)) {
        s.min_time_us = wrapping_add(s.first_time_us, cursor_zigzag(in));
        s.max_time_us = wrapping_add(s.first_time_us, cursor_zigzag(in));
    }
    if (in->is_bad || !summary_is_sane(&s))
        return false;
    *out = s;
    return true;
}

bool summary_is_sane(const struct summary *s) {
    return s->count > 0 && s->nans <= s->count && s->min_step <= s->max_step &&
           s->min_time_us <= s->max_time_us &&
           (s->nans == s->count || (s->min <= s->max && !isnan(s->min)));
}
