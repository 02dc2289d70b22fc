/* SPDX-License-Identifier: Apache-2.0 */
/* Which machine this is, and since which boot: a run belongs to both. */
#ifndef STORE_HOST_H
#define STORE_HOST_H

enum { HOST_TEXT = 65, BOOT_TEXT = 64 };

/* Both fill in and return `out`; "unknown" where the system does not say. */
const char *host_name(char out[HOST_TEXT]);
const char *boot_id(char out[BOOT_TEXT]);

#endif
