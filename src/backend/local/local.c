/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/local.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/cgroup.h"
#include "backend/local/descendants.h"
#include "backend/local/spawn.h"
#include "backend/local/unenforced.h"
#include "base/clock.h"

enum {
    READ_SIZE = 256 * 1024,
    /* Fewer turns for a task that writes much. The pipes of all processes of a user share a limit
     * (64 MiB unless set), beyond which new ones are tiny: a large gang stays with the usual. */
    PIPE_SIZE = READ_SIZE,
    LARGE_PIPES_MOST = 64,
    REAP_EVERY_MS = 1000, /* orphans that ended while the gang runs */
    SWEEP_FIRST_MS = 2,   /* between two looks at what is left; doubles up to the last */
    SWEEP_LAST_MS = 100,
    STRAY_GRACE_MS = 1000, /* for what a gang that ended by itself left behind */
    REMOVALS_MOST = 20,    /* of control groups that somebody else has entered: some 1.5 s */
};

struct task_process {
    struct local *local;
    struct event exit_event, output_event;
    pid_t pid;
    int pidfd, output; /* -1: closed */
    bool ended;
    struct cgroup *group; /* NULL: it has no limits that hold */
};

/* Launching, then running, then sweeping until nothing is left. A stop may come in any. */
enum stage { STAGE_NEW, STAGE_LAUNCHING, STAGE_RUNNING, STAGE_SWEEPING, STAGE_GONE };

struct local {
    struct backend backend;
    struct event_base *base;
    struct gang gang;
    struct spawner spawner;
    struct task_process *tasks;
    uint32_t launched, living, ended;
    enum stage stage;

    bool stopping, killing; /* SIGTERM, SIGKILL was sent */
    struct event launch_event, reap_event, sweep_event, grace_event;
    uint32_t sweep_ms;

    struct cgroups *groups;         /* NULL until a task has limits */
    milli asked[RESOURCES_LIMITED]; /* the largest limit that a task has */
    int removals;
    bool is_astray; /* a task could not be put on its CPUs */

    struct processes bystanders; /* children from before: `cmd & exec myelin …` */
    int was_subreaper;
    char buffer[READ_SIZE];
};

static void arm(struct event *event, uint32_t ms) {
    const struct timeval delay = clock_timeval(ms);

    evtimer_add(event, &delay);
}

static void begin_sweep(struct local *local);

static void task_over(struct local *local, uint32_t rank, const struct task_end *end) {
    assert(!local->tasks[rank].ended);
    local->tasks[rank].ended = true;
    local->ended++;
    local->gang.ended(local->gang.context, rank, end);
    if (local->ended == local->gang.n_tasks)
        begin_sweep(local);
}

static void close_output(struct task_process *task) {
    if (task->output < 0)
        return;
    event_del(&task->output_event); /* before close: a child between fork and exec has a copy */
    close(task->output);
    task->output = -1;
}

/* Reads once. Returns the number of bytes; 0 when there is nothing more. */
static size_t read_output(struct task_process *task) {
    struct local *local = task->local;
    ssize_t n;

    do
        n = read(task->output, local->buffer, sizeof local->buffer);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0) {
        close_output(task);
        return 0;
    }
    local->gang.output(local->gang.context, (uint32_t)(task - local->tasks), local->buffer,
                       (size_t)n);
    return (size_t)n;
}

/* One read a turn, so that a task that floods waits its turn like the others. */
static void on_output(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    read_output(arg);
}

/* What the pipe holds now is the task's; a detached child may write for ever. */
static void drain_output(struct task_process *task) {
    int size = task->output < 0 ? 0 : fcntl(task->output, F_GETPIPE_SZ);

    while (size > 0 && task->output >= 0) {
        const size_t n = read_output(task);

        if (n == 0)
            break;
        size -= (int)n;
    }
    close_output(task);
}

static void on_exit_of_task(evutil_socket_t fd, short what, void *arg) {
    struct task_process *task = arg;
    struct local *local = task->local;
    siginfo_t info = { 0 };
    struct task_end end;

    (void)what;
    if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) < 0 && errno == EINTR)
        return;
    if (info.si_pid == 0)
        return; /* a wake-up for nothing */
    event_del(&task->exit_event);
    close(task->pidfd);
    task->pidfd = -1;
    local->living--;
    drain_output(task);
    end = (struct task_end){
        .kind = info.si_code == CLD_EXITED ? TASK_EXITED : TASK_SIGNALLED,
        .detail = info.si_status,
    };
    if (task->group && (end.kind != TASK_EXITED || end.detail != 0))
        end.limit = cgroup_limit_hit(local->groups, task->group);
    cgroup_end(local->groups, task->group);
    task->group = NULL;
    task_over(local, (uint32_t)(task - local->tasks), &end);
}

static void task_not_started(struct local *local, uint32_t rank, int errnum, const char *message) {
    struct task_process *task = &local->tasks[rank];
    struct task_end end = {
        .kind = TASK_NOT_STARTED,
        .detail = errnum,
        .message = message,
    };

    if (task->group && errnum == EAGAIN) /* where it would be born in a group that is full */
        end.limit = cgroup_limit_hit(local->groups, task->group);
    cgroup_end(local->groups, task->group);
    task->group = NULL;
    task_over(local, rank, &end);
}

/* Makes the control groups for the limits that the task has. */
static int limit_task(struct local *local, struct task_process *task,
                      const struct task_start *start, struct cgroup_entry *entry,
                      struct error *err) {
    bool has_limits = false;

    for (enum resource i = 0; start->resources && i < RESOURCES_LIMITED; i++) {
        const milli limit = start->resources->of[i].limits;

        if (limit > local->asked[i])
            local->asked[i] = limit;
        has_limits |= limit > 0;
    }
    if (!has_limits)
        return 0;
    if (!local->groups)
        local->groups = cgroups_open(local->gang.id, &local->gang.processes, local->gang.n_tasks);
    return cgroup_make(local->groups, start->name, start->resources, &task->group, entry, err);
}

static void tell_missing(struct local *local) {
    const struct unenforced_text missing = local->groups
                                               ? unenforced_text(local->groups, local->asked)
                                               : (struct unenforced_text){ "" };

    if (missing.text[0] && local->gang.notice)
        local->gang.notice(local->gang.context, missing.text);
}

/* A task between its description and what is told of it. */
struct newcomer {
    uint32_t rank;
    int number; /* of its birth; -1: it cannot be started */
    struct task_name name;
    struct error err;
    int errnum;
};

static void begin_birth(struct local *local, struct newcomer *newcomer) {
    struct cgroup_entry entry = CGROUP_ENTRY_NONE;
    struct task_start start = { 0 };

    newcomer->number = -1;
    newcomer->errnum = EIO;
    if (local->gang.describe(local->gang.context, newcomer->rank, &start, &newcomer->err))
        return;
    snprintf(newcomer->name.text, sizeof newcomer->name.text, "%s", start.name);
    if (limit_task(local, &local->tasks[newcomer->rank], &start, &entry, &newcomer->err) == 0)
        newcomer->number =
            spawner_begin(&local->spawner, &start, &entry, &newcomer->errnum, &newcomer->err);
    if (newcomer->number < 0)
        error_wrap(&newcomer->err, "cannot start %s", start.name);
}

static void settle_birth(struct local *local, struct newcomer *newcomer) {
    struct task_process *task = &local->tasks[newcomer->rank];
    struct spawned spawned;

    if (newcomer->number < 0)
        return;
    if (spawner_settle(&local->spawner, newcomer->number, &spawned, &newcomer->errnum,
                       &newcomer->err)) {
        error_wrap(&newcomer->err, "cannot start %s", newcomer->name.text);
        newcomer->number = -1;
        return;
    }
    task->pid = spawned.pid;
    task->pidfd = spawned.pidfd;
    task->output = spawned.output;
    local->is_astray |= spawned.is_astray;
    if (local->gang.n_tasks <= LARGE_PIPES_MOST)
        fcntl(task->output, F_SETPIPE_SZ, PIPE_SIZE);
    local->living++;
    event_assign(&task->exit_event, local->base, task->pidfd, EV_READ | EV_PERSIST, on_exit_of_task,
                 task);
    event_assign(&task->output_event, local->base, task->output, EV_READ | EV_PERSIST, on_output,
                 task);
    event_add(&task->exit_event, NULL);
    event_add(&task->output_event, NULL);
}

/* Several are born at once. Nobody is told of one before all are over: what is told may lead to a
 * stop, which has to find every process. */
static void launch_some(struct local *local, uint32_t n) {
    struct newcomer newcomers[SPAWNS_AT_ONCE];

    for (uint32_t i = 0; i < n; i++) {
        newcomers[i].rank = local->launched++;
        begin_birth(local, &newcomers[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        settle_birth(local, &newcomers[i]);
    for (uint32_t i = 0; i < n; i++) {
        const struct newcomer *newcomer = &newcomers[i];

        if (newcomer->number < 0)
            task_not_started(local, newcomer->rank, newcomer->errnum, newcomer->err.message);
        else
            local->gang.started(local->gang.context, newcomer->rank,
                                local->tasks[newcomer->rank].pid);
    }
}

/* Some in a turn: exits, output and signals get theirs in between. The first goes alone, as what
 * keeps it from starting mostly keeps all: then the others are not tried. */
static void on_launch(evutil_socket_t fd, short what, void *arg) {
    struct local *local = arg;
    const uint32_t left = local->gang.n_tasks - local->launched,
                   most = local->launched == 0 ? 1 : SPAWNS_AT_ONCE;

    (void)fd, (void)what;
    if (!local->stopping)
        launch_some(local, left < most ? left : most);
    else
        for (uint32_t i = 0; i < left; i++)
            task_not_started(local, local->launched++, ECANCELED,
                             "the gang was stopped before it was started");
    if (local->launched < local->gang.n_tasks) {
        arm(&local->launch_event, 0); /* made active at once, it would come before all others */
        return;
    }
    tell_missing(local);
    if (local->is_astray && local->gang.notice)
        local->gang.notice(local->gang.context,
                           "the kernel refuses to keep tasks on the CPUs that they were given: "
                           "they run on any");
    if (local->stage == STAGE_LAUNCHING)
        local->stage = STAGE_RUNNING;
}

static bool is_unreaped_task(const struct local *local, pid_t pid) {
    for (uint32_t rank = 0; rank < local->launched; rank++)
        if (local->tasks[rank].pid == pid && local->tasks[rank].pidfd >= 0)
            return true;
    return false;
}

/* Takes the dead that came to us as their reaper; tasks are left to their own event.
 * Says whether any child is left. */
static bool reap_orphans(struct local *local) {
    for (;;) {
        siginfo_t info = { 0 };

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
            return errno != ECHILD;
        if (info.si_pid == 0 || is_unreaped_task(local, info.si_pid))
            return true;
        waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
    }
}

static void on_reap(evutil_socket_t fd, short what, void *arg) {
    struct local *local = arg;

    (void)fd, (void)what;
    reap_orphans(local);
    arm(&local->reap_event, REAP_EVERY_MS);
}

static int compare_pids(const void *a, const void *b) {
    const pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

    return (x > y) - (x < y);
}

/* Signals the group of every task that is not reaped yet: only then is its number sure to
 * be its own. Returns those numbers in order. */
static size_t signal_groups(struct local *local, int number, pid_t *groups) {
    size_t n = 0;

    for (uint32_t rank = 0; rank < local->launched; rank++) {
        if (local->tasks[rank].pidfd < 0)
            continue;
        kill(-local->tasks[rank].pid, number);
        groups[n++] = local->tasks[rank].pid;
    }
    if (n)
        qsort(groups, n, sizeof groups[0], compare_pids);
    return n;
}

/* Signals everything of the gang, each process once. Returns how many that are not tasks
 * still live. */
static size_t signal_all(struct local *local, int number) {
    pid_t *groups = calloc(local->launched ? local->launched : 1, sizeof *groups);
    struct processes found = { 0 };
    size_t n, strays = 0;

    if (!groups)
        abort();
    n = signal_groups(local, number, groups);
    descendants_scan(&found, &local->bystanders);
    for (size_t i = 0; i < found.list.len; i++) {
        const struct process *process = &found.list.items[i];

        if (process->is_zombie)
            continue;
        if (bsearch(&process->pid, groups, n, sizeof groups[0], compare_pids))
            continue;
        strays++;
        if (!bsearch(&process->group, groups, n, sizeof groups[0], compare_pids))
            process_signal(process, number);
    }
    processes_release(&found);
    free(groups);
    return strays;
}

static void finish(struct local *local) {
    local->stage = STAGE_GONE;
    event_del(&local->reap_event);
    event_del(&local->sweep_event);
    event_del(&local->grace_event);
    local->gang.gone(local->gang.context);
}

/* Nothing is left when this process has no child; where it had some before the gang,
 * when a look at /proc finds only those. */
static bool nothing_left(struct local *local) {
    struct processes found = { 0 };
    bool none;

    if (!reap_orphans(local))
        return true;
    if (local->bystanders.list.len == 0)
        return false;
    descendants_scan(&found, &local->bystanders);
    none = found.list.len == 0;
    processes_release(&found);
    return none;
}

/* A group stays busy for a moment after its last process was reaped; one that a stranger has
 * entered stays for good, and is not waited for. */
static bool groups_gone(struct local *local) {
    return cgroups_remove(local->groups) || ++local->removals >= REMOVALS_MOST;
}

static void on_sweep(evutil_socket_t fd, short what, void *arg) {
    struct local *local = arg;

    (void)fd, (void)what;
    if (local->stage == STAGE_SWEEPING && nothing_left(local) && groups_gone(local)) {
        finish(local);
        return;
    }
    if (local->killing)
        signal_all(local, SIGKILL); /* again, as what forks may have escaped the last time */
    arm(&local->sweep_event, local->sweep_ms);
    local->sweep_ms = local->sweep_ms * 2 < SWEEP_LAST_MS ? local->sweep_ms * 2 : SWEEP_LAST_MS;
}

static void kill_all(struct local *local) {
    local->stopping = local->killing = true;
    event_del(&local->grace_event);
    if (local->groups)
        cgroups_kill(local->groups);
    signal_all(local, SIGKILL);
    local->sweep_ms = SWEEP_FIRST_MS;
    arm(&local->sweep_event, local->sweep_ms);
}

static void on_grace_over(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    kill_all(arg);
}

/* All tasks have ended: ends what they left behind. */
static void begin_sweep(struct local *local) {
    local->stage = STAGE_SWEEPING;
    local->sweep_ms = SWEEP_FIRST_MS;
    if (local->killing) {
        event_active(&local->sweep_event, EV_TIMEOUT, 0);
        return;
    }
    /* Also after a stop: a detached child may have come up since. */
    if (!nothing_left(local)) {
        signal_all(local, SIGTERM);
        if (!evtimer_pending(&local->grace_event, NULL))
            arm(&local->grace_event, STRAY_GRACE_MS);
    }
    local->stopping = true;
    event_active(&local->sweep_event, EV_TIMEOUT, 0);
}

static int local_launch(struct backend *backend, const struct gang *gang, struct error *err) {
    struct local *local = (struct local *)backend;

    if (local->stage != STAGE_NEW)
        return 0;
    if (spawner_init(&local->spawner, gang->n_tasks, err))
        return -1;
    local->tasks = calloc(gang->n_tasks, sizeof *local->tasks);
    if (!local->tasks)
        abort();
    for (uint32_t rank = 0; rank < gang->n_tasks; rank++)
        local->tasks[rank] = (struct task_process){ .local = local, .pidfd = -1, .output = -1 };
    local->gang = *gang;
    local->stage = STAGE_LAUNCHING;
    event_active(&local->launch_event, EV_TIMEOUT, 0);
    arm(&local->reap_event, REAP_EVERY_MS);
    return 0;
}

static void local_stop(struct backend *backend, enum stop_manner manner, uint32_t grace_ms) {
    struct local *local = (struct local *)backend;

    if (local->stage == STAGE_NEW || local->stage == STAGE_GONE)
        return;
    if (manner == STOP_AT_ONCE) {
        if (!local->killing)
            kill_all(local);
        return;
    }
    if (local->stopping)
        return;
    local->stopping = true;
    arm(&local->grace_event, grace_ms);
    signal_all(local, SIGTERM);
}

static void local_free(struct backend *backend) {
    struct local *local = (struct local *)backend;

    for (uint32_t rank = 0; rank < local->launched; rank++) {
        struct task_process *task = &local->tasks[rank];

        close_output(task);
        if (task->pidfd >= 0) {
            event_del(&task->exit_event);
            close(task->pidfd);
        }
        cgroup_end(local->groups, task->group);
    }
    cgroups_free(local->groups);
    event_del(&local->launch_event);
    event_del(&local->reap_event);
    event_del(&local->sweep_event);
    event_del(&local->grace_event);
    prctl(PR_SET_CHILD_SUBREAPER, local->was_subreaper);
    spawner_release(&local->spawner);
    processes_release(&local->bystanders);
    free(local->tasks);
    free(local);
}

static const struct backend_ops local_ops = {
    .name = "local",
    .launch = local_launch,
    .stop = local_stop,
    .free = local_free,
};

int local_backend_new(struct event_base *base, struct backend **out, struct error *err) {
    struct local *local = calloc(1, sizeof *local);

    if (!local)
        abort();
    local->backend.ops = &local_ops;
    local->base = base;
    prctl(PR_GET_CHILD_SUBREAPER, &local->was_subreaper);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
        error_set_errno(err, errno, "cannot become the reaper of the tasks");
        free(local);
        return -1;
    }
    if (waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | WNOHANG | WNOWAIT) == 0)
        descendants_scan(&local->bystanders, NULL);
    evtimer_assign(&local->launch_event, base, on_launch, local);
    evtimer_assign(&local->reap_event, base, on_reap, local);
    evtimer_assign(&local->sweep_event, base, on_sweep, local);
    evtimer_assign(&local->grace_event, base, on_grace_over, local);
    *out = &local->backend;
    return 0;
}
