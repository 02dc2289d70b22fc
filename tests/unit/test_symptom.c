/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/attr.h"
#include "supervise/diagnosis.h"
#include "supervise/symptom.h"

static struct diagnosis diagnose_line(int code, const char *output) {
    const struct task_end end = { .kind = TASK_EXITED, .detail = code };
    struct diagnosis why;

    diagnose("worker.2", &end, output, strlen(output), OUTPUT_WHOLE, &why);
    return why;
}

/* One line for each row of the table, as programs print it. */
static const struct {
    const char *line;
    enum diagnosis_kind kind;
    int code;
} symptom_lines[] = {
    { "grpc: failed to connect to all addresses; last error: UNKNOWN", DIAGNOSIS_UNREACHABLE },
    { "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer "
      "[127.0.0.1]:36009",
      DIAGNOSIS_PEER_LOST },
    { "RuntimeError: [./gloo/transport/tcp/pair.cc:589] Read error [127.0.0.1]:1: Connection reset "
      "by peer",
      DIAGNOSIS_PEER_LOST },
    { "ConnectionResetError: [Errno 104]", DIAGNOSIS_PEER_LOST },
    { "BrokenPipeError: [Errno 32]", DIAGNOSIS_PEER_LOST },
    { "write: Broken pipe", DIAGNOSIS_PEER_LOST },
    { "RuntimeError: NCCL error in: ../ProcessGroupNCCL.cpp:1269, remote process exited or there "
      "was "
      "a network error, NCCL version 2.14.3",
      DIAGNOSIS_PEER_LOST },
    { "ncclRemoteError: A call failed possibly due to a network error", DIAGNOSIS_PEER_LOST },
    { "RuntimeError: Horovod has been shut down. This was caused by an exception on one of the "
      "ranks",
      DIAGNOSIS_PEER_LOST },
    { "horovod.common.exceptions.HorovodInternalError: unexpected end", DIAGNOSIS_PEER_LOST },
    { "{\"grpc_message\":\"Socket closed\",\"grpc_status\":14}", DIAGNOSIS_PEER_LOST },
    { "tensorflow.python.framework.errors_impl.UnavailableError: peer", DIAGNOSIS_PEER_LOST },
    { "W1: UNAVAILABLE: Connection was dropped", DIAGNOSIS_PEER_LOST },
    { "grpc.RpcError: StatusCode.UNAVAILABLE", DIAGNOSIS_PEER_LOST },
    { "Collective ops is aborted by: peer is down", DIAGNOSIS_PEER_LOST },
    { "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", DIAGNOSIS_OUT_OF_MEMORY },
    { "torch.OutOfMemoryError: HIP out of memory. Tried", DIAGNOSIS_OUT_OF_MEMORY },
    { "RuntimeError: CUDA error: out of memory", DIAGNOSIS_OUT_OF_MEMORY },
    { "mxnet.base.MXNetError: cudaMalloc retry failed: out of memory", DIAGNOSIS_OUT_OF_MEMORY },
    { "failed to allocate 2G: CUDA_ERROR_OUT_OF_MEMORY", DIAGNOSIS_OUT_OF_MEMORY },
    { "RuntimeError: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate",
      DIAGNOSIS_OUT_OF_MEMORY },
    { "ResourceExhaustedError: OOM when allocating tensor with shape[8,8]",
      DIAGNOSIS_OUT_OF_MEMORY },
    { "MemoryError", DIAGNOSIS_OUT_OF_MEMORY },
    { "  what():  std::bad_alloc", DIAGNOSIS_OUT_OF_MEMORY },
    { "RuntimeError: DefaultCPUAllocator: can't allocate memory", DIAGNOSIS_OUT_OF_MEMORY },
    { "OSError: [Errno 12] Cannot allocate memory", DIAGNOSIS_OUT_OF_MEMORY },
    { "Out of memory: Killed process 12 (python3)", DIAGNOSIS_OUT_OF_MEMORY },
    { "RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed.",
      DIAGNOSIS_OUT_OF_MEMORY },
    { "It is possible that dataloader's workers hit insufficient shared memory (shm)",
      DIAGNOSIS_OUT_OF_MEMORY },
    { "/usr/bin/printf: write error: No space left on device", DIAGNOSIS_DISK_FULL },
    { "OSError: [Errno 122] Disk quota exceeded", DIAGNOSIS_DISK_FULL },
    { "OSError: [Errno 98] Address already in use", DIAGNOSIS_ADDRESS_IN_USE },
    { "Error: listen EADDRINUSE: :::8080", DIAGNOSIS_ADDRESS_IN_USE },
    { "ConnectionRefusedError: [Errno 111] Connection refused", DIAGNOSIS_UNREACHABLE },
    { "TimeoutError: [Errno 110] Connection timed out", DIAGNOSIS_UNREACHABLE },
    { "TimeoutError: The client socket has timed out after 60s while trying to connect",
      DIAGNOSIS_UNREACHABLE },
    { "RuntimeError: Timed out after 61 seconds waiting for clients. 1/3 clients joined.",
      DIAGNOSIS_UNREACHABLE },
    { "torch.distributed.DistStoreError: 2/3 joined", DIAGNOSIS_UNREACHABLE },
    { "RuntimeError: Socket Timeout", DIAGNOSIS_UNREACHABLE },
    { "RuntimeError: Wait timeout", DIAGNOSIS_UNREACHABLE },
    { "RuntimeError: Timeout waiting for key: default_pg/0/1", DIAGNOSIS_UNREACHABLE },
    { "RuntimeError: [./gloo/transport/tcp/pair.cc:211] Connect timeout [127.0.0.1]:1",
      DIAGNOSIS_UNREACHABLE },
    { "RuntimeError: Gloo connectFullMesh failed with [enforce fail]", DIAGNOSIS_UNREACHABLE },
    { "DeadlineExceededError: Deadline Exceeded", DIAGNOSIS_UNREACHABLE },
    { "OSError: [Errno 113] No route to host", DIAGNOSIS_UNREACHABLE },
    { "socket.gaierror: [Errno -2] Name or service not known", DIAGNOSIS_UNREACHABLE },
    { "socket.gaierror: [Errno -3] Temporary failure in name resolution", DIAGNOSIS_UNREACHABLE },
    { "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)",
      DIAGNOSIS_COLLECTIVE },
    { "RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 1800000ms for "
      "recv operation to complete",
      DIAGNOSIS_COLLECTIVE },
    { "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
      DIAGNOSIS_COLLECTIVE },
    { "RuntimeError: NCCL error in: ../torch/lib/c10d/ProcessGroupNCCL.cpp:784",
      DIAGNOSIS_COLLECTIVE },
    { "ncclSystemError: System call failed", DIAGNOSIS_COLLECTIVE },
    { "ncclUnhandledCudaError: Call to CUDA function failed.", DIAGNOSIS_COLLECTIVE },
    { "ncclInternalError: Internal check failed.", DIAGNOSIS_COLLECTIVE },
    { "RuntimeError: [./gloo/transport/tcp/device.cc:83] rv != -1", DIAGNOSIS_COLLECTIVE },
    { "RuntimeError: CUDA error: device-side assert triggered", DIAGNOSIS_GPU },
    { "RuntimeError: CUDA error: an illegal memory access was encountered", DIAGNOSIS_GPU },
    { "CUDA error: no kernel image is available for execution on the device", DIAGNOSIS_GPU },
    { "RuntimeError: Found no NVIDIA driver on your system.", DIAGNOSIS_GPU },
    { "RuntimeError: No CUDA GPUs are available", DIAGNOSIS_GPU },
    { "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", DIAGNOSIS_GPU },
    { "RuntimeError: CUDA error: invalid device ordinal", DIAGNOSIS_GPU },
    { "CUDA driver version is insufficient for CUDA runtime version", DIAGNOSIS_GPU },
    { "RuntimeError: CUDA error: unspecified launch failure", DIAGNOSIS_GPU },
    { "./a: error while loading shared libraries: libcudart.so.11.0: cannot open shared object "
      "file: No such file or directory",
      DIAGNOSIS_NO_LIBRARY },
    { "bash: ./b.sh: /bin/zsh: bad interpreter: No such file", DIAGNOSIS_NO_INTERPRETER },
    { "bash: ./b.sh: cannot execute: required file not found", DIAGNOSIS_NO_INTERPRETER },
    { "python3: can't open file 'x.py': [Errno 2] No such file or directory", DIAGNOSIS_NOT_FOUND },
    { "bash: line 1: no-such-cmd: command not found", DIAGNOSIS_NOT_FOUND },
    { "sh: 1: no-such-cmd: not found", DIAGNOSIS_NOT_FOUND, 127 },
    { "env: ‘no-such’: No such file or directory", DIAGNOSIS_NOT_FOUND, 127 },
    { "sh: 1: ./a: Permission denied", DIAGNOSIS_NOT_EXECUTABLE, 126 },
    { "bash: ./a: cannot execute binary file: Exec format error", DIAGNOSIS_NOT_EXECUTABLE, 126 },
    { "bash: line 1: /tmp: Is a directory", DIAGNOSIS_NOT_EXECUTABLE, 126 },
    { "/usr/bin/python3: No module named nomod", DIAGNOSIS_PYTHON_MODULE },
    { "train.py: error: unrecognized arguments: --lrr", DIAGNOSIS_USAGE },
    { "train.py: error: the following arguments are required: --lr", DIAGNOSIS_USAGE },
    { "train.py: error: argument --lr: invalid float value: 'x'", DIAGNOSIS_USAGE },
    { "*** stack smashing detected ***: terminated", DIAGNOSIS_ABORT },
    { "double free or corruption (!prev)", DIAGNOSIS_ABORT },
    { "free(): double free detected in tcache 2", DIAGNOSIS_ABORT },
    { "malloc(): invalid size (unsorted)", DIAGNOSIS_ABORT },
    { "corrupted size vs. prev_size", DIAGNOSIS_ABORT },
    { "a: a.cc:9: int step(int): Assertion `n > 0' failed.", DIAGNOSIS_ASSERTION },
    { "F1115 12:00:00.000000 123 a.cc:88] Check failed: x == y (1 vs. 2)", DIAGNOSIS_ASSERTION },
    { "terminate called after throwing an instance of 'c10::Error'", DIAGNOSIS_ABORT },
    { "libc++abi: terminating due to uncaught exception of type std::runtime_error: x",
      DIAGNOSIS_ABORT },
    { "terminate called without an active exception", DIAGNOSIS_ABORT },
    { "thread '<unnamed>' panicked at src/lib.rs:4:5:", DIAGNOSIS_ABORT },
    { "Fatal Python error: Segmentation fault", DIAGNOSIS_SEGMENTATION_FAULT },
    { "Segmentation fault (core dumped)", DIAGNOSIS_SEGMENTATION_FAULT },
};

static void every_row_of_the_table_is_found_by_a_line_of_its_own(void **unused) {
    const struct symptom *row;

    (void)unused;
    for (size_t i = 0; (row = symptom_at(i)); i++) {
        size_t line = 0;

        while (line < ARRAY_LEN(symptom_lines) &&
               symptom_find(slice_of(symptom_lines[line].line), symptom_lines[line].code) != row)
            line++;
        if (line == ARRAY_LEN(symptom_lines))
            fail_msg("no line finds the row '%s'", row->text);
        assert_int_equal(symptom_lines[line].kind, row->kind);
    }
}

static void every_known_line_gives_its_kind(void **unused) {
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(symptom_lines); i++) {
        const int code = symptom_lines[i].code ? symptom_lines[i].code : 1;
        const struct diagnosis why = diagnose_line(code, symptom_lines[i].line);

        if (why.kind != symptom_lines[i].kind)
            fail_msg("%s: %s", symptom_lines[i].line, diagnosis_kind_name(why.kind));
    }
}

static void a_known_line_is_told_with_the_phrase_the_words_and_the_end(void **unused) {
    (void)unused;
    assert_string_equal(
        diagnose_line(1, "/usr/bin/printf: write error: No space left on device\n").sentence,
        "worker.2 found no space left on its disk: /usr/bin/printf: write error: No "
        "space left on device, then exited with code 1");
}

static void warnings_of_attempts_that_are_made_again_are_not_the_reason(void **unused) {
    (void)unused;
    assert_string_equal(
        diagnose_line(3, "[W socket.cpp:601] [c10d] The client socket has failed to connect to "
                         "[localhost]:29500 (errno: 111 - Connection refused).\nbye\n")
            .sentence,
        "worker.2 exited with code 3; the last line it wrote: bye");
}

static void an_echo_is_never_mutual_and_only_of_those_who_blame(void **unused) {
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(symptom_lines); i++)
        for (size_t j = 0; j < ARRAY_LEN(symptom_lines); j++) {
            const struct diagnosis a = diagnose_line(1, symptom_lines[i].line);
            const struct diagnosis b = diagnose_line(1, symptom_lines[j].line);

            assert_false(diagnosis_is_echo(&a, &b) && diagnosis_is_echo(&b, &a));
            if (b.blame == BLAMES_NOBODY)
                assert_false(diagnosis_is_echo(&a, &b));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table_is_found_by_a_line_of_its_own),
        cmocka_unit_test(every_known_line_gives_its_kind),
        cmocka_unit_test(a_known_line_is_told_with_the_phrase_the_words_and_the_end),
        cmocka_unit_test(warnings_of_attempts_that_are_made_again_are_not_the_reason),
        cmocka_unit_test(an_echo_is_never_mutual_and_only_of_those_who_blame),
    };

    return cmocka_run_group_tests_name("symptom", tests, NULL, NULL);
}
