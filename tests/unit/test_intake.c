/* SPDX-License-Identifier: Apache-2.0 */
/* What comes from a shim: the mirror of a spool, the gathering of outputs, and the frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/kubernetes/intake.h"
#include "home.h"
#include "shim/frame.h"
#include "spooling.h"

#define SEGMENT "12-1a2b-000000.spool"

struct fixture {
    struct home home;
    char logs[96], spool[96], outputs[96], origin[96], mirrored[128];
    struct buf segment; /* one that libmyelin has written */
    size_t end;         /* of its records */
    uint64_t state;
};

static uint32_t pick(struct fixture *f, uint32_t n) {
    f->state = f->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(f->state >> 33) % n;
}

/* Points and a record of some 100 KiB, which no frame holds. */
static void write_origin(struct fixture *f) {
    enum { LARGE = 100 << 10 };
    struct dirent **entries;
    struct myelin *m;
    uint32_t name;
    char *json = malloc(LARGE + 8), path[400];
    struct error err;
    int n;

    setenv("MYELIN_SPOOL", f->origin, 1);
    m = myelin_open();
    name = myelin_name(m, "loss");
    for (int i = 0; i < 300; i++) {
        const double value = i;

        myelin_log(m, &name, &value, 1, i, MYELIN_NOW);
    }
    memset(json, 'x', LARGE + 4);
    memcpy(json, "{\"a\":\"", 6);
    memcpy(json + LARGE, "\"}", 2);
    myelin_record(m, MYELIN_PARAMS, json, LARGE + 2);
    myelin_close(m);
    free(json);
    n = scandir(f->origin, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        struct spool_file file;

        if (spool_file_parse(entries[i]->d_name, &file)) {
            snprintf(path, sizeof path, "%s/%s", f->origin, entries[i]->d_name);
            buf_clear(&f->segment); /* the last one has the large record */
            assert_int_equal(file_read(path, &f->segment, &err), 0);
        }
        free(entries[i]);
    }
    free(entries);
    f->end = f->segment.len;
    while (f->end > MYELIN_SPOOL_HEADER &&
           memcmp(f->segment.data + f->end - 8, "\0\0\0\0\0\0\0\0", 8) == 0)
        f->end -= 8;
}

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);

    home_make(&f->home);
    snprintf(f->logs, sizeof f->logs, "%s/logs", f->home.path);
    snprintf(f->spool, sizeof f->spool, "%s/spool", f->home.path);
    snprintf(f->outputs, sizeof f->outputs, "%s/outputs", f->home.path);
    snprintf(f->origin, sizeof f->origin, "%s/origin", f->home.path);
    snprintf(f->mirrored, sizeof f->mirrored, "%s/worker.0/" SEGMENT, f->spool);
    assert_int_equal(mkdir(f->logs, 0777) | mkdir(f->outputs, 0777) | mkdir(f->origin, 0777), 0);
    f->segment = (struct buf)BUF_INIT(MYELIN_SPOOL_SIZE_MAX);
    f->state = 7;
    write_origin(f);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;

    buf_release(&f->segment);
    home_release(&f->home);
    free(f);
    return 0;
}

static struct mirror *open_mirror(const struct fixture *f) {
    return mirror_new(f->spool, f->logs, "worker.0");
}

static int send_to(struct mirror *mirror, const char *name, uint64_t offset, const char *bytes,
                   size_t n) {
    struct error err = { 0 };
    const int status = mirror_write(mirror, name, strlen(name), offset, bytes, n, &err);

    assert_true(status == 0 || err.code == ERROR_INVALID);
    return status;
}

static void send_header(struct fixture *f, struct mirror *mirror, uint32_t state) {
    char header[MYELIN_SPOOL_HEADER];

    memcpy(header, f->segment.data, sizeof header);
    header[offsetof(struct myelin_spool_header, state)] = (char)state;
    assert_int_equal(send_to(mirror, SEGMENT, 0, header, sizeof header), 0);
}

static void send_whole(struct mirror *mirror, const char *name, uint64_t size) {
    struct error err;

    assert_int_equal(mirror_whole(mirror, name, strlen(name), size, &err), 0);
}

static void expect_list(struct mirror *mirror, const char *expected) {
    AUTO(buf) list = BUF_INIT(1 << 20);

    mirror_list(mirror, MIRROR_ALL, &list);
    assert_string_equal(list.data, expected);
}

/* What the fold would find. */
static struct seen see_mirror(const struct fixture *f) {
    AUTO(buf) bytes = BUF_INIT(MYELIN_SPOOL_SIZE_MAX);
    struct seen seen = { 0 };
    struct error err;

    assert_int_equal(file_read(f->mirrored, &bytes, &err), 0);
    assert_int_equal(see_segment(&seen, "x", bytes.data, bytes.len), SPOOL_HEAD_GOOD);
    return seen;
}

/* ---- the mirror ---- */

static void in_whatever_pieces_it_comes_a_segment_never_shows_half_a_record(void **state) {
    struct fixture *f = *state;
    struct mirror *mirror = open_mirror(f);
    struct seen seen;

    send_header(f, mirror, MYELIN_SPOOL_OPEN);
    for (size_t at = MYELIN_SPOOL_HEADER; at < f->end;) {
        const size_t most = f->end - at < 20000 ? f->end - at : 20000;
        const size_t n = 1 + pick(f, (uint32_t)most);

        assert_int_equal(send_to(mirror, SEGMENT, at, f->segment.data + at, n), 0);
        at += n;
        seen = see_mirror(f);
        assert_int_equal(seen.bad, 0);
        assert_int_equal(seen.last_state, MYELIN_SPOOL_OPEN);
        seen_release(&seen);
    }
    send_header(f, mirror, MYELIN_SPOOL_CLOSED);
    seen = see_mirror(f);
    assert_int_equal(seen.last_state, MYELIN_SPOOL_OPEN); /* before it is whole, it is not done */
    seen_release(&seen);
    send_whole(mirror, SEGMENT, f->segment.len + 1);
    seen = see_mirror(f);
    assert_int_equal(seen.last_state, MYELIN_SPOOL_CLOSED);
    assert_int_equal(seen.records, 1);
    seen_release(&seen);
    mirror_free(mirror);
}

static void names_that_are_no_segments_write_nothing(void **state) {
    static const char *const names[] = {
        "../1-2-3.spool",
        "a/1-2-3.spool",
        "1-2-3.spool/..",
        "..",
        ".",
        "",
        "1-2-3.spool/",
        "-1-2-000000.spool",
        "1-2-3",
        "1-2-3.spoolx",
        "/1-2-3.spool",
        "1--3.spool",
        "1-2-3-4.spool",
        "1-2-x.spool",
        ".spool.worker.0",
        "1-2-00000000000000000000000000000000000000000000000000000000000000000000000.spool",
    };
    struct fixture *f = *state;
    struct mirror *mirror = open_mirror(f);
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(send_to(mirror, names[i], 0, f->segment.data, MYELIN_SPOOL_HEADER), -1);
        assert_int_equal(mirror_whole(mirror, names[i], strlen(names[i]), 1, &err), -1);
    }
    assert_int_equal(
        mirror_write(mirror, "1-2-3.spool\0x", 13, 0, f->segment.data, MYELIN_SPOOL_HEADER, &err),
        -1);
    assert_int_equal(access(f->spool, F_OK), -1);
    mirror_free(mirror);
}

static void bytes_that_leave_a_gap_are_refused_and_known_ones_passed_over(void **state) {
    struct fixture *f = *state;
    struct mirror *mirror = open_mirror(f);
    const size_t half = MYELIN_SPOOL_HEADER + (f->end - MYELIN_SPOOL_HEADER) / 16 * 8;
    struct seen seen;

    assert_int_equal(send_to(mirror, SEGMENT, 8, f->segment.data, 8), -1);
    assert_int_equal(send_to(mirror, SEGMENT, UINT64_MAX, f->segment.data, 8), -1);
    send_header(f, mirror, MYELIN_SPOOL_OPEN);
    assert_int_equal(send_to(mirror, SEGMENT, 136, f->segment.data + 136, 8), -1);
    assert_int_equal(send_to(mirror, SEGMENT, UINT64_MAX - 7, f->segment.data, 16), -1);
    for (size_t at = MYELIN_SPOOL_HEADER; at < f->end; at += 60000) {
        const size_t from = at > half ? at - 40000 : MYELIN_SPOOL_HEADER;
        const size_t to = at + 60000 < f->end ? at + 60000 : f->end;

        assert_int_equal(send_to(mirror, SEGMENT, from, f->segment.data + from, to - from), 0);
    }
    send_whole(mirror, SEGMENT, f->segment.len + 1);
    seen = see_mirror(f);
    assert_int_equal(seen.records, 1);
    assert_int_equal(seen.bad, 0);
    seen_release(&seen);
    mirror_free(mirror);
}

static void whoever_takes_over_goes_on_behind_the_last_whole_record(void **state) {
    struct fixture *f = *state;
    struct mirror *mirror = open_mirror(f);
    char expected[100];
    unsigned long long at;
    struct seen seen;
    AUTO(buf) list = BUF_INIT(1 << 20);

    send_header(f, mirror, MYELIN_SPOOL_OPEN);
    assert_int_equal(send_to(mirror, SEGMENT, 128, f->segment.data + 128, f->end - 128 - 100), 0);
    mirror_free(mirror);
    mirror = open_mirror(f);
    mirror_list(mirror, MIRROR_ALL, &list);
    assert_int_equal(sscanf(list.data, "spool/" SEGMENT " %llu", &at), 1);
    assert_true(at >= 128 && at <= f->end - 100);
    mirror_begin(mirror);
    send_header(f, mirror, MYELIN_SPOOL_OPEN);
    assert_int_equal(send_to(mirror, SEGMENT, at, f->segment.data + at, f->end - at), 0);
    send_header(f, mirror, MYELIN_SPOOL_CLOSED);
    send_whole(mirror, SEGMENT, f->segment.len + 1);
    seen = see_mirror(f);
    assert_int_equal(seen.records, 1);
    assert_int_equal(seen.bad, 0);
    seen_release(&seen);
    snprintf(expected, sizeof expected, "spool/" SEGMENT " %zu\n", f->segment.len + 1);
    expect_list(mirror, expected);
    mirror_free(mirror);
}

static void a_segment_that_the_fold_has_removed_never_comes_back(void **state) {
    struct fixture *f = *state;
    struct mirror *mirror = open_mirror(f);
    char expected[100];

    send_header(f, mirror, MYELIN_SPOOL_OPEN);
    assert_int_equal(send_to(mirror, SEGMENT, 128, f->segment.data + 128, 64), 0);
    send_header(f, mirror, MYELIN_SPOOL_CLOSED);
    send_whole(mirror, SEGMENT, f->segment.len + 1);
    assert_int_equal(unlink(f->mirrored), 0);
    for (int i = 0; i < 2; i++) { /* this process, and the next */
        snprintf(expected, sizeof expected, "spool/" SEGMENT " %zu\n", f->segment.len + 1);
        expect_list(mirror, expected);
        send_header(f, mirror, MYELIN_SPOOL_OPEN);
        assert_int_equal(send_to(mirror, SEGMENT, 128, f->segment.data + 128, 64), 0);
        assert_int_equal(access(f->mirrored, F_OK), -1);
        mirror_free(mirror);
        mirror = open_mirror(f);
    }
    expect_list(mirror, expected);
    mirror_confirmed(mirror);
    expect_list(mirror, "");
    mirror_free(mirror);
}

/* From now on files may have so many bytes; returns how many they could have. */
static struct rlimit limit_files(rlim_t bytes) {
    struct rlimit before, small;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){ bytes, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    return before;
}

static void what_the_ledger_did_not_take_whole_does_not_spoil_what_follows(void **state) {
    struct fixture *f = *state;
    struct mirror *mirror = open_mirror(f);
    struct rlimit before;
    struct error err;

    before = limit_files(7);
    assert_int_equal(mirror_whole(mirror, SEGMENT, strlen(SEGMENT), 1000, &err), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    send_whole(mirror, SEGMENT, 1000);
    mirror_free(mirror);
    mirror = open_mirror(f); /* who takes over knows it too */
    expect_list(mirror, "spool/" SEGMENT " 1000\n");
    mirror_free(mirror);
}

/* In the place of the system's: what reaches the disk, and what the header says by then. */
static const char *synced_of; /* the mirrored file; NULL: nobody asks */
static int n_ledgers_synced;

int fdatasync(int fd) {
    char link[64], path[200] = "";
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    if (synced_of && n > 0 && strstr(path, "/.spool.")) {
        struct myelin_spool_header header;
        const int file = open(synced_of, O_RDONLY | O_CLOEXEC);

        assert_int_equal(pread(file, &header, sizeof header, 0), sizeof header);
        close(file);
        assert_int_equal(header.state, MYELIN_SPOOL_OPEN);
        n_ledgers_synced++;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

static void that_a_segment_was_here_is_on_the_disk_before_the_fold_may_remove_it(void **state) {
    struct fixture *f = *state;
    struct mirror *mirror = open_mirror(f);

    n_ledgers_synced = 0;
    synced_of = f->mirrored;
    send_header(f, mirror, MYELIN_SPOOL_OPEN);
    assert_int_equal(send_to(mirror, SEGMENT, MYELIN_SPOOL_HEADER,
                             f->segment.data + MYELIN_SPOOL_HEADER,
                             f->segment.len - MYELIN_SPOOL_HEADER),
                     0);
    send_header(f, mirror, MYELIN_SPOOL_CLOSED);
    send_whole(mirror, SEGMENT, f->segment.len + 1);
    synced_of = NULL;
    assert_int_equal(n_ledgers_synced, 1);
    mirror_free(mirror);
}

static void who_dies_before_a_header_says_that_it_is_done_is_followed_by_one_who_says_it(
    void **state) {
    struct fixture *f = *state;
    struct mirror *mirror = open_mirror(f);
    char ledger[128];
    struct seen seen;
    FILE *file;

    send_header(f, mirror, MYELIN_SPOOL_OPEN);
    assert_int_equal(send_to(mirror, SEGMENT, 128, f->segment.data + 128, f->end - 128), 0);
    mirror_free(mirror);
    snprintf(ledger, sizeof ledger, "%s/.spool.worker.0", f->logs);
    file = fopen(ledger, "w");
    fprintf(file, "%s %zu 3\n../x 1 2\nnonsense\n", SEGMENT, f->segment.len + 1);
    fclose(file);
    mirror_free(open_mirror(f));
    seen = see_mirror(f);
    assert_int_equal(seen.last_state, MYELIN_SPOOL_CLOSED);
    seen_release(&seen);
}

static void what_is_no_segment_is_left_to_the_fold_and_what_is_too_large_left_out(void **state) {
    struct fixture *f = *state;
    struct mirror *mirror = open_mirror(f);
    char nonsense[4096];
    struct stat st;

    memset(nonsense, 'n', sizeof nonsense);
    assert_int_equal(send_to(mirror, SEGMENT, 0, nonsense, sizeof nonsense), 0);
    send_whole(mirror, SEGMENT, sizeof nonsense + 1);
    assert_int_equal(stat(f->mirrored, &st), 0);
    assert_int_equal(st.st_size, sizeof nonsense);
    for (uint64_t at = 0; at < 6 << 20; at += sizeof nonsense)
        assert_int_equal(send_to(mirror, "1-2-3.spool", at, nonsense, sizeof nonsense), 0);
    send_whole(mirror, "1-2-3.spool", 6 << 20);
    mirror_free(mirror);
}

/* ---- outputs ---- */

static int give(struct gather *gather, uint32_t rank, const char *path, const char *text) {
    struct error err = { 0 };
    const size_t n = strlen(text);
    int status = 0;

    if (n > 0)
        status = gather_write(gather, rank, path, strlen(path), 0, text, n, &err);
    if (status == 0)
        status = gather_whole(gather, rank, path, strlen(path), n, &err);
    assert_true(status == 0 || err.code == ERROR_INVALID);
    return status;
}

static void expect_file(const struct fixture *f, const char *path, const char *text) {
    AUTO(buf) bytes = BUF_INIT(1 << 20);
    char full[256];
    struct error err;

    snprintf(full, sizeof full, "%s/%s", f->outputs, path);
    if (file_read(full, &bytes, &err))
        fail_msg("%s", err.message);
    assert_string_equal(bytes.data, text);
}

static void of_files_of_one_name_the_lowest_ranks_is_kept_in_whatever_order_they_come(
    void **state) {
    struct fixture *f = *state;
    struct gather *gather = gather_new(f->outputs, f->logs, 3);

    give(gather, 1, "a/b/c", "one");
    expect_file(f, "a/b/c", "one");
    give(gather, 2, "a/b/c", "two");
    expect_file(f, "a/b/c", "one");
    gather_free(gather);
    gather = gather_new(f->outputs, f->logs, 3); /* who takes over knows it too */
    give(gather, 0, "a/b/c", "");
    expect_file(f, "a/b/c", "");
    give(gather, 2, "a/b/c", "two");
    give(gather, 2, "a/b/d", "alone");
    expect_file(f, "a/b/c", "");
    expect_file(f, "a/b/d", "alone");
    assert_int_equal(gather_counts(gather).doubles, 2);
    assert_string_equal(gather_counts(gather).double_path, "a/b/c");
    gather_free(gather);
}

static void what_the_index_did_not_take_whole_does_not_spoil_what_follows(void **state) {
    struct fixture *f = *state;
    struct gather *gather = gather_new(f->outputs, f->logs, 1);
    AUTO(buf) list = BUF_INIT(1 << 20);
    struct rlimit before;
    struct error err;

    assert_int_equal(gather_write(gather, 0, "a/b", 3, 0, "one", 3, &err), 0);
    before = limit_files(5);
    assert_int_equal(gather_whole(gather, 0, "a/b", 3, 3, &err), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(give(gather, 0, "a/c", "two"), 0);
    gather_free(gather);
    gather = gather_new(f->outputs, f->logs, 1);
    gather_list(gather, 0, &list);
    assert_string_equal(list.data, "outputs/a/c 3\n");
    gather_free(gather);
}

static void no_path_leads_out_of_the_outputs(void **state) {
    static const char *const paths[] = { "../x", "a/../../x", "/x", "a//x",           "./x",
                                         "a/.",  "..",        "a/", ".myelin-part.0", "out/x",
                                         "link" };
    struct fixture *f = *state;
    struct gather *gather = gather_new(f->outputs, f->logs, 1);
    char path[200], beside[200];

    snprintf(beside, sizeof beside, "%s/beside", f->home.path);
    assert_int_equal(mkdir(beside, 0777), 0);
    snprintf(path, sizeof path, "%s/out", f->outputs);
    assert_int_equal(symlink(beside, path), 0);
    snprintf(path, sizeof path, "%s/link", f->outputs);
    assert_int_equal(symlink("../victim", path), 0);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_int_equal(give(gather, 0, paths[i], "bad"), 0);
    assert_int_equal(gather_counts(gather).refused, ARRAY_LEN(paths) - 1);
    expect_file(f, "link", "bad"); /* in the place of the link */
    snprintf(path, sizeof path, "%s/x", f->home.path);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof path, "%s/victim", f->home.path);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rmdir(beside), 0); /* it is empty */
    gather_free(gather);
}

static void a_file_goes_on_where_its_stream_was_cut_and_one_with_a_gap_is_refused(void **state) {
    struct fixture *f = *state;
    struct gather *gather = gather_new(f->outputs, f->logs, 1);
    AUTO(buf) list = BUF_INIT(1 << 20);
    struct error err;

    assert_int_equal(gather_write(gather, 0, "f", 1, 1, "x", 1, &err), -1);
    assert_int_equal(gather_write(gather, 0, "f", 1, 0, "abc", 3, &err), 0);
    assert_int_equal(gather_write(gather, 0, "f", 1, 4, "x", 1, &err), -1);
    assert_int_equal(gather_write(gather, 0, "f", 1, UINT64_MAX, "x", 1, &err), -1);
    gather_list(gather, 0, &list);
    assert_string_equal(list.data, "outputs/f 3\n");
    assert_int_equal(gather_whole(gather, 0, "f", 1, 5, &err), -1);
    assert_int_equal(gather_write(gather, 0, "f", 1, 2, "cde", 3, &err), 0);
    assert_int_equal(gather_whole(gather, 0, "f", 1, 5, &err), 0);
    expect_file(f, "f", "abcde");
    assert_int_equal(gather_write(gather, 0, "g", 1, 0, "half", 4, &err), 0);
    gather_end(gather, 0);
    assert_int_equal(gather_counts(gather).files, 1);
    gather_free(gather);
    assert_int_equal(rmdir(f->outputs), -1);
    expect_file(f, "f", "abcde");
}

static void what_stands_in_the_way_of_a_file_is_not_removed(void **state) {
    struct fixture *f = *state;
    struct gather *gather = gather_new(f->outputs, f->logs, 2);

    give(gather, 0, "a", "file");
    give(gather, 1, "a/b", "below a file");
    give(gather, 1, "d/e", "file");
    give(gather, 1, "d", "in the place of a directory");
    expect_file(f, "a", "file");
    expect_file(f, "d/e", "file");
    assert_int_equal(gather_counts(gather).refused, 2);
    gather_free(gather);
}

/* ---- frames ---- */

struct told {
    struct buf log;
    int n_started, n_ended, n_done;
    uint64_t n_unread;
    struct shim_end end;
};

static void on_output(void *context, const char *bytes, size_t n, uint64_t at) {
    struct told *told = context;
    struct error err;

    assert_int_equal(buf_append(&told->log, bytes, n, &err), 0);
    assert_int_equal(told->log.len, at);
}

static void on_started(void *context) {
    ((struct told *)context)->n_started++;
}

static void on_ended(void *context, const struct shim_end *end) {
    struct told *told = context;

    told->n_ended++;
    told->end = *end;
}

static void on_done(void *context, uint64_t n_unread) {
    struct told *told = context;

    told->n_done++;
    told->n_unread = n_unread;
}

static void add_frame(struct buf *to, enum frame_kind kind, const char *name, uint64_t offset,
                      const char *bytes, size_t n) {
    const struct frame frame = {
        .kind = kind, .offset = offset, .name_length = (uint16_t)strlen(name), .length = (uint32_t)n
    };
    unsigned char header[FRAME_HEADER];
    struct error err;

    frame_write(header, &frame);
    assert_int_equal(buf_append(to, header, sizeof header, &err) |
                         buf_append(to, name, strlen(name), &err) | buf_append(to, bytes, n, &err),
                     0);
}

static void frames_mean_the_same_in_whatever_pieces_they_come(void **state) {
    struct fixture *f = *state;
    AUTO(buf) stream = BUF_INIT(8 << 20);
    static const char end[] = "{\"signal\": 9, \"log\": 6, \"lost\": 2, \"unsent\": 0}";

    add_frame(&stream, FRAME_STARTED, "", 77, "", 0);
    add_frame(&stream, FRAME_DATA, "log", 0, "abc", 3);
    add_frame(&stream, FRAME_STARTED, "", 77, "", 0); /* as each stream says it */
    add_frame(&stream, FRAME_DATA, "log", 2, "cdef", 4);
    add_frame(&stream, FRAME_DATA, "unknown", 5, "??", 2);
    add_frame(&stream, FRAME_DATA, "spool/" SEGMENT, 0, f->segment.data, MYELIN_SPOOL_HEADER);
    add_frame(&stream, FRAME_IDLE, "", 0, "", 0);
    add_frame(&stream, FRAME_ENDED, "", 0, end, strlen(end));
    add_frame(&stream, FRAME_DATA, "outputs/o", 0, f->segment.data, FRAME_BYTES_MAX);
    add_frame(&stream, FRAME_WHOLE, "outputs/o", FRAME_BYTES_MAX, "", 0);
    add_frame(&stream, FRAME_DONE, "", 5, "", 0);
    for (size_t piece = 1; piece < stream.len; piece = piece * 3 + 1) {
        struct gather *gather = gather_new(f->outputs, f->logs, 1);
        struct told told = { .log = BUF_INIT(1 << 20) };
        struct intake intake;
        struct error err;

        intake_init(&intake, &(struct intake_given){ "worker.0", f->spool, f->logs, gather, 0, 0 },
                    &(struct intake_observer){ on_output, on_started, on_ended, on_done, &told });
        intake_begin(&intake);
        for (size_t at = 0; at < stream.len; at += piece)
            assert_int_equal(intake_feed(&intake, stream.data + at,
                                         stream.len - at < piece ? stream.len - at : piece, &err),
                             0);
        assert_string_equal(told.log.data, "abcdef");
        assert_int_equal(told.n_started, 1);
        assert_int_equal(told.n_ended, 1);
        assert_int_equal(told.n_done, 1);
        assert_int_equal(told.n_unread, 5);
        assert_int_equal(told.end.kind, SHIM_SIGNALLED);
        assert_int_equal(intake.log_lost, 2);
        intake_release(&intake);
        gather_free(gather);
        buf_release(&told.log);
    }
}

static void what_no_shim_sends_ends_the_stream(void **state) {
    static const struct {
        enum frame_kind kind;
        const char *name, *bytes;
        uint64_t offset;
    } rows[] = {
        { FRAME_DATA, "log", "x", 1 },       { FRAME_DATA, "log", "x", UINT64_MAX },
        { FRAME_DATA, "spool/x", "x", 0 },   { FRAME_ENDED, "", "{}", 0 },
        { FRAME_ENDED, "", "nonsense", 0 },  { FRAME_DONE, "", "", 0 },
        { FRAME_WHOLE, "outputs/x", "", 9 },
    };
    struct fixture *f = *state;
    struct error err;

    for (size_t i = 0; i <= ARRAY_LEN(rows); i++) {
        AUTO(buf) stream = BUF_INIT(1 << 20);
        struct gather *gather = gather_new(f->outputs, f->logs, 1);
        struct told told = { .log = BUF_INIT(1 << 20) };
        struct intake intake;

        if (i < ARRAY_LEN(rows))
            add_frame(&stream, rows[i].kind, rows[i].name, rows[i].offset, rows[i].bytes,
                      strlen(rows[i].bytes));
        else
            assert_int_equal(buf_append(&stream, "HTTP/1.1 404 Not Found", 22, &err), 0);
        intake_init(&intake, &(struct intake_given){ "worker.0", f->spool, f->logs, gather, 0, 0 },
                    &(struct intake_observer){ on_output, on_started, on_ended, on_done, &told });
        assert_int_equal(intake_feed(&intake, stream.data, stream.len, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID);
        intake_release(&intake);
        gather_free(gather);
        buf_release(&told.log);
    }
}

/* ---- ends ---- */

static void the_message_of_a_shim_is_told_from_any_other(void **state) {
    static const struct {
        const char *text;
        bool is_good;
        enum shim_end_kind kind;
        int detail;
    } rows[] = {
        { "{\"exit\": 1, \"log\": 8192, \"lost\": 0, \"unsent\": 0}", true, SHIM_EXITED, 1 },
        { "{\"signal\": 9, \"log\": 1}", true, SHIM_SIGNALLED, 9 },
        { "{\"error\": \"command not found\", \"errno\": 2}", true, SHIM_NOT_STARTED, 2 },
        { "{\"error\": \"it was ended\"}", true, SHIM_NOT_STARTED, 0 },
        { "{\"gave_up\": \"its master is gone\", \"signal\": 15}", true, SHIM_GAVE_UP, 0 },
        { "", false, 0, 0 },
        { "Traceback", false, 0, 0 },
        { "{\"exit\": 256}", false, 0, 0 },
        { "{\"exit\": -1}", false, 0, 0 },
        { "{\"exit\": \"1\"}", false, 0, 0 },
        { "{\"signal\": 65}", false, 0, 0 },
        { "{\"exit\": 0, \"log\": -1}", false, 0, 0 },
        { "{\"exit\": 0, \"log\": 7, \"lost\": 7}", true, SHIM_EXITED, 0 },
        { "{\"exit\": 0, \"log\": 7, \"lost\": 8}", false, 0, 0 },
        { "{\"exit\": 0, \"lost\": 1}", false, 0, 0 },
        { "{\"exit\": 0", false, 0, 0 },
        { "[1]", false, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct shim_end end = { 0 };

        assert_int_equal(shim_end_read(rows[i].text, strlen(rows[i].text), &end), rows[i].is_good);
        assert_int_equal(end.kind, rows[i].kind);
        assert_int_equal(end.detail, rows[i].detail);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(in_whatever_pieces_it_comes_a_segment_never_shows_half_a_record),
        CASE(names_that_are_no_segments_write_nothing),
        CASE(bytes_that_leave_a_gap_are_refused_and_known_ones_passed_over),
        CASE(whoever_takes_over_goes_on_behind_the_last_whole_record),
        CASE(a_segment_that_the_fold_has_removed_never_comes_back),
        CASE(that_a_segment_was_here_is_on_the_disk_before_the_fold_may_remove_it),
        CASE(who_dies_before_a_header_says_that_it_is_done_is_followed_by_one_who_says_it),
        CASE(what_the_ledger_did_not_take_whole_does_not_spoil_what_follows),
        CASE(what_is_no_segment_is_left_to_the_fold_and_what_is_too_large_left_out),
        CASE(of_files_of_one_name_the_lowest_ranks_is_kept_in_whatever_order_they_come),
        CASE(what_the_index_did_not_take_whole_does_not_spoil_what_follows),
        CASE(no_path_leads_out_of_the_outputs),
        CASE(a_file_goes_on_where_its_stream_was_cut_and_one_with_a_gap_is_refused),
        CASE(what_stands_in_the_way_of_a_file_is_not_removed),
        CASE(frames_mean_the_same_in_whatever_pieces_they_come),
        CASE(what_no_shim_sends_ends_the_stream),
        cmocka_unit_test(the_message_of_a_shim_is_told_from_any_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
