# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# The Python package on every Python that it is made for: installed as a user installs it, into an
# environment of its own, and put through its own tests there, with the extension and without.
packages="gcc libc6-dev python3-dev python3-venv python3-pip"
venv=tensorflow
limit=600
once="python_3_7 python_3_8 python_3_9 python_3_10 python_3_11 python_3_12 python_3_13
    a_source_distribution_holds_all_that_it_needs without_a_compiler_it_is_installed_all_the_same"

sdk_versions="3.7 3.8 3.9 3.10 3.11 3.12 3.13"

# python_of VERSION: an interpreter of that version: in the PATH, or one of pyenv's.
python_of() {
    local candidate
    for candidate in "/usr/bin/python$1" "$(command -v "python$1")" \
        "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        [ -n "$candidate" ] && "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" \
            2>/dev/null && { printf '%s' "$candidate"; return 0; }
    done
    return 1
}

# The environment of a version, made anew when libmyelin or the package has changed.
sdk_venv() { # version
    local python folder="$CACHE/venvs/sdk-$1" stamp
    python=$(python_of "$1") || return 0
    stamp=$("$python" --version; cd "$root/sdk" && find c python -type f ! -path '*/__pycache__/*' ! -path '*/build/*' \
        ! -path '*.egg-info/*' -exec sha256sum {} + | sort | sha256sum)
    [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ] && return 0
    echo "  installing the package for Python $1"
    rm -rf "$folder" "$CACHE/sdk-source"
    mkdir -p "$CACHE/venvs"
    cp -r "$root/sdk" "$CACHE/sdk-source"
    "$python" -m venv "$folder" &&
        again 600 "$folder/bin/python" -m pip install --quiet --disable-pip-version-check setuptools wheel pytest &&
        again 600 "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-build-isolation \
            "$CACHE/sdk-source/python" &&
        rm -rf "$folder/tests" && cp -r "$root/sdk/python/tests" "$folder/tests" &&
        rm -rf "$folder/source" && mv "$CACHE/sdk-source" "$folder/source" &&
        printf '%s\n' "$stamp" >"$folder/stamp"
}

prepare() {
    local version
    make_venv tensorflow tensorflow.txt || return 1
    for version in $sdk_versions; do sdk_venv "$version" || return 1; done
    # The subject's laws see one environment; the others are found beside it.
    ln -sfn "$CACHE/venvs" "$CACHE/venvs/tensorflow/beside"
}

beside() { printf '%s' "$(dirname "$(dirname "$(command -v python3)")")/beside/sdk-$1"; }

# on VERSION: the package's own tests.
on() {
    local folder
    folder=$(beside "$1")
    [ -x "$folder/bin/python" ] || skip "there is no Python $1 here"
    (cd "$SCRATCH" && MYELIN_SDK_INSTALLED=1 "$folder/bin/python" -m pytest -q -p no:cacheprovider \
        "$folder/tests" >out 2>err) || fail "the tests failed on Python $1"
    tail -n 1 out
}

test_python_3_7() { on 3.7; }
test_python_3_8() { on 3.8; }
test_python_3_9() { on 3.9; }
test_python_3_10() { on 3.10; }
test_python_3_11() { on 3.11; }
test_python_3_12() { on 3.12; }
test_python_3_13() { on 3.13; }
