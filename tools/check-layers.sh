#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when a file under src/ includes what tools/layers.txt does not allow its layer, which is
# the first folder of its path: src/backend/local/spawn.c belongs to backend. Files directly in
# src/ stand above all layers. Usage: tools/check-layers.sh [SOURCE_ROOT]
cd -- "${1:-.}" || exit 2
[ -r tools/layers.txt ] || { echo "tools/layers.txt: cannot be read"; exit 2; }
[ -n "$(find src -name '*.[ch]' -print -quit)" ] || { echo "src: no C files"; exit 2; }
find src -name '*.[ch]' -exec awk '
    function report(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; bad = 1 }

    BEGIN {
        while ((getline line < "tools/layers.txt") > 0) {
            if (line ~ /^#/ || line !~ /:/) continue
            name = line; sub(/:.*/, "", name)
            sub(/^[^:]*:[ \t]*/, "", line)
            n = split(line, word, " ")
            for (i = 1; i <= n; i++) {
                # Layers stand bottom to top, and the rows of libraries after them.
                if (!(word[i] in known)) {
                    printf "tools/layers.txt: %s: %s is not above this row\n", name, word[i]
                    bad = 1
                }
                allowed[name, word[i]] = 1
            }
            if (name ~ /^</) library[substr(name, 2, length(name) - 2)] = 1
            else known[name] = 1
        }
    }

    FNR == 1 {
        layer = (split(FILENAME, part, "/") > 2) ? part[2] : ""
        if (layer != "" && !(layer in known)) report(layer " is not in tools/layers.txt")
    }

    layer != "" && /^[ \t]*#[ \t]*include[ \t]*["<]/ {
        target = $0; sub(/^[^"<]*/, "", target)
        quote = substr(target, 1, 1)
        target = substr(target, 2); sub(/[">].*/, "", target)
        if (quote == "<") {
            for (prefix in library)
                if (index(target, prefix) == 1 && !(("<" prefix ">", layer) in allowed))
                    report(layer " may not include <" target ">")
        } else if (target ~ /(^|\/)\.\.?(\/|$)/) {
            report("name " target " by its path from src/")
        }
        # Of two layers that meet in angle brackets the rule is the same.
        if (target !~ /\//) next
        sub(/\/.*/, "", target)
        if (quote == "\"" && !(target in known)) report(target " is not a layer")
        else if ((target in known) && target != layer && !((layer, target) in allowed))
            report(layer " may not include " target)
    }

    END { exit bad }' {} +
