/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes any bytes as the stream of a shim: in one piece, and in pieces. Beyond "no crash": how it
 * is cut changes nothing in what is told and listed, and nothing appears beside the directories
 * that are for it.
 */
#include <dirent.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/kubernetes/intake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIST_MOST = 1 << 20 };

struct told {
    uint64_t n, sum;
    int ended, done, status;
    char *list;
};

static void on_output(void *context, const char *bytes, size_t n, uint64_t at) {
    struct told *told = context;

    for (size_t i = 0; i < n; i++)
        told->sum = told->sum * 31 + (unsigned char)bytes[i];
    told->n += n;
    if (told->n != at)
        abort();
}

static void on_started(void *context) {
    (void)context;
}

static void on_ended(void *context, const struct shim_end *end) {
    ((struct told *)context)->ended += 1 + (int)end->kind;
}

static void on_done(void *context, uint64_t n_unread) {
    (void)n_unread;
    ((struct told *)context)->done++;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *place) {
    (void)st, (void)kind, (void)place;
    return remove(path);
}

/* The three that were made, and nothing else. */
static void check_nothing_beside(const char *root) {
    DIR *directory = opendir(root);
    const struct dirent *entry;
    int n = 0;

    while (directory && (entry = readdir(directory)))
        n += entry->d_name[0] != '.';
    if (directory)
        closedir(directory);
    if (n > 3)
        abort();
}

static struct told take(const char *bytes, size_t n, size_t piece) {
    char root[64] = "/dev/shm/myelin-fuzz.XXXXXX", logs[96], spool[96], outputs[96];
    struct told told = { 0 };
    struct intake intake;
    struct gather *gather;
    struct buf list = BUF_INIT(LIST_MOST);
    struct error err;

    if (!mkdtemp(root))
        abort();
    snprintf(logs, sizeof logs, "%s/logs", root);
    snprintf(spool, sizeof spool, "%s/spool", root);
    snprintf(outputs, sizeof outputs, "%s/outputs", root);
    if (mkdir(logs, 0777) || mkdir(outputs, 0777))
        abort();
    gather = gather_new(outputs, logs, 2);
    intake_init(&intake, &(struct intake_given){ "worker.0", spool, logs, gather, 1, 0 },
                &(struct intake_observer){ on_output, on_started, on_ended, on_done, &told });
    intake_begin(&intake);
    for (size_t i = 0; i < n && told.status == 0; i += piece)
        told.status = intake_feed(&intake, bytes + i, n - i < piece ? n - i : piece, &err);
    mirror_list(intake.mirror, MIRROR_ALL, &list);
    gather_list(gather, 1, &list);
    told.list = strdup(list.data);
    buf_release(&list);
    intake_release(&intake);
    gather_free(gather);
    mirror_free(mirror_new(spool, logs, "worker.0"));
    gather_free(gather_new(outputs, logs, 2));
    check_nothing_beside(root);
    if (nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS))
        abort();
    return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *bytes = (const char *)data;
    const struct told whole = take(bytes, size, size ? size : 1), parts = take(bytes, size, 13);

    if (whole.n != parts.n || whole.sum != parts.sum || whole.ended != parts.ended ||
        whole.done != parts.done || whole.status != parts.status ||
        strcmp(whole.list, parts.list) != 0)
        abort();
    free(whole.list);
    free(parts.list);
    return 0;
}
