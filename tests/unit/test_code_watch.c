/* SPDX-License-Identifier: Apache-2.0 */
/* What a supervisor hears of the code of its run. */
#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <event2/event.h>

#include "base/file.h"
#include "home.h"
#include "supervise/code_watch.h"

/* How many files the loops of this process wait for, by the kernel's own account. */
static int files_waited_for(void) {
    DIR *folder = opendir("/proc/self/fdinfo");
    struct dirent *entry;
    int n = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        char path[300], line[200];
        FILE *file;

        snprintf(path, sizeof path, "/proc/self/fdinfo/%s", entry->d_name);
        file = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
        while (file && fgets(line, sizeof line, file))
            n += strncmp(line, "tfd:", 4) == 0;
        if (file)
            fclose(file);
    }
    closedir(folder);
    return n;
}

static void when_all_is_told_the_loop_waits_for_nothing_more(void **state) {
    struct code_watch watch = CODE_WATCH_NONE;
    struct event_base *base = event_base_new();
    int ends[2], of_keeper;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    of_keeper = dup(ends[0]); /* whoever started us has the pipe too */
    watch.recorder.fd = ends[0];
    code_watch_await(&watch, base, NULL);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(files_waited_for(), 1);
    assert_int_equal(write(ends[1], "{", 1), 1);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(files_waited_for(), 1);
    close(ends[1]);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(files_waited_for(), 0);
    assert_int_equal(watch.recorder.fd, -1);
    close(of_keeper);
    code_watch_release(&watch);
    event_base_free(base);
}

static void code_that_is_too_long_for_the_journal_is_told_as_such(void **state) {
    static char name[PATH_MAX];
    struct code_facts facts = { .snapshot_root = "/" };
    struct code_watch watch = CODE_WATCH_NONE;
    AUTO(buf) text = BUF_INIT(1 << 20);
    struct journal journal;
    struct rundir rundir;
    struct home home;
    struct error err;

    (void)state;
    home_make(&home);
    rundir = home_run(&home);
    memset(name, 'x', sizeof name - 1);
    for (; facts.links.n < CODE_NAMES_MOST; facts.links.n++)
        facts.links.names[facts.links.n] = facts.links.targets[facts.links.n] = name;
    code_watch_know(&watch, &facts);
    assert_int_equal(journal_create(&journal, &rundir, 1, &err), 0);
    code_watch_tell(&watch, &journal);
    journal_close(&journal);
    assert_int_equal(file_read(rundir.journal, &text, &err), 0);
    assert_non_null(strstr(text.data, "what is known of the code could not be recorded"));
    assert_null(strstr(text.data, "\"event\": \"code\""));
    code_watch_release(&watch);
    home_release(&home);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_all_is_told_the_loop_waits_for_nothing_more),
        cmocka_unit_test(code_that_is_too_long_for_the_journal_is_told_as_such),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
