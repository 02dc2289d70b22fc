#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails on what does not belong into the project: marks of unfinished work, and paths of one
# particular machine. Usage: check-words.sh [SOURCE_ROOT]
cd -- "${1:-.}" || exit 2
found=$(find . \( -name .git -o -name 'build*' -type d -o -name __pycache__ \) -prune -o \
    -type f ! -path ./tests/style/check-words.sh -exec grep -nIHE 'TODO|FIXME|/work/|/tmp/bash' {} +)
[ -z "$found" ] && exit
printf '%s\n' "$found"
exit 1
