# SPDX-License-Identifier: Apache-2.0
"""What a task sees: every framework's tasks get environments that fit together."""
import json
import os
import re
import stat
import subprocess

import pytest

# Writes the environment as it came, before a shell adds to it; then holds the given ports a while.
DUMP = """
    import json, os, socket, sys, time
    with open("/proc/self/environ", "rb") as file:
        raw = file.read()
    held = []
    for name in sys.argv[1:]:
        if name in os.environ:
            host, port = os.environ[name], int(os.environ[name.replace("ADDR", "PORT").replace("URI", "PORT")])
            if os.environ.get("RANK", "0") == "0" and os.environ.get("DMLC_ROLE", "scheduler") == "scheduler":
                held.append((host, port))
    if "TF_CONFIG" in os.environ:
        config = json.loads(os.environ["TF_CONFIG"])
        host, port = config["cluster"][config["task"]["type"]][config["task"]["index"]].rsplit(":", 1)
        held.append((host, int(port)))
    sockets = [socket.create_server(address) for address in held]
    with open("dump.%d.part" % os.getpid(), "wb") as file:
        file.write(raw)
    os.rename("dump.%d.part" % os.getpid(), "dump.%d" % os.getpid())
    size = int(os.environ["TASKS"])
    while len([name for name in os.listdir(".") if name.startswith("dump.") and "part" not in name]) < size:
        time.sleep(0.01)
"""


def read_dump(path):
    return dict(entry.split("=", 1) for entry in os.fsdecode(path.read_bytes()).split("\0") if entry)


def dumps(scenario, framework, workers=0, ps=0, masterless=False, **options):
    size = workers + ps + (0 if masterless else 1)
    cmd = scenario.python(DUMP) + " MASTER_ADDR DMLC_PS_ROOT_URI"
    topology = "master: false" if masterless else ""
    job = scenario.job(cmd, framework, workers=workers, ps=ps, topology=topology, **options)
    ended = scenario.run(job, env={**scenario.environment, "TASKS": str(size)})
    assert ended.status == 0, ended
    found = [read_dump(path) for path in sorted(scenario.directory.glob("dump.*"))]
    assert len(found) == size
    return found


def assert_port_is_ours(port):
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        low, high = map(int, file.read().split())
    assert 1024 <= port <= 65535
    assert not low <= port <= high, "the kernel may hand out ephemeral ports to anybody"


def test_pytorch_ranks_are_a_permutation_and_meet_at_one_master(scenario):
    found = dumps(scenario, "pytorch", workers=4)
    assert sorted(int(task["RANK"]) for task in found) == [0, 1, 2, 3, 4]
    assert {task["WORLD_SIZE"] for task in found} == {"5"}
    assert len({(task["MASTER_ADDR"], task["MASTER_PORT"]) for task in found}) == 1
    assert {(task["LOCAL_RANK"], task["LOCAL_WORLD_SIZE"]) for task in found} == {("0", "1")}
    assert_port_is_ours(int(found[0]["MASTER_PORT"]))
    for task in found:
        rank, info = int(task["RANK"]), json.loads(task["POLYAXON_TASK_INFO"])
        expected = {"type": "master", "index": 0} if rank == 0 else {"type": "worker", "index": rank - 1}
        assert info == expected


def test_tensorflow_tasks_see_one_cluster_and_each_its_own_place(scenario):
    found = dumps(scenario, "tensorflow", workers=2, ps=1)
    configs = [json.loads(task["TF_CONFIG"]) for task in found]
    cluster = configs[0]["cluster"]
    assert all(config["cluster"] == cluster for config in configs)
    assert {kind: len(hosts) for kind, hosts in cluster.items()} == {"chief": 1, "worker": 2, "ps": 1}
    places = sorted((config["task"]["type"], config["task"]["index"]) for config in configs)
    assert places == [("chief", 0), ("ps", 0), ("worker", 0), ("worker", 1)]
    addresses = [address for hosts in cluster.values() for address in hosts]
    assert len(set(addresses)) == 4
    for address in addresses:
        assert_port_is_ours(int(address.rsplit(":", 1)[1]))
    for task, config in zip(found, configs):
        assert config["model_dir"] == task["POLYAXON_RUN_OUTPUTS_PATH"]
        assert config["environment"] == "cloud"


def test_the_original_cluster_variable_calls_the_chief_master(scenario):
    for task in dumps(scenario, "tensorflow", workers=1, ps=1):
        mine, theirs = json.loads(task["TF_CONFIG"])["cluster"], json.loads(task["POLYAXON_CLUSTER"])
        assert theirs == {"master": mine["chief"], "worker": mine["worker"], "ps": mine["ps"]}
        assert json.loads(task["POLYAXON_TASK_INFO"])["type"] in ("master", "worker", "ps")


def test_tensorflow_without_a_master_has_no_chief(scenario):
    configs = [json.loads(task["TF_CONFIG"]) for task in dumps(scenario, "tensorflow", workers=2, ps=1, masterless=True)]
    assert sorted(configs[0]["cluster"]) == ["ps", "worker"]
    assert sorted((c["task"]["type"], c["task"]["index"]) for c in configs) == [("ps", 0), ("worker", 0), ("worker", 1)]


def test_mxnet_tasks_know_their_role_and_the_scheduler(scenario):
    found = dumps(scenario, "mxnet", workers=3, ps=2)
    assert sorted(task["DMLC_ROLE"] for task in found) == ["scheduler"] + ["server"] * 2 + ["worker"] * 3
    for name, value in [("DMLC_NUM_WORKER", "3"), ("DMLC_NUM_SERVER", "2")]:
        assert {task[name] for task in found} == {value}
    assert len({(task["DMLC_PS_ROOT_URI"], task["DMLC_PS_ROOT_PORT"]) for task in found}) == 1
    assert_port_is_ours(int(found[0]["DMLC_PS_ROOT_PORT"]))
    workers = [task for task in found if task["DMLC_ROLE"] == "worker"]
    servers = [task for task in found if task["DMLC_ROLE"] == "server"]
    assert sorted(task["DMLC_WORKER_ID"] for task in workers) == ["0", "1", "2"]
    assert sorted(task["DMLC_SERVER_ID"] for task in servers) == ["0", "1"]


def test_each_horovod_task_is_its_own_host(scenario):
    found = dumps(scenario, "horovod", workers=2)
    assert sorted(task["HOROVOD_RANK"] for task in found) == ["0", "1", "2"]
    assert {task["HOROVOD_SIZE"] for task in found} == {"3"}
    assert {(task["HOROVOD_LOCAL_RANK"], task["HOROVOD_LOCAL_SIZE"]) for task in found} == {("0", "1")}
    assert {(task["HOROVOD_CROSS_RANK"], task["HOROVOD_CROSS_SIZE"]) for task in found} == {
        ("0", "3"), ("1", "3"), ("2", "3")
    }  # fmt: skip
    assert len({task["HOROVOD_HOSTNAME"] for task in found}) == 3


def test_a_single_task_is_a_master_alone(scenario):
    (task,) = dumps(scenario, None)
    assert json.loads(task["POLYAXON_TASK_INFO"]) == {"type": "master", "index": 0}
    assert "TF_CONFIG" not in task and "RANK" not in task and "DMLC_ROLE" not in task


def test_parameters_reach_the_task_with_their_types(scenario):
    head = "params: {lr: 0.1, layers: [1, 2], name: 'a \"quoted\" one', flag: true}"
    (task,) = dumps(scenario, None, head=head)
    assert json.loads(task["POLYAXON_PARAMS"]) == {
        "lr": 0.1, "layers": [1, 2], "name": 'a "quoted" one', "flag": True
    }  # fmt: skip


def test_without_parameters_the_variable_is_null(scenario):
    (task,) = dumps(scenario, None)
    assert json.loads(task["POLYAXON_PARAMS"]) is None


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "mxnet", "horovod"])
def test_all_tasks_share_one_outputs_path_that_can_be_written(scenario, framework):
    cmd = scenario.script('echo "$POLYAXON_RUN_OUTPUTS_PATH" >path.$$; echo x >>"$POLYAXON_RUN_OUTPUTS_PATH/by.$$"')
    ended = scenario.run(scenario.job(cmd, framework, workers=2), "--grace", "2")
    assert ended.status == 0, ended
    paths = {path.read_text().strip() for path in scenario.directory.glob("path.*")}
    assert len(paths) == 1
    (path,) = paths
    assert path.startswith("/") and os.path.isdir(path)
    assert len(os.listdir(path)) >= 1


def test_two_runs_of_one_file_do_not_share_outputs(scenario):
    job = scenario.job(scenario.script('echo "$POLYAXON_RUN_OUTPUTS_PATH"'))
    first, second = scenario.run(job), scenario.run(job)
    assert first.lines_of("master.0") != second.lines_of("master.0")


def test_the_home_is_private(scenario):
    scenario.run(scenario.job("true"))
    assert stat.S_IMODE(scenario.home.stat().st_mode) & 0o077 == 0


def test_output_is_not_buffered_and_threads_are_not_oversubscribed_unless_the_user_said(scenario):
    (task,) = dumps(scenario, None)
    assert task["PYTHONUNBUFFERED"] == "1"
    assert "OMP_NUM_THREADS" not in task or re.fullmatch(r"[1-9]\d*", task["OMP_NUM_THREADS"])


@pytest.mark.parametrize("workers", [1, 3, 7])
def test_tasks_of_a_gang_share_the_cpus_by_their_threads(scenario, workers):
    cpus = len(os.sched_getaffinity(0))
    for task in dumps(scenario, "pytorch", workers=workers):
        assert 1 <= int(task["OMP_NUM_THREADS"]) <= max(1, cpus // (workers + 1))


def test_what_the_user_has_set_stays_as_it_is(scenario):
    scenario.environment.update({"OMP_NUM_THREADS": "7", "PYTHONUNBUFFERED": "0", "MY_OWN": "a=b c"})
    (task,) = dumps(scenario, None)
    assert (task["OMP_NUM_THREADS"], task["PYTHONUNBUFFERED"], task["MY_OWN"]) == ("7", "0", "a=b c")


def test_wiring_that_was_set_outside_does_not_win(scenario):
    scenario.environment.update({"RANK": "99", "MASTER_PORT": "1", "POLYAXON_RUN_OUTPUTS_PATH": "/nowhere"})
    found = dumps(scenario, "pytorch", workers=1)
    assert sorted(task["RANK"] for task in found) == ["0", "1"]
    assert "1" not in {task["MASTER_PORT"] for task in found}
    assert {os.path.isdir(task["POLYAXON_RUN_OUTPUTS_PATH"]) for task in found} == {True}


def test_a_variable_is_there_only_once(scenario):
    scenario.environment["RANK"] = "99"
    dumps(scenario, "pytorch", workers=1)
    for path in scenario.directory.glob("dump.*"):
        names = [entry.split("=", 1)[0] for entry in os.fsdecode(path.read_bytes()).split("\0") if entry]
        assert len(names) == len(set(names))


def test_a_task_starts_where_the_user_stands(scenario):
    place = scenario.directory / "here"
    place.mkdir()
    ended = scenario.run(scenario.job("pwd"), cwd=place)
    assert ended.lines_of("master.0") == [str(place)], ended


def test_a_task_holds_no_descriptors_but_the_three_usual_ones(scenario):
    ended = scenario.run(scenario.job("ls /proc/self/fd", "pytorch", workers=3))
    assert ended.status == 0, ended
    for task in ["master.0", "worker.0", "worker.1", "worker.2"]:
        # The fourth is the directory that ls reads.
        assert ended.lines_of(task) == ["0", "1", "2", "3"], ended


HOLD = """
    import os, socket, sys, time
    if os.environ["RANK"] == "0":
        held = socket.create_server((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
        open("port.%s" % os.environ["MASTER_PORT"], "w").close()
    while len([name for name in os.listdir(".") if name.startswith("port.")]) < 3:
        time.sleep(0.01)
"""


def test_runs_at_the_same_time_never_share_a_port(scenario):
    job = scenario.job(scenario.python(HOLD), "pytorch", workers=1)
    processes = [scenario.start("run", job) for _ in range(3)]
    ends = [process.communicate(timeout=20) + (process.returncode,) for process in processes]
    assert [status for _, _, status in ends] == [0, 0, 0], ends
    assert len(list(scenario.directory.glob("port.*"))) == 3


def test_ports_that_the_kernel_may_give_to_others_are_told(scenario):
    script = 'echo "10000 65535" > /proc/sys/net/ipv4/ip_local_port_range && exec "$@"'
    narrow = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", script, "sh"]
    if subprocess.run([*narrow, "true"], capture_output=True).returncode != 0:
        pytest.skip("no network namespace can be made here")
    job = scenario.job("true", "pytorch", workers=2)
    ended = scenario.run(job, under=narrow)
    assert ended.status == 0 and "3 of the tasks' ports are in the range" in ended.err, ended
    assert "ports are in the range" not in scenario.run(job).err
