/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/symptom.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"

/* clang-format off: a row a line is how a table is read. */
#define LOST      "lost the connection to a peer"
#define LOST_HINT "if the peer is a task of this run, look at the one that ended first"
#define ABSENT    "could not connect"
#define ABSENT_HINT                                                                                \
    "who should listen there had not started, had ended, or was slower than the time-out"
#define MEMORY     "ran out of memory"
#define GPU_MEMORY "ran out of GPU memory"
#define GPU_MEMORY_HINT                                                                            \
    "use a smaller batch or model, or a GPU that no other process uses (nvidia-smi shows who "     \
    "does)"
#define HEAP "broke its own heap"
#define HEAP_HINT                                                                                  \
    "a native library wrote where it may not: look at extensions and at mixed versions of "        \
    "libraries"

#define PEER_LOST(text, also)                                                                      \
    { DIAGNOSIS_PEER_LOST, BLAMES_LOST, text, also, LOST, LOST_HINT }
#define UNREACHABLE(text, also)                                                                    \
    { DIAGNOSIS_UNREACHABLE, BLAMES_ABSENT, text, also, ABSENT, ABSENT_HINT }
#define ROW(kind, text, also, phrase, hint)                                                        \
    { DIAGNOSIS_##kind, BLAMES_NOBODY, text, also, phrase, hint }

static const struct symptom symptoms[] = {
    UNREACHABLE("failed to connect to all addresses", NULL), /* gRPC calls it UNAVAILABLE too */

    /* a peer that went away: Gloo, sockets, NCCL, Horovod, gRPC (TensorFlow) */
    PEER_LOST("Connection closed by peer", NULL),
    PEER_LOST("Connection reset by peer", NULL),
    PEER_LOST("ConnectionResetError", NULL),
    PEER_LOST("BrokenPipeError", NULL),
    PEER_LOST("Broken pipe", NULL),
    PEER_LOST("remote process exited", NULL),
    PEER_LOST("ncclRemoteError", NULL),
    PEER_LOST("Horovod has been shut down", NULL),
    PEER_LOST("HorovodInternalError", NULL),
    PEER_LOST("Socket closed", NULL),
    PEER_LOST("UnavailableError", NULL),
    PEER_LOST("UNAVAILABLE:", NULL),
    PEER_LOST("StatusCode.UNAVAILABLE", NULL),
    PEER_LOST("Collective ops is aborted by", NULL),

    /* memory */
    ROW(OUT_OF_MEMORY, "CUDA out of memory", NULL, GPU_MEMORY, GPU_MEMORY_HINT),
    ROW(OUT_OF_MEMORY, "HIP out of memory", NULL, GPU_MEMORY, GPU_MEMORY_HINT),
    ROW(OUT_OF_MEMORY, "CUDA error: out of memory", NULL, GPU_MEMORY, GPU_MEMORY_HINT),
    ROW(OUT_OF_MEMORY, "cudaMalloc", "out of memory", GPU_MEMORY, GPU_MEMORY_HINT),
    ROW(OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", NULL, GPU_MEMORY, GPU_MEMORY_HINT),
    ROW(OUT_OF_MEMORY, "CUBLAS_STATUS_ALLOC_FAILED", NULL, GPU_MEMORY, GPU_MEMORY_HINT),
    ROW(OUT_OF_MEMORY, "OOM when allocating", NULL, MEMORY, "use a smaller batch or model"),
    ROW(OUT_OF_MEMORY, "MemoryError", NULL, MEMORY,
        "use less memory in the task, or fewer tasks on this machine"),
    ROW(OUT_OF_MEMORY, "std::bad_alloc", NULL, MEMORY,
        "use less memory in the task, or fewer tasks on this machine"),
    ROW(OUT_OF_MEMORY, "can't allocate memory", NULL, MEMORY,
        "use less memory in the task, or fewer tasks on this machine"),
    ROW(OUT_OF_MEMORY, "Cannot allocate memory", NULL, MEMORY,
        "use less memory in the task, or fewer tasks on this machine"),
    ROW(OUT_OF_MEMORY, "Out of memory: Kill", NULL, MEMORY,
        "use less memory in the task, or fewer tasks on this machine"),
    ROW(OUT_OF_MEMORY, "killed by signal: Killed", NULL,
        "lost a data loader, probably for lack of memory",
        "use fewer or smaller data loader workers; dmesg tells whether the kernel killed it"),
    ROW(OUT_OF_MEMORY, "insufficient shared memory", NULL, "ran out of shared memory",
        "make /dev/shm larger, or use fewer data loader workers"),

    ROW(DISK_FULL, "No space left on device", NULL, "found no space left on its disk",
        "df -h shows which file system is full; df -i, whether its inodes are"),
    ROW(DISK_FULL, "Disk quota exceeded", NULL, "used up its disk quota",
        "quota -s shows the limit"),

    ROW(ADDRESS_IN_USE, "Address already in use", NULL, "found its address in use",
        "another process listens there: ss -ltnp shows which"),
    ROW(ADDRESS_IN_USE, "EADDRINUSE", NULL, "found its address in use",
        "another process listens there: ss -ltnp shows which"),

    /* a peer that was not there */
    UNREACHABLE("Connection refused", NULL),
    UNREACHABLE("Connection timed out", NULL),
    UNREACHABLE("client socket has timed out", NULL),
    UNREACHABLE("waiting for clients", NULL),
    UNREACHABLE("DistStoreError", NULL),
    UNREACHABLE("Socket Timeout", NULL),
    UNREACHABLE("Wait timeout", NULL),
    UNREACHABLE("Timeout waiting for key", NULL),
    UNREACHABLE("Connect timeout", NULL),
    UNREACHABLE("connectFullMesh failed", NULL),
    UNREACHABLE("DeadlineExceededError", NULL),
    UNREACHABLE("No route to host", NULL),
    UNREACHABLE("Name or service not known", NULL),
    UNREACHABLE("Temporary failure in name resolution", NULL),

    /* other failures of collective operations: a rank that hangs makes the others time out */
    { DIAGNOSIS_COLLECTIVE, BLAMES_ABSENT, "collective operation timeout", NULL,
      "waited too long in a collective operation",
      "some rank did not take part: look at what each rank did last" },
    { DIAGNOSIS_COLLECTIVE, BLAMES_ABSENT, "Timed out waiting", "gloo",
      "waited too long in a collective operation",
      "some rank did not take part: look at what each rank did last" },
    ROW(COLLECTIVE, "ncclInvalidUsage", NULL, "used NCCL wrongly",
        "two ranks on one GPU are the usual reason"),
    ROW(COLLECTIVE, "NCCL error", NULL, "failed in NCCL", "NCCL_DEBUG=INFO makes NCCL say more"),
    ROW(COLLECTIVE, "ncclSystemError", NULL, "failed in NCCL",
        "NCCL_DEBUG=INFO makes NCCL say more"),
    ROW(COLLECTIVE, "ncclUnhandledCudaError", NULL, "failed in NCCL",
        "NCCL_DEBUG=INFO makes NCCL say more"),
    ROW(COLLECTIVE, "ncclInternalError", NULL, "failed in NCCL",
        "NCCL_DEBUG=INFO makes NCCL say more"),
    ROW(COLLECTIVE, "gloo/transport", NULL, "failed in Gloo", NULL),

    ROW(GPU, "device-side assert triggered", NULL, "failed on its GPU",
        "an index is out of range, often a label: CUDA_LAUNCH_BLOCKING=1 shows the line"),
    ROW(GPU, "illegal memory access", NULL, "failed on its GPU",
        "CUDA_LAUNCH_BLOCKING=1 shows the line"),
    ROW(GPU, "no kernel image is available", NULL, "has a library that was not built for its GPU",
        "install a build for this GPU's compute capability"),
    ROW(GPU, "Found no NVIDIA driver", NULL, "found no GPU driver",
        "nvidia-smi shows whether the driver works"),
    ROW(GPU, "No CUDA GPUs are available", NULL, "found no GPU",
        "CUDA_VISIBLE_DEVICES and nvidia-smi show what the task may use"),
    ROW(GPU, "no CUDA-capable device is detected", NULL, "found no GPU",
        "CUDA_VISIBLE_DEVICES and nvidia-smi show what the task may use"),
    ROW(GPU, "invalid device ordinal", NULL, "asked for a GPU that it does not have",
        "each task sees its own GPUs, counted from 0: use LOCAL_RANK, not RANK"),
    ROW(GPU, "CUDA driver version is insufficient", NULL,
        "has a CUDA that is newer than its driver",
        "update the driver, or install a build for the older CUDA"),
    ROW(GPU, "CUDA error", NULL, "failed on its GPU", NULL),

    /* what shells, env and interpreters say of a program */
    ROW(NO_LIBRARY, "cannot open shared object file", NULL, "lacks a shared library",
        "install the package that holds it, or set LD_LIBRARY_PATH"),
    ROW(NO_INTERPRETER, "bad interpreter", NULL, "lacks the interpreter of a script",
        "mend the first line (#!) of the script"),
    ROW(NO_INTERPRETER, "cannot execute: required file not found", NULL,
        "lacks the interpreter of a script",
        "mend the first line (#!) of the script; CR LF line ends break it too"),
    ROW(NOT_FOUND, "can't open file '", NULL, "did not find its script",
        "paths are relative to where `myelin run` was started"),
    ROW(NOT_FOUND, ": command not found", NULL, "did not find a program",
        "install it, or add its directory to PATH"),
    { DIAGNOSIS_NOT_FOUND, BLAMES_NOBODY, ": not found", NULL, "did not find a program",
      "install it, or add its directory to PATH", 127 },
    { DIAGNOSIS_NOT_FOUND, BLAMES_NOBODY, ": No such file or directory", NULL,
      "did not find a program", "install it, or add its directory to PATH", 127 },
    { DIAGNOSIS_NOT_EXECUTABLE, BLAMES_NOBODY, ": Permission denied", NULL,
      "may not execute a file", "chmod +x makes a script executable", 126 },
    { DIAGNOSIS_NOT_EXECUTABLE, BLAMES_NOBODY, "cannot execute binary file", NULL,
      "cannot execute a file", "it was built for another kind of machine", 126 },
    { DIAGNOSIS_NOT_EXECUTABLE, BLAMES_NOBODY, ": Is a directory", NULL,
      "cannot execute a directory", NULL, 126 },
    ROW(PYTHON_MODULE, ": No module named ", NULL, "lacks a Python module", NULL),
    ROW(USAGE, ": error: unrecognized arguments", NULL, "refused its arguments", NULL),
    ROW(USAGE, ": error: the following arguments are required", NULL, "refused its arguments",
        NULL),
    ROW(USAGE, ": error: argument ", NULL, "refused its arguments", NULL),

    /* native code that gives up */
    ROW(ABORT, "stack smashing detected", NULL, HEAP, HEAP_HINT),
    ROW(ABORT, "double free or corruption", NULL, HEAP, HEAP_HINT),
    ROW(ABORT, "free(): ", NULL, HEAP, HEAP_HINT),
    ROW(ABORT, "malloc(): ", NULL, HEAP, HEAP_HINT),
    ROW(ABORT, "corrupted size vs. prev_size", NULL, HEAP, HEAP_HINT),
    ROW(ASSERTION, ": Assertion `", "failed", "failed an assertion", NULL),
    ROW(ASSERTION, "Check failed: ", NULL, "failed a check", NULL),
    ROW(ABORT, "terminate called after throwing", NULL,
        "aborted on a C++ exception that nobody caught", NULL),
    ROW(ABORT, "terminating due to uncaught exception", NULL,
        "aborted on a C++ exception that nobody caught", NULL),
    ROW(ABORT, "terminate called without an active exception", NULL, "aborted",
        "a C++ thread was still running when its object was destroyed"),
    ROW(ABORT, "' panicked at ", NULL, "aborted in Rust code", NULL),
    ROW(SEGMENTATION_FAULT, "Fatal Python error: Segmentation fault", NULL,
        "had a segmentation fault", NULL),
    ROW(SEGMENTATION_FAULT, "Segmentation fault", NULL, "had a segmentation fault",
        "PYTHONFAULTHANDLER=1 makes Python say where"),
};
/* clang-format on */

const struct symptom *symptom_at(size_t i) {
    return i < ARRAY_LEN(symptoms) ? &symptoms[i] : NULL;
}

const struct symptom *symptom_find(struct slice line, int code) {
    for (size_t i = 0; i < ARRAY_LEN(symptoms); i++)
        if ((!symptoms[i].code || symptoms[i].code == code) && slice_has(line, symptoms[i].text) &&
            (!symptoms[i].also || slice_has(line, symptoms[i].also)))
            return &symptoms[i];
    return NULL;
}

/* Modules whose package bears another name, and packages that everybody means by their name. */
static const struct {
    const char *module, *package;
} packages[] = {
    { "PIL", "pillow" },
    { "cv2", "opencv-python" },
    { "sklearn", "scikit-learn" },
    { "skimage", "scikit-image" },
    { "yaml", "pyyaml" },
    { "datasets", "datasets" },
    { "h5py", "h5py" },
    { "horovod", "horovod" },
    { "matplotlib", "matplotlib" },
    { "mxnet", "mxnet" },
    { "numpy", "numpy" },
    { "pandas", "pandas" },
    { "requests", "requests" },
    { "scipy", "scipy" },
    { "tensorboard", "tensorboard" },
    { "tensorboardX", "tensorboardX" },
    { "tensorflow", "tensorflow" },
    { "torch", "torch" },
    { "torchvision", "torchvision" },
    { "tqdm", "tqdm" },
    { "transformers", "transformers" },
};

static bool is_module_byte(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.';
}

static struct slice module_of(struct slice line) {
    static const char mark[] = "No module named ";
    const ptrdiff_t at = slice_find(line, mark);
    struct slice name = { 0 };
    size_t n = 0;

    if (at == SLICE_NOWHERE)
        return name;
    name = slice_skip(line, (size_t)at + strlen(mark));
    name = slice_skip(name, slice_starts(name, "'"));
    while (n < name.n && is_module_byte(name.text[n]))
        n++;
    return slice_head(name, n);
}

/* A name that nobody knows may be the user's own file: to install a stranger's package of that name
 * would be bad advice. */
static void module_hint(struct slice name, char *out, size_t size) {
    out[0] = '\0';
    if (name.n == 0 || name.n > 64)
        return;
    for (size_t i = 0; i < ARRAY_LEN(packages); i++)
        if (slice_is(name, packages[i].module)) {
            snprintf(out, size, "install it: pip install %s", packages[i].package);
            return;
        }
    if (slice_has(name, "."))
        snprintf(out, size,
                 "the package is there without this part of it: is it the version that the code "
                 "wants?");
    else
        snprintf(out, size,
                 "install its package with pip; or, if %.*s is your own, start where it lies or "
                 "set PYTHONPATH",
                 (int)name.n, name.text);
}

void symptom_hint(const struct symptom *symptom, struct slice line, char *out, size_t size) {
    if (symptom->kind == DIAGNOSIS_PYTHON_MODULE)
        module_hint(module_of(line), out, size);
    else
        snprintf(out, size, "%s", symptom->hint ? symptom->hint : "");
}
