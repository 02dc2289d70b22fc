/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any JSON as a pod. Beyond "no crash": it stands somewhere, it has an end exactly when it
 * ended, whatever is wrong has a sentence, and a pod that vanishes has ended.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/pod.h"
#include "codec/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool law) {
    if (!law)
        abort();
}

static void look(const struct node *root, const char *container) {
    struct pod pod;

    pod_read(root, container, &pod);
    require(pod.phase < POD_PHASE_COUNT && pod.trouble < POD_TROUBLE_COUNT &&
            pod.end < POD_END_COUNT);
    require((pod.phase == POD_ENDED) == (pod.end != POD_NOT_ENDED));
    require(pod.trouble == POD_FINE || pod.sentence[0]);
    require(pod.end == POD_NOT_ENDED || pod.sentence[0] || pod.end == POD_EXITED);
    require(pod.end != POD_SIGNALLED || (pod.detail > 0 && pod.detail <= 64));
    require(pod.memory_limit >= 0 && pod.name && pod.uid && pod.node);
    require(memchr(pod.sentence, '\0', sizeof pod.sentence));
    pod_vanished(&pod);
    require(pod.phase == POD_ENDED && pod.end != POD_NOT_ENDED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena arena = ARENA_INIT;
    struct error err;
    struct node root;

    if (size <= 1 << 16 && json_read((const char *)data, size, &arena, &root, &err) == 0) {
        look(&root, NULL);
        look(&root, "tensorflow");
    }
    arena_release(&arena);
    return 0;
}
