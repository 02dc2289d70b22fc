/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/local/topology.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "codec/json.h"
#include "store/host.h"
#include "supervise/blocked.h"
#include "supervise/queue.h"

/* All that is shown. */
struct node_facts {
    char host[HOST_TEXT];
    struct machine machine;
    struct gpus gpus;
    struct machine_use use;
    struct layout layout;
    struct ledger_view view;
};

static int gather(struct node_facts *facts, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    const char *home;

    memset(facts, 0, sizeof *facts);
    if (rundir_home(&arena, &home, err) || queue_look(home, &facts->view, err))
        return -1;
    host_name(facts->host);
    inventory_read(INVENTORY_WHOLE, &facts->machine, &facts->gpus);
    inventory_use(&facts->use);
    topology_read(&facts->layout);
    return 0;
}

static milli reserved(const struct node_facts *facts, enum resource resource) {
    milli sum = 0;

    for (size_t i = 0; i < facts->view.holds.len; i++)
        sum += facts->view.holds.items[i].amount[resource];
    return sum;
}

static milli left(const struct node_facts *facts, enum resource resource) {
    const milli amount = facts->machine.amount[resource] - reserved(facts, resource);

    return amount > 0 ? amount : 0;
}

/* The run that holds a GPU, or 0. */
static uint64_t gpu_holder(const struct node_facts *facts, uint32_t index) {
    for (size_t i = 0; i < facts->view.holds.len; i++)
        if (facts->view.holds.items[i].gpus >> index & 1)
            return facts->view.holds.items[i].run;
    return 0;
}

/* The CPUs of one node. */
static struct cpus node_cpus(const struct layout *layout, uint32_t node) {
    struct cpus cpus = { 0 };

    for (uint32_t i = 0; i < layout->n_cpus; i++)
        if (layout->cpus[i].node == node)
            cpus_add(&cpus, layout->cpus[i].cpu);
    return cpus;
}

/* The cores that have one of these CPUs. */
static uint32_t count_cores(const struct layout *layout, const struct cpus *cpus) {
    bool is_counted[CPUS_MAX] = { false };
    uint32_t n = 0;

    for (uint32_t i = 0; i < layout->n_cpus; i++)
        if (cpus_has(cpus, layout->cpus[i].cpu) && !is_counted[layout->cpus[i].core]) {
            is_counted[layout->cpus[i].core] = true;
            n++;
        }
    return n;
}

static struct cpus pinned_cpus(const struct node_facts *facts) {
    struct cpus cpus = { 0 };

    for (size_t i = 0; i < facts->view.holds.len; i++)
        cpus_join(&cpus, &facts->view.holds.items[i].cpus);
    return cpus;
}

/* ---- for people ---- */

static void print_header(struct table *table, const char *const *columns, size_t n) {
    table_init(table, n);
    for (size_t i = 0; i < n; i++)
        table_cell(table, "%s", columns[i]);
}

static void print_table(struct table *table) {
    table_print(table, stdout, terminal_colour(stdout));
    table_release(table);
}

static void print_resources(const struct node_facts *facts) {
    static const char *const columns[] = { "RESOURCE", "THERE", "RESERVED", "FREE", "IN USE" };
    struct table table;

    print_header(&table, columns, ARRAY_LEN(columns));
    for (enum resource r = RESOURCE_CPU; r <= RESOURCE_GPU; r++) {
        table_cell(&table, "%s%s", resource_name(r), r == RESOURCE_MEMORY ? " (MiB)" : "");
        table_cell(&table, "%s", milli_text(facts->machine.amount[r]).text);
        table_cell(&table, "%s", milli_text(reserved(facts, r)).text);
        table_cell(&table, "%s", milli_text(left(facts, r)).text);
        if (r == RESOURCE_CPU && facts->use.load >= 0)
            table_cell(&table, "%.2f (load average)", facts->use.load);
        else if (r == RESOURCE_MEMORY)
            table_cell(&table, "%" PRIu64, facts->use.memory_mib);
        else
            table_cell(&table, "%s", "");
    }
    print_table(&table);
}

static void cpus_cell(struct table *table, const struct cpus *cpus) {
    AUTO(buf) text = BUF_INIT(CPUS_TEXT_MOST);
    struct error err;

    table_cell(table, "%s", cpus_write(cpus, &text, &err) ? "" : text.data);
}

static void print_layout(const struct node_facts *facts) {
    static const char *const columns[] = { "NUMA NODE", "CORES",  "CPUS",
                                           "OURS",      "PINNED", "MEMORY (MiB)" };
    const struct layout *layout = &facts->layout;
    const struct cpus pinned = pinned_cpus(facts);
    struct table table;

    printf("\n%u package%s, %u core%s, %u CPU%s", layout->n_packages,
           layout->n_packages == 1 ? "" : "s", layout->n_cores, layout->n_cores == 1 ? "" : "s",
           layout->n_cpus, layout->n_cpus == 1 ? "" : "s");
    if (layout->trouble[0])
        printf(" (how they lie is not known: %s)", layout->trouble);
    else if (!layout->is_this_machine)
        fputs(" (of a machine that HWLOC_SYNTHETIC or HWLOC_XMLFILE describe)", stdout);
    fputs("\n", stdout);
    print_header(&table, columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < layout->n_nodes; i++) {
        const struct cpus cpus = node_cpus(layout, i);
        struct cpus ours = cpus, own = cpus;

        cpus_keep(&ours, &layout->allowed);
        cpus_keep(&own, &pinned);
        table_cell(&table, "%u", layout->nodes[i].index);
        table_cell(&table, "%u", count_cores(layout, &cpus));
        cpus_cell(&table, &cpus);
        cpus_cell(&table, &ours);
        cpus_cell(&table, &own);
        table_cell(&table, layout->nodes[i].memory_mib ? "%" PRIu64 : "",
                   layout->nodes[i].memory_mib);
    }
    print_table(&table);
}

static void print_gpus(const struct node_facts *facts) {
    static const char *const columns[] = { "GPU", "NAME", "MEMORY (MiB)", "USED", "BUSY", "RUN" };
    struct table table;

    if (facts->gpus.trouble[0])
        printf("\nGPUs: %s\n", facts->gpus.trouble);
    if (facts->gpus.n == 0)
        return;
    fputs("\n", stdout);
    print_header(&table, columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < facts->gpus.n; i++) {
        const struct gpu *gpu = &facts->gpus.list[i];
        const uint64_t run = gpu_holder(facts, i);

        table_cell(&table, "%u", i);
        table_cell(&table, "%s", gpu->name);
        table_cell(&table, "%" PRIu64, gpu->memory_bytes / (1024 * 1024));
        table_cell(&table, "%" PRIu64, gpu->used_bytes / (1024 * 1024));
        table_cell(&table, gpu->busy_percent < 0 ? "" : "%d %%", gpu->busy_percent);
        if (!(facts->machine.gpus >> i & 1))
            table_cell(&table, "not ours (CUDA_VISIBLE_DEVICES)");
        else if (run)
            table_cell(&table, "%" PRIu64, run);
        else
            table_cell(&table, "%s", "");
    }
    print_table(&table);
}

/* "2 CPUs, 512 MiB of memory". */
static const char *amounts(struct table *table, const milli amount[RESOURCE_COUNT]) {
    const char *text = "";

    for (enum resource r = 0; r < RESOURCE_COUNT; r++)
        if (amount[r] > 0)
            text = arena_printf(&table->arena, "%s%s%s", text, *text ? ", " : "",
                                amount_text(r, amount[r]).text);
    return text;
}

static void add_row(struct table *table, uint64_t run, const char *state,
                    const milli amount[RESOURCE_COUNT], const struct cpus *own, double since) {
    table_cell(table, "%" PRIu64, run);
    table_cell(table, "%s", state);
    table_cell(table, "%s", amounts(table, amount));
    cpus_cell(table, own);
    table_cell(table, "%s", span_text((double)time(NULL) - since).text);
}

static void print_runs(const struct node_facts *facts) {
    static const char *const columns[] = { "RUN", "", "WHAT", "PINNED TO", "SINCE" };
    const struct ledger_view *view = &facts->view;
    struct table table;

    if (view->holds.len + view->queue.len == 0)
        return;
    fputs("\n", stdout);
    print_header(&table, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < view->holds.len;) {
        const struct hold *first = &view->holds.items[i];
        milli sum[RESOURCE_COUNT] = { 0 };
        struct cpus own = { 0 };

        for (; i < view->holds.len && view->holds.items[i].run == first->run; i++) {
            for (enum resource r = 0; r < RESOURCE_COUNT; r++)
                sum[r] += view->holds.items[i].amount[r];
            cpus_join(&own, &view->holds.items[i].cpus);
        }
        add_row(&table, first->run, "holds", sum, &own, first->since);
    }
    for (size_t i = 0; i < view->queue.len; i++)
        add_row(&table, view->queue.items[i].run, "waits for", view->queue.items[i].demand.total,
                &(struct cpus){ 0 }, view->queue.items[i].since);
    print_table(&table);
}

/* ---- for programs ---- */

static void json_amounts(struct json *json, const milli amount[RESOURCE_COUNT]) {
    for (enum resource r = 0; r < RESOURCE_COUNT; r++)
        json_milli(json, resource_name(r), amount[r]);
}

static void json_cpus(struct json *json, const char *key, const struct cpus *cpus) {
    json_key(json, key);
    json_array(json);
    for (uint32_t i = 0; i < CPUS_MAX; i++)
        if (cpus_has(cpus, i))
            json_int(json, i);
    json_end(json);
}

static void json_layout(struct json *json, const struct node_facts *facts) {
    const struct layout *layout = &facts->layout;
    const struct cpus pinned = pinned_cpus(facts);

    json_key(json, "topology");
    json_object(json);
    json_key(json, "packages");
    json_int(json, layout->n_packages);
    json_key(json, "cores");
    json_int(json, layout->n_cores);
    json_key(json, "cpus");
    json_int(json, layout->n_cpus);
    json_cpus(json, "allowed", &layout->allowed);
    json_cpus(json, "pinned", &pinned);
    json_key(json, "numa_nodes");
    json_array(json);
    for (uint32_t i = 0; i < layout->n_nodes; i++) {
        const struct cpus cpus = node_cpus(layout, i);

        json_object(json);
        json_key(json, "index");
        json_int(json, layout->nodes[i].index);
        json_key(json, "memory_mib");
        json_int(json, (int64_t)layout->nodes[i].memory_mib);
        json_key(json, "cores");
        json_int(json, count_cores(layout, &cpus));
        json_cpus(json, "cpus", &cpus);
        json_end(json);
    }
    json_end(json);
    json_key(json, "is_this_machine");
    json_bool(json, layout->is_this_machine);
    json_key(json, "trouble");
    json_text(json, layout->trouble[0] ? layout->trouble : NULL);
    json_end(json);
}

static void json_gpus(struct json *json, const struct node_facts *facts) {
    json_key(json, "gpus");
    json_array(json);
    for (uint32_t i = 0; i < facts->gpus.n; i++) {
        const struct gpu *gpu = &facts->gpus.list[i];
        const uint64_t run = gpu_holder(facts, i);

        json_object(json);
        json_key(json, "index");
        json_int(json, i);
        json_key(json, "name");
        json_text(json, gpu->name);
        json_key(json, "memory_mib");
        json_int(json, (int64_t)(gpu->memory_bytes / (1024 * 1024)));
        json_key(json, "used_mib");
        json_int(json, (int64_t)(gpu->used_bytes / (1024 * 1024)));
        json_key(json, "busy_percent");
        if (gpu->busy_percent < 0)
            json_null(json);
        else
            json_int(json, gpu->busy_percent);
        json_key(json, "run");
        if (run)
            json_int(json, (int64_t)run);
        else
            json_null(json);
        json_end(json);
    }
    json_end(json);
}

static void json_rows(struct json *json, const struct ledger_view *view) {
    json_key(json, "reservations");
    json_array(json);
    for (size_t i = 0; i < view->holds.len; i++) {
        const struct hold *hold = &view->holds.items[i];

        json_object(json);
        json_key(json, "run");
        json_int(json, (int64_t)hold->run);
        json_key(json, "rank");
        if (hold->rank == HOLD_OF_SEVERAL)
            json_null(json);
        else
            json_int(json, hold->rank);
        json_amounts(json, hold->amount);
        json_key(json, "gpu_indexes");
        json_array(json);
        for (int g = 0; g < GPUS_MAX; g++)
            if (hold->gpus >> g & 1)
                json_int(json, g);
        json_end(json);
        json_cpus(json, "cpu_indexes", &hold->cpus);
        json_key(json, "since");
        json_number(json, floor(hold->since * 1000) / 1000);
        json_end(json);
    }
    json_end(json);
    json_key(json, "queue");
    json_array(json);
    for (size_t i = 0; i < view->queue.len; i++) {
        json_object(json);
        json_key(json, "run");
        json_int(json, (int64_t)view->queue.items[i].run);
        json_amounts(json, view->queue.items[i].demand.total);
        json_key(json, "since");
        json_number(json, floor(view->queue.items[i].since * 1000) / 1000);
        json_end(json);
    }
    json_end(json);
}

static int print_json(const struct node_facts *facts, struct error *err) {
    struct json json;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_object(&json);
    json_key(&json, "host");
    json_text(&json, facts->host);
    json_key(&json, "resources");
    json_object(&json);
    for (enum resource r = RESOURCE_CPU; r <= RESOURCE_GPU; r++) {
        json_key(&json, resource_name(r));
        json_object(&json);
        json_milli(&json, "total", facts->machine.amount[r]);
        json_milli(&json, "reserved", reserved(facts, r));
        json_milli(&json, "free", left(facts, r));
        json_end(&json);
    }
    json_end(&json);
    json_key(&json, "load");
    if (facts->use.load < 0)
        json_null(&json);
    else
        json_number(&json, floor(facts->use.load * 100) / 100);
    json_key(&json, "memory_used_mib");
    json_int(&json, (int64_t)facts->use.memory_mib);
    json_layout(&json, facts);
    json_gpus(&json, facts);
    json_key(&json, "gpu_trouble");
    json_text(&json, facts->gpus.trouble[0] ? facts->gpus.trouble : NULL);
    json_rows(&json, &facts->view);
    json_end(&json);
    return json_finish(&json, err);
}

static int node_command(const struct invocation *in) {
    struct node_facts facts;
    struct error err;
    int status = STATUS_OK;

    if (gather(&facts, &err) || (invocation_has(in, "json") && print_json(&facts, &err))) {
        complain("%s", err.message);
        status = STATUS_INVALID;
    } else if (!invocation_has(in, "json")) {
        print_resources(&facts);
        print_layout(&facts);
        print_gpus(&facts);
        print_runs(&facts);
    }
    ledger_view_release(&facts.view);
    return status;
}

static const struct option options[] = {
    { .name = "json", .help = "print it as JSON" },
    { 0 },
};

const struct command command_node = {
    .name = "node",
    .summary = "show what this machine has, who holds what, and what is in use",
    .description =
        "Prints the CPUs, the memory and the GPUs of this machine; what of them is reserved by "
        "which run, and who waits; and what is really in use, by whomever: the load average of the "
        "last minute, the memory, and each GPU's own figures.\n"
        "\n"
        "A CPU is what the kernel counts: a hardware thread, of which a core may have two. Of each "
        "NUMA node it shows the CPUs that it has, that this process may use, and that tasks are "
        "pinned to.\n"
        "\n"
        "Reservations are those of one home: who shares a machine shares `MYELIN_HOME`.",
    .options = options,
    .run = node_command,
};
