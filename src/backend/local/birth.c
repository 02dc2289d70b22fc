/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/birth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIGNAL_LAST = 64 };

/* The child runs on a foreign stack in shared memory and never returns from its
 * functions, which a sanitizer takes for corruption. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined")))

/* ---- the kernel's calls, for both ---- */

/* Returns what the kernel does: a negative errno on failure. */
#if defined __x86_64__
IN_CHILD static long call4(long number, long a, long b, long c, long d) {
    long result;
    register long fourth __asm__("r10") = d;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

/* The child needs another stack, so it may not return through the parent's frames. */
static long call_clone3(struct clone_args *args, int (*entry)(void *), void *arg) {
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
    return result;
}
#else
/* Sets errno: on these machines every birth is waited for. */
IN_CHILD static long call4(long number, long a, long b, long c, long d) {
    const long result = syscall(number, a, b, c, d);

    return result < 0 ? -errno : result;
}

static long call_clone3(struct clone_args *args, int (*entry)(void *), void *arg) {
    (void)args, (void)entry, (void)arg;
    return -ENOSYS;
}
#endif

#define CALL(number, a, b, c, d) call4(number, (long)(a), (long)(b), (long)(c), (long)(d))

/* ---- the child ---- */

IN_CHILD static long reset_signals(const struct birth *birth) {
    /* What the kernel takes, of which struct sigaction is libc's view. All zeros: the default. */
    const struct { uint64_t handler, flags, restorer, mask; } by_default = { 0 };
    const uint64_t none = 0;

    for (int number = 1; number <= SIGNAL_LAST; number++)
        if (!birth->handlers_cleared || (birth->ignored >> (number - 1) & 1))
            CALL(SYS_rt_sigaction, number, &by_default, NULL, sizeof none);
    return CALL(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

IN_CHILD static long enter_cgroups(const struct birth *birth) {
    const struct cgroup_entry *entry = &birth->entry;
    long result = 0;

    for (int i = 0; i < entry->n_files && result >= 0; i++)
        result = CALL(SYS_write, entry->files[i], "0", 1, 0);
    if (result >= 0 && entry->shared >= 0)
        result = CALL(SYS_write, entry->shared, "0", 1, 0);
    if (result >= 0 && entry->directory >= 0 && !birth->is_inside) {
        const long fd = CALL(SYS_openat, entry->directory, "cgroup.procs", O_WRONLY | O_CLOEXEC, 0);

        result = fd < 0 ? fd : CALL(SYS_write, fd, "0", 1, 0);
        if (fd >= 0)
            CALL(SYS_close, fd, 0, 0, 0); /* the table of descriptors may still be the parent's */
    }
    return result;
}

/* Gives the child a table of descriptors of its own with the standard three; the others end with
 * execve. A copy of the parent's would hold two for each task, and a large gang would spend most
 * of its start copying and closing them: the table is shared up to here, and only its low end is
 * copied. */
IN_CHILD static long connect_streams(const struct birth *birth) {
    long result = 0;

    if (birth->shares_files)
        result = CALL(SYS_close_range, birth->past, UINT_MAX, CLOSE_RANGE_UNSHARE, 0);
    if (result >= 0)
        result = CALL(SYS_dup3, birth->input, STDIN_FILENO, 0, 0);
    if (result >= 0)
        result = CALL(SYS_dup3, birth->output, STDOUT_FILENO, 0, 0);
    if (result >= 0)
        result = CALL(SYS_dup3, birth->output, STDERR_FILENO, 0, 0);
    return result;
}

IN_CHILD static void leave(void) {
    for (;;)
        CALL(SYS_exit_group, 127, 0, 0, 0);
}

/* Returns what the kernel said to the step that failed, which it names. */
IN_CHILD static long become_task(struct birth *birth, const char **step) {
    long result;

    *step = "cannot tie it to the supervisor";
    if ((result = CALL(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0)) < 0)
        return result;
    if (CALL(SYS_getppid, 0, 0, 0, 0) != birth->parent)
        leave(); /* the supervisor died before the line above: nobody reads what we say */
    *step = "cannot enter its control group";
    if ((result = enter_cgroups(birth)) < 0)
        return result;
    /* Refused where a CPU was taken away meanwhile, or by a filter: slower is better than not. */
    if (birth->cpus &&
        CALL(SYS_sched_setaffinity, 0, sizeof birth->cpus->words, birth->cpus->words, 0) < 0)
        birth->is_astray = true;
    *step = "cannot make a process group";
    if ((result = CALL(SYS_setpgid, 0, 0, 0, 0)) < 0)
        return result;
    *step = "cannot connect its standard streams";
    if ((result = connect_streams(birth)) < 0)
        return result;
    *step = "cannot restore its limit of open files";
    if (birth->nofile && (result = CALL(SYS_prlimit64, 0, RLIMIT_NOFILE, birth->nofile, NULL)) < 0)
        return result;
    *step = "chdir";
    if (birth->directory && (result = CALL(SYS_chdir, birth->directory, 0, 0, 0)) < 0)
        return result;
    reset_signals(birth);
    *step = "execve";
    return CALL(SYS_execve, birth->path, birth->argv, birth->envp, 0);
}

IN_CHILD static int child_main(void *arg) {
    struct birth *birth = arg;
    const char *step;
    const long result = become_task(birth, &step);

    birth->step = step;
    birth->errnum = (int)-result;
    leave();
    return 0;
}

/* ---- the parent ---- */

pid_t birth_begin(struct birth *birth, enum birth_manner manner, char *stack, int *pidfd) {
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_CHILD_CLEARTID |
                 (manner == BIRTH_WAITED_FOR ? CLONE_VFORK : 0u) |
                 (birth->shares_files ? CLONE_FILES : 0u) |
                 (birth->entry.directory >= 0 ? CLONE_INTO_CGROUP : 0u),
        .pidfd = (uint64_t)(uintptr_t)pidfd,
        .child_tid = (uint64_t)(uintptr_t)&birth->going_on,
        .exit_signal = SIGCHLD,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = BIRTH_STACK,
        .cgroup = birth->entry.directory >= 0 ? (unsigned)birth->entry.directory : 0u,
    };
    long pid;

    birth->going_on = 1;
    birth->is_inside = birth->entry.directory >= 0;
    birth->handlers_cleared = true;
    pid = call_clone3(&args, child_main, birth);
    if (pid == -ENOSYS || pid == -EPERM) { /* container filters refuse it so */
        manner = BIRTH_WAITED_FOR;
        birth->handlers_cleared = birth->is_inside = false;
        pid = clone(child_main, stack + BIRTH_STACK,
                    CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD |
                        (birth->shares_files ? CLONE_FILES : 0),
                    birth, pidfd);
    } else if (pid < 0) {
        errno = (int)-pid;
        pid = -1;
    }
    if (manner == BIRTH_WAITED_FOR) {
        birth->end_was_told = pid >= 0 && birth->going_on == 0;
        birth->going_on = 0;
    }
    return (pid_t)pid;
}

void birth_await(struct birth *birth) {
    int32_t now;

    while ((now = __atomic_load_n(&birth->going_on, __ATOMIC_ACQUIRE)) != 0)
        syscall(SYS_futex, &birth->going_on, FUTEX_WAIT, now, NULL, NULL, 0);
}
