/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"

/* The part of NVML's documented interface that is used here. */
typedef int nvml_return;
typedef struct nvml_device *nvml_device;
struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};
struct nvml_utilization {
    unsigned int gpu, memory; /* percent */
};
enum { NVML_SUCCESS = 0, NVML_ERROR_DRIVER_NOT_LOADED = 9, NVML_ERROR_NOT_FOUND = 6 };

struct nvml {
    void *library;
    nvml_return (*init)(void);
    nvml_return (*shutdown)(void);
    const char *(*error_string)(nvml_return);
    nvml_return (*count)(unsigned int *);
    nvml_return (*by_index)(unsigned int, nvml_device *);
    nvml_return (*name)(nvml_device, char *, unsigned int);
    nvml_return (*uuid)(nvml_device, char *, unsigned int);
    nvml_return (*memory)(nvml_device, struct nvml_memory *);
    nvml_return (*utilization)(nvml_device, struct nvml_utilization *);
};

static bool load(struct nvml *nvml, struct gpus *out) {
    const struct library_symbol symbols[] = {
        { "nvmlInit_v2", &nvml->init },
        { "nvmlShutdown", &nvml->shutdown },
        { "nvmlErrorString", &nvml->error_string },
        { "nvmlDeviceGetCount_v2", &nvml->count },
        { "nvmlDeviceGetHandleByIndex_v2", &nvml->by_index },
        { "nvmlDeviceGetName", &nvml->name },
        { "nvmlDeviceGetUUID", &nvml->uuid },
        { "nvmlDeviceGetMemoryInfo", &nvml->memory },
        { "nvmlDeviceGetUtilizationRates", &nvml->utilization },
    };
    struct error err;

    if (library_load("libnvidia-ml.so.1", symbols, ARRAY_LEN(symbols), &nvml->library, &err) == 0)
        return true;
    if (err.code != ERROR_UNAVAILABLE) /* no driver: nothing to tell */
        snprintf(out->trouble, sizeof out->trouble, "%.200s", err.message);
    return false;
}

static void read_one(const struct nvml *nvml, nvml_device device, struct gpu *gpu) {
    struct nvml_memory memory = { 0 };
    struct nvml_utilization use = { 0 };

    *gpu = (struct gpu){ .busy_percent = -1 };
    if (nvml->name(device, gpu->name, sizeof gpu->name) != NVML_SUCCESS)
        snprintf(gpu->name, sizeof gpu->name, "GPU");
    gpu->name[sizeof gpu->name - 1] = '\0';
    if (nvml->uuid(device, gpu->uuid, sizeof gpu->uuid) != NVML_SUCCESS)
        gpu->uuid[0] = '\0';
    gpu->uuid[sizeof gpu->uuid - 1] = '\0';
    if (nvml->memory(device, &memory) == NVML_SUCCESS) {
        gpu->memory_bytes = memory.total;
        gpu->used_bytes = memory.used;
    }
    if (nvml->utilization(device, &use) == NVML_SUCCESS && use.gpu <= 100)
        gpu->busy_percent = (int)use.gpu;
}

static void read_all(const struct nvml *nvml, struct gpus *out) {
    unsigned int n = 0;
    nvml_return code = nvml->count(&n);

    for (unsigned int i = 0; code == NVML_SUCCESS && i < n && i < GPUS_MAX; i++) {
        nvml_device device = NULL;

        code = nvml->by_index(i, &device);
        if (code == NVML_SUCCESS)
            read_one(nvml, device, &out->list[out->n++]);
    }
    if (code != NVML_SUCCESS) {
        /* Which of them is missing would shift the indexes of the others. */
        out->n = 0;
        snprintf(out->trouble, sizeof out->trouble, "the GPUs cannot be listed: %s",
                 nvml->error_string(code));
    }
}

/* True: it is to be shut down. */
static bool start(struct nvml *nvml, struct gpus *out) {
    nvml_return code;

    if (!load(nvml, out))
        return false;
    code = nvml->init();
    if (code != NVML_SUCCESS && code != NVML_ERROR_DRIVER_NOT_LOADED &&
        code != NVML_ERROR_NOT_FOUND)
        snprintf(out->trouble, sizeof out->trouble, "the driver of the GPUs does not start: %s",
                 nvml->error_string(code));
    return code == NVML_SUCCESS;
}

void nvml_read(struct gpus *out) {
    struct nvml nvml = { 0 };

    *out = (struct gpus){ 0 };
    if (start(&nvml, out)) {
        read_all(&nvml, out);
        nvml.shutdown();
    }
    library_unload(nvml.library);
}

struct nvml *nvml_open(void) {
    struct nvml *nvml = calloc(1, sizeof *nvml);
    struct gpus trouble = { 0 };

    if (!nvml)
        abort();
    if (start(nvml, &trouble))
        return nvml;
    library_unload(nvml->library);
    free(nvml);
    return NULL;
}

void nvml_look(const struct nvml *nvml, struct gpus *out) {
    *out = (struct gpus){ 0 };
    read_all(nvml, out);
}

void nvml_close(struct nvml *nvml) {
    if (!nvml)
        return;
    nvml->shutdown();
    library_unload(nvml->library);
    free(nvml);
}
