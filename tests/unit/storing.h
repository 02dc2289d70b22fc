/* SPDX-License-Identifier: Apache-2.0 */
/* A store of series for each test, in a directory of its own. Included after cmocka.h. */
#ifndef TESTS_STORING_H
#define TESTS_STORING_H

#include "scratch.h"

static char scratch[64], directory[96]; /* the store is in the latter, which is not made yet */

static int make_scratch(void **state) {
    (void)state;
    scratch_make(scratch);
    snprintf(directory, sizeof directory, "%s/series", scratch);
    return 0;
}

static int drop_scratch(void **state) {
    (void)state;
    scratch_remove(scratch);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_scratch, drop_scratch)

#endif
