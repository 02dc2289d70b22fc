/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "archive/archive.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/tree.h"

static char place[64];

static int set_up(void **state) {
    (void)state;
    snprintf(place, sizeof place, "/tmp/myelin-test.XXXXXX");
    return mkdtemp(place) && chdir(place) == 0 ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    if (chdir("/") < 0)
        return -1;
    tree_remove(place);
    return access(place, F_OK) < 0 ? 0 : -1;
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void assert_text(const char *path, const char *text) {
    AUTO(buf) bytes = BUF_INIT(1 << 20);
    struct error err;

    if (file_read(path, &bytes, &err))
        fail_msg("%s", err.message);
    assert_string_equal(bytes.data, text);
}

static size_t count_entries(const char *path) {
    DIR *dir = opendir(path);
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

static const struct unpack_terms usual = { .entries_most = 1000, .bytes_most = 1 << 20 };

static const struct unpack_terms lenient = { .entries_most = 1000,
                                             .bytes_most = 1 << 20,
                                             .seal = UNPACK_ALSO_UNSEALED };

static int unpack_file(const char *path, const struct unpack_terms *terms, struct error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC), status;

    assert_true(fd >= 0);
    status = unpack(fd, path, "out", terms, err);
    close(fd);
    return status;
}

/* ---- there and back ---- */

static void make_things(void) {
    mkdir("in", 0755);
    mkdir("in/deep", 0755);
    write_text("in/deep/script", "#!/bin/sh\n");
    chmod("in/deep/script", 0755);
    write_text("in/\xc3\xa4 \xff", "a name that is no UTF-8");
    assert_int_equal(symlink("deep/script", "in/link"), 0);
    mkdir("in/empty", 0700);
}

static void pack_things(const char *path, enum pack_manner manner) {
    static const char *const names[] = { "in",       "in/deep", "in/deep/script",
                                         "in/empty", "in/link", "in/\xc3\xa4 \xff" };
    struct pack *pack;
    struct error err;
    uint64_t size;
    struct stat st;

    if (pack_begin(path, manner, &pack, &err) ||
        pack_add_bytes(pack, "facts.json", "{}", 2, 7, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (pack_add(pack, names[i], AT_FDCWD, names[i], &err))
            fail_msg("%s", err.message);
    assert_int_equal(access(path, F_OK), manner == PACK_REPLACE ? 0 : -1);
    if (pack_finish(pack, &size, &err))
        fail_msg("%s", err.message);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, size);
}

static void what_is_packed_is_unpacked_as_it_was(void **state) {
    struct stat st;
    struct error err;
    char target[64] = "";

    (void)state;
    make_things();
    pack_things("a.tar.zst", PACK_NEW_ONLY);
    if (unpack_file("a.tar.zst", &usual, &err))
        fail_msg("%s", err.message);
    assert_text("out/facts.json", "{}");
    assert_text("out/in/deep/script", "#!/bin/sh\n");
    assert_text("out/in/\xc3\xa4 \xff", "a name that is no UTF-8");
    assert_true(readlink("out/in/link", target, sizeof target - 1) > 0);
    assert_string_equal(target, "deep/script");
    assert_int_equal(stat("out/in/deep/script", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(stat("out/facts.json", &st), 0);
    assert_int_equal(st.st_mtime, 7);
    assert_int_equal(stat("out/in/empty", &st), 0);
    assert_int_equal(count_entries("."), 3);
}

static void the_same_entries_give_the_same_bytes(void **state) {
    AUTO(buf) one = BUF_INIT(1 << 20), two = BUF_INIT(1 << 20);
    struct error err;

    (void)state;
    make_things();
    pack_things("a", PACK_NEW_ONLY);
    pack_things("b", PACK_NEW_ONLY);
    assert_int_equal(file_read("a", &one, &err) || file_read("b", &two, &err), 0);
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.data, two.data, one.len);
}

static void a_file_that_exists_is_replaced_only_when_that_is_wanted(void **state) {
    struct pack *pack;
    struct error err;

    (void)state;
    make_things();
    write_text("a", "mine");
    assert_int_equal(pack_begin("a", PACK_NEW_ONLY, &pack, &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_text("a", "mine");
    pack_things("a", PACK_REPLACE);
    assert_int_equal(unpack_file("a", &usual, &err), 0);
}

static void an_archive_that_is_not_finished_leaves_nothing(void **state) {
    struct pack *pack;
    struct error err;

    (void)state;
    make_things();
    assert_int_equal(pack_begin("a", PACK_NEW_ONLY, &pack, &err), 0);
    assert_int_equal(pack_add(pack, "s", AT_FDCWD, "in/deep/script", &err), 0);
    assert_int_equal(pack_add(pack, "t", AT_FDCWD, "in/missing", &err), -1);
    pack_discard(pack);
    assert_int_equal(count_entries("."), 1);
}

static bool never(void *context, uint64_t bytes) {
    (void)context, (void)bytes;
    return false;
}

static void who_is_told_of_the_progress_can_end_it(void **state) {
    const struct archive_progress progress = { .tell = never };
    const struct unpack_terms terms = { .entries_most = 10,
                                        .bytes_most = 1000,
                                        .progress = &progress };
    struct pack *pack;
    struct error err;

    (void)state;
    make_things();
    assert_int_equal(pack_begin("a", PACK_NEW_ONLY, &pack, &err), 0);
    pack_tell(pack, &progress);
    assert_int_equal(pack_add(pack, "s", AT_FDCWD, "in/deep/script", &err), -1);
    pack_discard(pack);
    pack_things("a", PACK_NEW_ONLY);
    assert_int_equal(unpack_file("a", &terms, &err), -1);
    assert_int_equal(access("out", F_OK), -1);
}

static void what_is_no_file_folder_or_inner_link_is_not_packed(void **state) {
    struct pack *pack;
    struct error err;

    (void)state;
    assert_int_equal(mkfifo("pipe", 0600) || symlink("/etc/passwd", "out") || symlink("../x", "up"),
                     0);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = { "pipe", "out", "up" };

        assert_int_equal(pack_begin("a", PACK_NEW_ONLY, &pack, &err), 0);
        assert_int_equal(pack_add(pack, names[i], AT_FDCWD, names[i], &err), -1);
        assert_int_equal(err.code, ERROR_INVALID);
        pack_discard(pack);
    }
}

static void a_link_stays_when_no_chain_of_links_can_lead_out(void **state) {
    static const struct {
        const char *name, *target;
        bool stays;
    } rows[] = {
        { "l", "a", true },
        { "l", "a/b/", true },
        { "l", "./a", true },
        { "d/l", "../a", true },
        { "d/e/l", "../..", true },
        { "d/l", "./../a", true },
        { "l", "..", false },
        { "l", "../a", false },
        { "d/l", "../../a", false },
        { "l", "/etc", false },
        { "l", "", false },
        { "l", "a/..", false },
        { "d/l", "x/../../a", false },
        { "l", "...", true },
        { "l", "a/...", true },
        { "d/l", ".//../a", true },
        { "d/l", "..//../a", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (archive_link_stays(rows[i].name, rows[i].target) != rows[i].stays)
            fail_msg("%s -> %s", rows[i].name, rows[i].target);
}

/* ---- archives of others ---- */

struct ustar {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], kind, link[100];
    char magic[8], rest[247];
};

static void add_header(FILE *file, const char *name, char kind, const char *link, unsigned mode,
                       size_t size) {
    struct ustar header = { .kind = kind, .magic = "ustar\00000" };
    unsigned sum = 0;
    char zeros[512] = "";

    assert_int_equal(sizeof header, 512);
    strncpy(header.name, name, sizeof header.name - 1);
    strncpy(header.link, link, sizeof header.link - 1);
    snprintf(header.mode, sizeof header.mode, "%07o", mode);
    snprintf(header.uid, sizeof header.uid, "%07o", 0);
    snprintf(header.gid, sizeof header.gid, "%07o", 0);
    snprintf(header.size, sizeof header.size, "%011zo", size);
    snprintf(header.mtime, sizeof header.mtime, "%011o", 0);
    memset(header.sum, ' ', sizeof header.sum);
    for (size_t i = 0; i < sizeof header; i++)
        sum += ((const unsigned char *)&header)[i];
    snprintf(header.sum, sizeof header.sum, "%06o", sum);
    fwrite(&header, 1, sizeof header, file);
    for (size_t done = 0; done < size; done += sizeof zeros)
        fwrite(zeros, 1, sizeof zeros, file);
}

struct evil {
    const char *name, *link;
    char kind;
    unsigned mode;
};

/* A good entry, then one that is not: nothing of both may stay. */
static int unpack_evil(const struct evil *evil, size_t n, struct error *err) {
    FILE *file = fopen("evil.tar", "we");
    char zeros[1024] = "";

    assert_non_null(file);
    add_header(file, "good", '0', "", 0644, 3);
    for (size_t i = 0; i < n; i++)
        add_header(file, evil[i].name, evil[i].kind, evil[i].link, evil[i].mode,
                   evil[i].kind == '0' ? 3 : 0);
    fwrite(zeros, 1, sizeof zeros, file);
    assert_int_equal(fclose(file), 0);
    return unpack_file("evil.tar", &lenient, err);
}

static void nothing_of_an_archive_that_would_do_harm_is_unpacked(void **state) {
    static const struct evil rows[] = {
        { "../x", "", '0', 0644 },      { "/x", "", '0', 0644 },
        { "a/../../x", "", '0', 0644 }, { "a//b", "", '0', 0644 },
        { "./x", "", '0', 0644 },       { "..", "", '5', 0755 },
        { ".", "", '5', 0755 },         { "l", "/etc/passwd", '2', 0777 },
        { "l", "../x", '2', 0777 },     { "l", "good/../..", '2', 0777 },
        { "h", "good", '1', 0644 },     { "h", "/etc/passwd", '1', 0644 },
        { "dev", "", '3', 0644 },       { "dev", "", '4', 0644 },
        { "pipe", "", '6', 0644 },      { "setuid", "", '0', 04755 },
        { "setgid", "", '0', 02755 },   { "sticky", "", '5', 01777 },
        { "good", "", '0', 0644 },      { "good/x", "", '0', 0644 },
        { "good", "", '5', 0755 },      { "good", "x", '2', 0777 },
        { "", "", '0', 0644 },
    };
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (unpack_evil(&rows[i], 1, &err) == 0)
            fail_msg("'%s' was unpacked", rows[i].name);
        assert_int_equal(err.code, ERROR_INVALID);
        assert_non_null(strstr(err.message, "evil.tar"));
        assert_int_equal(count_entries("."), 1);
    }
}

static void an_archive_of_another_tool_is_taken_where_no_seal_is_asked_for(void **state) {
    static const struct evil rows[] = { { "dir/", "", '5', 0755 },
                                        { "dir/l", "../good", '2', 0777 } };
    struct error err;

    (void)state;
    if (unpack_evil(rows, ARRAY_LEN(rows), &err))
        fail_msg("%s", err.message);
    assert_int_equal(access("out/dir/l", F_OK), 0);
    tree_remove("out");
    assert_int_equal(unpack_file("evil.tar", &usual, &err), -1);
    assert_non_null(strstr(err.message, "no checksum"));
}

static void nothing_is_written_through_a_link_of_the_archive(void **state) {
    static const struct evil rows[] = { { "in", "", '5', 0755 },
                                        { "l", "in", '2', 0777 },
                                        { "l/x", "", '0', 0644 } };
    struct error err;

    (void)state;
    /* The folder `l` of the file comes first; then there is no room for the link. */
    assert_int_equal(unpack_evil(rows, ARRAY_LEN(rows), &err), -1);
    assert_int_equal(count_entries("."), 1);
}

static void more_than_the_limits_is_refused(void **state) {
    const struct unpack_terms few = { .entries_most = 6, .bytes_most = 1 << 20 };
    const struct unpack_terms small = { .entries_most = 100, .bytes_most = 20 };
    struct error err;

    (void)state;
    make_things();
    pack_things("a", PACK_NEW_ONLY);
    assert_int_equal(unpack_file("a", &few, &err), -1);
    assert_int_equal(err.code, ERROR_EXHAUSTED);
    assert_int_equal(unpack_file("a", &small, &err), -1);
    assert_int_equal(err.code, ERROR_EXHAUSTED);
    assert_int_equal(count_entries("."), 2);
}

static void a_cut_archive_leaves_nothing(void **state) {
    AUTO(buf) bytes = BUF_INIT(1 << 20);
    struct error err;

    (void)state;
    make_things();
    pack_things("a", PACK_NEW_ONLY);
    assert_int_equal(file_read("a", &bytes, &err), 0);
    for (size_t i = 0; i < bytes.len; i++) {
        const int fd = memfd_create("cut", MFD_CLOEXEC);

        assert_int_equal(write(fd, bytes.data, i), i);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        if (unpack(fd, "cut", "out", &usual, &err) == 0)
            fail_msg("%zu of %zu bytes were taken for all", i, bytes.len);
        close(fd);
        assert_int_equal(count_entries("."), 2);
    }
}

static void a_changed_archive_is_refused_or_gives_the_same(void **state) {
    AUTO(buf) bytes = BUF_INIT(1 << 20);
    struct error err;

    (void)state;
    make_things();
    pack_things("a", PACK_NEW_ONLY);
    assert_int_equal(file_read("a", &bytes, &err), 0);
    for (size_t i = 0; i < bytes.len; i++) {
        const int fd = memfd_create("changed", MFD_CLOEXEC);

        bytes.data[i] ^= 0x10;
        assert_int_equal(write(fd, bytes.data, bytes.len), bytes.len);
        bytes.data[i] ^= 0x10;
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        if (unpack(fd, "changed", "out", &usual, &err) == 0) {
            assert_text("out/facts.json", "{}");
            assert_text("out/in/deep/script", "#!/bin/sh\n");
            tree_remove("out");
        }
        close(fd);
        assert_int_equal(count_entries("."), 2);
    }
}

static void a_directory_that_exists_is_left_alone(void **state) {
    struct error err;

    (void)state;
    make_things();
    pack_things("a", PACK_NEW_ONLY);
    mkdir("out", 0755);
    assert_int_equal(unpack_file("a", &usual, &err), -1);
    assert_int_equal(count_entries("out"), 0);
    assert_int_equal(count_entries("."), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_packed_is_unpacked_as_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_same_entries_give_the_same_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_exists_is_replaced_only_when_that_is_wanted,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_archive_that_is_not_finished_leaves_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_is_told_of_the_progress_can_end_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_file_folder_or_inner_link_is_not_packed, set_up,
                                        tear_down),
        cmocka_unit_test(a_link_stays_when_no_chain_of_links_can_lead_out),
        cmocka_unit_test_setup_teardown(nothing_of_an_archive_that_would_do_harm_is_unpacked,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_archive_of_another_tool_is_taken_where_no_seal_is_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_written_through_a_link_of_the_archive, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(more_than_the_limits_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cut_archive_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_changed_archive_is_refused_or_gives_the_same, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_directory_that_exists_is_left_alone, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
