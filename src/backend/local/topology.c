/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/topology.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/library.h"

#define LIBRARY "libhwloc.so.15"
#define PLUGINS "HWLOC_PLUGINS_PATH"

enum { KERNEL_CPUS_MOST = 8192 };

/* The functions that are used, with the types that the header gives them. */
struct hwloc {
    void *library;
    __typeof__(hwloc_topology_init) *init;
    __typeof__(hwloc_topology_set_all_types_filter) *set_all_types_filter;
    __typeof__(hwloc_topology_set_type_filter) *set_type_filter;
    __typeof__(hwloc_topology_set_flags) *set_flags;
    __typeof__(hwloc_topology_load) *load;
    __typeof__(hwloc_topology_destroy) *destroy;
    __typeof__(hwloc_topology_is_thissystem) *is_this_system;
    __typeof__(hwloc_topology_get_allowed_cpuset) *allowed;
    __typeof__(hwloc_get_type_depth) *depth;
    __typeof__(hwloc_get_nbobjs_by_depth) *count;
    __typeof__(hwloc_get_obj_by_depth) *object;
    __typeof__(hwloc_bitmap_isset) *has;
};

static bool open_library(struct hwloc *hwloc, struct layout *out) {
    const struct library_symbol functions[] = {
        { "hwloc_topology_init", &hwloc->init },
        { "hwloc_topology_set_all_types_filter", &hwloc->set_all_types_filter },
        { "hwloc_topology_set_type_filter", &hwloc->set_type_filter },
        { "hwloc_topology_set_flags", &hwloc->set_flags },
        { "hwloc_topology_load", &hwloc->load },
        { "hwloc_topology_destroy", &hwloc->destroy },
        { "hwloc_topology_is_thissystem", &hwloc->is_this_system },
        { "hwloc_topology_get_allowed_cpuset", &hwloc->allowed },
        { "hwloc_get_type_depth", &hwloc->depth },
        { "hwloc_get_nbobjs_by_depth", &hwloc->count },
        { "hwloc_get_obj_by_depth", &hwloc->object },
        { "hwloc_bitmap_isset", &hwloc->has },
    };
    struct error err;

    if (library_load(LIBRARY, functions, ARRAY_LEN(functions), &hwloc->library, &err) == 0)
        return true;
    snprintf(out->trouble, sizeof out->trouble, "%.100s%s", err.message,
             err.code == ERROR_UNAVAILABLE ? " (Debian: libhwloc15)" : "");
    return false;
}

/* ---- what hwloc says ---- */

/* A type that a machine does not have, as packages of some virtual ones, has no objects. */
static uint32_t count(const struct hwloc *hwloc, hwloc_topology_t topology, hwloc_obj_type_t type) {
    const int depth = hwloc->depth(topology, type);

    return depth == HWLOC_TYPE_DEPTH_UNKNOWN ? 0 : hwloc->count(topology, depth);
}

static hwloc_obj_t object(const struct hwloc *hwloc, hwloc_topology_t topology,
                          hwloc_obj_type_t type, uint32_t i) {
    return hwloc->object(topology, hwloc->depth(topology, type), i);
}

/* The number of the object of a type that the CPU belongs to, or `none`. */
static uint16_t above(hwloc_obj_t cpu, hwloc_obj_type_t type, uint16_t none) {
    for (hwloc_obj_t at = cpu->parent; at; at = at->parent)
        if (at->type == type)
            return (uint16_t)at->logical_index;
    return none;
}

static void take_nodes(const struct hwloc *hwloc, hwloc_topology_t topology, struct layout *out) {
    const uint32_t n = count(hwloc, topology, HWLOC_OBJ_NUMANODE);

    for (uint32_t i = 0; i < n && i < NUMA_NODES_MAX; i++) {
        hwloc_obj_t node = object(hwloc, topology, HWLOC_OBJ_NUMANODE, i);

        out->nodes[out->n_nodes++] = (struct layout_node){
            .index = node->os_index,
            .memory_mib = node->attr->numanode.local_memory / (1024 * 1024),
        };
    }
}

/* The first node that it belongs to: memory of another kind, beside it, comes later. */
static uint16_t node_of(const struct hwloc *hwloc, hwloc_topology_t topology, uint32_t n_nodes,
                        unsigned cpu) {
    for (uint32_t i = 0; i < n_nodes; i++)
        if (hwloc->has(object(hwloc, topology, HWLOC_OBJ_NUMANODE, i)->cpuset, cpu))
            return (uint16_t)i;
    return 0;
}

static void take_cpus(const struct hwloc *hwloc, hwloc_topology_t topology, struct layout *out) {
    const uint32_t n = count(hwloc, topology, HWLOC_OBJ_PU);

    for (uint32_t i = 0; i < n && out->n_cpus < CPUS_MAX; i++) {
        hwloc_obj_t cpu = object(hwloc, topology, HWLOC_OBJ_PU, i);
        struct layout_cpu *at = &out->cpus[out->n_cpus];

        if (cpu->os_index >= CPUS_MAX)
            continue;
        *at = (struct layout_cpu){
            .cpu = (uint16_t)cpu->os_index,
            .core = above(cpu, HWLOC_OBJ_CORE, (uint16_t)out->n_cpus),
            .node = node_of(hwloc, topology, out->n_nodes, cpu->os_index),
            .package = above(cpu, HWLOC_OBJ_PACKAGE, 0),
        };
        if (at->core >= CPUS_MAX || at->package >= CPUS_MAX)
            continue;
        out->n_cpus++;
        if (!out->is_this_machine && hwloc->has(hwloc->allowed(topology), cpu->os_index))
            cpus_add(&out->allowed, cpu->os_index);
    }
    out->n_cores = count(hwloc, topology, HWLOC_OBJ_CORE);
    out->n_packages = count(hwloc, topology, HWLOC_OBJ_PACKAGE);
    if (out->n_cores == 0)
        out->n_cores = out->n_cpus;
    if (out->n_packages == 0)
        out->n_packages = 1;
}

/* Nothing is bound to look at it (which moves this process through all CPUs), and nothing is looked
 * at that is not asked for. */
static bool load(const struct hwloc *hwloc, hwloc_topology_t topology) {
    return hwloc->set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) == 0 &&
           hwloc->set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
           hwloc->set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
           /* Nodes that are parts of a package hang on groups. */
           hwloc->set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) ==
               0 &&
           hwloc->set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                                          HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING) == 0 &&
           hwloc->load(topology) == 0;
}

static void ask(const struct hwloc *hwloc, struct layout *out) {
    const bool hides_plugins = !getenv(PLUGINS);
    hwloc_topology_t topology;
    int status;

    /* Its plugins are for devices, and bring OpenCL and the like into this process. */
    if (hides_plugins)
        setenv(PLUGINS, "", 1);
    status = hwloc->init(&topology);
    if (hides_plugins)
        unsetenv(PLUGINS);
    if (status == 0 && load(hwloc, topology)) {
        out->is_this_machine = hwloc->is_this_system(topology) != 0;
        take_nodes(hwloc, topology, out);
        take_cpus(hwloc, topology, out);
    }
    if (status == 0)
        hwloc->destroy(topology);
    if (out->n_cpus == 0 || out->n_nodes == 0)
        snprintf(out->trouble, sizeof out->trouble, "hwloc cannot read the topology");
}

/* ---- what the kernel says ---- */

void topology_allowed(struct cpus *out) {
    uint64_t words[KERNEL_CPUS_MOST / 64] = { 0 };

    *out = (struct cpus){ 0 };
    if (syscall(SYS_sched_getaffinity, 0, sizeof words, words) > 0)
        memcpy(out->words, words, sizeof out->words);
}

static void make_flat(struct layout *out) {
    out->is_this_machine = true;
    topology_allowed(&out->allowed);
    out->n_cpus = 0;
    for (uint32_t i = 0; i < CPUS_MAX; i++)
        if (cpus_has(&out->allowed, i)) {
            out->cpus[out->n_cpus] =
                (struct layout_cpu){ .cpu = (uint16_t)i, .core = (uint16_t)out->n_cpus };
            out->n_cpus++;
        }
    out->nodes[0] = (struct layout_node){ 0 };
    out->n_nodes = out->n_packages = 1;
    out->n_cores = out->n_cpus;
}

void topology_read(struct layout *out) {
    struct hwloc hwloc = { 0 };

    *out = (struct layout){ 0 };
    if (open_library(&hwloc, out))
        ask(&hwloc, out);
    library_unload(hwloc.library);
    if (out->trouble[0])
        make_flat(out);
    else if (out->is_this_machine)
        topology_allowed(&out->allowed);
}
