# SPDX-License-Identifier: Apache-2.0
"""What is shown on a terminal: it cannot be controlled by what tasks write, and it is in order."""
import json
import re
import signal
import subprocess

import os
import pytest
from conftest import PROGRAM, compile_logger
from terminals import COLOUR, Terminal, columns_of, on_terminal, visible

# What a task may write to control the terminal of whoever looks at it.
HOSTILE = {
    "clipboard": b"\x1b]52;c;ZXZpbA==\x07",
    "title": b"\x1b]0;title\x1b\\\\",
    "clear": b"\x1b[2J\x1b[H",
    "up": b"\x1b[9A",
    "c1": b"\xc2\x9b2J",
    "raw c1": b"\x9b2J",
    "direction": "\u202egnp.exe\u202c \u2066x\u2069 \u200e\u200f\u061c".encode(),
    "long colour": b"\x1b[" + b"1;" * 200 + b"m",
}
DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u0080-\u009f]")
# What the status line and the views that are drawn again write themselves.
OWN = re.compile("\x1b\\[\\?7[lh]|\r\x1b\\[J|\x1b\\[A(?=\r)")


def hostile_job(scenario):
    lines = b"".join(b"%s %s\n" % (name.encode(), text) for name, text in HOSTILE.items())
    (scenario.directory / "hostile").write_bytes(b"begin\n\x1b[31mred\n" + lines + b"end\n")
    return scenario.job(scenario.script("cat hostile; exit 3"))


def assert_harmless(out):
    rest = COLOUR.sub("", OWN.sub("", out)).replace("\r\n", "\n")
    rest = rest.replace("\r", "")  # the status line
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", rest), repr(rest)
    assert not DIRECTION.search(rest), repr(rest)


@pytest.mark.parametrize("command", [["run", "job.yml"], ["run", "--plain", "job.yml"], ["logs", "@"],
                                     ["logs", "@", "--plain"], ["logs", "@", "-t"], ["logs", "@", "--json"],
                                     ["status", "@"], ["status", "@", "--json"], ["attach", "--from-start", "@"],
                                     ["attach", "--from-start", "--plain", "@"]])
def test_what_a_task_writes_cannot_control_the_terminal(scenario, command):
    job = hostile_job(scenario)
    if command[0] != "run":
        assert scenario.run(job).status == 3
    _, out = on_terminal(scenario, *command)
    assert "end" in out and "clipboard" in out, out
    assert_harmless(out)
    if "--json" not in command:
        assert "^[]52;c;ZXZpbA==^G" in COLOUR.sub("", out) and "<U+202E>gnp.exe" in COLOUR.sub("", out)
        # A colour that a task leaves on ends with its line.
        assert re.search("\x1b\\[31mred\x1b\\[0m", out)


def test_logs_into_a_pipe_are_byte_exact(scenario):
    assert scenario.run(hostile_job(scenario)).status == 3
    ended = scenario.finish(scenario.start("logs", "@", "master.0"))
    assert ended.out_bytes == (scenario.directory / "hostile").read_bytes()


def test_what_people_read_hides_nothing_in_a_pipe_either(scenario):
    assert scenario.run(hostile_job(scenario)).status == 3
    status = scenario.finish(scenario.start("status", "@"))
    wrong = scenario.finish(scenario.start("status", "a\u202eb\x1b[2J\u0085"))
    for text in (status.out, wrong.err):
        assert "\x1b" not in text and not DIRECTION.search(text), repr(text)
        assert "<U+202E>" in text and "^[[2J" in text
    as_json = scenario.finish(scenario.start("status", "@", "--json"))
    assert not DIRECTION.search(as_json.out) and "\\u202e" in as_json.out
    lines = json.loads(as_json.out)["first_failed"]["last_lines"]
    assert any("\u202egnp.exe" in line for line in lines)


def test_a_message_of_a_foreign_path_cannot_control_the_terminal(scenario):
    name = "x\x1b]52;c;ZXZpbA==\x07\u202e.yml"
    for command in ("run", "check", "plan"):
        _, out = on_terminal(scenario, command, name)
        assert_harmless(out)
        assert "^[]52" in COLOUR.sub("", out)


# ---- order


def shown_order(lines):
    """Pairs of the names and the text of each line."""
    return [(re.split(", ", names.strip()), text[1:]) for names, _, text in
            (line.partition("│") for line in lines) if text]


def test_lines_on_a_terminal_are_in_the_order_of_the_pipe(scenario):
    cmd = scenario.script("""
        wait_for() { until [ -e "$1" ]; do sleep 0.02; done; sleep 0.03; }
        case $MYELIN_TASK in
        master.0) echo master begins; echo same; : >one; wait_for two; echo master goes on; echo alike; : >three ;;
        *) wait_for one; echo worker begins; echo same; : >two; wait_for three; echo alike; echo worker ends ;;
        esac
    """)
    assert scenario.run(scenario.job(cmd, "pytorch", workers=1)).status == 0
    piped = shown_order(scenario.finish(scenario.start("logs", "@")).out.split("\n"))
    status, out = on_terminal(scenario, "logs", "@")
    assert status == 0
    places, taken = [], set()
    for names, text in shown_order(visible(out)):
        # Where the tasks of the line wrote it; what several wrote stands where the first of them did.
        mine = [next(i for i, (who, what) in enumerate(piped) if i not in taken and who == [name] and what == text)
                for name in names]
        taken.update(mine)
        places.append(min(mine))
    assert len(taken) == len(piped) == 8
    assert places == sorted(places), (visible(out), piped)


def test_what_eight_ranks_write_alike_is_one_line(scenario):
    cmd = scenario.script("""
        : >ready.$MYELIN_TASK
        until [ $(ls ready.* | wc -l) -eq 8 ]; do sleep 0.02; done
        echo epoch 1
    """)
    assert scenario.run(scenario.job(cmd, "pytorch", workers=7)).status == 0
    # The times are made equal: on a loaded machine they may lie further apart than lines are held.
    for index in (scenario.home / "runs" / "1" / "logs").glob("*.idx"):
        index.unlink()
    _, out = on_terminal(scenario, "logs", "@")
    assert [line.split("│")[1] for line in visible(out) if "│" in line] == [" epoch 1"], visible(out)


# ---- tables


@pytest.fixture(scope="module")
def logger(tmp_path_factory):
    return compile_logger(tmp_path_factory, r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "myelin.h"

/* Logs two metrics, one of a long and hostile name, and waits if it is told so. */
int main(int argc, char **argv) {
    struct myelin *m = myelin_open();
    const uint32_t names[2] = { myelin_name(m, "loss"),
                                myelin_name(m, "val/a_metric_with_a_name_that_takes_much_room/of_a_table") };

    for (int i = 0; i < 50; i++) {
        const double values[2] = { 1.0 / (i + 1), 123456.789 * i };

        myelin_log(m, names, values, 2, i, MYELIN_NOW);
    }
    (void)argv;
    while (argc > 1)
        pause();
    return 0;
}
""")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_view_wraps_a_line(scenario, logger, columns):
    reason = "x" * 300
    assert scenario.run(scenario.job(str(logger), "pytorch", workers=3)).status == 0
    failed = scenario.run(scenario.job(scenario.script(f"echo 'RuntimeError: {reason}'; exit 1")))
    assert failed.status == 1
    for command in (["ps", "-a"], ["runs"], ["metrics", "1"], ["metrics", "1", "*"], ["metrics", "1", "-f"],
                    ["compare", "1", "2"]):
        status, out = on_terminal(scenario, *command, columns=columns)
        assert status == 0, out
        widths = [columns_of(line) for line in visible(out)]
        assert max(widths) <= columns, (command, out)
    _, out = on_terminal(scenario, "ps", "-a", columns=columns)
    assert len([line for line in visible(out) if line]) == 3 and ("…" in out or columns < 80), out


def test_ps_into_a_pipe_cuts_nothing(scenario):
    words = " ".join(f"word{i}" for i in range(40))
    program = scenario.python(f"raise ValueError('{words}')")
    assert scenario.run(scenario.job(program)).status == 1
    reason = json.loads(scenario.finish(scenario.start("ps", "-a", "--json")).out)[0]["reason"]
    assert len(reason) > 100
    out = scenario.finish(scenario.start("ps", "-a")).out
    assert reason in out and "…" not in out.replace(reason, ""), out


def test_compare_shows_the_part_of_a_command_that_differs(scenario):
    for rate in ("0.1", "0.03"):
        cmd = f"true --data /a/long/path/to/some/data --epochs 90 --rate={rate} --workers 16 --and --so --on"
        assert scenario.run(scenario.job(cmd)).status == 0
    _, out = on_terminal(scenario, "compare", "1", "2", columns=80)
    row = next(line for line in visible(out) if line.strip().startswith("command"))
    assert "=0.1 " in row and "=0.03 " in row and columns_of(row) <= 80, out
    whole = scenario.finish(scenario.start("compare", "1", "2")).out
    assert "--data /a/long/path/to/some/data --epochs 90 --rate=0.03 --workers 16 --and --so --on" in whole


def test_states_have_colours_on_a_terminal_alone(scenario):
    assert scenario.run(scenario.job("true")).status == 0
    assert scenario.run(scenario.job("false")).status == 1
    for command, is_failed in ((["ps", "-a"], True), (["runs"], True), (["status", "2"], True), (["status", "1"], False)):
        _, out = on_terminal(scenario, *command)
        assert re.search("\x1b\\[1;31mfailed\x1b\\[0m" if is_failed else "\x1b\\[32msucceeded\x1b\\[0m", out), out
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            _, out = on_terminal(scenario, *command, environment=environment)
            assert "\x1b" not in out, out
        assert "\x1b" not in scenario.finish(scenario.start(*command)).out
    _, out = on_terminal(scenario, "run", "job.yml")
    assert "run 3 \x1b[1;31mfailed\x1b[0m" in out, out


def test_a_locale_that_is_not_utf8_gets_ascii(scenario, logger):
    job = scenario.job(str(logger), "pytorch", workers=1)
    for command in (["run", job], ["metrics", "@"], ["metrics", "@", "*"], ["ps", "-a"], ["status", "@"]):
        _, out = on_terminal(scenario, *command, columns=60, environment={"LC_ALL": "C"})
        assert out.isascii(), out
    cmd = scenario.script("echo é █ │")
    _, out = on_terminal(scenario, "run", scenario.job(cmd), environment={"LC_ALL": "C"})
    assert "master.0 | " in COLOUR.sub("", out) and "<U+00E9> # |" in COLOUR.sub("", out), out
    _, out = on_terminal(scenario, "metrics", "1", environment={"LC_ALL": "C.UTF-8"})
    assert "█" in out
    piped = scenario.finish(scenario.start("metrics", "1", env={**scenario.environment, "LC_ALL": "C"}))
    assert piped.out.isascii(), piped


# ---- keys


@pytest.mark.parametrize("command", [["logs", "@", "-f"], ["metrics", "@", "-f"], ["attach", "@", "--from-start"]])
@pytest.mark.parametrize("how", ["q", "SIGINT", "SIGTERM"])
def test_q_ends_a_view_and_the_terminal_is_as_it_was(scenario, logger, command, how):
    job = scenario.job(scenario.script(f"echo here; exec {logger} wait"))
    started = subprocess.run([str(PROGRAM), "run", "-d", str(job)], cwd=scenario.directory, env=scenario.environment,
                             stdout=subprocess.PIPE, check=True)
    assert started.stdout.strip() == b"1"
    terminal = Terminal(scenario, *command)
    terminal.read_until(lambda: (b"loss" if command[0] == "metrics" else b"here") in terminal.out)
    terminal.read_until(lambda: not terminal.takes_lines())
    keeper = os.open(f"/proc/{terminal.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)  # its settings outlive it
    if how == "q":
        terminal.press(b"q")
    else:
        os.kill(terminal.pid, getattr(signal, how))
    status = os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1])
    is_over = terminal.takes_lines()
    os.close(keeper)
    os.close(terminal.master)
    scenario.finish(scenario.start("kill", "@"))
    assert is_over
    assert status == 0 if how == "q" or command[0] != "metrics" else status == -getattr(signal, how)


def test_run_does_not_take_q_for_an_order(scenario):
    job = scenario.job(scenario.script("echo here; until [ -e go ]; do sleep 0.02; done; echo there"))
    terminal = Terminal(scenario, "run", job)
    terminal.read_until(lambda: b"here" in terminal.out)
    assert terminal.takes_lines()
    terminal.press(b"q\n")
    (scenario.directory / "go").touch()
    status, out = terminal.finish()
    assert status == 0 and "there" in out


# ---- once


def test_a_traceback_that_was_just_shown_is_not_shown_again(scenario):
    job = scenario.job(scenario.python("raise ValueError('why')"))
    status, out = on_terminal(scenario, "run", job)
    assert status == 1 and out.count("Traceback") == 1, out
    assert "raised ValueError: why" in out and "what master.0 wrote is above" in out
    together = scenario.finish(scenario.start("run", job, stderr=subprocess.STDOUT))
    assert together.out.count("Traceback") == 1 and "is above" in together.out, together
    apart = scenario.finish(scenario.start("run", job))
    assert "Traceback" in apart.out and "Traceback" in apart.err, apart
