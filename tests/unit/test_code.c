/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "code/facts.h"
#include "code/ignore.h"
#include "code/remote.h"
#include "codec/json_read.h"

/* ---- what is ignored ---- */

static enum ignore_answer ask(const char *text, const char *path, enum ignore_kind kind) {
    AUTO(arena) arena = ARENA_INIT;
    struct ignore_rules rules = { 0 };
    enum ignore_answer answer;

    ignore_parse(&rules, text, strlen(text), &arena);
    answer = ignore_ask(&rules, path, kind);
    ignore_release(&rules);
    return answer;
}

static const struct {
    const char *rules, *path;
    enum ignore_kind kind;
    enum ignore_answer answer;
} rows[] = {
    /* names at any depth, and paths from the folder of the file */
    { "a", "a", IGNORE_FILE, IGNORE_IGNORED },
    { "a", "x/y/a", IGNORE_FILE, IGNORE_IGNORED },
    { "a", "ab", IGNORE_FILE, IGNORE_UNDECIDED },
    { "/a", "a", IGNORE_FILE, IGNORE_IGNORED },
    { "/a", "x/a", IGNORE_FILE, IGNORE_UNDECIDED },
    { "x/a", "x/a", IGNORE_FILE, IGNORE_IGNORED },
    { "x/a", "y/x/a", IGNORE_FILE, IGNORE_UNDECIDED },
    /* folders alone */
    { "a/", "a", IGNORE_FOLDER, IGNORE_IGNORED },
    { "a/", "a", IGNORE_FILE, IGNORE_UNDECIDED },
    { "a/", "x/a", IGNORE_FOLDER, IGNORE_IGNORED },
    /* the last word counts */
    { "*.log\n!keep.log", "keep.log", IGNORE_FILE, IGNORE_KEPT },
    { "!keep.log\n*.log", "keep.log", IGNORE_FILE, IGNORE_IGNORED },
    /* lines */
    { "# a\n\n", "# a", IGNORE_FILE, IGNORE_UNDECIDED },
    { "\\#a", "#a", IGNORE_FILE, IGNORE_IGNORED },
    { "\\!a", "!a", IGNORE_FILE, IGNORE_IGNORED },
    { "a  ", "a", IGNORE_FILE, IGNORE_IGNORED },
    { "a\\ ", "a ", IGNORE_FILE, IGNORE_IGNORED },
    { "a\r\nb", "a", IGNORE_FILE, IGNORE_IGNORED },
    { "\xef\xbb\xbf"
      "a",
      "a", IGNORE_FILE, IGNORE_IGNORED },
    { "/", "a", IGNORE_FOLDER, IGNORE_UNDECIDED },
    { "a\\", "a\\", IGNORE_FILE, IGNORE_UNDECIDED },
    /* stars stay within a part of the path, two of them do not */
    { "x/*", "x/a", IGNORE_FILE, IGNORE_IGNORED },
    { "x/*", "x/y/a", IGNORE_FILE, IGNORE_UNDECIDED },
    { "x/**", "x/y/a", IGNORE_FILE, IGNORE_IGNORED },
    { "**/a", "a", IGNORE_FILE, IGNORE_IGNORED },
    { "**/a", "x/y/a", IGNORE_FILE, IGNORE_IGNORED },
    { "x/**/a", "x/a", IGNORE_FILE, IGNORE_IGNORED },
    { "x/**/a", "x/y/z/a", IGNORE_FILE, IGNORE_IGNORED },
    { "x/**/a", "xa", IGNORE_FILE, IGNORE_UNDECIDED },
    { "x/**/*b/c", "x/1/2/ab/c", IGNORE_FILE, IGNORE_IGNORED },
    { "a*b*c", "aXbXbXc", IGNORE_FILE, IGNORE_IGNORED },
    { "?", "ab", IGNORE_FILE, IGNORE_UNDECIDED },
    { "x?a", "x/a", IGNORE_FILE, IGNORE_UNDECIDED },
    /* sets */
    { "[a-c]", "b", IGNORE_FILE, IGNORE_IGNORED },
    { "[!a-c]", "b", IGNORE_FILE, IGNORE_UNDECIDED },
    { "[^a]", "b", IGNORE_FILE, IGNORE_IGNORED },
    { "[]a]", "]", IGNORE_FILE, IGNORE_IGNORED },
    { "[[:digit:]x]", "7", IGNORE_FILE, IGNORE_IGNORED },
    { "[[:nonsense:]]", "n", IGNORE_FILE, IGNORE_UNDECIDED },
    { "[a-", "a", IGNORE_FILE, IGNORE_UNDECIDED },
    { "x[/]a", "x/a", IGNORE_FILE, IGNORE_UNDECIDED },
};

static void a_rule_means_what_it_means_to_git(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (ask(rows[i].rules, rows[i].path, rows[i].kind) != rows[i].answer)
            fail_msg("row %zu: '%s' and '%s'", i, rows[i].rules, rows[i].path);
}

static void many_stars_cost_no_more_than_few(void **state) {
    char pattern[401], path[2001];

    (void)state;
    for (size_t i = 0; i < 400; i += 2)
        memcpy(pattern + i, "*a", 2);
    pattern[399] = 'b';
    pattern[400] = '\0';
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(ask(pattern, path, IGNORE_FILE), IGNORE_UNDECIDED); /* or it never returns */
}

/* ---- addresses ---- */

static void an_address_is_kept_without_what_lets_one_in(void **state) {
    static const struct {
        const char *given, *kept;
    } addresses[] = {
        { "https://user:secret@host/p.git", "https://host/p.git" },
        { "https://token@host/p.git", "https://host/p.git" },
        { "https://user:se@cret@host:8443/p", "https://host:8443/p" },
        { "https://user:se/cret@host/p", "https://host/p" },
        { "HTTP://u:p@host/p?token=x#y", "HTTP://host/p" },
        { "https://host:8080/@scope/p", "https://host:8080/@scope/p" },
        { "ssh://git@host/p", "ssh://git@host/p" },
        { "ssh://git:secret@host/p", "ssh://git@host/p" },
        { "git@host:group/p.git", "git@host:group/p.git" },
        { "user:secret@host:p.git", "user@host:p.git" },
        { "/srv/git/p@2.git", "/srv/git/p@2.git" },
        { "", "" },
    };
    AUTO(arena) arena = ARENA_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++)
        assert_string_equal(remote_clean(addresses[i].given, &arena), addresses[i].kept);
}

/* ---- facts ---- */

static void facts_are_read_as_they_were_written(void **state) {
    const struct code_facts facts = {
        .place = "a/b",
        .repository = "/p",
        .commit = "4f0c2d1",
        .is_read = true,
        .is_dirty = true,
        .diff_bytes = 12,
        .is_diff_cut = true,
        .diff_sha256 = "ab",
        .untracked = { .list = { "x", "y/" }, .n = 2, .all = 700 },
        .snapshot_root = "/p",
        .snapshot_files = 3,
        .snapshot_bytes = 99,
        .links = { .names = { "data" }, .targets = { "/mnt" }, .n = 1 },
    };
    AUTO(buf) first = BUF_INIT(1 << 16);
    AUTO(buf) second = BUF_INIT(1 << 16);
    AUTO(arena) arena = ARENA_INIT;
    struct buf *texts[] = { &first, &second };
    struct code_facts read = facts;
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct json json;
        struct node node;

        json_init(&json, JSON_COMPACT, json_to_buf, texts[i]);
        json_object(&json);
        code_facts_write(&json, &read);
        json_end(&json);
        assert_int_equal(json_finish(&json, &err), 0);
        assert_int_equal(json_read(texts[i]->data, texts[i]->len, &arena, &node, &err), 0);
        code_facts_read(&node, &arena, &read);
        read = code_facts_copy(&read, &arena);
    }
    assert_string_equal(first.data, second.data);
    assert_int_equal(read.untracked.all, 700);
    assert_string_equal(read.links.targets[0], "/mnt");
}

static void the_top_of_a_tree_is_the_nearest_with_a_repository(void **state) {
    char root[] = "/tmp/test_code.XXXXXX";
    AUTO(arena) arena = ARENA_INIT;
    const char *inner;

    (void)state;
    assert_non_null(mkdtemp(root));
    inner = arena_printf(&arena, "%s/a/b", root);
    assert_int_equal(mkdir(arena_printf(&arena, "%s/a", root), 0700), 0);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_null(code_top(inner, &arena));
    assert_int_equal(mkdir(arena_printf(&arena, "%s/.git", root), 0700), 0);
    assert_string_equal(code_top(inner, &arena), root);
    assert_string_equal(code_place(root, inner, &arena), "a/b");
    assert_string_equal(code_place(root, root, &arena), ".");
    assert_int_equal(mkdir(arena_printf(&arena, "%s/a/.git", root), 0700), 0);
    assert_string_equal(code_top(inner, &arena), arena_printf(&arena, "%s/a", root));
    assert_null(code_top("", &arena));
    assert_null(code_top("relative", &arena));
    for (const char *const *p = (const char *const[]){ "a/b", "a/.git", "a", ".git", NULL }; *p;
         p++)
        assert_int_equal(rmdir(arena_printf(&arena, "%s/%s", root, *p)), 0);
    assert_int_equal(rmdir(root), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_means_what_it_means_to_git),
        cmocka_unit_test(many_stars_cost_no_more_than_few),
        cmocka_unit_test(an_address_is_kept_without_what_lets_one_in),
        cmocka_unit_test(facts_are_read_as_they_were_written),
        cmocka_unit_test(the_top_of_a_tree_is_the_nearest_with_a_repository),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
