/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of a run: 32 hexadecimal digits in lower case. Control groups, objects of a cluster
 * and directories are named after it, so every uuid that is read from somewhere is checked here
 * first. */
#ifndef MODEL_UUID_H
#define MODEL_UUID_H

#include <stdbool.h>

enum { UUID_DIGITS = 32, UUID_TEXT = UUID_DIGITS + 1 };

/* Takes NULL, which is none. */
bool uuid_is_valid(const char *text);

#endif
