/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/shim_key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define FILE_NAME ".shim-key"

enum { KEY_DIGITS = SHIM_KEY_TEXT - 1, KEY_BYTES = KEY_DIGITS / 2 };

int shim_key_read(const char *directory, char out[static SHIM_KEY_TEXT], struct error *err) {
    char path[PATH_MAX], text[SHIM_KEY_TEXT] = "";
    ssize_t n;
    int fd;

    if (snprintf(path, sizeof path, "%s/" FILE_NAME, directory) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, "'%.200s' is too long for a path", directory);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_set_errno(err, errno, "'%.300s'", path);
    n = read(fd, text, KEY_DIGITS);
    close(fd);
    if (n != KEY_DIGITS || strspn(text, "0123456789abcdef") != KEY_DIGITS)
        return error_set(err, ERROR_INVALID, "'%.300s' holds no key of a shim", path);
    memcpy(out, text, sizeof text);
    return 0;
}

static int invent(char out[static SHIM_KEY_TEXT], struct error *err) {
    unsigned char bytes[KEY_BYTES];

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_set_errno(err, errno, "a key for the pods");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* It appears whole, or not at all: a pod that has another key could not be asked. */
static int keep(const char *directory, const char *key, struct error *err) {
    char path[PATH_MAX], temporary[PATH_MAX];
    int fd;
    bool is_written;

    if (snprintf(path, sizeof path, "%s/" FILE_NAME, directory) >= (int)sizeof path ||
        snprintf(temporary, sizeof temporary, "%s/" FILE_NAME ".new", directory) >=
            (int)sizeof temporary)
        return error_set(err, ERROR_INVALID, "'%.200s' is too long for a path", directory);
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "'%.300s'", temporary);
    errno = EIO;
    is_written = write(fd, key, KEY_DIGITS) == KEY_DIGITS && fsync(fd) == 0;
    if (!is_written)
        error_set_errno(err, errno, "'%.300s'", temporary);
    close(fd);
    if (!is_written)
        return -1;
    return rename(temporary, path) ? error_set_errno(err, errno, "'%.300s'", path) : 0;
}

int shim_key_make(const char *directory, char out[static SHIM_KEY_TEXT], struct error *err) {
    char key[SHIM_KEY_TEXT];

    if (shim_key_read(directory, out, err) == 0)
        return 0;
    if (err->code != ERROR_NOT_FOUND)
        return -1;
    if (invent(key, err) || keep(directory, key, err))
        return -1;
    memcpy(out, key, sizeof key);
    return 0;
}

void shim_key_remove(const char *directory) {
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/" FILE_NAME, directory) < (int)sizeof path)
        unlink(path);
}
