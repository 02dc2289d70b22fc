/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes any bytes through the whole reading half: a polyaxonfile, its plan, the environment of its
 * first and last task, the plan as JSON, and the diagnostics in each form. An input may hold
 * several texts, divided by lines of `####`: the first is the file, those that begin with `-P ` are
 * params, the others are files that are merged over it.
 *
 * Beyond "no crash" it holds that a file without a spec has an error and one with a spec has none,
 * that every place is inside its text, and that what is shown is UTF-8 without control bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/utf8.h"
#include "plan/environment.h"
#include "plan/plan.h"
#include "spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20, TEXTS_MAX = 4, SHOWN_MAX = 16 << 20, TASKS_PLANNED = 1000 };

static const char divider[] = "\n####\n";

static void require(bool law) {
    if (!law)
        abort();
}

static int discard(void *context, const char *bytes, size_t n, struct error *err) {
    (void)context;
    (void)err;
    require(utf8_valid_prefix(bytes, n) + 4 > n); /* a piece may end within a character */
    return 0;
}

static void check_place(const struct sources *sources, struct place place) {
    const struct source *source;

    require(place.source < sources->list.len);
    source = &sources->list.items[place.source];
    require(place.offset <= source->len && place.length <= source->len - place.offset);
}

static void check_diags(const struct diags *diags, const struct sources *sources) {
    struct json json;
    struct error err;

    for (size_t i = 0; i < diags->len; i++) {
        const struct diag *diag = &diags->list[i];

        require(diag->message && diag->message[0]);
        if (diag->has_place)
            check_place(sources, diag->place);
        if (diag->note)
            check_place(sources, diag->note_place);
    }
    for (enum diag_style style = DIAG_PLAIN; style <= DIAG_COLOURED; style++) {
        AUTO(buf) shown = BUF_INIT(SHOWN_MAX);

        require(diags_format(diags, sources, style, &shown, &err) == 0);
        require(utf8_valid_prefix(shown.data, shown.len) == shown.len);
        for (size_t i = 0; i < shown.len; i++)
            require((unsigned char)shown.data[i] >= ' ' || shown.data[i] == '\n' ||
                    (style == DIAG_COLOURED && shown.data[i] == '\033'));
    }
    json_init(&json, JSON_COMPACT, discard, NULL);
    diags_write_json(diags, sources, &json);
    require(json_finish(&json, &err) == 0);
}

static void check_task(const struct plan *plan, uint32_t rank) {
    struct environment environment = { 0 };
    struct json json;
    struct error err;

    if (plan_environment(plan, rank, &facts_symbolic, &environment, &err) == 0)
        require(environment.len > 0 && !environment.items[environment.len]);
    environment_release(&environment);
    json_init(&json, JSON_PRETTY, discard, NULL);
    plan_write_task_json(plan, rank, &json);
    require(json_finish(&json, &err) == 0);
}

static void check_spec(struct spec *spec) {
    AUTO_PTR(plan) plan = NULL;
    uint64_t n_tasks =
        (uint64_t)spec->has_master + spec->roles[ROLE_WORKER].count + spec->roles[ROLE_PS].count;
    struct json json;
    struct error err;

    require(n_tasks > 0 && n_tasks <= TASKS_MAX);
    if (n_tasks > TASKS_PLANNED) { /* each task costs time, and is like the others */
        spec_free(spec);
        return;
    }
    plan = plan_build(spec, &err);
    if (!plan)
        return;
    require(plan->n_tasks == n_tasks);
    check_task(plan, 0);
    check_task(plan, plan->n_tasks - 1);
    json_init(&json, JSON_PRETTY, discard, NULL);
    plan_write_json(plan, &json);
    require(json_finish(&json, &err) == 0);
}

/* Divides the input into the texts of one compilation. */
static void add_texts(const char *text, size_t size, struct sources *sources,
                      struct spec_input *input, uint16_t *files, uint16_t *params) {
    for (size_t i = 0; i < TEXTS_MAX; i++) {
        const char *end = size ? memmem(text, size, divider, sizeof divider - 1) : NULL;
        size_t n = end && i + 1 < TEXTS_MAX ? (size_t)(end - text) : size;

        if (i > 0 && n >= 3 && memcmp(text, "-P ", 3) == 0) {
            if (!memchr(text, '\0', n)) /* no argument holds one */
                params[input->n_params++] = sources_add(sources, "-P", text + 3, n - 3);
        } else {
            files[input->n_files++] = sources_add(sources, "polyaxonfile.yml", text, n);
        }
        if (n == size)
            return;
        text += n + sizeof divider - 1;
        size -= n + sizeof divider - 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct sources sources = { 0 };
    uint16_t files[TEXTS_MAX], params[TEXTS_MAX];
    struct spec_input input = { .sources = &sources, .files = files, .params = params };
    AUTO_PTR(diags) diags = diags_new();
    struct spec *spec;

    if (size > INPUT_MAX)
        return 0;
    add_texts((const char *)data, size, &sources, &input, files, params);
    spec = spec_compile(&input, diags);
    require((spec == NULL) == (diags->errors > 0));
    check_diags(diags, &sources);
    if (spec)
        check_spec(spec);
    sources_release(&sources);
    return 0;
}
