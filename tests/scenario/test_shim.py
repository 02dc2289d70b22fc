# SPDX-License-Identifier: Apache-2.0
"""The first process of a pod: what a task writes arrives, whatever happens to who reads it."""
import hashlib
import http.client
import os
import pathlib
import resource
import signal
import struct
import subprocess
import time

import pytest
from conftest import PYTHON, ROOT, compile_logger, state_of
from shimming import KEY, SECONDS, SHIM, Mirror, Shim, Stream, eventually

LONGEST_LINGER = 30 * 24 * 3600

LOGGER = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "myelin.h"

/* logs N points, one every SLOW microseconds, between two large records; then closes, or just ends */
int main(int argc, char **argv) {
    const int n = atoi(argv[1]), slow = atoi(argv[2]);
    struct myelin *m = myelin_open();
    const uint32_t loss = myelin_name(m, "loss");
    const size_t size = 300000;
    char *text = malloc(size);

    memset(text, 'x', size);
    memcpy(text, "{\"a\": \"", 7);
    memcpy(text + size - 2, "\"}", 2);
    myelin_record(m, MYELIN_PARAMS, text, size);
    for (int i = 0; i < n; i++) {
        const double value = i;

        myelin_log(m, &loss, &value, 1, i, MYELIN_NOW);
        if (slow)
            usleep((useconds_t)slow);
    }
    myelin_record(m, MYELIN_TAGS, text, size);
    if (argc > 3)
        _exit(0);
    myelin_close(m);
    return 0;
}
"""

GROUP = """
import os, signal, sys, time

who = "parent" if (pid := os.fork()) else "child"

def leave(number, frame):
    os.write(1, who.encode() + b"\\n")
    if pid:
        os.waitpid(pid, 0)
    os._exit(5)

signal.signal(int(sys.argv[1]), leave)
os.write(1, b"ready\\n")
while True:
    time.sleep(10)
"""


@pytest.fixture
def shim(scenario, tmp_path):
    stage = Shim(tmp_path, scenario.environment)
    yield stage
    stage.kill()


@pytest.fixture(scope="module")
def logger(tmp_path_factory):
    return compile_logger(tmp_path_factory, LOGGER)


def flood(megabytes):
    """A command that writes numbered lines, and what it writes."""
    count = megabytes * (1 << 20) // 64
    script = f"import sys\nfor i in range({count // 1024}): sys.stdout.write(''.join('%063d\\n' % (i * 1024 + k) for k in range(1024)))"
    digest = hashlib.sha256()
    for i in range(count // 1024):
        digest.update("".join("%063d\n" % (i * 1024 + k) for k in range(1024)).encode())
    return (PYTHON, "-c", script), count // 1024 * 65536, digest.hexdigest()


def test_the_shim_is_small():
    if SHIM.name != "shim-amd64":
        pytest.skip("this one is not as pods get it")
    assert SHIM.stat().st_size <= 128 << 10


# -- the command


@pytest.mark.parametrize(
    "script, code, said",
    [
        ("exit 0", 0, {"exit": 0}),
        ("echo four; exit 3", 3, {"exit": 3, "log": 5}),
        ("kill -9 $$", 137, {"signal": 9}),
        ("kill -TERM $$", 143, {"signal": 15}),
    ],
)
def test_the_shim_ends_as_the_task_did(shim, script, code, said):
    shim.shell(script)
    assert Mirror().follow(shim).ending.items() >= said.items()
    assert shim.end() == code
    assert shim.message().items() >= {**said, "lost": 0, "unsent": 0}.items()


def test_a_command_that_is_not_there_is_an_end_with_its_cause(shim):
    shim.start("no-such-command-anywhere")
    ending = Mirror().follow(shim).ending
    assert (ending["error"], ending["errno"]) == ("command not found", 2)
    assert shim.end() == 127


def test_a_command_that_may_not_be_executed_is_an_end_with_its_cause(shim, tmp_path):
    (tmp_path / "text").write_text("no program")
    shim.start(tmp_path / "text")
    ending = Mirror().follow(shim).ending
    assert ending["errno"] == 13 and "exit" not in ending
    assert shim.end() == 126


def test_the_task_is_not_given_what_is_the_shims_own(shim):
    shim.start("/usr/bin/env")
    mirror = Mirror().follow(shim)
    assert b"MYELIN_SHIM_" not in mirror.file("log") and KEY.encode() not in mirror.file("log")
    assert b"MYELIN_SPOOL=" in mirror.file("log")
    assert shim.end() == 0


@pytest.mark.parametrize(
    "name, value", [("KEY", "short"), ("PORT", "70000"), ("LINGER", "-1"), ("LINGER", str(LONGEST_LINGER + 1)), ("LOG_LIMIT", "10G")]
)
def test_a_setting_that_makes_no_sense_is_refused_by_its_name(shim, name, value):
    shim.environment["MYELIN_SHIM_" + name] = value
    shim.shell("true", stderr=subprocess.PIPE)
    assert shim.wait() == 125
    assert f"MYELIN_SHIM_{name}" in shim.process.stderr.read().decode()
    assert f"MYELIN_SHIM_{name}" in shim.message()["error"]


def test_the_longest_linger_of_the_settings_is_one_that_a_shim_takes(shim, scenario):
    scenario.home.mkdir(mode=0o700, exist_ok=True)
    (scenario.home / "config.yml").write_text(f"kubernetes: {{linger: {LONGEST_LINGER + 1}}}\n")
    job = scenario.job("true", head="build: {image: x}")
    assert "linger" in scenario.finish(scenario.start("render", job)).err
    (scenario.home / "config.yml").write_text(f"kubernetes: {{linger: {LONGEST_LINGER}}}\n")
    assert f'value: "{LONGEST_LINGER}"' in scenario.finish(scenario.start("render", job)).out
    shim.environment["MYELIN_SHIM_LINGER"] = str(LONGEST_LINGER)
    shim.shell("true")
    Mirror().follow(shim)
    assert shim.end() == 0


def test_without_a_key_nobody_is_served_or_waited_for(shim):
    del shim.environment["MYELIN_SHIM_KEY"]
    shim.shell("echo here; exit 4", stdout=subprocess.PIPE)
    assert shim.wait() == 4
    assert shim.process.stdout.read() == b"here\n" == shim.log
    assert shim.message() == {"exit": 4, "log": 5, "lost": 0, "unsent": 5}


def test_the_shim_has_the_descriptors_that_it_may_have_and_the_task_those_that_it_was_given(shim):
    shim.shell("ulimit -Sn; ulimit -Hn; cat /proc/$PPID/limits", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 900)))
    soft, hard, *limits = Mirror().follow(shim).file("log").decode().splitlines()
    assert (soft, hard) == ("300", "900")
    assert [line.split()[3:5] for line in limits if line.startswith("Max open files")] == [["900", "900"]]
    assert shim.end() == 0


# -- signals and processes


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGRTMIN + 3])
def test_a_signal_goes_to_the_whole_group_of_the_task(shim, number):
    shim.start(PYTHON, "-c", GROUP, int(number))
    eventually(lambda: shim.directory.joinpath("logs/log").exists() and shim.log.count(b"ready") == 2, "ready")
    shim.process.send_signal(number)
    assert shim.await_message()["exit"] == 5
    assert sorted(Mirror().follow(shim).file("log").split()) == [b"child", b"parent", b"ready", b"ready"]
    assert shim.process.poll() is None, "it waits for somebody who takes what is left"
    assert shim.end() == 5


def test_signals_that_were_ignored_before_the_shim_are_as_ever_for_it_and_for_the_task(shim):
    def ignore():
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

    shim.start("/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", preexec_fn=ignore)
    assert Mirror().follow(shim).file("log").split() == [
        word for name in (b"SigBlk:", b"SigIgn:") for word in (name, b"0" * 16)
    ]
    assert shim.end() == 0


def test_a_signal_can_be_asked_for(shim):
    shim.shell("trap 'exit 6' USR1; echo ready; while :; do sleep 0.05; done")
    eventually(lambda: shim.directory.joinpath("logs/log").exists() and b"ready" in shim.log, "ready")
    assert [shim.ask(f"/signal?{query}") for query in ("number=0", "number=65", "number=x", "", "n=1")] == [400] * 5
    assert shim.ask("/end") == 409
    assert shim.ask(f"/signal?number={int(signal.SIGUSR1)}") == 204
    Mirror().follow(shim)
    assert shim.ask("/signal?number=15") == 409
    assert shim.end() == 6


def test_orphans_are_reaped_and_what_a_task_leaves_behind_is_ended(shim, scenario):
    shim.shell("for i in 1 2 3; do (sh -c 'exit 0' &) ; done; (setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 0.1; done' >/dev/null 2>&1 &); (sleep 1000 &); echo up; read line < /proc/self/fd/0; while [ ! -e go ]; do sleep 0.05; done; exit 2",
               cwd=shim.directory)
    eventually(lambda: shim.directory.joinpath("logs/log").exists() and b"up" in shim.log, "up")

    def zombies():
        pid = shim.process.pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [child for child in children if state_of(child) == "Z"]

    eventually(lambda: not zombies(), "reaped")
    (shim.directory / "go").touch()
    assert Mirror().follow(shim).ending["exit"] == 2
    assert set(scenario.left()) == {shim.process.pid}, "only the shim is left"
    assert shim.end() == 2


def test_a_task_that_closes_its_output_goes_on(shim):
    shim.shell("echo last; exec >&- 2>&-; while [ ! -e go ]; do sleep 0.05; done; exit 7", cwd=shim.directory)
    mirror = Mirror()
    mirror.follow(shim, until=lambda m: m.files.get("log") == b"last\n")
    assert shim.message() is None
    (shim.directory / "go").touch()
    assert mirror.follow(shim).ending["exit"] == 7
    assert shim.end() == 7


def test_the_first_process_of_a_namespace_takes_signals_and_reaps(shim):
    under = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"] + (["-r"] if os.geteuid() else [])
    if subprocess.run([*under, "true"], capture_output=True).returncode:
        pytest.skip("no PID namespaces here")
    shim.shell("trap 'exit 9' TERM; (sleep 1000 &); echo $PPID; while :; do sleep 0.05; done", under=under)
    eventually(lambda: shim.directory.joinpath("logs/log").exists() and shim.log, "up")
    assert shim.log == b"1\n"
    assert shim.ask("/signal?number=15") == 204
    assert Mirror().follow(shim).ending["exit"] == 9
    assert shim.end() == 9


# -- the log


def test_a_flood_arrives_to_the_byte_although_its_reader_is_slow(shim):
    command, size, digest = flood(100)
    shim.start(*command)
    mirror = Mirror().follow(shim, until=lambda m: len(m.files.get("log", b"")) > 1 << 20, pause=0.05)
    assert shim.await_message()["log"] == size, "the task did not wait for its reader"
    mirror.follow(shim)
    assert (mirror.sizes["log"], len(mirror.file("log"))) == (size, size)
    assert hashlib.sha256(mirror.file("log")).hexdigest() == digest
    assert shim.end() == 0


def test_a_stream_that_breaks_is_followed_by_one_that_gives_every_byte_once(shim):
    command, size, digest = flood(20)
    shim.start(*command)
    mirror = Mirror()
    for part in range(1, 8):
        mirror.follow(shim, until=lambda m: len(m.files.get("log", b"")) > part * size // 8)
    mirror.follow(shim)
    assert hashlib.sha256(mirror.file("log")).hexdigest() == digest
    assert mirror.pid and shim.end() == 0


def test_a_second_stream_ends_the_first(shim):
    shim.shell("echo here; while [ ! -e go ]; do sleep 0.05; done", cwd=shim.directory)
    first = Stream(shim)
    mirror = Mirror().follow(shim, until=lambda m: m.files.get("log"))
    while first.read() is not None:
        pass
    (shim.directory / "go").touch()
    mirror.follow(shim)
    assert shim.end() == 0


def test_an_offset_beyond_the_log_is_refused(shim):
    shim.shell("echo here")
    shim.await_message()
    assert shim.ask("/stream", "log 6\n") == 409
    assert shim.ask("/stream", "log\n") == 400
    assert shim.ask("/stream", "log -1\n") == 400
    Mirror().follow(shim)
    assert shim.end() == 0


def test_what_is_over_the_limit_of_the_log_is_counted(shim):
    shim.environment["MYELIN_SHIM_LOG_LIMIT"] = "100000"
    shim.start("/usr/bin/head", "-c", "1000000", "/dev/zero")
    mirror = Mirror().follow(shim)
    assert (mirror.sizes["log"], mirror.lost) == (100000, 900000)
    assert (mirror.ending["log"], mirror.ending["lost"]) == (1000000, 900000)
    assert shim.end() == 0


def test_a_volume_that_takes_no_more_does_not_hold_up_the_task(shim):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))

    shim.shell("for i in $(seq 100); do printf %01000d 7; sleep 0.01; done", stdout=subprocess.PIPE, preexec_fn=small_files)
    shown = shim.process.stdout.read(100000)
    assert len(shown) == 100000, "stdout has what the volume did not take"
    mirror = Mirror().follow(shim)
    assert (len(mirror.file("log")), mirror.lost) == (65536, 100000 - 65536)
    assert shim.end() == 0


def test_a_directory_that_cannot_be_written_does_not_hold_up_the_task(shim):
    shim.environment["MYELIN_SHIM_DIRECTORY"] = "/proc/nowhere"
    shim.environment["MYELIN_SHIM_MESSAGE"] = "/proc/nowhere/message"
    shim.shell("echo kept by stdout; exit 8", stdout=subprocess.PIPE)
    mirror = Mirror().follow(shim)
    assert mirror.lost == 15 and mirror.ending["exit"] == 8
    assert shim.end() == 8
    assert shim.process.stdout.read() == b"kept by stdout\n"


def test_a_stdout_that_nobody_reads_holds_nothing_up_and_is_late_only(shim):
    command, size, digest = flood(10)
    shim.start(*command, stdout=subprocess.PIPE)
    assert shim.await_message()["exit"] == 0
    mirror = Mirror().follow(shim)
    assert hashlib.sha256(mirror.file("log")).hexdigest() == digest
    shown = shim.process.stdout.read(size)
    assert hashlib.sha256(shown).hexdigest() == digest
    assert shim.end() == 0


def test_a_stdout_that_is_gone_hurts_nobody(shim):
    shim.shell("while [ ! -e go ]; do sleep 0.05; done; echo after", stdout=subprocess.PIPE, cwd=shim.directory)
    shim.process.stdout.close()
    (shim.directory / "go").touch()
    assert Mirror().follow(shim).file("log") == b"after\n"
    assert shim.end() == 0


# -- the spool


def records(segment):
    """The records of a segment, as (type, length)."""
    at, found = 128, []
    while at + 8 <= len(segment):
        word = struct.unpack_from("<Q", segment, at)[0]
        if word == 0:
            break
        length = word >> 32 & 0xFFFFFF
        found.append((word >> 56, length))
        at += 8 + (length + 7 & ~7)
    return found


def points(segments):
    """How many points they have, all of one name."""
    return sum(1 for segment in segments for kind, _ in records(segment) if kind in (2, 7))


@pytest.mark.parametrize("end", [(), ("abruptly",)])
def test_the_spool_is_mirrored_to_the_byte(shim, logger, end):
    shim.start(logger, 60000, 0, *end)
    mirror = Mirror().follow(shim)
    spool = {f"spool/{path.name}": path.read_bytes() for path in (shim.directory / "spool").iterdir()}
    used = {name: held for name, held in spool.items() if records(held)}
    assert len(used) > 2
    assert {name: mirror.file(name) for name in mirror.files if name.startswith("spool/")} == used
    assert points(used.values()) == 60000
    assert shim.end() == 0


def test_a_spool_that_grows_is_mirrored_and_what_is_acknowledged_whole_is_removed(shim, logger):
    shim.shell(f"{logger} 100000 0; while [ ! -e go ]; do sleep 0.05; done; {logger} 50000 0", cwd=shim.directory)
    mirror = Mirror()
    mirror.follow(shim, until=lambda m: points(map(m.file, m.sizes)) == 100000, acknowledges=True)
    eventually(lambda: not list((shim.directory / "spool").iterdir()), "removed")
    (shim.directory / "go").touch()
    for count in (110000, 130000):  # break off in the middle
        mirror.follow(shim, until=lambda m: points(map(m.file, (n for n in m.files if n != "log"))) > count)
    mirror.follow(shim, acknowledges=True)
    assert points(mirror.file(name) for name in mirror.sizes if name != "log") == 150000
    assert all(states[-1] in (2, 3) for states in mirror.heads.values())
    assert not list((shim.directory / "spool").iterdir())
    assert shim.end() == 0


@pytest.mark.parametrize("pause_us", [150, 0])
def test_a_spool_that_cannot_be_opened_for_a_moment_comes_later(shim, logger, pause_us):
    """Also where the moment is that of its end."""
    shim.shell(f"while [ ! -e go ]; do sleep 0.05; done; exec {logger} 10000 {pause_us}", cwd=shim.directory)
    mirror = Mirror()
    with Stream(shim) as stream:
        mirror.take(stream.read())
        hard = resource.prlimit(shim.process.pid, resource.RLIMIT_NOFILE)[1]
        if pause_us:
            (shim.directory / "go").touch()
            while not any(name.startswith("spool/") for name in mirror.files):
                mirror.take(stream.read())
        resource.prlimit(shim.process.pid, resource.RLIMIT_NOFILE, (3, hard))
        (shim.directory / "go").touch()
        time.sleep(3)
        resource.prlimit(shim.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
        while not mirror.is_done:
            mirror.take(stream.read())
    assert points(mirror.file(name) for name in mirror.sizes if name.startswith("spool/")) == 10000
    assert shim.end() == 0


def test_a_segment_is_not_removed_by_an_acknowledgement_of_its_records_alone(shim, logger):
    shim.start(logger, 60000, 0)
    mirror = Mirror().follow(shim)
    before = sorted((shim.directory / "spool").iterdir())
    assert shim.ask("/ack", "".join(f"{name} {len(held)}\n" for name, held in mirror.files.items())) == 204
    assert sorted((shim.directory / "spool").iterdir()) == before
    assert shim.ask("/ack", "".join(f"{name} {mirror.sizes[name]}\n" for name in mirror.files)) == 204
    assert not [path for path in (shim.directory / "spool").iterdir() if records(path.read_bytes())]
    assert shim.end() == 0


def test_the_python_package_logs_through_a_shim(shim):
    shim.environment["PYTHONPATH"] = str(ROOT / "sdk" / "python")
    shim.start(PYTHON, "-c", "import myelin\nrun = myelin.init()\nfor i in range(5000): run.log(loss=i / 2)")
    mirror = Mirror().follow(shim)
    assert points(mirror.file(name) for name in mirror.sizes if name.startswith("spool/")) == 5000
    assert shim.end() == 0


def test_what_is_no_segment_is_sent_after_the_end_and_what_is_no_file_is_not(shim):
    spool = shim.directory / "spool"
    (spool / "1-ab-000000.spool").write_bytes(b"not a segment" * 10000)
    os.mkfifo(spool / "2-ab-000000.spool")
    (spool / "3-ab-000000.spool").symlink_to("/etc/passwd")
    (spool / "other.txt").write_text("other")
    (spool / "4-ab-000000.spool").mkdir()
    shim.shell("sleep 1.2")
    mirror = Mirror().follow(shim)
    assert mirror.order == ["log", "spool/1-ab-000000.spool", "ENDED"]
    assert mirror.file("spool/1-ab-000000.spool") == b"not a segment" * 10000
    assert shim.end() == 0


# -- outputs


def make_outputs(shim):
    outputs = shim.directory / "outputs"
    files = {
        "a": b"",
        "b c.txt": b"with a space",
        "deep/er/large.bin": os.urandom(300000),
        "deep/z": b"z",
        "new\nline": b"cannot be named",
        "zz": b"last",
        "ünïcode": b"8 bits",
    }
    for name, held in files.items():
        (outputs / name).parent.mkdir(parents=True, exist_ok=True)
        (outputs / name).write_bytes(held)
    (outputs / "link").symlink_to("/etc/passwd")
    (outputs / "way out").symlink_to("/etc")
    os.mkfifo(outputs / "fifo")
    shim.environment["MYELIN_SHIM_OUTPUTS"] = "1"
    return {"outputs/" + name: held for name, held in files.items()}


def test_outputs_come_after_the_end_in_order_and_without_links(shim):
    files = make_outputs(shim)
    shim.shell("echo hello")
    mirror = Mirror().follow(shim)
    assert {name: mirror.file(name) for name in mirror.files if name != "log"} == files
    assert mirror.order == ["log", "ENDED", *sorted(files, key=lambda name: name.encode().split(b"/"))], "the end stands before the outputs"
    assert shim.end() == 0 and shim.message()["unsent"] == 0


def test_outputs_that_cannot_be_read_are_counted(shim):
    files = make_outputs(shim)
    outputs = shim.directory / "outputs"
    deep = os.open(outputs, os.O_RDONLY)
    for _ in range(21):  # deeper than any path leads
        os.mkdir("d" * 200, dir_fd=deep)
        deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = deeper
    os.close(deep)
    (outputs / "secret").write_bytes(b"x")
    (outputs / "closed").mkdir()
    (outputs / "closed" / "file").write_bytes(b"x")
    (outputs / "secret").chmod(0)
    (outputs / "closed").chmod(0)
    readable = os.access(outputs / "secret", os.R_OK)  # root may
    shim.shell("true")
    mirror = Mirror().follow(shim)
    (outputs / "closed").chmod(0o700)
    subprocess.run(["rm", "-rf", str(outputs / ("d" * 200))], check=True)
    found = {name: mirror.file(name) for name in mirror.files if name.startswith("outputs/")}
    assert found == {**files, **({"outputs/secret": b"x", "outputs/closed/file": b"x"} if readable else {})}
    assert mirror.unread == (1 if readable else 3)
    assert shim.end() == 0


def test_outputs_go_on_where_a_stream_broke_off(shim):
    files = make_outputs(shim)
    shim.shell("true")
    mirror = Mirror()
    mirror.follow(shim, until=lambda m: len(m.files.get("outputs/deep/er/large.bin", b"")) > 100000)
    mirror.files.pop("outputs/new\nline", None)
    large = len(mirror.file("outputs/deep/er/large.bin"))
    with Stream(shim, mirror.offsets()) as stream:
        first = next(frame for frame in iter(stream.read, None) if frame[1] == "outputs/deep/er/large.bin")
    assert first[3] == large
    mirror.sizes.clear()
    mirror.follow(shim)
    assert {name: mirror.file(name) for name in mirror.files if name != "log"} == files
    assert shim.end() == 0


def test_outputs_on_a_volume_that_lasts_are_not_sent(shim):
    make_outputs(shim)
    del shim.environment["MYELIN_SHIM_OUTPUTS"]
    shim.shell("true")
    assert Mirror().follow(shim).order == ["log", "ENDED"]
    assert shim.end() == 0


# -- the end


def test_nobody_who_comes_is_waited_for_only_so_long(shim):
    files = make_outputs(shim)
    shim.environment["MYELIN_SHIM_LINGER"] = "1"
    shim.shell("echo hello; exit 3")
    assert shim.wait() == 3
    assert shim.message() == {"exit": 3, "log": 6, "lost": 0, "unsent": 6 + sum(map(len, files.values()))}


def test_what_was_acknowledged_does_not_count_as_unsent(shim):
    files = make_outputs(shim)
    shim.environment["MYELIN_SHIM_LINGER"] = "2"
    shim.shell("echo hello")
    mirror = Mirror().follow(shim)
    body = "".join(f"{name} {at}\n" for name, at in mirror.offsets().items() if "\n" not in name)
    assert shim.ask("/ack", body) == 204
    assert shim.wait() == 0
    assert shim.message()["unsent"] == len(files["outputs/new\nline"])


def test_an_end_that_comes_while_the_shim_leaves_counts(shim):
    """It leaves for a second where its stdout is not taken."""
    shim.environment["MYELIN_SHIM_LINGER"] = "1"
    shim.start("/usr/bin/head", "-c", "1000000", "/dev/zero", stdout=subprocess.PIPE)
    assert shim.await_message()["unsent"] > 0
    time.sleep(1.3)
    try:
        assert shim.ask("/end") == 204
    except OSError:
        pytest.skip("it was gone before it was asked")
    assert shim.wait() == 0 and shim.message()["unsent"] == 0


def test_a_stream_that_moves_is_waited_for(shim):
    """The reader takes several times as long as the shim lingers."""
    shim.environment["MYELIN_SHIM_LINGER"] = "2"
    command, size, digest = flood(20)
    shim.start(*command)
    shim.await_message()
    mirror = Mirror().follow(shim, pause=0.02)
    assert hashlib.sha256(mirror.file("log")).hexdigest() == digest
    assert shim.end() == 0


def test_the_stream_says_that_it_lives(shim):
    shim.shell("while [ ! -e go ]; do sleep 0.05; done", cwd=shim.directory)
    with Stream(shim) as stream:
        assert [stream.read()[0] for _ in range(3)] == [2, 6, 6]
    (shim.directory / "go").touch()
    Mirror().follow(shim)
    assert shim.end() == 0


def test_the_gang_hears_of_the_end(shim):
    shim.shell("while [ ! -e go ]; do sleep 0.05; done; exit 5", cwd=shim.directory)
    shim.connect().close()
    connection = http.client.HTTPConnection("127.0.0.1", shim.port, timeout=SECONDS)
    connection.request("POST", "/gang", headers={"Myelin-Key": KEY})
    answer = connection.getresponse()
    assert answer.readline() == b"running\n" == answer.readline()
    (shim.directory / "go").touch()
    lines = answer.read().splitlines()
    assert lines[-1] == b"ended 5" and set(lines[:-1]) <= {b"running"}
    connection.close()
    connection = http.client.HTTPConnection("127.0.0.1", shim.port, timeout=SECONDS)
    connection.request("POST", "/gang", headers={"Myelin-Key": KEY})
    assert connection.getresponse().read() == b"ended 5\n"
    connection.close()
    assert shim.end() == 5


def test_who_comes_to_the_gang_is_told_and_the_others_in_their_time(shim):
    shim.shell("while [ ! -e go ]; do sleep 0.05; done", cwd=shim.directory)
    request = f"POST /gang HTTP/1.1\r\nHost: x\r\nMyelin-Key: {KEY}\r\n\r\n".encode()

    def come():
        connection = shim.connect()
        connection.sendall(request)
        heard = b""
        while not heard.endswith(b"running\n\r\n"):
            heard += connection.recv(4096)
        return connection

    all_of_them = [come() for _ in range(20)]
    time.sleep(6)
    heard = [connection.recv(4096).count(b"running") for connection in all_of_them]
    assert set(heard) <= {1, 2}, "as time says, not as often as somebody came"
    for connection in all_of_them:
        connection.close()
    (shim.directory / "go").touch()
    Mirror().follow(shim)
    assert shim.end() == 0


# -- strangers


def test_who_does_not_bear_the_key_learns_nothing(shim):
    shim.shell("while [ ! -e go ]; do sleep 0.05; done", cwd=shim.directory)
    for key in (None, "", KEY[:-1], KEY + "0", KEY.lower(), KEY[:-1] + "0"):
        for path in ("/stream", "/ack", "/end", "/gang", "/signal?number=9", "/nothing"):
            assert shim.ask(path, key=key) == 403
    assert shim.ask("/nothing") == 404
    assert shim.ask("/stream", method="GET") == 405
    (shim.directory / "go").touch()
    Mirror().follow(shim)
    assert shim.end() == 0


@pytest.mark.parametrize(
    "sent, status",
    [
        (b"\r\n\r\n", 400),
        (b"hello\r\n\r\n", 400),
        (b"POST /ack HTTP/2\r\n\r\n", 400),
        (b"POST ack HTTP/1.1\r\n\r\n", 400),
        (b"POST /ack HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        (b"POST /ack HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST /ack HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /ack HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"POST /ack HTTP/1.1\r\nA: b\n\r\n\r\n", 400),
        (b"POST /ack HTTP/1.1\r\nMyelin-Key : x\r\n\r\n", 400),
        (b"POST /ack HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n", 413),
        (b"POST /" + b"a" * 1024 + b" HTTP/1.1\r\n\r\n", 414),
        (b"POST /ack HTTP/1.1\r\nA: " + b"b" * 20000, 431),
        (b"POST /ack HTTP/1.1\r\nMyelin-Key: " + KEY.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /ack HTTP/1.1\r\nMyelin-Key: " + KEY.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"80000\r\n" + b"x" * 0x80000 + b"\r\n") * 3, 413),
    ],
)
def test_what_is_no_request_is_answered_and_ends_the_connection(shim, sent, status):
    shim.shell("while [ ! -e go ]; do sleep 0.05; done", cwd=shim.directory)
    with shim.connect() as connection:
        connection.sendall(sent)
        answer = b""
        while got := connection.recv(65536):
            answer += got
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    (shim.directory / "go").touch()
    Mirror().follow(shim)
    assert shim.end() == 0


def test_a_connection_is_kept_and_takes_bodies_in_chunks_and_requests_in_a_row(shim):
    shim.shell("echo hello; while [ ! -e go ]; do sleep 0.05; done", cwd=shim.directory)
    shim.connect().close()
    connection = http.client.HTTPConnection("127.0.0.1", shim.port, timeout=SECONDS)
    for body in (b"log 3\n", iter([b"log", b" 4", b"\nspool/x 5\n"]), b"", iter([b"x" * 600 + b" 1\n"] * 1000)):
        chunked = not isinstance(body, bytes)
        connection.request("POST", "/ack", body, headers={"Myelin-Key": KEY}, encode_chunked=chunked)
        answer = connection.getresponse()
        assert answer.status == 204 and answer.read() == b""
    connection.close()
    head = f"POST /ack HTTP/1.1\r\nHost: a\r\nMyelin-Key: {KEY}\r\n".encode()
    with shim.connect() as bare:
        bare.sendall((head + b"Content-Length: 6\r\n\r\nlog 1\n") * 20 + head + b"Connection: close\r\n\r\n")
        answers = b""
        while got := bare.recv(65536):
            answers += got
    assert answers.count(b"HTTP/1.1 204 ") == 21
    with shim.connect() as bare:
        for byte in head + b"Expect: 100-continue\r\nContent-Length: 6\r\nConnection: close\r\n\r\n":
            bare.sendall(bytes([byte]))
        assert bare.recv(1000).startswith(b"HTTP/1.1 100 ")
        bare.sendall(b"log 2\n")
        assert bare.recv(1000).startswith(b"HTTP/1.1 204 ")
    (shim.directory / "go").touch()
    Mirror().follow(shim)
    assert shim.end() == 0


def test_strangers_who_hold_connections_keep_nobody_out(shim):
    shim.shell("while [ ! -e go ]; do echo line; sleep 0.01; done", cwd=shim.directory)
    strangers = [shim.connect() for _ in range(400)]
    for stranger in strangers:
        try:
            stranger.sendall(b"POST /stream HTTP/1.1\r\nA: ")
        except OSError:
            pass
    mirror = Mirror().follow(shim, until=lambda m: len(m.files.get("log", b"")) > 100)
    (shim.directory / "go").touch()
    mirror.follow(shim)
    for stranger in strangers:
        stranger.close()
    assert mirror.file("log") == shim.log
    assert shim.end() == 0
