/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

#include "codec/yaml.h"
#include "spec/decode.h"
#include "spec/params.h"
#include "spec/render.h"
#include "spec/run_command.h"
#include "spec/schema.h"
#include "spec/topology.h"

enum { COMMAND_BYTES_MAX = 2 << 20 }; /* as much as a kernel takes for the arguments of a program */

static const char *const refused_kinds[] = { "group",    "notebook", "tensorboard",
                                             "pipeline", "build",    "plugin" };

/* ---- reading ---- */

static int read_file(const struct spec_input *input, uint16_t file, struct decoder *decoder,
                     struct node *root) {
    struct node node;
    struct diag *diag;

    if (yaml_read(input->sources, file, decoder->arena, decoder->diags, &node))
        return -1;
    if (node.kind == NODE_MAP) {
        *root = node;
        return 0;
    }
    diag = diag_error(decoder->diags, node_place(&node),
                      node.kind == NODE_NULL ? "there is nothing in this file"
                                             : "this is no polyaxonfile: it is %s, not a mapping",
                      node_kind_name(&node));
    diag_help(diag, "a polyaxonfile starts with `version: 1` and `kind: experiment`");
    return -1;
}

/* Files are merged left to right: later ones win. */
static int read_files(const struct spec_input *input, struct decoder *decoder, struct node *root) {
    struct node merged = { 0 };

    for (size_t i = 0; i < input->n_files; i++) {
        struct node one;

        if (read_file(input, input->files[i], decoder, &one))
            return -1;
        merged = i == 0 ? one : node_merge(decoder->arena, &merged, &one);
    }
    *root = merged;
    return 0;
}

static struct node with_member(struct arena *arena, const struct node *map, const char *key,
                               const struct node *value) {
    struct member *members = ARENA_ARRAY(arena, struct member, map->count + 1u);
    uint32_t n = map->count;

    if (n)
        memcpy(members, map->members, n * sizeof *members);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(members[i].key, key) == 0) {
            members[i].value = *value;
            return node_map(members, n, node_place(map));
        }
    members[n] = (struct member){
        .key = key, .key_offset = value->offset, .key_source = value->source, .value = *value
    };
    return node_map(members, n + 1, node_place(map));
}

static const char *params_key(const struct node *root) {
    return !node_member(root, "params") && node_member(root, "declarations") ? "declarations"
                                                                             : "params";
}

/* Whether the file lists its params itself; then params_check refuses those that it does not list.
 */
static bool declares(const struct node *root) {
    return node_member(root, "inputs") || node_member(root, "outputs");
}

/* Of several members of one name the last one stays. Returns how many are left. */
static uint32_t unique_members(struct member *members, size_t n) {
    uint32_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t at = 0;

        while (at < kept && strcmp(members[at].key, members[i].key) != 0)
            at++;
        members[at] = members[i];
        kept += at == kept;
    }
    return kept;
}

/* Lays `-P name=value` over the file's own params. */
static int add_params(const struct spec_input *input, struct decoder *decoder, struct node *root) {
    const char *key = params_key(root);
    const struct node *own = node_get(root, key);
    struct member *members = ARENA_ARRAY(decoder->arena, struct member, input->n_params);
    struct node given, merged;

    if (input->n_params == 0)
        return 0;
    for (size_t i = 0; i < input->n_params; i++)
        if (param_read(decoder, input->sources, input->params[i], &members[i]))
            return -1;
    given = node_map(members, unique_members(members, input->n_params), member_place(&members[0]));
    if (!declares(root))
        params_warn_unknown(decoder, root, own, &given);
    merged = own && own->kind == NODE_MAP ? node_merge(decoder->arena, own, &given) : given;
    *root = with_member(decoder->arena, root, key, &merged);
    return 0;
}

/* ---- version and kind ---- */

/* Files of the later format of Polyaxon, which has another language. */
static bool is_of_polyaxon_1(const struct node *kind) {
    static const char *const kinds[] = { "component", "operation", "schedule", "dag" };

    for (size_t i = 0; kind->kind == NODE_TEXT && i < ARRAY_LEN(kinds); i++)
        if (strcmp(kind->text, kinds[i]) == 0)
            return true;
    return false;
}

static const struct schema *check_kind(struct decoder *decoder, const struct node *root) {
    const struct node *kind = node_get(root, "kind");
    struct diag *diag;

    if (!kind || kind->kind == NODE_NULL) {
        diag_help(diag_error(decoder->diags, (struct place){ root->offset, 0, root->source },
                             "the file does not say its `kind`"),
                  "add `kind: experiment`");
        return NULL;
    }
    if (kind->kind == NODE_TEXT && strcmp(kind->text, "experiment") == 0)
        return &schema_experiment;
    if (kind->kind == NODE_TEXT && strcmp(kind->text, "job") == 0)
        return &schema_job;
    if (is_of_polyaxon_1(kind)) {
        diag_help(diag_error(decoder->diags, node_place(kind),
                             "this is a file of Polyaxon 1.x (`kind: %s`), which myelin does not "
                             "run yet",
                             kind->text),
                  "it runs files of Polyaxon 0.x: `version: 1` with `kind: experiment` or "
                  "`kind: job`");
        return NULL;
    }
    for (size_t i = 0; kind->kind == NODE_TEXT && i < ARRAY_LEN(refused_kinds); i++)
        if (strcmp(kind->text, refused_kinds[i]) == 0) {
            diag_help(diag_error(decoder->diags, node_place(kind),
                                 "myelin does not run files of kind `%s`", kind->text),
                      "it runs `kind: experiment` and `kind: job`");
            return NULL;
        }
    if (kind->kind == NODE_TEXT)
        diag =
            diag_error(decoder->diags, node_place(kind), "there is no kind `%.100s`", kind->text);
    else
        diag = diag_error(decoder->diags, node_place(kind), "`kind` takes text, not %s",
                          node_kind_name(kind));
    diag_help(diag, "the kinds are experiment and job");
    return NULL;
}

/* ---- templates ---- */

static const struct node empty_map = { .kind = NODE_MAP };

/* Renders the sections that the original rendered, with the resolved params. */
static struct node render_sections(struct decoder *decoder, const struct schema *schema,
                                   const struct node *root, const struct node *names) {
    struct renderer renderer = { .decoder = decoder, .names = names, .keep = param_is_reference };
    struct node out = *root;

    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct field *field = &schema->fields[i];
        const struct node *section = node_get(&out, field->key);
        bool changed = false;
        struct node rendered;

        if (!section || !(field->flags & FIELD_RENDERED))
            continue;
        rendered = render_tree(&renderer, section, &changed);
        if (changed)
            out = with_member(decoder->arena, &out, field->key, &rendered);
    }
    return out;
}

static struct node resolve_params(struct decoder *decoder, const struct node *root) {
    const struct node *params = node_get(root, params_key(root));

    if (!params || params->kind != NODE_MAP)
        return empty_map;
    return params_resolve(decoder, params);
}

/* Inputs and outputs are decoded ahead of the rest: they say what templates may use. */
static struct node check_declared(struct decoder *decoder, const struct schema *schema,
                                  const struct node *root, const struct node *params) {
    static const char *const keys[] = { "inputs", "outputs" };
    struct file_fields file = { 0 };
    struct member members[ARRAY_LEN(keys)];
    struct schema part = *schema;
    struct field rows[ARRAY_LEN(keys)];
    uint32_t n = 0, n_rows = 0;

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct member *member = node_member(root, keys[i]);

        if (member)
            members[n++] = *member;
        for (size_t k = 0; k < schema->n_fields; k++)
            if (strcmp(schema->fields[k].key, keys[i]) == 0)
                rows[n_rows++] = schema->fields[k];
    }
    if (n == 0)
        return *params;
    part.fields = rows;
    part.n_fields = n_rows;
    /* The whole is decoded again later, and says its mistakes then: here only values count. */
    struct decoder quiet = { decoder->arena, diags_new() };
    struct node map = node_map(members, n, node_place(root));
    struct node names;

    decode_object(&quiet, &part, &map, &file);
    names =
        quiet.diags->errors ? *params : params_check(decoder, params, &file.inputs, &file.outputs);
    diags_free(quiet.diags);
    return names;
}

/* ---- sections ---- */

/* What was meant as several commands becomes one: the original joined them too, and said nothing.
 */
static int append_command(struct decoder *decoder, const struct node *text, struct buf *line,
                          struct error *err) {
    const char *joined;
    size_t n;

    if (run_command_joins_commands(text->text, &joined, &n))
        diag_help(
            diag_warning(decoder->diags, node_place(text),
                         "the lines of `cmd` are joined to one command: `%.*s` becomes "
                         "arguments of the line before it",
                         n > 60 ? 60 : (int)n, joined),
            "write a list for commands that run one after the other (`cmd: [first, second]`), "
            "or end lines with `&&`; end a line that goes on with a backslash");
    return run_command_append(text->text, line, err);
}

static const char *build_command(struct decoder *decoder, const struct run_fields *run) {
    const struct node *cmd = run && run->cmd.at ? &run->cmd.at->value : NULL;
    AUTO(buf) line = BUF_INIT(COMMAND_BYTES_MAX);
    struct error err;
    int status = 0;

    if (!cmd)
        return NULL;
    if (cmd->kind == NODE_TEXT)
        status = append_command(decoder, cmd, &line, &err);
    for (uint32_t i = 0; cmd->kind == NODE_LIST && i < cmd->count && status == 0; i++)
        status = append_command(decoder, &cmd->items[i], &line, &err);
    if (status)
        diag_error(decoder->diags, member_place(run->cmd.at), "the command is %s", err.message);
    else if (line.len == 0)
        diag_error(decoder->diags, member_place(run->cmd.at), "the command is empty");
    return line.len > 0 ? arena_text(decoder->arena, line.data, line.len) : NULL;
}

static void check_build(struct decoder *decoder, const struct file_fields *file) {
    static const char *const keys[] = { "image", "dockerfile", "ref" };
    const struct build_fields *build = file->build.object;
    const struct run_fields *run = file->run.object;
    int given;

    if (build && run && run->image.at)
        diag_note(
            diag_error(decoder->diags, member_place(run->image.at), "the image is given twice"),
            member_place(file->build.at), "`build` is here");
    if (!build)
        return;
    given = !!build->image.at + !!build->dockerfile.at + !!build->ref.at;
    for (size_t i = 0; given == 0 && i < ARRAY_LEN(keys); i++) {
        const struct node *value = node_get(&file->build.at->value, keys[i]);

        given = value && value->kind != NODE_NULL; /* the decoder has said what is wrong with it */
    }
    if (given != 1)
        diag_help(diag_error(decoder->diags, member_place(file->build.at),
                             given == 0
                                 ? "`build` names no image, dockerfile or ref"
                                 : "`build` names more than one of image, dockerfile and ref"),
                  "give exactly one of them");
}

/* The image that tasks run in on a cluster, and the first field that asks for another one to be
 * made of it. */
static struct image find_image(const struct file_fields *file) {
    const struct build_fields *build = file->build.object;
    const struct run_fields *run = file->run.object;
    const struct member *name = build ? build->image.at : run ? run->image.at : NULL;
    const struct member *makers[] = {
        build ? build->dockerfile.at : NULL,  build ? build->ref.at : NULL,
        build ? build->build_steps.at : NULL, build ? build->env_vars.at : NULL,
        build ? build->lang_env.at : NULL,    build ? build->commit.at : NULL,
        build ? build->branch.at : NULL,      run ? run->build_steps.at : NULL,
        run ? run->env_vars.at : NULL,
    };
    struct image image = { 0 };

    if (name)
        image = (struct image){ .name = name->value.text, .place = node_place(&name->value) };
    for (size_t i = 0; i < ARRAY_LEN(makers) && !image.obstacle; i++)
        if (makers[i]) {
            image.obstacle = makers[i]->key;
            image.place = member_place(makers[i]);
        }
    return image;
}

static struct earlier_runs earlier_runs(const struct output_refs_fields *given) {
    return (struct earlier_runs){
        .jobs = given->jobs.at ? &given->jobs.at->value : NULL,
        .experiments = given->experiments.at ? &given->experiments.at->value : NULL,
    };
}

static void build_spec(struct decoder *decoder, const struct schema *schema,
                       const struct file_fields *file, struct spec *spec) {
    const struct logging_fields *logging = file->logging.object;
    const struct settings_fields *settings = file->settings.object;
    const struct environment_fields *environment = file->environment.object;
    const struct run_fields *run = file->run.object;

    if (!logging && settings)
        logging = settings->logging.object;
    spec->name = field_text(file->name);
    spec->log_level = logging && logging->level.at ? field_text(logging->level) : "INFO";
    spec->tags = file->tags.at ? &file->tags.at->value : NULL;
    spec->command = build_command(decoder, run);
    spec->has_build = file->build.at || (run && run->image.at);
    spec->image = find_image(file);
    if (file->backend.at)
        spec->backend_place = node_place(&file->backend.at->value);
    for (enum backend_kind i = 0; schema == &schema_experiment && i < BACKEND_COUNT; i++)
        if (file->backend.at && strcmp(field_text(file->backend), backend_kind_name(i)) == 0)
            spec->backend = i;
    if (environment && environment->max_restarts.at)
        spec->max_restarts = (uint32_t)environment->max_restarts.value;
    if (environment && environment->outputs.object)
        spec->earlier = earlier_runs(environment->outputs.object);
    check_build(decoder, file);
    topology_build(decoder, file, spec);
}

struct spec *spec_compile(const struct spec_input *input, struct diags *diags) {
    struct spec *spec = calloc(1, sizeof *spec);
    struct decoder decoder = { &spec->arena, diags };
    const struct schema *schema;
    struct node root, params, *names;
    struct file_fields file = { 0 };

    if (!spec)
        abort();
    if (read_files(input, &decoder, &root) || add_params(input, &decoder, &root) ||
        !(schema = check_kind(&decoder, &root))) {
        spec_free(spec);
        return NULL;
    }
    params = resolve_params(&decoder, &root);
    names = ARENA_NEW(&spec->arena, struct node);
    *names = check_declared(&decoder, schema, &root, &params);
    /* Templates over params that are wrong would only repeat the same mistake. */
    if (diags->errors == 0)
        root = render_sections(&decoder, schema, &root, names);
    decode_object(&decoder, schema, &root, &file);
    build_spec(&decoder, schema, &file, spec);
    spec->params = names->count ? names : NULL;
    if (diags->errors > 0) {
        spec_free(spec);
        return NULL;
    }
    return spec;
}

void spec_free(struct spec *spec) {
    if (!spec)
        return;
    arena_release(&spec->arena);
    free(spec);
}
