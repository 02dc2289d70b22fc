/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the CPUs of a machine lie: hardware threads on cores, cores on NUMA nodes, nodes on
 * packages (sockets). Cores, nodes and packages are numbered from 0 here; the kernel's own
 * number of a node is its `index`.
 */
#ifndef MODEL_LAYOUT_H
#define MODEL_LAYOUT_H

#include "model/cpus.h"

enum { NUMA_NODES_MAX = 64 };

struct layout_cpu {
    uint16_t cpu; /* the kernel's number */
    uint16_t core, node, package;
};

struct layout_node {
    uint32_t index;
    uint64_t memory_mib; /* 0: not known */
};

struct layout {
    struct layout_cpu cpus[CPUS_MAX]; /* those near each other stand near each other */
    struct layout_node nodes[NUMA_NODES_MAX];
    uint32_t n_cpus, n_nodes, n_cores, n_packages;
    struct cpus allowed;  /* the CPUs that this process may use */
    bool is_this_machine; /* not one that the environment describes, for a rehearsal */
    char trouble[160]; /* why the layout is not known and all CPUs stand alone on one node, or "" */
};

#endif
