/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/spawn.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GUARD = 4096,
    STACK = GUARD + BIRTH_STACK,
    SIGNAL_LAST = 64,
    FDS_EACH = 3,   /* its pidfd, its pipe, its log */
    SPARE_FDS = 64, /* of this program, and of control groups while they are entered */
};

/* ---- one birth ---- */

static char **copy_texts(struct arena *arena, char *const *texts) {
    size_t n = 0;
    char **copy;

    while (texts[n])
        n++;
    copy = ARENA_ARRAY(arena, char *, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = arena_text(arena, texts[i], strlen(texts[i]));
    return copy;
}

/* The describer's own is gone when the next task is described, which may be before the birth. */
static void give(struct berth *berth, const struct spawner *spawner, const char *path,
                 const struct task_start *start, struct cgroup_entry *entry) {
    const struct rlimit *nofile = &spawner->nofile;
    struct arena *copy = &berth->copy;

    berth->birth = (struct birth){
        .path = arena_text(copy, path, strlen(path)),
        .argv = copy_texts(copy, start->argv),
        .envp = copy_texts(copy, start->envp),
        .directory =
            start->directory ? arena_text(copy, start->directory, strlen(start->directory)) : NULL,
        .cpus = start->cpus ? arena_copy(copy, start->cpus, sizeof *start->cpus) : NULL,
        .entry = *entry,
        .parent = getpid(),
        .input = spawner->null_fd,
        .output = berth->slot_fd,
        .past = spawner->past_slots,
        .shares_files = spawner->shares_files,
        .nofile = nofile->rlim_cur != nofile->rlim_max ? nofile : NULL,
        .ignored = spawner->ignored,
    };
    *entry = (struct cgroup_entry)CGROUP_ENTRY_NONE;
}

static void clear(struct berth *berth) {
    cgroup_entry_release(&berth->birth.entry);
    arena_release(&berth->copy);
    berth->is_taken = false;
}

/* Who dies of the limit of a memory group takes all with him that share his memory, unless he is
 * waited for: then he is refused the memory, and says so. */
static enum birth_manner manner_of(const struct spawner *spawner, const struct birth *birth) {
    const bool enters_groups = birth->entry.n_files > 0 || birth->entry.directory >= 0;

    return spawner->overlaps && !enters_groups ? BIRTH_BESIDE : BIRTH_WAITED_FOR;
}

static int make_process(struct spawner *spawner, struct berth *berth, int *errnum,
                        struct error *err) {
    int ends[2], pidfd = -1;
    sigset_t all, before;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        *errnum = errno;
        return error_set_errno(err, errno, "cannot make a pipe");
    }
    /* Only our end: a task may expect that its writes block. */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    dup3(ends[1], berth->slot_fd, O_CLOEXEC);
    close(ends[1]);

    /* No handler of ours may run in the child, in our memory. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid = birth_begin(&berth->birth, manner_of(spawner, &berth->birth), berth->stack, &pidfd);
    *errnum = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        close(ends[0]);
        dup3(spawner->null_fd, berth->slot_fd, O_CLOEXEC);
        return error_set_errno(err, *errnum, "cannot make a process");
    }
    spawner->overlaps |= berth->birth.end_was_told;
    berth->born = (struct spawned){ .pid = pid, .pidfd = pidfd, .output = ends[0] };
    return 0;
}

static int free_berth(const struct spawner *spawner) {
    int number = 0;

    while (number < spawner->n_berths && spawner->berths[number].is_taken)
        number++;
    assert(number < spawner->n_berths);
    return number;
}

static int find(struct spawner *spawner, const struct task_start *start, char *found, int *errnum,
                struct error *err) {
    const char *name = start->argv[0];

    if (!name || name[0] == '\0') {
        *errnum = ENOENT;
        return error_set(err, ERROR_INVALID, "the command is empty");
    }
    if (!strchr(name, '/'))
        return program_find_cached(&spawner->cache, name, start->envp, start->directory, found,
                                   errnum, err);
    if (strlen(name) >= PATH_MAX) {
        *errnum = ENAMETOOLONG;
        return error_set(err, ERROR_INVALID, "the name of the command is too long");
    }
    strcpy(found, name);
    return 0;
}

int spawner_begin(struct spawner *spawner, const struct task_start *start,
                  struct cgroup_entry *entry, int *errnum, struct error *err) {
    const int number = free_berth(spawner);
    struct berth *berth = &spawner->berths[number];
    char path[PATH_MAX];

    if (find(spawner, start, path, errnum, err)) {
        cgroup_entry_release(entry);
        return -1;
    }
    give(berth, spawner, path, start, entry);
    if (make_process(spawner, berth, errnum, err)) {
        clear(berth);
        return -1;
    }
    berth->is_taken = true;
    return number;
}

static int describe_failure(const struct birth *birth, int *errnum, struct error *err) {
    *errnum = birth->errnum;
    if (strcmp(birth->step, "execve") == 0)
        return program_explain(birth->path, birth->directory, errnum, err);
    if (strcmp(birth->step, "chdir") == 0) {
        /* ENOENT would read as "no such program" to those who look at the number. */
        *errnum = EIO;
        return error_set_errno(err, birth->errnum, "cannot enter the directory '%s'",
                               birth->directory);
    }
    return error_set_errno(err, birth->errnum, "%s", birth->step);
}

int spawner_settle(struct spawner *spawner, int number, struct spawned *out, int *errnum,
                   struct error *err) {
    struct berth *berth = &spawner->berths[number];
    int status = 0;

    assert(berth->is_taken);
    birth_await(&berth->birth);
    dup3(spawner->null_fd, berth->slot_fd, O_CLOEXEC); /* the task alone has the writing end now */
    if (berth->birth.errnum == 0) {
        *out = berth->born;
        out->is_astray = berth->birth.is_astray;
    } else {
        waitpid(berth->born.pid, NULL, 0);
        close(berth->born.pidfd);
        close(berth->born.output);
        status = describe_failure(&berth->birth, errnum, err);
        program_forget(&spawner->cache); /* it may have moved since it was found */
    }
    clear(berth);
    return status;
}

/* ---- the spawner ---- */

static uint64_t ignored_signals(void) {
    uint64_t ignored = 0;

    for (int number = 1; number <= SIGNAL_LAST; number++) {
        struct sigaction now;

        if (sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            ignored |= UINT64_C(1) << (number - 1);
    }
    return ignored;
}

/* /dev/null above the standard three. When the program was started with one of them
 * closed, that one is filled as well: else a pipe of ours would take its number. */
static int open_null(struct error *err) {
    int fd = open("/dev/null", O_RDWR);

    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open /dev/null");
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

static void close_slots(struct spawner *spawner) {
    while (spawner->n_berths > 0)
        close(spawner->berths[--spawner->n_berths].slot_fd);
}

static size_t stacks_size(uint32_t n_tasks) {
    return (size_t)(n_tasks < SPAWNS_AT_ONCE ? n_tasks : SPAWNS_AT_ONCE) * STACK;
}

static int make_berths(struct spawner *spawner, struct error *err) {
    const size_t size = stacks_size(spawner->n_tasks);

    spawner->stacks =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (spawner->stacks == MAP_FAILED)
        return error_set_errno(err, errno, "cannot map stacks");
    for (char *guard = spawner->stacks; guard < spawner->stacks + size; guard += STACK) {
        struct berth *berth = &spawner->berths[spawner->n_berths];

        berth->slot_fd = fcntl(spawner->null_fd, F_DUPFD_CLOEXEC, spawner->null_fd + 1);
        if (berth->slot_fd < 0) {
            error_set_errno(err, errno, "cannot copy a descriptor");
            close_slots(spawner);
            munmap(spawner->stacks, size);
            return -1;
        }
        if ((unsigned)berth->slot_fd >= spawner->past_slots)
            spawner->past_slots = (unsigned)berth->slot_fd + 1;
        mprotect(guard, GUARD, PROT_NONE);
        berth->stack = guard + GUARD;
        spawner->n_berths++;
    }
    return 0;
}

/* Makes the table of descriptors large enough now. The kernel waits for all processors, many
 * milliseconds, before it replaces one that is shared, as it is with those that are being born. */
static void widen_table(const struct spawner *spawner) {
    const int fd = fcntl(spawner->null_fd, F_DUPFD_CLOEXEC,
                         (int)spawner->past_slots + SPARE_FDS + FDS_EACH * (int)spawner->n_tasks);

    if (fd >= 0)
        close(fd);
}

/* Else a large gang is told EMFILE, task by task. */
static void raise_limit(struct rlimit *before) {
    struct rlimit raised;

    getrlimit(RLIMIT_NOFILE, before);
    raised = *before;
    raised.rlim_cur = raised.rlim_max;
    setrlimit(RLIMIT_NOFILE, &raised);
}

/* Ours are close-on-exec already; this is for those that the user's shell left open. */
static void keep_from_children(void) {
    DIR *list;
    const struct dirent *entry;

    if (syscall(SYS_close_range, STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    list = opendir("/proc/self/fd");
    while (list && (entry = readdir(list))) {
        const int fd = atoi(entry->d_name);

        if (fd > STDERR_FILENO)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    if (list)
        closedir(list);
}

int spawner_init(struct spawner *spawner, uint32_t n_tasks, struct error *err) {
    struct spawner made = { .n_tasks = n_tasks };

    raise_limit(&made.nofile);
    made.null_fd = open_null(err);
    made.past_slots = (unsigned)made.null_fd + 1;
    if (made.null_fd < 0 || make_berths(&made, err)) {
        if (made.null_fd >= 0)
            close(made.null_fd);
        setrlimit(RLIMIT_NOFILE, &made.nofile);
        return -1;
    }
    made.shares_files = syscall(SYS_close_range, UINT_MAX, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0;
    made.ignored = ignored_signals();
    keep_from_children();
    widen_table(&made);
    *spawner = made;
    return 0;
}

void spawner_release(struct spawner *spawner) {
    if (!spawner->stacks)
        return;
    setrlimit(RLIMIT_NOFILE, &spawner->nofile);
    program_forget(&spawner->cache);
    munmap(spawner->stacks, stacks_size(spawner->n_tasks));
    close_slots(spawner);
    close(spawner->null_fd);
    *spawner = (struct spawner){ 0 };
}
