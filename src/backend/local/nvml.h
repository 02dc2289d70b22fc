/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVIDIA GPUs of this machine, by NVML (libnvidia-ml.so.1), which is loaded when it is
 * asked for and is there only with the driver. Neither library nor GPU is normal: the list is
 * empty then. One that is there and does not answer is told.
 */
#ifndef BACKEND_LOCAL_NVML_H
#define BACKEND_LOCAL_NVML_H

#include <stdint.h>

#include "model/demand.h"

struct gpu {
    char name[96];
    char uuid[96]; /* "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"; empty: not known */
    uint64_t memory_bytes, used_bytes; /* 0: not known */
    int busy_percent;                  /* -1: not known */
};

struct gpus {
    uint32_t n; /* at most GPUS_MAX; index i is NVML's, which is by bus address */
    struct gpu list[GPUS_MAX];
    char trouble[256]; /* why there is nothing to see though there is a driver, or "" */
};

void nvml_read(struct gpus *out);

/* For who looks again and again: starting the driver's library takes it a while. NULL where there
 * is nothing to see. */
struct nvml;
struct nvml *nvml_open(void);
void nvml_look(const struct nvml *nvml, struct gpus *out);
void nvml_close(struct nvml *nvml); /* takes NULL */

#endif
