/* SPDX-License-Identifier: Apache-2.0 */
/* Images and texts of a run (store/media.h): one by one for `outputs --media`, by name for
 * `status`. */
#ifndef CLI_MEDIA_ROWS_H
#define CLI_MEDIA_ROWS_H

#include "codec/json.h"
#include "store/media.h"
#include "store/record.h"

void media_print(const struct run_record *run, const struct media_list *list);
MUST_CHECK int media_print_json(const struct run_record *run, const struct media_list *list,
                                struct error *err);

/* "val/samples (12 images to step 400), note (1 text, step 9)"; "" for none. */
const char *media_text(const struct rundir *rundir, struct arena *arena);
void json_media_names(struct json *json, const struct rundir *rundir); /* the member `media` */

#endif
