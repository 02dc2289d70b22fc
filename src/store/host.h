/* SPDX-License-Identifier: Apache-2.0 */
/* Which machine this is, and since which boot: a run belongs to both. */
#ifndef STORE_HOST_H
#define STORE_HOST_H

enum { HOST_TEXT = 65, BOOT_TEXT = 64, PYTHON_TEXT = 256 };

/* Both fill in and return `out`; "unknown" where the system does not say. */
const char *host_name(char out[HOST_TEXT]);
const char *boot_id(char out[BOOT_TEXT]);

/* What of the machine decides how a training fares, as far as it costs nothing to ask. */
struct host_facts {
    char kernel[HOST_TEXT];   /* its release */
    int cpus;                 /* that this process may use */
    char python[PYTHON_TEXT]; /* the file behind `python3` of the PATH; "" where there is none */
};
void host_look(struct host_facts *out);

#endif
