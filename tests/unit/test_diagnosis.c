/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs are what CPython 3.7 to 3.13, glibc, libstdc++, bash, dash and the frameworks print,
 * with other paths. Source and marker lines are left out where they add nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "codec/utf8.h"
#include "supervise/diagnosis.h"
#include "supervise/traceback.h"

#define HEAD   "Traceback (most recent call last):\n"
#define CAUSED "\nThe above exception was the direct cause of the following exception:\n\n"
#define DURING "\nDuring handling of the above exception, another exception occurred:\n\n"

static struct task_end exit_with(int code) {
    return (struct task_end){ .kind = TASK_EXITED, .detail = code };
}

static struct task_end signalled(int number) {
    return (struct task_end){ .kind = TASK_SIGNALLED, .detail = number };
}

static struct diagnosis diagnose_text(struct task_end end, const char *output) {
    struct diagnosis why;

    diagnose("worker.2", &end, output, strlen(output), OUTPUT_WHOLE, &why);
    return why;
}

static void assert_sentence(struct task_end end, const char *output, const char *sentence) {
    const struct diagnosis why = diagnose_text(end, output);

    assert_string_equal(why.sentence, sentence);
}

static void assert_raised(const char *output, const char *sentence) {
    assert_sentence(exit_with(1), output, sentence);
}

/* --- Python --- */

static const char plain_3_7[] = HEAD "  File \"train.py\", line 6, in <module>\n"
                                     "    main()\n"
                                     "  File \"train.py\", line 5, in main\n"
                                     "    step(1)\n"
                                     "  File \"train.py\", line 3, in step\n"
                                     "    raise ValueError(\"shapes do not match\")\n"
                                     "ValueError: shapes do not match\n";
static const char plain_3_9[] = HEAD "  File \"/home/ada/train.py\", line 6, in <module>\n"
                                     "    main()\n"
                                     "  File \"/home/ada/train.py\", line 5, in main\n"
                                     "    step(1)\n"
                                     "  File \"/home/ada/train.py\", line 3, in step\n"
                                     "    raise ValueError(\"shapes do not match\")\n"
                                     "ValueError: shapes do not match\n";
static const char plain_3_13[] = HEAD "  File \"/home/ada/train.py\", line 6, in <module>\n"
                                      "    main()\n"
                                      "    ~~~~^^\n"
                                      "  File \"/home/ada/train.py\", line 5, in main\n"
                                      "    step(1)\n"
                                      "    ~~~~^^^\n"
                                      "  File \"/home/ada/train.py\", line 3, in step\n"
                                      "    raise ValueError(\"shapes do not match\")\n"
                                      "ValueError: shapes do not match\n";
static const char plain_sentence[] =
    "worker.2 raised ValueError: shapes do not match (train.py, line 3, in step)";

static void an_uncaught_exception_is_named_with_its_place_in_every_python(void **unused) {
    static const char *const outputs[] = { plain_3_7, plain_3_9, plain_3_13 };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(outputs); i++) {
        const struct diagnosis why = diagnose_text(exit_with(1), outputs[i]);

        assert_string_equal(why.sentence, plain_sentence);
        assert_int_equal(why.kind, DIAGNOSIS_PYTHON_EXCEPTION);
        assert_int_equal(why.place.line, 3);
        assert_string_equal(why.place.function, "step");
        assert_int_equal(why.raised.line, 0);
        assert_string_equal(why.hint, "");
    }
    assert_string_equal(diagnose_text(exit_with(1), plain_3_13).place.file, "/home/ada/train.py");
}

static void the_place_is_in_the_users_code_and_the_librarys_is_told_beside_it(void **unused) {
    const struct diagnosis why =
        diagnose_text(exit_with(1), HEAD
                      "  File \"/home/ada/load.py\", line 4, in <module>\n"
                      "    load()\n"
                      "  File \"/home/ada/load.py\", line 3, in load\n"
                      "    return json.loads(\"{bad\")\n"
                      "           ~~~~~~~~~~^^^^^^^^\n"
                      "  File \"/usr/lib/python3.13/json/__init__.py\", line 346, in loads\n"
                      "    return _default_decoder.decode(s)\n"
                      "  File \"/usr/lib/python3.13/json/decoder.py\", line 360, in raw_decode\n"
                      "    obj, end = self.scan_once(s, idx)\n"
                      "json.decoder.JSONDecodeError: Expecting value: line 1 column 2 (char 1)\n");

    (void)unused;
    assert_string_equal(why.sentence,
                        "worker.2 raised json.decoder.JSONDecodeError: Expecting value: line 1 "
                        "column 2 (char 1) (load.py, line 3, in load; raised in json/decoder.py, "
                        "line 360, in raw_decode)");
    assert_string_equal(why.place.file, "/home/ada/load.py");
    assert_string_equal(why.raised.file, "/usr/lib/python3.13/json/decoder.py");
    assert_int_equal(why.raised.line, 360);
}

static void installed_packages_and_text_made_in_memory_are_not_the_users_code(void **unused) {
    static const struct {
        const char *file;
        bool is_library;
    } rows[] = {
        { "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", true },
        { "/home/ada/venv/lib/python3.11/site-packages/numpy/core.py", true },
        { "C:/venv/site-packages/x.py", true },
        { "/usr/lib64/python3.9/socket.py", true },
        { "<frozen importlib._bootstrap>", true },
        { "<string>", true },
        { "/home/ada/train.py", false },
        { "train.py", false },
        { "/home/python3/train.py", false },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct frame frame = { .file = slice_of(rows[i].file), .line = 1 };

        assert_int_equal(frame_is_library(&frame), rows[i].is_library);
    }
}

static void of_a_chain_the_last_exception_counts(void **unused) {
    (void)unused;
    assert_raised(HEAD "  File \"a.py\", line 2, in <module>\n"
                       "ValueError: invalid literal for int() with base 10: 'x'\n" DURING HEAD
                       "  File \"a.py\", line 4, in <module>\n"
                       "FileNotFoundError: [Errno 2] No such file or directory: '/x/log'\n",
                  "worker.2 raised FileNotFoundError: [Errno 2] No such file or directory: "
                  "'/x/log' (a.py, line 4)");
}

static void a_generic_exception_is_told_with_its_cause_and_the_causes_place(void **unused) {
    static const char chain[] =
        HEAD "  File \"a.py\", line 5, in main\n"
             "  File \"a.py\", line 2, in read\n"
             "KeyError: 'lr'\n" CAUSED HEAD "  File \"a.py\", line 8, in <module>\n"
             "  File \"a.py\", line 7, in main\n"
             "RuntimeError: training failed\n";

    (void)unused;
    assert_raised(chain, "worker.2 raised RuntimeError: training failed, caused by KeyError: 'lr' "
                         "(a.py, line 2, in read)");
    assert_int_equal(diagnose_text(exit_with(1), HEAD "  File \"a.py\", line 2, in read\n"
                                                      "MemoryError\n" CAUSED HEAD
                                                      "  File \"a.py\", line 7, in main\n"
                                                      "RuntimeError: training failed\n")
                         .kind,
                     DIAGNOSIS_OUT_OF_MEMORY);
}

static void the_cause_of_a_chain_is_looked_for_behind_every_generic_link(void **unused) {
    (void)unused;
    assert_raised(HEAD "  File \"a.py\", line 1, in a\n"
                       "KeyError: 'lr'\n" CAUSED HEAD "  File \"a.py\", line 2, in b\n"
                       "RuntimeError: no config\n" CAUSED HEAD "  File \"a.py\", line 3, in c\n"
                       "RuntimeError: training failed\n",
                  "worker.2 raised RuntimeError: training failed, caused by KeyError: 'lr' (a.py, "
                  "line 1, in a)");
}

static void an_exception_group_is_told_with_its_first_member(void **unused) {
    (void)unused;
    assert_raised(
        "  + Exception Group Traceback (most recent call last):\n"
        "  |   File \"/home/ada/group.py\", line 7, in <module>\n"
        "  |     raise ExceptionGroup(\"two shards failed\", excs)\n"
        "  | ExceptionGroup: two shards failed (2 sub-exceptions)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        "    |   File \"/home/ada/group.py\", line 5, in <module>\n"
        "    |     try: f()\n"
        "    |          ~^^\n"
        "    |   File \"/home/ada/group.py\", line 2, in a\n"
        "    | ValueError: bad shard 3\n"
        "    +---------------- 2 ----------------\n"
        "    | Traceback (most recent call last):\n"
        "    |   File \"/home/ada/group.py\", line 5, in <module>\n"
        "    | KeyError: 'shard 4'\n"
        "    +------------------------------------\n",
        "worker.2 raised ExceptionGroup: two shards failed (2 sub-exceptions), first ValueError: "
        "bad shard 3 (group.py, line 2, in a)");
}

static void a_syntax_error_is_placed_where_the_text_is_wrong(void **unused) {
    static const char *const outputs[] = {
        "  File \"/home/ada/net.py\", line 1\n"
        "    def f(:\n"
        "          ^\n"
        "SyntaxError: invalid syntax\n",
        HEAD "  File \"/home/ada/train.py\", line 1, in <module>\n"
             "    import net\n"
             "  File \"/home/ada/net.py\", line 1\n"
             "    def f(:\n"
             "          ^\n"
             "SyntaxError: invalid syntax\n",
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(outputs); i++) {
        assert_raised(outputs[i], "worker.2 raised SyntaxError: invalid syntax (net.py, line 1)");
        assert_int_equal(diagnose_text(exit_with(1), outputs[i]).kind, DIAGNOSIS_PYTHON_SYNTAX);
    }
    assert_int_equal(diagnose_text(exit_with(1), "  File \"net.py\", line 3\n    y = 2\n"
                                                 "IndentationError: unexpected indent\n")
                         .kind,
                     DIAGNOSIS_PYTHON_SYNTAX);
}

static void a_missing_module_is_installed_only_if_its_package_is_known(void **unused) {
    static const struct {
        const char *line, *hint;
    } rows[] = {
        { "ModuleNotFoundError: No module named 'numpy'", "install it: pip install numpy" },
        { "ModuleNotFoundError: No module named 'cv2'", "install it: pip install opencv-python" },
        { "ModuleNotFoundError: No module named 'utils'",
          "install its package with pip; or, if utils is your own, start where it lies or set "
          "PYTHONPATH" },
        { "ModuleNotFoundError: No module named 'torch.future'",
          "the package is there without this part of it: is it the version that the code wants?" },
        { "ModuleNotFoundError: No module named ';reboot'", "" },
        { "/usr/bin/python3: No module named torch", "install it: pip install torch" },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char output[256];
        struct diagnosis why;

        snprintf(output, sizeof output, "%s%s\n",
                 rows[i].line[0] == '/' ? "" : HEAD "  File \"a.py\", line 1, in <module>\n",
                 rows[i].line);
        why = diagnose_text(exit_with(1), output);
        assert_int_equal(why.kind, DIAGNOSIS_PYTHON_MODULE);
        assert_string_equal(why.hint, rows[i].hint);
    }
    assert_raised(HEAD "  File \"a.py\", line 1, in <module>\n"
                       "ModuleNotFoundError: No module named 'numpy'\n",
                  "worker.2 lacks a Python module: ModuleNotFoundError: No module named 'numpy' "
                  "(a.py, line 1)");
}

static void an_interrupt_is_told_as_one_whatever_it_looks_like_outside(void **unused) {
    static const char output[] = HEAD "  File \"kbd.py\", line 2, in <module>\n"
                                      "  File \"kbd.py\", line 1, in loop\n"
                                      "KeyboardInterrupt\n";

    (void)unused;
    assert_sentence(signalled(SIGINT), output,
                    "worker.2 raised KeyboardInterrupt (kbd.py, line 1, in loop), then was ended "
                    "by signal 2 (SIGINT)");
    assert_int_equal(diagnose_text(exit_with(1), output).kind, DIAGNOSIS_SIGNAL);
    assert_sentence(signalled(SIGINT), plain_3_7, "worker.2 was ended by signal 2 (SIGINT)");
}

static void an_exit_with_a_message_shows_the_message(void **unused) {
    (void)unused;
    assert_sentence(exit_with(1), "loading\nno data at /data\n\n",
                    "worker.2 exited with code 1; the last line it wrote: no data at /data");
    assert_sentence(exit_with(1), "epoch 1: 10%\repoch 1: 20%",
                    "worker.2 exited with code 1; the last line it wrote: epoch 1: 20%");
}

static void an_exception_of_a_thread_did_not_end_the_task(void **unused) {
    static const char thread[] =
        "Exception in thread loader:\n" HEAD
        "  File \"/usr/lib/python3.7/threading.py\", line 926, in _bootstrap_inner\n"
        "  File \"thread.py\", line 2, in f\n"
        "ValueError: in a thread\n\n";
    char both[1024];

    (void)unused;
    assert_sentence(exit_with(3), thread,
                    "worker.2 exited with code 3 after its thread loader raised ValueError: in a "
                    "thread (thread.py, line 2, in f)");
    snprintf(both, sizeof both, "%s%s", plain_3_7, thread);
    assert_raised(both, plain_sentence);
}

static void an_exception_of_a_child_process_is_told_as_the_childs(void **unused) {
    (void)unused;
    assert_sentence(
        exit_with(1),
        "Process Process-1:\n" HEAD
        "  File \"/usr/lib/python3.13/multiprocessing/process.py\", line 313, in _bootstrap\n"
        "  File \"/home/ada/proc.py\", line 2, in f\n"
        "ValueError: in a process\n",
        "worker.2 exited with code 1 after its process Process-1 raised ValueError: in a process "
        "(proc.py, line 2, in f)");
}

static void exceptions_that_python_ignored_are_not_the_reason(void **unused) {
    static const char *const ignored[] = {
        "Exception ignored in: <function A.__del__ at 0x7f25298e5820>\n" HEAD
        "  File \"del.py\", line 3, in __del__\nValueError: in del\n",
        "Error in atexit._run_exitfuncs:\n" HEAD "  File \"atex.py\", line 2, in bye\n"
        "ValueError: at exit\n",
        "Exception ignored in atexit callback: <function bye at 0x7f30bf781bc0>\n" HEAD
        "  File \"atex.py\", line 2, in bye\nValueError: at exit\n",
        "--- Logging error ---\n" HEAD
        "  File \"/usr/lib/python3.12/logging/__init__.py\", line 392, in getMessage\n"
        "TypeError: %d format: a real number is required, not str\n"
        "Call stack:\n  File \"/home/ada/loge.py\", line 2, in <module>\n"
        "    logging.error(\"%d\", \"x\")\nMessage: '%d'\nArguments: ('x',)\n",
        "Task exception was never retrieved\nfuture: <Task finished name='Task-2' coro=<f() "
        "done, defined at a.py:2> exception=ValueError('in a task')>\n" HEAD
        "  File \"a.py\", line 2, in f\nValueError: in a task\n",
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++) {
        char after[2048];

        assert_int_equal(diagnose_text(exit_with(3), ignored[i]).kind, DIAGNOSIS_EXIT_CODE);
        snprintf(after, sizeof after, "%s%s", plain_3_7, ignored[i]);
        assert_raised(after, plain_sentence);
    }
}

static void what_a_pool_raises_again_is_placed_in_its_worker(void **unused) {
    (void)unused;
    assert_raised("multiprocessing.pool.RemoteTraceback: \n\"\"\"\n" HEAD
                  "  File \"/usr/lib/python3.13/multiprocessing/pool.py\", line 125, in worker\n"
                  "  File \"/home/ada/mp.py\", line 2, in f\n"
                  "ValueError: bad sample 1\n\"\"\"\n" CAUSED HEAD
                  "  File \"/home/ada/mp.py\", line 4, in <module>\n"
                  "  File \"/usr/lib/python3.13/multiprocessing/pool.py\", line 774, in get\n"
                  "ValueError: bad sample 1\n",
                  "worker.2 raised ValueError: bad sample 1 (mp.py, line 2, in f)");
    assert_raised(
        HEAD "  File \"/home/ada/dl.py\", line 6, in <module>\n"
             "  File \"/usr/lib/python3/dist-packages/torch/_utils.py\", line 543, in reraise\n"
             "ValueError: Caught ValueError in DataLoader worker process 0.\n"
             "Original Traceback (most recent call last):\n"
             "  File \"/usr/lib/python3/dist-packages/torch/utils/data/_utils/fetch.py\", line 58, "
             "in fetch\n"
             "  File \"/home/ada/dl.py\", line 5, in __getitem__\n"
             "ValueError: bad sample 0\n\n",
        "worker.2 raised ValueError: bad sample 0 (dl.py, line 5, in __getitem__)");
}

static void a_message_that_promises_a_second_line_is_told_with_it(void **unused) {
    (void)unused;
    assert_raised(HEAD "  File \"multi.py\", line 1, in <module>\n"
                       "RuntimeError: size mismatch:\n  got [3, 4]\n  want [4, 3]\n",
                  "worker.2 raised RuntimeError: size mismatch: got [3, 4] (multi.py, line 1)");
}

static void prefixes_of_logs_are_seen_through(void **unused) {
    static const char *const outputs[] = {
        "[rank2]: Traceback (most recent call last):\n"
        "[rank2]:   File \"train.py\", line 6, in <module>\n"
        "[rank2]:     main()\n"
        "[rank2]:   File \"train.py\", line 3, in step\n"
        "[rank2]: ValueError: shapes do not match\n",
        "2026-11-15 22:31:59,998 E Traceback (most recent call last):\n"
        "2026-11-15 22:31:59,999 E   File \"train.py\", line 6, in <module>\n"
        "2026-11-15 22:32:00,000 E   File \"train.py\", line 3, in step\n"
        "2026-11-15 22:32:00,1 E ValueError: shapes do not match\n",
        /* two ranks in one output: each keeps to its own lines */
        "worker 0: Traceback (most recent call last):\n"
        "worker 1: Traceback (most recent call last):\n"
        "worker 0:   File \"other.py\", line 9, in <module>\n"
        "worker 1:   File \"train.py\", line 3, in step\n"
        "worker 0: KeyError: 'x'\n"
        "worker 1: ValueError: shapes do not match\n",
        /* a progress bar that was not ended, in colour, drawn over itself */
        "\x1b[32mepoch 1:  10%|#    | 1/10\x1b[0m\repoch 1:  20%|##   | 2/10" HEAD
        "  File \"train.py\", line 3, in step\n"
        "\x1b[1;35mValueError\x1b[0m: shapes do not match\n",
        /* lines of another thread in between */
        HEAD "  File \"train.py\", line 6, in <module>\n    main()\n"
             "step 41 loss 0.25\nINFO: reading the next shard\n"
             "  File \"train.py\", line 3, in step\n"
             "ValueError: shapes do not match\n"
             "/usr/lib/python3.8/multiprocessing/resource_tracker.py:203: UserWarning: "
             "resource_tracker: There appear to be 1 leaked semaphore objects\n"
             "  warnings.warn('resource_tracker: There appear to be %d '\n",
        HEAD "  File \"train.py\", line 3, in step\n    main()\nINFO: reading the next shard\n"
             "ValueError: shapes do not match\n",
        /* cut at the front, in the middle of a frame */
        "ada/train.py\", line 6, in <module>\n    main()\n"
        "  File \"/home/ada/train.py\", line 3, in step\n"
        "ValueError: shapes do not match\n",
        "ValueError: old\r\n" HEAD "  File \"train.py\", line 3, in step\r\n"
        "ValueError: shapes do not match\r\n",
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(outputs); i++)
        assert_raised(outputs[i], plain_sentence);
}

static void a_traceback_long_before_the_end_is_not_the_reason(void **unused) {
    char output[4096];
    size_t n = strlen(plain_3_7);

    (void)unused;
    memcpy(output, plain_3_7, n);
    for (int i = 0; i < 300; i++) {
        memcpy(output + n, "step ok\n", 8);
        n += 8;
    }
    output[n] = '\0';
    assert_sentence(exit_with(3), output,
                    "worker.2 exited with code 3; the last line it wrote: step ok");
}

static void how_the_task_ended_is_added_where_it_is_not_pythons_own_way(void **unused) {
    char sentence[256];

    (void)unused;
    snprintf(sentence, sizeof sentence, "%s, then exited with code 2", plain_sentence);
    assert_sentence(exit_with(2), plain_3_9, sentence);
    snprintf(sentence, sizeof sentence, "%s, then was ended by signal 6 (SIGABRT)", plain_sentence);
    assert_sentence(signalled(SIGABRT), plain_3_9, sentence);
    assert_sentence(signalled(SIGKILL), plain_3_9, "worker.2 was ended by signal 9 (SIGKILL)");
}

/* --- native code, shells, the end alone --- */

static void a_cpp_exception_that_nobody_caught_is_named(void **unused) {
    const struct diagnosis why = diagnose_text(
        signalled(SIGABRT), "terminate called after throwing an instance of 'std::runtime_error'\n"
                            "  what():  shard 3 is empty\n");

    (void)unused;
    assert_string_equal(why.sentence,
                        "worker.2 aborted on a C++ exception that nobody caught: "
                        "std::runtime_error: shard 3 is empty, then was ended by signal 6 "
                        "(SIGABRT)");
    assert_int_equal(why.kind, DIAGNOSIS_ABORT);
    assert_int_equal(diagnose_text(signalled(SIGABRT), "terminate called after throwing an "
                                                       "instance of 'std::bad_alloc'\n"
                                                       "  what():  std::bad_alloc\n")
                         .kind,
                     DIAGNOSIS_OUT_OF_MEMORY);
}

static void an_assertion_of_c_is_placed(void **unused) {
    const struct diagnosis why = diagnose_text(
        signalled(SIGABRT), "a: src/a.cc:9: int step(int): Assertion `n > 0' failed.\n");

    (void)unused;
    assert_int_equal(why.kind, DIAGNOSIS_ASSERTION);
    assert_string_equal(why.place.file, "src/a.cc");
    assert_int_equal(why.place.line, 9);
    assert_string_equal(why.place.function, "int step(int)");
    assert_int_equal(diagnose_text(exit_with(1), HEAD "  File \"a.py\", line 1, in check\n"
                                                      "AssertionError: a is small\n")
                         .kind,
                     DIAGNOSIS_ASSERTION);
}

static void a_segmentation_fault_is_placed_where_faulthandler_says(void **unused) {
    static const char output[] =
        "Fatal Python error: Segmentation fault\n\n"
        "Current thread 0x00007f42f82a3b80 (most recent call first):\n"
        "  File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at\n"
        "  File \"/home/ada/seg.py\", line 5 in step\n"
        "  File \"/home/ada/seg.py\", line 8 in <module>\n";
    const struct diagnosis why = diagnose_text(signalled(SIGSEGV), output);
    char by_shell[512];

    (void)unused;
    assert_int_equal(why.kind, DIAGNOSIS_SEGMENTATION_FAULT);
    assert_string_equal(why.place.file, "/home/ada/seg.py");
    assert_int_equal(why.place.line, 5);
    assert_string_equal(why.hint, "");
    assert_non_null(strstr(why.sentence, "(seg.py, line 5, in step; raised in ctypes/__init__.py"));
    snprintf(by_shell, sizeof by_shell, "%sSegmentation fault\n", output);
    assert_int_equal(diagnose_text(exit_with(139), by_shell).place.line, 5);
    assert_string_equal(diagnose_text(exit_with(139), by_shell).hint, "");
    assert_string_equal(diagnose_text(signalled(SIGSEGV), "").sentence,
                        "worker.2 was ended by signal 11 (SIGSEGV): segmentation fault");
    assert_string_equal(diagnose_text(signalled(SIGSEGV), "").hint,
                        "PYTHONFAULTHANDLER=1 makes Python say where");
}

static void what_shells_say_of_a_program_is_understood(void **unused) {
    static const struct {
        int code;
        const char *line;
        enum diagnosis_kind kind;
    } rows[] = {
        { 127, "bash: line 1: no-such-cmd: command not found", DIAGNOSIS_NOT_FOUND },
        { 127, "sh: 1: no-such-cmd: not found", DIAGNOSIS_NOT_FOUND },
        { 127, "env: ‘no-such’: No such file or directory", DIAGNOSIS_NOT_FOUND },
        { 126, "bash: line 1: ./a.cc: Permission denied", DIAGNOSIS_NOT_EXECUTABLE },
        { 126, "bash: line 1: /tmp: Is a directory", DIAGNOSIS_NOT_EXECUTABLE },
        { 126, "bash: line 1: ./a: cannot execute binary file: Exec format error",
          DIAGNOSIS_NOT_EXECUTABLE },
        { 127, "bash: ./b.sh: cannot execute: required file not found", DIAGNOSIS_NO_INTERPRETER },
        { 126, "bash: ./b.sh: /bin/zsh: bad interpreter: No such file or directory",
          DIAGNOSIS_NO_INTERPRETER },
        { 2, "python3: can't open file '/home/ada/trian.py': [Errno 2] No such file or directory",
          DIAGNOSIS_NOT_FOUND },
        { 139, "Segmentation fault", DIAGNOSIS_SEGMENTATION_FAULT },
        { 1, "cat: x: No such file or directory", DIAGNOSIS_EXIT_CODE },
        { 1, "sh: 1: no-such-cmd: not found", DIAGNOSIS_EXIT_CODE },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(diagnose_text(exit_with(rows[i].code), rows[i].line).kind, rows[i].kind);
    assert_sentence(exit_with(127), "bash: line 1: trainer: command not found\n",
                    "worker.2 did not find a program: bash: line 1: trainer: command not found, "
                    "then exited with code 127");
}

static void a_task_of_which_only_the_end_is_known_is_told_by_its_end(void **unused) {
    (void)unused;
    assert_sentence(exit_with(3), "", "worker.2 exited with code 3 and wrote nothing");
    assert_sentence(exit_with(137), "bash: line 1: 21867 Killed   python3 train.py\n",
                    "worker.2 exited with code 137 (128 + the signal SIGKILL)");
    assert_sentence(signalled(SIGKILL), "epoch 1\n", "worker.2 was ended by signal 9 (SIGKILL)");
    assert_string_equal(
        diagnose_text(signalled(SIGKILL), "").hint,
        "if nobody killed it, the kernel may have, for lack of memory: dmesg tells");
    assert_sentence(signalled(64), "", "worker.2 was ended by signal 64");
    assert_sentence(exit_with(0), "done\n", "worker.2 exited with code 0");
    assert_false(diagnose_text(exit_with(0), "").failed);
}

static void a_task_that_was_not_started_says_what_failed(void **unused) {
    static const struct {
        int errnum;
        const char *message;
        enum diagnosis_kind kind;
    } rows[] = {
        { ENOENT, "'trainer' was not found in PATH", DIAGNOSIS_NOT_FOUND },
        { ENOENT, "'./a.sh' wants the interpreter /bin/zsh, which does not exist",
          DIAGNOSIS_NO_INTERPRETER },
        { ENOENT, "'./a' wants a dynamic loader that does not exist", DIAGNOSIS_NO_INTERPRETER },
        { EACCES, "'./a' is not executable (chmod +x)", DIAGNOSIS_NOT_EXECUTABLE },
        { ENOEXEC, "'./a' is neither a program", DIAGNOSIS_NOT_EXECUTABLE },
        { EAGAIN, "too many processes", DIAGNOSIS_NOT_STARTED },
        { EAGAIN, NULL, DIAGNOSIS_NOT_STARTED },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct task_end end = { TASK_NOT_STARTED, rows[i].errnum, rows[i].message };

        assert_int_equal(diagnose_text(end, "").kind, rows[i].kind);
    }
    assert_sentence((struct task_end){ TASK_NOT_STARTED, ENOENT, rows[0].message }, "",
                    "worker.2 could not be started: 'trainer' was not found in PATH");
    assert_sentence(
        (struct task_end){ TASK_NOT_STARTED, ENOENT, "cannot start worker.2: 'x' is no" }, "",
        "worker.2 could not be started: 'x' is no");
}

/* --- who broke first --- */

static void a_task_that_lost_its_peer_is_the_echo_of_the_one_that_broke(void **unused) {
    static const char lost_line[] =
        "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:1";
    const struct diagnosis broke = diagnose_text(exit_with(1), plain_3_9),
                           killed = diagnose_text(signalled(SIGKILL), ""),
                           silent = diagnose_text(exit_with(3), ""),
                           fine = diagnose_text(exit_with(0), ""),
                           refused = diagnose_text(exit_with(1), "Connection refused"),
                           lost = diagnose_text(exit_with(1), lost_line);

    (void)unused;
    assert_true(diagnosis_is_echo(&broke, &lost));
    assert_true(diagnosis_is_echo(&killed, &lost));
    assert_true(diagnosis_is_echo(&silent, &lost));
    assert_true(diagnosis_is_echo(&refused, &lost));
    assert_true(diagnosis_is_echo(&broke, &refused));
    assert_false(diagnosis_is_echo(&lost, &lost));
    assert_false(diagnosis_is_echo(&lost, &broke));
    assert_false(diagnosis_is_echo(&broke, &silent));
    assert_false(diagnosis_is_echo(&fine, &lost));
}

/* --- any input --- */

static void assert_harmless(const char *text, size_t size) {
    const size_t n = strnlen(text, size);

    assert_true(n < size);
    assert_int_equal(utf8_valid_prefix(text, n), n);
    for (size_t i = 0; i < n; i++)
        assert_true((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
}

static void the_texts_are_short_printable_and_whole_for_any_output(void **unused) {
    static char output[128 * 1024];
    const struct task_end end = exit_with(1);
    struct diagnosis why;

    (void)unused;
    for (int step = 0; step < 5; step++) { /* the cut falls on each byte of a character once */
        size_t n = (size_t)snprintf(output, sizeof output,
                                    HEAD "  File \"a\xf0\x9f\x94\xa5.py\", line 1, in f\n"
                                         "ValueError: %.*s",
                                    step, "aaaaa");

        while (n < 4096)
            n += (size_t)snprintf(output + n, sizeof output - n, "\xf0\x9f\x94\xa5\x1b[31m\a\xff");
        diagnose("worker.2", &end, output, n, OUTPUT_WHOLE, &why);
        assert_harmless(why.sentence, sizeof why.sentence);
        assert_harmless(why.place.file, sizeof why.place.file);
        assert_non_null(strstr(why.sentence, "…"));
        assert_non_null(strstr(why.sentence, ".py, line 1, in f)"));
    }
    memset(output, 0xff, sizeof output);
    diagnose("worker.2", &end, output, sizeof output, OUTPUT_WHOLE, &why);
    assert_harmless(why.sentence, sizeof why.sentence);
    memset(output, '\n', sizeof output);
    diagnose("worker.2", &end, output, sizeof output, OUTPUT_WHOLE, &why);
    assert_string_equal(why.sentence, "worker.2 exited with code 1 and wrote nothing");
    diagnose("worker.2", &end, NULL, 0, OUTPUT_WHOLE, &why);
    assert_string_equal(why.sentence, "worker.2 exited with code 1 and wrote nothing");
}

static void of_output_that_was_lost_it_is_not_said_that_there_was_none(void **unused) {
    const struct task_end end = exit_with(1);
    struct diagnosis why;

    (void)unused;
    diagnose("worker.2", &end, NULL, 0, OUTPUT_LOST, &why);
    assert_string_equal(why.sentence,
                        "worker.2 exited with code 1; nothing that it wrote could be kept");
    diagnose("worker.2", &end, "epoch 1\n", 8, OUTPUT_LOST, &why);
    assert_string_equal(why.sentence,
                        "worker.2 exited with code 1; the last line of it that was kept: epoch 1");
}

static void of_a_long_output_the_end_is_looked_at(void **unused) {
    static char output[2 * TRANSCRIPT_BYTES];
    const struct task_end end = exit_with(1);
    struct diagnosis why;

    (void)unused;
    memset(output, 'x', sizeof output);
    memcpy(output + sizeof output - sizeof plain_3_7, "\n", 1);
    memcpy(output + sizeof output - sizeof plain_3_7 + 1, plain_3_7, sizeof plain_3_7 - 1);
    diagnose("worker.2", &end, output, sizeof output, OUTPUT_WHOLE, &why);
    assert_string_equal(why.sentence, plain_sentence);
}

static void more_tracebacks_than_are_kept_leave_the_last(void **unused) {
    char output[64 * 1024];
    size_t n = 0;

    (void)unused;
    for (int i = 0; i < 3 * TRACEBACKS_MOST; i++)
        n += (size_t)snprintf(output + n, sizeof output - n,
                              "%s" HEAD "  File \"a.py\", line %d, in f\nRuntimeError: %d\n",
                              i ? CAUSED : "", i + 1, i);
    assert_sentence(exit_with(1), output,
                    "worker.2 raised RuntimeError: 47, caused by RuntimeError: 32 (a.py, line 33, "
                    "in f)");
}

/* --- limits --- */

static struct task_end limited(struct task_end end, enum task_limit_kind kind, int64_t limit) {
    end.limit = (struct task_limit){ .kind = kind, .limit = limit, .peak = limit };
    return end;
}

static void a_kill_for_the_memory_limit_is_told_from_other_kills(void **unused) {
    const struct task_end end = limited(signalled(SIGKILL), TASK_LIMIT_MEMORY, 256 << 20);
    const struct diagnosis why = diagnose_text(end, plain_3_7);

    (void)unused;
    assert_string_equal(why.sentence, "worker.2 was killed because it used more than its memory "
                                      "limit of 256 MiB (resources.memory.limits)");
    assert_int_equal(why.kind, DIAGNOSIS_OUT_OF_MEMORY);
    assert_int_equal(why.blame, BLAMES_NOBODY);
    assert_non_null(strstr(why.hint, "raise the limit"));
    assert_int_equal(diagnose_text(signalled(SIGKILL), "").kind, DIAGNOSIS_SIGNAL);
}

static void a_kill_for_others_memory_is_not_told_as_that_for_the_tasks_limit(void **unused) {
    struct task_end end = limited(signalled(SIGKILL), TASK_LIMIT_MEMORY, 0);
    struct diagnosis why;

    (void)unused;
    end.limit.scope = LIMIT_OUTSIDE;
    end.limit.peak = 59 << 20;
    why = diagnose_text(end, plain_3_7);
    assert_string_equal(why.sentence, "worker.2 was killed for lack of memory, though not at its "
                                      "own limit: it had at most 59 MiB");
    assert_int_equal(why.kind, DIAGNOSIS_OUT_OF_MEMORY);
    assert_null(strstr(why.hint, "raise the limit"));
    end.limit.peak = 0;
    assert_sentence(end, "", "worker.2 was killed for lack of memory, though not at its own limit");
}

static void a_kill_of_a_tasks_process_is_surer_than_what_the_task_wrote_of_it(void **unused) {
    (void)unused;
    assert_sentence(limited(exit_with(1), TASK_LIMIT_MEMORY, 1 << 20), plain_3_7,
                    "worker.2 exited with code 1 after a process of it was killed because it used "
                    "more than its memory limit of 1 MiB (resources.memory.limits)");
    assert_sentence(limited(signalled(SIGKILL), TASK_LIMIT_MEMORY, 4096), "",
                    "worker.2 was killed because it used more than its memory limit of less than 1 "
                    "MiB (resources.memory.limits)");
}

static void a_task_that_succeeded_is_not_blamed_for_a_limit(void **unused) {
    const struct diagnosis why =
        diagnose_text(limited(exit_with(0), TASK_LIMIT_MEMORY, 1 << 20), "");

    (void)unused;
    assert_false(why.failed);
    assert_string_equal(why.hint, "");
}

static void a_refused_process_is_a_hint_and_what_was_written_the_reason(void **unused) {
    const struct diagnosis why =
        diagnose_text(limited(exit_with(1), TASK_LIMIT_PROCESSES, 20), plain_3_7);

    (void)unused;
    assert_int_equal(why.kind, DIAGNOSIS_PYTHON_EXCEPTION);
    assert_non_null(strstr(why.hint, "as it had 20 of them; --max-processes"));
}

static void a_ceiling_that_tasks_share_is_told_as_the_runs(void **unused) {
    struct task_end end = limited(exit_with(1), TASK_LIMIT_PROCESSES, 16384);
    struct diagnosis why;

    (void)unused;
    end.limit.scope = LIMIT_OF_RUN;
    why = diagnose_text(end, plain_3_7);
    assert_string_equal(
        why.hint, "a task of the run was refused a process or thread, as all of them had 16384 "
                  "together; --max-processes gives each a ceiling of its own");
    end.kind = TASK_NOT_STARTED;
    end.message = "cannot start worker.9: cannot make a process";
    why = diagnose_text(end, "");
    assert_non_null(strstr(why.hint, "as all of them had 16384 together"));
}

static void the_program_that_is_missing_is_named(void **state) {
    static const struct {
        const char *line, *program;
    } rows[] = {
        { "bash: line 1: python: command not found", "python" },
        { "sh: 1: python: not found", "python" },
        { "/tmp/a b/train.sh: 3: pyhton3: not found", "pyhton3" },
        { "train.sh: line 12: mpirun: command not found", "mpirun" },
        { "/usr/bin/env: 'python': No such file or directory", "python" },
        { "env: \xe2\x80\x98python\xe2\x80\x99: No such file or directory", "python" },
        { "bash: line 1: ./python: No such file or directory", "" },
        { "sh: 1: /opt/x: not found", "" },
        { "python: can't open file 'train.py': [Errno 2] No such file or directory", "" },
    };
    const struct task_end not_started = { .kind = TASK_NOT_STARTED,
                                          .detail = ENOENT,
                                          .message = "cannot start worker.2: 'python' was not "
                                                     "found in PATH" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct diagnosis why = diagnose_text(exit_with(127), rows[i].line);

        assert_int_equal(why.kind, DIAGNOSIS_NOT_FOUND);
        assert_string_equal(why.program, rows[i].program);
    }
    assert_string_equal(diagnose_text(not_started, "").program, "python");
    assert_string_equal(diagnose_text(exit_with(1), "x: not found").program, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_uncaught_exception_is_named_with_its_place_in_every_python),
        cmocka_unit_test(the_place_is_in_the_users_code_and_the_librarys_is_told_beside_it),
        cmocka_unit_test(installed_packages_and_text_made_in_memory_are_not_the_users_code),
        cmocka_unit_test(of_a_chain_the_last_exception_counts),
        cmocka_unit_test(a_generic_exception_is_told_with_its_cause_and_the_causes_place),
        cmocka_unit_test(the_cause_of_a_chain_is_looked_for_behind_every_generic_link),
        cmocka_unit_test(an_exception_group_is_told_with_its_first_member),
        cmocka_unit_test(a_syntax_error_is_placed_where_the_text_is_wrong),
        cmocka_unit_test(a_missing_module_is_installed_only_if_its_package_is_known),
        cmocka_unit_test(an_interrupt_is_told_as_one_whatever_it_looks_like_outside),
        cmocka_unit_test(an_exit_with_a_message_shows_the_message),
        cmocka_unit_test(an_exception_of_a_thread_did_not_end_the_task),
        cmocka_unit_test(an_exception_of_a_child_process_is_told_as_the_childs),
        cmocka_unit_test(exceptions_that_python_ignored_are_not_the_reason),
        cmocka_unit_test(what_a_pool_raises_again_is_placed_in_its_worker),
        cmocka_unit_test(a_message_that_promises_a_second_line_is_told_with_it),
        cmocka_unit_test(prefixes_of_logs_are_seen_through),
        cmocka_unit_test(a_traceback_long_before_the_end_is_not_the_reason),
        cmocka_unit_test(how_the_task_ended_is_added_where_it_is_not_pythons_own_way),
        cmocka_unit_test(a_cpp_exception_that_nobody_caught_is_named),
        cmocka_unit_test(an_assertion_of_c_is_placed),
        cmocka_unit_test(a_segmentation_fault_is_placed_where_faulthandler_says),
        cmocka_unit_test(what_shells_say_of_a_program_is_understood),
        cmocka_unit_test(a_task_of_which_only_the_end_is_known_is_told_by_its_end),
        cmocka_unit_test(a_task_that_was_not_started_says_what_failed),
        cmocka_unit_test(a_task_that_lost_its_peer_is_the_echo_of_the_one_that_broke),
        cmocka_unit_test(the_texts_are_short_printable_and_whole_for_any_output),
        cmocka_unit_test(of_output_that_was_lost_it_is_not_said_that_there_was_none),
        cmocka_unit_test(of_a_long_output_the_end_is_looked_at),
        cmocka_unit_test(more_tracebacks_than_are_kept_leave_the_last),
        cmocka_unit_test(a_kill_for_the_memory_limit_is_told_from_other_kills),
        cmocka_unit_test(a_kill_for_others_memory_is_not_told_as_that_for_the_tasks_limit),
        cmocka_unit_test(a_kill_of_a_tasks_process_is_surer_than_what_the_task_wrote_of_it),
        cmocka_unit_test(a_task_that_succeeded_is_not_blamed_for_a_limit),
        cmocka_unit_test(a_refused_process_is_a_hint_and_what_was_written_the_reason),
        cmocka_unit_test(a_ceiling_that_tasks_share_is_told_as_the_runs),
        cmocka_unit_test(the_program_that_is_missing_is_named),
    };

    return cmocka_run_group_tests_name("diagnosis", tests, NULL, NULL);
}
