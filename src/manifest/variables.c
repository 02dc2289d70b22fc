/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/variables.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define K MANIFEST_KUBEFLOW
#define N MANIFEST_NATIVE

static const char by_job[] = "the operator wires the pods that it makes";
static const char by_mpi[] = "mpirun starts the ranks, and Horovod asks MPI for its place";

const struct difference differences[] = {
    { "TF_CONFIG", K, FRAMEWORK_TENSORFLOW, DIFFERENCE_OPERATOR, NULL,
      "the operator wires the pods that it makes: names end in the namespace, `model_dir` is "
      "missing" },
    { "MASTER_ADDR", K, FRAMEWORK_PYTORCH, DIFFERENCE_OPERATOR, NULL, by_job },
    { "MASTER_PORT", K, FRAMEWORK_PYTORCH, DIFFERENCE_OPERATOR, NULL, by_job },
    { "RANK", K, FRAMEWORK_PYTORCH, DIFFERENCE_OPERATOR, NULL, by_job },
    { "WORLD_SIZE", K, FRAMEWORK_PYTORCH, DIFFERENCE_OPERATOR, NULL, by_job },
    { "PYTHONUNBUFFERED", K, FRAMEWORK_PYTORCH, DIFFERENCE_OPERATOR, NULL,
      "the operator gives it too, with the same value" },
    { "PET_*", K, FRAMEWORK_PYTORCH, DIFFERENCE_EXTRA, NULL,
      "the operator's options for torchrun" },
    { "DMLC_PS_ROOT_URI", K, FRAMEWORK_MXNET, DIFFERENCE_OPERATOR, NULL, by_job },
    { "DMLC_PS_ROOT_PORT", K, FRAMEWORK_MXNET, DIFFERENCE_OPERATOR, NULL, by_job },
    { "DMLC_NUM_WORKER", K, FRAMEWORK_MXNET, DIFFERENCE_OPERATOR, NULL, by_job },
    { "DMLC_NUM_SERVER", K, FRAMEWORK_MXNET, DIFFERENCE_OPERATOR, NULL, by_job },
    { "DMLC_ROLE", K, FRAMEWORK_MXNET, DIFFERENCE_OPERATOR, NULL, by_job },
    { "DMLC_WORKER_ID", K, FRAMEWORK_MXNET, DIFFERENCE_OPERATOR, NULL, by_job },
    { "DMLC_USE_KUBERNETES", K, FRAMEWORK_MXNET, DIFFERENCE_EXTRA, NULL,
      "the scheduler listens at all addresses, since its name is none" },
    { "MX_CONFIG", K, FRAMEWORK_MXNET, DIFFERENCE_EXTRA, NULL,
      "the operator's own account of the cluster" },
    { "DMLC_NODE_HOST", K, FRAMEWORK_MXNET, DIFFERENCE_ADDRESS, NULL,
      "MXNet binds to it, so it has to be an address and no name" },
    { "DMLC_NODE_HOST", N, FRAMEWORK_MXNET, DIFFERENCE_ADDRESS, NULL,
      "MXNet binds to it, so it has to be an address and no name" },
    { "DMLC_USE_KUBERNETES", N, FRAMEWORK_MXNET, DIFFERENCE_ADDED, "1",
      "the scheduler listens at all addresses, since its name is none" },
    { "HOROVOD_RANK", K, FRAMEWORK_HOROVOD, DIFFERENCE_MISSING, NULL, by_mpi },
    { "HOROVOD_SIZE", K, FRAMEWORK_HOROVOD, DIFFERENCE_MISSING, NULL, by_mpi },
    { "HOROVOD_LOCAL_RANK", K, FRAMEWORK_HOROVOD, DIFFERENCE_MISSING, NULL, by_mpi },
    { "HOROVOD_LOCAL_SIZE", K, FRAMEWORK_HOROVOD, DIFFERENCE_MISSING, NULL, by_mpi },
    { "HOROVOD_CROSS_RANK", K, FRAMEWORK_HOROVOD, DIFFERENCE_MISSING, NULL, by_mpi },
    { "HOROVOD_CROSS_SIZE", K, FRAMEWORK_HOROVOD, DIFFERENCE_MISSING, NULL, by_mpi },
    { "HOROVOD_HOSTNAME", K, FRAMEWORK_HOROVOD, DIFFERENCE_MISSING, NULL, by_mpi },
    { "HOROVOD_CONTROLLER", K, FRAMEWORK_HOROVOD, DIFFERENCE_MISSING, NULL, by_mpi },
    { "HOROVOD_CPU_OPERATIONS", K, FRAMEWORK_HOROVOD, DIFFERENCE_MISSING, NULL, by_mpi },
    { "HOROVOD_GLOO_RENDEZVOUS_ADDR", K, FRAMEWORK_HOROVOD, DIFFERENCE_MISSING, NULL, by_mpi },
    { "HOROVOD_GLOO_RENDEZVOUS_PORT", K, FRAMEWORK_HOROVOD, DIFFERENCE_MISSING, NULL, by_mpi },
    { "OMPI_*", K, FRAMEWORK_HOROVOD, DIFFERENCE_EXTRA, NULL,
      "what the operator tells mpirun, and mpirun its ranks" },
    { NULL },
};

#undef K
#undef N

const struct difference *difference_find(const char *name, enum framework framework,
                                         enum manifest_target target) {
    for (const struct difference *row = differences; row->name; row++)
        if (row->target == target && row->framework == framework && strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* ---- rules ---- */

/* The parts around the number in which two texts differ, and that number in the first. */
struct cut {
    size_t before, after; /* bytes that both share at their start and end */
    uint64_t number;
};

/* Finds the one number in which a and b differ, by one; digits that stand before or behind the
 * difference belong to it. */
static bool cut_number(const char *a, const char *b, struct cut *out) {
    size_t na = strlen(a), nb = strlen(b), least = na < nb ? na : nb, before = 0, after = 0;
    char digits[24];

    while (before < least && a[before] == b[before])
        before++;
    while (before > 0 && isdigit((unsigned char)a[before - 1]))
        before--;
    while (after < least - before && a[na - after - 1] == b[nb - after - 1])
        after++;
    while (after > 0 && isdigit((unsigned char)a[na - after]))
        after--;
    if (na - before - after == 0 || na - before - after >= sizeof digits - 2)
        return false;
    *out = (struct cut){ .before = before, .after = after };
    memcpy(digits, a + before, na - before - after);
    digits[na - before - after] = '\0';
    if (digits[strspn(digits, "0123456789")] != '\0' || (digits[0] == '0' && digits[1]))
        return false;
    out->number = strtoull(digits, NULL, 10);
    return out->number < UINT32_MAX;
}

const char *variable_value(const struct variable *variable, uint32_t index, struct arena *arena) {
    switch (variable->kind) {
    case VARIABLE_LITERAL: return variable->before;
    case VARIABLE_ADDRESS: return "<pod.address>";
    case VARIABLE_INDEXED:
    case VARIABLE_COUNTED: break;
    }
    return arena_printf(arena, "%s%" PRIu64 "%s", variable->before,
                        (uint64_t)index + variable->offset, variable->after);
}

/* The rule that gives `values` to the indexes. */
static int find_rule(struct variable *variable, const char *const *values, const uint32_t *indexes,
                     size_t n, struct arena *arena, struct error *err) {
    struct cut cut;
    bool same = true;

    variable->before = values[0];
    for (size_t i = 1; i < n; i++)
        same = same && strcmp(values[0], values[i]) == 0;
    if (same)
        return 0;
    if (cut_number(values[0], values[1], &cut)) {
        variable->kind = cut.number ? VARIABLE_COUNTED : VARIABLE_INDEXED;
        variable->offset = (uint32_t)cut.number;
        variable->before = arena_text(arena, values[0], cut.before);
        variable->after = values[0] + strlen(values[0]) - cut.after;
        for (size_t i = 0; i < n; i++)
            if (strcmp(variable_value(variable, indexes[i], arena), values[i]) != 0)
                break;
            else if (i == n - 1)
                return 0;
    }
    return error_set(err, ERROR_INVALID,
                     "%s differs from task to task in a way that one template cannot tell",
                     variable->name);
}

/* ---- the list ---- */

enum { SAMPLES = 3 };

struct samples {
    struct environment of[SAMPLES];
    uint32_t indexes[SAMPLES];
    size_t n;
};

static void samples_release(struct samples *samples) {
    for (size_t i = 0; i < samples->n; i++)
        environment_release(&samples->of[i]);
}

static int take_samples(const struct wiring *wiring, uint32_t first, uint32_t n,
                        struct samples *samples, struct error *err) {
    const uint32_t wanted[SAMPLES] = { 0, 1, n - 1 };

    for (size_t i = 0; i < SAMPLES && i < n; i++) {
        samples->indexes[i] = wanted[i];
        samples->n = i + 1;
        if (wiring_environment(wiring, first + wanted[i], &samples->of[i], err))
            return -1;
    }
    return 0;
}

/* The i-th variable of all samples: the contract gives the tasks of a role the same names. */
static int add_variable(struct variables *out, const struct samples *samples, size_t i,
                        enum framework framework, enum manifest_target target, struct arena *arena,
                        struct error *err) {
    const char *values[SAMPLES] = { 0 }, *item = samples->of[0].items[i];
    size_t name = strcspn(item, "=");
    struct variable variable = { .name = arena_text(arena, item, name), .after = "" };
    const struct difference *difference = difference_find(variable.name, framework, target);

    if (difference && difference->kind == DIFFERENCE_ADDRESS) {
        variable.kind = VARIABLE_ADDRESS;
    } else if (difference) {
        return 0;
    } else {
        for (size_t k = 0; k < samples->n; k++)
            values[k] = arena_text(arena, samples->of[k].items[i] + name + 1,
                                   strlen(samples->of[k].items[i] + name + 1));
        if (find_rule(&variable, values, samples->indexes, samples->n, arena, err))
            return -1;
    }
    out->list[out->len++] = variable;
    return 0;
}

static size_t n_added(enum framework framework, enum manifest_target target,
                      struct variable *list) {
    size_t n = 0;

    for (const struct difference *row = differences; row->name; row++)
        if (row->kind == DIFFERENCE_ADDED && row->framework == framework && row->target == target) {
            if (list)
                list[n] = (struct variable){ .name = row->name, .before = row->value, .after = "" };
            n++;
        }
    return n;
}

/* Kubernetes lets a variable name only those before it. */
static void put_index_first(struct variables *variables) {
    for (size_t i = 1; i < variables->len; i++)
        if (strcmp(variables->list[i].name, VARIABLE_INDEX) == 0) {
            struct variable index = variables->list[i];

            memmove(variables->list + 1, variables->list, i * sizeof *variables->list);
            variables->list[0] = index;
            return;
        }
}

/* The framework whose pods they are, also where a single task is a job of one. */
static enum framework wired_framework(const struct plan *plan, enum manifest_target target) {
    if (target == MANIFEST_KUBEFLOW && plan->framework == FRAMEWORK_NONE && plan->framework_label)
        return framework_named(plan->framework_label);
    return plan->framework;
}

int variables_of(const struct wiring *wiring, uint32_t first, uint32_t n,
                 enum manifest_target target, struct arena *arena, struct variables *out,
                 struct error *err) {
    enum framework framework = wired_framework(wiring->plan, target);
    struct samples samples = { .n = 0 };
    struct variables made = { 0 };
    int status = take_samples(wiring, first, n, &samples, err);

    if (status == 0) {
        size_t len = samples.of[0].len;

        made.list = ARENA_ARRAY(arena, struct variable, len + n_added(framework, target, NULL) + 1);
        for (size_t i = 0; i < len && status == 0; i++) {
            size_t before = made.len;

            status = add_variable(&made, &samples, i, framework, target, arena, err);
            if (made.len > before)
                made.list[before].is_shared = i < wiring->shared.len;
        }
        made.len += n_added(framework, target, made.list + made.len);
        put_index_first(&made);
    }
    samples_release(&samples);
    if (status == 0)
        *out = made;
    return status;
}

/* ---- quoting ---- */

const char *kubernetes_escape(const char *text, char next, struct arena *arena) {
    size_t n = strlen(text), len = 0;
    char *out;

    if (!strchr(text, '$'))
        return text;
    out = arena_alloc(arena, 2 * n + 1);
    for (size_t i = 0; i < n; i++) {
        char follows = i + 1 < n ? text[i + 1] : next;

        if (text[i] == '$' && (follows == '$' || follows == '('))
            out[len++] = '$';
        out[len++] = text[i];
    }
    return out;
}

/* The text for a shell, in single quotes where it needs them. */
static const char *shell_quote(const char *text, struct arena *arena) {
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "_-./:=,+@%";
    char *out, *p;

    if (text[strspn(text, harmless)] == '\0')
        return text;
    out = p = arena_alloc(arena, 4 * strlen(text) + 3);
    *p++ = '\'';
    for (; *text; text++) {
        if (*text == '\'') {
            memcpy(p, "'\\''", 4);
            p += 4;
        } else {
            *p++ = *text;
        }
    }
    *p = '\'';
    return out;
}

const char *variable_assignment(const struct variable *variable, const char *index,
                                struct arena *arena) {
    const char *before = shell_quote(variable->before, arena);
    const char *after = shell_quote(variable->after, arena);

    switch (variable->kind) {
    case VARIABLE_LITERAL: return arena_printf(arena, "%s=%s", variable->name, before);
    case VARIABLE_INDEXED:
        return arena_printf(arena, "%s=%s${%s}%s", variable->name, before, index, after);
    case VARIABLE_COUNTED:
        return arena_printf(arena, "%s=%s$((%s + %" PRIu32 "))%s", variable->name, before, index,
                            variable->offset, after);
    case VARIABLE_ADDRESS: break; /* only MXNet has one, and no shell starts its tasks so */
    }
    return "";
}
