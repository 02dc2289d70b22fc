/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/topology.h"

#include <stdlib.h>
#include <string.h>

#include "codec/nearest.h"

/* One of the sections that may describe the topology. */
struct section {
    enum framework framework; /* NONE for `replicas` */
    const struct topology_fields *fields;
    const struct member *at;
};

/* One listed index, before entries of several lists are joined. */
struct entry {
    int64_t index;
    uint32_t list; /* number of the list it stands in, to tell a duplicate from a complement */
    struct place place;
    struct pod pod;
};

struct builder {
    struct decoder *decoder;
    struct spec *spec;
    struct section sections[FRAMEWORK_COUNT];
    size_t n_sections;
    const struct member *count_at[ROLE_COUNT];
    VEC(struct entry) entries; /* of the role in hand */
    uint32_t n_lists;
};

/* ---- resources ---- */

static void check_range(struct decoder *decoder, enum resource resource,
                        const struct range_fields *range) {
    const struct member *requests = range->requests.at, *limits = range->limits.at;
    bool is_device = resource == RESOURCE_GPU || resource == RESOURCE_TPU;

    if (requests && limits && range->requests.value > range->limits.value) {
        struct diag *diag =
            diag_error(decoder->diags, node_place(&requests->value),
                       "%s requests %s, which is more than its limit", resource_name(resource),
                       milli_text(range->requests.value).text);

        diag_note(diag, node_place(&limits->value), "the limit is %s here",
                  milli_text(range->limits.value).text);
    }
    if (is_device && requests && range->requests.value % 1000)
        diag_error(decoder->diags, node_place(&requests->value), "a %s cannot be divided",
                   resource_name(resource));
    if (is_device && limits && range->limits.value % 1000)
        diag_error(decoder->diags, node_place(&limits->value), "a %s cannot be divided",
                   resource_name(resource));
}

struct resources resources_build(struct decoder *decoder, const struct field_object *resources) {
    const struct resources_fields *fields = resources->object;
    struct resources out = resources_none;

    for (enum resource i = 0; fields && i < RESOURCE_COUNT; i++) {
        const struct range_fields *range = fields->of[i].object;

        if (!range)
            continue;
        check_range(decoder, i, range);
        if (range->requests.at)
            out.of[i].requests = range->requests.value;
        if (range->limits.at)
            out.of[i].limits = range->limits.value;
    }
    return out;
}

/* A PyTorch or Horovod task is one rank, and a rank drives one GPU. */
static void warn_of_idle_gpus(struct builder *builder, const struct resources *resources,
                              const struct field_object *at) {
    milli gpus = resources_reserved(resources, RESOURCE_GPU);
    enum framework framework = builder->spec->framework;

    if (gpus <= 1000 || !at->at ||
        (framework != FRAMEWORK_PYTORCH && framework != FRAMEWORK_HOROVOD))
        return;
    diag_help(diag_warning(builder->decoder->diags, member_place(at->at),
                           "a %s task is one rank, and a rank uses one GPU of these %s",
                           framework_facts(framework)->name, milli_text(gpus).text),
              "for each GPU a rank: give each task 1 GPU and use %s times as many workers",
              milli_text(gpus).text);
}

/* ---- attributes, one by one ---- */

static void given_twice(struct builder *builder, const char *role, const char *attribute,
                        struct place second, struct place first) {
    diag_note(
        diag_error(builder->decoder->diags, second, "`%s` of %s is given twice", attribute, role),
        first, "the other one is here");
}

/* Joins what `from` gives to `into`; what both give is an error. */
static void join_pods(struct builder *builder, const char *role, struct pod *into,
                      const struct pod *from) {
    if (from->resources.at && into->resources.at)
        given_twice(builder, role, "resources", member_place(from->resources.at),
                    member_place(into->resources.at));
    else if (from->resources.at)
        into->resources = from->resources;
    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++) {
        if (from->given[i].at && into->given[i].at)
            given_twice(builder, role, attribute_name(i), member_place(from->given[i].at),
                        member_place(into->given[i].at));
        else if (from->given[i].at)
            into->given[i] = from->given[i];
    }
}

/* ---- the old form of two of them ---- */

static struct member *renamed(struct arena *arena, const struct member *from, enum attribute to,
                              struct node value) {
    struct member *member = ARENA_NEW(arena, struct member);

    *member = *from;
    member->key = attribute_name(to);
    member->value = value;
    return member;
}

/* What an environment gives, with `persistence: {data: [a], outputs: b}` as data_refs and
 * artifact_refs. */
static struct pod pod_of(struct decoder *decoder, const struct environment_fields *environment) {
    const struct persistence_fields *old = environment->persistence.object;
    struct pod pod = environment->pod;
    const struct member *refs = pod.given[ATTRIBUTE_DATA_REFS].at
                                    ? pod.given[ATTRIBUTE_DATA_REFS].at
                                    : pod.given[ATTRIBUTE_ARTIFACT_REFS].at;

    if (!old)
        return pod;
    if (refs) {
        diag_note(diag_error(decoder->diags, member_place(environment->persistence.at),
                             "`persistence` is the old form of `%s`: use one of them", refs->key),
                  member_place(refs), "`%s` is given here", refs->key);
        return pod;
    }
    if (old->data.at)
        pod.given[ATTRIBUTE_DATA_REFS].at =
            renamed(decoder->arena, old->data.at, ATTRIBUTE_DATA_REFS, old->data.at->value);
    if (old->outputs.at) {
        struct node *name = ARENA_NEW(decoder->arena, struct node);

        *name = old->outputs.at->value;
        pod.given[ATTRIBUTE_ARTIFACT_REFS].at =
            renamed(decoder->arena, old->outputs.at, ATTRIBUTE_ARTIFACT_REFS,
                    node_list(name, 1, node_place(name)));
    }
    return pod;
}

static void join_defaults(struct builder *builder, enum role role,
                          const struct role_fields *fields) {
    struct pod *defaults = &builder->spec->roles[role].defaults;
    const struct environment_fields *given = fields->defaults.object;

    if (given) {
        const struct pod pod = pod_of(builder->decoder, given);

        if (given->index.at)
            diag_warning(builder->decoder->diags, member_place(given->index.at),
                         "`index` has no effect in a default");
        join_pods(builder, role_name(role), defaults, &pod);
    }
    join_pods(builder, role_name(role), defaults,
              &(struct pod){ .resources = fields->default_resources,
                             .given[ATTRIBUTE_NODE_SELECTOR] = fields->default_selectors });
}

/* ---- listed indexes ---- */

static const char *valid_range(struct builder *builder, uint32_t count) {
    return count == 0 ? "there is none of this role"
           : count == 1
               ? "the only valid index is 0"
               : arena_printf(builder->decoder->arena, "valid indexes are 0 to %u", count - 1);
}

static void add_entry(struct builder *builder, enum role role, const struct field_int *index,
                      const struct node *at, const struct pod *pod) {
    uint32_t count = builder->spec->roles[role].count;
    struct diag *diag;

    if (!index->at) {
        const struct node *given = node_get(at, "index");

        if (given && given->kind != NODE_NULL)
            return; /* the decoder has said what is wrong with it */
        diag = diag_error(builder->decoder->diags, (struct place){ at->offset, 0, at->source },
                          "this entry has no `index`, so it is for nobody");
        diag_help(diag, "%s", valid_range(builder, count));
        return;
    }
    if (index->value < 0 || index->value >= count) {
        diag =
            diag_error(builder->decoder->diags, node_place(&index->at->value),
                       "there is no %s with index %lld", role_name(role), (long long)index->value);
        if (builder->count_at[role])
            diag_note(diag, member_place(builder->count_at[role]), "`%s` is %u here",
                      builder->count_at[role]->key, count);
        diag_help(diag, "%s", valid_range(builder, count));
        return;
    }
    *VEC_PUSH(&builder->entries) = (struct entry){ .index = index->value,
                                                   .list = builder->n_lists,
                                                   .place = node_place(&index->at->value),
                                                   .pod = *pod };
}

/* `{index: 2, disk: ssd}` without its index is a selector. */
static struct member *selector_member(struct builder *builder,
                                      const struct selector_fields *fields) {
    struct arena *arena = builder->decoder->arena;
    struct member *members = ARENA_ARRAY(arena, struct member, fields->at->count);
    struct member *out = ARENA_NEW(arena, struct member);
    uint32_t n = 0;

    for (uint32_t i = 0; i < fields->at->count; i++)
        if (strcmp(fields->at->members[i].key, "index") != 0)
            members[n++] = fields->at->members[i];
    *out = (struct member){ .key = "node_selector",
                            .key_offset = fields->at->offset,
                            .key_source = fields->at->source,
                            .value = node_map(members, n, node_place(fields->at)) };
    return out;
}

static void collect_entries(struct builder *builder, enum role role,
                            const struct role_fields *fields) {
    const struct environment_fields *list = fields->list.items;
    const struct resources_fields *resources = fields->resources_list.items;
    const struct selector_fields *selectors = fields->selectors_list.items;

    builder->n_lists++;
    for (uint32_t i = 0; i < fields->list.count; i++) {
        const struct pod pod = pod_of(builder->decoder, &list[i]);

        add_entry(builder, role, &list[i].index, list[i].at, &pod);
    }
    builder->n_lists++;
    for (uint32_t i = 0; i < fields->resources_list.count; i++) {
        struct member *at = ARENA_NEW(builder->decoder->arena, struct member);
        const struct node *map = resources[i].at;

        /* The entry is its own resources: `{index: 2, cpu: …}`. */
        *at = (struct member){
            .key = "resources", .key_offset = map->offset, .key_source = map->source, .value = *map
        };
        add_entry(builder, role, &resources[i].index, map,
                  &(struct pod){ .resources = { (void *)(uintptr_t)&resources[i], at } });
    }
    builder->n_lists++;
    for (uint32_t i = 0; i < fields->selectors_list.count; i++)
        add_entry(builder, role, &selectors[i].index, selectors[i].at,
                  &(struct pod){ .given[ATTRIBUTE_NODE_SELECTOR] = {
                                     selector_member(builder, &selectors[i]) } });
}

static int by_index(const void *a, const void *b) {
    const struct entry *x = a, *y = b;

    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return x->list != y->list
               ? (x->list < y->list ? -1 : 1)
               : (x->place.offset < y->place.offset ? -1 : x->place.offset > y->place.offset);
}

/* Entries of several lists for one index become one replica. */
static void join_entries(struct builder *builder, enum role role) {
    struct role_spec *spec = &builder->spec->roles[role];
    struct entry *entries = builder->entries.items;
    size_t n = builder->entries.len;
    struct replica *replicas = ARENA_ARRAY(builder->decoder->arena, struct replica, n);
    uint32_t n_replicas = 0;

    if (n > 1)
        qsort(entries, n, sizeof *entries, by_index);
    for (size_t i = 0; i < n; i++) {
        struct replica *last = n_replicas ? &replicas[n_replicas - 1] : NULL;

        if (!last || last->index != entries[i].index) {
            replicas[n_replicas++] =
                (struct replica){ .index = (uint32_t)entries[i].index, .pod = entries[i].pod };
        } else if (entries[i].list == entries[i - 1].list) {
            diag_note(diag_error(builder->decoder->diags, entries[i].place,
                                 "index %u of %s is listed twice", last->index, role_name(role)),
                      entries[i - 1].place, "the first one is here");
        } else {
            const char *name =
                arena_printf(builder->decoder->arena, "%s %u", role_name(role), last->index);

            join_pods(builder, name, &last->pod, &entries[i].pod);
        }
    }
    for (uint32_t i = 0; i < n_replicas; i++) {
        replicas[i].resources = resources_build(builder->decoder, &replicas[i].pod.resources);
        warn_of_idle_gpus(builder, &replicas[i].resources, &replicas[i].pod.resources);
    }
    spec->replicas = replicas;
    spec->n_replicas = n_replicas;
    builder->entries.len = 0;
}

/* ---- roles ---- */

static bool role_is_given(const struct role_fields *fields, const struct member **at) {
    const struct member *given[] = { fields->count.at,          fields->defaults.at,
                                     fields->list.at,           fields->default_resources.at,
                                     fields->resources_list.at, fields->default_selectors.at,
                                     fields->selectors_list.at };

    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        if (given[i]) {
            *at = given[i];
            return true;
        }
    return false;
}

static void count_role(struct builder *builder, enum role role, const struct role_fields *fields) {
    if (!fields->count.at)
        return;
    if (builder->count_at[role]) {
        given_twice(builder, "the topology", fields->count.at->key, member_place(fields->count.at),
                    member_place(builder->count_at[role]));
        return;
    }
    builder->count_at[role] = fields->count.at;
    builder->spec->roles[role].count = (uint32_t)fields->count.value;
}

static void build_role(struct builder *builder, enum role role) {
    const struct framework_facts *facts = framework_facts(builder->spec->framework);
    struct role_spec *spec = &builder->spec->roles[role];

    spec->default_resources = resources_none;
    for (size_t i = 0; i < builder->n_sections; i++) {
        const struct role_fields *fields = &builder->sections[i].fields->roles[role];
        const struct member *at;

        if (!role_is_given(fields, &at))
            continue;
        if (builder->spec->framework != FRAMEWORK_NONE && !facts->role_names[role]) {
            diag_help(diag_error(builder->decoder->diags, member_place(at),
                                 "%s has no parameter servers", facts->name),
                      "remove `%s`; tensorflow and mxnet have them", at->key);
            return;
        }
        count_role(builder, role, fields);
    }
    for (size_t i = 0; i < builder->n_sections; i++) {
        join_defaults(builder, role, &builder->sections[i].fields->roles[role]);
        collect_entries(builder, role, &builder->sections[i].fields->roles[role]);
    }
    spec->default_resources = resources_build(builder->decoder, &spec->defaults.resources);
    warn_of_idle_gpus(builder, &spec->default_resources, &spec->defaults.resources);
    join_entries(builder, role);
}

/* ---- the framework ---- */

static void collect_sections(struct builder *builder,
                             const struct environment_fields *environment) {
    if (!environment)
        return;
    for (enum framework i = FRAMEWORK_NONE + 1; i < FRAMEWORK_COUNT; i++)
        if (environment->frameworks[i].object)
            builder->sections[builder->n_sections++] =
                (struct section){ i, environment->frameworks[i].object,
                                  environment->frameworks[i].at };
    if (environment->replicas.object)
        builder->sections[builder->n_sections++] =
            (struct section){ FRAMEWORK_NONE, environment->replicas.object,
                              environment->replicas.at };
}

static const char *nearest_framework(const char *name) {
    const char *names[FRAMEWORK_COUNT];
    size_t n = 0;

    for (enum framework i = FRAMEWORK_NONE + 1; i < FRAMEWORK_COUNT; i++)
        names[n++] = framework_facts(i)->name;
    return nearest_name(name, names, n);
}

/* `framework:` names one that has no topology here. */
static void check_label(struct builder *builder, const struct member *label, bool has_topology) {
    const char *near = nearest_framework(label->value.text);
    struct diag *diag;

    if (has_topology)
        diag = diag_error(builder->decoder->diags, node_place(&label->value),
                          "`%.100s` has no topology", label->value.text);
    else if (near)
        diag = diag_warning(builder->decoder->diags, node_place(&label->value),
                            "the framework `%.100s` is not known", label->value.text);
    else
        return;
    if (near)
        diag_help(diag, "did you mean `%s`?", near);
    else
        diag_help(diag, "those that have one are tensorflow, mxnet, pytorch and horovod");
}

static void settle_framework(struct builder *builder, const struct member *label) {
    struct spec *spec = builder->spec;
    const struct section *named = NULL;

    for (size_t i = 0; i < builder->n_sections; i++) {
        const struct section *section = &builder->sections[i];

        if (section->framework == FRAMEWORK_NONE)
            continue;
        if (!named) {
            named = section;
            continue;
        }
        diag_note(diag_error(builder->decoder->diags, member_place(section->at),
                             "two frameworks are named: `%s` and `%s`", named->at->key,
                             section->at->key),
                  member_place(named->at), "the other one is here");
        builder->n_sections = i; /* what the second one says would only seem to be given twice */
    }
    spec->framework_label = label ? label->value.text : named ? named->at->key : NULL;
    if (label) {
        spec->framework = framework_named(label->value.text);
        if (named && spec->framework != named->framework)
            diag_note(diag_error(builder->decoder->diags, member_place(named->at),
                                 "this section is for %s, but `framework` says otherwise",
                                 named->at->key),
                      node_place(&label->value), "`framework` is `%.100s` here", label->value.text);
        else if (spec->framework == FRAMEWORK_NONE)
            check_label(builder, label, builder->n_sections > 0);
    } else if (named) {
        spec->framework = named->framework;
    } else if (builder->n_sections > 0) {
        diag_help(
            diag_error(builder->decoder->diags, member_place(builder->sections[0].at),
                       "`replicas` needs to know the framework"),
            "add `framework: tensorflow` (or mxnet, pytorch, horovod) at the top of the file");
    }
}

/* ---- the master ---- */

static void check_mpi(struct builder *builder) {
    for (size_t i = 0; i < builder->n_sections; i++) {
        const struct topology_fields *fields = builder->sections[i].fields;
        const struct member *wrong[] = { fields->roles[ROLE_WORKER].list.at,
                                         fields->roles[ROLE_WORKER].resources_list.at,
                                         fields->roles[ROLE_PS].count.at };

        for (size_t k = 0; k < ARRAY_LEN(wrong); k++)
            if (wrong[k])
                diag_help(diag_error(builder->decoder->diags, member_place(wrong[k]),
                                     "the mpi backend has no `%s`", wrong[k]->key),
                          "all its workers are alike: use `n_workers` and `default_worker`");
    }
}

static void refuse_masters_own(struct builder *builder, const struct member *given,
                               const struct member *refused) {
    struct diag *diag;

    if (!given)
        return;
    diag = diag_error(builder->decoder->diags, member_place(given),
                      "`%s` is for the master here, and there is none", given->key);
    diag_note(diag, member_place(refused), "`master` is false here");
    diag_help(diag, "give it to the others: `replicas: {default_worker: {%s: ...}}`", given->key);
}

static void settle_master(struct builder *builder, const struct environment_fields *environment) {
    struct spec *spec = builder->spec;
    const struct member *refused = NULL;

    spec->has_master = true;
    for (size_t i = 0; i < builder->n_sections; i++) {
        const struct field_bool *master = &builder->sections[i].fields->master;

        if (master->at && !master->value) {
            refused = master->at;
            spec->has_master = false;
        }
    }
    if (spec->backend == BACKEND_MPI && builder->n_sections > 0) {
        spec->has_master = false;
        check_mpi(builder);
        if (spec->roles[ROLE_WORKER].count == 0)
            diag_help(diag_error(builder->decoder->diags, member_place(builder->sections[0].at),
                                 "the mpi backend has no master, so there has to be a worker"),
                      "add `n_workers: 1`");
        return;
    }
    if (!refused)
        return;
    if (spec->framework != FRAMEWORK_NONE && !framework_facts(spec->framework)->may_be_masterless) {
        diag_help(diag_error(builder->decoder->diags, member_place(refused),
                             "%s always has a master", framework_facts(spec->framework)->name),
                  "only tensorflow can do without: worker 0 is then the chief");
        return;
    }
    if (spec->roles[ROLE_WORKER].count == 0)
        diag_error(builder->decoder->diags, member_place(refused),
                   "without a master there has to be a worker");
    if (!environment)
        return;
    refuse_masters_own(builder, environment->pod.resources.at, refused);
    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++)
        if (!attribute_is_shared(i))
            refuse_masters_own(builder, environment->pod.given[i].at, refused);
}

/* ---- what all tasks share ---- */

/* A role that says nothing else of it gets what the environment gives to all. */
static void inherit_shared(struct spec *spec) {
    for (enum role role = ROLE_WORKER; role < ROLE_COUNT; role++)
        for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++)
            if (attribute_is_shared(i) && !spec->roles[role].defaults.given[i].at)
                spec->roles[role].defaults.given[i] = spec->master.given[i];
}

/* ---- all of it ---- */

static void check_size(struct builder *builder) {
    struct spec *spec = builder->spec;
    uint64_t total = (uint64_t)spec->roles[ROLE_WORKER].count + spec->roles[ROLE_PS].count;
    const struct member *at = builder->count_at[ROLE_WORKER] ? builder->count_at[ROLE_WORKER]
                                                             : builder->count_at[ROLE_PS];

    if (total + spec->has_master > TASKS_MAX && at)
        diag_error(builder->decoder->diags, member_place(at), "a run may have at most %d tasks",
                   TASKS_MAX);
    if (spec->framework == FRAMEWORK_MXNET && spec->roles[ROLE_WORKER].count > 0 &&
        spec->roles[ROLE_PS].count == 0)
        diag_help(diag_warning(builder->decoder->diags, member_place(at),
                               "mxnet workers without a parameter server have nobody to talk to"),
                  "add `n_ps: 1`, or name the framework that you mean: pytorch and horovod have "
                  "none");
}

void topology_build(struct decoder *decoder, const struct file_fields *file, struct spec *spec) {
    struct builder builder = { .decoder = decoder, .spec = spec };
    const struct environment_fields *environment = file->environment.object;

    collect_sections(&builder, environment);
    settle_framework(&builder, file->framework.at);
    for (enum role role = ROLE_WORKER; role < ROLE_COUNT; role++)
        build_role(&builder, role);
    settle_master(&builder, environment);
    check_size(&builder);
    spec->master_resources = resources_none;
    if (environment) {
        spec->master = pod_of(decoder, environment);
        inherit_shared(spec);
        spec->master_resources = resources_build(decoder, &environment->pod.resources);
        warn_of_idle_gpus(&builder, &spec->master_resources, &environment->pod.resources);
    }
    /* Without workers and servers there is one task, and TensorFlow and MXNet would wait for
     * the others for ever if they were told of a cluster. */
    if (spec->roles[ROLE_WORKER].count + spec->roles[ROLE_PS].count == 0 &&
        (spec->framework == FRAMEWORK_TENSORFLOW || spec->framework == FRAMEWORK_MXNET))
        spec->framework = FRAMEWORK_NONE;
    VEC_RELEASE(&builder.entries);
}
