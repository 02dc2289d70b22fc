/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/yaml.h"

#include <assert.h>
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

#include "codec/intern.h"
#include "codec/scalar.h"
#include "codec/utf8.h"
#include "codec/yaml_error.h"

enum { KEY_LENGTH_MAX = UINT16_MAX };

/* A list or mapping that is being read. Its members wait in reader.pending from `first` on. */
struct frame {
    enum node_kind kind;
    struct place place;
    size_t first;
    size_t weight;        /* nodes that a walk would meet in it */
    size_t anchor;        /* number of its anchor + 1, or 0 */
    bool has_key;         /* a key waits for its value */
    bool has_merge;       /* `<<` is among its keys */
    struct member member; /* with that key */
};

struct anchor {
    struct node node;
    size_t weight;
    bool ready; /* not while its own list or mapping is still open */
};

struct reader {
    const struct sources *sources;
    uint16_t source;
    struct arena *arena;
    struct diags *diags;
    struct interns interns;
    struct frame frames[YAML_DEPTH_MAX];
    size_t depth;
    VEC(struct member) pending; /* of all open frames; list items have no key */
    VEC(struct anchor) anchors;
    struct interns anchor_names; /* each is seen_at the number + 1 of the newest that bears it */
    uint32_t n_maps;
    size_t documents;
    uint32_t last_end; /* where the last token ended: the place of an empty value */
    struct node root;
    bool has_root;
};

static struct place token_place(struct reader *reader, struct fy_token *token) {
    const struct fy_mark *start = token ? fy_token_start_mark(token) : NULL;
    const struct fy_mark *end = token ? fy_token_end_mark(token) : NULL;

    if (!start || !end)
        return (struct place){ reader->last_end, 0, reader->source };
    reader->last_end = (uint32_t)end->input_pos;
    return (struct place){ (uint32_t)start->input_pos,
                           (uint32_t)(end->input_pos - start->input_pos), reader->source };
}

/* With the quotes around it, where there are some. */
static struct place scalar_place(struct reader *reader, struct fy_token *token) {
    struct place place = token_place(reader, token);
    enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;

    if (style != FYSS_SINGLE_QUOTED && style != FYSS_DOUBLE_QUOTED)
        return place;
    reader->last_end++;
    return (struct place){ place.offset - 1, place.length + 2, place.source };
}

static int add_value(struct reader *reader, struct node node, size_t weight);

/* ---- anchors ---- */

static size_t open_anchor(struct reader *reader, struct fy_token *token) {
    size_t len;
    const char *name;

    if (!token)
        return 0;
    name = fy_token_get_text(token, &len);
    *VEC_PUSH(&reader->anchors) = (struct anchor){ 0 };
    intern(&reader->anchor_names, name, len)->seen_at = (uint32_t)reader->anchors.len;
    return reader->anchors.len;
}

static void close_anchor(struct reader *reader, size_t anchor, const struct node *node,
                         size_t weight) {
    if (anchor == 0)
        return;
    reader->anchors.items[anchor - 1].node = *node;
    reader->anchors.items[anchor - 1].weight = weight;
    reader->anchors.items[anchor - 1].ready = true;
}

static int read_alias(struct reader *reader, struct fy_token *token) {
    size_t len;
    const char *text = fy_token_get_text(token, &len);
    const struct interned *name = intern(&reader->anchor_names, text, len);
    struct place place = token_place(reader, token);
    const struct anchor *anchor;

    if (name->seen_at == 0) {
        diag_error(reader->diags, place, "no anchor &%.100s stands before this alias", name->text);
        return -1;
    }
    anchor = &reader->anchors.items[name->seen_at - 1];
    if (!anchor->ready) {
        diag_error(reader->diags, place, "the alias *%.100s is inside what it stands for",
                   name->text);
        return -1;
    }
    return add_value(reader, anchor->node, anchor->weight);
}

/* ---- scalars ---- */

static bool tag_is(const char *tag, size_t len, const char *name) {
    static const char prefix[] = "tag:yaml.org,2002:";
    size_t n = sizeof prefix - 1;

    return len == n + strlen(name) && memcmp(tag, prefix, n) == 0 &&
           memcmp(tag + n, name, len - n) == 0;
}

static int unknown_tag(struct reader *reader, struct fy_token *token) {
    struct place place = token_place(reader, token);
    size_t len;
    const char *tag = fy_token_get_text(token, &len);

    diag_error(reader->diags, place, "the tag `%.*s` is not known here", (int)(len < 80 ? len : 80),
               tag);
    return -1;
}

/* Explicit tags that a PyYAML safe loader takes for scalars; the value must fit the tag. */
static int apply_tag(struct reader *reader, struct fy_token *token, struct node *node,
                     const char *text, size_t text_len) {
    static const struct {
        const char *name;
        enum node_kind kind;
    } tags[] = {
        { "int", NODE_INT }, { "float", NODE_FLOAT }, { "bool", NODE_BOOL }, { "null", NODE_NULL }
    };
    size_t len;
    const char *tag = fy_token_get_text(token, &len);

    if (tag_is(tag, len, "str") || (len == 1 && tag[0] == '!')) {
        *node = node_text(text, text_len, node_place(node));
        return 0;
    }
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (!tag_is(tag, len, tags[i].name))
            continue;
        *node = scalar_resolve(text, text_len, node_place(node));
        if (tags[i].kind == NODE_FLOAT && node->kind == NODE_INT)
            *node = node_float((double)node->integer, node_place(node));
        if (node->kind == tags[i].kind)
            return 0;
        diag_error(reader->diags, node_place(node), "this is %s, not what the tag !!%s says",
                   node_kind_name(node), tags[i].name);
        return -1;
    }
    return unknown_tag(reader, token);
}

static int set_key(struct reader *reader, struct frame *frame, const char *text, size_t len,
                   bool plain, struct place place) {
    if (len > KEY_LENGTH_MAX) {
        diag_error(reader->diags, place, "a key may have at most %d bytes", KEY_LENGTH_MAX);
        return -1;
    }
    frame->member = (struct member){
        .key = intern(&reader->interns, text, len)->text,
        .key_offset = place.offset,
        .key_length = (uint16_t)(place.length < KEY_LENGTH_MAX ? place.length : KEY_LENGTH_MAX),
        .key_source = place.source,
    };
    frame->has_key = true;
    if (plain && len == 2 && memcmp(text, "<<", 2) == 0)
        frame->has_merge = true;
    return 0;
}

static int read_scalar(struct reader *reader, const struct fy_event_scalar_data *scalar) {
    struct frame *frame = reader->depth ? &reader->frames[reader->depth - 1] : NULL;
    bool plain = !scalar->value || fy_token_scalar_style(scalar->value) == FYSS_PLAIN;
    size_t len = 0, anchor = open_anchor(reader, scalar->anchor);
    const char *text = scalar->value ? fy_token_get_text(scalar->value, &len) : "";
    struct place place = scalar_place(reader, scalar->value);
    struct node node;

    if (!text) {
        text = "";
        len = 0;
    }
    if (len && memchr(text, '\0', len)) {
        diag_error(reader->diags, place, "text may not hold the character \\0");
        return -1;
    }
    if (frame && frame->kind == NODE_MAP && !frame->has_key) {
        node = node_text(intern(&reader->interns, text, len)->text, len, place);
        close_anchor(reader, anchor, &node, 1);
        return set_key(reader, frame, text, len, plain, place);
    }
    node = plain ? scalar_resolve(text, len, place) : node_text(text, len, place);
    if (scalar->tag && apply_tag(reader, scalar->tag, &node, text, len))
        return -1;
    if (node.kind == NODE_TEXT)
        node.text = len <= 32 ? intern(&reader->interns, text, len)->text
                              : arena_text(reader->arena, text, len);
    if (!plain)
        node.flags = NODE_QUOTED;
    close_anchor(reader, anchor, &node, 1);
    return add_value(reader, node, 1);
}

/* ---- lists and mappings ---- */

/* A list or mapping may say that it is one, and nothing else. */
static int check_tag(struct reader *reader, enum node_kind kind, struct fy_token *token) {
    size_t len;
    const char *tag = fy_token_get_text(token, &len);

    if (tag_is(tag, len, kind == NODE_MAP ? "map" : "seq") || (len == 1 && tag[0] == '!'))
        return 0;
    return unknown_tag(reader, token);
}

static int open_frame(struct reader *reader, enum node_kind kind, struct fy_token *anchor,
                      struct fy_token *tag, struct fy_token *start) {
    struct frame *parent = reader->depth ? &reader->frames[reader->depth - 1] : NULL;
    struct place place = token_place(reader, start);

    if (tag && check_tag(reader, kind, tag))
        return -1;
    if (parent && parent->kind == NODE_MAP && !parent->has_key) {
        diag_error(reader->diags, place, "a key has to be text, not %s",
                   kind == NODE_MAP ? "a mapping" : "a list");
        return -1;
    }
    if (reader->depth == YAML_DEPTH_MAX) {
        diag_error(reader->diags, place, "lists and mappings are nested deeper than %d levels",
                   YAML_DEPTH_MAX);
        return -1;
    }
    reader->frames[reader->depth++] = (struct frame){
        .kind = kind,
        .place = place,
        .first = reader->pending.len,
        .weight = 1,
        .anchor = open_anchor(reader, anchor),
    };
    return 0;
}

/* Adds the members of one merged mapping behind n others; keys that are there already win. */
static size_t merge_one(const struct node *from, struct member *into, size_t n, uint32_t map) {
    for (uint32_t i = 0; i < from->count; i++) {
        struct interned *key = interned_of(from->members[i].key);

        if (key->seen_in == map)
            continue;
        key->seen_in = map;
        into[n++] = from->members[i];
    }
    return n;
}

/* A mapping with a `<<` key: what that names comes in where the mapping itself is silent. */
static int close_merged_map(struct reader *reader, const struct member *members, size_t n,
                            struct place place, struct node *out) {
    const struct member *merge = NULL;
    const struct node *from;
    uint32_t n_from, map = ++reader->n_maps;
    struct member *all;
    size_t room = n, len = 0;

    for (size_t i = 0; i < n; i++)
        if (strcmp(members[i].key, "<<") == 0)
            merge = &members[i];
    assert(merge);
    from = merge->value.kind == NODE_LIST ? merge->value.items : &merge->value;
    n_from = merge->value.kind == NODE_LIST ? merge->value.count : 1;
    for (uint32_t i = 0; i < n_from; i++) {
        if (from[i].kind != NODE_MAP) {
            diag_error(reader->diags, member_place(merge),
                       "`<<` takes a mapping or a list of mappings, not %s",
                       node_kind_name(&from[i]));
            return -1;
        }
        room += from[i].count;
    }
    all = ARENA_ARRAY(reader->arena, struct member, room);
    for (size_t i = 0; i < n; i++)
        if (&members[i] != merge) {
            interned_of(members[i].key)->seen_in = map;
            all[len++] = members[i];
        }
    for (uint32_t i = 0; i < n_from; i++)
        len = merge_one(&from[i], all, len, map);
    *out = node_map(all, len, place);
    return 0;
}

/* The last of equal keys wins, as in PyYAML, but the writer is told. */
static size_t drop_duplicates(struct reader *reader, struct member *members, size_t n) {
    uint32_t map = ++reader->n_maps;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct interned *key = interned_of(members[i].key);

        if (key->seen_in != map) {
            key->seen_in = map;
            key->seen_at = (uint32_t)kept;
            members[kept++] = members[i];
            continue;
        }
        struct diag *diag =
            diag_warning(reader->diags, member_place(&members[i]),
                         "`%.100s` is given twice; this one counts", members[i].key);

        diag_note(diag, member_place(&members[key->seen_at]), "the `%.100s` before it is here",
                  members[i].key);
        members[key->seen_at] = members[i];
    }
    return kept;
}

static int close_frame(struct reader *reader) {
    struct frame *frame = &reader->frames[--reader->depth];
    struct member *pending = reader->pending.items ? reader->pending.items + frame->first : NULL;
    size_t n = reader->pending.len - frame->first;
    struct place place = frame->place;
    struct node node;

    if (reader->last_end > place.offset)
        place.length = reader->last_end - place.offset;
    if (frame->kind == NODE_MAP) {
        n = drop_duplicates(reader, pending, n);
        if (!frame->has_merge)
            node = node_map(arena_copy(reader->arena, pending, n * sizeof *pending), n, place);
        else if (close_merged_map(reader, pending, n, place, &node))
            return -1;
    } else {
        struct node *items = ARENA_ARRAY(reader->arena, struct node, n);

        for (size_t i = 0; i < n; i++)
            items[i] = pending[i].value;
        node = node_list(items, n, place);
    }
    reader->pending.len = frame->first;
    close_anchor(reader, frame->anchor, &node, frame->weight);
    return add_value(reader, node, frame->weight);
}

/* A finished value goes to what encloses it. */
static int add_value(struct reader *reader, struct node node, size_t weight) {
    struct frame *frame;

    if (reader->depth == 0) {
        reader->root = node;
        reader->has_root = true;
        return 0;
    }
    frame = &reader->frames[reader->depth - 1];
    frame->weight += weight;
    if (frame->weight > YAML_NODES_MAX) {
        diag_error(reader->diags, node_place(&node),
                   "the document has more than %d values, aliases counted as what they stand for",
                   YAML_NODES_MAX);
        return -1;
    }
    if (frame->kind == NODE_MAP && !frame->has_key) {
        if (node.kind != NODE_TEXT) {
            diag_error(reader->diags, node_place(&node), "a key has to be text, not %s",
                       node_kind_name(&node));
            return -1;
        }
        return set_key(reader, frame, node.text, node.count, false, node_place(&node));
    }
    frame->member.value = node;
    *VEC_PUSH(&reader->pending) = frame->member;
    frame->has_key = false;
    return 0;
}

/* ---- events ---- */

static int refuse_second_document(struct reader *reader, struct fy_token *token) {
    diag_help(
        diag_error(reader->diags, token_place(reader, token), "a second document starts here"),
        "a polyaxonfile is one document: remove the `---` or `...`, or use several files");
    return -1;
}

static int read_event(struct reader *reader, struct fy_event *event) {
    /* A document without `---` starts where its first value does. */
    if (reader->documents > 1 && event->type != FYET_DOCUMENT_START)
        return refuse_second_document(reader, fy_event_get_token(event));
    switch (event->type) {
    case FYET_DOCUMENT_START:
        if (reader->documents++ == 0 || !event->document_start.document_start)
            return 0;
        return refuse_second_document(reader, event->document_start.document_start);
    case FYET_SCALAR: return read_scalar(reader, &event->scalar);
    case FYET_ALIAS: return read_alias(reader, event->alias.anchor);
    case FYET_SEQUENCE_START:
        return open_frame(reader, NODE_LIST, event->sequence_start.anchor,
                          event->sequence_start.tag, event->sequence_start.sequence_start);
    case FYET_MAPPING_START:
        return open_frame(reader, NODE_MAP, event->mapping_start.anchor, event->mapping_start.tag,
                          event->mapping_start.mapping_start);
    case FYET_SEQUENCE_END:
    case FYET_MAPPING_END: return close_frame(reader);
    case FYET_NONE:
    case FYET_STREAM_START:
    case FYET_STREAM_END:
    case FYET_DOCUMENT_END: return 0;
    }
    return 0;
}

static int check_bytes(struct reader *reader) {
    const struct source *source = &reader->sources->list.items[reader->source];
    const char *nul = source->len ? memchr(source->text, '\0', source->len) : NULL;
    size_t valid = utf8_valid_prefix(source->text, source->len);

    if (source->len > YAML_BYTES_MAX) {
        diag_error_nowhere(reader->diags, "%s is larger than %d MiB", source->name,
                           YAML_BYTES_MAX >> 20);
        return -1;
    }
    if (valid < source->len) {
        diag_help(diag_error(reader->diags, (struct place){ (uint32_t)valid, 1, reader->source },
                             "this byte (0x%02x) is not UTF-8", (unsigned char)source->text[valid]),
                  "save the file as UTF-8");
        return -1;
    }
    if (nul) {
        diag_help(diag_error(reader->diags,
                             (struct place){ (uint32_t)(nul - source->text), 1, reader->source },
                             "a NUL byte stands here"),
                  "a polyaxonfile is text: is this the right file?");
        return -1;
    }
    return 0;
}

static int parse(struct reader *reader, struct fy_parser *parser, struct fy_diag *diag) {
    const struct source *source = &reader->sources->list.items[reader->source];
    struct fy_event *event;
    int status = 0;

    if (fy_parser_set_string(parser, source->text, source->len))
        abort(); /* only for want of memory */
    while (status == 0 && (event = fy_parser_parse(parser))) {
        status = read_event(reader, event);
        fy_parser_event_free(parser, event);
    }
    if (status == 0 && fy_parser_get_stream_error(parser)) {
        yaml_error_explain(diag, reader->sources, reader->source, reader->diags);
        status = -1;
    }
    return status;
}

int yaml_read(const struct sources *sources, uint16_t source, struct arena *arena,
              struct diags *diags, struct node *root) {
    struct reader reader = { .sources = sources,
                             .source = source,
                             .arena = arena,
                             .diags = diags,
                             .interns = { .arena = arena },
                             .anchor_names = { .arena = arena } };
    struct fy_diag_cfg diag_config;
    struct fy_diag *diag;
    struct fy_parser *parser;
    int status;

    if (check_bytes(&reader))
        return -1;
    fy_diag_cfg_default(&diag_config);
    diag_config.fp = NULL;
    diag_config.colorize = false;
    diag = fy_diag_create(&diag_config);
    if (!diag)
        abort();
    fy_diag_set_collect_errors(diag, true);
    parser = fy_parser_create(&(struct fy_parse_cfg){
        .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_DEFAULT_VERSION_1_1 | FYPCF_JSON_NONE |
                 FYPCF_ALLOW_DUPLICATE_KEYS | FYPCF_SLOPPY_FLOW_INDENTATION |
                 FYPCF_DISABLE_DEPTH_LIMIT,
        .diag = diag });
    if (!parser)
        abort();
    status = parse(&reader, parser, diag);
    fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    if (status == 0)
        *root = reader.has_root ? reader.root : node_null((struct place){ 0, 0, source });
    VEC_RELEASE(&reader.pending);
    VEC_RELEASE(&reader.anchors);
    interns_release(&reader.interns);
    interns_release(&reader.anchor_names);
    return status;
}
