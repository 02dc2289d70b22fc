/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/libarchive.h"

#include "base/library.h"

int libarchive_load(struct libarchive *out, struct error *err) {
    struct libarchive it = { 0 };
    const struct library_symbol functions[] = {
        { "archive_error_string", &it.error_string },
        { "archive_entry_new", &it.entry_new },
        { "archive_entry_clear", &it.entry_clear },
        { "archive_entry_free", &it.entry_free },
        { "archive_entry_set_pathname", &it.set_pathname },
        { "archive_entry_set_filetype", &it.set_filetype },
        { "archive_entry_set_perm", &it.set_perm },
        { "archive_entry_set_size", &it.set_size },
        { "archive_entry_set_mtime", &it.set_mtime },
        { "archive_entry_set_symlink", &it.set_symlink },
        { "archive_entry_pathname", &it.pathname },
        { "archive_entry_filetype", &it.filetype },
        { "archive_entry_perm", &it.perm },
        { "archive_entry_size", &it.size },
        { "archive_entry_mtime", &it.mtime },
        { "archive_entry_symlink", &it.symlink },
        { "archive_entry_hardlink", &it.hardlink },
        { "archive_write_new", &it.write_new },
        { "archive_write_set_format_gnutar", &it.write_set_format_gnutar },
        { "archive_write_add_filter_zstd", &it.write_add_filter_zstd },
        { "archive_write_set_bytes_in_last_block", &it.write_set_bytes_in_last_block },
        { "archive_write_open", &it.write_open },
        { "archive_write_header", &it.write_header },
        { "archive_write_data", &it.write_data },
        { "archive_write_close", &it.write_close },
        { "archive_write_free", &it.write_free },
        { "archive_read_new", &it.read_new },
        { "archive_read_support_format_tar", &it.read_support_format_tar },
        { "archive_read_support_filter_zstd", &it.read_support_filter_zstd },
        { "archive_read_open_fd", &it.read_open_fd },
        { "archive_read_next_header", &it.read_next_header },
        { "archive_read_data", &it.read_data },
        { "archive_read_free", &it.read_free },
    };

    if (library_load("libarchive.so.13", functions, ARRAY_LEN(functions), &it.library, err)) {
        if (err->code == ERROR_UNAVAILABLE)
            return error_set(err, ERROR_UNAVAILABLE,
                             "archives need libarchive, which cannot be loaded: install it "
                             "(Debian: libarchive13)");
        return -1;
    }
    *out = it;
    return 0;
}

void libarchive_unload(struct libarchive *library) {
    library_unload(library->library);
    *library = (struct libarchive){ 0 };
}

const char *libarchive_trouble(const struct libarchive *library, struct archive *archive) {
    const char *text = library->error_string(archive);

    return text && text[0] ? text : "the reason is not known";
}
