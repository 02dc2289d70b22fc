# SPDX-License-Identifier: Apache-2.0
"""Peers of the benchmarks that come from PyPI: each is installed once, into an environment of its own."""
import os
import shutil
import signal
import subprocess

CACHE = os.environ.get("MYELIN_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "myelin")
PYTHON = "/usr/bin/python3"
INSTALL_LIMIT_S = 900


def quiet(command, limit, **options):
    """(whether it worked, the end of what it said); the whole session of one that takes too long is ended."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, start_new_session=True, **options)
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        said = f"not done after {limit:g} s"
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return process.returncode == 0, said


def install(what):
    """The Python that has the peer, or None, with the reason said."""
    folder = os.path.join(CACHE, "track-" + what)
    python, stamp = os.path.join(folder, "bin", "python"), os.path.join(folder, "stamp")
    if os.path.exists(stamp):
        return python
    print(f"Installing {what} in {folder}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    for command in ([PYTHON, "-m", "venv", folder],
                    [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", what]):
        ok, said = quiet(command, INSTALL_LIMIT_S)
        if not ok:
            print(f"{said[-600:]}\n{what} cannot be installed: it is left out.\n")
            return None
    open(stamp, "w").close()
    return python
