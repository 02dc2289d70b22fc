/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes to standard output or error without ever waiting for who reads it: a pager that
 * stands still must not hold up a run.
 *
 * What cannot be written now is kept up to OUTLET_PENDING bytes and written when the
 * reader takes it; beyond that it is dropped and counted. When writing fails (the reader
 * left, the disk is full) the outlet is lost: all further bytes are dropped.
 */
#ifndef CLI_OUTLET_H
#define CLI_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct event_base;
struct evbuffer;

#define OUTLET_PENDING (16u << 20)

struct outlet {
    int fd;
    bool is_own; /* our own description of the same file, made not to block */
    bool is_socket, is_file;
    struct evbuffer *pending;
    struct event *writable;
    uint64_t dropped; /* bytes */
    int errnum;       /* why it is lost; 0 while it is not */
};

void outlet_init(struct outlet *outlet, int fd, struct event_base *base);
/* All or nothing is dropped, so that lines stay whole when the reader is merely slow. */
void outlet_write(struct outlet *outlet, const char *bytes, size_t n);
/* Waits until the reader has taken what is pending. */
void outlet_finish(struct outlet *outlet);
void outlet_release(struct outlet *outlet);

#endif
