/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way into a cluster: kubeconfig files as kubectl reads them, or, inside a pod, what the
 * cluster puts there.
 *
 * kubeconfig_find takes the first of these that there is: the file that was asked for, the files of
 * KUBECONFIG, ~/.kube/config, the service account of the pod that this process runs in. Several
 * files are merged by kubectl's documented rule: the first file that sets a value or names an entry
 * wins, entry by entry, and a file of the list that is not there is passed over.
 *
 * kubeconfig_read is the pure part: texts in, decision out, no file is touched. It refuses what it
 * cannot honour, as an auth-provider, with the place in the file and the way out. A user without
 * credentials is anonymous, which is no error here.
 *
 * Secrets: keys, tokens and passwords stay in the memory of the struct, which is wiped on release;
 * no error sentence ever holds one.
 */
#ifndef BACKEND_KUBERNETES_KUBECONFIG_H
#define BACKEND_KUBERNETES_KUBECONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* How the cluster of the pod that this process runs in is called, also by who looks for it again.
 */
#define KUBECONFIG_IN_CLUSTER "in-cluster"

enum {
    KUBECONFIG_FILE_MAX = 4 << 20, /* bytes of one file, certificates included */
    KUBECONFIG_FILES_MAX = 64,
};

/* Bytes that stand in the file (base64) or in a file of their own. PEM, as curl takes it. */
struct kubeconfig_blob {
    const char *file; /* NULL: the bytes were in the kubeconfig, or there are none */
    const char *data; /* NULL: none, or not read from `file` yet */
    size_t len;
};

/* A program that says who the user is: client.authentication.k8s.io/v1 or v1beta1. */
struct kubeconfig_exec {
    const char *command;      /* with '/': a path, absolute; else looked up in PATH */
    char *const *args;        /* NULL-terminated, args[0] is the command */
    char *const *env;         /* NULL-terminated "NAME=value", over this process's environment */
    const char *api_version;  /* "client.authentication.k8s.io/v1" */
    const char *install_hint; /* shown when the program is missing; NULL: none */
    bool wants_cluster;       /* provideClusterInfo */
};

enum kubeconfig_verify { KUBECONFIG_VERIFY, KUBECONFIG_INSECURE };

/* Texts live in the arena; what is absent is NULL. */
struct kubeconfig {
    struct arena arena;
    const char *context; /* its name; KUBECONFIG_IN_CLUSTER for the pod's own */
    const char *cluster_name, *user_name;
    const char *namespace; /* never NULL: "default" where nothing says otherwise */

    const char *server; /* "https://10.0.0.1:6443", without a slash at the end */
    struct kubeconfig_blob ca;
    enum kubeconfig_verify verify;
    const char *tls_server_name; /* the name in the certificate, where it is not the server's */
    const char *proxy_url;       /* NULL: what the environment says (https_proxy, no_proxy) */

    struct kubeconfig_blob certificate, key;
    const char *token;
    const char *token_file; /* read again as it changes; stands before `token` */
    const char *username, *password;
    const struct kubeconfig_exec *exec;
    const char *impersonate; /* "as" */

    const char *asked_file; /* of the request that found it */
};

/* What to look for; all may be NULL. */
struct kubeconfig_request {
    const char *file;      /* this file alone, which has to be there */
    const char *context;   /* instead of current-context */
    const char *namespace; /* instead of the context's */
};

struct kubeconfig_text {
    const char *path; /* for places in errors, and what relative paths stand beside */
    const char *text;
    size_t len;
};

/* Pure: the merge of n texts, and the context that is chosen. Blobs that stand in files of their
 * own are named, not read. */
MUST_CHECK int kubeconfig_read(const struct kubeconfig_text *texts, size_t n,
                               const struct kubeconfig_request *request, struct kubeconfig *out,
                               struct error *err);

/* Finds the files, reads them and the certificates that they name. */
MUST_CHECK int kubeconfig_find(const struct kubeconfig_request *request, struct kubeconfig *out,
                               struct error *err);

/* What a pod is given: the address by its environment, the rest as files of a directory. */
MUST_CHECK int kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
                                     struct kubeconfig *out, struct error *err);

/* Reads the blobs that have a file. */
MUST_CHECK int kubeconfig_load_blobs(struct kubeconfig *config, struct error *err);

/* Looks for it again, and takes over what the same user of the same server shows now: who logs in
 * again writes it there, and certificates are renewed in place. False: that is what it was. */
bool kubeconfig_renew(struct kubeconfig *config);

/* Wipes secrets. Takes a zeroed struct. */
void kubeconfig_release(struct kubeconfig *config);

#endif
