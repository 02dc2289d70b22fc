/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of fields, and the objects they fill in. schema.c has the rows: one place for
 * every key that a polyaxonfile may hold.
 */
#ifndef SPEC_SCHEMA_H
#define SPEC_SCHEMA_H

#include "spec/field.h"
#include "spec/spec.h"

struct range_fields {
    struct field_amount requests, limits;
};

struct resources_fields {
    struct field_object of[RESOURCE_COUNT]; /* struct range_fields */
    struct field_int index;                 /* only in worker_resources and ps_resources */
    const struct node *at;
};

struct persistence_fields {
    struct field_node data;
    struct field_node outputs;
};

struct output_refs_fields {
    struct field_node jobs, experiments;
};

/* The fields that a master, a worker, a parameter server and a job have in common. */
struct environment_fields {
    struct pod pod;
    struct field_int max_restarts;
    struct field_object persistence; /* struct persistence_fields */
    struct field_object outputs;     /* struct output_refs_fields */
    struct field_int index;          /* only in worker and ps */
    struct field_object replicas;    /* struct topology_fields; only in an experiment */
    struct field_object frameworks[FRAMEWORK_COUNT]; /* struct topology_fields; likewise */
    struct field_node config;                        /* of old files; has no effect */
    const struct node *at;
};

/* `worker_node_selectors: [{index: 2, disk: ssd}]`: what is not the index is the selector. */
struct selector_fields {
    struct field_int index;
    const struct node *at;
};

/* One role in all spellings. */
struct role_fields {
    struct field_int count;
    struct field_object defaults;          /* struct environment_fields */
    struct field_objects list;             /* struct environment_fields */
    struct field_object default_resources; /* struct resources_fields */
    struct field_objects resources_list;   /* struct resources_fields */
    struct field_node default_selectors;
    struct field_objects selectors_list; /* struct selector_fields */
};

/* `environment.replicas`, or `environment.tensorflow` and its like. */
struct topology_fields {
    struct field_bool master;
    struct role_fields roles[ROLE_COUNT]; /* of ROLE_WORKER and ROLE_PS */
    struct field_node unused[8];          /* old keys that have no effect */
};

struct logging_fields {
    struct field_node level, formatter, path;
};

struct settings_fields {
    struct field_object logging; /* struct logging_fields */
};

struct build_fields {
    struct field_node image, dockerfile, context, lang_env, commit, branch, backend;
    struct field_node ref;
    struct field_node build_steps, env_vars;
    struct field_bool nocache;
    struct field_node name, description;
    struct field_node tags;
    struct field_object environment;
    struct field_node version, kind, params, inputs, outputs, logging;
};

struct run_fields {
    struct field_node cmd;
    struct field_node image, build_steps, env_vars, git; /* of files before Polyaxon 0.1.1 */
};

struct io_fields {
    struct field_node name, description, type;
    struct field_node fallback, options;
    struct field_bool is_optional, is_list, is_flag;
    const struct node *at;
};

/* A whole file. */
struct file_fields {
    struct field_int version;
    struct field_node kind, name, description, backend, framework;
    struct field_node tags;
    struct field_object logging, environment, build, run, settings;
    struct field_objects inputs, outputs; /* struct io_fields */
    struct field_node params;
    const struct node *at;
};

extern const struct schema schema_experiment, schema_job;

#endif
