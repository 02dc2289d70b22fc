/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/command.h"

/* To add a command: a line here, its row below, and its name in `command_names` of meson.build. */
extern const struct command command_attach;
extern const struct command command_check;
extern const struct command command_compare;
extern const struct command command_completion;
extern const struct command command_copy;
extern const struct command command_export;
extern const struct command command_gc;
extern const struct command command_help;
extern const struct command command_import;
extern const struct command command_kill;
extern const struct command command_logs;
extern const struct command command_man;
extern const struct command command_metrics;
extern const struct command command_model;
extern const struct command command_node;
extern const struct command command_outputs;
extern const struct command command_plan;
extern const struct command command_ps;
extern const struct command command_reindex;
extern const struct command command_rerun;
extern const struct command command_render;
extern const struct command command_restart;
extern const struct command command_resume;
extern const struct command command_rm;
extern const struct command command_run;
extern const struct command command_runs;
extern const struct command command_schema;
extern const struct command command_status;
extern const struct command command_stop;
extern const struct command command_version;
extern const struct command command_why;

/* In the order of help: what is used most stands first. */
const struct command *const commands[] = {
    &command_run,    &command_check,   &command_plan,    &command_render,
    &command_ps,     &command_runs,    &command_compare, &command_status,
    &command_why,    &command_logs,    &command_metrics, &command_attach,
    &command_stop,   &command_kill,    &command_restart, &command_rerun,
    &command_resume, &command_copy,    &command_outputs, &command_export,
    &command_import, &command_model,   &command_rm,      &command_gc,
    &command_node,   &command_reindex, &command_schema,  &command_completion,
    &command_man,    &command_help,    &command_version, NULL,
};

const struct command *command_find(const char *name) {
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}
