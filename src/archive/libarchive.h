/* SPDX-License-Identifier: Apache-2.0 */
/* libarchive, loaded when it is needed: with what it depends on it would cost every command
 * milliseconds. The functions have the types that its header gives them. */
#ifndef ARCHIVE_LIBARCHIVE_H
#define ARCHIVE_LIBARCHIVE_H

#include <archive.h>
#include <archive_entry.h>

#include "base/error.h"

struct libarchive {
    void *library;
    __typeof__(archive_error_string) *error_string;
    __typeof__(archive_entry_new) *entry_new;
    __typeof__(archive_entry_clear) *entry_clear;
    __typeof__(archive_entry_free) *entry_free;
    __typeof__(archive_entry_set_pathname) *set_pathname;
    __typeof__(archive_entry_set_filetype) *set_filetype;
    __typeof__(archive_entry_set_perm) *set_perm;
    __typeof__(archive_entry_set_size) *set_size;
    __typeof__(archive_entry_set_mtime) *set_mtime;
    __typeof__(archive_entry_set_symlink) *set_symlink;
    __typeof__(archive_entry_pathname) *pathname;
    __typeof__(archive_entry_filetype) *filetype;
    __typeof__(archive_entry_perm) *perm;
    __typeof__(archive_entry_size) *size;
    __typeof__(archive_entry_mtime) *mtime;
    __typeof__(archive_entry_symlink) *symlink;
    __typeof__(archive_entry_hardlink) *hardlink;
    __typeof__(archive_write_new) *write_new;
    __typeof__(archive_write_set_format_gnutar) *write_set_format_gnutar;
    __typeof__(archive_write_add_filter_zstd) *write_add_filter_zstd;
    __typeof__(archive_write_set_bytes_in_last_block) *write_set_bytes_in_last_block;
    __typeof__(archive_write_open) *write_open;
    __typeof__(archive_write_header) *write_header;
    __typeof__(archive_write_data) *write_data;
    __typeof__(archive_write_close) *write_close;
    __typeof__(archive_write_free) *write_free;
    __typeof__(archive_read_new) *read_new;
    __typeof__(archive_read_support_format_tar) *read_support_format_tar;
    __typeof__(archive_read_support_filter_zstd) *read_support_filter_zstd;
    __typeof__(archive_read_open_fd) *read_open_fd;
    __typeof__(archive_read_next_header) *read_next_header;
    __typeof__(archive_read_data) *read_data;
    __typeof__(archive_read_free) *read_free;
};

MUST_CHECK int libarchive_load(struct libarchive *out, struct error *err);
void libarchive_unload(struct libarchive *library);

/* What the library says of its last failure. */
const char *libarchive_trouble(const struct libarchive *library, struct archive *archive);

#endif
