#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails on a script that its interpreter cannot read, or that has none. The scripts are the files
# that start with `#!`. Usage: check-scripts.sh [SOURCE_ROOT]
cd -- "${1:-.}" || exit 2
# One process looks at the first lines of all files, because there are thousands of them.
find . \( -name .git -o -name 'build*' -type d \) -prune -o -type f -size -200k \
    -exec awk '/^#!/ { print FILENAME } { nextfile }' {} + >"${list:=$(mktemp)}"
bad=0 n=0
while IFS= read -r file; do
    head=$(head -c 80 -- "$file" | tr -d '\000' | head -n 1)
    case $head in
    '#!'*bash*) set -- bash -n ;;
    '#!'*zsh*) set -- zsh -n ;;
    '#!'*sh*) set -- sh -n ;;
    '#!'*python3*) set -- /usr/bin/python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' ;;
    '#!'*) echo "$file: no interpreter that is known here: $head"; bad=1; continue ;;
    *) continue ;;
    esac
    n=$((n + 1))
    "$@" "$file" || bad=1
done <"$list"
rm -f -- "$list"
[ "$n" -gt 0 ] || { echo "no scripts found"; bad=1; }
exit "$bad"
