/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a crash leaves of a store of series. A source of points that anybody can make again stands
 * for the spool: point i of series s is known, and the mark says how many points were taken. After
 * any crash the store must hold what the last commit that returned had stored, or what the next
 * would have, exactly as the mark says.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "points.h"
#include "storing.h"
#include "track/disk.h"
#include "track/query.h"
#include "track/series.h"

enum { SERIES = 3 };

static struct dice dice;
static struct error err;

/* ---- the source: point i of all, which is point i / SERIES of series i % SERIES */

static struct point source_point(uint64_t i) {
    struct dice of_point = { i * 77 + 1 };

    return (struct point){
        .step = (int64_t)(i / SERIES),
        .time_us = 1700000000000000 + (int64_t)(i * 1000 + dice_below(&of_point, 100)),
        .value = (double)(float)dice_unit(&of_point),
    };
}

static void source_read(struct series_store *store, uint64_t n) {
    uint64_t at = series_marked(store, "source");

    for (uint64_t end = at + n; at < end; at++) {
        const struct point point = source_point(at);
        const uint32_t id = series_find(store, "loss", 4, (uint32_t)(at % SERIES), 0);

        series_add(store, id, point.step, point.time_us, point.value);
    }
    series_mark(store, "source", at);
}

struct check {
    uint32_t series;
    uint64_t n;
};

static bool check_point(void *context, const struct point *point) {
    struct check *check = context;
    const struct point wanted = source_point(check->n * SERIES + check->series);

    if (!points_equal(point, &wanted))
        fail_msg("point %llu of series %u is another", (unsigned long long)check->n, check->series);
    check->n++;
    return true;
}

/* Opens the store as the next process would; returns the mark, after all points agree with it. */
static uint64_t check_store(const struct series_options *options) {
    struct series_store *store = NULL;
    struct series_reader *reader = NULL;
    uint64_t marked, total = 0;

    if (series_store_open(directory, options, &store, &err))
        fail_msg("%s", err.message);
    marked = series_marked(store, "source");
    if (series_reader_open(directory, &reader, &err))
        fail_msg("%s", err.message);
    for (uint32_t s = 0; s < series_reader_count(reader); s++) {
        const struct series_info info = series_reader_info(reader, s);
        struct check check = { .series = info.rank };

        assert_string_equal(info.name, "loss");
        if (series_points(reader, s, 0, UINT64_MAX, check_point, &check, &err))
            fail_msg("%s", err.message);
        assert_int_equal(check.n, (marked + SERIES - 1 - info.rank) / SERIES);
        total += check.n;
    }
    assert_int_equal(total, marked);
    assert_int_equal(series_reader_damaged(reader), 0);
    series_reader_free(reader);
    series_store_close(store);
    return marked;
}

/* ---- a disk that remembers what was asked of it */

enum op_kind { OP_CREATE, OP_WRITE, OP_TRUNCATE, OP_SYNC, OP_SYNC_DIRECTORY, OP_RENAME, OP_UNLINK };
enum { OPS_MOST = 100000, FILES_MOST = 5000, NAME = 24 };

struct op {
    enum op_kind kind;
    int file; /* which, whatever its name is by now */
    uint64_t offset, n;
    unsigned char *bytes;
    char name[NAME], to[NAME];
};

static struct op ops[OPS_MOST];
static size_t n_ops;
static int n_files, file_of_fd[1024];
static struct {
    char name[NAME];
    int file;
} named[16];

static struct op *record(enum op_kind kind) {
    assert_true(n_ops < OPS_MOST);
    ops[n_ops] = (struct op){ .kind = kind, .file = -1 };
    return &ops[n_ops++];
}

static int *file_named(const char *name) {
    int free_at = -1;

    for (int i = 0; i < (int)ARRAY_LEN(named); i++) {
        if (strcmp(named[i].name, name) == 0)
            return &named[i].file;
        if (!named[i].name[0])
            free_at = i;
    }
    assert_true(free_at >= 0);
    snprintf(named[free_at].name, NAME, "%s", name);
    named[free_at].file = -1;
    return &named[free_at].file;
}

static int recording_open(int dir, const char *name, int flags) {
    struct stat st;
    const bool exists = fstatat(dir, name, &st, 0) == 0;
    const int fd = disk_real.open(dir, name, flags);

    if (fd < 0)
        return fd;
    if (!exists) {
        struct op *op = record(OP_CREATE);

        assert_true(n_files < FILES_MOST);
        snprintf(op->name, NAME, "%s", name);
        op->file = *file_named(name) = n_files++;
    } else if (flags & O_TRUNC) {
        record(OP_TRUNCATE)->file = *file_named(name);
    }
    file_of_fd[fd] = *file_named(name);
    return fd;
}

static ssize_t recording_write(int fd, const void *bytes, size_t n, uint64_t offset) {
    struct op *op = record(OP_WRITE);

    op->file = file_of_fd[fd];
    op->offset = offset;
    op->n = n;
    op->bytes = malloc(n ? n : 1);
    memcpy(op->bytes, bytes, n);
    return disk_real.write(fd, bytes, n, offset);
}

static int recording_truncate(int fd, uint64_t length) {
    struct op *op = record(OP_TRUNCATE);

    op->file = file_of_fd[fd];
    op->offset = length;
    return disk_real.truncate(fd, length);
}

static int recording_sync(int fd) {
    record(OP_SYNC)->file = file_of_fd[fd];
    return 0;
}

static int recording_sync_directory(int dir) {
    (void)dir;
    record(OP_SYNC_DIRECTORY);
    return 0;
}

static int recording_rename(int dir, const char *from, const char *to) {
    struct op *op = record(OP_RENAME);

    snprintf(op->name, NAME, "%s", from);
    snprintf(op->to, NAME, "%s", to);
    *file_named(to) = *file_named(from);
    *file_named(from) = -1;
    return disk_real.rename(dir, from, to);
}

static int recording_unlink(int dir, const char *name) {
    snprintf(record(OP_UNLINK)->name, NAME, "%s", name);
    *file_named(name) = -1;
    return disk_real.unlink(dir, name);
}

static const struct disk recording = {
    .open = recording_open,
    .write = recording_write,
    .truncate = recording_truncate,
    .sync = recording_sync,
    .sync_directory = recording_sync_directory,
    .rename = recording_rename,
    .unlink = recording_unlink,
    .close = close,
};

static void forget_trace(void) {
    for (size_t i = 0; i < n_ops; i++)
        free(ops[i].bytes);
    n_ops = 0;
    n_files = 0;
    memset(named, 0, sizeof named);
}

/* ---- what is left of the first n of them */

struct left {
    unsigned char *bytes;
    uint64_t length, capacity;
};

static void left_resize(struct left *left, uint64_t length) {
    if (length > left->capacity) {
        left->capacity = length * 2;
        left->bytes = realloc(left->bytes, left->capacity);
        assert_non_null(left->bytes);
    }
    if (length > left->length)
        memset(left->bytes + left->length, 0, length - left->length);
    left->length = length;
}

/* A write that nobody synced reaches the disk whole, in part, by sectors in any order, or not. */
static void apply_write(struct left *left, const struct op *op, bool is_synced) {
    enum { SECTOR = 512 };
    const uint64_t kind = is_synced ? 0 : dice_below(&dice, 4);
    const uint64_t cut = kind == 1 ? dice_below(&dice, op->n + 1) : op->n;

    if (kind == 3)
        return;
    if (left->length < op->offset + cut)
        left_resize(left, op->offset + cut);
    for (uint64_t at = 0; at < cut; at += SECTOR)
        if (kind != 2 || dice_below(&dice, 2))
            memcpy(left->bytes + op->offset + at, op->bytes + at,
                   cut - at < SECTOR ? cut - at : SECTOR);
}

static void apply_name(const struct op *op, char names[][NAME], int *files, size_t n) {
    size_t from = n, to = n;

    for (size_t i = 0; i < n; i++) {
        from = strcmp(names[i], op->name) == 0 ? i : from;
        to = strcmp(names[i], op->kind == OP_RENAME ? op->to : op->name) == 0 ? i : to;
    }
    if (op->kind == OP_UNLINK && from < n)
        names[from][0] = '\0';
    if (op->kind == OP_RENAME && from < n) {
        if (to < n)
            names[to][0] = '\0';
        snprintf(names[from], NAME, "%s", op->to);
    }
    for (size_t i = 0; i < n && op->kind == OP_CREATE; i++)
        if (to < n || !names[i][0]) {
            i = to < n ? to : i;
            snprintf(names[i], NAME, "%s", op->name);
            files[i] = op->file;
            break;
        }
}

static void write_file(const char *name, const struct left *left) {
    char path[160];
    int fd;

    snprintf(path, sizeof path, "%s/%.*s", directory, NAME, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, left->bytes, left->length), left->length);
    close(fd);
}

/* Puts a possible outcome of a power cut after n operations into the directory. */
static void replay(size_t n) {
    static struct left files[FILES_MOST];
    static size_t synced_at[FILES_MOST];
    size_t directory_synced_at = 0;
    char names[16][NAME] = { 0 };
    int file_of[16];

    memset(synced_at, 0, sizeof synced_at);
    for (int i = 0; i < n_files; i++)
        files[i].length = 0;
    for (size_t i = 0; i < n; i++)
        if (ops[i].kind == OP_SYNC)
            synced_at[ops[i].file] = i;
        else if (ops[i].kind == OP_SYNC_DIRECTORY)
            directory_synced_at = i;
    for (size_t i = 0; i < n; i++) {
        const struct op *op = &ops[i];
        const bool is_synced = op->file >= 0 && i < synced_at[op->file];

        if (op->kind == OP_WRITE)
            apply_write(&files[op->file], op, is_synced);
        else if (op->kind == OP_TRUNCATE && (is_synced || dice_below(&dice, 2)))
            left_resize(&files[op->file], op->offset);
        else if ((op->kind == OP_CREATE || op->kind == OP_RENAME || op->kind == OP_UNLINK) &&
                 (i < directory_synced_at || dice_below(&dice, 2)))
            apply_name(op, names, file_of, ARRAY_LEN(names));
    }
    scratch_remove(directory);
    assert_int_equal(mkdir(directory, 0777), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i][0])
            write_file(names[i], &files[file_of[i]]);
}

/* ---- the laws */

enum { ROUNDS = 60 };

/* Some life of a store, as operations; done[i] says after how many of them a mark held. */
struct done {
    size_t n_ops;
    uint64_t mark;
};

static size_t live(struct done *done, const struct series_options *options) {
    struct series_store *store = NULL;
    size_t n_done = 1;

    done[0] = (struct done){ 0, 0 };
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t kind = dice_below(&dice, 12);

        if (!store && series_store_open(directory, options, &store, &err))
            fail_msg("%s", err.message);
        source_read(store, 1 + dice_below(&dice, 150));
        if (kind == 0 ? series_finish(store, &err) : series_commit(store, &err))
            fail_msg("%s", err.message);
        done[n_done++] = (struct done){ n_ops, series_marked(store, "source") };
        if (kind < 3) {
            series_store_close(store);
            store = NULL;
        }
    }
    series_store_close(store);
    return n_done;
}

static void no_power_cut_loses_or_doubles_a_point(void **state) {
    const struct series_options recorded = { .wal_limit = 6000, .disk = &recording };
    const struct series_options plain = { .wal_limit = 6000 };
    struct done done[ROUNDS + 1];

    (void)state;
    for (int life = 0; life < 2; life++) {
        size_t n_done, at = 0, n_all;

        forget_trace();
        n_done = live(done, &recorded);
        n_all = n_ops;
        print_message("# %zu operations, cut after each\n", n_all);
        for (size_t cut = 0; cut <= n_all; cut++)
            for (int outcome = 0; outcome < 4; outcome++) {
                uint64_t mark;

                while (at + 1 < n_done && done[at + 1].n_ops <= cut)
                    at++;
                replay(cut);
                mark = check_store(&plain);
                if (mark != done[at].mark && (at + 1 == n_done || mark != done[at + 1].mark))
                    fail_msg("cut after %zu operations: the mark is %llu, not %llu", cut,
                             (unsigned long long)mark, (unsigned long long)done[at].mark);
            }
        scratch_remove(directory);
    }
    forget_trace();
}

/* Commits for ever, and says in shared memory how far it came. */
static void write_until_killed(volatile uint64_t *returned, uint64_t seed) {
    const struct series_options options = { .wal_limit = 6000 };
    struct series_store *store = NULL;

    dice.state = seed;
    if (series_store_open(directory, &options, &store, &err))
        _exit(1);
    for (;;) {
        source_read(store, 1 + dice_below(&dice, 100));
        if (dice_below(&dice, 20) ? series_commit(store, &err) : series_finish(store, &err))
            _exit(2);
        *returned = series_marked(store, "source");
    }
}

static void no_kill_loses_or_doubles_a_point(void **state) {
    const struct series_options options = { .wal_limit = 6000 };
    volatile uint64_t *returned =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const char *wanted = getenv("MYELIN_KILLS"); /* so many, however long it takes */
    const int most = wanted ? atoi(wanted) : 2000;
    struct timespec begin, now;
    int n_kills = 0;

    (void)state;
    assert_true(returned != MAP_FAILED);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (; n_kills < most; n_kills++) {
        const uint64_t seed = dice_roll(&dice);
        const struct timespec wait = { 0, (long)dice_below(&dice, 3000000) };
        uint64_t mark;
        int status;
        pid_t pid = fork();

        if (pid == 0)
            write_until_killed(returned, seed);
        assert_true(pid > 0);
        nanosleep(&wait, NULL);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        mark = check_store(&options);
        assert_true(mark >= *returned);
        *returned = mark;
        if (mark > 30000) {
            scratch_remove(directory);
            *returned = 0;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (!wanted && now.tv_sec - begin.tv_sec > 4) /* a slow machine kills less often */
            break;
    }
    print_message("# %d kills\n", n_kills);
    munmap((void *)(uintptr_t)returned, 4096);
}

/* ---- a full disk: every write beyond a number of bytes fails, until there is room again */

static uint64_t room;

static ssize_t narrow_write(int fd, const void *bytes, size_t n, uint64_t offset) {
    const size_t fits = n < room ? n : (size_t)room;

    if (fits == 0) {
        errno = ENOSPC;
        return -1;
    }
    room -= fits;
    return disk_real.write(fd, bytes, fits, offset);
}

static void a_full_disk_loses_nothing_and_is_told(void **state) {
    struct disk narrow = disk_real;
    const struct series_options options = { .wal_limit = 6000, .disk = &narrow };
    struct series_store *store = NULL;
    int n_failed = 0;
    uint64_t committed = 0;

    (void)state;
    narrow.write = narrow_write;
    room = 1 << 20;
    if (series_store_open(directory, &options, &store, &err))
        fail_msg("%s", err.message);
    for (int round = 0; round < 600; round++) {
        room = dice_below(&dice, 3) ? 1 << 20 : dice_below(&dice, 9000);
        if (!series_is_full(store))
            source_read(store, 1 + dice_below(&dice, 300));
        if (dice_below(&dice, 10) ? series_commit(store, &err) : series_finish(store, &err)) {
            assert_non_null(strstr(err.message, "No space left"));
            n_failed++;
            continue;
        }
        committed = series_marked(store, "source");
        assert_false(series_is_broken(store));
    }
    assert_true(n_failed > 20);
    room = 1 << 30;
    assert_int_equal(series_commit(store, &err), 0);
    committed = series_marked(store, "source");
    series_store_close(store);
    assert_int_equal(check_store(NULL), committed);
}

static void a_file_size_limit_is_a_full_disk(void **state) {
    const struct series_options options = { .wal_limit = 50000 };
    struct series_store *store = NULL;
    struct rlimit before, limit;
    uint64_t committed = 0;
    int status;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    if (series_store_open(directory, &options, &store, &err))
        fail_msg("%s", err.message);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){ 30000, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    do {
        committed = series_marked(store, "source");
        source_read(store, 500);
        status = series_commit(store, &err);
    } while (status == 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(err.message, "File too large"));
    assert_true(committed > 0);
    assert_int_equal(series_commit(store, &err), 0);
    series_store_close(store);
    assert_int_equal(check_store(&options), committed + 500);
}

/* ---- a disk that fails: the store must be opened anew, and then holds what it should */

static int syncs_left;

static int failing_sync(int fd) {
    if (syncs_left-- > 0)
        return fdatasync(fd);
    errno = EIO;
    return -1;
}

static void a_failed_sync_is_never_taken_for_a_commit(void **state) {
    struct disk failing = disk_real;
    const struct series_options options = { .wal_limit = 6000, .disk = &failing };
    uint64_t committed = 0;

    (void)state;
    failing.sync = failing_sync;
    for (int round = 0; round < 200; round++) {
        struct series_store *store = NULL;
        uint64_t marked;

        syncs_left = (int)dice_below(&dice, 12);
        if (series_store_open(directory, &options, &store, &err))
            continue;
        marked = series_marked(store, "source");
        assert_true(marked >= committed);
        for (;;) {
            source_read(store, 1 + dice_below(&dice, 200));
            if (series_commit(store, &err))
                break;
            committed = series_marked(store, "source");
        }
        if (series_is_broken(store))
            assert_int_equal(series_commit(store, &err), -1);
        series_store_close(store);
        assert_true(check_store(NULL) >= committed);
        if (committed > 20000) {
            scratch_remove(directory);
            committed = 0;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(no_power_cut_loses_or_doubles_a_point),     CASE(no_kill_loses_or_doubles_a_point),
        CASE(a_full_disk_loses_nothing_and_is_told),     CASE(a_file_size_limit_is_a_full_disk),
        CASE(a_failed_sync_is_never_taken_for_a_commit),
    };

    dice = dice_make();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
