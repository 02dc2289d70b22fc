/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frameworks that have a topology, and the roles of their tasks. The table in
 * framework.c is the one place that knows which framework has which roles, what it
 * calls them, and whose success is the experiment's.
 */
#ifndef MODEL_FRAMEWORK_H
#define MODEL_FRAMEWORK_H

#include <stdbool.h>

enum framework {
    FRAMEWORK_NONE, /* a single task, or a framework without a topology */
    FRAMEWORK_TENSORFLOW,
    FRAMEWORK_MXNET,
    FRAMEWORK_PYTORCH,
    FRAMEWORK_HOROVOD,
    FRAMEWORK_COUNT,
};

/* As the polyaxonfile names them; ranks are given in this order. */
enum role { ROLE_MASTER, ROLE_WORKER, ROLE_PS, ROLE_COUNT };

/* Whose exit 0 makes the run a success. */
enum success_rule {
    SUCCESS_OF_CHIEF,   /* task 0; the others are then given time, and stopped */
    SUCCESS_OF_WORKERS, /* every worker; the others are then given time, and stopped */
    SUCCESS_OF_ALL,     /* every task */
};

struct framework_facts {
    const char *name;                   /* as in the polyaxonfile */
    const char *role_names[ROLE_COUNT]; /* as the original's task types; NULL: no such role */
    enum success_rule success;
    bool may_be_masterless;
};

const struct framework_facts *framework_facts(enum framework framework);

/* FRAMEWORK_NONE for a name without a topology. */
enum framework framework_named(const char *name);

/* "master", "worker", "ps": how the file, the tables and the prefixes call a role. */
const char *role_name(enum role role);

#endif
