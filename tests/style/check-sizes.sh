#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails on what has grown too long to review: a function over 100 lines, a file over 1000, a header
# over 250. It relies on the layout that clang-format makes: the head of a function starts in the
# first column and its body ends with a brace there. Usage: check-sizes.sh [SOURCE_ROOT]
cd -- "${1:-.}" || exit 2
[ -n "$(find src -name '*.[ch]' -print -quit)" ] || { echo "src: no C files"; exit 2; }
find src tests sdk -name '*.[ch]' -exec awk '
    function report(place, text) { printf "%s:%d: %s\n", FILENAME, place, text; bad = 1 }

    FNR == 1 { limit = (FILENAME ~ /\.h$/) ? 250 : 1000; start = 0; inside = 0 }
    FNR == limit + 1 { report(FNR, "the file has more than " limit " lines") }

    !inside && /^[A-Za-z_]/ { start = FNR; head = "" }
    !inside && start {
        head = head $0
        if (head ~ /;[ \t]*$/) start = 0
        else if (head ~ /\{[ \t]*$/) {
            if (head ~ /\(/ && head !~ /=/) inside = 1
            else start = 0
        }
    }
    /^}/ {
        if (inside && FNR - start + 1 > 100)
            report(start, "the function has " (FNR - start + 1) " lines, more than 100")
        inside = 0; start = 0
    }

    END { exit bad }' {} +
