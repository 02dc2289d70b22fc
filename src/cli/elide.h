/* SPDX-License-Identifier: Apache-2.0 */
/* Long texts side by side, cut so that the part in which they differ stays. Pure. */
#ifndef CLI_ELIDE_H
#define CLI_ELIDE_H

#include <stddef.h>

#include "base/arena.h"

/* If one of the texts has more than `room` columns, each of them loses what all have in common at
 * its beginning and its end, as far as needed; an ellipsis stands for it. A text that is still too
 * long is cut at its end. The texts are visible (codec/visible.h); NULL: there is none. */
void elide_common(struct arena *arena, const char **texts, size_t n, size_t room);

#endif
