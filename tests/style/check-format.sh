#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails where clang-format would lay out a C file differently. Usage: check-format.sh [SOURCE_ROOT]
cd -- "${1:-.}" || exit 2
command -v clang-format >/dev/null || { echo "clang-format is not installed"; exit 2; }
[ -n "$(find src -name '*.[ch]' -print -quit)" ] || { echo "src: no C files"; exit 2; }
find src tests sdk -name '*.[ch]' -exec clang-format --dry-run -Werror {} +
