#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The init container of the launcher of an MPIJob v1: hands it kubectl, by which it starts its ranks, and
# waits until the workers run.
set -e
cp /bin/kubectl "$TARGET_DIR/kubectl"
cut -d' ' -f1 /etc/mpi/hostfile | while read -r worker; do
    until [ "$(kubectl -n "$NAMESPACE" get pod "$worker" -o 'jsonpath={.status.phase}')" = Running ]; do sleep 0.5; done
done
