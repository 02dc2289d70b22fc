# SPDX-License-Identifier: Apache-2.0
"""A full disk, a home that cannot be written to, a directory that is gone: defined, and nothing is lost silently."""
import json
import os
import subprocess

import pytest
from conftest import PROGRAM, compile_logger


def can_mount():
    """Whether a mount of our own can be made: as root, or in a user namespace where the system allows them."""
    return subprocess.run([*own_mounts(), "true"], capture_output=True).returncode == 0


def own_mounts():
    # The root may be no mount point of its own, whose propagation could be changed.
    own = ["unshare", "--mount", "--propagation", "unchanged"]
    return own if os.geteuid() == 0 else [*own, "--map-root-user"]


def on_small_disk(scenario, bytes_):
    """A command that starts another one with a home on a disk of that size."""
    scenario.home.mkdir()
    script = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && "$@"; status=$?; cp -r "$MYELIN_HOME" "$KEPT"; exit $status'
    scenario.environment["KEPT"] = str(scenario.directory / "kept")
    return [*own_mounts(), "sh", "-c", script, "sh", str(bytes_), str(scenario.home)]


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_on_a_full_disk_the_run_goes_on_and_its_verdict_is_written(scenario):
    if not can_mount():
        pytest.skip("no mount can be made here")
    job = scenario.job(scenario.script("head -c 5000000 /dev/zero; exit 3"))
    process = scenario.start("run", job, under=on_small_disk(scenario, 1 << 20))
    ended = scenario.finish(process)
    assert ended.status == 3, ended
    assert "output is being lost" in ended.err, ended
    journal = records(scenario.directory / "kept/runs/1/events.jsonl")
    assert journal[-1]["status"] == "failed" and journal[-1]["exit_status"] == 3
    lost = [line["log_lost"] for line in journal if line.get("log_lost")]
    kept = (scenario.directory / "kept/runs/1/logs/master.0.log").stat().st_size
    assert kept + lost[0] == 5000000


RAISING = """
    import sys
    sys.stdout.write("x" * 3000000 + "\\n")
    sys.stdout.flush()
    def step():
        raise ValueError("shapes do not match")
    step()
"""


def test_on_a_full_disk_the_cause_of_a_failure_is_still_told(scenario):
    """The log has no room for the traceback: it is kept in memory."""
    if not can_mount():
        pytest.skip("no mount can be made here")
    process = scenario.start("run", scenario.job(scenario.python(RAISING)), under=on_small_disk(scenario, 1 << 20))
    ended = scenario.finish(process)
    assert ended.status == 1, ended
    assert "master.0 raised ValueError: shapes do not match (task.py, line" in ended.err, ended
    journal = records(scenario.directory / "kept/runs/1/events.jsonl")
    assert journal[-1]["kind"] == "python_exception" and "shapes do not match" in journal[-1]["reason"]


def test_a_log_that_has_reached_its_limit_does_not_hide_the_cause(scenario):
    ended = scenario.run(scenario.job(scenario.python(RAISING)), "--log-limit", "1000B")
    assert ended.status == 1 and "raised ValueError: shapes do not match" in ended.err, ended


def test_a_disk_without_room_for_a_run_refuses_it_before_anything_starts(scenario):
    if not can_mount():
        pytest.skip("no mount can be made here")
    fill = ["sh", "-c", 'head -c 100000000 /dev/zero > "$MYELIN_HOME/full" 2>/dev/null; exec "$@"', "sh"]
    job = scenario.job(scenario.script("touch started"))
    process = scenario.start("run", job, under=[*on_small_disk(scenario, 1 << 16), *fill])
    ended = scenario.finish(process)
    assert ended.status == 125 and "No space left" in ended.err, ended
    assert not (scenario.directory / "started").exists()


LOGGER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "myelin.h"

/* Logs params of 60 kB, one by one, once the disk is full; then fails. */
int main(void) {
    struct myelin *m = myelin_open();
    char params[4096];

    myelin_record(m, MYELIN_PARAMS, "{\"first\": 1}", 12);
    fclose(fopen("up", "w"));
    while (access("go", F_OK) != 0)
        usleep(10000);
    for (int i = 0; i < 20; i++)
        myelin_record(m, MYELIN_PARAMS, params, sprintf(params, "{\"p%d\": \"%03000d\"}", i, i));
    fclose(fopen("logged", "w"));
    sleep(2);
    return 3;
}
"""


def test_what_tasks_log_of_a_run_never_takes_the_room_of_its_end(scenario, tmp_path_factory):
    """On a full disk the params wait in the spool, and are those of the run once there is room."""
    if not can_mount():
        pytest.skip("no mount can be made here")
    logger = compile_logger(tmp_path_factory, LOGGER)
    script = f"""
        {logger} & task=$!
        while [ ! -e up ]; do sleep 0.01; done
        sleep 1.5; cat /dev/zero > "$MYELIN_HOME/filler" 2>/dev/null; touch go
        wait $task
        """
    job = scenario.job(f"MYELIN_HOME={scenario.home} {scenario.script(script)}")
    after = 'shift; "$@"; s=$?; rm "$MYELIN_HOME/filler"; "$0" status 1 --json > told; exit $s'
    process = scenario.start("run", job, under=[*on_small_disk(scenario, 4 << 20), "sh", "-c", after, str(PROGRAM), ""])
    ended = scenario.finish(process)
    assert ended.status == 3 and "params, tags and summaries that tasks log wait in the spool" in ended.err, ended
    journal = records(scenario.directory / "kept/runs/1/events.jsonl")
    assert any(line.get("exit_code") == 3 for line in journal), "the end of the task is known"
    told = json.loads((scenario.directory / "told").read_text())
    assert told["exit_status"] == 3 and len(told["params"]) == 21, told


def test_tags_of_a_file_that_are_too_long_to_be_recorded_are_told(scenario):
    head = "tags:\n" + "".join(f"  - t{i}{'x' * 3000}\n" for i in range(100))
    ended = scenario.run(scenario.job("true", head=head))
    assert ended.status == 0 and "params or tags is longer than a line of the journal" in ended.err, ended


def test_whatever_room_a_disk_has_a_run_is_refused_or_can_be_stopped(scenario):
    if not can_mount():
        pytest.skip("no mount can be made here")
    job = scenario.job(scenario.script("exec sleep 600"))
    script = """
        for size in $(seq 36 4 68); do
            mount -t tmpfs -o size=${size}k none "$MYELIN_HOME" || exit 99
            if "$1" run -d "$2" >/dev/null 2>&1; then
                "$1" stop 1 >&2 && echo stopped || { echo "cannot stop at $size"; "$1" kill 1; exit 1; }
            else
                "$1" ps -a >/dev/null && echo refused
            fi
            umount -l "$MYELIN_HOME"
        done
        """
    scenario.home.mkdir()
    ended = scenario.finish(scenario.start(job, under=[*own_mounts(), "sh", "-c", script, "sh"]))
    assert ended.status == 0, ended
    outcomes = ended.out.split()
    assert len(outcomes) == 9 and outcomes == sorted(outcomes) and set(outcomes) == {"refused", "stopped"}, ended


def test_a_home_that_cannot_be_written_to_is_named(scenario):
    if os.geteuid() == 0:
        scenario.home.write_text("a file, not a directory")
    else:
        scenario.home.mkdir(mode=0o500)
    ended = scenario.run(scenario.job("true"))
    assert ended.status == 125 and str(scenario.home) in ended.err, ended


def test_without_any_home_the_way_out_is_told(scenario):
    del scenario.environment["MYELIN_HOME"]
    scenario.environment["HOME"] = "/proc/nowhere"
    ended = scenario.run(scenario.job("true"))
    assert ended.status == 125 and "/proc/nowhere" in ended.err, ended


def test_a_directory_that_is_gone_is_told(scenario):
    gone = scenario.directory / "gone"
    gone.mkdir()
    job = scenario.job("true")
    process = scenario.start("run", job, under=["sh", "-c", 'rmdir ../gone; exec "$@"', "sh"], cwd=gone)
    ended = scenario.finish(process)
    assert ended.status == 125 and "working directory" in ended.err, ended
