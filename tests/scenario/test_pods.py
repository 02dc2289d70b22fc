# SPDX-License-Identifier: Apache-2.0
"""What tasks in pods of our own leave comes here: log, metrics, outputs and ends, each once, whatever happens between."""
import contextlib
import json
import os
import re
import signal
import time

import pytest

from conftest import SECONDS, compile_logger, keeper_of, lives, state_of
from small_cluster import Cluster, free_port


def settings(scenario, more=""):
    """The cluster has a scheduler that places gangs whole, so that no gang waits for its turn."""
    scenario.home.mkdir(mode=0o700, exist_ok=True)
    (scenario.home / "config.yml").write_text(f"kubernetes: {{gang: coscheduling{more}}}\n")


@pytest.fixture
def cluster(scenario, tmp_path):
    stage = Cluster(tmp_path, {"HOME": str(tmp_path)})
    settings(scenario)
    yield stage
    stage.close()


def submit(scenario, cluster, job, *arguments):
    return scenario.start("run", job, "--on", "kubernetes", "--kubeconfig", cluster.kubeconfig(), *arguments)


def run(scenario, cluster, job, *arguments):
    return scenario.finish(submit(scenario, cluster, job, *arguments), 3 * SECONDS)


def gang(scenario, cmd, workers=1):
    return scenario.job(cmd, "pytorch", workers=workers, head="build: {image: x}")


def log_of(scenario, task):
    return (scenario.home / "runs" / "1" / "logs" / f"{task}.log").read_bytes()


def test_a_run_in_pods_has_its_logs_and_its_end(scenario, cluster):
    ended = run(scenario, cluster, gang(scenario, "echo line of $MYELIN_TASK"))
    assert ended.status == 0, ended
    assert ended.lines_of("master.0") == ["line of master.0"]
    assert ended.lines_of("worker.0") == ["line of worker.0"]
    assert sum("/proxy/end" in request for request in cluster.requests) == 2
    assert not any("/log?" in request for request in cluster.requests)


def test_the_shim_of_a_leading_task_that_has_ended_stays_until_the_others_have_found_it(scenario, cluster):
    """They wait for its name, which goes with its container: a node that is late would leave its task waiting."""
    cluster.late_s["worker"] = 2
    started = submit(scenario, cluster, gang(scenario, "echo line of $MYELIN_TASK"))
    wait_until(lambda: sum(pod.process is not None for pod in [*cluster.pods.values()]) == 2, "the worker")
    master = cluster.pod("master.0")
    assert (master.directory / "logs" / "log").read_text() == "line of master.0\n" and master.process.poll() is None
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status == 0 and ended.lines_of("worker.0") == ["line of worker.0"], ended


LOGGER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "myelin.h"

/* Logs N points of "loss", and a line for each; waits that long after each; then says the rest. */
int main(int argc, char **argv) {
    const int n = atoi(argv[1]), pause_us = atoi(argv[2]), code = argc > 3 ? atoi(argv[3]) : 0;
    struct myelin *m = myelin_open();
    const uint32_t name = myelin_name(m, "loss");
    const char *params = "{\"lr\": 0.5}";

    setvbuf(stdout, NULL, _IOLBF, 0);
    myelin_record(m, MYELIN_PARAMS, params, strlen(params));
    for (int i = 0; i < n; i++) {
        const double value = i;

        myelin_log(m, &name, &value, 1, i, MYELIN_NOW);
        printf("line %d\n", i);
        if (pause_us)
            usleep((unsigned)pause_us);
    }
    return code;
}
"""


@pytest.fixture(scope="module")
def logger(tmp_path_factory):
    return compile_logger(tmp_path_factory, LOGGER)


def series(scenario, name="loss"):
    ended = scenario.finish(scenario.start("metrics", "1", "--json"))
    assert ended.status == 0, ended
    return {entry["task"]: entry for entry in json.loads(ended.out) if entry["name"] == name}




def outputs(scenario):
    root = scenario.home / "runs" / "1" / "outputs"
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def lines(n):
    return b"".join(b"line %d\n" % i for i in range(n))


def notices(scenario):
    with open(scenario.home / "runs" / "1" / "events.jsonl", encoding="utf-8") as file:
        return [entry["message"] for entry in map(json.loads, file) if entry["event"] == "notice"]


def wait_until(condition, what, seconds=3 * SECONDS):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} after {seconds} s"
        time.sleep(0.02)


# -- what comes


def test_metrics_and_params_of_tasks_in_pods_are_those_of_the_run(scenario, cluster, logger):
    ended = run(scenario, cluster, gang(scenario, f"{logger} 3000 0"))
    assert ended.status == 0, ended
    found = series(scenario)
    assert {task: entry["count"] for task, entry in found.items()} == {"master.0": 3000, "worker.0": 3000}
    assert log_of(scenario, "worker.0") == lines(3000)
    status = json.loads(scenario.finish(scenario.start("status", "1", "--json")).out)
    assert status["params"] == {"lr": 0.5}
    assert not (scenario.home / "runs" / "1" / "spool").exists(), "all of it is folded"


def test_outputs_of_pods_come_and_of_several_of_one_name_the_lowest_ranks_is_kept(scenario, cluster):
    text = """
        mkdir -p $MYELIN_OUTPUTS_PATH/deep/er
        echo of $MYELIN_TASK >$MYELIN_OUTPUTS_PATH/same
        echo of $MYELIN_TASK >$MYELIN_OUTPUTS_PATH/deep/er/$MYELIN_TASK
        : >$MYELIN_OUTPUTS_PATH/empty.$MYELIN_TASK
        ln -s /etc/passwd $MYELIN_OUTPUTS_PATH/link
        [ $MYELIN_RANK = 0 ] && head -c 3000000 /dev/zero >$MYELIN_OUTPUTS_PATH/large && sleep 1
        true
    """
    ended = run(scenario, cluster, gang(scenario, scenario.script(text)))
    assert ended.status == 0, ended
    assert outputs(scenario) == {
        "same": b"of master.0\n",
        "deep/er/master.0": b"of master.0\n",
        "deep/er/worker.0": b"of worker.0\n",
        "empty.master.0": b"",
        "empty.worker.0": b"",
        "large": bytes(3000000),
    }
    assert any("1 files of higher ranks were left out, the first is same" in text for text in notices(scenario))


def test_a_failed_task_is_told_with_its_code_and_its_last_words(scenario, cluster, logger):
    job = gang(scenario, f"[ $MYELIN_RANK = 1 ] && exec {logger} 10 0 3; sleep 60")
    ended = run(scenario, cluster, job, "--grace", "2")
    assert ended.status == 3, ended
    assert "worker.0" in ended.err and "exited with code 3" in ended.err
    assert log_of(scenario, "worker.0") == lines(10)
    assert series(scenario)["worker.0"]["count"] == 10


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_outputs_that_cannot_be_read_are_told(scenario, cluster):
    ended = run(scenario, cluster, gang(scenario, "cd $MYELIN_OUTPUTS_PATH; echo x >secret; mkdir closed; chmod 0 secret closed; echo y >here.$MYELIN_RANK"))
    assert ended.status == 0 and set(outputs(scenario)) == {"here.0", "here.1"}, ended
    assert any("4 outputs could not be read in the pods, the first in that of master.0" in text for text in notices(scenario))


LARGE = 16 << 20  # more than sockets hold on the way


def fail_with_large_outputs(scenario, cluster):
    """A run whose worker has failed: its outputs come slowly, and its master has been stopped meanwhile."""
    cluster.pause_s = 0.02
    command = f"[ $MYELIN_RANK = 1 ] || exec sleep 60; head -c {LARGE} /dev/zero >$MYELIN_OUTPUTS_PATH/large; exit 3"
    started = submit(scenario, cluster, gang(scenario, command), "--grace", "1")
    wait_until(lambda: len(cluster.pods) == 2 and cluster.pod("master.0").process is not None, "no master runs")
    wait_until(lambda: cluster.pod("master.0").process.poll() is not None, "the master goes on")
    assert "large" not in outputs(scenario), "who failed was told before its outputs were here"
    return started


def test_a_failure_stops_the_others_at_once_and_the_outputs_of_who_failed_still_come(scenario, cluster):
    ended = scenario.finish(fail_with_large_outputs(scenario, cluster), 3 * SECONDS)
    assert ended.status == 3 and "worker.0" in ended.err and "exited with code 3" in ended.err, ended
    assert outputs(scenario) == {"large": bytes(LARGE)}
    assert not any("missing" in text for text in notices(scenario))


def test_outputs_come_whole_also_to_who_takes_over_after_a_failure(scenario, cluster):
    started = fail_with_large_outputs(scenario, cluster)
    os.kill(keeper_of(scenario)[1], signal.SIGKILL)
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status == 3 and "worker.0" in ended.err, ended
    assert outputs(scenario) == {"large": bytes(LARGE)}


def test_who_kills_a_run_waits_for_no_outputs(scenario, cluster):
    started = fail_with_large_outputs(scenario, cluster)
    began = time.monotonic()
    scenario.start("kill", "1").communicate(timeout=SECONDS)
    scenario.finish(started, 3 * SECONDS)
    assert time.monotonic() - began < 5 and outputs(scenario) == {}


def test_a_run_whose_outputs_are_here_is_over_though_its_shims_do_not_hear_of_it(scenario, cluster):
    cluster.refused.add("end")
    ended = run(scenario, cluster, gang(scenario, "echo x >$MYELIN_OUTPUTS_PATH/f.$MYELIN_RANK"), "--grace", "1")
    assert ended.status == 0 and outputs(scenario) == {"f.0": b"x\n", "f.1": b"x\n"}, ended


def test_outputs_that_a_pod_takes_with_it_are_told(scenario, cluster):
    started = fail_with_large_outputs(scenario, cluster)
    cluster.pod("worker.0").kill_now()
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status == 3 and outputs(scenario) == {}, ended
    assert any("missing are 0 bytes of its log and at most 16777216 bytes" in text for text in notices(scenario)), notices(scenario)


def test_a_command_that_is_not_there_is_not_started(scenario, cluster):
    ended = run(scenario, cluster, gang(scenario, "/no/such/program"))
    assert ended.status == 127 or "not" in ended.err, ended
    assert "could not be started" in ended.err or "not found" in ended.err, ended


def test_what_a_stopped_task_says_at_its_end_is_there(scenario, cluster):
    text = """
        trap 'echo last words; echo kept >$MYELIN_OUTPUTS_PATH/kept.$MYELIN_RANK; exit 0' TERM
        echo ready
        while :; do sleep 0.1; done
    """
    started = submit(scenario, cluster, gang(scenario, scenario.script(text)), "--grace", "10")
    wait_until(lambda: all(b"ready" in log_of(scenario, task) for task in ("master.0", "worker.0")) if
               (scenario.home / "runs/1/logs/worker.0.log").exists() and (scenario.home / "runs/1/logs/master.0.log").exists() else False, "no task is ready")
    scenario.start("stop", "1").communicate(timeout=3 * SECONDS)  # who follows the run may end a moment later
    ended = scenario.finish(started, 3 * SECONDS)
    for task in ("master.0", "worker.0"):
        assert log_of(scenario, task).endswith(b"last words\n"), ended
    assert set(outputs(scenario)) == {"kept.0", "kept.1"}


# -- what goes wrong


@pytest.mark.parametrize("unsaid", [False, True])
def test_without_the_right_to_ask_pods_the_log_comes_by_the_log_api_and_a_notice_says_what_is_lost(scenario, cluster, logger, unsaid):
    cluster.refused |= {"proxy"} if unsaid else {"proxy", "right"}
    if unsaid:  # nobody lets go of the pods
        settings(scenario, ", linger: 1")
    ended = run(scenario, cluster, gang(scenario, f"{logger} 50 0"))
    assert ended.status == 0, ended
    assert log_of(scenario, "master.0") == lines(50)
    assert log_of(scenario, "worker.0") == lines(50)
    told = [text for text in notices(scenario) if "cannot be asked for what their tasks leave" in text]
    assert len(told) == 1 and "pods/proxy" in told[0] and "metrics and outputs stay in the pods" in told[0]


def test_pods_of_horovod_that_nobody_may_ask_wait_for_nobody_but_the_farewells_of_the_ranks(scenario, cluster):
    cluster.refused |= {"proxy", "right"}
    cluster.given["master"] = {"MYELIN_SHIM_RENDEZVOUS": str(free_port())}
    began = time.monotonic()
    ended = run(scenario, cluster, scenario.job("echo line of $MYELIN_TASK; echo kept >$MYELIN_OUTPUTS_PATH/kept", "horovod", workers=1, head="build: {image: x}"))
    assert ended.status == 0, ended
    assert 15 <= time.monotonic() - began < 2 * SECONDS
    assert ended.lines_of("master.0") == ["line of master.0"] and ended.lines_of("worker.0") == ["line of worker.0"]
    assert not any("/proxy/" in request for request in cluster.requests)
    assert sum("cannot be asked for what their tasks leave" in text for text in notices(scenario)) == 1
    variables = {task: cluster.pod(task).variables() for task in ("master.0", "worker.0")}
    assert {task: given["MYELIN_SHIM_LINGER"] for task, given in variables.items()} == {"master.0": "0", "worker.0": "0"}
    assert not any("MYELIN_SHIM_OUTPUTS" in given for given in variables.values())


def test_without_a_shim_the_log_comes_by_the_log_api_and_run_says_what_is_lost(scenario, cluster, logger):
    settings(scenario, ", shim: false")
    ended = run(scenario, cluster, gang(scenario, f"{logger} 50 0"))
    assert ended.status == 0, ended
    assert log_of(scenario, "worker.0") == lines(50)
    assert "note: `kubernetes.shim` of config.yml is false" in ended.err
    assert not any("/proxy/" in request for request in cluster.requests)


def test_a_stream_that_is_cut_goes_on_where_it_was(scenario, cluster, logger):
    cluster.cuts = [100, 5000, 20000]
    ended = run(scenario, cluster, gang(scenario, f"{logger} 2000 300; head -c 500000 /dev/zero >$MYELIN_OUTPUTS_PATH/f.$MYELIN_RANK"))
    assert ended.status == 0, ended
    assert not cluster.cuts, "each cut was made"
    for task in ("master.0", "worker.0"):
        assert log_of(scenario, task) == lines(2000)
        assert series(scenario)[task]["count"] == 2000
    assert outputs(scenario) == {"f.0": bytes(500000), "f.1": bytes(500000)}


def asked(cluster, what):
    return sum(what in request for request in [*cluster.requests])


# An expired token, a right that is taken away, a portal in between, a server that is being replaced.
@pytest.mark.parametrize("refusal", [401, 403, 400, 503])
def test_a_shim_that_was_reached_is_asked_on_whatever_is_answered(scenario, cluster, logger, refusal):
    started = submit(scenario, cluster, gang(scenario, f"{logger} 4000 1000; echo kept >$MYELIN_OUTPUTS_PATH/f.$MYELIN_RANK"))
    wait_until(lambda: len(cluster.streams) == 2, "no stream is open")
    cluster.refusal = refusal
    cluster.refused.add("proxy")
    before = asked(cluster, "/proxy/stream")
    cluster.cut()
    wait_until(lambda: asked(cluster, "/proxy/stream") >= before + 2, "nobody asks again")
    time.sleep(0.5)
    cluster.refused.clear()
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status == 0, ended
    for task in ("master.0", "worker.0"):
        assert log_of(scenario, task) == lines(4000)
        assert series(scenario)[task]["count"] == 4000
    assert outputs(scenario) == {"f.0": b"kept\n", "f.1": b"kept\n"}
    assert not any("/log?" in request for request in cluster.requests)
    told = [text for text in notices(scenario) if "cannot be asked any more" in text]
    assert len(told) == (refusal in (400, 403)), told


@contextlib.contextmanager
def asleep(scenario, *followers):
    """The keeper and the supervisor, as the machine puts all of a run to sleep: each would continue the other, and so
    would who follows them."""
    both = keeper_of(scenario)
    sleepers = [*(follower.pid for follower in followers), *both]

    def all_sleep():
        """One that still acts may have continued another: they are told again."""
        for pid in sleepers:
            os.kill(pid, signal.SIGSTOP)
        return all(state_of(pid) == "T" for pid in sleepers)

    wait_until(all_sleep, "they do not stop")
    try:
        yield
    finally:
        for pid in reversed(sleepers):
            os.kill(pid, signal.SIGCONT)


def sleep_and_wake(scenario, follower, seconds=11.5):
    """As the machine of the supervisor does: a look that is ten seconds late was a sleep."""
    with asleep(scenario, follower):
        time.sleep(seconds)


def test_a_shim_that_is_out_of_reach_is_tried_again_and_no_line_is_doubled(scenario, cluster, logger):
    cluster.refused.add("proxy")
    started = submit(scenario, cluster, gang(scenario, f"{logger} 15000 1000; echo kept >$MYELIN_OUTPUTS_PATH/f.$MYELIN_RANK"))
    wait_until(lambda: (scenario.home / "runs/1/logs/worker.0.log").exists(), "no line has come")
    assert asked(cluster, "/log?") == 2, "by the log API"
    cluster.refused.clear()
    sleep_and_wake(scenario, started)  # which ends the minute that is waited
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status == 0, ended
    for task in ("master.0", "worker.0"):
        assert log_of(scenario, task) == lines(15000)
        assert series(scenario)[task]["count"] == 15000
    assert outputs(scenario) == {"f.0": b"kept\n", "f.1": b"kept\n"}
    assert asked(cluster, "/proxy/end") == 2
    told = notices(scenario)
    assert sum("metrics and outputs stay in the pods until they can" in text for text in told) == 1, told
    assert sum("the pods can be asked by now" in text for text in told) == 1, told


def pods_end_unwatched(scenario, cluster, follower, tasks, seconds=0):
    """The supervisor sleeps until all pods are over, and for so long at least."""
    begun = time.monotonic()
    with asleep(scenario, follower):
        cluster.cut()
        wait_until(lambda: all(cluster.pod(task).process.poll() is not None for task in tasks), "the pods linger")
        time.sleep(max(0, seconds - (time.monotonic() - begun)))


def test_what_a_pod_took_with_it_is_counted_to_the_byte(scenario, cluster, logger):
    settings(scenario, ", linger: 1")
    cluster.kept = 5000
    started = submit(scenario, cluster, gang(scenario, f"{logger} 4000 1000"))
    wait_until(lambda: len(cluster.streams) == 2, "no stream is open")
    time.sleep(0.5)
    pods_end_unwatched(scenario, cluster, started, ("master.0", "worker.0"))
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status == 0, ended
    whole = lines(4000)
    for task in ("master.0", "worker.0"):
        log = log_of(scenario, task)
        (told,) = (text for text in notices(scenario) if f"the pod of {task} ended before all was fetched" in text)
        missing, others = re.search(r"missing are (\d+) bytes of its log and at most (\d+) bytes of its metrics and outputs$", told).groups()
        assert len(log) + int(missing) == len(whole) and int(missing) > 1000
        assert log.endswith(whole[-5000:]) and whole.startswith(log[:-5000])
        assert int(others) > 0 and series(scenario)[task]["count"] < 4000


def test_a_sleep_longer_than_the_linger_costs_no_line_and_the_rests_come_a_few_at_a_time(scenario, cluster, logger):
    settings(scenario, ", linger: 1")
    cluster.log_takes = 0.3
    tasks = ["master.0", *(f"worker.{index}" for index in range(7))]
    started = submit(scenario, cluster, gang(scenario, f"{logger} 1500 2000", workers=7))
    wait_until(lambda: len(cluster.streams) == 8, "no stream is open")
    pods_end_unwatched(scenario, cluster, started, tasks, 11.5)
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status == 0, ended
    for task in tasks:
        assert log_of(scenario, task) == lines(1500)
        assert any(f"the pod of {task} ended before all was fetched: missing are 0 bytes of its log" in text for text in notices(scenario))
    assert 1 < cluster.most_logs <= 4


def test_a_run_whose_journal_cannot_be_read_for_a_moment_is_watched_again_after_it(scenario, cluster):
    started = submit(scenario, cluster, gang(scenario, "echo ready; sleep 5"))
    wait_until(lambda: (scenario.home / "runs/1/logs/worker.0.log").exists(), "no line has come")
    keeper, supervisor = keeper_of(scenario)
    journal = scenario.home / "runs/1/events.jsonl"
    journal.rename(journal.with_suffix(".away"))
    os.kill(supervisor, signal.SIGKILL)
    time.sleep(0.7)  # the second try comes after a second
    assert lives(keeper)
    journal.with_suffix(".away").rename(journal)
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status == 0 and "a new supervisor goes on with the run" in notices(scenario), ended


def has_pending(pid, number):
    """Whether the signal waits for the process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        masks = [line.split()[1] for line in file if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


@pytest.mark.parametrize("moment_s", [0.3, 1.0, 1.8])
def test_a_supervisor_that_is_killed_is_followed_by_one_that_doubles_nothing_and_loses_nothing(scenario, cluster, logger, moment_s):
    command = f"{logger} 4000 500; head -c 500000 /dev/zero >$MYELIN_OUTPUTS_PATH/f.$MYELIN_RANK"
    started = submit(scenario, cluster, gang(scenario, command))
    wait_until(lambda: (scenario.home / "runs/1/logs/master.0.log").exists(), "no line has come")
    time.sleep(moment_s)
    os.kill(keeper_of(scenario)[1], signal.SIGKILL)
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status == 0, ended
    for task in ("master.0", "worker.0"):
        assert log_of(scenario, task) == lines(4000)
        assert series(scenario)[task]["count"] == 4000
    assert outputs(scenario) == {"f.0": bytes(500000), "f.1": bytes(500000)}


@pytest.mark.parametrize("order", [signal.SIGTERM, signal.SIGQUIT])
def test_an_order_that_a_supervisor_took_with_it_is_followed_by_the_next(scenario, cluster, order):
    started = submit(scenario, cluster, gang(scenario, "echo ready; sleep 600"), "--grace", "1")
    wait_until(lambda: (scenario.home / "runs/1/logs/worker.0.log").exists(), "no line has come")
    with asleep(scenario, started):
        keeper, supervisor = keeper_of(scenario)
        os.kill(keeper, order)  # as `stop` and `kill` do; it is handed on when the supervisor is dead
        wait_until(lambda: has_pending(keeper, order), "the order has not come")
        os.kill(supervisor, signal.SIGKILL)
        wait_until(lambda: state_of(supervisor) == "Z", "it does not die")
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status == 130 and "a new supervisor goes on with the run" in notices(scenario), ended


def test_after_a_pod_is_killed_the_node_gives_the_rest_of_its_log(scenario, cluster, logger):
    started = submit(scenario, cluster, gang(scenario, f"{logger} 1000000 1000"), "--grace", "1")
    wait_until(lambda: (scenario.home / "runs/1/logs/worker.0.log").exists(), "no line has come")
    time.sleep(0.5)
    cluster.pod("worker.0").kill_now()
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status == 137, ended
    log = log_of(scenario, "worker.0")
    assert log == lines(log.count(b"\n")) and log.count(b"\n") > 100
    assert any("worker.0" in text and "nobody knows what of its log" in text for text in notices(scenario))


def test_a_pod_that_somebody_deletes_is_named_and_its_last_words_are_there(scenario, cluster):
    text = "trap 'echo last words; exit 1' TERM; echo ready; while :; do sleep 0.1; done"
    started = submit(scenario, cluster, gang(scenario, scenario.script(text)), "--grace", "5")
    wait_until(lambda: (scenario.home / "runs/1/logs/worker.0.log").exists(), "no line has come")
    cluster.delete("pods", cluster.pod("worker.0").name)
    ended = scenario.finish(started, 3 * SECONDS)
    assert ended.status != 0 and "somebody deleted the pod" in ended.err, ended
    assert log_of(scenario, "worker.0").endswith(b"last words\n")


def test_a_run_that_outlasts_its_deadline_is_told_so_and_its_last_words_are_there(scenario, cluster):
    settings(scenario, ", deadline: 3")
    text = "trap 'echo last words; exit 1' TERM; echo ready; while :; do sleep 0.1; done"
    ended = run(scenario, cluster, gang(scenario, scenario.script(text)), "--grace", "3")
    assert ended.status != 0 and "the pod ran longer than the cluster lets it" in ended.err, ended
    assert "longer than the specified deadline" in ended.err and "deleted the pod" not in ended.err
    for task in ("master.0", "worker.0"):
        assert log_of(scenario, task).endswith(b"last words\n")
