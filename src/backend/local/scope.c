/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/library.h"

enum { ANSWER_US = 3 * 1000 * 1000, MOVE_TRIES = 300, MOVE_PAUSE_MS = 10 };

static const char scope_prefix[] = "run-myelin-";

/* The part of sd-bus's documented interface that is used here. */
typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;
typedef struct {
    const char *name, *message;
    int need_free;
} sd_bus_error;

struct bus_library {
    void *handle;
    int (*make)(sd_bus **bus);
    int (*set_address)(sd_bus *bus, const char *address);
    int (*start)(sd_bus *bus);
    int (*set_timeout)(sd_bus *bus, uint64_t microseconds);
    int (*call)(sd_bus *bus, const char *destination, const char *path, const char *interface,
                const char *member, sd_bus_error *error, sd_bus_message **reply, const char *types,
                ...);
    sd_bus_message *(*message_unref)(sd_bus_message *message);
    sd_bus *(*close)(sd_bus *bus);
    void (*error_free)(sd_bus_error *error);
};

/* ---- the library ---- */

static bool load(struct bus_library *library) {
    const struct library_symbol symbols[] = {
        { "sd_bus_new", &library->make },
        { "sd_bus_set_address", &library->set_address },
        { "sd_bus_start", &library->start },
        { "sd_bus_set_method_call_timeout", &library->set_timeout },
        { "sd_bus_call_method", &library->call },
        { "sd_bus_message_unref", &library->message_unref },
        { "sd_bus_close_unref", &library->close },
        { "sd_bus_error_free", &library->error_free },
    };
    struct error err;

    return library_load("libsystemd.so.0", symbols, ARRAY_LEN(symbols), &library->handle, &err) ==
           0;
}

/* ---- asking ---- */

/* The socket of the manager that this user may ask; false: it does not run. */
static bool find_manager(char out[static PATH_MAX]) {
    const char *given = getenv("XDG_RUNTIME_DIR");

    if (geteuid() == 0)
        snprintf(out, PATH_MAX, "/run/systemd/private");
    else if (given && given[0] == '/')
        snprintf(out, PATH_MAX, "%.3000s/systemd/private", given);
    else
        snprintf(out, PATH_MAX, "/run/user/%u/systemd/private", (unsigned)geteuid());
    return access(out, W_OK) == 0;
}

bool scope_may_be_given(void) {
    char socket[PATH_MAX];

    return find_manager(socket);
}

static int start_scope(const struct bus_library *library, sd_bus *bus, const char *name,
                       sd_bus_error *error) {
    sd_bus_message *reply = NULL;
    const int code =
        library->call(bus, NULL, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
                      "StartTransientUnit", error, &reply, "ssa(sv)a(sa(sv))", name, "fail", 5,
                      "Description", "s", "tasks of myelin with limits", /**/
                      "PIDs", "au", 1, (uint32_t)getpid(),               /**/
                      "Delegate", "b", 1,                                /**/
                      "TasksMax", "t", UINT64_MAX,                       /**/
                      "CollectMode", "s", "inactive-or-failed", 0);

    if (reply)
        library->message_unref(reply);
    return code;
}

static bool ask(const struct bus_library *library, const char *socket, const char *name,
                char why[static CGROUP_WHY_MOST]) {
    char address[PATH_MAX + 16];
    sd_bus_error error = { 0 };
    sd_bus *bus = NULL;
    int code = library->make(&bus);

    snprintf(address, sizeof address, "unix:path=%s", socket);
    if (code >= 0)
        code = library->set_address(bus, address);
    if (code >= 0)
        code = library->start(bus);
    if (code >= 0)
        code = library->set_timeout(bus, ANSWER_US);
    if (code >= 0)
        code = start_scope(library, bus, name, &error);
    if (code < 0)
        snprintf(why, CGROUP_WHY_MOST, "systemd gives no scope: %.200s",
                 error.message ? error.message : strerror(-code));
    library->error_free(&error);
    if (bus)
        library->close(bus);
    return code >= 0;
}

/* ---- moving ---- */

/* Whether the group of this process is now that of the scope. */
static bool is_in(const char *name, struct cgroup_spot *out) {
    struct cgroup_places places;
    bool is_found;
    const char *last;

    cgroup_places_read(&places);
    is_found = cgroup_map_find(places.mountinfo.data, places.self.data, NULL, out) == CGROUP_FOUND;
    cgroup_places_release(&places);
    last = is_found ? strrchr(out->path, '/') : NULL;
    return last && strcmp(last + 1, name) == 0;
}

/* systemd answers before it has moved the process. */
static bool wait_for_move(const char *name, struct cgroup_spot *out) {
    for (int i = 0; i < MOVE_TRIES; i++) {
        if (is_in(name, out))
            return true;
        clock_pause_ms(MOVE_PAUSE_MS);
    }
    return false;
}

/* Frees the scope itself of processes, so that it may pass controllers on. */
static int enter_leaf(const struct cgroup_spot *scope) {
    const int fd = open(scope->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int errnum = 0;

    if (fd < 0)
        return errno;
    if (mkdirat(fd, "supervisor", 0755) < 0 && errno != EEXIST)
        errnum = errno;
    if (errnum == 0)
        errnum = cgroup_write(fd, "supervisor/cgroup.procs", "0");
    close(fd);
    return errnum;
}

bool scope_enter(const char *id, char why[static CGROUP_WHY_MOST]) {
    struct bus_library library = { 0 };
    char socket[PATH_MAX], name[CGROUP_NAME_MOST + 32];
    struct cgroup_spot spot;
    bool is_asked = false;

    why[0] = '\0';
    if (!find_manager(socket))
        return false;
    /* Not with the prefix of run groups: those are looked for, and this is none. */
    snprintf(name, sizeof name, "%s%.64s.scope", scope_prefix, id);
    if (load(&library))
        is_asked = ask(&library, socket, name, why);
    library_unload(library.handle);
    if (!is_asked)
        return false;
    if (!wait_for_move(name, &spot)) {
        snprintf(why, CGROUP_WHY_MOST, "systemd made a scope and did not move us there");
        return false;
    }
    if (enter_leaf(&spot) == 0)
        return true;
    snprintf(why, CGROUP_WHY_MOST, "the scope %.150s is not ours to write", spot.path);
    return false;
}

/* ---- the dead ---- */

void scope_clear_dead(const char *path, const char *except) {
    const char *last = strrchr(path, '/');
    char parent[PATH_MAX];
    struct dirent *entry;
    DIR *list;

    if (!last || strncmp(last + 1, scope_prefix, strlen(scope_prefix)) != 0)
        return;
    snprintf(parent, sizeof parent, "%.*s", (int)(last - path), path);
    list = opendir(parent);
    while (list && (entry = readdir(list))) {
        int fd;

        if (strncmp(entry->d_name, scope_prefix, strlen(scope_prefix)) != 0)
            continue;
        fd = openat(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            continue; /* gone meanwhile */
        cgroup_remove_stale(fd, except);
        close(fd);
    }
    if (list)
        closedir(list);
}
