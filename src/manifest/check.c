/* SPDX-License-Identifier: Apache-2.0 */
/* What no pod could be given: said before anything is created, with its place in the file. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "codec/number.h"
#include "manifest/build.h"

enum { LABEL_MAX = 63, SUBDOMAIN_MAX = 253 };

static bool all_in(const char *text, size_t n, const char *set) {
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr(set, text[i]))
            return false;
    return true;
}

/* Letters, digits, `-`, `_` and `.`, with a letter or digit at both ends. */
static bool is_label_value(const char *text) {
    size_t n = strlen(text);

    return n == 0 || (n <= LABEL_MAX && all_in(text, n, "-_.") && isalnum((unsigned char)text[0]) &&
                      isalnum((unsigned char)text[n - 1]));
}

static bool is_subdomain(const char *text) {
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i++)
        if (isupper((unsigned char)text[i]))
            return false;
    return n > 0 && n <= SUBDOMAIN_MAX && all_in(text, n, "-.") &&
           isalnum((unsigned char)text[0]) && isalnum((unsigned char)text[n - 1]);
}

/* The name of a namespace: a subdomain of one part. */
static bool is_dns_label(const char *text) {
    return is_subdomain(text) && strlen(text) <= LABEL_MAX && !strchr(text, '.');
}

static bool is_label_key(const char *key) {
    const char *slash = strchr(key, '/'), *name = slash ? slash + 1 : key;
    char prefix[SUBDOMAIN_MAX + 1];

    if (slash) {
        if ((size_t)(slash - key) >= sizeof prefix)
            return false;
        snprintf(prefix, sizeof prefix, "%.*s", (int)(slash - key), key);
        if (!is_subdomain(prefix))
            return false;
    }
    return *name && is_label_value(name);
}

const char *scalar_text(const struct node *node, struct arena *arena) {
    char number[NUMBER_TEXT_MAX];

    switch ((enum node_kind)node->kind) {
    case NODE_TEXT: return node->text;
    case NODE_INT: return arena_printf(arena, "%" PRId64, node->integer);
    case NODE_BOOL: return node->truth ? "true" : "false";
    case NODE_FLOAT: number_format(node->number, number); return arena_printf(arena, "%s", number);
    case NODE_NULL:
    case NODE_LIST:
    case NODE_MAP:
    case NODE_KIND_COUNT: break;
    }
    return NULL;
}

static const char *const reserved_prefixes[] = { "myelin/", "training.kubeflow.org/",
                                                 MANIFEST_LABEL_MANAGED };

static bool is_reserved(enum attribute attribute, const char *key) {
    for (size_t i = 0; attribute == ATTRIBUTE_LABELS && i < ARRAY_LEN(reserved_prefixes); i++)
        if (strncmp(key, reserved_prefixes[i], strlen(reserved_prefixes[i])) == 0)
            return true;
    return attribute != ATTRIBUTE_NODE_SELECTOR && gang_is_mark(key);
}

/* Labels, annotations and node selectors: names to texts. */
static void check_pairs(struct build *build, enum attribute attribute, const struct node *map) {
    bool is_annotation = attribute == ATTRIBUTE_ANNOTATIONS;

    for (uint32_t i = 0; map && i < map->count; i++) {
        const struct member *member = &map->members[i];
        const char *value = scalar_text(&member->value, build->arena);

        if (!build_is_new(build, member_place(member)))
            continue;
        if (!is_label_key(member->key))
            diag_help(diag_error(build->diags, member_place(member),
                                 "`%.100s` is no name that Kubernetes takes in `%s`", member->key,
                                 attribute_name(attribute)),
                      "letters, digits, `-`, `_` and `.`, at most %d, and a domain with a slash "
                      "before it if need be",
                      LABEL_MAX);
        else if (!value || (!is_annotation && !is_label_value(value)))
            diag_help(diag_error(build->diags, member_place(member),
                                 "the value of `%.100s` is none that Kubernetes takes in `%s`",
                                 member->key, attribute_name(attribute)),
                      is_annotation ? "it takes text"
                                    : "it takes at most %d letters, digits, `-`, `_` and `.`",
                      LABEL_MAX);
        else if (is_reserved(attribute, member->key))
            diag_help(diag_error(build->diags, member_place(member),
                                 "the %s `%.100s` is not the file's to give",
                                 is_annotation ? "annotation" : "label", member->key),
                      "runs are found and placed by it: choose another name");
    }
}

static void check_names(struct build *build, enum attribute attribute, const struct node *list) {
    for (uint32_t i = 0; list && i < list->count; i++)
        if (!is_subdomain(list->items[i].text) && build_is_new(build, node_place(&list->items[i])))
            diag_help(diag_error(build->diags, node_place(&list->items[i]),
                                 "`%.100s` is no name of an object on Kubernetes",
                                 list->items[i].text),
                      "`%s` takes names of lower-case letters, digits, `-` and `.`",
                      attribute_name(attribute));
}

static void check_volumes(struct build *build, enum attribute attribute, const char *section,
                          const struct volume_settings *volumes, uint32_t n,
                          const struct node *list) {
    for (uint32_t i = 0; list && i < list->count; i++) {
        const struct node *name = &list->items[i];

        if (!volume_named(volumes, n, name->text) && build_is_new(build, node_place(name)))
            diag_help(diag_error(build->diags, node_place(name),
                                 "`%s` names `%.100s`, and the settings have no such volume",
                                 attribute_name(attribute), name->text),
                      "add `kubernetes: {%s: {%.100s: {claim: NAME}}}` to config.yml", section,
                      name->text);
    }
}

/* A device is given whole, to one task: the cluster refuses a request beside another limit. */
static void check_devices(struct build *build, const struct profile *profile) {
    for (enum resource i = RESOURCE_GPU; i <= RESOURCE_TPU; i++) {
        const struct resource_range *range = &profile->resources.of[i];

        if (range->requests == ABSENT || range->limits == ABSENT ||
            range->requests == range->limits || !profile->resources_at)
            continue;
        const struct node *at = node_get(profile->resources_at, resource_name(i));
        struct place place = node_place(at ? at : profile->resources_at);

        if (build_is_new(build, place))
            diag_help(diag_error(build->diags, place,
                                 "%s asks for %s and allows %s: Kubernetes gives whole devices",
                                 resource_name(i), milli_text(range->requests).text,
                                 milli_text(range->limits).text),
                      "give `requests` and `limits` the same value, or one of them");
    }
}

static void check_service_account(struct build *build, const struct node *account) {
    if (account && !is_subdomain(account->text) && build_is_new(build, node_place(account)))
        diag_help(diag_error(build->diags, node_place(account),
                             "`%.100s` is no name of a service account", account->text),
                  "names have lower-case letters, digits, `-` and `.`");
}

static void check_profile(struct build *build, const struct profile *profile) {
    const struct node *const *given = profile->given;
    const struct kubernetes_settings *cluster = build->cluster;

    check_pairs(build, ATTRIBUTE_LABELS, given[ATTRIBUTE_LABELS]);
    check_pairs(build, ATTRIBUTE_ANNOTATIONS, given[ATTRIBUTE_ANNOTATIONS]);
    check_pairs(build, ATTRIBUTE_NODE_SELECTOR, given[ATTRIBUTE_NODE_SELECTOR]);
    check_names(build, ATTRIBUTE_IMAGE_PULL_SECRETS, given[ATTRIBUTE_IMAGE_PULL_SECRETS]);
    check_names(build, ATTRIBUTE_SECRET_REFS, given[ATTRIBUTE_SECRET_REFS]);
    check_names(build, ATTRIBUTE_CONFIG_MAP_REFS, given[ATTRIBUTE_CONFIG_MAP_REFS]);
    check_volumes(build, ATTRIBUTE_DATA_REFS, "data", cluster->data, cluster->n_data,
                  given[ATTRIBUTE_DATA_REFS]);
    check_volumes(build, ATTRIBUTE_ARTIFACT_REFS, "artifacts", cluster->artifacts,
                  cluster->n_artifacts, given[ATTRIBUTE_ARTIFACT_REFS]);
    check_service_account(build, given[ATTRIBUTE_SERVICE_ACCOUNT]);
    check_devices(build, profile);
}

/* What comes from the command line, which has no places. */
static void check_given(struct build *build) {
    const char *image = build->image, *namespace = build->out->namespace;

    if (image && (!*image || image[strcspn(image, " \t\r\n")] != '\0'))
        diag_help(diag_error_nowhere(build->diags, "`%.100s` is no name of an image", image),
                  "an image is named as in `registry.example.org/train:1`");
    if (namespace && !is_dns_label(namespace))
        diag_help(diag_error_nowhere(build->diags, "`%.100s` is no name of a namespace", namespace),
                  "names have at most %d lower-case letters, digits and `-`", LABEL_MAX);
}

/* They are here, and stay here. */
static void check_earlier(struct build *build) {
    const struct earlier_runs *earlier = &build->plan->earlier;
    const struct node *runs = earlier->jobs ? earlier->jobs : earlier->experiments;

    if (runs)
        diag_help(diag_error(build->diags, node_place(runs),
                             "pods cannot read the outputs of earlier runs"),
                  "put what they need on a volume, and name it in `data_refs`");
}

void pods_check(struct build *build) {
    const struct profile *last = NULL;

    check_given(build);
    check_earlier(build);
    for (uint32_t i = 0; i < build->plan->n_tasks; i++) {
        if (build->plan->tasks[i].profile != last)
            check_profile(build, build->plan->tasks[i].profile);
        last = build->plan->tasks[i].profile;
    }
}
