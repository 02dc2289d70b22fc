#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pages.sh MYELIN DIRECTORY COMMAND...: has the program write its manual pages, all of them at once: a target for each would
# start an interpreter for each, whenever the program changes.
set -eu
program=$1 directory=$2
shift 2
"$program" man >"$directory/myelin.1"
for name; do
    "$program" man "$name" >"$directory/myelin-$name.1"
done
