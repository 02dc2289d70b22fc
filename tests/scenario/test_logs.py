# SPDX-License-Identifier: Apache-2.0
"""The logs of a run are whole, in the order of time, and can be read while and after it runs."""
import datetime
import json
import os
import re
import struct
import subprocess
import time

import pytest
from conftest import PROGRAM
from shapes import assert_shape
from terminals import on_terminal, visible

RECORD = struct.Struct("<qQ")
GAP = 1 << 63


def logs_of(scenario, run="1"):
    return scenario.home / "runs" / run / "logs"


def logs(scenario, *arguments, **options):
    return scenario.finish(scenario.start("logs", *arguments, **options))


def started(scenario, job):
    """Starts a run and leaves it; gives its id."""
    ended = subprocess.run([str(PROGRAM), "run", "-d", str(job)], cwd=scenario.directory, env=scenario.environment,
                           stdout=subprocess.PIPE, check=True, timeout=20)
    return ended.stdout.decode().strip()


def wait_for_end(scenario, run):
    subprocess.run([str(PROGRAM), "logs", run, "-f"], cwd=scenario.directory, env=scenario.environment,
                   stdout=subprocess.DEVNULL, check=True, timeout=20)


# ---- what is kept

def test_a_log_is_the_output_byte_for_byte(scenario):
    scenario.write("make.py", """
        import os, random, sys
        random.seed(7)
        data = bytes(random.randrange(256) for _ in range(300000)) + b"x" * 1048576 + b"\\n" + b"end"
        open("wanted", "wb").write(data)
        os.write(1, b"")
        sys.stdout.buffer.write(data)
        """)
    ended = scenario.run(scenario.job("/usr/bin/python3 make.py"), "--plain")
    wanted = (scenario.directory / "wanted").read_bytes()
    assert ended.status == 0
    assert (logs_of(scenario) / "master.0.log").read_bytes() == wanted
    assert logs(scenario, "1", "master.0").out_bytes == wanted
    assert logs(scenario, "1").out_bytes == wanted  # of a single task the bytes are as they are


def test_an_index_says_when_each_part_came(scenario):
    cmd = scenario.script("for i in 1 2 3 4; do echo line $i; date +%s.%N >> times; sleep 0.2; done")
    assert scenario.run(scenario.job(cmd)).status == 0
    records = list(RECORD.iter_unpack((logs_of(scenario) / "master.0.idx").read_bytes()))
    times = [float(line) for line in (scenario.directory / "times").read_text().split()]
    assert [offset for _, offset in records] == [0, 7, 14, 21], records
    for (microseconds, _), wanted in zip(records, times):
        assert abs(microseconds / 1e6 - wanted) < 0.15, (records, times)


def test_a_task_that_floods_does_not_keep_another_waiting(scenario):
    cmd = scenario.script("""
        if [ $RANK = 0 ]; then exec timeout 1.2 yes "$(head -c 2000 /dev/zero | tr '\\0' x)"; fi
        for i in 1 2 3 4 5 6 7 8 9 10; do echo ping $i; sleep 0.1; done
        """)
    ended = scenario.run(scenario.job(cmd, "pytorch", workers=1), "--json", stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    (logs_of(scenario) / "master.0.log").unlink()  # it is large
    assert ended.status == 124, ended
    records = [time for time, _ in RECORD.iter_unpack((logs_of(scenario) / "worker.0.idx").read_bytes())]
    # Each was read soon after it was written: not all of them when the flood was over.
    assert len(records) >= 5, records


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small file system")
def test_a_full_disk_holds_up_nobody_and_the_gap_is_told(scenario):
    scenario.home.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", scenario.home]).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        filler = scenario.home / "filler"
        cmd = scenario.script(f"""
            echo before
            head -c 1900000 /dev/zero > {filler} || :
            head -c 600000 /dev/zero | tr '\\0' x
            rm {filler}; sleep 0.1
            echo; echo after
            """)
        ended = scenario.run(scenario.job(cmd))
        assert ended.status == 0, ended
        assert "cannot be written" in ended.err
        shown = logs(scenario, "1")
        log = (logs_of(scenario) / "master.0.log").read_bytes()
        lost = sum(int(n) for n in re.findall(r"\[… (\d+) bytes were lost here …\]", shown.out))
        assert log.startswith(b"before\n") and log.endswith(b"after\n")
        assert lost > 0 and lost + log.count(b"x") == 600000, (lost, len(log))
        assert shown.out.index("lost here") < shown.out.index("after")
    finally:
        subprocess.run(["umount", "-l", scenario.home], check=True)


# ---- what is shown

def test_logs_of_several_tasks_are_in_the_order_of_time(scenario):
    cmd = scenario.script("sleep 0.$((RANK * 2)); for i in 1 2 3; do echo $RANK.$i; sleep 0.6; done")
    job = scenario.job(cmd, "pytorch", workers=2)
    assert scenario.run(job).status == 0
    shown = [line.split("│ ")[1] for line in logs(scenario, "@").out.splitlines()]
    assert shown == [f"{rank}.{i}" for i in (1, 2, 3) for rank in (0, 1, 2)]


def test_tasks_are_chosen_by_name_role_and_rank(scenario):
    assert scenario.run(scenario.job(scenario.script("echo I am $RANK"), "pytorch", workers=2)).status == 0
    assert logs(scenario, "@", "worker.1").out == "I am 2\n"
    assert logs(scenario, "@", "--rank", "1").out == "I am 1\n"
    both = sorted(logs(scenario, "@", "worker").out.splitlines())  # either may have been first
    assert both == ["worker.0 │ I am 1", "worker.1 │ I am 2"]
    for wrong in (["worker.7"], ["--rank", "3"], ["--rank", "x"]):
        ended = logs(scenario, "@", *wrong)
        assert ended.status == 1 and ended.out == "" and "has no" in ended.err, ended
    assert logs(scenario, "99").status == 1
    assert logs(scenario).status == 2


def test_a_tail_is_the_last_lines_of_each_task(scenario):
    assert scenario.run(scenario.job(scenario.script("seq 1 100000"), "pytorch", workers=1)).status == 0
    ended = logs(scenario, "@", "--tail", "2")
    for task in ("master.0", "worker.0"):
        assert ended.lines_of(task) == ["99999", "100000"], ended
    assert logs(scenario, "@", "worker.0", "--tail", "0").out == ""
    assert logs(scenario, "@", "worker.0", "--tail", "1000000").out.count("\n") == 100000
    assert logs(scenario, "@", "--tail", "-1").status == 2


def test_since_starts_at_a_time(scenario):
    assert scenario.run(scenario.job(scenario.script("echo old; sleep 1.2; echo new; date -u +%FT%T.%NZ > at"))).status == 0
    at = datetime.datetime.fromisoformat((scenario.directory / "at").read_text()[:26] + "+00:00")
    split = at - datetime.timedelta(seconds=0.6)
    age = (datetime.datetime.now(datetime.timezone.utc) - split).total_seconds()
    for since in (f"{age:.3f}s", split.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                  (split + datetime.timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%S.%f+02:00")):
        assert logs(scenario, "@", "--since", since).out == "new\n", since
    assert logs(scenario, "@", "--since", "1h").out == "old\nnew\n"
    assert logs(scenario, "@", "--since", "2100-01-01").out == ""
    assert logs(scenario, "@", "--since", "2024-02-29").out == "old\nnew\n"
    for wrong in ("yesterday", "5x", "-3s", "2026-13-01", "2026-02-31", "2026-02-29T12:00:00Z", "2026-03-01T12:00+-9:00",
                  "2026-03-01T12:00.5Z", "2026-03", ""):
        ended = logs(scenario, "@", "--since", wrong)
        assert ended.status == 2 and "--since takes" in ended.err, wrong


def test_timestamps_are_those_of_the_index(scenario):
    assert scenario.run(scenario.job(scenario.script("echo a; sleep 0.3; echo b"))).status == 0
    lines = logs(scenario, "@", "--timestamps").out.splitlines()
    records = list(RECORD.iter_unpack((logs_of(scenario) / "master.0.idx").read_bytes()))
    for line, (microseconds, _), text in zip(lines, records, "ab"):
        when = datetime.datetime.fromtimestamp(microseconds // 1000 / 1e3, datetime.timezone.utc)
        assert line == when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{microseconds // 1000 % 1000:03d}Z {text}"


def test_a_log_without_an_index_is_shown_without_times(scenario):
    assert scenario.run(scenario.job(scenario.script("echo a"), "pytorch", workers=1)).status == 0
    (logs_of(scenario) / "worker.0.idx").unlink()
    ended = logs(scenario, "@", "-t")
    assert ended.status == 0
    assert re.search(r"^- +worker.0 │ a$", ended.out, re.M), ended
    status, out = on_terminal(scenario, "logs", "@")
    assert status == 0 and sorted(line[-3:] for line in visible(out) if line) == ["│ a", "│ a"], out


def test_following_goes_on_until_the_run_is_over(scenario):
    cmd = scenario.script("echo first; while [ ! -e go ]; do sleep 0.05; done; printf last")
    run = started(scenario, scenario.job(cmd, "pytorch", workers=1))
    process = scenario.start("logs", run, "-f")
    lines = sorted(process.stdout.readline() for _ in range(2))
    assert lines == [b"master.0 \xe2\x94\x82 first\n", b"worker.0 \xe2\x94\x82 first\n"]
    (scenario.directory / "go").touch()
    ended = scenario.finish(process)
    assert ended.status == 0
    assert sorted(ended.out.splitlines()) == ["master.0 │ last", "worker.0 │ last"], ended


@pytest.mark.parametrize("how", [["--tail", "2"], ["--since", "1s"], ["--tail", "0"]])
def test_following_starts_where_it_is_told_to(scenario, how):
    cmd = scenario.script("seq 1 9; touch old; sleep 1.5; seq 10 11; touch up; while [ ! -e go ]; do sleep 0.05; done; echo last")
    run = started(scenario, scenario.job(cmd))
    scenario.wait_for("up")
    process = scenario.start("logs", run, "-f", *how)
    if how != ["--tail", "0"]:
        assert process.stdout.readline() + process.stdout.readline() == b"10\n11\n"
    else:
        time.sleep(1)
    (scenario.directory / "go").touch()
    ended = scenario.finish(process)
    assert ended.status == 0 and ended.out == "last\n", ended


@pytest.mark.parametrize("how", [[], ["--json"], ["-f"]])
def test_lines_that_cannot_be_written_are_a_failure(scenario, how):
    assert scenario.run(scenario.job(scenario.script("echo a"), "pytorch", workers=1)).status == 0
    with open("/dev/full", "wb") as full:
        ended = logs(scenario, "@", *how, stdout=full)
        assert ended.status == 1 and "No space left" in ended.err, ended


def test_a_run_whose_lines_cannot_be_written_says_so_and_keeps_its_status(scenario):
    with open("/dev/full", "wb") as full:
        ended = scenario.run(scenario.job(scenario.script("echo a; exit 7")), stdout=full)
    assert ended.status == 7 and ended.err.count("No space left") == 1, ended


@pytest.mark.parametrize("cmd", ["echo first; while :; do echo more; sleep 0.05; done", "echo first; sleep 600"])
def test_following_ends_when_nobody_reads_any_more(scenario, cmd):
    run = started(scenario, scenario.job(scenario.script(cmd)))
    process = scenario.start("logs", run, "-f")
    assert process.stdout.readline() == b"first\n"
    process.stdout.close()
    assert process.wait(timeout=10) == 0 and process.stderr.read() == b""
    process.stderr.close()
    subprocess.run([str(PROGRAM), "kill", run], env=scenario.environment, check=True, timeout=20)


@pytest.mark.parametrize("command", ["logs -f", "attach --from-start"])
def test_without_notifications_a_run_is_followed_more_slowly(scenario, command):
    script = 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"'
    without = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh"]
    if subprocess.run([*without, "true"], capture_output=True).returncode != 0:
        pytest.skip("no user namespace can be made here")
    cmd = scenario.script("echo first; while [ ! -e go ]; do sleep 0.05; done; echo last")
    run = started(scenario, scenario.job(cmd))
    verb, option = command.split()
    process = scenario.start(verb, run, option, under=without)
    assert b"first" in process.stdout.readline()
    (scenario.directory / "go").touch()
    ended = scenario.finish(process)
    assert ended.status == 0 and "last" in ended.out, ended


# ---- for programs

def objects(out):
    found = [json.loads(line) for line in out.splitlines()]
    for value in found:
        assert_shape(value, "Lines of logs")
    return found


def texts(scenario, *arguments):
    ended = logs(scenario, *arguments, "--json")
    assert ended.status == 0, ended
    return [value["text"] for value in objects(ended.out)]


def test_a_script_gets_each_line_with_its_task_rank_and_time(scenario):
    cmd = scenario.script("sleep 0.$((RANK * 3)); echo I am $RANK; printf 'no end'")
    assert scenario.run(scenario.job(cmd, "pytorch", workers=1)).status == 0
    ended = logs(scenario, "@", "--json")
    lines = objects(ended.out)
    assert [(line["task"], line["rank"], line["text"]) for line in lines] == [
        ("master.0", 0, "I am 0"), ("worker.0", 1, "I am 1"),
        ("master.0", 0, "no end"), ("worker.0", 1, "no end")]
    stamps = logs(scenario, "@", "--timestamps").out.splitlines()
    assert [line["time"] for line in lines] == [stamp.split(" ")[0] for stamp in stamps]
    assert texts(scenario, "@", "worker.0", "--tail", "1") == ["no end"]
    assert texts(scenario, "@", "--since", "2100-01-01") == []
    (logs_of(scenario) / "master.0.idx").unlink()
    assert {line["time"] for line in objects(logs(scenario, "@", "master.0", "--json").out)} == {None}


def test_a_script_gets_valid_json_of_any_bytes(scenario):
    cmd = scenario.python("""
        import os
        os.write(1, b'\\xff"\\\\\\x00\\x1b[31m\\t\\xc3\\xa9\\r\\n')
        os.write(1, bytes(range(256)) * 100)
    """)
    assert scenario.run(scenario.job(cmd), stdout=subprocess.DEVNULL).status == 0
    first, *rest = texts(scenario, "@")
    assert first == '\ufffd"\\\x00\x1b[31m\té\r'
    log = (logs_of(scenario) / "master.0.log").read_bytes().split(b"\n")[1:]
    assert [len(text) for text in rest] == [len(line) for line in log], "each bad byte is one U+FFFD"


def test_a_script_gets_a_line_without_bounds_in_pieces_that_part_no_character(scenario):
    cmd = scenario.python("""
        import sys
        sys.stdout.write("x" + "é" * 100000 + "\\nend\\n")
    """)
    assert scenario.run(scenario.job(cmd), stdout=subprocess.DEVNULL).status == 0
    lines = objects(logs(scenario, "@", "--json").out)
    assert [line.get("goes_on", False) for line in lines] == [True] * (len(lines) - 2) + [False, False]
    assert len(lines) > 3 and "".join(line["text"] for line in lines[:-1]) == "x" + "é" * 100000


def test_a_script_is_told_where_bytes_were_lost(scenario):
    assert scenario.run(scenario.job(scenario.script("echo before; sleep 0.2; echo after"))).status == 0
    index = logs_of(scenario) / "master.0.idx"
    records = list(RECORD.iter_unpack(index.read_bytes()))
    at = len("before\n")
    index.write_bytes(b"".join(RECORD.pack(*record) for record in [records[0], (1234, at | GAP), *records[1:]]))
    before, gap, after = objects(logs(scenario, "@", "--json").out)
    assert (before["text"], gap["text"], after["text"]) == ("before", None, "after")
    assert gap["lost_bytes"] == 1234 and "lost_bytes" not in after


def test_a_script_can_follow(scenario):
    cmd = scenario.script("echo first; while [ ! -e go ]; do sleep 0.05; done; printf last")
    run = started(scenario, scenario.job(cmd))
    process = scenario.start("logs", run, "-f", "--json")
    assert json.loads(process.stdout.readline())["text"] == "first", "it comes while the run goes on"
    (scenario.directory / "go").touch()
    ended = scenario.finish(process)
    assert ended.status == 0 and [line["text"] for line in objects(ended.out)] == ["last"], ended


def test_without_following_a_living_run_is_shown_as_far_as_it_is(scenario):
    cmd = scenario.script("yes & pid=$!; while [ ! -e go ]; do sleep 0.05; done; kill $pid; wait")
    run = started(scenario, scenario.job(cmd))
    scenario.wait_for("home/runs/*/logs/master.0.log")
    process = scenario.start("logs", run, stdout=subprocess.DEVNULL)
    assert process.wait(20) == 0
    (scenario.directory / "go").touch()
    wait_for_end(scenario, run)


def test_a_reader_of_logs_may_go_away(scenario):
    assert scenario.run(scenario.job(scenario.script("seq 1 300000")), stdout=subprocess.DEVNULL).status == 0
    process = scenario.start("logs", "@")
    assert process.stdout.readline() == b"1\n"
    process.stdout.close()
    process.stdout = None
    assert scenario.finish(process).err == ""
    logs(scenario, "@", under=["sh", "-c", 'exec "$@" >&-', "sh"])


# ---- on a terminal

TALK = "for i in 1 2 3; do echo same $i; echo mine $RANK $i; sleep 0.5; done"


def test_what_tasks_say_alike_is_folded_on_a_terminal(scenario):
    job = scenario.job(scenario.script(TALK), "pytorch", workers=3)
    status, out = on_terminal(scenario, "run", job)
    assert status == 0
    lines = visible(out)
    assert sum("same" in line for line in lines) < 12, out
    assert any(re.match(r"master\.0, worker\[0-2\] │ same \d$", line) for line in lines), out
    for rank in range(4):
        mine = [line.split("│ ")[1] for line in lines if f"mine {rank}" in line]
        assert mine == [f"mine {rank} {i}" for i in (1, 2, 3)], out
    status, again = on_terminal(scenario, "logs", "@")
    assert status == 0 and any(line.startswith("master.0, worker[0-2] │ same") for line in visible(again)), again


def test_elsewhere_and_with_plain_nothing_is_folded(scenario):
    job = scenario.job(scenario.script(TALK), "pytorch", workers=3)
    status, out = on_terminal(scenario, "run", job, "--plain")
    assert status == 0 and out.count("same") == 12 and "\x1b" not in out and "running" not in out, out
    piped = scenario.run(job)
    assert piped.out.count("same") == 12 and "\x1b" not in piped.out


def test_a_status_line_stands_below_and_is_gone_in_the_end(scenario):
    cmd = scenario.script("for i in 1 2 3 4 5; do echo tick $i; sleep 0.5; done")
    status, out = on_terminal(scenario, "run", scenario.job(cmd, "pytorch", workers=1))
    assert status == 0
    assert re.search(r"running · 2/2 tasks · (CPU \d+% · )?\d+ MiB · \d", out), out
    assert not any("tasks ·" in line for line in visible(out)), visible(out)


def test_the_status_line_tells_what_the_tasks_take_of_the_cpus(scenario):
    """Which takes two looks, and a busy machine is looked at more rarely."""
    cmd = scenario.script("while :; do :; done")
    status, out = on_terminal(scenario, "run", scenario.job(cmd), keys=(b"CPU ", b"\x03"))
    shown = re.search(r"running · 1/1 task · CPU (\d+)% · \d+ MiB · \d", out)
    assert status == 130 and shown and int(shown[1]) > 0, out


@pytest.mark.parametrize("columns, shown", [(38, r"running · \d/2 tasks · \d+ MiB · \d\.\ds"), (25, r"running · \d/2 tasks"),
                                            (10, r"running"), (7, None)])
def test_a_narrow_terminal_gets_as_much_of_the_status_line_as_fits(scenario, columns, shown):
    cmd = scenario.script("for i in 1 2 3 4; do sleep 0.5; done")
    status, out = on_terminal(scenario, "run", scenario.job(cmd, "pytorch", workers=1), columns=columns)
    drawn = re.findall("\x1b\\[2m(.*?)\x1b\\[0m\r", out)
    drawn = [line.replace("lingering", "running") for line in drawn]  # as one task may end long before the other
    assert status == 0 and bool(drawn) == bool(shown) and all(re.fullmatch(shown, line) for line in drawn), out


def test_a_progress_bar_is_seen_before_its_line_ends(scenario):
    cmd = scenario.script("for i in $(seq 1 30); do printf '\\r%d of 30' $i; sleep 0.1; done; echo; echo done")
    status, out = on_terminal(scenario, "run", scenario.job(cmd, "pytorch", workers=1))
    seen = re.findall(r"master\.0 │ (\d+) of 30\x1b\[\?7h", out)
    assert status == 0 and 2 <= len(set(seen)) <= 4 and seen == sorted(seen, key=int), out
    lines = [line for line in visible(out) if "│" in line]
    assert sum("30 of 30" in line for line in lines) in (1, 2) and len(lines) <= 4, lines
    assert scenario.run(scenario.job(cmd)).out.count("of 30") == 30


def test_an_interrupt_leaves_a_clean_terminal(scenario):
    cmd = scenario.script("while :; do echo tick; sleep 0.2; done")
    status, out = on_terminal(scenario, "run", scenario.job(cmd, "pytorch", workers=1), keys=(b"MiB", b"\x03"))
    assert status == 130
    lines = visible(out)
    assert not any("tasks ·" in line or "^C" in line for line in lines), lines
    assert any(line.startswith("myelin: SIGINT") for line in lines), lines
