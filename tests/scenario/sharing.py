# SPDX-License-Identifier: Apache-2.0
"""People who share a home: root, and users that every Debian has. Only root can play them."""
import contextlib
import json
import os
import pathlib
import shutil
import tempfile

from conftest import PROGRAM

NOBODY, NOGROUP, DAEMON = 65534, 65534, 1


class Person:
    """A user of the stage, with a umask."""

    def __init__(self, scenario, program, switch, umask):
        self.scenario, self.program, self.switch, self.umask = scenario, program, switch, umask

    def say(self, *arguments, **options):
        under = [*self.switch, "sh", "-c", f'umask {self.umask}; shift; exec {self.program} "$@"', "sh"]
        process = self.scenario.start(*arguments, under=under, **options)
        out, err = process.communicate(timeout=60)
        return process.returncode, out.decode(), err.decode()

    def detached(self, job):
        code, out, err = self.say("run", "-d", job)
        assert code == 0, err
        return int(out)

    def json(self, *arguments):
        code, out, err = self.say(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)


def switch_to(user, group="nogroup"):
    return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--bounding-set=-all"]


@contextlib.contextmanager
def shared_home(scenario, mode):
    """A home of root that root, `nobody` and `daemon` share, as docs/queue.md tells to make it. Yields the program."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="myelin-sharing-"))
    try:
        place.chmod(0o777)
        program = shutil.copy(PROGRAM, place / "myelin")
        scenario.directory, scenario.home = place, place / "home"
        scenario.environment.update(MYELIN_HOME=str(scenario.home), HOME=str(place))
        for folder in (scenario.home, scenario.home / "runs"):
            folder.mkdir()
            os.chown(folder, 0, NOGROUP)
            folder.chmod(mode)
        yield program
        scenario.clean()
    finally:
        shutil.rmtree(place)
