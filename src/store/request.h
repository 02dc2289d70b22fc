/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was asked for when a run was made, kept with it as runs/<id>/request.json, so that it can
 * be asked for again: the options of the command line in their order, of which those named `file`
 * name the copies of the files that lie beside it; and a few variables of the environment that
 * decide which programs are found. The environment itself is not kept: it holds secrets.
 *
 * docs/run-directory.md describes the file.
 */
#ifndef STORE_REQUEST_H
#define STORE_REQUEST_H

#include "base/buf.h"
#include "base/vec.h"
#include "store/rundir.h"

enum { REQUEST_MAX = 16 << 20 };

#define REQUEST_FILE "request.json"

/* A name with its value; NULL: the option takes none, the variable was not set. */
struct request_pair {
    const char *name, *value;
};

struct request {
    struct arena arena; /* of what was read */
    VEC(struct request_pair) options;
    VEC(struct request_pair) environment;
};
void request_release(struct request *request);

/* Appends the request as JSON. */
MUST_CHECK int request_format(const struct request *request, struct buf *out, struct error *err);

/* Reads what request_format wrote. Fails with ERROR_INVALID for anything else. */
MUST_CHECK int request_parse(const char *text, size_t n, struct request *out, struct error *err);

/* The request of a run. Fails with ERROR_NOT_FOUND where none was kept. */
MUST_CHECK int request_read(const struct rundir *rundir, struct request *out, struct error *err);

/* The i-th variable that is kept, or NULL past the last. */
const char *request_variable(size_t i);

#endif
