/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/traceback.h"

#include <string.h>

#include "base/attr.h"

enum {
    PREFIX_LOOKAHEAD = 3, /* lines after the head among which the prefix must come again */
    STRANGERS_MOST = 64,  /* lines of others that a traceback may be mixed with */
    INDENT_OF_SOURCE = 4,
    LINE_NUMBER_MOST = 100 * 1000 * 1000,
};

static const char head_mark[] = "Traceback (most recent call last):";

/* How a line of a traceback is freed of its log's prefix. */
enum prefix_manner {
    PREFIX_NONE,
    PREFIX_EXACT,
    PREFIX_SHAPE, /* numbers may differ */
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* An exception group is drawn as a tree: '+' where the head is, '|' below it. */
static bool same_byte(char of_head, char c) {
    return of_head == c || (of_head == '+' && c == '|');
}

/* Whether the line begins with the prefix; *rest is what follows. A blank line may have lost the
 * blanks at the end of its prefix. */
static bool strip_prefix(struct slice prefix, enum prefix_manner manner, struct slice line,
                         struct slice *rest) {
    size_t i = 0, j = 0;

    if (manner == PREFIX_NONE) {
        *rest = line;
        return true;
    }
    while (i < prefix.n && j < line.n) {
        if (manner == PREFIX_SHAPE && is_digit(prefix.text[i]) && is_digit(line.text[j])) {
            while (i < prefix.n && is_digit(prefix.text[i]))
                i++;
            while (j < line.n && is_digit(line.text[j]))
                j++;
        } else if (!same_byte(prefix.text[i++], line.text[j++])) {
            return false;
        }
    }
    *rest = slice_skip(line, j);
    return slice_trim(slice_skip(prefix, i)).n == 0;
}

static enum prefix_manner find_manner(const struct transcript *text, size_t head,
                                      struct slice prefix) {
    struct slice rest;

    if (prefix.n == 0)
        return PREFIX_NONE;
    for (int manner = PREFIX_EXACT; manner <= PREFIX_SHAPE; manner++)
        for (size_t i = head + 1; i <= head + PREFIX_LOOKAHEAD && i < text->n_lines; i++)
            if (strip_prefix(prefix, (enum prefix_manner)manner, text->lines[i], &rest) && rest.n)
                return (enum prefix_manner)manner;
    return PREFIX_NONE; /* what stood before the head was a progress bar or the like */
}

static bool read_number(struct slice *line, uint32_t *out) {
    uint32_t number = 0;
    size_t i = 0;

    for (; i < line->n && is_digit(line->text[i]) && number < LINE_NUMBER_MOST; i++)
        number = number * 10 + (uint32_t)(line->text[i] - '0');
    *line = slice_skip(*line, i);
    *out = number;
    return number > 0;
}

bool call_site_read(struct slice line, struct frame *out) {
    struct frame frame = { 0 };
    ptrdiff_t end;

    line = slice_trim(line);
    if (!slice_starts(line, "File \""))
        return false;
    line = slice_skip(line, strlen("File \""));
    end = slice_find(line, "\", line ");
    if (end == SLICE_NOWHERE)
        return false;
    frame.file = slice_head(line, (size_t)end);
    line = slice_skip(line, (size_t)end + strlen("\", line "));
    if (!read_number(&line, &frame.line))
        return false;
    if (slice_starts(line, ", in "))
        frame.function = slice_skip(line, strlen(", in "));
    else if (slice_starts(line, " in "))
        frame.function = slice_skip(line, strlen(" in "));
    else if (line.n)
        return false;
    *out = frame;
    return true;
}

bool frame_is_library(const struct frame *frame) {
    static const char *const marks[] = { "/site-packages/", "/dist-packages/", "lib/python3",
                                         "lib64/python3" };

    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (slice_has(frame->file, marks[i]))
            return true;
    return slice_starts(frame->file, "<"); /* <string>, <frozen importlib._bootstrap> */
}

static bool is_name_byte(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '<' || c == '>' || (unsigned char)c >= 0x80;
}

/* "INFO: reading" looks like an exception and is a line of a log. */
static bool is_log_level(struct slice name) {
    static const char *const levels[] = { "DEBUG", "INFO",     "WARNING", "WARN",
                                          "ERROR", "CRITICAL", "FATAL",   "NOTE" };

    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (slice_is(name, levels[i]))
            return true;
    return false;
}

/* "module.Type" or "module.Type: message". A type that is neither dotted nor begins with a capital
 * letter is taken for a line of someone else. */
static bool read_exception(struct slice line, struct slice *type, struct slice *message) {
    bool dotted = false;
    size_t n = 0;

    while (n < line.n && (is_name_byte(line.text[n]) || line.text[n] == '.')) {
        if (line.text[n] == '.' && (n == 0 || line.text[n - 1] == '.'))
            return false;
        dotted |= line.text[n++] == '.';
    }
    *type = slice_head(line, n);
    if (n == 0 || line.text[n - 1] == '.' || is_digit(line.text[0]) || is_log_level(*type))
        return false;
    if (!dotted && ((line.text[0] >= 'a' && line.text[0] <= 'z') || line.text[0] == '<'))
        return false;
    if (n < line.n && line.text[n] != ':')
        return false;
    if (n + 1 < line.n && line.text[n + 1] != ' ')
        return false;
    *message = slice_trim(slice_skip(line, n + 1));
    return true;
}

static const struct {
    const char *line;
    enum traceback_link link;
} links[] = {
    { "The above exception was the direct cause of the following exception:", LINK_CAUSED },
    { "During handling of the above exception, another exception occurred:", LINK_DURING },
};

static enum traceback_link link_of(struct slice line) {
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (slice_has(line, links[i].line))
            return links[i].link;
    return LINK_NONE;
}

/* The line before a head tells whose traceback it is. The name stands between `starts` and
 * `ends`. */
static const struct {
    const char *starts, *ends;
    enum traceback_owner owner;
} owners[] = {
    { "Exception in thread ", ":", TRACEBACK_OF_THREAD },
    { "Process ", ":", TRACEBACK_OF_CHILD },
    { "Exception ignored ", "", TRACEBACK_OF_NOBODY },
    { "Error in atexit._run_exitfuncs", ":", TRACEBACK_OF_NOBODY },
    { "--- Logging error ---", "", TRACEBACK_OF_NOBODY },
    { "Call stack:", "", TRACEBACK_OF_NOBODY }, /* the second part of a logging error */
    { "Exception in callback ", "", TRACEBACK_OF_NOBODY },
    { "Task exception was never retrieved", "", TRACEBACK_OF_NOBODY },
    { "Future exception was never retrieved", "", TRACEBACK_OF_NOBODY },
    { "future: <", ">", TRACEBACK_OF_NOBODY },
    { "handle: <", ">", TRACEBACK_OF_NOBODY },
};

static void find_owner(struct slice line, struct traceback *out) {
    for (size_t i = 0; i < ARRAY_LEN(owners); i++) {
        const size_t starts = strlen(owners[i].starts), ends = strlen(owners[i].ends);

        if (!slice_starts(line, owners[i].starts) || !slice_ends(line, owners[i].ends) ||
            line.n < starts + ends)
            continue;
        out->owner = owners[i].owner;
        out->owner_name = slice_head(slice_skip(line, starts), line.n - starts - ends);
        return;
    }
}

/* Looks at what stands above the head: the nearest line with the same prefix that is not blank. */
static void look_above(const struct transcript *text, enum prefix_manner manner,
                       struct traceback *out) {
    struct slice rest;

    for (size_t i = out->head; i-- > 0 && out->head - i <= STRANGERS_MOST;) {
        if (!strip_prefix(out->prefix, manner, text->lines[i], &rest) || rest.n == 0)
            continue;
        out->link = link_of(rest);
        if (out->link == LINK_NONE)
            find_owner(rest, out);
        return;
    }
}

/* A message of "Error(s) in loading state_dict for Net:" says little without its second line. */
static void read_more(const struct transcript *text, enum prefix_manner manner,
                      struct traceback *out) {
    struct slice rest;

    if (out->message.n && !slice_ends(out->message, ":"))
        return;
    for (size_t i = out->end + 1; i < text->n_lines && i <= out->end + 2; i++) {
        if (!strip_prefix(out->prefix, manner, text->lines[i], &rest))
            continue;
        rest = slice_trim(rest);
        if (slice_has(rest, head_mark) || link_of(rest) != LINK_NONE || slice_is(rest, "\"\"\""))
            return;
        out->message_more = rest;
        if (rest.n)
            return;
    }
}

/* Reads frames and the exception from line `first` on; false if there is no exception. Either way
 * `end` is the line at which it stopped. */
static bool read_body(const struct transcript *text, enum prefix_manner manner, size_t first,
                      struct traceback *out) {
    int strangers = 0;
    struct slice rest;
    struct frame frame;

    for (size_t i = first; i < text->n_lines && strangers < STRANGERS_MOST; i++) {
        out->end = i;
        if (!strip_prefix(out->prefix, manner, text->lines[i], &rest)) {
            strangers++;
            continue;
        }
        if (call_site_read(rest, &frame)) {
            out->raised = frame;
            if (!frame_is_library(&frame))
                out->user = frame;
        } else if (rest.n == 0 || slice_starts(rest, "    ") || slice_starts(rest, "  [")) {
            continue; /* source, its ^^^^ markers, "[Previous line repeated 996 more times]" */
        } else if (slice_has(rest, head_mark)) {
            return false;
        } else if (read_exception(rest, &out->type, &out->message)) {
            read_more(text, manner, out);
            return true;
        } else {
            strangers++;
        }
    }
    return false;
}

/* Which of those before does the link speak of? */
static int find_linked(const struct tracebacks *all, const struct traceback *one) {
    struct slice rest;

    for (int i = all->n - 1; i >= 0; i--)
        if (one->link == LINK_MEMBER ||
            strip_prefix(all->list[i].prefix, PREFIX_EXACT, one->prefix, &rest) ||
            slice_trim(one->prefix).n == 0)
            return i;
    return -1;
}

static void keep(struct tracebacks *all, const struct traceback *one) {
    if (all->n == TRACEBACKS_MOST) {
        all->n--;
        memmove(all->list, all->list + 1, (size_t)all->n * sizeof all->list[0]);
        for (int i = 0; i < all->n; i++)
            if (all->list[i].linked >= 0)
                all->list[i].linked--;
    }
    all->list[all->n] = *one;
    if (one->link != LINK_NONE) {
        const int linked = find_linked(all, one);

        all->list[all->n].linked = linked;
        if (linked >= 0) { /* a chain that ended a thread is a thread's to its last link */
            all->list[all->n].owner = all->list[linked].owner;
            all->list[all->n].owner_name = all->list[linked].owner_name;
        }
    }
    all->n++;
}

/* A line within an exception group is drawn behind "| ", one of its members deeper than itself. */
static bool is_member(const struct tracebacks *all, struct slice prefix) {
    return all->n && slice_ends(prefix, "| ") &&
           (slice_ends(all->list[all->n - 1].prefix, "+ ") ||
            all->list[all->n - 1].link == LINK_MEMBER);
}

/* Reads the traceback whose head, or first frame, is at `at` of the line. */
static bool read_one(const struct transcript *text, size_t line, ptrdiff_t at, bool has_head,
                     const struct tracebacks *before, struct traceback *out) {
    static const char group_mark[] = "Exception Group ";
    struct slice prefix = slice_head(text->lines[line], (size_t)at);
    enum prefix_manner manner;

    if (slice_ends(prefix, group_mark))
        prefix.n -= strlen(group_mark);
    *out = (struct traceback){ .prefix = prefix, .head = line, .linked = -1 };
    manner = find_manner(text, line, prefix);
    if (manner == PREFIX_NONE)
        out->prefix = (struct slice){ 0 };
    look_above(text, manner, out);
    if (out->link == LINK_NONE && has_head && is_member(before, prefix))
        out->link = LINK_MEMBER;
    return read_body(text, manner, line + has_head, out);
}

/* Where a traceback that lost its head begins in the line: with a frame as the interpreter prints
 * it, not as faulthandler does. */
static ptrdiff_t find_headless(struct slice line) {
    const ptrdiff_t at = slice_find(line, "  File \"");
    struct frame frame;

    if (at == SLICE_NOWHERE || !call_site_read(slice_skip(line, (size_t)at), &frame))
        return SLICE_NOWHERE;
    return frame.function.n == 0 || slice_has(line, ", in ") ? at : SLICE_NOWHERE;
}

void tracebacks_find(const struct transcript *transcript, struct tracebacks *out) {
    size_t read_until = 0; /* frames before this line were read already */
    struct traceback one;

    *out = (struct tracebacks){ 0 };
    for (size_t i = 0; i < transcript->n_lines; i++) {
        ptrdiff_t at = slice_find(transcript->lines[i], head_mark);
        const bool has_head = at != SLICE_NOWHERE;

        if (!has_head && i >= read_until)
            at = find_headless(transcript->lines[i]);
        if (at == SLICE_NOWHERE)
            continue;
        if (read_one(transcript, i, at, has_head, out, &one))
            keep(out, &one);
        if (one.end >= read_until)
            read_until = one.end + 1;
    }
}
