/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/terminal.h"
#include "codec/yaml.h"
#include "plan/plan.h"
#include "spec/spec.h"

enum { SOURCES_MAX = 1000, DIAGS_TEXT_MAX = 4 << 20 };

/* The names that the original looked for, in its order. */
static const char *usual_file(void) {
    static const char *const names[] = { "polyaxon", "polyaxonci", "polyaxon-ci", "polyaxon.ci",
                                         "polyaxonfile" };
    static const char *const endings[] = { "yaml", "yml", "json" };
    static char path[32];

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        for (size_t k = 0; k < ARRAY_LEN(endings); k++) {
            snprintf(path, sizeof path, "%s.%s", names[i], endings[k]);
            if (access(path, F_OK) == 0)
                return path;
        }
    return NULL;
}

/* The numbers of the sources that one compilation reads. */
struct inputs {
    uint16_t files[SOURCES_MAX], params[SOURCES_MAX];
    size_t n_files, n_params;
};

static int add_file(struct loaded *loaded, struct inputs *inputs, const char *path) {
    AUTO(buf) text = BUF_INIT(YAML_BYTES_MAX);
    struct error err;

    if (inputs->n_files == SOURCES_MAX) {
        diag_error_nowhere(loaded->diags, "more than %d files are given", SOURCES_MAX);
        return -1;
    }
    if (file_read(path, &text, &err)) {
        diag_error_nowhere(loaded->diags, "cannot read the polyaxonfile: %s", err.message);
        return -1;
    }
    inputs->files[inputs->n_files++] =
        sources_take(&loaded->sources, strcmp(path, "-") == 0 ? "<stdin>" : path, &text);
    return 0;
}

static int add_param(struct loaded *loaded, struct inputs *inputs, const char *text) {
    if (inputs->n_params == SOURCES_MAX) {
        diag_error_nowhere(loaded->diags, "more than %d params are given", SOURCES_MAX);
        return -1;
    }
    inputs->params[inputs->n_params++] = sources_add(&loaded->sources, "-P", text, strlen(text));
    return 0;
}

static int gather(const struct invocation *invocation, const char *file, struct loaded *loaded,
                  struct inputs *inputs) {
    if (file && add_file(loaded, inputs, file))
        return -1;
    for (size_t i = 0; i < invocation->n_given; i++) {
        const struct given_option *given = &invocation->given[i];

        if (strcmp(given->option->name, "file") == 0 && add_file(loaded, inputs, given->value))
            return -1;
        if (strcmp(given->option->name, "param") == 0 && add_param(loaded, inputs, given->value))
            return -1;
    }
    if (inputs->n_files > 0)
        return 0;
    file = usual_file();
    if (file)
        return add_file(loaded, inputs, file);
    diag_help(diag_error_nowhere(loaded->diags, "no polyaxonfile is given, and none is here"),
              "name one, or go where a polyaxonfile.yml is");
    return -1;
}

void load(const struct invocation *invocation, const char *file, struct loaded *out) {
    struct inputs inputs = { .n_files = 0 };
    struct spec *spec;
    struct error err;

    *out = (struct loaded){ .diags = diags_new() };
    if (gather(invocation, file, out, &inputs))
        return;
    out->n_given = out->sources.list.len;
    spec = spec_compile(&(struct spec_input){ &out->sources, inputs.files, inputs.n_files,
                                              inputs.params, inputs.n_params },
                        out->diags);
    if (!spec)
        return;
    out->plan = plan_build(spec, &err);
    if (!out->plan)
        diag_error_nowhere(out->diags, "%s", err.message);
}

void loaded_release(struct loaded *loaded) {
    plan_free(loaded->plan);
    diags_free(loaded->diags);
    sources_release(&loaded->sources);
}

void print_diags(const struct loaded *loaded) {
    AUTO(buf) text = BUF_INIT(DIAGS_TEXT_MAX);
    struct error err;

    if (diags_format(loaded->diags, &loaded->sources,
                     terminal_colour(stderr) ? DIAG_COLOURED : DIAG_PLAIN, &text, &err))
        fprintf(stderr, "myelin: too much is wrong to show it all\n");
    fwrite(text.data, 1, text.len, stderr);
}

struct plan *load_plan(const struct invocation *invocation) {
    struct loaded loaded;
    struct plan *plan;

    load(invocation, invocation->n_operands > 0 ? invocation->operands[0] : NULL, &loaded);
    print_diags(&loaded);
    plan = loaded.plan;
    loaded.plan = NULL;
    loaded_release(&loaded);
    return plan;
}
