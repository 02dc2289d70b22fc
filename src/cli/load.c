/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/load.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/vec.h"
#include "cli/failure.h"
#include "codec/nearest.h"
#include "codec/yaml.h"
#include "plan/plan.h"
#include "spec/spec.h"

enum { SOURCES_MAX = 1000 };

static const char *const endings[] = { "yaml", "yml", "json" };

bool load_is_name_of_file(const char *text) {
    const char *dot = strrchr(text, '.');

    for (size_t i = 0; dot && dot > text && i < ARRAY_LEN(endings); i++)
        if (strcmp(dot + 1, endings[i]) == 0)
            return true;
    return false;
}

static bool is_directory(const char *path) {
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The names that the original looked for, in its order. */
bool load_find_in(const char *directory, char path[static PATH_MAX]) {
    static const char *const names[] = { "polyaxon", "polyaxonci", "polyaxon-ci", "polyaxon.ci",
                                         "polyaxonfile" };
    const bool is_here = strcmp(directory, ".") == 0;
    const char *slash = is_here || directory[strlen(directory) - 1] == '/' ? "" : "/";

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        for (size_t k = 0; k < ARRAY_LEN(endings); k++)
            if (snprintf(path, PATH_MAX, "%s%s%s.%s", is_here ? "" : directory, slash, names[i],
                         endings[k]) < PATH_MAX &&
                access(path, F_OK) == 0 && !is_directory(path))
                return true;
    return false;
}

/* The numbers of the sources that one compilation reads. */
struct inputs {
    uint16_t files[SOURCES_MAX], params[SOURCES_MAX];
    size_t n_files, n_params;
};

/* Names the file beside a missing one whose name is near. */
static void help_with_file(struct diag *diag, const char *path, const struct error *err) {
    const char *slash = strrchr(path, '/'), *typed = slash ? slash + 1 : path, *near;
    const int n_directory = slash ? (int)(typed - path) : 0;
    AUTO(arena) arena = ARENA_INIT;
    VEC(const char *) names = { 0 };
    struct dirent *entry;
    DIR *dir;

    dir = err->code == ERROR_NOT_FOUND
              ? opendir(slash ? arena_printf(&arena, "%.*s", n_directory, path) : ".")
              : NULL;
    while (dir && (entry = readdir(dir)) && names.len < SOURCES_MAX)
        if (load_is_name_of_file(entry->d_name))
            *VEC_PUSH(&names) = arena_text(&arena, entry->d_name, strlen(entry->d_name));
    if (dir)
        closedir(dir);
    near = nearest_name(typed, names.items, names.len);
    if (near)
        diag_help(diag, "did you mean '%.*s%s'?", n_directory, path, near);
    VEC_RELEASE(&names);
}

static int add_file(struct loaded *loaded, struct inputs *inputs, const char *path) {
    AUTO(buf) text = BUF_INIT(YAML_BYTES_MAX);
    char found[PATH_MAX];
    struct error err;

    if (inputs->n_files == SOURCES_MAX) {
        diag_error_nowhere(loaded->diags, "more than %d files are given", SOURCES_MAX);
        return -1;
    }
    if (path[0] && is_directory(path)) {
        if (!load_find_in(path, found)) {
            diag_help(diag_error_nowhere(loaded->diags,
                                         "there is no polyaxonfile in the directory "
                                         "'%.300s'",
                                         path),
                      "it would be called polyaxonfile.yml or polyaxon.yml; name the file if it is "
                      "called otherwise");
            return -1;
        }
        path = found;
    }
    if (file_read(path, &text, &err)) {
        help_with_file(
            diag_error_nowhere(loaded->diags, "cannot read the polyaxonfile: %s", err.message),
            path, &err);
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
    char found[PATH_MAX];

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
    if (load_find_in(".", found))
        return add_file(loaded, inputs, found);
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
    if (out->diags->warnings > 0 && invocation_has(invocation, "strict")) {
        diags_make_errors(out->diags);
        plan_free(out->plan);
        out->plan = NULL;
    }
}

void loaded_release(struct loaded *loaded) {
    plan_free(loaded->plan);
    diags_free(loaded->diags);
    sources_release(&loaded->sources);
}

void print_diags(const struct loaded *loaded) {
    complain_diags(loaded->diags, &loaded->sources);
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
