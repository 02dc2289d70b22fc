# SPDX-License-Identifier: Apache-2.0
"""The package as a user gets it, built once, and each test twice: with the extension and without.

    MYELIN                the program, for the tests that look at runs with it
    MYELIN_SDK_INSTALLED  set: the package is installed for this interpreter; nothing is built
"""
import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 60  # what no script of a test takes

sys.path.insert(0, str(HERE))
import spools  # noqa: E402


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """Where the package was built, or None where it is installed."""
    if os.environ.get("MYELIN_SDK_INSTALLED"):
        return None
    scratch = tmp_path_factory.mktemp("build")
    done = subprocess.run([sys.executable, "setup.py", "-q", "build", "--build-base", str(scratch / "base"), "--build-lib",
                           str(scratch / "lib")], cwd=str(HERE.parent), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 and list((scratch / "lib" / "myelin").glob("_native*.so")), done.stdout.decode()
    return scratch / "lib"


class Ended:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out.decode(), err.decode()

    def __repr__(self):
        return "status %s\n-- out:\n%s\n-- err:\n%s" % (self.status, self.out, self.err)


class Stage:
    """One test's directory, spool and home, and Python scripts that run there."""

    def __init__(self, directory, package, implementation):
        self.directory, self.implementation = directory, implementation
        self.home, self.spool_path = directory / "home", directory / "spool"
        self.spool_path.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MYELIN")}
        self.environment = dict(kept, PYTHONDONTWRITEBYTECODE="1", HOME=str(directory), MYELIN_HOME=str(self.home))
        if package is not None:
            self.environment["PYTHONPATH"] = str(package)
        if implementation == "python":
            self.environment["MYELIN_PURE_PYTHON"] = "1"
        self.inside = {
            "MYELIN_SPOOL": str(self.spool_path), "MYELIN_RUN_ID": "7", "MYELIN_TASK": "worker.1", "MYELIN_RANK": "2",
            "MYELIN_WORLD_SIZE": "4", "MYELIN_ATTEMPT": "3", "MYELIN_OUTPUTS_PATH": str(directory / "outputs"),
        }

    def start(self, script, inside=True, **variables):
        """A process with `run` and the usual modules at hand. It says who it is, so that no test tests the other."""
        head = "import json, os, signal, sys, threading, time\nimport myelin\n" \
               "assert myelin.implementation == %r, myelin.implementation\n" % self.implementation
        path = self.directory / "script.py"
        path.write_text(head + textwrap.dedent(script))
        environment = dict(self.environment, **(self.inside if inside else {}))
        environment.update(variables)
        return subprocess.Popen([sys.executable, str(path)], cwd=str(self.directory), env=environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, script, inside=True, **variables):
        process = self.start(script, inside, **variables)
        try:
            out, err = process.communicate(timeout=SECONDS)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        return Ended(process.returncode, out, err)

    def good(self, script, inside=True, **variables):
        ended = self.run(script, inside, **variables)
        assert ended.status == 0, ended
        return ended

    def spool(self, was_killed=False):
        return spools.Spool(self.spool_path, was_killed)

    def myelin(self, *arguments):
        program = os.environ.get("MYELIN")
        if not program:
            pytest.skip("MYELIN does not name the program")
        done = subprocess.run([program, *arguments], env=self.environment, cwd=str(self.directory), timeout=SECONDS,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(params=["native", "python"])
def stage(request, tmp_path, package):
    return Stage(tmp_path, package, request.param)


@pytest.fixture
def both(tmp_path, package):
    """The same stage for each implementation."""
    stages = []
    for name in ("native", "python"):
        (tmp_path / name).mkdir()
        stages.append(Stage(tmp_path / name, package, name))
    return stages
