/* SPDX-License-Identifier: Apache-2.0 */
#include "search/search.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

/* Which words a condition fits, one bit each. */
struct word_set {
    unsigned char *bits;
    uint64_t n;
};

/* One search while it goes on. Runs are numbered by their place in the blocks. */
struct work {
    struct search_index *index;
    const struct search_wish *wish;
    struct search_result *out;
    struct index_blocks blocks;
    size_t n_places;
    unsigned char *fits; /* by place */
    cell *column;        /* of the condition that is being looked at */
    cell **keys;         /* by order of the sort: what is compared, by place */
    uint32_t *found;     /* places */
    size_t n_found;
    VEC(const char *) unknown;
};

void search_result_release(struct search_result *result) {
    arena_release(&result->arena);
    *result = (struct search_result){ 0 };
}

static uint64_t run_at(const struct work *work, size_t place) {
    return work->blocks.numbers.items[place / INDEX_BLOCK] * INDEX_BLOCK + place % INDEX_BLOCK;
}

static void *room(size_t n, size_t size) {
    void *memory = calloc(n + 1, size);

    if (!memory)
        abort();
    return memory;
}

/* ---- columns ---- */

/* The id is not kept: it is where a run stands. */
static int load(struct work *work, const struct query_field *field, cell *out, struct error *err) {
    uint32_t number;

    if (strcmp(field->name, "id") == 0) {
        for (size_t i = 0; i < work->n_places; i++)
            out[i] = cell_of_number((double)run_at(work, i));
        return 0;
    }
    if (index_field(work->index, field->name, &number, err))
        return -1;
    if (number == 0 && field->type == QUERY_ANY)
        *VEC_PUSH(&work->unknown) = field->name;
    return index_column(work->index, number, &work->blocks, out, err);
}

/* ---- conditions ---- */

struct gather {
    const struct query_condition *condition;
    struct word_set *words;
    VEC(uint64_t) fields; /* tags that fit */
};

static void set_bit(struct word_set *words, uint64_t word) {
    if (word >= words->n) {
        const uint64_t n = (word + 1) * 2;
        unsigned char *bits = realloc(words->bits, n / 8 + 1);

        if (!bits)
            abort();
        memset(bits + (words->n ? words->n / 8 + 1 : 0), 0,
               n / 8 + 1 - (words->n ? words->n / 8 + 1 : 0));
        *words = (struct word_set){ bits, n };
    }
    words->bits[word / 8] |= (unsigned char)(1u << word % 8);
}

static bool has_bit(const struct word_set *words, uint64_t word) {
    return word < words->n && words->bits[word / 8] >> word % 8 & 1;
}

static void visit_word(void *context, uint64_t word, const char *text) {
    struct gather *gather = context;

    if (query_fits_text(gather->condition, text))
        set_bit(gather->words, word);
}

static int gather_words(struct work *work, const struct query_condition *condition,
                        struct word_set *words, struct error *err) {
    struct gather gather = { .condition = condition, .words = words };
    uint64_t word;

    if (condition->test != QUERY_IS)
        return 0;
    for (size_t i = 0; i < condition->n_values; i++) {
        if (condition->values[i].is_pattern)
            return index_each_word(work->index, visit_word, &gather, err);
        if (index_word(work->index, condition->values[i].text, &word, err))
            return -1;
        if (word)
            set_bit(words, word);
    }
    return 0;
}

static bool fits_cell(const struct query_condition *condition, const struct word_set *words,
                      cell c) {
    switch (cell_kind(c)) {
    case CELL_NUMBER: return query_fits_number(condition, cell_number(c));
    case CELL_WORD: return has_bit(words, cell_word(c));
    case CELL_TRUTH: return query_fits_text(condition, cell_truth(c) ? "true" : "false");
    case CELL_NONE: break;
    }
    return false;
}

static int apply_plain(struct work *work, const struct query_condition *condition,
                       struct error *err) {
    struct word_set words = { 0 };
    int status = load(work, &condition->field, work->column, err);

    if (status == 0)
        status = gather_words(work, condition, &words, err);
    for (size_t i = 0; status == 0 && i < work->n_places; i++)
        if (work->fits[i])
            work->fits[i] = fits_cell(condition, &words, work->column[i]) != condition->is_negated;
    free(words.bits);
    return status;
}

static void visit_field(void *context, uint64_t field, const char *name) {
    static const char prefix[] = "tags.";
    struct gather *gather = context;

    if (strncmp(name, prefix, sizeof prefix - 1) == 0 &&
        query_fits_text(gather->condition, name + sizeof prefix - 1))
        *VEC_PUSH(&gather->fields) = field;
}

/* A tag that is said to be false is none. */
static int apply_tags(struct work *work, const struct query_condition *condition,
                      struct error *err) {
    unsigned char *has = room(work->n_places, 1);
    struct gather gather = { .condition = condition };
    int status = index_each_field(work->index, visit_field, &gather, err);

    for (size_t i = 0; status == 0 && i < gather.fields.len; i++) {
        status = index_column(work->index, (uint32_t)gather.fields.items[i], &work->blocks,
                              work->column, err);
        for (size_t j = 0; status == 0 && j < work->n_places; j++)
            has[j] |=
                cell_kind(work->column[j]) != CELL_NONE && work->column[j] != cell_of_truth(false);
    }
    for (size_t i = 0; status == 0 && i < work->n_places; i++)
        work->fits[i] &= has[i] != condition->is_negated;
    VEC_RELEASE(&gather.fields);
    free(has);
    return status;
}

/* ---- order ---- */

struct ranks {
    uint64_t *rank; /* by word */
    uint64_t n, next;
};

static void visit_rank(void *context, uint64_t word, const char *text) {
    struct ranks *ranks = context;

    (void)text;
    if (word >= ranks->n) {
        const uint64_t n = (word + 1) * 2;

        ranks->rank = realloc(ranks->rank, n * sizeof *ranks->rank);
        if (!ranks->rank)
            abort();
        memset(ranks->rank + ranks->n, 0, (n - ranks->n) * sizeof *ranks->rank);
        ranks->n = n;
    }
    ranks->rank[word] = ranks->next++;
}

/* Texts are compared by their rank among all words. */
static int rank_words(struct work *work, cell *cells, struct error *err) {
    struct ranks ranks = { 0 };
    int status;

    status = index_each_word(work->index, visit_rank, &ranks, err);
    for (size_t i = 0; status == 0 && i < work->n_places; i++)
        if (cell_kind(cells[i]) == CELL_WORD && cell_word(cells[i]) < ranks.n)
            cells[i] = cell_of_word(ranks.rank[cell_word(cells[i])]);
    free(ranks.rank);
    return status;
}

static int load_keys(struct work *work, struct error *err) {
    const struct query_sort *sort = work->wish->sort;

    work->keys = room(sort->n, sizeof *work->keys);
    for (size_t i = 0; i < sort->n; i++) {
        bool has_words = false;

        work->keys[i] = room(work->n_places, sizeof(cell));
        if (load(work, &sort->orders[i].field, work->keys[i], err))
            return -1;
        for (size_t j = 0; j < work->n_places && !has_words; j++)
            has_words = cell_kind(work->keys[i][j]) == CELL_WORD;
        if (has_words && rank_words(work, work->keys[i], err))
            return -1;
    }
    return 0;
}

/* Numbers, NaN, texts, truths. What a run does not have comes last, whichever way it is sorted. */
static int compare_cells(cell a, cell b, bool is_descending) {
    const enum cell_kind x = cell_kind(a), y = cell_kind(b);
    int order;

    if (a == b)
        return 0;
    if (x == CELL_NONE || y == CELL_NONE)
        return x == CELL_NONE ? 1 : -1;
    if (x != y)
        order = x < y ? -1 : 1;
    else if (x != CELL_NUMBER)
        order = a < b ? -1 : 1;
    else if (isnan(cell_number(a)) || isnan(cell_number(b)))
        return isnan(cell_number(a)) ? 1 : -1;
    else
        order = (cell_number(a) > cell_number(b)) - (cell_number(a) < cell_number(b));
    return is_descending ? -order : order;
}

static int compare_places(const struct work *work, uint32_t a, uint32_t b) {
    const struct query_sort *sort = work->wish->sort;

    for (size_t i = 0; i < sort->n; i++) {
        const int order =
            compare_cells(work->keys[i][a], work->keys[i][b], sort->orders[i].is_descending);

        if (order)
            return order;
    }
    return (a < b) - (a > b);
}

static int compare_found(const void *a, const void *b, void *work) {
    return compare_places(work, *(const uint32_t *)a, *(const uint32_t *)b);
}

static void sift_down(const struct work *work, uint32_t *heap, size_t n, size_t at) {
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        const uint32_t moved = heap[at];

        child += child + 1 < n && compare_places(work, heap[child + 1], heap[child]) > 0;
        if (compare_places(work, moved, heap[child]) >= 0)
            return;
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

/* Puts the first `most` of what was found in front, in order: of 100,000 runs a page is wanted. */
static void order_found(struct work *work, size_t most) {
    if (most < work->n_found) {
        for (size_t i = most / 2; i-- > 0;)
            sift_down(work, work->found, most, i);
        for (size_t i = most; most > 0 && i < work->n_found; i++)
            if (compare_places(work, work->found[i], work->found[0]) < 0) {
                work->found[0] = work->found[i];
                sift_down(work, work->found, most, 0);
            }
    }
    if (most > 1)
        qsort_r(work->found, most, sizeof work->found[0], compare_found, work);
}

/* ---- what is shown ---- */

static int make_value(struct work *work, cell c, struct search_value *out, struct error *err) {
    *out = (struct search_value){ .kind = cell_kind(c) };
    switch (out->kind) {
    case CELL_NUMBER: out->number = cell_number(c); break;
    case CELL_TRUTH: out->number = cell_truth(c); break;
    case CELL_WORD:
        return index_text(work->index, cell_word(c), &work->out->arena, &out->text, err);
    case CELL_NONE: break;
    }
    return 0;
}

struct tag_names {
    struct work *work;
    uint64_t run;
    struct buf text;
    int status;
    struct error *err;
};

static void add_tag(void *context, uint64_t field, const char *name) {
    struct tag_names *names = context;
    cell c;

    if (names->status || strncmp(name, "tags.", 5) != 0)
        return;
    names->status = index_cell(names->work->index, (uint32_t)field, names->run, &c, names->err);
    if (names->status == 0 && cell_kind(c) != CELL_NONE && c != cell_of_truth(false))
        names->status =
            buf_printf(&names->text, names->err, "%s%s", names->text.len ? " " : "", name + 5);
}

/* "baseline vision": the names of the tags that a run has. */
static int show_tags(struct work *work, uint64_t run, struct search_value *out, struct error *err) {
    struct tag_names names = { .work = work, .run = run, .text = BUF_INIT(1 << 20), .err = err };
    int status = index_each_field(work->index, add_tag, &names, err);

    if (status == 0 && names.status == 0 && names.text.len)
        *out = (struct search_value){
            .kind = CELL_WORD,
            .text = arena_text(&work->out->arena, names.text.data, names.text.len),
        };
    buf_release(&names.text);
    return status || names.status ? -1 : 0;
}

/* One column of what is shown: cell by cell, or, where that is more, all of it at once. */
static int show_column(struct work *work, size_t at, const uint32_t *places, struct error *err) {
    const struct query_sort *columns = work->wish->columns;
    const struct query_field *field = &columns->orders[at].field;
    const bool is_id = strcmp(field->name, "id") == 0;
    struct search_result *out = work->out;
    const bool is_whole = is_id || out->n > work->blocks.numbers.len;
    uint32_t number = 0;

    if (index_field(work->index, field->name, &number, err) ||
        (is_whole && load(work, field, work->column, err)))
        return -1;
    for (size_t i = 0; i < out->n; i++) {
        struct search_value *value = &out->values[i * columns->n + at];
        cell c = CELL_NOTHING;

        *value = (struct search_value){ .kind = CELL_NONE };
        if (field->type == QUERY_TAGS) {
            if (show_tags(work, out->runs[i], value, err))
                return -1;
            continue;
        }
        if (is_whole)
            c = work->column[places[i]];
        else if (number && index_cell(work->index, number, out->runs[i], &c, err))
            return -1;
        if (make_value(work, c, value, err))
            return -1;
    }
    return 0;
}

static int show(struct work *work, struct error *err) {
    const struct search_wish *wish = work->wish;
    struct search_result *out = work->out;
    const uint64_t left = wish->offset < work->n_found ? work->n_found - wish->offset : 0;

    out->n = wish->limit && wish->limit < left ? wish->limit : left;
    if (out->n > 0)
        order_found(work, wish->offset + out->n);
    out->runs = ARENA_ARRAY(&out->arena, uint64_t, out->n + 1);
    out->values = ARENA_ARRAY(&out->arena, struct search_value, out->n * wish->columns->n + 1);
    for (size_t i = 0; i < out->n; i++)
        out->runs[i] = run_at(work, work->found[wish->offset + i]);
    for (size_t i = 0; i < wish->columns->n; i++)
        if (show_column(work, i, work->found + (out->n ? wish->offset : 0), err))
            return -1;
    return 0;
}

/* ---- all of it ---- */

static int begin(struct work *work, struct error *err) {
    uint32_t status_field;

    if (index_field(work->index, "status", &status_field, err) ||
        (status_field && index_blocks(work->index, status_field, &work->blocks, err)))
        return -1;
    work->n_places = work->blocks.numbers.len * INDEX_BLOCK;
    work->fits = room(work->n_places, 1);
    work->column = room(work->n_places, sizeof(cell));
    work->found = room(work->n_places, sizeof *work->found);
    if (index_column(work->index, status_field, &work->blocks, work->column, err))
        return -1;
    for (size_t i = 0; i < work->n_places; i++) {
        work->fits[i] = cell_kind(work->column[i]) != CELL_NONE;
        work->out->n_runs += work->fits[i];
    }
    return 0;
}

static int find(struct work *work, struct error *err) {
    const struct query *query = work->wish->query;

    for (size_t i = 0; i < query->n; i++)
        if (query->conditions[i].field.type == QUERY_TAGS
                ? apply_tags(work, &query->conditions[i], err)
                : apply_plain(work, &query->conditions[i], err))
            return -1;
    /* From the newest on, which is where most searches begin: the rest is then turned away. */
    for (size_t i = work->n_places; i-- > 0;)
        if (work->fits[i])
            work->found[work->n_found++] = (uint32_t)i;
    work->out->n_total = work->n_found;
    return load_keys(work, err);
}

static void keep_unknown(struct work *work) {
    struct search_result *out = work->out;

    out->unknown = ARENA_ARRAY(&out->arena, const char *, work->unknown.len + 1);
    for (size_t i = 0; out->n_runs > 0 && i < work->unknown.len; i++) {
        bool is_told = false;

        for (size_t j = 0; j < out->n_unknown; j++)
            is_told |= strcmp(out->unknown[j], work->unknown.items[i]) == 0;
        if (!is_told)
            out->unknown[out->n_unknown++] =
                arena_text(&out->arena, work->unknown.items[i], strlen(work->unknown.items[i]));
    }
}

static double processor_s(void) {
    struct timespec spent = { 0 };

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
}

int search_index(struct search_index *index, const struct search_wish *wish,
                 struct search_result *out, struct error *err) {
    struct search_result result = { 0 };
    struct work work = { .index = index, .wish = wish, .out = &result };
    const int64_t begun_us = clock_monotonic_us();
    const double cpu_s = processor_s();
    int status = index_look(index, err) || begin(&work, err) || find(&work, err) ? -1 : 0;

    if (status == 0)
        keep_unknown(&work);
    if (status == 0)
        status = show(&work, err);
    index_rollback(index);
    for (size_t i = 0; work.keys && i < wish->sort->n; i++)
        free(work.keys[i]);
    free(work.keys);
    free(work.fits);
    free(work.column);
    free(work.found);
    VEC_RELEASE(&work.blocks.numbers);
    VEC_RELEASE(&work.unknown);
    if (status) {
        search_result_release(&result);
        return -1;
    }
    result.query_s = (double)(clock_monotonic_us() - begun_us) / 1e6;
    result.query_cpu_s = processor_s() - cpu_s;
    *out = result;
    return 0;
}

/* One try; *is_damaged says whether it failed because of the index. */
static int try_search(const char *home, enum index_place place, run_reader *read,
                      const struct search_wish *wish, struct search_result *out, bool *is_damaged,
                      struct error *err) {
    const int64_t begun_us = clock_monotonic_us();
    struct search_opened opened;
    double refresh_s;
    int status;

    if (search_open(home, place, read, &opened, err))
        return -1;
    refresh_s = (double)(clock_monotonic_us() - begun_us) / 1e6;
    status = search_index(opened.index, wish, out, err);
    *is_damaged = index_is_damaged(opened.index);
    index_free(opened.index);
    if (status)
        return -1;
    out->refresh_s = refresh_s;
    out->n_read = opened.n_read;
    out->unused = opened.unused;
    return 0;
}

int search(const char *home, enum index_place place, run_reader *read,
           const struct search_wish *wish, struct search_result *out, struct error *err) {
    struct error why;

    for (int i = 0; i < 2; i++) {
        bool is_damaged = false;

        if (try_search(home, place, read, wish, out, &is_damaged, err) == 0)
            return 0;
        if (!is_damaged)
            return -1;
        index_discard(home);
    }
    /* Another user makes it unusable as often as it is made. */
    why = *err;
    if (try_search(home, INDEX_IN_MEMORY, read, wish, out, &(bool){ false }, err))
        return -1;
    out->unused = why;
    return 0;
}
