/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/cgroup_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/local/descendants.h"
#include "base/clock.h"
#include "base/file.h"
#include "model/uuid.h"

enum {
    MOUNTINFO_MOST = 16 * 1024 * 1024,
    SELF_MOST = 256 * 1024,
    DEPTH_MOST = 16, /* of groups that tasks made within theirs */
    KILL_TRIES = 20,
    KILL_PAUSE_MS = 5,
};

static const char prefix[] = "myelin-";

void cgroup_name(char out[static CGROUP_NAME_MOST], const char *id) {
    snprintf(out, CGROUP_NAME_MOST, "%s%.64s", prefix, id);
}

int cgroup_write(int directory, const char *file, const char *text) {
    const int fd = openat(directory, file, O_WRONLY | O_CLOEXEC);
    ssize_t n;
    int errnum;

    if (fd < 0)
        return errno;
    /* The memory controller of v1 gives up at any signal, also at one that means nothing to it. */
    do
        n = write(fd, text, strlen(text));
    while (n < 0 && errno == EINTR);
    errnum = n < 0 ? errno : 0;
    close(fd);
    return errnum;
}

int cgroup_read(int directory, const char *file, char *text, size_t size) {
    const int fd = openat(directory, file, O_RDONLY | O_CLOEXEC);
    ssize_t n;
    int errnum;

    text[0] = '\0';
    if (fd < 0)
        return errno;
    n = read(fd, text, size - 1);
    errnum = n < 0 ? errno : 0;
    close(fd);
    text[n < 0 ? 0 : n] = '\0';
    return errnum;
}

/* ---- where ---- */

void cgroup_places_read(struct cgroup_places *places) {
    struct error ignored; /* what cannot be read is as what is not there */

    *places = (struct cgroup_places){ BUF_INIT(MOUNTINFO_MOST), BUF_INIT(SELF_MOST) };
    if (file_read("/proc/self/mountinfo", &places->mountinfo, &ignored) ||
        file_read("/proc/self/cgroup", &places->self, &ignored))
        buf_clear(&places->mountinfo);
}

void cgroup_places_release(struct cgroup_places *places) {
    buf_release(&places->mountinfo);
    buf_release(&places->self);
}

/* In words, if this user may not make groups in the directory. */
static bool may_make(const char *directory, char why[static CGROUP_WHY_MOST]) {
    if (faccessat(AT_FDCWD, directory, W_OK, AT_EACCESS) == 0)
        return true;
    if (errno == EACCES)
        snprintf(why, CGROUP_WHY_MOST, "this user may not make control groups in %.160s",
                 directory);
    else
        snprintf(why, CGROUP_WHY_MOST, "no control groups can be made in %.150s: %s", directory,
                 strerror(errno));
    return false;
}

/* A group that holds processes may not pass controllers on. The kernel refuses most, but not
 * cpu and pids, with which it makes the groups below unusable. Of the root of all groups, which
 * has no type, nothing of this is true. */
static bool may_be_inner(int directory) {
    char text[64];

    if (cgroup_read(directory, "cgroup.type", text, sizeof text) == ENOENT)
        return true;
    return strcmp(text, "domain\n") == 0 &&
           cgroup_read(directory, "cgroup.procs", text, sizeof text) == 0 && text[0] == '\0';
}

static bool lists(int directory, const char *file, const char *controller) {
    char text[CGROUP_TEXT_MOST];

    return cgroup_read(directory, file, text, sizeof text) == 0 &&
           cgroup_map_lists(text, strlen(text), controller, ' ');
}

/* Whether the group passes the controller on to groups below it, now or when asked. */
static bool passes_on(int directory, const char *controller, enum cgroup_asking asking) {
    char word[32];

    if (lists(directory, "cgroup.subtree_control", controller))
        return true;
    if (asking == CGROUP_LOOK)
        return lists(directory, "cgroup.controllers", controller) &&
               faccessat(directory, "cgroup.subtree_control", W_OK, AT_EACCESS) == 0;
    snprintf(word, sizeof word, "+%s", controller);
    return cgroup_write(directory, "cgroup.subtree_control", word) == 0;
}

/* Which of the controllers the group passes on. */
static uint32_t passed_on(const char *directory, const char *const *controllers, size_t n,
                          enum cgroup_asking asking) {
    const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint32_t passes = 0;

    /* Only who may write to cgroup.procs here may put processes below. */
    if (fd < 0 || faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) < 0 || !may_be_inner(fd)) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        if (passes_on(fd, controllers[i], asking))
            passes |= 1u << i;
    close(fd);
    return passes;
}

/* Cuts the path back to the group above. False: it is the top of what is mounted. */
static bool go_up(struct cgroup_spot *spot) {
    char *slash = strrchr(spot->path, '/');

    if (!slash || (size_t)(slash - spot->path) < spot->mount_len ||
        strlen(spot->path) <= spot->mount_len)
        return false;
    *slash = '\0';
    return true;
}

bool cgroup_place_v1(const struct cgroup_places *places, const char *controller,
                     struct cgroup_place *out) {
    struct cgroup_spot spot;
    const enum cgroup_found found =
        cgroup_map_find(places->mountinfo.data, places->self.data, controller, &spot);

    *out = (struct cgroup_place){ 0 };
    if (found == CGROUP_NOT_MOUNTED)
        return false;
    if (found == CGROUP_OUTSIDE) {
        snprintf(out->why, sizeof out->why,
                 "the control group of this process is not visible where it runs");
        return true;
    }
    snprintf(out->parent, sizeof out->parent, "%s", spot.path);
    out->is_usable = may_make(spot.path, out->why);
    return true;
}

void cgroup_place_v2(const struct cgroup_places *places, const char *const *controllers, size_t n,
                     enum cgroup_asking asking, struct cgroup_place *out) {
    struct cgroup_spot spot;

    *out = (struct cgroup_place){ 0 };
    if (cgroup_map_find(places->mountinfo.data, places->self.data, NULL, &spot) != CGROUP_FOUND) {
        snprintf(out->why, sizeof out->why, "this machine has no control groups");
        return;
    }
    snprintf(out->why, sizeof out->why,
             "no control group from %.120s upwards is both writable by this user and without "
             "processes",
             spot.path);
    do {
        char ignored[CGROUP_WHY_MOST];
        const uint32_t passes =
            may_make(spot.path, ignored) ? passed_on(spot.path, controllers, n, asking) : 0;

        if (__builtin_popcount(passes) <= __builtin_popcount(out->passes))
            continue;
        out->passes = passes;
        out->is_usable = true;
        snprintf(out->parent, sizeof out->parent, "%s", spot.path);
        if (passes == (1u << n) - 1)
            return;
    } while (go_up(&spot));
}

/* ---- the end of groups ---- */

/* As cgroup_name makes it of a run's uuid. A unit of systemd may be called myelin-server.service.
 */
static bool is_of_a_run(const char *name) {
    const size_t n = strlen(prefix);

    return strncmp(name, prefix, n) == 0 && uuid_is_valid(name + n);
}

/* The entries of a directory, which stays open; NULL: they cannot be read. */
static DIR *list_of(int directory) {
    const int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);

    if (!list && copy >= 0)
        close(copy);
    return list;
}

static int remove_below(int parent, const char *name, int depth);

static void remove_children(int directory, int depth) {
    DIR *list = list_of(directory);
    struct dirent *entry;

    if (!list)
        return;
    while ((entry = readdir(list)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            remove_below(directory, entry->d_name, depth + 1);
    closedir(list);
}

static int remove_below(int parent, const char *name, int depth) {
    int fd;

    if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (depth >= DEPTH_MOST)
        return errno;
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    remove_children(fd, depth);
    close(fd);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

int cgroup_remove(int parent, const char *name) {
    return remove_below(parent, name, 0);
}

/* Is the process in a group of that name? Asked after a pidfd was taken, so that no other
 * process can have got its number. */
static bool is_within(pid_t pid, const char *name) {
    char path[64], part[CGROUP_NAME_MOST + 2];
    AUTO(buf) text = BUF_INIT(SELF_MOST);
    struct error ignored;

    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    snprintf(part, sizeof part, "/%s", name);
    return file_read(path, &text, &ignored) == 0 && strstr(text.data, part) != NULL;
}

static void kill_listed(int directory, const char *name) {
    char text[64 * 1024], *rest = text;

    if (cgroup_read(directory, "cgroup.procs", text, sizeof text))
        return;
    while (*rest) {
        const long pid = strtol(rest, &rest, 10);
        const int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : -1;

        if (fd >= 0 && is_within((pid_t)pid, name) && process_is_within_rights((pid_t)pid))
            syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
        if (fd >= 0)
            close(fd);
        rest += strspn(rest, "\n");
        if (pid <= 0)
            return;
    }
}

/* Ends what lives in the run's group and in those of its tasks. */
static void kill_within(int run, const char *name) {
    struct dirent *entry;
    DIR *list;

    if (cgroup_write(run, "cgroup.kill", "1") == 0)
        return;
    kill_listed(run, name);
    list = list_of(run);
    if (!list)
        return;
    while ((entry = readdir(list))) {
        int fd;

        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        fd = openat(run, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            kill_listed(fd, name);
            close(fd);
        }
    }
    closedir(list);
}

/* Removes the group if its owner is gone. Returns whether it is still there, after so many tries to
 * end what lives in it: what sleeps in the kernel, or is frozen, does not end. */
static bool remove_dead(int parent, const char *name, int tries) {
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    bool is_left;

    if (fd < 0)
        return errno != ENOENT;
    is_left = flock(fd, LOCK_EX | LOCK_NB) < 0 || cgroup_remove(parent, name) != 0;
    for (int i = 0; is_left && i < tries && flock(fd, LOCK_EX | LOCK_NB) == 0; i++) {
        kill_within(fd, name);
        clock_pause_ms(KILL_PAUSE_MS);
        is_left = cgroup_remove(parent, name) != 0;
    }
    close(fd);
    return is_left;
}

void cgroup_remove_stale(int parent, const char *except) {
    DIR *list = list_of(parent);
    struct dirent *entry;

    if (!list)
        return;
    while ((entry = readdir(list)))
        if (is_of_a_run(entry->d_name) && strcmp(entry->d_name, except) != 0)
            remove_dead(parent, entry->d_name, KILL_TRIES);
    closedir(list);
}

/* Whether the group is in the directory, after it was ended if that is asked for. */
static bool holds(int directory, const char *name, enum cgroup_search search) {
    if (faccessat(directory, name, F_OK, 0) < 0)
        return false;
    return search != CGROUP_CLEAR_ALL || remove_dead(directory, name, 1);
}

/* Whether a directory was not looked into for want of descriptors or memory. One that is not ours
 * to read has no group of ours. */
static bool is_unknown(int errnum) {
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM;
}

static unsigned holding_below(int parent, const char *below, const char *name,
                              enum cgroup_search search, int depth) {
    const int fd = openat(parent, below, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    unsigned left;

    if (!list) {
        const bool may_hold = is_unknown(errno);

        if (fd >= 0)
            close(fd);
        return may_hold;
    }
    left = holds(fd, name, search);
    while (depth < DEPTH_MOST && (entry = readdir(list)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && !is_of_a_run(entry->d_name))
            left += holding_below(fd, entry->d_name, name, search, depth + 1);
    closedir(list);
    return left;
}

static unsigned holding_near(struct cgroup_spot *spot, bool goes_up, const char *name) {
    unsigned left = 0;

    do {
        const int fd = open(spot->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        left += fd >= 0 && holds(fd, name, CGROUP_COUNT_NEAR);
        if (fd >= 0)
            close(fd);
    } while (goes_up && go_up(spot));
    return left;
}

unsigned cgroup_places_holding(const struct cgroup_places *places, const char *controller,
                               const char *name, enum cgroup_search search) {
    struct cgroup_spot spot;

    if (cgroup_map_find(places->mountinfo.data, places->self.data, controller, &spot) !=
        CGROUP_FOUND)
        return 0;
    if (search == CGROUP_COUNT_NEAR)
        return holding_near(&spot, !controller, name);
    spot.path[spot.mount_len] = '\0';
    return holding_below(AT_FDCWD, spot.path, name, search, 0);
}
