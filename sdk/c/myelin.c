/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define MYELIN_SPOOL_FORMAT
#include "myelin.h"
#include "myelin_text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the spool is little-endian");
_Static_assert(sizeof(struct myelin_spool_header) == MYELIN_SPOOL_HEADER, "the header has holes");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_POINTER_LOCK_FREE == 2,
               "a lock inside an atomic would not survive a fork");

enum {
    PAGE = 4096,
    SEGMENT_FIRST = 64 << 10, /* what a process costs that logs a few points */
    SEGMENT_LEAST = PAGE,     /* on a disk without room for more: its header has the count */
    SEGMENT_MOST = 1 << 20,
    SEGMENT_GROWTH = 4,
    SEGMENTS_DEFAULT = 1024, /* not yet folded: 1 GiB */
    DIRECTORY_MAX = 3800,
    PATH_SIZE = DIRECTORY_MAX + 80,
    LOG_AT_ONCE = 256, /* values in one record */
    NAME_CHUNK = 256,
    NAME_BUCKETS = 4096,
    SPINS = 200,
    LOCK_PATIENCE_NS = 250 * 1000 * 1000,
    LOCK_NAP_NS = 20 * 1000,
    RETRY_FIRST_NS = 10 * 1000 * 1000,
    RETRY_MOST_NS = 1000 * 1000 * 1000,
    HANDLES_MOST = 16, /* whose counts are written when the process exits */
    NS = 1000 * 1000 * 1000,
    BOUND_REACHED = -1, /* beside errno: the supervisor does not keep up */
};

/* A name, once for the handle. Never freed or moved while the handle lives, so that what a fork
 * cuts off in the middle leaves nothing broken. */
struct name {
    struct name *next; /* in its bucket */
    uint64_t defined;  /* the nonce of the segment that has its NAME record */
    int64_t auto_step; /* the next one */
    int64_t written;   /* the last step in that segment */
    uint32_t number, length;
    char text[];
};

struct segment {
    unsigned char *base; /* NULL: none */
    uint32_t size;
    uint64_t nonce;
    int64_t epoch_us; /* what the times of NEXT records count from */
};

/* What belongs to one process. It lives in pages that the kernel wipes in a child, which therefore
 * finds a free lock and no segment, and begins a chain of its own. All but `owner`, `dropped` and
 * `is_stuck` are guarded by the lock. */
struct chain {
    _Atomic(uintptr_t) owner; /* the thread that holds the lock, or 0 */
    uint32_t at;              /* where the next record goes, in the current segment */
    uint32_t prepare_at;      /* from here on the next segment is wanted */
    struct segment current, next;

    _Atomic(uint64_t) dropped;
    uint64_t dropped_told; /* what the header says; without a segment, the link */
    _Atomic(bool) is_stuck;

    pid_t pid;
    int64_t started_ns;         /* 0: not begun */
    uint32_t number;            /* of the current segment, or of the first to come */
    uint32_t oldest;            /* the first that may not be folded yet */
    int64_t retry_ns, pause_ns; /* monotonic: no new segment before; doubled by each failure */
    bool is_count_due;          /* a try has failed since the count was written */
    char path[PATH_SIZE];
};

/* A descriptor that is held for its lock. Others may have closed the number, and got it for a file
 * of theirs, so it is closed only if it still is what it was. */
struct held {
    int fd;
    dev_t device;
    ino_t inode;
};

struct myelin {
    struct chain *chain;  /* NULL: nothing is kept, `failure` says why */
    bool is_fork_checked; /* the kernel does not wipe: ask for the process number at each call */
    uint32_t attempt, segments_most;
    _Atomic(int) failure; /* errno or BOUND_REACHED; 0 while all is well */
    struct held current, next;
    _Atomic(uint32_t) n_names;
    struct name **chunks[MYELIN_NAMES_MAX / NAME_CHUNK];
    _Atomic(struct name *) *buckets; /* NAME_BUCKETS of them */
    size_t directory_length;
    char directory[DIRECTORY_MAX];
};

static int64_t now_ns(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS + now.tv_nsec;
}

static int64_t now_us(void) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct myelin_spool_header *header_of(const struct segment *segment) {
    return (struct myelin_spool_header *)(void *)segment->base;
}

/* ---- the lock */

static void note_dropped(struct chain *c, uint64_t n) {
    atomic_fetch_add_explicit(&c->dropped, n, memory_order_relaxed);
}

static bool try_lock(struct chain *c, uintptr_t self) {
    uintptr_t free_ = 0;

    return atomic_load_explicit(&c->owner, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(&c->owner, &free_, self, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Waits for another thread, within bounds: one that never comes back (a handler that jumped out of
 * a call) costs the others its points, and only once its time. */
static int lock_contended(struct chain *c, uintptr_t self) {
    const struct timespec nap = { .tv_nsec = LOCK_NAP_NS };
    int64_t until = 0;

    if (atomic_load_explicit(&c->owner, memory_order_relaxed) == self)
        return -1; /* a signal handler inside a call of its own thread */
    for (;;) {
        for (int i = 0; i < SPINS; i++) {
            if (try_lock(c, self))
                return 0;
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
        if (atomic_load_explicit(&c->is_stuck, memory_order_relaxed))
            return -1;
        if (until == 0)
            until = now_ns(CLOCK_MONOTONIC) + LOCK_PATIENCE_NS;
        else if (now_ns(CLOCK_MONOTONIC) > until)
            break;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
    }
    atomic_store_explicit(&c->is_stuck, true, memory_order_relaxed);
    return -1;
}

static int lock(struct myelin *m) {
    struct chain *c = m->chain;
    const uintptr_t self = (uintptr_t)pthread_self();

    if (__builtin_expect(m->is_fork_checked, 0) && c->pid && c->pid != getpid())
        memset(c, 0, sizeof *c);
    if (__builtin_expect(try_lock(c, self), 1))
        return 0;
    return lock_contended(c, self);
}

static void unlock(struct chain *c) {
    const uint64_t dropped = atomic_load_explicit(&c->dropped, memory_order_relaxed);

    if (__builtin_expect(dropped != c->dropped_told, 0) && c->current.base) {
        header_of(&c->current)->dropped = dropped;
        c->dropped_told = dropped;
    }
    if (__builtin_expect(atomic_load_explicit(&c->is_stuck, memory_order_relaxed), 0))
        atomic_store_explicit(&c->is_stuck, false, memory_order_relaxed);
    atomic_store_explicit(&c->owner, 0, memory_order_release);
}

/* ---- segments: files that are allocated, locked, mapped and touched before they are needed */

/* <directory>/<pid>-<start>-<number>.spool. By hand: snprintf is not for signal handlers. */
static const char *segment_path(const struct myelin *m, struct chain *c, uint32_t number) {
    char *to = c->path;

    memcpy(to, m->directory, m->directory_length);
    to += m->directory_length;
    *to++ = '/';
    to = put_number(to, (uint64_t)c->pid, 10, 1);
    *to++ = '-';
    to = put_number(to, (uint64_t)c->started_ns, 16, 1);
    *to++ = '-';
    to = put_number(to, number, 10, 6);
    memcpy(to, MYELIN_SPOOL_SUFFIX, sizeof MYELIN_SPOOL_SUFFIX);
    return c->path;
}

/* ---- the count of a process that has no segment yet: a link whose target is the number. It takes
 * no block of the disk, and it lies beside the folder of the task, which may not exist. */

static const char *count_path(const struct myelin *m, const struct chain *c, const char *end,
                              char out[PATH_SIZE]) {
    char *to = out;

    memcpy(to, m->directory, m->directory_length);
    to += m->directory_length;
    memcpy(to, MYELIN_SPOOL_DROPPED, sizeof MYELIN_SPOOL_DROPPED - 1);
    to += sizeof MYELIN_SPOOL_DROPPED - 1;
    to = put_number(to, (uint64_t)c->pid, 10, 1);
    *to++ = '-';
    to = put_number(to, (uint64_t)c->started_ns, 16, 1);
    memcpy(to, end, strlen(end) + 1);
    return out;
}

static void count_write(const struct myelin *m, struct chain *c) {
    const int kept = errno;
    const uint64_t dropped = atomic_load_explicit(&c->dropped, memory_order_relaxed);
    char path[PATH_SIZE], part[PATH_SIZE], number[24];

    if (c->current.base || c->started_ns == 0 || dropped == c->dropped_told)
        return;
    *put_number(number, dropped, 10, 1) = '\0';
    count_path(m, c, ".part", part);
    if (symlink(number, part) == 0 && rename(part, count_path(m, c, "", path)) == 0)
        c->dropped_told = dropped;
    errno = kept;
}

/* Once for each try, so that what is dropped in between costs nothing. */
static void count_if_due(const struct myelin *m, struct chain *c) {
    if (c->is_count_due && !c->current.base) {
        c->is_count_due = false;
        count_write(m, c);
    }
}

/* The header of the first segment has the count from now on. */
static void count_remove(const struct myelin *m, const struct chain *c) {
    char path[PATH_SIZE];

    unlink(count_path(m, c, "", path));
}

static void held_release(struct held *held) {
    struct stat st;

    if (held->fd >= 0 && !fstat(held->fd, &st) && st.st_dev == held->device &&
        st.st_ino == held->inode)
        close(held->fd);
    held->fd = -1;
}

static int held_take(struct held *held, int fd) {
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct stat st;

    if (fstat(fd, &st))
        return -1;
    /* A lock of this process alone: a child does not hold it, exec and every death end it. Where
     * there are no locks, the process number has to do. */
    (void)fcntl(fd, F_SETLK, &whole);
    *held = (struct held){ .fd = fd, .device = st.st_dev, .inode = st.st_ino };
    return 0;
}

/* Allocates and maps; a page that the disk has no room for is an error here, not a signal later. */
static unsigned char *map_file(int fd, uint32_t size) {
    unsigned char *base;
    int failed;

    do
        failed = posix_fallocate(fd, 0, size);
    while (failed == EINTR);
    if (failed) {
        errno = failed;
        return NULL;
    }
    base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return NULL;
    /* The child of a fork has nothing to do with it. */
    madvise(base, size, MADV_DONTFORK);
    if (madvise(base, size, MADV_POPULATE_WRITE) && errno != EINVAL && errno != EINTR &&
        errno != EAGAIN) {
        const int why = errno;

        munmap(base, size);
        errno = why == EFAULT ? EIO : why;
        return NULL;
    }
    return base;
}

static void write_header(const struct myelin *m, const struct chain *c, struct segment *segment,
                         uint32_t number) {
    struct myelin_spool_header *header = header_of(segment);

    *header = (struct myelin_spool_header){
        .version = MYELIN_SPOOL_VERSION,
        .header_size = MYELIN_SPOOL_HEADER,
        .size = segment->size,
        .number = number,
        .pid = (uint32_t)c->pid,
        .attempt = m->attempt,
        .nonce = segment->nonce,
        .realtime_ns = now_ns(CLOCK_REALTIME),
        .monotonic_ns = now_ns(CLOCK_MONOTONIC),
        .state = MYELIN_SPOOL_PREPARED,
    };
    segment->epoch_us = myelin_spool_epoch_us(header);
    header->magic = MYELIN_SPOOL_MAGIC;
    header->checksum = myelin_spool_checksum(0, header, MYELIN_SPOOL_FIXED);
}

/* SIGXFSZ kills, so the limit is looked at before. */
static uint32_t within_file_limit(uint32_t size) {
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= size)
        return size;
    return (uint32_t)limit.rlim_cur & ~(uint32_t)(PAGE - 1);
}

static int segment_make_sized(struct myelin *m, struct chain *c, uint32_t number, uint32_t size) {
    struct segment made = { .size = size };
    const char *path;
    int fd, why;

    do {
        path = segment_path(m, c, number);
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        /* The folder of a task is made by the first of its processes that logs: most tasks of most
         * runs never do. */
        if (fd < 0 && errno == ENOENT && number == 0 && mkdir(m->directory, 0755) == 0)
            fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        /* Another handle of this process may have begun in the same nanosecond. */
    } while (fd < 0 && errno == EEXIST && number == 0 && ++c->started_ns);
    if (fd < 0)
        return errno;
    made.base = map_file(fd, size);
    if (!made.base || held_take(&m->next, fd)) {
        why = errno;
        if (made.base)
            munmap(made.base, size);
        unlink(path);
        close(fd);
        return why;
    }
    made.nonce = ((uint64_t)c->started_ns ^ (uint64_t)c->pid << 40) + number;
    made.nonce *= MYELIN_SPOOL_MIXER;
    made.nonce ^= made.nonce >> 29;
    made.nonce += !made.nonce;
    write_header(m, c, &made, number);
    c->next = made;
    return 0;
}

static uint32_t usual_size(uint32_t number) {
    uint32_t size = SEGMENT_FIRST;

    for (; number > 0 && size < SEGMENT_MOST; number--)
        size *= SEGMENT_GROWTH;
    return size;
}

/* How much is unfolded is seen from what is still there: segments go in their order. */
static bool bound_is_reached(const struct myelin *m, struct chain *c, uint32_t number) {
    while (c->oldest < number && access(segment_path(m, c, c->oldest), F_OK) && errno == ENOENT)
        c->oldest++;
    return number - c->oldest >= m->segments_most;
}

/* Makes c->next, with room for a record of this size. Fails at once while a failure is fresh. */
static int segment_make(struct myelin *m, struct chain *c, uint32_t number, size_t room) {
    const size_t need = (MYELIN_SPOOL_HEADER + room + PAGE - 1) & ~(size_t)(PAGE - 1);
    const int64_t now = now_ns(CLOCK_MONOTONIC_COARSE);
    uint32_t size = usual_size(number);
    int why;

    if (now < c->retry_ns)
        return -1;
    if (size < need)
        size = (uint32_t)need;
    size = within_file_limit(size);
    if (size < need)
        why = EFBIG;
    else if (bound_is_reached(m, c, number))
        why = BOUND_REACHED;
    else
        why = segment_make_sized(m, c, number, size);
    if (why == ENOSPC && size > SEGMENT_FIRST && need <= SEGMENT_FIRST)
        why = segment_make_sized(m, c, number, SEGMENT_FIRST);
    /* The first one also counts what is dropped. Later ones leave the rest of the disk to the
     * supervisor, which frees segments only if it can write. */
    if (why == ENOSPC && !c->current.base && need <= SEGMENT_LEAST)
        why = segment_make_sized(m, c, number, SEGMENT_LEAST);
    atomic_store_explicit(&m->failure, why, memory_order_relaxed);
    if (why == 0) {
        c->retry_ns = c->pause_ns = 0;
        return 0;
    }
    c->pause_ns = c->pause_ns == 0                  ? RETRY_FIRST_NS
                  : c->pause_ns < RETRY_MOST_NS / 2 ? c->pause_ns * 2
                                                    : RETRY_MOST_NS;
    c->retry_ns = now + c->pause_ns;
    c->is_count_due = true;
    return -1;
}

static void segment_discard_next(struct myelin *m, struct chain *c, uint32_t number) {
    munmap(c->next.base, c->next.size);
    c->next.base = NULL;
    unlink(segment_path(m, c, number));
    held_release(&m->next);
}

static void segment_end(struct myelin *m, struct chain *c, enum myelin_spool_state state) {
    struct myelin_spool_header *header = header_of(&c->current);

    header->dropped = atomic_load_explicit(&c->dropped, memory_order_relaxed);
    __atomic_store_n(&header->state, (uint32_t)state, __ATOMIC_RELEASE);
    munmap(c->current.base, c->current.size);
    c->current.base = NULL;
    held_release(&m->current);
}

static void chain_begin(struct myelin *m, struct chain *c) {
    c->pid = getpid();
    c->started_ns = now_ns(CLOCK_REALTIME);
    /* What a child has of its parent's. The parent's locks stay: they are not the child's. */
    held_release(&m->current);
    held_release(&m->next);
}

/* Goes on to the next segment, which is made if it was not prepared, or is too small. */
static int chain_rotate(struct myelin *m, struct chain *c, size_t room) {
    const uint32_t number = c->current.base ? c->number + 1 : c->number;
    const bool had_count = number == 0 && c->dropped_told > 0;
    struct myelin_spool_header *header;

    if (c->started_ns == 0)
        chain_begin(m, c);
    if (c->next.base && MYELIN_SPOOL_HEADER + room > c->next.size)
        segment_discard_next(m, c, number);
    if (!c->next.base && segment_make(m, c, number, room))
        return -1;
    if (c->current.base)
        segment_end(m, c, MYELIN_SPOOL_SEALED);
    c->current = c->next;
    m->current = m->next;
    c->next.base = NULL;
    m->next.fd = -1;
    c->number = number;
    c->at = MYELIN_SPOOL_HEADER;
    c->prepare_at = c->current.size / 2;
    header = header_of(&c->current);
    header->dropped = c->dropped_told = atomic_load_explicit(&c->dropped, memory_order_relaxed);
    __atomic_store_n(&header->state, (uint32_t)MYELIN_SPOOL_OPEN, __ATOMIC_RELEASE);
    if (had_count)
        count_remove(m, c);
    return 0;
}

/* Whether a record of this size fits, after a rotation if need be. */
static int chain_reserve(struct myelin *m, struct chain *c, size_t room, size_t room_if_fresh) {
    int why = 0, kept;

    if (__builtin_expect(c->current.base && c->at + room <= c->current.size, 1))
        return 0;
    kept = errno;
    why = chain_rotate(m, c, room_if_fresh);
    errno = kept;
    return why;
}

static void chain_prepare(struct myelin *m, struct chain *c) {
    const int kept = errno;

    /* a failure counts only when the current one is full */
    (void)segment_make(m, c, c->number + 1, 0);
    errno = kept;
}

/* The payload is in its place; the word that makes it valid comes last. */
static void record_commit(struct chain *c, unsigned type, size_t length) {
    unsigned char *at = c->current.base + c->at;
    const uint32_t head = myelin_spool_head(type, length);

    __atomic_store_n((uint64_t *)(void *)at,
                     myelin_spool_word(c->current.nonce, c->at, head, at + 8), __ATOMIC_RELEASE);
    c->at += (uint32_t)myelin_spool_room(length);
}

/* ---- names */

static struct name *name_of(const struct myelin *m, uint32_t number) {
    if (__builtin_expect(number >= atomic_load_explicit(&m->n_names, memory_order_acquire), 0))
        return NULL;
    return m->chunks[number / NAME_CHUNK][number % NAME_CHUNK];
}

/* Under the lock. A fork of another thread may copy any state in between: the worst is that the
 * child gives a name a second number. */
static uint32_t name_add(struct myelin *m, _Atomic(struct name *) *bucket, const char *text,
                         size_t n) {
    const uint32_t number = atomic_load_explicit(&m->n_names, memory_order_relaxed);
    struct name ***chunk, *name;

    if (number >= MYELIN_NAMES_MAX)
        return MYELIN_NO_NAME;
    chunk = &m->chunks[number / NAME_CHUNK];
    if (!*chunk && !(*chunk = calloc(NAME_CHUNK, sizeof **chunk)))
        return MYELIN_NO_NAME;
    name = malloc(sizeof *name + n);
    if (!name)
        return MYELIN_NO_NAME;
    *name = (struct name){ .next = atomic_load_explicit(bucket, memory_order_relaxed),
                           .number = number,
                           .length = (uint32_t)n };
    memcpy(name->text, text, n);
    (*chunk)[number % NAME_CHUNK] = name;
    atomic_store_explicit(&m->n_names, number + 1, memory_order_release);
    atomic_store_explicit(bucket, name, memory_order_release);
    return number;
}

uint32_t myelin_name_n(struct myelin *m, const char *name, size_t n) {
    char clean[MYELIN_NAME_MAX];
    _Atomic(struct name *) *bucket;
    uint32_t number = MYELIN_NO_NAME;

    if (!m || !m->buckets || !name || n == 0)
        return MYELIN_NO_NAME;
    n = clean_name(name, n, clean);
    bucket = &m->buckets[hash_of(clean, n) % NAME_BUCKETS];
    if (lock(m))
        return MYELIN_NO_NAME;
    for (struct name *at = atomic_load_explicit(bucket, memory_order_acquire);
         at && number == MYELIN_NO_NAME; at = at->next)
        if (at->length == n && !memcmp(at->text, clean, n))
            number = at->number;
    if (number == MYELIN_NO_NAME)
        number = name_add(m, bucket, clean, n);
    unlock(m->chain);
    return number;
}

uint32_t myelin_name(struct myelin *m, const char *name) {
    return name ? myelin_name_n(m, name, strlen(name)) : MYELIN_NO_NAME;
}

static size_t name_room(const struct name *name) {
    return myelin_spool_room(sizeof(uint32_t) + name->length);
}

static void name_define(struct chain *c, struct name *name) {
    unsigned char *to = c->current.base + c->at + 8;

    memcpy(to, &name->number, sizeof name->number);
    memcpy(to + sizeof name->number, name->text, name->length);
    record_commit(c, MYELIN_SPOOL_NAME, sizeof name->number + name->length);
    name->defined = c->current.nonce;
}

/* ---- records */

static int64_t step_after(int64_t step) {
    return step == INT64_MAX ? step : step + 1;
}

static int64_t step_for(const struct myelin *m, const uint32_t *names, size_t n, int64_t step) {
    if (step == MYELIN_AUTO) {
        for (size_t i = 0; i < n; i++) {
            const struct name *name = name_of(m, names[i]);

            if (i == 0 || name->auto_step > step)
                step = name->auto_step;
        }
    }
    for (size_t i = 0; i < n; i++)
        name_of(m, names[i])->auto_step = step_after(step);
    return step;
}

static void prepare_if_due(struct myelin *m, struct chain *c) {
    if (__builtin_expect(c->at >= c->prepare_at && !c->next.base, 0))
        chain_prepare(m, c);
}

/* Under the lock, as all of these. */
static int write_points(struct myelin *m, const uint32_t *names, const double *values, size_t n,
                        int64_t step, int64_t time_us) {
    struct chain *c = m->chain;
    const size_t length = 2 * sizeof(int64_t) + n * (sizeof(double) + sizeof(uint32_t));
    size_t room = myelin_spool_room(length), fresh = room;
    unsigned char *to;

    for (size_t i = 0; i < n; i++) {
        const struct name *name = name_of(m, names[i]);

        if (!name)
            return -1;
        fresh += name_room(name);
        room += name->defined == c->current.nonce ? 0 : name_room(name);
    }
    step = step_for(m, names, n, step);
    if (chain_reserve(m, c, room, fresh))
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct name *name = name_of(m, names[i]);

        if (name->defined != c->current.nonce)
            name_define(c, name);
        name->written = step;
    }
    to = c->current.base + c->at + 8;
    memcpy(to, &time_us, sizeof time_us);
    memcpy(to + 8, &step, sizeof step);
    memcpy(to + 16, values, n * sizeof *values);
    memcpy(to + 16 + n * sizeof *values, names, n * sizeof *names);
    record_commit(c, MYELIN_SPOOL_POINTS, length);
    prepare_if_due(m, c);
    return 0;
}

/* One point that is what a reader expects next of its name takes 24 bytes instead of 40: fresh
 * memory is most of the cost of a point. Returns 1 where the long form is needed. */
static int write_next(struct myelin *m, uint32_t number, double value, int64_t step,
                      int64_t time_us) {
    struct chain *c = m->chain;
    struct name *name = name_of(m, number);
    const uint64_t since = (uint64_t)time_us - (uint64_t)c->current.epoch_us;
    uint64_t payload[2] = { 0, since << 16 | number };

    if (!name || name->defined != c->current.nonce || since >= MYELIN_SPOOL_NEXT_SPAN ||
        c->at + myelin_spool_room(sizeof payload) > c->current.size || !c->current.base)
        return 1;
    if (step == MYELIN_AUTO)
        step = name->auto_step;
    if (step == INT64_MIN || step - 1 != name->written)
        return 1;
    memcpy(payload, &value, sizeof value);
    memcpy(c->current.base + c->at + 8, payload, sizeof payload);
    record_commit(c, MYELIN_SPOOL_NEXT, sizeof payload);
    name->written = step;
    name->auto_step = step_after(step);
    prepare_if_due(m, c);
    return 0;
}

static int write_some(struct myelin *m, const uint32_t *names, const double *values, size_t n,
                      int64_t step, int64_t time_us) {
    if (n == 1 && !write_next(m, names[0], values[0], step, time_us))
        return 0;
    return write_points(m, names, values, n, step, time_us);
}

int myelin_log(struct myelin *m, const uint32_t *names, const double *values, size_t n,
               int64_t step, int64_t time_us) {
    int failed = 0;

    if (!m || !m->chain)
        return -1;
    if (time_us == MYELIN_NOW)
        time_us = now_us();
    if (lock(m)) {
        note_dropped(m->chain, n);
        return -1;
    }
    for (size_t i = 0; i < n; i += LOG_AT_ONCE) {
        const size_t some = n - i < LOG_AT_ONCE ? n - i : LOG_AT_ONCE;

        if (write_some(m, names + i, values + i, some, step, time_us)) {
            note_dropped(m->chain, some);
            failed = -1;
        }
    }
    if (__builtin_expect(failed, 0))
        count_if_due(m, m->chain);
    unlock(m->chain);
    return failed;
}

static int write_record(struct myelin *m, enum myelin_kind kind, const char *json, size_t n) {
    struct chain *c = m->chain;
    const int64_t time_us = now_us();
    const size_t length = sizeof time_us + n, room = myelin_spool_room(length);
    unsigned char *to;

    if (kind < MYELIN_PARAMS || kind > MYELIN_ARTIFACT || n > MYELIN_RECORD_MAX ||
        chain_reserve(m, c, room, room))
        return -1;
    to = c->current.base + c->at + 8;
    memcpy(to, &time_us, sizeof time_us);
    memcpy(to + sizeof time_us, json, n);
    record_commit(c, (unsigned)kind, length);
    return 0;
}

int myelin_record(struct myelin *m, enum myelin_kind kind, const char *json, size_t n) {
    int failed;

    if (!m || !m->chain)
        return -1;
    if (lock(m)) {
        note_dropped(m->chain, 1);
        return -1;
    }
    failed = write_record(m, kind, json, n);
    if (failed) {
        note_dropped(m->chain, 1);
        count_if_due(m, m->chain);
    }
    unlock(m->chain);
    return failed;
}

/* ---- images and texts */

/* All folders of a path that ends in a slash; `from`: those before it exist. */
static void make_folders(char *path, size_t from) {
    for (char *at = path + from; (at = strchr(at, '/')); at++) {
        *at = '\0';
        (void)mkdir(path, 0777);
        *at = '/';
    }
}

static int write_whole(const char *path, const char *bytes, size_t n) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    ssize_t done = 0;

    while (fd >= 0 && n > 0) {
        done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR)
            break;
        bytes += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return fd < 0 || close(fd) || n > 0 ? -1 : 0;
}

/* The file has its name only when it is whole. */
static int write_media(const struct myelin *m, const char *name, const char *suffix,
                       const void *bytes, size_t n, int64_t step) {
    static atomic_uint parts;
    const char *outputs = getenv("MYELIN_OUTPUTS_PATH"), *rank = getenv("MYELIN_RANK");
    char part[PATH_MAX], path[PATH_MAX], attempt[16] = "";
    const size_t folder = outputs ? media_folder(outputs, name, part) : 0;
    int length;

    if (folder == 0 || (rank && rank[strspn(rank, "0123456789")]))
        return -1;
    make_folders(part, strlen(outputs) + 1);
    memcpy(path, part, folder);
    if (m->attempt > 0)
        snprintf(attempt, sizeof attempt, "-%u", m->attempt);
    length = snprintf(path + folder, sizeof path - folder, "%09lld-%s%s.%s", (long long)step,
                      rank ? rank : "0", attempt, suffix);
    if (length < 0 || (size_t)length >= sizeof path - folder)
        return -1;
    length = snprintf(part + folder, sizeof part - folder, ".part-%ld-%u", (long)getpid(),
                      atomic_fetch_add(&parts, 1));
    if (length < 0 || (size_t)length >= sizeof part - folder)
        return -1;
    if (write_whole(part, bytes, n) == 0 && rename(part, path) == 0)
        return 0;
    unlink(part);
    return -1;
}

int myelin_log_file(struct myelin *m, const char *name, const char *suffix, const void *bytes,
                    size_t n, int64_t step) {
    const int errno_before = errno;
    struct rlimit limit;
    int failed;

    if (!m || !m->chain)
        return -1;
    failed = step == MYELIN_AUTO || n > MYELIN_FILE_MAX || strchr(suffix, '/') ||
             (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < n) ||
             write_media(m, name, suffix, bytes, n, step);
    errno = errno_before;
    if (!failed)
        return 0;
    note_dropped(m->chain, 1);
    return -1;
}

/* ---- the handle */

uint64_t myelin_dropped(const struct myelin *m) {
    return m && m->chain ? atomic_load_explicit(&m->chain->dropped, memory_order_relaxed) : 0;
}

const char *myelin_reason(const struct myelin *m) {
    static const struct {
        int failure;
        const char *reason;
    } rows[] = {
        { EINVAL, "this is not a run of myelin: MYELIN_SPOOL is not set" },
        { ENAMETOOLONG, "the path in MYELIN_SPOOL is too long" },
        { ENOMEM, "there is no memory" },
        { ENOSPC, "the disk of the spool is full" },
        { EDQUOT, "the quota of the user is used up" },
        { EROFS, "the spool cannot be written: its file system is read-only" },
        { EACCES, "the spool cannot be written: permission denied" },
        { EPERM, "the spool cannot be written: permission denied" },
        { ENOENT, "the spool is gone" },
        { ENOTDIR, "the spool is not a directory" },
        { EFBIG, "the limit on file sizes (ulimit -f) leaves no room for a segment" },
        { EMFILE, "the process has too many open files" },
        { ENFILE, "the machine has too many open files" },
        { EIO, "the disk of the spool fails" },
        { BOUND_REACHED,
          "too much waits to be folded: the supervisor does not keep up or is gone" },
    };
    const int failure = m ? atomic_load_explicit(&m->failure, memory_order_relaxed) : ENOMEM;

    if (failure == 0)
        return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].failure == failure)
            return rows[i].reason;
    return "the spool cannot be written";
}

/* Absolute, so that a chdir changes nothing. */
static int take_directory(struct myelin *m, const char *directory) {
    char here[PATH_MAX];
    int n;

    if (directory[0] == '/')
        n = snprintf(m->directory, sizeof m->directory, "%s", directory);
    else if (getcwd(here, sizeof here))
        n = snprintf(m->directory, sizeof m->directory, "%s/%s", here, directory);
    else
        return errno;
    if (n < 0 || (size_t)n >= sizeof m->directory)
        return ENAMETOOLONG;
    m->directory_length = (size_t)n;
    return 0;
}

static uint32_t number_from_environment(const char *variable, uint32_t otherwise) {
    const char *text = getenv(variable);
    char *end;
    unsigned long value;

    if (!text || text[0] < '0' || text[0] > '9')
        return otherwise;
    errno = 0;
    value = strtoul(text, &end, 10);
    return *end || errno || value > UINT32_MAX ? otherwise : (uint32_t)value;
}

static int make_chain(struct myelin *m) {
    void *pages = mmap(NULL, sizeof(struct chain), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED)
        return ENOMEM;
    m->buckets = calloc(NAME_BUCKETS, sizeof *m->buckets);
    if (!m->buckets) {
        munmap(pages, sizeof(struct chain));
        return ENOMEM;
    }
    m->is_fork_checked = madvise(pages, sizeof(struct chain), MADV_WIPEONFORK) != 0;
    m->chain = pages;
    return 0;
}

/* ---- the exit of a process that does not close its handle */

static _Atomic(struct myelin *) handles[HANDLES_MOST];

static void handle_enter(struct myelin *m) {
    for (int i = 0; i < HANDLES_MOST; i++) {
        struct myelin *none = NULL;

        if (atomic_compare_exchange_strong(&handles[i], &none, m))
            return;
    }
}

static void handle_leave(struct myelin *m) {
    for (int i = 0; i < HANDLES_MOST; i++) {
        struct myelin *same = m;

        if (atomic_compare_exchange_strong(&handles[i], &same, NULL))
            return;
    }
}

/* What a process dropped that has no segment to count in. In a child that never logged there is
 * nothing: the counts of its parent are its parent's. */
static void count_at_end(struct myelin *m) {
    struct chain *c = m->chain;

    if (!c || (m->is_fork_checked && c->pid && c->pid != getpid()))
        return;
    if (c->started_ns == 0 && atomic_load_explicit(&c->dropped, memory_order_relaxed) > 0)
        chain_begin(m, c);
    count_write(m, c);
}

__attribute__((destructor)) static void count_at_exit(void) {
    for (int i = 0; i < HANDLES_MOST; i++) {
        struct myelin *m = atomic_exchange(&handles[i], NULL);

        if (m)
            count_at_end(m);
    }
}

struct myelin *myelin_open_at(const char *directory, uint32_t attempt) {
    struct myelin *m = calloc(1, sizeof *m);
    int why = EINVAL;

    if (!m)
        return NULL;
    handle_enter(m);
    m->attempt = attempt;
    m->segments_most = number_from_environment("MYELIN_SPOOL_SEGMENTS", SEGMENTS_DEFAULT);
    m->current.fd = m->next.fd = -1;
    if (directory && directory[0])
        why = take_directory(m, directory);
    if (!why)
        why = make_chain(m);
    atomic_store_explicit(&m->failure, why, memory_order_relaxed);
    return m;
}

struct myelin *myelin_open(void) {
    const int kept = errno;
    struct myelin *m =
        myelin_open_at(getenv("MYELIN_SPOOL"), number_from_environment("MYELIN_ATTEMPT", 0));

    errno = kept;
    return m;
}

void myelin_close(struct myelin *m) {
    struct chain *c = m ? m->chain : NULL;

    if (m) {
        handle_leave(m);
        count_at_end(m);
    }
    /* In a child that never logged there is nothing: its parent's segments are its parent's. */
    if (c && (!m->is_fork_checked || c->pid == getpid())) {
        if (c->next.base)
            segment_discard_next(m, c, c->number + 1);
        if (c->current.base)
            segment_end(m, c, MYELIN_SPOOL_CLOSED);
    }
    if (c)
        munmap(c, sizeof *c);
    if (!m)
        return;
    held_release(&m->current);
    held_release(&m->next);
    for (uint32_t i = 0; i < m->n_names; i++)
        free(name_of(m, i));
    for (size_t i = 0; i < sizeof m->chunks / sizeof *m->chunks; i++)
        free(m->chunks[i]);
    free(m->buckets);
    free(m);
}
