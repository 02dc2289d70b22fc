/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/frame.h"

#define LOG_LIMIT (INT64_C(10) << 30)

int64_t settings_number(const char *name, int64_t without, int64_t limit) {
    const char *text = getenv(name);
    int64_t value = 0;

    if (!text || !*text)
        return without;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        value = value * 10 + (*text - '0');
        if (value > limit)
            return -1;
    }
    return value;
}

static bool is_key(const char *text) {
    return strlen(text) == SETTINGS_KEY && strspn(text, "0123456789abcdefABCDEF") == SETTINGS_KEY;
}

/* A list of the variables that are not ours. The strings are those of the environment, which is
 * left as it is: getenv goes on to find ours. */
static char **set_apart(char **environment) {
    size_t n = 0, kept = 0;
    char **others;

    while (environment[n])
        n++;
    others = calloc(n + 1, sizeof *others);
    if (!others)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environment[i], SETTINGS_PREFIX, strlen(SETTINGS_PREFIX)) != 0)
            others[kept++] = environment[i];
    return others;
}

int settings_read(struct settings *settings, char **environment, const char **wrong) {
    const char *directory = getenv(SETTINGS_PREFIX "DIRECTORY");
    const char *message = getenv(SETTINGS_PREFIX "MESSAGE");
    const char *key = getenv(SETTINGS_PREFIX "KEY");
    const char *outputs = getenv(SETTINGS_PREFIX "OUTPUTS");
    const char *spool = getenv("MYELIN_SPOOL");
    const int64_t port = settings_number(SETTINGS_PREFIX "PORT", SHIM_PORT, UINT16_MAX);
    const int64_t linger =
        settings_number(SETTINGS_PREFIX "LINGER", SHIM_LINGER_S, SHIM_LINGER_MAX_S);
    const int64_t tasks = settings_number(SETTINGS_PREFIX "TASKS", 1, SETTINGS_TASKS_MAX);
    const int64_t limit = settings_number(SETTINGS_PREFIX "LOG_LIMIT", LOG_LIMIT, INT64_C(1) << 50);

    directory = directory && *directory ? directory : "/myelin";
    *wrong = NULL;
    *settings = (struct settings){ .message = message ? message : "/dev/termination-log" };
    if (key && *key && !is_key(key))
        *wrong = SETTINGS_PREFIX "KEY is not 32 hexadecimal digits";
    else if (port < 0)
        *wrong = SETTINGS_PREFIX "PORT is no port";
    else if (linger < 0)
        *wrong = SETTINGS_PREFIX "LINGER is no number of seconds up to 30 days";
    else if (tasks < 0)
        *wrong = SETTINGS_PREFIX "TASKS is no number of tasks";
    else if (limit < 0)
        *wrong = SETTINGS_PREFIX "LOG_LIMIT is no number of bytes";
    else if (strlen(directory) >= sizeof settings->directory)
        *wrong = SETTINGS_PREFIX "DIRECTORY is too long";
    if (*wrong)
        return -1;
    *settings = (struct settings){ .key = key && *key ? key : NULL,
                                   .message = settings->message,
                                   .port = (uint16_t)port,
                                   .linger_ms = linger * 1000,
                                   .n_tasks = (uint32_t)tasks,
                                   .log_limit = (uint64_t)limit,
                                   .sends_outputs = outputs && !strcmp(outputs, "1"),
                                   .environment = set_apart(environment) };
    strcpy(settings->directory, directory);
    snprintf(settings->log, sizeof settings->log, "%s/logs/log", directory);
    /* The task's own folder, as its contract has it. */
    if (spool && *spool && strlen(spool) < sizeof settings->spool)
        strcpy(settings->spool, spool);
    else
        snprintf(settings->spool, sizeof settings->spool, "%s/spool", directory);
    snprintf(settings->outputs, sizeof settings->outputs, "%s/outputs", directory);
    if (!settings->environment)
        *wrong = "no memory";
    return *wrong ? -1 : 0;
}
