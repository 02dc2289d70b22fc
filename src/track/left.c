/* SPDX-License-Identifier: Apache-2.0 */
#include "track/left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

bool left_count(int directory, const char *name, uint64_t *out) {
    char text[24];
    const ssize_t n = readlinkat(directory, name, text, sizeof text - 1);
    char *end;

    if (n <= 0)
        return false;
    text[n] = '\0';
    if (strspn(text, "0123456789") != (size_t)n)
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0;
}

/* A chain of the folder that is looked at, and the most that it says it has dropped. */
struct left_chain {
    char *name;
    uint64_t dropped;
};
struct left_chains {
    VEC(struct left_chain) list;
};

static void note_dropped(struct left_chains *chains, const char *name, size_t n, uint64_t dropped) {
    struct left_chain *chain = NULL;

    for (size_t i = 0; i < chains->list.len && !chain; i++)
        if (strlen(chains->list.items[i].name) == n && !memcmp(chains->list.items[i].name, name, n))
            chain = &chains->list.items[i];
    if (!chain) {
        chain = VEC_PUSH(&chains->list);
        *chain = (struct left_chain){ .name = strndup(name, n) };
        if (!chain->name)
            abort();
    }
    chain->dropped = dropped > chain->dropped ? dropped : chain->dropped;
}

static void look_at_segment(int folder, const char *name, size_t chain_n,
                            struct left_chains *chains, struct fold_left *out) {
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct myelin_spool_header header = { 0 };
    struct spool_reader reader;
    struct stat st;
    ssize_t got = -1;

    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
        got = pread(fd, &header, sizeof header, 0);
    if (fd >= 0)
        close(fd);
    switch (got < 0 ? SPOOL_HEAD_BAD : spool_begin(&reader, &header, (size_t)got)) {
    case SPOOL_HEAD_GOOD: note_dropped(chains, name, chain_n, header.dropped); /* fall through */
    case SPOOL_HEAD_NOTHING: out->segments++; break;
    case SPOOL_HEAD_BAD: out->damaged++; break;
    case SPOOL_HEAD_OTHER:
        out->others++;
        out->version = header.version;
        break;
    }
}

static bool is_set_aside(const char *name) {
    const size_t n = strlen(name), end = strlen(FOLD_ASIDE);

    return n > end && strcmp(name + n - end, FOLD_ASIDE) == 0;
}

static void look_into(int folder, struct left_chains *chains, struct fold_left *out) {
    DIR *directory = fdopendir(folder);
    const struct dirent *entry;
    struct spool_file file;

    if (!directory) {
        close(folder);
        return;
    }
    while ((entry = readdir(directory)))
        if (spool_file_parse(entry->d_name, &file))
            look_at_segment(folder, entry->d_name, file.chain_n, chains, out);
        else if (is_set_aside(entry->d_name))
            out->damaged++;
    closedir(directory);
}

void fold_look(const char *directory, struct fold_left *out) {
    const int root = file_open_linkless_directory(directory);
    DIR *entries = root >= 0 ? fdopendir(root) : NULL;
    struct left_chains chains = { 0 };
    const struct dirent *entry;
    struct spool_count count;
    uint64_t dropped;

    *out = (struct fold_left){ 0 };
    while (entries && (entry = readdir(entries))) {
        int folder;

        if (entry->d_name[0] == '.')
            continue;
        if (spool_count_parse(entry->d_name, &count)) {
            if (left_count(root, entry->d_name, &dropped))
                note_dropped(&chains, count.chain, count.chain_n, dropped);
            continue;
        }
        folder = openat(root, entry->d_name, DIRECTORY);
        if (folder >= 0)
            look_into(folder, &chains, out);
    }
    for (size_t i = 0; i < chains.list.len; i++) {
        out->dropped += chains.list.items[i].dropped;
        free(chains.list.items[i].name);
    }
    VEC_RELEASE(&chains.list);
    if (entries)
        closedir(entries);
    else if (root >= 0)
        close(root);
}
