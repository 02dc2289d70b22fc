/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/diag.h"

#include <stdlib.h>
#include <string.h>

#include "codec/utf8.h"
#include "codec/visible.h"

enum {
    SHOWN_LINE_MAX = 160, /* bytes of a source line that are shown: a file may be one long line */
};

struct diags *diags_new(void) {
    struct diags *diags = calloc(1, sizeof *diags);

    if (!diags)
        abort();
    diags->beyond.arena = &diags->arena;
    return diags;
}

void diags_free(struct diags *diags) {
    if (!diags)
        return;
    arena_release(&diags->arena);
    free(diags);
}

static struct diag *add(struct diags *diags, enum severity severity) {
    struct diag *diag = diags->len < DIAGS_MOST ? &diags->list[diags->len++] : &diags->beyond;

    *(severity == SEVERITY_ERROR ? &diags->errors : &diags->warnings) += 1;
    *diag = (struct diag){ .severity = severity, .arena = &diags->arena };
    return diag;
}

/* Past the list nothing is kept, so that a file of a million mistakes costs no memory. */
static bool is_kept(const struct diags *diags, const struct diag *diag) {
    return diag != &diags->beyond;
}

#define ADD(severity_, has_place_, place_)                                                         \
    struct diag *diag = add(diags, severity_);                                                     \
    va_list args;                                                                                  \
    va_start(args, fmt);                                                                           \
    if (is_kept(diags, diag))                                                                      \
        diag->message = arena_vprintf(diag->arena, fmt, args);                                     \
    else                                                                                           \
        diag->arena = NULL;                                                                        \
    va_end(args);                                                                                  \
    diag->has_place = has_place_;                                                                  \
    diag->place = place_;                                                                          \
    return diag

struct diag *diag_error(struct diags *diags, struct place place, const char *fmt, ...) {
    ADD(SEVERITY_ERROR, true, place);
}

struct diag *diag_warning(struct diags *diags, struct place place, const char *fmt, ...) {
    ADD(SEVERITY_WARNING, true, place);
}

struct diag *diag_error_nowhere(struct diags *diags, const char *fmt, ...) {
    ADD(SEVERITY_ERROR, false, (struct place){ 0 });
}

struct diag *diag_warning_nowhere(struct diags *diags, const char *fmt, ...) {
    ADD(SEVERITY_WARNING, false, (struct place){ 0 });
}

void diags_make_errors(struct diags *diags) {
    for (size_t i = 0; i < diags->len; i++)
        diags->list[i].severity = SEVERITY_ERROR;
    diags->errors += diags->warnings;
    diags->warnings = 0;
}

void diag_append(struct diag *diag, const char *text) {
    if (diag->arena)
        diag->message = arena_printf(diag->arena, "%s%s", diag->message, text);
}

void diag_note(struct diag *diag, struct place place, const char *fmt, ...) {
    va_list args;

    if (!diag->arena)
        return;
    va_start(args, fmt);
    diag->note = arena_vprintf(diag->arena, fmt, args);
    va_end(args);
    diag->note_place = place;
}

void diag_help(struct diag *diag, const char *fmt, ...) {
    va_list args;

    if (!diag->arena)
        return;
    va_start(args, fmt);
    diag->help = arena_vprintf(diag->arena, fmt, args);
    va_end(args);
}

/* ---- as text ---- */

struct paint {
    const char *error, *warning, *note, *help, *frame, *bold, *off;
};
static const struct paint paints[] = {
    [DIAG_PLAIN] = { "", "", "", "", "", "", "" },
    [DIAG_COLOURED] = { "\033[1;31m", "\033[1;33m", "\033[1;36m", "\033[1;32m", "\033[34m",
                        "\033[1m", "\033[0m" },
};

/* Bytes of the character that starts here, and whether a terminal may be shown them as they are. */
static size_t character(const char *text, size_t n, bool *shown) {
    const size_t length = utf8_length(text, n);

    *shown = length > 0 && !utf8_is_hidden(utf8_point(text, length));
    return length ? length : 1;
}

/* Shows a text of the user so that it stays on its line, columns stay true and a terminal takes no
 * orders from it: blanks for tabs and newlines, dots for other controls and for what is no UTF-8.
 */
static int show_text(const char *text, size_t n, struct buf *out, struct error *err) {
    for (size_t i = 0, length; i < n; i += length) {
        bool shown;
        const char *as = text + i;

        length = character(as, n - i, &shown);
        if (!shown)
            as = *as == '\t' || *as == '\n' ? " " : ".";
        if (buf_append(out, as, shown ? length : 1, err))
            return -1;
    }
    return 0;
}

static size_t characters(const char *text, size_t n) {
    size_t count = 0;
    bool shown;

    for (size_t i = 0; i < n; i += character(text + i, n - i, &shown))
        count++;
    return count;
}

static int repeat(char c, size_t n, struct buf *out, struct error *err) {
    while (n-- > 0)
        if (buf_append(out, &c, 1, err))
            return -1;
    return 0;
}

/* The source line of a place with carets below it, cut to a window when the line is long. */
static int show_source(const struct source *source, struct place place, uint32_t line, char mark,
                       const char *colour, const struct paint *paint, struct buf *out,
                       struct error *err) {
    size_t offset = place.offset < source->len ? place.offset : source->len;
    size_t start = offset, end = offset, span, length = place.length;

    while (start > 0 && source->text[start - 1] != '\n')
        start--;
    while (end < source->len && source->text[end] != '\n' && source->text[end] != '\r')
        end++;
    if (offset - start > SHOWN_LINE_MAX / 2) {
        start = offset - SHOWN_LINE_MAX / 2;
        while (start < offset && ((unsigned char)source->text[start] & 0xc0) == 0x80)
            start++;
    }
    if (end - start > SHOWN_LINE_MAX) {
        end = start + SHOWN_LINE_MAX;
        while (end > offset && ((unsigned char)source->text[end] & 0xc0) == 0x80)
            end--;
    }
    if (length > end - offset)
        length = end > offset ? end - offset : 0;
    span = characters(source->text + offset, length);

    if (buf_printf(out, err, "%s%5u |%s ", paint->frame, line, paint->off) ||
        show_text(source->text + start, end - start, out, err) ||
        buf_printf(out, err, "\n%s      |%s ", paint->frame, paint->off) ||
        repeat(' ', characters(source->text + start, offset - start), out, err) ||
        buf_append(out, colour, strlen(colour), err) || repeat(mark, span ? span : 1, out, err))
        return -1;
    return buf_printf(out, err, "%s\n", paint->off);
}

/* A name or a sentence, which may quote what the user wrote: no columns have to stay true there. */
static int show_words(const char *words, struct buf *out, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    const char *shown = visible_text(&arena, words, 0);

    return buf_append(out, shown, strlen(shown), err);
}

/* "file:line:column: " of a place. */
static int show_place(const struct source *source, struct position at, const struct paint *paint,
                      struct buf *out, struct error *err) {
    if (buf_append(out, paint->bold, strlen(paint->bold), err) ||
        show_words(source->name, out, err))
        return -1;
    return buf_printf(out, err, ":%u:%u:%s ", at.line, at.column, paint->off);
}

/* "error: what is wrong", and the end of the line. */
static int show_sentence(const char *word, const char *colour, const char *sentence,
                         const char *weight, const struct paint *paint, struct buf *out,
                         struct error *err) {
    if (buf_printf(out, err, "%s%s:%s %s", colour, word, paint->off, weight) ||
        show_words(sentence, out, err))
        return -1;
    return buf_printf(out, err, "%s\n", *weight ? paint->off : "");
}

static int format_one(const struct diag *diag, const struct sources *sources,
                      const struct paint *paint, struct buf *out, struct error *err) {
    bool is_error = diag->severity == SEVERITY_ERROR;
    const char *colour = is_error ? paint->error : paint->warning;
    const char *word = is_error ? "error" : "warning";

    if (!diag->has_place) {
        if (show_sentence(word, colour, diag->message, paint->bold, paint, out, err))
            return -1;
    } else {
        const struct source *source = &sources->list.items[diag->place.source];
        struct position at = sources_position(sources, diag->place);

        if (show_place(source, at, paint, out, err) ||
            show_sentence(word, colour, diag->message, paint->bold, paint, out, err) ||
            show_source(source, diag->place, at.line, '^', colour, paint, out, err))
            return -1;
    }
    if (diag->note) {
        const struct source *source = &sources->list.items[diag->note_place.source];
        struct position at = sources_position(sources, diag->note_place);

        if (show_place(source, at, paint, out, err) ||
            show_sentence("note", paint->note, diag->note, "", paint, out, err) ||
            show_source(source, diag->note_place, at.line, '-', paint->note, paint, out, err))
            return -1;
    }
    if (!diag->help)
        return 0;
    if (buf_printf(out, err, "      "))
        return -1;
    return show_sentence("= help", paint->help, diag->help, "", paint, out, err);
}

int diags_format(const struct diags *diags, const struct sources *sources, enum diag_style style,
                 struct buf *out, struct error *err) {
    size_t more = diags->errors + diags->warnings - diags->len;

    for (size_t i = 0; i < diags->len; i++)
        if (format_one(&diags->list[i], sources, &paints[style], out, err))
            return -1;
    if (more > 0)
        return buf_printf(out, err, "… and %zu more\n", more);
    return 0;
}

static void write_place(struct json *json, const struct sources *sources, struct place place) {
    const struct source *source = &sources->list.items[place.source];
    struct position at = sources_position(sources, place);

    json_key(json, "file");
    json_text(json, source->name);
    json_key(json, "line");
    json_int(json, at.line);
    json_key(json, "column");
    json_int(json, at.column);
    json_key(json, "length");
    json_int(json, (int64_t)place.length);
}

void diags_write_json(const struct diags *diags, const struct sources *sources, struct json *json) {
    json_array(json);
    for (size_t i = 0; i < diags->len; i++) {
        const struct diag *diag = &diags->list[i];

        json_object(json);
        json_key(json, "severity");
        json_text(json, diag->severity == SEVERITY_ERROR ? "error" : "warning");
        json_key(json, "message");
        json_text(json, diag->message);
        if (diag->has_place)
            write_place(json, sources, diag->place);
        if (diag->help) {
            json_key(json, "help");
            json_text(json, diag->help);
        }
        if (diag->note) {
            json_key(json, "note");
            json_object(json);
            json_key(json, "message");
            json_text(json, diag->note);
            write_place(json, sources, diag->note_place);
            json_end(json);
        }
        json_end(json);
    }
    json_end(json);
}
