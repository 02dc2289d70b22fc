/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as the databases of a home, as if another member of its group had written them.
 * Beyond "no crash": what is refused says why, and what is read has the form that we write.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "search/index.h"
#include "store/models.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 18, BUSY_MS = 100 };

static void require(bool law) {
    if (!law)
        abort();
}

static void write_file(const char *home, const char *name, const uint8_t *data, size_t size) {
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof path, "%s/%s", home, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && file_write_all(fd, data, size) == 0);
    close(fd);
}

static void read_models(const char *home) {
    AUTO(arena) arena = ARENA_INIT;
    struct models *models = NULL;
    struct model_row *rows;
    struct error err = { .code = ERROR_NONE };
    size_t n;

    if (models_open(home, LEDGER_TO_LOOK, &models, &err) ||
        models_list(models, NULL, &arena, &rows, &n, &err)) {
        require(err.code != ERROR_NONE && err.message[0]);
    } else {
        for (size_t i = 0; i < n; i++)
            require(model_row_is_sound(&rows[i]) && rows[i].run >= 1 && rows[i].version >= 1);
    }
    models_close(models);
}

static void read_ledger(const char *home) {
    struct ledger_view view = { 0 };
    struct ledger *ledger = NULL;
    struct error err = { .code = ERROR_NONE };

    if (ledger_open(home, LEDGER_TO_LOOK, BUSY_MS, &ledger, &err) ||
        ledger_read(ledger, &view, &err))
        require(err.code != ERROR_NONE && err.message[0]);
    ledger_view_release(&view);
    ledger_close(ledger);
}

static void visit(void *context, uint64_t number, const char *text) {
    (void)context;
    require(number > 0 && text != NULL);
}

static void ignore(int status) {
    (void)status;
}

static void read_index(const char *home) {
    struct index_blocks blocks = { 0 };
    struct search_index *index;
    struct error err;
    uint32_t field;
    cell *cells;

    require(index_open(home, INDEX_IN_HOME, &index, &err) == 0); /* it is made again */
    ignore(index_each_word(index, visit, NULL, &err));
    ignore(index_each_field(index, visit, NULL, &err));
    if (index_field(index, "status", &field, &err) == 0 &&
        index_blocks(index, field, &blocks, &err) == 0) {
        cells = calloc(blocks.numbers.len * INDEX_BLOCK + 1, sizeof *cells);
        require(cells != NULL);
        ignore(index_column(index, field, &blocks, cells, &err));
        free(cells);
    }
    VEC_RELEASE(&blocks.numbers);
    index_free(index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char home[] = "/tmp/myelin-fuzz.XXXXXX", command[64];

    if (size > INPUT_MAX)
        return 0;
    require(mkdtemp(home) != NULL);
    write_file(home, "myelin.db", data, size);
    write_file(home, "index.db", data, size);
    read_ledger(home);
    read_models(home);
    read_index(home);
    snprintf(command, sizeof command, "rm -rf -- %s", home);
    require(system(command) == 0);
    return 0;
}
