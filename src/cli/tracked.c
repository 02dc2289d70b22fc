/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tracked.h"

#include <inttypes.h>
#include <string.h>

#include "cli/curves.h"
#include "cli/metric_rows.h"
#include "cli/runs.h"
#include "codec/json_read.h"
#include "track/spool.h"

enum { LINE_MOST = 4096, VALUES_SHOWN = 32 };

struct last_values last_values_read(const struct rundir *rundir, struct arena *arena) {
    const struct curves_wish wish = { .rank = CURVES_ANY, .attempt = CURVES_ANY };
    struct series_reader *reader;
    struct last_values values;
    struct curves curves;
    struct error err;

    if (series_reader_open(rundir->series, &reader, &err))
        return (struct last_values){ 0 };
    curves_select(&curves, reader, &wish);
    values = (struct last_values){ ARENA_ARRAY(arena, struct last_value, curves.metrics.len + 1),
                                   curves.metrics.len };
    for (size_t i = 0; i < values.n; i++) {
        const struct metric *metric = &curves.metrics.items[i];
        const struct summary all = curve_summary(&curves, &curves.list.items[metric->first]);

        values.list[i] =
            (struct last_value){ .name = arena_text(arena, metric->name, strlen(metric->name)),
                                 .step = all.last_step,
                                 .value = all.last };
    }
    curves_release(&curves);
    series_reader_free(reader);
    return values;
}

const char *last_values_text(const struct last_values *values, size_t most, struct arena *arena) {
    AUTO(buf) text = BUF_INIT(LINE_MOST);
    struct error err;

    for (size_t i = 0; i < values->n && i < most; i++)
        if (buf_printf(&text, &err, "%s%s=%s", i ? " " : "",
                       runs_text(arena, values->list[i].name, 0),
                       plot_number(values->list[i].value).text))
            break;
    return text.len ? arena_text(arena, text.data, text.len) : "";
}

const char *tracked_text(const struct tracked *tracked, struct arena *arena) {
    AUTO(buf) text = BUF_INIT(LINE_MOST);
    struct error err;

    for (size_t i = 0; i < tracked->n && i < VALUES_SHOWN; i++)
        if (buf_printf(&text, &err, "%s%s=%s", i ? " " : "",
                       runs_text(arena, tracked->values[i].key, 0),
                       runs_text(arena, tracked->values[i].json, 80)))
            break;
    if (tracked->n > VALUES_SHOWN &&
        buf_printf(&text, &err, " and %zu more", tracked->n - VALUES_SHOWN))
        return "…";
    return text.len ? arena_text(arena, text.data, text.len) : "";
}

static void json_parsed(struct json *json, const char *text) {
    AUTO(arena) arena = ARENA_INIT;
    struct node node;
    struct error err;

    if (json_read(text, strlen(text), &arena, &node, &err))
        json_null(json);
    else
        json_node(json, &node);
}

static void json_optional(struct json *json, const char *key, const char *text) {
    json_key(json, key);
    json_text(json, text);
}

void json_artifact(struct json *json, const struct artifact *artifact) {
    json_object(json);
    json_optional(json, "name", artifact->name);
    json_optional(json, "type", artifact->type);
    json_optional(json, "path", artifact->path);
    json_key(json, "size");
    json_int(json, (int64_t)artifact->size);
    json_key(json, "files");
    json_int(json, (int64_t)artifact->files);
    json_optional(json, "sha256", artifact->sha256);
    json_key(json, "version");
    if (artifact->version > 0)
        json_int(json, artifact->version);
    else
        json_null(json);
    json_optional(json, "problem", artifact->problem);
    json_key(json, "metadata");
    json_node(json, artifact->metadata);
    json_end(json);
}

static void json_artifacts(struct json *json, const struct run_record *run) {
    AUTO(arena) arena = ARENA_INIT;
    const struct artifacts artifacts = artifacts_read(run, &arena);

    json_array(json);
    for (size_t i = 0; i < artifacts.n; i++)
        json_artifact(json, &artifacts.list[i]);
    json_end(json);
}

const char *artifacts_text(const struct run_record *run, struct arena *arena) {
    const struct artifacts artifacts = artifacts_read(run, arena);
    AUTO(buf) text = BUF_INIT(LINE_MOST);
    struct error err;

    for (size_t i = 0; i < artifacts.n && i < VALUES_SHOWN; i++) {
        const struct artifact *artifact = &artifacts.list[i];

        if (buf_printf(&text, &err, "%s%s", i ? " " : "", runs_text(arena, artifact->name, 80)) ||
            (artifact->version > 0 && buf_printf(&text, &err, ":%" PRId64, artifact->version)))
            break;
    }
    return text.len ? arena_text(arena, text.data, text.len) : "";
}

void json_tracked(struct json *json, const struct run_record *run) {
    for (int kind = 0; kind < TRACKED_ARTIFACTS; kind++) {
        const struct tracked *tracked = &run->tracked[kind];

        json_key(json, tracked_kind_name(kind));
        json_object(json);
        for (size_t i = 0; i < tracked->n; i++) {
            json_key(json, tracked->values[i].key);
            json_parsed(json, tracked->values[i].json);
        }
        json_end(json);
    }
    json_key(json, tracked_kind_name(TRACKED_ARTIFACTS));
    json_artifacts(json, run);
}

void json_metric_values(struct json *json, const struct last_values *values) {
    json_key(json, "metrics");
    json_array(json);
    for (size_t i = 0; i < values->n; i++) {
        json_object(json);
        json_key(json, "name");
        json_text(json, values->list[i].name);
        json_value(json, "last", values->list[i].value);
        json_key(json, "last_step");
        json_int(json, values->list[i].step);
        json_end(json);
    }
    json_end(json);
}

void json_last_values(struct json *json, const struct rundir *rundir) {
    AUTO(arena) arena = ARENA_INIT;
    const struct last_values values = last_values_read(rundir, &arena);

    json_metric_values(json, &values);
}

/* ---- what is not kept ---- */

static const char *add_loss(struct arena *arena, const char *text, const char *loss) {
    return arena_printf(arena, "%s%s%s", text, *text ? "; " : "", loss);
}

const char *losses_text(const struct losses *losses, struct arena *arena) {
    const struct {
        uint64_t n;
        const char *one, *many;
    } rows[] = {
        { losses->dropped,
          "1 point that tasks logged was dropped (no room on the disk, or not a number)",
          "points that tasks logged were dropped (no room on the disk, or not a number)" },
        { losses->refused, "1 point of more metrics than a run keeps",
          "points of more metrics than a run keeps" },
        { losses->lost, "1 segment of the spool was removed before it was read",
          "segments of the spool were removed before they were read" },
        { losses->damaged, "1 damaged segment is kept in the spool",
          "damaged segments are kept in the spool" },
        { losses->waiting, "1 segment waits in the spool until there is room",
          "segments wait in the spool until there is room" },
    };
    const char *text = "";

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].n > 0)
            text = add_loss(arena, text,
                            rows[i].n == 1
                                ? rows[i].one
                                : arena_printf(arena, "%" PRIu64 " %s", rows[i].n, rows[i].many));
    if (losses->others > 0)
        text = add_loss(
            arena, text,
            arena_printf(
                arena,
                "%" PRIu64 " segment%s of version %" PRIu64 " %s kept in the spool, unread: "
                "this myelin reads version %d; look at the run with one that reads "
                "version %" PRIu64,
                losses->others, losses->others == 1 ? "" : "s", losses->version,
                losses->others == 1 ? "is" : "are", MYELIN_SPOOL_VERSION, losses->version));
    return text;
}

void json_losses(struct json *json, const struct losses *losses) {
    const struct {
        const char *key;
        uint64_t n;
    } rows[] = {
        { "dropped", losses->dropped },          { "refused", losses->refused },
        { "lost_segments", losses->lost },       { "damaged_segments", losses->damaged },
        { "waiting_segments", losses->waiting }, { "unread_segments", losses->others },
    };

    json_key(json, "not_kept");
    json_object(json);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_key(json, rows[i].key);
        json_int(json, (int64_t)rows[i].n);
    }
    json_key(json, "unread_version");
    if (losses->others > 0)
        json_int(json, (int64_t)losses->version);
    else
        json_null(json);
    json_end(json);
}
