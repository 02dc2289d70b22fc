/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/statusline.h"

struct screen {
    int master, fd;
    struct statusline status;
};

static int open_screen(void **state) {
    static struct screen screen;

    if (openpty(&screen.master, &screen.fd, NULL, NULL, NULL) < 0)
        return -1;
    statusline_init(&screen.status, screen.fd);
    snprintf(screen.status.fields[STATUS_PHASE], 40, "running");
    snprintf(screen.status.fields[STATUS_TASKS], 40, "8/8 tasks");
    snprintf(screen.status.fields[STATUS_CPU], 40, "CPU 187%%");
    snprintf(screen.status.fields[STATUS_MEMORY], 40, "1.2 GiB");
    snprintf(screen.status.fields[STATUS_ELAPSED], 40, "12s");
    *state = &screen;
    return 0;
}

static int close_screen(void **state) {
    struct screen *screen = *state;

    close(screen->master);
    close(screen->fd);
    return 0;
}

static void set_width(const struct screen *screen, unsigned short columns) {
    const struct winsize size = { .ws_row = 24, .ws_col = columns };

    assert_int_equal(ioctl(screen->fd, TIOCSWINSZ, &size), 0);
}

static void assert_drawn(struct screen *screen, unsigned short columns, const char *wanted) {
    char out[STATUSLINE_BYTES + 1], line[STATUSLINE_BYTES];
    size_t n;

    set_width(screen, columns);
    n = statusline_draw(&screen->status, out);
    out[n] = '\0';
    snprintf(line, sizeof line, "\x1b[2m%s\x1b[0m\r", wanted);
    assert_string_equal(out, *wanted ? line : "");
}

static void a_narrow_terminal_gets_as_many_fields_as_fit(void **state) {
    struct screen *screen = *state;

    assert_drawn(screen, 47, "running · 8/8 tasks · CPU 187% · 1.2 GiB · 12s");
    assert_drawn(screen, 46, "running · 8/8 tasks · 1.2 GiB · 12s");
    assert_drawn(screen, 35, "running · 8/8 tasks · 12s");
    assert_drawn(screen, 25, "running · 8/8 tasks");
    assert_drawn(screen, 19, "running");
    assert_drawn(screen, 7, "");
    assert_drawn(screen, 0, "");
}

static void a_field_that_is_not_known_is_left_out(void **state) {
    struct screen *screen = *state;

    screen->status.fields[STATUS_CPU][0] = '\0';
    assert_drawn(screen, 80, "running · 8/8 tasks · 1.2 GiB · 12s");
    screen->status.fields[STATUS_PHASE][0] = '\0';
    assert_drawn(screen, 80, "");
}

static void a_line_that_is_not_ended_stands_above_and_is_cut_to_the_width(void **state) {
    struct screen *screen = *state;
    char out[STATUSLINE_BYTES + 1];
    size_t n;

    set_width(screen, 24);
    statusline_set_unended(&screen->status, "worker.0", "\x1b[31m 62%|██████▏\x1b[0m\t| 620");
    n = statusline_draw(&screen->status, out);
    out[n] = '\0';
    assert_string_equal(out, "\x1b[?7lworker.0 │  62%|██████▏\x1b[?7h\r\n"
                             "\x1b[2mrunning · 8/8 tasks\x1b[0m\r\x1b[A");
    statusline_set_unended(&screen->status, "", "alone");
    n = statusline_draw(&screen->status, out);
    out[n] = '\0';
    assert_ptr_equal(strstr(out, "\x1b[?7lalone\x1b[?7h"), out);
    statusline_set_unended(&screen->status, NULL, NULL);
    assert_drawn(screen, 25, "running · 8/8 tasks");
}

static void a_line_that_is_not_ended_may_be_of_any_length(void **state) {
    struct screen *screen = *state;
    static char text[70000];
    char out[STATUSLINE_BYTES + 1];

    for (size_t i = 0; i + 3 < sizeof text; i += 3)
        memcpy(text + i, "█", 3);
    set_width(screen, 2000);
    statusline_set_unended(&screen->status, "worker.0", text);
    assert_true(strlen(screen->status.unended) < STATUSLINE_UNENDED);
    assert_true(statusline_draw(&screen->status, out) < STATUSLINE_BYTES);
}

/* The cursor is at the beginning of what was drawn, however the terminal has folded it since. */
static void what_is_below_the_cursor_is_erased_once(void **state) {
    struct screen *screen = *state;
    char out[STATUSLINE_BYTES + 1];
    size_t n;

    assert_int_equal(statusline_erase(&screen->status, out), 0);
    set_width(screen, 80);
    n = statusline_draw(&screen->status, out);
    assert_int_equal(out[n - 1], '\r');
    set_width(screen, 20);
    n = statusline_erase(&screen->status, out);
    out[n] = '\0';
    assert_string_equal(out, "\r\x1b[J");
    assert_int_equal(statusline_erase(&screen->status, out), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_narrow_terminal_gets_as_many_fields_as_fit, open_screen,
                                        close_screen),
        cmocka_unit_test_setup_teardown(a_field_that_is_not_known_is_left_out, open_screen,
                                        close_screen),
        cmocka_unit_test_setup_teardown(
            a_line_that_is_not_ended_stands_above_and_is_cut_to_the_width, open_screen,
            close_screen),
        cmocka_unit_test_setup_teardown(a_line_that_is_not_ended_may_be_of_any_length, open_screen,
                                        close_screen),
        cmocka_unit_test_setup_teardown(what_is_below_the_cursor_is_erased_once, open_screen,
                                        close_screen),
    };

    return cmocka_run_group_tests_name("statusline", tests, NULL, NULL);
}
