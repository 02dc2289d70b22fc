# SPDX-License-Identifier: Apache-2.0
"""A gang that fails is started again inside its run, and a run can be made from an earlier one."""
import json
import os
import signal
import socket
import time

import pytest

from conftest import PYTHON, keeper_of, kill_both

# Says who it is, and fails in the attempts before the one that the file `good` names.
FAILS_AT_FIRST = """
    echo "$MYELIN_TASK attempt $MYELIN_ATTEMPT port $MYELIN_PORT"
    echo "$MYELIN_PORT" >port.$MYELIN_ATTEMPT.$MYELIN_RANK
    echo "$MYELIN_ATTEMPT" >>"$MYELIN_OUTPUTS_PATH/attempts.$MYELIN_RANK"
    [ "$MYELIN_ATTEMPT" -ge 2 ] && exit 0
    [ "$MYELIN_RANK" = 0 ] && exit 3
    exec sleep 600
"""


def restarts(n):
    return f"environment: {{max_restarts: {n}}}"


def gang(scenario, text, n, workers=1):
    """A gang of PyTorch tasks that may be restarted n times."""
    lines = f"""
        version: 1
        kind: experiment
        framework: pytorch
        environment:
          max_restarts: {n}
          replicas: {{n_workers: {workers}}}
        run: {{cmd: {scenario.script(text)}}}
    """
    return scenario.write("gang.yml", lines)


def myelin(scenario, *arguments, **options):
    return scenario.finish(scenario.start(*arguments, **options))


def ask(scenario, *arguments):
    """Of a command that may be asked while a run goes on."""
    process = scenario.start(*arguments)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    return out.decode()


def status(scenario, run="@"):
    return json.loads(ask(scenario, "status", run, "--json"))


def journal(scenario, run):
    text = (scenario.home / "runs" / str(run) / "events.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def wait_for_phase(scenario, run, phase, seconds=10):
    deadline = time.monotonic() + seconds
    while not any(line.get("phase") == phase for line in journal(scenario, run)):
        assert time.monotonic() < deadline, f"not {phase} after {seconds} s"
        time.sleep(0.01)


def wait_until_over(scenario, run):
    deadline = time.monotonic() + 10
    while status(scenario, run)["exit_status"] is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def start_waiting(scenario):
    """A detached run that has failed once and waits, for long, for its second attempt."""
    job = scenario.job("sh -c 'exit 3'", head=restarts(3))
    run = detached(scenario, "run", "-d", job, "--backoff", "60")
    wait_for_phase(scenario, run, "waiting")
    return run


def detached(scenario, *arguments):
    return ask(scenario, *arguments).strip()


# ---- max_restarts


def test_a_gang_that_fails_twice_and_then_succeeds_is_a_run_that_succeeds(scenario):
    ended = scenario.run(gang(scenario, FAILS_AT_FIRST, 3), "--backoff", "0.05")
    assert ended.status == 0, ended
    run = status(scenario)
    assert run["status"] == "succeeded" and run["left_nothing"], run
    assert [a["status"] for a in run["attempts"]] == ["failed", "failed", "succeeded"], run
    assert [a["first_failed"] for a in run["attempts"]] == ["master.0", "master.0", None]
    assert [a["exit_status"] for a in run["attempts"]] == [3, 3, 0]
    assert "code 3" in run["attempts"][0]["reason"]
    shown = myelin(scenario, "status", "@").out
    assert "at attempt 2" in shown and shown.count("master.0 exited with code 3") == 2, shown


def test_every_attempt_has_fresh_ports_and_the_same_outputs(scenario):
    assert scenario.run(gang(scenario, FAILS_AT_FIRST, 3), "--backoff", "0").status == 0
    ports = [(scenario.directory / f"port.{attempt}.0").read_text().strip() for attempt in range(3)]
    assert len({*ports[:2]}) == 2 and len({*ports[1:]}) == 2, ports
    outputs = scenario.home / "runs" / "1" / "outputs" / "attempts.0"
    assert outputs.read_text().split() == ["0", "1", "2"]


def test_all_of_an_attempt_is_gone_before_anything_of_the_next_starts(scenario):
    """Also what a task has detached: the next attempt would meet it."""
    text = """
        for pid in $(cat left.$((MYELIN_ATTEMPT - 1)) 2>/dev/null); do
            [ -e "/proc/$pid" ] && touch "met.$MYELIN_ATTEMPT"
        done
        [ "$MYELIN_RANK" = 0 ] || exec sleep 600
        setsid sh -c 'trap "" TERM HUP; echo $$ >left.$MYELIN_ATTEMPT; while :; do sleep 0.1; done' &
        while [ ! -s left.$MYELIN_ATTEMPT ]; do sleep 0.01; done
        exit 1
    """
    ended = scenario.run(gang(scenario, text, 2, workers=3), "--backoff", "0", "--grace", "0.2")
    assert ended.status == 1, ended
    assert len(list(scenario.directory.glob("left.*"))) == 3
    assert not list(scenario.directory.glob("met.*"))
    living = {}
    for line in journal(scenario, 1):
        if line["event"] == "attempt" and line["status"] == "starting":
            assert not living, f"these lived on: {living}"
        if line["event"] == "task" and line["status"] == "running":
            living[line["rank"]] = line["pid"]
        elif line["event"] == "task":
            living.pop(line["rank"], None)
    checked = [line for line in journal(scenario, 1) if line["event"] == "checked"]
    assert [line["attempt"] for line in checked] == [0, 1, 2]
    assert all(line["processes"] == 0 and line["listeners"] == 0 for line in checked)


def test_a_run_that_fails_in_every_attempt_exits_as_the_last_one_and_counts_them(scenario):
    job = scenario.job(scenario.script("exit $((10 + MYELIN_ATTEMPT))"), head=restarts(2))
    ended = scenario.run(job, "--backoff", "0")
    assert ended.status == 12, ended
    assert "run 1 failed after 3 attempts" in ended.err, ended
    assert "attempt 0 failed: master.0 exited with code 10 and wrote nothing; attempt 1 (restart 1 of 2) starts now" in ended.err
    assert "run 1: failed after 3 attempts" in myelin(scenario, "status", "1").out


def test_the_delay_doubles_from_restart_to_restart(scenario):
    job = scenario.job("sh -c 'exit 1'", head=restarts(3))
    assert scenario.run(job, "--backoff", "0.01").status == 1
    delays = [line["delay"] for line in journal(scenario, 1) if "delay" in line]
    assert delays == [0.01, 0.02, 0.04]


def test_without_max_restarts_a_run_is_attempted_once(scenario):
    assert scenario.run(scenario.job("sh -c 'exit 1'")).status == 1
    assert len(status(scenario)["attempts"]) == 1


@pytest.mark.parametrize("cmd, code", [("/no/such/program", 127), ("./data.txt", 126), ("no-such-command && true", 127),
                                       (f"{PYTHON} missing.py", 2)])
def test_what_can_never_succeed_is_not_attempted_again(scenario, cmd, code):
    scenario.write("data.txt", "no program")
    ended = scenario.run(scenario.job(cmd, head=restarts(5)), "--backoff", "0")
    assert ended.status == code, ended
    assert len(status(scenario)["attempts"]) == 1


def test_a_stopped_run_is_not_attempted_again(scenario):
    job = scenario.job(scenario.script("touch up; exec sleep 600"), head=restarts(5))
    process = scenario.start("run", job, "--backoff", "0")
    scenario.wait_for("up")
    process.send_signal(signal.SIGINT)
    assert scenario.finish(process).status == 130
    assert len(status(scenario)["attempts"]) == 1


@pytest.mark.parametrize("command", ["stop", "kill"])
def test_a_stop_while_it_waits_for_the_next_attempt_ends_it_at_once(scenario, command):
    run = start_waiting(scenario)
    assert status(scenario, run)["phase"] == "waiting"
    process = scenario.start("why", run)
    out, err = process.communicate(timeout=30)
    assert out.decode().startswith(f"run {run} waits for its next attempt; the last one: "), (out, err)
    ended = myelin(scenario, command, run)
    assert ended.status == 0, ended
    found = status(scenario, run)
    assert found["status"] == "stopped" and found["exit_status"] == 130 and found["left_nothing"], found
    assert [a["status"] for a in found["attempts"]] == ["failed"]


def test_a_supervisor_that_is_killed_while_it_waits_leaves_nothing_and_a_verdict(scenario):
    run = start_waiting(scenario)
    os.kill(keeper_of(scenario, run)[1], signal.SIGKILL)
    wait_until_over(scenario, run)
    found = status(scenario, run)
    assert found["status"] == "failed" and found["exit_status"] == 125, found
    assert "supervisor was ended by signal 9" in found["reason"]
    assert [a["status"] for a in found["attempts"]] == ["failed"]
    assert "code 3" in found["attempts"][0]["reason"]


def test_a_supervisor_that_is_killed_in_a_later_attempt_leaves_nothing_and_a_verdict(scenario):
    text = '[ "$MYELIN_ATTEMPT" = 0 ] && exit 3; touch "up.$MYELIN_RANK"; exec sleep 600'
    run = detached(scenario, "run", "-d", gang(scenario, text, 3), "--backoff", "0")
    scenario.wait_for("up.*", 2)
    os.kill(keeper_of(scenario, run)[1], signal.SIGKILL)
    wait_until_over(scenario, run)
    found = status(scenario, run)
    assert found["status"] == "failed" and found["left_nothing"], found
    assert [a["status"] for a in found["attempts"]] == ["failed", "failed"], found
    assert journal(scenario, run)[-1]["attempt"] == 1


def test_both_killed_while_it_waits_are_settled_by_the_next_who_looks(scenario):
    run = start_waiting(scenario)
    kill_both(scenario, run)
    wait_until_over(scenario, run)
    assert status(scenario, run)["status"] == "failed"


def test_reservations_are_kept_from_attempt_to_attempt(scenario):
    text = "[ $MYELIN_ATTEMPT = 0 ] && exit 1; touch up; exec sleep 600"
    head = "environment: {max_restarts: 1, resources: {cpu: {requests: 0.01}}}"
    job = scenario.job(scenario.script(text), head=head)
    run = detached(scenario, "run", "-d", job, "--backoff", "0")
    scenario.wait_for("up")
    node = json.loads(ask(scenario, "node", "--json"))
    assert [hold["run"] for hold in node["reservations"]] == [int(run)]
    myelin(scenario, "stop", run)


# ---- an address in use


def test_an_address_in_use_at_the_start_is_answered_by_other_ports_once(scenario):
    text = """
        import os, socket
        attempt = os.environ["MYELIN_ATTEMPT"]
        open("port." + attempt, "w").write(os.environ["MYELIN_PORT"])
        s = socket.socket()
        if attempt == "0":  # a stranger has taken it
            t = socket.socket()
            t.bind(("127.0.0.1", int(os.environ["MYELIN_PORT"])))
            t.listen()
        s.bind(("127.0.0.1", int(os.environ["MYELIN_PORT"])))
    """
    ended = scenario.run(scenario.job(scenario.python(text)))
    assert ended.status == 0, ended
    assert "attempt 1 starts now, on other ports" in ended.err, ended
    assert (scenario.directory / "port.0").read_text() != (scenario.directory / "port.1").read_text()


def test_an_address_that_stays_in_use_fails_the_run_in_the_second_attempt(scenario):
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        text = f"import socket; socket.socket().bind(('127.0.0.1', {stranger.getsockname()[1]}))"
        ended = scenario.run(scenario.job(scenario.python(text)))
    assert ended.status == 1, ended
    assert len(status(scenario)["attempts"]) == 2


# ---- logs


def test_the_logs_of_every_attempt_stay_and_can_be_chosen(scenario):
    job = scenario.job(scenario.script("printf 'this is %s' $MYELIN_ATTEMPT; exit 1"), head=restarts(2))
    ended = scenario.run(job, "--backoff", "0")
    lines = [f"this is {attempt}" for attempt in range(3)]
    assert ended.lines_of("master.0") == lines, ended
    logs = scenario.home / "runs" / "1" / "logs"
    assert (logs / "master.0.log").read_text() == "this is 0"
    assert (logs / "attempt-2" / "master.0.log").read_text() == "this is 2"
    for attempt, line in enumerate(lines):
        assert myelin(scenario, "logs", "1", "--attempt", attempt).out.strip() == line
    assert myelin(scenario, "logs", "1").out.split("this is ")[1:] == ["0", "1", "2"]
    objects = [json.loads(line) for line in myelin(scenario, "logs", "1", "--json").out.splitlines()]
    assert [(line["attempt"], line["text"]) for line in objects] == list(enumerate(lines))
    assert "this is 2" in ended.err and "this is 0" not in ended.err.split("last lines of")[1]


def test_an_attempt_that_there_is_not_is_refused_with_those_that_there_are(scenario):
    scenario.run(scenario.job("sh -c 'exit 1'", head=restarts(1)), "--backoff", "0")
    refused = myelin(scenario, "logs", "1", "--attempt", "2")
    assert refused.status == 1 and "it has 0 to 1" in refused.err
    assert myelin(scenario, "logs", "1", "--attempt", "x").status == 2


def wait_until_open(process, part):
    """Until the process has a file open whose path has that part."""
    deadline = time.monotonic() + 20
    folder = f"/proc/{process.pid}/fd"
    while not any(part in os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder) if os.path.islink(f"{folder}/{fd}")):
        assert time.monotonic() < deadline, "it opens nothing"
        time.sleep(0.02)


def test_who_follows_the_logs_is_taken_along_to_the_next_attempt(scenario):
    text = """
        echo "begin $MYELIN_ATTEMPT"
        touch up.$MYELIN_ATTEMPT
        while [ ! -e go.$MYELIN_ATTEMPT ]; do sleep 0.02; done
        echo "end $MYELIN_ATTEMPT"
        [ "$MYELIN_ATTEMPT" = 1 ]
    """
    job = scenario.job(scenario.script(text), head=restarts(1))
    run = detached(scenario, "run", "-d", job, "--backoff", "0.2")
    scenario.wait_for("up.0")
    followers = [scenario.start("logs", run, "-f"), scenario.start("attach", run, "--from-start")]
    time.sleep(0.2)
    (scenario.directory / "go.0").touch()
    scenario.wait_for("up.1")
    late = scenario.start("attach", run)
    wait_until_open(late, "/logs/attempt-1/")
    (scenario.directory / "go.1").touch()
    for follower in followers:
        out = follower.communicate(timeout=20)[0].decode()
        words = [line.split("│")[-1].strip() for line in out.splitlines()]
        assert words == ["begin 0", "end 0", "begin 1", "end 1"], out
    out = late.communicate(timeout=20)[0].decode()
    assert "end 1" in out and "end 0" not in out, out


# ---- restart, resume, copy

@pytest.fixture
def original(scenario):
    """Run 1, that was started with a param, in a directory of its own."""
    there = scenario.directory / "there"
    there.mkdir()
    script = scenario.script("""
        echo "lr=$1 $PWD"
        cat "$MYELIN_OUTPUTS_PATH/notes" 2>/dev/null
        echo "run $MYELIN_RUN_ID" >>"$MYELIN_OUTPUTS_PATH/notes"
    """)
    scenario.job(script + " {{ lr }}", head="params: {lr: 1}")
    ended = scenario.run("../job.yml", "-P", "lr=2", "--grace", "3", cwd=there)
    assert ended.status == 0, ended
    scenario.there = there
    return scenario


def notes(scenario, run):
    return (scenario.home / "runs" / str(run) / "outputs" / "notes").read_text().split()[1::2]


@pytest.mark.parametrize("command, found", [("restart", []), ("resume", ["run 1"]), ("copy", ["run 1"])])
def test_a_run_is_made_anew_with_the_params_and_in_the_directory_of_the_original(original, command, found):
    ended = myelin(original, command, "1")
    assert ended.status == 0, ended
    assert ended.lines_of("master.0") == [f"lr=2 {original.there}", *found], ended
    manner = {"restart": "restarted", "resume": "resumed", "copy": "copied"}[command]
    uuid = status(original, "1")["uuid"]
    assert status(original, "2")["origin"] == {"manner": manner, "id": 1, "uuid": uuid}
    assert f"{manner} from run 1" in myelin(original, "status", "2").out


def test_a_param_of_the_command_line_wins_over_the_kept_one_and_is_kept_in_turn(original):
    assert myelin(original, "restart", "1", "-P", "lr=5").lines_of("master.0") == [f"lr=5 {original.there}"]
    assert myelin(original, "restart", "2").lines_of("master.0") == [f"lr=5 {original.there}"]


def test_the_kept_files_are_used_though_the_original_ones_have_changed(original):
    original.write("job.yml", "no: file")
    assert myelin(original, "restart", "@").status == 0


def test_merged_files_are_kept_each(scenario):
    first = scenario.write("first.yml", "version: 1\nkind: experiment\nparams: {a: 1, b: 1}\n")
    second = scenario.write("second.yml", "params: {b: 2}\nrun:\n  cmd: echo a={{ a }} b={{ b }}\n")
    assert scenario.run(first, "-f", second).lines_of("master.0") == ["a=1 b=2"]
    first.unlink()
    second.unlink()
    assert myelin(scenario, "restart", "@").lines_of("master.0") == ["a=1 b=2"]


def test_a_restarted_run_has_outputs_of_its_own(original):
    assert myelin(original, "restart", "1").status == 0
    assert notes(original, 1) == ["1"] and notes(original, 2) == ["2"]


def test_a_resumed_run_has_the_outputs_of_the_first_of_its_line(original):
    myelin(original, "resume", "1")
    ended = myelin(original, "resume", "2")
    assert ended.lines_of("master.0")[1:] == ["run 1", "run 2"]
    assert notes(original, 1) == ["1", "2", "3"]
    assert status(original, "3")["paths"]["outputs"] == status(original, "1")["paths"]["outputs"]
    assert "notes" in myelin(original, "outputs", "3").out


def test_a_copied_run_leaves_the_original_as_it_is(original):
    outputs = original.home / "runs" / "1" / "outputs"
    (outputs / "deep" / "er").mkdir(parents=True)
    (outputs / "deep" / "er" / "model").write_bytes(b"\0" * 300000)
    os.chmod(outputs / "deep" / "er" / "model", 0o640)
    (outputs / "inside").symlink_to("deep/er/model")
    (outputs / "outside").symlink_to("/etc/passwd")
    ended = myelin(original, "copy", "1")
    assert ended.status == 0 and "1 links that lead out" in ended.err, ended
    copy = original.home / "runs" / "2" / "outputs"
    assert notes(original, 1) == ["1"] and notes(original, 2) == ["1", "2"]
    assert (copy / "inside").read_bytes() == b"\0" * 300000
    assert (copy / "deep" / "er" / "model").stat().st_mode & 0o777 == 0o640
    assert (copy / "notes").stat().st_nlink == 1
    assert not (copy / "outside").is_symlink()


@pytest.mark.parametrize("command", ["resume", "copy"])
def test_outputs_that_still_change_are_neither_resumed_nor_copied(scenario, command):
    job = scenario.job(scenario.script("touch up; exec sleep 600"))
    run = detached(scenario, "run", "-d", job)
    scenario.wait_for("up")
    refused = scenario.start(command, run)
    assert b"goes on" in refused.communicate(timeout=20)[1]
    assert refused.returncode == 125
    assert [p.name for p in (scenario.home / "runs").iterdir()] == [run], "nothing is left of the attempt"
    myelin(scenario, "stop", run)


def test_two_runs_never_go_on_with_the_same_outputs_at_once(scenario):
    scenario.run(scenario.job(scenario.script("[ $MYELIN_RUN_ID = 1 ] || { touch up; exec sleep 600; }")))
    resumed = detached(scenario, "resume", "1", "-d")
    scenario.wait_for("up")
    for run in ("1", resumed):
        refused = scenario.start("resume", run)
        assert b"run 2 goes on with the outputs of run 1" in refused.communicate(timeout=20)[1]
        assert refused.returncode == 125
    myelin(scenario, "stop", resumed)


def test_a_run_is_not_removed_while_a_resumed_one_has_its_outputs(original):
    myelin(original, "resume", "1")
    for arguments in (["1"], ["1", "--force"]):
        refused = myelin(original, "rm", *arguments)
        assert refused.status == 1 and "which resumed it" in refused.err, refused
    assert notes(original, 1) == ["1", "2"]
    assert myelin(original, "rm", "2").status == 0
    assert notes(original, 1) == ["1", "2"], "the outputs are those of run 1"
    assert myelin(original, "rm", "1").status == 0


def test_a_detached_new_run_prints_its_id(original):
    assert detached(original, "restart", "1", "-d") == "2"
    wait_until_over(original, "2")


def test_a_working_directory_that_is_gone_is_told_before_anything_starts(original):
    original.there.rmdir()
    ended = myelin(original, "restart", "1")
    assert ended.status == 125 and str(original.there) in ended.err, ended
    assert len(list((original.home / "runs").iterdir())) == 1


def test_another_path_than_the_original_had_is_told(original):
    ended = myelin(original, "restart", "1", env={**original.environment, "PATH": original.environment["PATH"] + ":/x"})
    assert ended.status == 0 and "PATH is not what it was when run 1 was started" in ended.err, ended
    assert "PATH is not" not in myelin(original, "restart", "1").err


def test_a_run_without_its_request_cannot_be_repeated_and_says_so(original):
    request = original.home / "runs" / "1" / "request.json"
    request.write_text("{}")
    ended = myelin(original, "restart", "1")
    assert ended.status == 125 and "request.json is not as myelin writes it" in ended.err, ended
    request.unlink()
    ended = myelin(original, "restart", "1")
    assert ended.status == 125 and "request.json is missing" in ended.err, ended


def test_an_interrupt_while_outputs_are_copied_leaves_no_run(original):
    with open(original.home / "runs" / "1" / "outputs" / "large", "wb") as file:
        file.truncate(20 << 30)  # sparse: it takes no room, but long to be read
    process = original.start("copy", "1", start_new_session=True)
    original.wait_for("home/runs/2/outputs/.myelin-part.*")
    process.send_signal(signal.SIGINT)
    ended = original.finish(process)
    assert ended.status != 0, ended
    assert not (original.home / "runs" / "2").exists()
