# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What conformance subjects are prepared with: Debian packages, and Python environments below
# $CACHE/venvs, which are made once and used again as long as what they are made of is the same.

# again SECONDS COMMAND...: until it works, four times at most; a mirror stumbles now and then. The
# command's output is kept in $LOG, of which the end is shown when it never works.
again() {
    local limit=$1 try
    shift
    for try in 1 2 3 4; do
        timeout "$limit" "$@" >"$LOG" 2>&1 && return 0
        sleep $((try * try * 2))
    done
    printf '  failed four times: %s\n' "$*"
    tail -n 15 "$LOG" | sed 's/^/    /'
    return 1
}

# locked NAME COMMAND...: lanes, and runs of this program, that need the same make it one after the other.
locked() {
    local name=$1
    shift
    (flock 8 && "$@") 8>"$CACHE/lock.$name"
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install_packages NAME...: those of the Debian packages that are missing.
install_packages() { locked apt install_missing "$@"; }
install_missing() {
    local missing=() package
    local -a apt=(apt-get -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300
        -o "Dir::Cache::archives=$CACHE/apt")
    for package; do is_installed "$package" || missing+=("$package"); done
    [ ${#missing[@]} -eq 0 ] && return 0
    [ "$(id -u)" -eq 0 ] || { echo "installing needs root; run: apt-get install ${missing[*]}"; return 1; }
    mkdir -p "$CACHE/apt/partial"
    echo "  installing ${missing[*]}"
    timeout 1200 "${apt[@]}" install "${missing[@]}" >"$LOG" 2>&1 && return 0
    again 300 apt-get update -qq && again 1200 "${apt[@]}" install "${missing[@]}"
}

# The interpreter is Debian's: environments are kept, other interpreters come and go.
PYTHON=/usr/bin/python3
REQUIREMENTS=$(cd "$(dirname "${BASH_SOURCE[0]}")/requirements" && pwd)

# make_venv NAME WHAT [VENV_OPTION...]: the environment $CACHE/venvs/NAME with WHAT, which is a list
# in requirements/, all of it pinned, or a wheel.
make_venv() {
    local name=$1 what=$2 venv="$CACHE/venvs/$1" stamp
    local -a install=("$what")
    shift 2
    if [ -f "$REQUIREMENTS/$what" ]; then
        what=$(cat "$REQUIREMENTS/$what")
        install=(-r "$REQUIREMENTS/${install[0]}")
    fi
    stamp=$("$PYTHON" --version; echo "$@"; echo "$what")
    [ "$(cat "$venv/stamp" 2>/dev/null)" = "$stamp" ] && return 0
    echo "  making the Python environment $name"
    rm -rf "$venv"
    mkdir -p "$CACHE/venvs"
    "$PYTHON" -m venv "$@" "$venv" &&
        again 1200 "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check --no-deps \
            "${install[@]}" && printf '%s\n' "$stamp" >"$venv/stamp"
}

# -- Horovod

# What it is compiled with, and what its laws run with.
# shellcheck disable=SC2034
HOROVOD_PACKAGES="python3-torch libtorch-dev python3-dev pybind11-dev openmpi-bin libopenmpi-dev cmake make g++
    python3-pip python3-setuptools python3-wheel python3-cloudpickle python3-cffi python3-psutil python3-yaml python3-packaging"

# Horovod comes as source only. It is compiled against Debian's PyTorch, which takes minutes, and the
# wheel is kept as long as that PyTorch and the interpreter are the same.
compile_horovod() { # source directory
    export HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_MPI=1
    export HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 MAKEFLAGS=-j2
    cd "$1" && tar -xzf horovod-0.28.1.tar.gz --strip-components=1 &&
        timeout 3600 "$PYTHON" setup.py bdist_wheel >"$LOG" 2>&1 && return 0
    tail -n 25 "$LOG" >&2
    return 1
}

make_wheel() { # directory for it
    local source status
    compgen -G "$1/horovod-*.whl" >/dev/null && return 0
    echo "  compiling Horovod" >&2
    source=$(mktemp -d "${TMPDIR:-/tmp}/conformance-horovod.XXXXXX")
    again 600 "$PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation \
        --no-binary :all: -d "$source" horovod==0.28.1 >&2 &&
        (compile_horovod "$source") && mkdir -p "$1" && mv "$source"/dist/horovod-*.whl "$1/"
    status=$?
    rm -rf "$source"
    return "$status"
}

# horovod_wheel: prints where it is, once it is there.
horovod_wheel() {
    local wheels
    wheels="$CACHE/wheels/$("$PYTHON" --version | tr ' ' -)-torch-$(dpkg-query -W -f '${Version}' python3-torch)"
    locked horovod make_wheel "$wheels" && echo "$wheels"/horovod-*.whl
}

# -- the Python package

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

# The environment of a version. The package is installed anew when libmyelin or it has changed, what it is built and tested
# with only when the interpreter has.
sdk_venv() { # version
    local python folder="$CACHE/venvs/sdk-$1" tools="setuptools wheel pytest" stamp
    python=$(python_of "$1") || return 0
    stamp="$("$python" --version) $tools"
    if [ "$(cat "$folder/stamp.tools" 2>/dev/null)" != "$stamp" ]; then
        rm -rf "$folder"
        mkdir -p "$CACHE/venvs"
        # shellcheck disable=SC2086
        "$python" -m venv "$folder" &&
            again 600 "$folder/bin/python" -m pip install --quiet --disable-pip-version-check $tools || return 1
        printf '%s\n' "$stamp" >"$folder/stamp.tools"
    fi
    stamp=$(sed -n '/^sdk_package/,/^}/p' "$root/tests/conformance/prepare.sh" | cksum; cd "$root/sdk" && find c python -type f ! -path '*/__pycache__/*' \
        ! -path '*/build/*' ! -path '*.egg-info/*' -exec sha256sum {} + | sort | sha256sum)
    [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ] && return 0
    echo "  installing the package for Python $1"
    rm -f "$folder/stamp"
    sdk_package "$folder" && printf '%s\n' "$stamp" >"$folder/stamp"
}

# From a copy of the sources: what was built there before would be taken for what they give.
sdk_package() { # environment
    local status
    rm -rf "$1/tests" "$1/source" "$CACHE/sdk-source"
    cp -r "$root/sdk" "$1/source" && rm -rf "$1/source/python/build" "$1"/source/python/*.egg-info
    cp -r "$1/source" "$CACHE/sdk-source" &&
        again 600 "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
            "$CACHE/sdk-source/python" && cp -r "$root/sdk/python/tests" "$1/tests"
    status=$?
    rm -rf "$CACHE/sdk-source"
    return "$status"
}
