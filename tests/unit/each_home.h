/* SPDX-License-Identifier: Apache-2.0 */
/* A home that each test of a program has for itself: make_home and release_home are for cmocka's
 * set-up and tear-down. */
#ifndef TESTS_EACH_HOME_H
#define TESTS_EACH_HOME_H

#include "home.h"

static struct home home;

static int make_home(void **state) {
    (void)state;
    home_make(&home);
    return 0;
}

static int release_home(void **state) {
    (void)state;
    home_release(&home);
    return 0;
}

#endif
