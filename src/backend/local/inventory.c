/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/inventory.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { SMALL_FILE = 64 * 1024, CPUS_MOST = 8192, MIB = 1024 * 1024 };

#define NO_LIMIT UINT64_MAX

/* ---- cgroups ---- */

/* The least that a cgroup above us leaves, and which one that is. */
struct bound {
    uint64_t value; /* NO_LIMIT: none leaves less than there is */
    char group[PATH_MAX];
};

/* Calls see() with the text of a file in our group and in each above it. */
static void walk_up(const char *mount, const char *group, const char *name,
                    void (*see)(const char *text, uint64_t *lowest), struct bound *lowest) {
    char path[PATH_MAX];
    size_t n = strlen(group);

    for (;;) {
        AUTO(buf) text = BUF_INIT(SMALL_FILE);
        const uint64_t before = lowest->value;
        struct error err;

        if (snprintf(path, sizeof path, "%s%.*s/%s", mount, (int)n, group, name) <
                (int)sizeof path &&
            file_read(path, &text, &err) == 0)
            see(text.data, &lowest->value);
        if (lowest->value < before)
            snprintf(lowest->group, sizeof lowest->group, "%.*s",
                     (int)(strlen(path) - strlen(name) - 1), path);
        if (n == 0)
            return;
        do
            n--;
        while (n > 0 && group[n] != '/');
    }
}

static void see_number(const char *text, uint64_t *lowest) {
    char *end;
    const unsigned long long value = strtoull(text, &end, 10);

    if (end != text && value > 0 && value < *lowest) /* "max" is no number */
        *lowest = value;
}

/* "200000 100000": microseconds of each period; to thousandths of a core. */
static void see_quota(const char *text, uint64_t *lowest) {
    uint64_t quota, period;

    if (sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) == 2 && period > 0 &&
        quota < NO_LIMIT / 1000 && quota * 1000 / period < *lowest)
        *lowest = quota * 1000 / period;
}

/* Version 1 has the quota alone, in periods of 100 ms unless somebody changed that. */
static void see_quota_v1(const char *text, uint64_t *lowest) {
    char *end;
    const long long quota = strtoll(text, &end, 10);

    if (end != text && quota > 0 && (uint64_t)quota / 100 < *lowest)
        *lowest = (uint64_t)quota / 100;
}

/* Whether a comma-separated list has the word. */
static bool lists(const char *list, const char *word) {
    const size_t n = strlen(word);

    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return true;
    return false;
}

/* The least that any cgroup above us leaves: bytes of memory, thousandths of a core. */
static void read_cgroups(struct bound *memory, struct bound *cpu) {
    AUTO(buf) text = BUF_INIT(SMALL_FILE);
    char *rest = NULL;
    struct error err;

    *memory = *cpu = (struct bound){ .value = NO_LIMIT };
    if (file_read("/proc/self/cgroup", &text, &err))
        return;
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':'), *group;

        if (!controllers || !(group = strchr(++controllers, ':')))
            continue;
        *group++ = '\0';
        if (!*controllers) {
            walk_up("/sys/fs/cgroup", group, "memory.max", see_number, memory);
            walk_up("/sys/fs/cgroup", group, "cpu.max", see_quota, cpu);
        }
        if (lists(controllers, "memory"))
            walk_up("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", see_number, memory);
        if (lists(controllers, "cpu"))
            walk_up("/sys/fs/cgroup/cpu", group, "cpu.cfs_quota_us", see_quota_v1, cpu);
    }
}

/* ---- cores and memory ---- */

static milli count_cores(void) {
    cpu_set_t *set = CPU_ALLOC(CPUS_MOST);
    const size_t size = CPU_ALLOC_SIZE(CPUS_MOST);
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    if (set && sched_getaffinity(0, size, set) == 0)
        n = CPU_COUNT_S(size, set);
    if (set)
        CPU_FREE(set);
    return n > 0 ? (milli)n * 1000 : 1000;
}

/* A line of /proc/meminfo, in MiB. */
static uint64_t meminfo(const char *key) {
    AUTO(buf) text = BUF_INIT(SMALL_FILE);
    struct error err;
    const char *at;

    if (file_read("/proc/meminfo", &text, &err) || !(at = strstr(text.data, key)))
        return 0;
    return strtoull(at + strlen(key), NULL, 10) / 1024;
}

/* ---- GPUs ---- */

/* The GPU that a word of n characters names: a number, or the beginning of one uuid; or none. */
static gpu_set named(const char *word, size_t n, const struct gpus *gpus) {
    gpu_set found = 0;
    char *end;

    if (strspn(word, "0123456789") == n) {
        const unsigned long index = strtoul(word, &end, 10);

        return index < gpus->n ? (gpu_set)1 << index : 0;
    }
    for (uint32_t i = 0; i < gpus->n; i++)
        if (gpus->list[i].uuid[0] && strncmp(gpus->list[i].uuid, word, n) == 0)
            found |= (gpu_set)1 << i;
    return __builtin_popcountll(found) == 1 ? found : 0;
}

/* Which of the GPUs a value of CUDA_VISIBLE_DEVICES names, read as CUDA does: numbers, or the
 * beginnings of uuids that only one has; the first that names none ends the list. NULL: all. */
static gpu_set visible_gpus(const char *text, const struct gpus *gpus) {
    const gpu_set all = gpus->n == GPUS_MAX ? ~(gpu_set)0 : ((gpu_set)1 << gpus->n) - 1;
    gpu_set visible = 0;

    if (!text || strcmp(text, "all") == 0)
        return all;
    while (*text) {
        const size_t n = strcspn(text, ",");
        const gpu_set one = n > 0 ? named(text, n, gpus) : 0;

        if (!one)
            break;
        visible |= one;
        text += n + (text[n] == ',');
    }
    return visible;
}

static milli usable_cores(struct bound *memory) {
    const milli cores = count_cores();
    struct bound cpu;

    read_cgroups(memory, &cpu);
    return cpu.value < (uint64_t)cores ? (milli)cpu.value : cores;
}

uint32_t inventory_cpus(void) {
    struct bound memory;
    const milli cores = usable_cores(&memory);

    return cores < 2000 ? 1 : (uint32_t)(cores / 1000);
}

void inventory_read(enum inventory_depth depth, struct machine *out, struct gpus *gpus) {
    uint64_t total = meminfo("MemTotal:");
    struct bound memory;
    const milli cores = usable_cores(&memory);

    if (memory.value / MIB < total)
        total = memory.value / MIB;
    *out = (struct machine){ 0 };
    out->amount[RESOURCE_CPU] = cores;
    out->amount[RESOURCE_MEMORY] = (milli)total * 1000;
    if (depth == INVENTORY_WITHOUT_GPUS) {
        gpus->n = 0;
        gpus->trouble[0] = '\0';
        return;
    }
    nvml_read(gpus);
    out->gpus = visible_gpus(getenv("CUDA_VISIBLE_DEVICES"), gpus);
    out->amount[RESOURCE_GPU] = (milli)__builtin_popcountll(out->gpus) * 1000;
}

/* A number of a file in the directory, or of the line of it that begins with the key. */
static uint64_t read_number(const char *directory, const char *name, const char *key) {
    AUTO(buf) text = BUF_INIT(SMALL_FILE);
    char path[PATH_MAX + 64];
    struct error err;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (file_read(path, &text, &err) || text.len == 0)
        return 0;
    for (const char *line = text.data; key && line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, strlen(key)) == 0)
            return strtoull(line + strlen(key), NULL, 10);
    }
    return key ? 0 : strtoull(text.data, NULL, 10);
}

/* What is used of a group's memory, in MiB. Cache that nobody has used for a while is as good as
 * free: the kernel takes it back before it kills. */
static uint64_t used_of_group(const char *group) {
    static const struct {
        const char *usage, *cache;
    } versions[] = { { "memory.current", "inactive_file " },
                     { "memory.usage_in_bytes", "total_inactive_file " } };

    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        const uint64_t usage = read_number(group, versions[i].usage, NULL);
        const uint64_t cache = read_number(group, "memory.stat", versions[i].cache);

        if (usage > 0)
            return (usage > cache ? usage - cache : 0) / MIB;
    }
    return 0;
}

void inventory_use(struct machine_use *out) {
    const uint64_t total = meminfo("MemTotal:"), available = meminfo("MemAvailable:");
    struct bound memory, cpu;

    *out = (struct machine_use){ .load = -1 };
    if (getloadavg(&out->load, 1) != 1)
        out->load = -1;
    read_cgroups(&memory, &cpu);
    if (memory.value / MIB < total)
        out->memory_mib = used_of_group(memory.group);
    else
        out->memory_mib = total > available ? total - available : 0;
}
