/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/cpus.h"

enum { STACK_SIZE = 64 * 1024, GUARD_SIZE = 4096, SIGNAL_LAST = 64 };

/* The child runs on a foreign stack in shared memory and never returns from its
 * functions, which a sanitizer takes for corruption. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined")))

/* What parent and child share. The child writes errnum and step, then exits. */
struct birth {
    const char *path;
    const struct task_start *start;
    const struct spawner *spawner;
    const struct cgroup_entry *entry;
    bool is_inside; /* it was made in its control group */
    pid_t parent;
    bool handlers_cleared;
    volatile int errnum;
    const char *volatile step;
    volatile bool is_astray; /* not on the CPUs that it was to run on */
};

IN_CHILD static void reset_signals(const struct birth *birth) {
    struct sigaction by_default = { .sa_handler = SIG_DFL };
    sigset_t none;

    for (int number = 1; number <= SIGNAL_LAST; number++)
        if (!birth->handlers_cleared || sigismember(&birth->spawner->ignored, number) == 1)
            sigaction(number, &by_default, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

IN_CHILD static bool enter_cgroups(const struct birth *birth) {
    const struct cgroup_entry *entry = birth->entry;

    for (int i = 0; i < entry->n_files; i++)
        if (write(entry->files[i], "0", 1) < 0)
            return false;
    if (entry->shared >= 0 && write(entry->shared, "0", 1) < 0)
        return false;
    if (entry->directory >= 0 && !birth->is_inside) {
        const int fd = openat(entry->directory, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        const bool is_in = fd >= 0 && write(fd, "0", 1) > 0;

        if (fd >= 0)
            close(fd); /* the table of descriptors may still be the parent's */
        return is_in;
    }
    return true;
}

/* Gives the child a table of descriptors with the standard three and nothing else that outlives
 * execve. A copy of the parent's would hold two for each task, and a large gang would spend most
 * of its start copying and closing them: the table is shared up to here, and only its low end is
 * copied. */
IN_CHILD static bool connect_streams(const struct birth *birth) {
    const struct spawner *spawner = birth->spawner;
    const unsigned past =
        (unsigned)(spawner->slot_fd > spawner->null_fd ? spawner->slot_fd : spawner->null_fd) + 1;

    if (spawner->shares_files && syscall(SYS_close_range, past, UINT_MAX, CLOSE_RANGE_UNSHARE) < 0)
        return false;
    if (dup2(spawner->null_fd, STDIN_FILENO) < 0 || dup2(spawner->slot_fd, STDOUT_FILENO) < 0 ||
        dup2(spawner->slot_fd, STDERR_FILENO) < 0)
        return false;
    /* Ours are close-on-exec already; this is for those that the user's shell left open. */
    syscall(SYS_close_range, STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
    return true;
}

/* Returns the name of the step that failed, with errno set. */
IN_CHILD static const char *become_task(struct birth *birth) {
    const struct spawner *spawner = birth->spawner;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return "cannot tie it to the supervisor";
    if (getppid() != birth->parent)
        _exit(127); /* the supervisor died before the line above: nobody reads what we say */
    if (!enter_cgroups(birth))
        return "cannot enter its control group";
    /* Refused where a CPU was taken away meanwhile, or by a filter: slower is better than not. */
    if (birth->start->cpus && syscall(SYS_sched_setaffinity, 0, sizeof birth->start->cpus->words,
                                      birth->start->cpus->words) < 0)
        birth->is_astray = true;
    if (setpgid(0, 0) < 0)
        return "cannot make a process group";
    if (!connect_streams(birth))
        return "cannot connect its standard streams";
    if (spawner->nofile.rlim_cur != spawner->nofile.rlim_max &&
        setrlimit(RLIMIT_NOFILE, &spawner->nofile) < 0)
        return "cannot restore its limit of open files";
    if (birth->start->directory && chdir(birth->start->directory) < 0)
        return "chdir";
    reset_signals(birth);
    execve(birth->path, birth->start->argv, birth->start->envp);
    return "execve";
}

IN_CHILD static int child_main(void *arg) {
    struct birth *birth = arg;

    birth->step = become_task(birth);
    birth->errnum = errno;
    _exit(127);
}

#if defined __x86_64__
/* The raw call: glibc has no clone3, and the child needs another stack, so it may not
 * return through the parent's frames. */
IN_CHILD static long clone3_call(struct clone_args *args, int (*entry)(void *), void *arg) {
    long result;
    register int (*entry_register)(void *) __asm__("r8") = entry;
    register void *arg_register __asm__("r9") = arg;

    __asm__ volatile("syscall\n\t"
                     "testq %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xorl %%ebp, %%ebp\n\t"
                     "movq %%r9, %%rdi\n\t"
                     "callq *%%r8\n\t"
                     "hlt\n\t"
                     "1:"
                     : "=a"(result), "+r"(entry_register), "+r"(arg_register)
                     : "0"((long)SYS_clone3), "D"(args), "S"(sizeof *args)
                     : "rcx", "r10", "r11", "cc", "memory");
    if (result < 0) {
        errno = (int)-result;
        return -1;
    }
    return result;
}
#else
static long clone3_call(struct clone_args *args, int (*entry)(void *), void *arg) {
    (void)args, (void)entry, (void)arg;
    errno = ENOSYS;
    return -1;
}
#endif

/* Starts the child; returns when it has executed its program or exited. */
static pid_t give_birth(struct spawner *spawner, struct birth *birth, int *pidfd) {
    const uint64_t flags =
        CLONE_VM | CLONE_VFORK | CLONE_PIDFD | (spawner->shares_files ? CLONE_FILES : 0u);
    char *const stack = spawner->stack + GUARD_SIZE;

    if (spawner->has_clone3) {
        struct clone_args args = {
            .flags = flags | CLONE_CLEAR_SIGHAND,
            .pidfd = (uint64_t)(uintptr_t)pidfd,
            .exit_signal = SIGCHLD,
            .stack = (uint64_t)(uintptr_t)stack,
            .stack_size = STACK_SIZE,
        };
        long pid;

        birth->is_inside = birth->entry->directory >= 0;
        if (birth->is_inside) {
            args.flags |= CLONE_INTO_CGROUP;
            args.cgroup = (unsigned)birth->entry->directory;
        }
        birth->handlers_cleared = true;
        pid = clone3_call(&args, child_main, birth);
        if (pid >= 0 || (errno != ENOSYS && errno != EPERM))
            return (pid_t)pid;
        spawner->has_clone3 = false; /* container filters refuse it so */
    }
    birth->handlers_cleared = birth->is_inside = false;
    return clone(child_main, stack + STACK_SIZE, (int)flags | SIGCHLD, birth, pidfd);
}

static int describe_failure(const struct birth *birth, int *errnum, struct error *err) {
    const struct task_start *start = birth->start;

    *errnum = birth->errnum;
    if (strcmp(birth->step, "execve") == 0)
        return program_explain(birth->path, start->directory, errnum, err);
    if (strcmp(birth->step, "chdir") == 0) {
        /* ENOENT would read as "no such program" to those who look at the number. */
        *errnum = EIO;
        return error_set_errno(err, birth->errnum, "cannot enter the directory '%s'",
                               start->directory);
    }
    return error_set_errno(err, birth->errnum, "%s", birth->step);
}

static int start_resolved(struct spawner *spawner, struct birth *birth, struct spawned *out,
                          int *errnum, struct error *err) {
    int ends[2], pidfd = -1;
    sigset_t all, before;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        *errnum = errno;
        return error_set_errno(err, errno, "cannot make a pipe");
    }
    /* Only our end: a task may expect that its writes block. */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    dup3(ends[1], spawner->slot_fd, O_CLOEXEC);
    close(ends[1]);

    /* No handler of ours may run in the child, in our memory. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid = give_birth(spawner, birth, &pidfd);
    *errnum = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    dup3(spawner->null_fd, spawner->slot_fd, O_CLOEXEC);

    if (pid >= 0 && birth->errnum == 0) {
        *out = (struct spawned){
            .pid = pid, .pidfd = pidfd, .output = ends[0], .is_astray = birth->is_astray
        };
        return 0;
    }
    close(ends[0]);
    if (pid < 0)
        return error_set_errno(err, *errnum, "cannot make a process");
    waitpid(pid, NULL, 0);
    close(pidfd);
    return describe_failure(birth, errnum, err);
}

int spawner_start(struct spawner *spawner, const struct task_start *start,
                  const struct cgroup_entry *entry, struct spawned *out, int *errnum,
                  struct error *err) {
    struct birth birth = { .start = start, .spawner = spawner, .entry = entry, .parent = getpid() };
    char found[PATH_MAX];

    if (!start->argv[0] || start->argv[0][0] == '\0') {
        *errnum = ENOENT;
        return error_set(err, ERROR_INVALID, "the command is empty");
    }
    birth.path = start->argv[0];
    if (!strchr(start->argv[0], '/')) {
        if (program_find_cached(&spawner->cache, start->argv[0], start->envp, start->directory,
                                found, errnum, err))
            return -1;
        birth.path = found;
    }
    if (start_resolved(spawner, &birth, out, errnum, err)) {
        program_forget(&spawner->cache); /* it may have moved since it was found */
        return -1;
    }
    return 0;
}

static void note_ignored(sigset_t *ignored) {
    sigemptyset(ignored);
    for (int number = 1; number <= SIGNAL_LAST; number++) {
        struct sigaction now;

        if (sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            sigaddset(ignored, number);
    }
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

int spawner_init(struct spawner *spawner, struct error *err) {
    struct rlimit raised;
    struct spawner made = { .has_clone3 = true };

    made.null_fd = open_null(err);
    if (made.null_fd < 0)
        return -1;
    made.slot_fd = fcntl(made.null_fd, F_DUPFD_CLOEXEC, made.null_fd + 1);
    if (made.slot_fd < 0) {
        close(made.null_fd);
        return error_set_errno(err, errno, "cannot copy a descriptor");
    }
    made.shares_files = syscall(SYS_close_range, UINT_MAX, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0;
    made.stack = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (made.stack == MAP_FAILED) {
        close(made.null_fd);
        close(made.slot_fd);
        return error_set_errno(err, errno, "cannot map a stack");
    }
    mprotect(made.stack, GUARD_SIZE, PROT_NONE);
    note_ignored(&made.ignored);
    getrlimit(RLIMIT_NOFILE, &made.nofile);
    raised = made.nofile;
    raised.rlim_cur = raised.rlim_max;
    setrlimit(RLIMIT_NOFILE, &raised); /* else a large gang is told EMFILE, task by task */
    *spawner = made;
    return 0;
}

void spawner_release(struct spawner *spawner) {
    if (!spawner->stack)
        return;
    setrlimit(RLIMIT_NOFILE, &spawner->nofile);
    program_forget(&spawner->cache);
    munmap(spawner->stack, GUARD_SIZE + STACK_SIZE);
    close(spawner->null_fd);
    close(spawner->slot_fd);
    *spawner = (struct spawner){ 0 };
}
