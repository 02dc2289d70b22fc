/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diagnoses any end with any output. The first byte chooses how the task ended ('e'xited,
 * 's'ignalled, 'n'ot started), the second, counted from '0', with what; the rest is the output, or
 * the message. Beyond "no crash" it holds the laws of diagnosis.h: every text is whole, printable
 * and on one line, the sentence names the task, the same input gives the same diagnosis, and no
 * task is its own echo.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/utf8.h"
#include "supervise/diagnosis.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 128 * 1024 };

static const char task[] = "worker.2";

static void require(bool law) {
    if (!law)
        abort();
}

static void require_harmless(const char *text, size_t size) {
    const size_t n = strnlen(text, size);

    require(n < size);
    require(utf8_valid_prefix(text, n) == n);
    for (size_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)text[i];

        require(byte >= ' ' && byte != 0x7f);
        require(byte != 0xc2 || (unsigned char)text[i + 1] >= 0xa0); /* C1 controls */
    }
}

static void require_place(const struct diagnosis_place *place) {
    require_harmless(place->file, sizeof place->file);
    require_harmless(place->function, sizeof place->function);
    require(place->line > 0 || !place->file[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct task_end end = { .kind = TASK_EXITED };
    struct diagnosis why, again;
    char *text;

    if (size < 2 || size > INPUT_MAX)
        return 0;
    end.kind = data[0] == 's' ? TASK_SIGNALLED : data[0] == 'n' ? TASK_NOT_STARTED : TASK_EXITED;
    end.detail = (uint8_t)(data[1] - '0');
    /* exactly as large as the output, so that a sanitizer sees a read beyond it */
    text = malloc(size - 1);
    if (!text)
        abort();
    memcpy(text, data + 2, size - 2);
    text[size - 2] = '\0';
    if (end.kind == TASK_NOT_STARTED)
        end.message = text;
    else
        text = realloc(text, size - 2 ? size - 2 : 1);

    memset(&again, 0x55, sizeof again);
    diagnose(task, &end, text, size - 2, OUTPUT_WHOLE, &why);
    diagnose(task, &end, text, size - 2, OUTPUT_WHOLE, &again);
    free(text);
    require(why.kind < DIAGNOSIS_KIND_COUNT && diagnosis_kind_name(why.kind)[0]);
    require(strncmp(why.sentence, task, strlen(task)) == 0);
    require_harmless(why.sentence, sizeof why.sentence);
    require_harmless(why.hint, sizeof why.hint);
    require_place(&why.place);
    require_place(&why.raised);
    require(strcmp(why.sentence, again.sentence) == 0 && strcmp(why.hint, again.hint) == 0);
    require(why.kind == again.kind && why.blame == again.blame);
    require(why.failed == (end.kind != TASK_EXITED || end.detail != 0));
    require(!diagnosis_is_echo(&why, &again));
    return 0;
}
