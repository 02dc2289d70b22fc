#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the Role that docs/kubernetes.md says a run needs, for `kubectl create -f -`.

    rights.py BACKEND TABLE
"""
import json
import re
import sys


def main():
    backend, table = sys.argv[1:]
    rules, column = [], None
    with open(table, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[0] == "resource":
                column = cells.index(f"with `backend: {backend}`")
            elif not line.startswith("|"):
                column = None
            elif column and not cells[0].startswith("-") and cells[column]:
                names = re.findall(r"`([^`]+)`", cells[0])
                group = names.pop() if " of `" in cells[0] else ""
                rules.append({"apiGroups": [group], "resources": names, "verbs": cells[column].split(", ")})
    if not rules:
        sys.exit(f"{table} has no rights for {backend}")
    print(json.dumps({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "runner"}, "rules": rules}))


main()
