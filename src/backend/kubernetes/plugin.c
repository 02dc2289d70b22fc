/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/plugin.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals.h"
#include "codec/json_read.h"

enum { PRINTED_MAX = 1 << 20, COMPLAINT_MAX = 16 << 10, SHOWN_MAX = 200 };

#define INFO "KUBERNETES_EXEC_INFO"

struct plugin {
    const struct kubeconfig_exec *exec;
    pid_t pid; /* 0: it was reaped */
    int pidfd, pipes[2];
    struct event *end, *timeout, *readable[2];
    struct buf printed, complaint; /* what came out of the two pipes */
    plugin_done *done;
    void *context;
};

/* ---- how it is started ---- */

static bool same_name(const char *a, const char *b) {
    const size_t len = strcspn(a, "=");

    return strncmp(a, b, len) == 0 && b[len] == '=';
}

/* This process's environment, under that of the kubeconfig. The texts stay where they are. */
static char **make_environment(const struct kubeconfig_exec *exec, char *info) {
    size_t n_ours = 0, n_theirs = 0, n = 0;
    char **envp;

    while (environ[n_ours])
        n_ours++;
    while (exec->env && exec->env[n_theirs])
        n_theirs++;
    envp = calloc(n_ours + n_theirs + 2, sizeof *envp);
    if (!envp)
        abort();
    envp[n++] = info;
    for (size_t i = 0; i < n_theirs; i++)
        if (!same_name(INFO, exec->env[i]))
            envp[n++] = exec->env[i];
    for (size_t i = 0; i < n_ours; i++) {
        size_t k = 0;

        while (k < n && !same_name(environ[i], envp[k]))
            k++;
        if (k == n)
            envp[n++] = environ[i];
    }
    return envp;
}

static int spawn(const struct kubeconfig_exec *exec, char *const *envp, const int ends[2],
                 pid_t *pid) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t signals;
    int status;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[0], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    status = posix_spawnp(pid, exec->command, &files, &attributes, exec->args, envp);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return status;
}

/* ---- how it ends ---- */

/* A program that is still there is killed with all that it started. */
static int reap(struct plugin *plugin) {
    int status = 0;

    if (plugin->pid == 0)
        return 0;
    kill(-plugin->pid, SIGKILL);
    kill(plugin->pid, SIGKILL); /* where it left its group */
    while (waitpid(plugin->pid, &status, 0) < 0 && errno == EINTR)
        ;
    plugin->pid = 0;
    return status;
}

/* False: nothing more is to be read of it, because it ended or is more than is taken. */
static bool drain(int fd, struct buf *into) {
    char chunk[4096];
    bool is_whole = true;
    struct error err;
    ssize_t n;

    while (is_whole && (n = read(fd, chunk, sizeof chunk)) > 0)
        is_whole = buf_append(into, chunk, (size_t)n, &err) == 0;
    explicit_bzero(chunk, sizeof chunk);
    return is_whole && n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Its last words in one line, without control characters. */
static void last_line(const struct buf *complaint, char *out, size_t room) {
    const char *text = complaint->data;
    size_t end = complaint->len, start, n = 0;

    while (end > 0 && (unsigned char)text[end - 1] <= ' ')
        end--;
    start = end;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    for (; start < end && n + 1 < room; start++)
        out[n++] = (unsigned char)text[start] < ' ' || text[start] == 0x7f ? ' ' : text[start];
    out[n] = '\0';
}

/* `err` becomes what the program's end means. */
static void judge(const struct plugin *plugin, int status, struct error *err) {
    char words[SHOWN_MAX];
    const char *command = plugin->exec->command;

    last_line(&plugin->complaint, words, sizeof words);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    if (WIFSIGNALED(status))
        error_set(err, ERROR_DENIED, "the credential plugin %s was ended by %s%s%s", command,
                  signal_text(WTERMSIG(status)).text, words[0] ? ": " : "", words);
    else
        error_set(err, ERROR_DENIED, "the credential plugin %s failed with exit code %d%s%s",
                  command, WEXITSTATUS(status), words[0] ? ": " : "", words);
}

static void finish(struct plugin *plugin, const struct error *err) {
    event_del(plugin->timeout);
    event_del(plugin->end);
    plugin->done(plugin->context, err, &plugin->printed);
}

static void on_end(evutil_socket_t fd, short what, void *context) {
    struct plugin *plugin = context;
    struct error err = { .code = ERROR_NONE };
    siginfo_t info = { 0 };
    int status = 0;

    (void)fd, (void)what;
    for (int i = 0; i < 2; i++) {
        drain(plugin->pipes[i], i == 0 ? &plugin->printed : &plugin->complaint);
        event_del(plugin->readable[i]);
    }
    if (waitid(P_PIDFD, (id_t)plugin->pidfd, &info, WEXITED | WNOWAIT) == 0)
        status = reap(plugin); /* after what it left behind was killed */
    plugin->pid = 0;
    judge(plugin, status, &err);
    finish(plugin, &err);
}

static void on_timeout(evutil_socket_t fd, short what, void *context) {
    struct plugin *plugin = context;
    struct error err;

    (void)fd, (void)what;
    reap(plugin);
    error_set(
        &err, ERROR_DENIED,
        "the credential plugin %s did not answer in time and was killed; run it by hand to see "
        "what it waits for",
        plugin->exec->command);
    finish(plugin, &err);
}

static void on_readable(evutil_socket_t fd, short what, void *context) {
    struct plugin *plugin = context;
    const int i = fd == plugin->pipes[1];

    (void)what;
    if (!drain(fd, i == 0 ? &plugin->printed : &plugin->complaint))
        event_del(plugin->readable[i]); /* it would be readable for ever */
}

/* ---- life ---- */

static void listen_to(struct plugin *plugin, struct event_base *loop, uint32_t timeout_ms) {
    const struct timeval wait = clock_timeval(timeout_ms);

    plugin->end = event_new(loop, plugin->pidfd, EV_READ, on_end, plugin);
    plugin->timeout = evtimer_new(loop, on_timeout, plugin);
    for (int i = 0; i < 2; i++) {
        plugin->readable[i] =
            event_new(loop, plugin->pipes[i], EV_READ | EV_PERSIST, on_readable, plugin);
        if (!plugin->readable[i] || event_add(plugin->readable[i], NULL))
            abort();
    }
    if (!plugin->end || !plugin->timeout || event_add(plugin->end, NULL) ||
        event_add(plugin->timeout, &wait))
        abort();
}

static int explain_start(const struct kubeconfig_exec *exec, int errnum, struct error *err) {
    if (errnum == ENOENT)
        return error_set(
            err, ERROR_DENIED,
            "the kubeconfig takes credentials from the program %s, which is not here%s%s",
            exec->command, exec->install_hint ? ": " : "",
            exec->install_hint ? exec->install_hint : "");
    return error_set_errno(err, errnum, "the credential plugin %s cannot be started",
                           exec->command);
}

int plugin_start(struct event_base *loop, const struct kubeconfig_exec *exec, const char *info,
                 uint32_t timeout_ms, plugin_done *done, void *context, struct plugin **out,
                 struct error *err) {
    struct plugin *plugin = calloc(1, sizeof *plugin);
    int printed[2] = { -1, -1 }, complaint[2] = { -1, -1 }, status;
    char **envp, *variable = NULL;

    if (!plugin || asprintf(&variable, INFO "=%s", info) < 0)
        abort();
    *plugin = (struct plugin){ .exec = exec,
                               .pidfd = -1,
                               .pipes = { -1, -1 },
                               .printed = BUF_INIT(PRINTED_MAX),
                               .complaint = BUF_INIT(COMPLAINT_MAX),
                               .done = done,
                               .context = context };
    envp = make_environment(exec, variable);
    if (pipe2(printed, O_CLOEXEC) || pipe2(complaint, O_CLOEXEC))
        status = errno;
    else
        status = spawn(exec, envp, (int[]){ printed[1], complaint[1] }, &plugin->pid);
    free(envp);
    free(variable);
    close(printed[1]);
    close(complaint[1]);
    plugin->pipes[0] = printed[0];
    plugin->pipes[1] = complaint[0];
    if (status == 0) {
        plugin->pidfd = (int)syscall(SYS_pidfd_open, plugin->pid, 0);
        status = plugin->pidfd < 0 ? errno : 0;
    } else
        plugin->pid = 0;
    if (status) {
        plugin_free(plugin);
        return explain_start(exec, status, err);
    }
    for (int i = 0; i < 2; i++)
        (void)fcntl(plugin->pipes[i], F_SETFL, O_NONBLOCK);
    listen_to(plugin, loop, timeout_ms);
    *out = plugin;
    return 0;
}

static void free_event(struct event *event) {
    if (event)
        event_free(event);
}

void plugin_free(struct plugin *plugin) {
    if (!plugin)
        return;
    reap(plugin);
    free_event(plugin->end);
    free_event(plugin->timeout);
    for (int i = 0; i < 2; i++) {
        free_event(plugin->readable[i]);
        if (plugin->pipes[i] >= 0)
            close(plugin->pipes[i]);
    }
    if (plugin->pidfd >= 0)
        close(plugin->pidfd);
    explicit_bzero(plugin->printed.data, plugin->printed.len);
    buf_release(&plugin->printed);
    buf_release(&plugin->complaint);
    free(plugin);
}

/* ---- what it says ---- */

static const char *text_of(const struct node *map, const char *key) {
    const struct node *node = node_get(map, key);

    return node && node->kind == NODE_TEXT && node->count > 0 ? node->text : NULL;
}

int plugin_decode(const char *text, size_t len, const char *api_version, struct arena *arena,
                  struct plugin_answer *out, struct error *err) {
    struct plugin_answer answer = { 0 };
    const struct node *status;
    const char *kind, *version, *expires;
    struct node root;
    struct error detail;

    if (json_read(text, len, arena, &root, &detail))
        return error_set(err, ERROR_DENIED, "the credential plugin did not print JSON");
    kind = text_of(&root, "kind");
    version = text_of(&root, "apiVersion");
    if (!kind || strcmp(kind, "ExecCredential") != 0)
        return error_set(err, ERROR_DENIED,
                         "the credential plugin did not print an ExecCredential");
    if (!version || strcmp(version, api_version) != 0)
        return error_set(err, ERROR_DENIED,
                         "the credential plugin answered in another apiVersion than %s, which the "
                         "kubeconfig asks for",
                         api_version);
    status = node_get(&root, "status");
    answer.token = text_of(status, "token");
    answer.certificate = text_of(status, "clientCertificateData");
    answer.key = text_of(status, "clientKeyData");
    if (!answer.certificate != !answer.key)
        return error_set(err, ERROR_DENIED,
                         "the credential plugin gave a certificate or a key, but not both");
    if (!answer.token && !answer.certificate)
        return error_set(err, ERROR_DENIED,
                         "the credential plugin gave neither a token nor a certificate");
    for (const char *c = answer.token; c && *c; c++)
        if (*c <= ' ' || *c > '~')
            return error_set(err, ERROR_DENIED,
                             "the credential plugin gave a token with "
                             "characters that no token has");
    expires = text_of(status, "expirationTimestamp");
    if (expires && !time_read(expires, &answer.expires_us))
        answer.expires_us = 0; /* used until the server refuses it */
    *out = answer;
    return 0;
}
