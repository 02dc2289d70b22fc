/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/elide.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "codec/visible.h"

static const char ellipsis[] = "…";

/* Bytes that all texts have in common, at their beginning and, of the rest, at their end. */
struct common {
    size_t before, behind;
};

static bool is_inside_character(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

static struct common find_common(const char *const *texts, size_t n) {
    struct common common = { SIZE_MAX, SIZE_MAX };
    const char *first = NULL;
    size_t first_n = 0;

    for (size_t i = 0; i < n; i++) {
        const size_t length = texts[i] ? strlen(texts[i]) : 0;
        size_t same = 0;

        if (!texts[i])
            continue;
        if (!first) {
            first = texts[i];
            first_n = length;
        }
        while (same < length && same < first_n && texts[i][same] == first[same])
            same++;
        common.before = same < common.before ? same : common.before;
    }
    while (first && common.before > 0 && is_inside_character(first[common.before]))
        common.before--;
    for (size_t i = 0; i < n; i++) {
        const size_t length = texts[i] ? strlen(texts[i]) : 0;
        size_t same = 0;

        if (!texts[i])
            continue;
        while (common.before + same < length && common.before + same < first_n &&
               texts[i][length - 1 - same] == first[first_n - 1 - same])
            same++;
        common.behind = same < common.behind ? same : common.behind;
    }
    while (first && common.behind > 0 && is_inside_character(first[first_n - common.behind]))
        common.behind--;
    return common;
}

/* Columns of the part of the text. */
static size_t columns_of(struct arena *arena, const char *text, size_t n) {
    return visible_columns(arena_text(arena, text, n));
}

/* So many of the last of n bytes as fit into the columns. */
static size_t last_that_fit(struct arena *arena, const char *text, size_t n, size_t columns) {
    size_t kept = 0;

    for (size_t more = 1; more <= n; more++)
        if (!is_inside_character(text[n - more]) &&
            columns_of(arena, text + n - more, more) <= columns)
            kept = more;
    return kept;
}

static const char *elide(struct arena *arena, const char *text, struct common common, size_t before,
                         size_t behind, size_t room) {
    const size_t n = strlen(text), middle = n - common.before - common.behind;
    const size_t shown = visible_fit(text + n - common.behind, common.behind, behind);
    const bool is_cut_before = before < common.before, is_cut_behind = shown < common.behind;
    const char *made = arena_printf(arena, "%s%.*s%s", is_cut_before ? ellipsis : "",
                                    (int)(before + middle + shown), text + common.before - before,
                                    is_cut_behind ? ellipsis : "");

    return visible_text(arena, made, room);
}

void elide_common(struct arena *arena, const char **texts, size_t n, size_t room) {
    const struct common common = find_common(texts, n);
    size_t widest = 0, middle = 0, spare, before = 0;
    const char *first = NULL;

    for (size_t i = 0; i < n; i++) {
        size_t columns;

        if (!texts[i])
            continue;
        first = first ? first : texts[i];
        columns = visible_columns(texts[i]);
        widest = columns > widest ? columns : widest;
        columns = columns_of(arena, texts[i] + common.before,
                             strlen(texts[i]) - common.before - common.behind);
        middle = columns > middle ? columns : middle;
    }
    if (widest <= room)
        return;
    spare = room > middle + 2 ? room - middle - 2 : 0; /* for what is common, beside two ellipses */
    before = last_that_fit(arena, first, common.before, spare * 2 / 3);
    spare -= columns_of(arena, first + common.before - before, before);
    for (size_t i = 0; i < n; i++)
        if (texts[i])
            texts[i] = elide(arena, texts[i], common, before, spare, room);
}
