#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what tasks in pods found in their environment against what processes of this machine found.

    environments.py BACKEND FRAMEWORK PLAN LOCAL PODS TABLE

PLAN is `myelin plan --task` as JSON, for the names of the contract; LOCAL and PODS are logs of the same task, which
printed its environment; TABLE is docs/kubernetes.md. Names and values are equal but for what the table lists, and
for what says where a run is.
"""
import json
import re
import sys

# Their values are of the run, or of the place: everything else has to be the same.
OF_THE_RUN = {"MYELIN_RUN_ID", "MYELIN_RUN_UUID", "POLYAXON_EXPERIMENT_INFO"}
OF_THE_PLACE = {"MYELIN_OUTPUTS_PATH", "POLYAXON_RUN_OUTPUTS_PATH", "POLYAXON_LOGS_PATH", "MYELIN_SPOOL", "MYELIN_HOST",
                "MYELIN_PORT", "POLYAXON_CLUSTER", "TF_CONFIG", "MASTER_ADDR", "MASTER_PORT", "DMLC_PS_ROOT_URI",
                "DMLC_PS_ROOT_PORT", "DMLC_NODE_HOST", "DMLC_NODE_PORT", "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                "HOROVOD_GLOO_RENDEZVOUS_PORT"}
FRAMEWORKS = re.compile(r"^(TF_|DMLC_|MX_|PET_|MASTER_|RANK$|WORLD_SIZE$|LOCAL_|GROUP_|ROLE_|HOROVOD_|OMPI_MCA_|MYELIN_|POLYAXON_)")


def read_log(path):
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, equals, value = line.rstrip("\n").partition("=")
            if equals and re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
                found[name] = value
    return found


def read_table(path, backend, framework):
    """Name, which may end in *, -> who gives it, of the rows for that backend."""
    rows = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
            if len(cells) == 5 and cells[1] == backend and cells[2].lower() == framework:
                rows[cells[0]] = cells[3]
    return rows


def row_of(rows, name):
    return rows.get(name) or next((who for key, who in rows.items() if key.endswith("*") and name.startswith(key[:-1])), None)


def main():
    backend, framework, plan, local, pods, table = sys.argv[1:]
    rows = read_table(table, backend, framework)
    with open(plan, encoding="utf-8") as file:
        contract = json.load(file)["environment"]
    here, there = read_log(local), read_log(pods)
    wrong = []
    if len(contract) < 10 or len(there) < 10:
        wrong.append(f"nothing to compare: {len(contract)} variables of the contract, {len(there)} in the pod")
    for name in contract:
        who = row_of(rows, name)
        if who == "nobody":
            if name in there:
                wrong.append(f"{name} is in the pod, though the table says that nobody gives it")
        elif name not in there:
            wrong.append(f"{name} is not in the pod")
        elif name in OF_THE_RUN | OF_THE_PLACE:
            if not there[name]:
                wrong.append(f"{name} is empty in the pod")
        elif here.get(name) != there[name]:
            wrong.append(f"{name} is {there[name]!r} in the pod, and {here.get(name)!r} here")
    for name in there:
        if name not in contract and FRAMEWORKS.match(name) and row_of(rows, name) is None:
            wrong.append(f"{name} is in the pod, and neither in the contract nor in the table")
    for name, who in rows.items():
        is_due = who == "myelin" or (who in ("operator", "pod") and name in contract)
        if is_due and not there.get(name):
            wrong.append(f"{name} is not in the pod, though the table says who gives it: {who}")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
