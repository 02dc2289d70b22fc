# SPDX-License-Identifier: Apache-2.0
"""What a user meets in the first hour: mistyped names, forgotten units, the wrong file. The program says what is wrong and
what to type instead, and what it refuses leaves nothing behind."""
import json
import os
import time

import pytest
from shapes import assert_shape

SLEEPER = "echo up; touch up.$1; exec sleep 600"
PARAMS = "params: {lr: 0.1, epochs: 3}"


def call(scenario, *arguments, status=0, **options):
    process = scenario.start(*arguments, **options)
    out, err = process.communicate(timeout=60)
    assert status in (None, process.returncode), f"{arguments}: {process.returncode}\n{out.decode()}\n{err.decode()}"
    return out.decode(), err.decode()


@pytest.fixture
def stage(scenario):
    """A stage on which no run goes on when the curtain falls."""
    yield scenario
    runs = scenario.home / "runs"
    ids = [name for name in os.listdir(runs) if name.isdigit()] if runs.exists() else []
    if ids:
        scenario.start("kill", *ids).communicate(timeout=60)
    deadline = time.monotonic() + 20
    while scenario.left() and time.monotonic() < deadline:
        time.sleep(0.02)


def ids(scenario):
    runs = scenario.home / "runs"
    return sorted(int(name) for name in os.listdir(runs)) if runs.exists() else []


# ---- params


@pytest.mark.parametrize("command", ["check", "plan", "render", "run", "why"])
def test_a_param_that_the_file_does_not_use_is_warned_of_with_the_one_that_was_meant(scenario, command):
    job = scenario.job("true {{ lr }}", head=PARAMS + "\nbuild: {image: busybox}")
    out, err = call(scenario, command, job, "-P", "learning_rate=1")
    assert "-P:1:1: warning: the file does not use a param `learning_rate`" in out + err, (out, err)
    assert "did you mean `lr`?" in out + err
    out, err = call(scenario, command, job, "-P", "lr=1")
    assert "warning" not in out + err, (out, err)


def test_a_param_that_a_declared_file_does_not_have_is_an_error(scenario):
    job = scenario.job("true {{ lr }}", head="inputs: [{name: lr, type: float, is_optional: true, default: 0.1}]")
    for command, status in [("check", 1), ("plan", 1), ("run", 125)]:
        _, err = call(scenario, command, job, "-P", "learning_rate=1", status=status)
        assert "`learning_rate` is neither an input nor an output" in err and "did you mean `lr`?" in err
    assert ids(scenario) == []


@pytest.mark.parametrize("command", ["restart", "resume", "copy"])
def test_a_derived_run_is_warned_of_such_a_param_too(scenario, command):
    assert scenario.run(scenario.job("true {{ lr }}", head=PARAMS)).status == 0
    _, err = call(scenario, command, "1", "-P", "epoch=4")
    assert "does not use a param `epoch`" in err and "did you mean `epochs`?" in err


def test_such_a_param_is_a_diagnostic_in_json(scenario):
    scenario.job("true", head=PARAMS, name="polyaxonfile.yml")
    (checked,) = json.loads(call(scenario, "check", "-P", "learning_rate=1", "--json")[0])
    (diagnostic,) = checked["diagnostics"]
    assert checked["file"] == "polyaxonfile.yml" and checked["warnings"] == 1
    assert (diagnostic["file"], diagnostic["line"], diagnostic["column"], diagnostic["length"]) == ("-P", 1, 1, 13)
    assert diagnostic["severity"] == "warning" and diagnostic["help"] == "did you mean `lr`?"


# ---- names of files and options


def test_a_file_that_is_mistyped_is_named(scenario):
    (scenario.directory / "jobs").mkdir()
    scenario.job("true", name="jobs/train.yml")
    ended = scenario.run("jobs/trian.yml")
    assert ended.status == 125 and "= help: did you mean 'jobs/train.yml'?" in ended.err, ended
    ended = scenario.run("jobs/quite_unlike.yml")
    assert ended.status == 125 and "did you mean" not in ended.err, ended


@pytest.mark.parametrize("words, sentence", [
    (["train.yml"], "unknown command 'train.yml'; did you mean 'myelin run train.yml'?"),
    (["log", "@"], "unknown command 'log'; did you mean 'logs'?"),
    (["run", "-p", "lr=1"], "unknown option '-p'; did you mean '-P'?"),
    (["run", "--dry"], "unknown option '--dry'; did you mean '--dry-run'?"),
    (["runs", "-q", "loss:<1"], "what tasks logged is metrics.loss"),
])
def test_what_is_mistyped_gets_the_word_that_was_meant(scenario, words, sentence):
    _, err = call(scenario, *words, status=None)
    assert sentence in err, err


# ---- units


@pytest.mark.parametrize("words, sentence", [
    (["gc", "--older", "30"], "--older takes an age with a unit, such as 12h, 30d or 8w; '30' has none"),
    (["gc", "--size", "20"], "--size takes a size with a unit, such as 500M or 20G; '20' has none"),
    (["logs", "@", "--since", "90"], "--since takes a time span with a unit"),
])
def test_an_age_or_a_size_needs_a_unit(scenario, words, sentence):
    assert scenario.run(scenario.job("true")).status == 0
    _, err = call(scenario, *words, status=2)
    assert sentence in err, err
    assert ids(scenario) == [1]


def test_seconds_may_have_a_unit(scenario):
    assert scenario.run(scenario.job("true"), "--grace", "1m", "--backoff", "0.5s", "--timeout", "1h").status == 0
    ended = scenario.run(scenario.job("true"), "--grace", "1y")
    assert ended.status == 125 and "--grace takes seconds from 0 to 86400, or a time such as 90s" in ended.err


# ---- which run


def test_a_name_means_the_newest_run_that_goes_on_to_those_who_stop_or_follow(stage):
    script = stage.script(SLEEPER)
    old = call(stage, "run", "-d", stage.job(f"{script} 1", head="name: net", name="old.yml"))[0].strip()
    other = call(stage, "run", "-d", stage.job(f"{script} 2", head="name: net", name="other.yml"))[0].strip()
    stage.wait_for("up.*", 2)
    call(stage, "run", stage.job("true", head="name: net", name="new.yml"))
    newest = str(max(ids(stage)))
    assert json.loads(call(stage, "status", "net", "--json")[0])["id"] == int(newest)
    following = stage.start("logs", "-f", "@")
    assert following.stdout.readline() == b"up\n"  # of the one that goes on: the newest has written nothing
    following.kill()
    following.communicate()
    (stopped,) = json.loads(call(stage, "stop", "net", "--json")[0])
    assert (stopped["run"]["id"], stopped["outcome"]) == (int(other), "ended")
    (killed,) = json.loads(call(stage, "kill", "@", "--json")[0])
    assert (killed["run"]["id"], killed["outcome"]) == (int(old), "ended")
    (over,) = json.loads(call(stage, "stop", "net", "--json")[0])
    assert (over["run"]["id"], over["outcome"]) == (int(newest), "was_over")


# ---- errors as JSON

ERRORS = [
    (["run", "typo.yml"], 125), (["run", "--grace", "soon"], 125), (["run", "--no-such-option"], 125), (["plan", "typo.yml"], 1),
    (["render", "typo.yml"], 1), (["why", "typo.yml"], 1), (["why", "99"], 1), (["status", "99"], 1), (["attach", "99"], 125),
    (["logs", "99"], 1), (["metrics", "99"], 1), (["outputs", "99"], 1), (["export", "99"], 1), (["compare", "98", "99"], 1),
    (["restart", "99"], 125), (["resume", "99"], 125), (["copy", "99"], 125), (["rerun", "99"], 125),
    (["model", "show", "none"], 1), (["gc", "--older", "30"], 2), (["gc", "-q", "loss:<1"], 2), (["runs", "-q", "a b"], 2),
    (["ps", "-n", "x"], 2), (["stop"], 2), (["kill"], 2), (["rm"], 2), (["import"], 2),
]


@pytest.mark.parametrize("words, status", ERRORS, ids=[" ".join(words) for words, _ in ERRORS])
def test_a_command_with_json_that_fails_prints_the_error_as_json(scenario, words, status):
    out, err = call(scenario, *words, "--json", status=status)
    told = json.loads(out)
    assert list(told) == ["error"], told
    assert_shape(told["error"], "An error")
    assert told["error"]["exit_status"] == status and told["error"]["message"] in err.replace("\n", " "), (out, err)
    plain = call(scenario, *words, status=status)
    assert plain[0] == "" and plain[1] == err, "the message is the same without --json"


def test_the_diagnostics_of_a_file_are_in_the_error(scenario):
    job = scenario.write("job.yml", "version: 1\nkind: experiment\nrum: {cmd: x}\n")
    told = json.loads(call(scenario, "run", job, "--json", status=125)[0])["error"]
    assert told["message"] == told["diagnostics"][0]["message"] and "no field `rum`" in told["message"]
    assert told["diagnostics"][0]["line"] == 3 and told["diagnostics"][0]["help"] == "did you mean `run`?"


def test_a_run_that_fails_is_still_its_record(scenario):
    ended = scenario.run(scenario.job("false"), "--json")
    assert ended.status == 1 and json.loads(ended.out)["status"] == "failed"


# ---- directories


@pytest.mark.parametrize("name", ["polyaxonfile.yml", "polyaxonfile.yaml", "polyaxonfile.json", "polyaxon.yml", "polyaxon.ci.yml"])
def test_a_directory_stands_for_its_polyaxonfile(scenario, name):
    there = scenario.directory / "there"
    there.mkdir()
    (there / name).write_text('{"version": 1, "kind": "experiment", "run": {"cmd": "pwd"}}')
    for given in ("there", "there/", there):
        out = call(scenario, "check", given)[0]
        assert out.startswith(f"{str(given).rstrip('/')}/{name}: valid"), out
    for command in ("plan", "why"):
        call(scenario, command, "there")
    # Where the tasks run does not depend on how the file is named.
    for words in (["there"], ["-f", "there"], [f"there/{name}"]):
        ended = scenario.run(*words)
        assert ended.lines_of("master.0") == [str(scenario.directory)], ended


def test_a_directory_without_one_is_refused_with_the_names_that_are_looked_for(scenario):
    (scenario.directory / "empty").mkdir()
    (scenario.directory / "empty" / "polyaxonfile.yml").mkdir()
    ended = scenario.run("empty")
    assert ended.status == 125 and "there is no polyaxonfile in the directory 'empty'" in ended.err
    assert "polyaxonfile.yml or polyaxon.yml" in ended.err and ids(scenario) == []


# ---- programs


@pytest.fixture
def lonely(scenario):
    """A PATH that has python3 and a shell, and no python."""
    bin = scenario.directory / "bin"
    bin.mkdir()
    for name in ("sh", "bash", "python3"):
        (bin / name).symlink_to(f"/bin/{name}")
    scenario.environment["PATH"] = str(bin)
    return scenario


@pytest.mark.parametrize("cmd", ["python train.py", "cd . && python train.py", "exec python train.py"])
def test_a_python_that_is_not_there_suggests_python3(lonely, cmd):
    ended = lonely.run(lonely.job(cmd), "--json")
    told = json.loads(ended.out)["first_failed"]
    assert ended.status == 127 and told["hint"].startswith("did you mean 'python3'?"), ended


def test_check_and_plan_say_so_before(lonely):
    job = lonely.job("python train.py")
    note = "there is no program `python` in the PATH here; did you mean `python3`?"
    assert note in call(lonely, "check", job)[0]
    assert json.loads(call(lonely, "check", job, "--json")[0])[0]["notes"] == [note]
    assert note in call(lonely, "plan", job)[1]
    for cmd in ("python3 train.py", "cd x", "./python", "A=1 python", "quite_unlike x", "export X=1"):
        assert "no program" not in call(lonely, "check", lonely.job(cmd))[0], cmd


def test_a_program_that_resembles_none_gets_the_general_hint(lonely):
    ended = lonely.run(lonely.job("cd . && quite_unlike x"), "--json")
    hint = json.loads(ended.out)["first_failed"]["hint"]
    assert ended.status == 127 and hint == "install it, or add its directory to PATH"


# ---- refusals


def test_a_refused_command_takes_no_run_number_and_leaves_no_directory(stage):
    script = stage.script(SLEEPER)
    first = call(stage, "run", "-d", stage.job(f"{script} 1"))[0].strip()
    stage.wait_for("up.1")
    for words in (["rerun", first], ["resume", first], ["copy", first], ["restart", "nosuch"], ["run", "typo.yml"],
                  ["restart", first, "-P", "noequals"]):
        call(stage, *words, status=125)
        assert ids(stage) == [int(first)], words
    assert call(stage, "run", "-d", stage.job("true", name="next.yml"))[0].strip() == str(int(first) + 1)


def test_a_snapshot_that_is_refused_takes_no_number(scenario):
    assert scenario.run(scenario.job("true")).status == 0
    (scenario.directory / "secret").write_text("x")
    (scenario.directory / "secret").chmod(0)
    ended = scenario.run(scenario.job("true"), "--snapshot")
    if ended.status == 0:
        pytest.skip("root may read every file")
    assert ended.status == 125 and ids(scenario) == [1], ended
    assert scenario.run(scenario.job("true")).status == 0 and ids(scenario) == [1, 2]
