# SPDX-License-Identifier: Apache-2.0
"""A failure names the task that failed first, says why, and takes nobody with it unsaid."""
import re
import signal

import pytest

FAIL_AT = """
    touch up.$RANK
    if [ "$RANK" = {rank} ]; then
        while [ "$(ls up.* | wc -l)" -lt {size} ]; do sleep 0.01; done
        {how}
    fi
    exec sleep 600
"""


def fail_at(scenario, rank, size, how):
    cmd = scenario.script(FAIL_AT.format(rank=rank, size=size, how=how))
    return scenario.run(scenario.job(cmd, "pytorch", workers=size - 1))


def test_one_failing_rank_among_eight_is_named_and_the_others_are_gone(scenario):
    ended = fail_at(scenario, 5, 8, "echo 'the gradient is not a number' >&2; exit 7")
    assert ended.status == 7, ended
    assert re.search(r"worker\.4\b.*\b7\b", ended.err), ended
    assert "the gradient is not a number" in ended.err, ended
    assert len(re.findall(r"\bexited with\b", ended.err)) == 1, "the others are not to blame"
    assert ended.seconds < 5, "siblings that can be stopped are stopped at once"


def test_the_last_lines_of_the_failed_task_are_shown_again(scenario):
    ended = fail_at(scenario, 1, 3, "seq 1 500; echo 'Traceback: it broke'; exit 1")
    assert ended.status == 1
    assert "Traceback: it broke" in ended.err and "500" in ended.err, ended
    assert not re.search(r"^ *(1|250)$", ended.err, re.MULTILINE), "the last lines, not all of them"


@pytest.mark.parametrize("name", ["KILL", "SEGV", "TERM"])
def test_a_task_killed_by_a_signal_gives_128_and_the_signal(scenario, name):
    ended = fail_at(scenario, 2, 3, f"kill -{name} $$")
    number = getattr(signal, f"SIG{name}")
    assert ended.status == 128 + number, ended
    assert re.search(rf"worker\.1\b.*(SIG{name}|signal {int(number)})", ended.err), ended


def test_the_master_can_be_the_one_that_failed(scenario):
    ended = fail_at(scenario, 0, 3, "exit 3")
    assert ended.status == 3, ended
    assert re.search(r"master\.0\b.*\b3\b", ended.err), ended


def test_a_single_task_hands_on_its_exit_code(scenario):
    ended = scenario.run(scenario.job(scenario.script("exit 42")))
    assert ended.status == 42, ended


def test_of_two_failures_the_first_is_named(scenario):
    cmd = scenario.script(
        """
        [ "$RANK" = 2 ] && exit 11
        trap 'exit 22' TERM
        while :; do sleep 0.05; done
        """
    )
    ended = scenario.run(scenario.job(cmd, "pytorch", workers=3))
    assert ended.status == 11, ended
    assert re.search(r"worker\.1\b.*\b11\b", ended.err), ended


def test_a_command_that_is_not_found_is_named(scenario):
    ended = scenario.run(scenario.job("no-such-program --flag", "pytorch", workers=1))
    assert ended.status == 127, ended
    assert "no-such-program" in ended.err and re.search("not found|No such file", ended.err), ended


def test_a_command_that_may_not_be_executed_is_named(scenario):
    plain = scenario.write("plain.txt", "not a program\n")
    plain.chmod(0o644)
    ended = scenario.run(scenario.job(str(plain), "pytorch", workers=1))
    assert ended.status == 126, ended
    assert "plain.txt" in ended.err and re.search("(?i)permission denied|not executable", ended.err), ended


def test_an_interpreter_that_is_missing_is_an_error_with_the_name_of_the_file(scenario):
    script = scenario.write("task", "#!/no/such/interpreter\n")
    script.chmod(0o755)
    ended = scenario.run(scenario.job(str(script)))
    assert ended.status in (126, 127), ended
    assert str(script) in ended.err


def test_siblings_of_a_task_that_cannot_start_do_not_stay(scenario):
    cmd = scenario.script("exec sleep 600")
    job = scenario.job(f'if [ "$RANK" = 1 ]; then exec ./missing; else exec {cmd}; fi', "pytorch", workers=2)
    ended = scenario.run(job)
    assert ended.status == 127, ended
    assert "worker.0" in ended.err, ended


def test_a_task_that_lost_its_peer_is_not_blamed_for_it(scenario):
    """The peer breaks first but is slow to end; who depends on it fails sooner."""
    cmd = scenario.python(
        """
        import os, sys, time
        if os.environ["RANK"] == "1":
            time.sleep(0.1)
            raise ValueError("the shapes do not match")
        if os.environ["RANK"] == "2":
            sys.exit("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4711")
        time.sleep(60)
        """
    )
    ended = scenario.run(scenario.job(cmd, "pytorch", workers=3))
    assert ended.status == 1
    assert "worker.0 raised ValueError: the shapes do not match" in ended.err, ended
    assert ended.seconds < 5


def test_a_lost_peer_that_nobody_explains_is_told_as_it_is(scenario):
    cmd = scenario.script(
        """
        [ $RANK = 2 ] && { echo "Connection closed by peer" >&2; exit 7; }
        exec sleep 60
        """
    )
    ended = scenario.run(scenario.job(cmd, "pytorch", workers=3))
    assert ended.status == 7 and "worker.1" in ended.err, ended
    assert ended.seconds < 5
