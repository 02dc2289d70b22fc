/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/yaml_error.h"

#include <libfyaml.h>
#include <string.h>

/* A line of the source, taken apart: "   - index: 2" has its key `index` at `key`. */
struct line {
    size_t start, end;
    size_t key, key_end; /* equal: the line has no `key:` */
};

static struct line line_at(const struct source *source, size_t offset) {
    struct line line = { .start = offset, .end = offset };
    const char *text = source->text;
    size_t colon;

    while (line.start > 0 && text[line.start - 1] != '\n')
        line.start--;
    while (line.end < source->len && text[line.end] != '\n')
        line.end++;
    line.key = line.start;
    while (line.key < line.end &&
           (text[line.key] == ' ' ||
            (text[line.key] == '-' && line.key + 1 < line.end && text[line.key + 1] == ' ')))
        line.key++;
    for (colon = line.key; colon < line.end; colon++)
        if (text[colon] == ':' &&
            (colon + 1 == line.end || text[colon + 1] == ' ' || text[colon + 1] == '\r'))
            break;
    line.key_end = colon < line.end ? colon : line.key;
    return line;
}

static bool has_key(const struct line *line) {
    return line->key_end > line->key;
}

/* The next line with something on it besides blanks and comments. */
static bool next_line(const struct source *source, const struct line *line, struct line *out) {
    size_t offset = line->end;

    while (offset < source->len) {
        offset++;
        *out = line_at(source, offset);
        if (out->key < out->end && source->text[out->key] != '#' && source->text[out->key] != '\r')
            return true;
        offset = out->end;
    }
    return false;
}

static struct place key_place(const struct line *line, uint16_t source) {
    return (struct place){ (uint32_t)line->key, (uint32_t)(line->key_end - line->key), source };
}

/* `index: 2` and, deeper below it, `cpu:`: YAML takes the second line for a part of the
 * value 2. The writer meant two keys side by side. */
static bool explain_depth(const struct source *source, uint16_t number, size_t offset,
                          struct diags *diags) {
    struct line above = line_at(source, offset), below;
    size_t above_column = above.key - above.start, below_column;
    struct diag *diag;

    if (!has_key(&above) || offset < above.key_end || !next_line(source, &above, &below) ||
        !has_key(&below))
        return false;
    below_column = below.key - below.start;
    if (below_column <= above_column)
        return false;
    diag = diag_error(diags, key_place(&below, number),
                      "`%.*s` is indented deeper than `%.*s` above it, which has a value already",
                      (int)(below.key_end - below.key), source->text + below.key,
                      (int)(above.key_end - above.key), source->text + above.key);
    diag_note(diag, key_place(&above, number), "`%.*s` starts in column %zu",
              (int)(above.key_end - above.key), source->text + above.key, above_column + 1);
    diag_help(diag, "move this line, and what belongs to it, %zu column%s to the left",
              below_column - above_column, below_column - above_column == 1 ? "" : "s");
    return true;
}

/* libfyaml's sentences that mean little to someone who writes a polyaxonfile. */
static const struct {
    const char *theirs, *ours, *help;
    bool inside; /* their place is behind the opening quote */
} sentences[] = {
    { "invalid multiline plain key", "a key has to stand on one line of its own",
      "check the indentation of this line and of the next" },
    { "tab character may not be used as indentation", "a tab stands where YAML wants blanks",
      "indent with blanks only" },
    { "could not find expected ':'", "this line is no `key: value`",
      "add a colon and a blank, or indent the line if it belongs to the value above" },
    { "invalid value after mapping", "this line is no `key: value`",
      "add a colon and a blank, or indent the line if it belongs to the value above" },
    { "invalid nested block mapping on the same line", "a second `key:` follows on the same line",
      "put the value in quotes if `: ` belongs to it, else start a new line" },
    { "double-quoted scalar without closing quote", "the quote that opens here is never closed",
      "add the closing \"", .inside = true },
    { "single-quoted scalar without closing quote", "the quote that opens here is never closed",
      "add the closing '", .inside = true },
};

void yaml_error_explain(struct fy_diag *found, const struct sources *sources, uint16_t number,
                        struct diags *diags) {
    const struct source *source = &sources->list.items[number];
    void *iterator = NULL;
    const struct fy_diag_error *error = fy_diag_errors_iterate(found, &iterator);
    const struct fy_mark *mark = error && error->fyt ? fy_token_start_mark(error->fyt) : NULL;
    size_t offset = mark && mark->input_pos <= source->len ? mark->input_pos : source->len;
    struct place place = { (uint32_t)offset, offset < source->len, number };

    if (!error || !error->msg) {
        diag_error(diags, (struct place){ 0, 0, number }, "this is not valid YAML");
        return;
    }
    if (strcmp(error->msg, sentences[0].theirs) == 0 &&
        explain_depth(source, number, offset, diags))
        return;
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++)
        if (strcmp(error->msg, sentences[i].theirs) == 0) {
            if (sentences[i].inside && offset > 0)
                place.offset--;
            diag_help(diag_error(diags, place, "%s", sentences[i].ours), "%s", sentences[i].help);
            return;
        }
    diag_error(diags, place, "not valid YAML: %s", error->msg);
}
