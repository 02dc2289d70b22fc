/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/nearest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    NAME_MAX_COMPARED = 64,
    SHORT_NAME = 4, /* up to so many letters, another first letter makes another word */
    WORD_LEAST = 3, /* letters of a word that may stand for a longer name */
};

/* One of the two names that are compared. */
struct name {
    const char *text;
    size_t n;
};

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '-' ? '_' : c;
}

/* ---- by edits ---- */

/* Edits (insert, delete, replace, swap of neighbours) between two short names. */
static size_t distance(struct name a, struct name b) {
    size_t row[3][NAME_MAX_COMPARED + 1];
    size_t *before = row[0], *last = row[1], *now = row[2];

    for (size_t j = 0; j <= b.n; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t *recycled = before;

        now[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            bool same = lower(a.text[i - 1]) == lower(b.text[j - 1]);
            size_t best = last[j - 1] + !same;

            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a.text[i - 1]) == lower(b.text[j - 2]) &&
                lower(a.text[i - 2]) == lower(b.text[j - 1]) && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        before = last;
        last = now;
        now = recycled;
    }
    return last[b.n];
}

static size_t edits_allowed(size_t longer) {
    return longer < 3 ? 0 : longer < 7 ? 1 : longer < 11 ? 2 : 3;
}

static bool starts_alike(struct name a, struct name b) {
    const bool is_swapped = a.n > 1 && b.n > 1 && lower(a.text[0]) == lower(b.text[1]) &&
                            lower(a.text[1]) == lower(b.text[0]);

    return lower(a.text[0]) == lower(b.text[0]) || is_swapped;
}

static bool is_beginning(struct name few, struct name many) {
    size_t i = 0;

    while (i < few.n && i < many.n && lower(few.text[i]) == lower(many.text[i]))
        i++;
    return i == few.n;
}

/* How far a name is from the typed one: its edits, and of names with equally many, those first of
 * which one begins the other (nam, name), then those of the same length. SIZE_MAX: too far. */
static size_t remoteness(struct name typed, struct name name) {
    const size_t longer = typed.n > name.n ? typed.n : name.n;
    const size_t d = distance(typed, name);

    if (d > edits_allowed(longer) || (longer <= SHORT_NAME && !starts_alike(typed, name)))
        return SIZE_MAX;
    if (is_beginning(typed, name) || is_beginning(name, typed))
        return 3 * d;
    return 3 * d + (typed.n == name.n ? 1 : 2);
}

/* ---- by words ---- */

static bool is_initials(struct name few, struct name words) {
    size_t n = 0;

    for (size_t i = 0; i < words.n; i++) {
        if (lower(words.text[i]) == '_' || (i > 0 && lower(words.text[i - 1]) != '_'))
            continue;
        if (n == few.n || lower(few.text[n]) != lower(words.text[i]))
            return false;
        n++;
    }
    return n == few.n && n > 1;
}

/* The beginning or the end of a longer name, in whole words. */
static bool is_part(struct name part, struct name whole) {
    bool begins = true, ends = true;
    size_t after;

    if (part.n < WORD_LEAST || part.n + 2 > whole.n)
        return false;
    after = whole.n - part.n;
    for (size_t i = 0; i < part.n; i++) {
        begins = begins && lower(part.text[i]) == lower(whole.text[i]);
        ends = ends && lower(part.text[i]) == lower(whole.text[after + i]);
    }
    return (begins && lower(whole.text[part.n]) == '_') ||
           (ends && lower(whole.text[after - 1]) == '_');
}

/* By its words, where no few edits lead to it. A typed word that is part of several names names
 * none of them. */
static const char *nearest_by_words(struct name typed, const char *const *names, size_t n) {
    const char *whole = NULL;
    size_t n_wholes = 0;

    for (size_t i = 0; i < n; i++) {
        const struct name name = { names[i], strlen(names[i]) };

        if (is_initials(typed, name) || is_initials(name, typed) ||
            (is_part(name, typed) && 2 * name.n > typed.n))
            return names[i];
        if (is_part(typed, name)) {
            whole = names[i];
            n_wholes++;
        }
    }
    return n_wholes == 1 ? whole : NULL;
}

const char *nearest_name(const char *typed, const char *const *names, size_t n) {
    const struct name given = { typed, strlen(typed) };
    size_t best_remoteness = SIZE_MAX;
    const char *best = NULL;

    if (given.n == 0 || given.n > NAME_MAX_COMPARED)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const struct name name = { names[i], strlen(names[i]) };
        size_t far;

        if (name.n == 0 || name.n > NAME_MAX_COMPARED)
            continue;
        far = remoteness(given, name);
        if (far < best_remoteness) {
            best_remoteness = far;
            best = names[i];
        }
    }
    return best ? best : nearest_by_words(given, names, n);
}
