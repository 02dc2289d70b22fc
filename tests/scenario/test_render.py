# SPDX-License-Identifier: Apache-2.0
"""What `myelin render` prints is taken by others as it is meant, and its pods see the contract."""
import json
import os
import re
import subprocess

import pytest
import yaml

from conftest import ROOT
from shapes import assert_shape

FRAMEWORKS = ["tensorflow", "pytorch", "mxnet", "horovod"]
INDEX = "metadata.labels['training.kubeflow.org/replica-index']"
ADDRESS = "10.0.0.7"

# mpirun of one host after the other, as far as a rank can tell: its own number, and of the variables
# of its launcher those that -x names, unless it is the launcher's neighbour, rank 0.
MPIRUN = """#!/bin/sh
np=0 names=
while [ $# -gt 0 ]; do
    case $1 in
    --allow-run-as-root) shift ;;
    --bind-to) shift 2 ;;
    -np) np=$2; shift 2 ;;
    -x) names="$names $2"; shift 2 ;;
    *) break ;;
    esac
done
rank=0
while [ $rank -lt $np ]; do
    set -- "$@"
    (
        if [ $rank -gt 0 ]; then
            for name in $(env -0 | tr '\\n' ' ' | tr '\\0' '\\n' | cut -d= -f1); do
                case " $names DUMP " in *" $name "*) ;; *) unset "$name" ;; esac
            done
        fi
        export OMPI_COMM_WORLD_RANK=$rank
        exec "$@"
    )
    rank=$((rank + 1))
done
"""


def call(scenario, *arguments):
    return scenario.finish(scenario.start(*arguments))


def render(scenario, *arguments, status=0):
    ended = call(scenario, "render", *arguments)
    assert ended.status == status, ended
    return ended


def job(scenario, framework, cmd="python3 train.py", head="build: {image: train:1}", **options):
    if framework in ("tensorflow", "mxnet"):
        options.setdefault("ps", 2)
    return scenario.job(cmd, framework, workers=options.pop("workers", 3), head=head, **options)


def objects(scenario, *arguments):
    return json.loads(render(scenario, "--json", *arguments).out)["items"]


# -- a small Kubernetes


def expand(text, known):
    """As Kubernetes expands a value or a word of a command."""

    def replace(match):
        if match[0] == "$$":
            return "$"
        return known.get(match[1], match[0])

    return re.sub(r"\$\$|\$\((\w+)\)", replace, text)


def start(pod, index, directory, name):
    """Runs the container of a pod, which dumps its environment; returns the files that it made."""
    (container,) = pod["containers"]
    known = {}
    for variable in container.get("env", []):
        if "value" in variable:
            value = expand(variable["value"], known)
        else:
            value = {INDEX: str(index), "status.podIP": ADDRESS}[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        assert variable["name"] not in known, "a name stands in a pod once"
        known[variable["name"]] = value
    # The shim keeps its own variables, and starts the rest of the words.
    known = {name: value for name, value in known.items() if not name.startswith("MYELIN_SHIM_")}
    before = set(directory.glob("dump.*"))
    environment = {"PATH": f"{directory}:/usr/bin:/bin", "DUMP": str(directory), **known}
    command = [expand(word, known) for word in container["command"]]
    command = command[command[0] == "/myelin/shim/shim" :]
    subprocess.run(command, env=environment, cwd=directory, check=True, timeout=20)
    return sorted(set(directory.glob("dump.*")) - before, key=lambda path: path.stat().st_mtime_ns)


def environments(scenario, items):
    """What each task finds, by its name."""
    (scenario.directory / "mpirun").write_text(MPIRUN)
    (scenario.directory / "mpirun").chmod(0o755)
    pods = []
    for item in items:
        if item["kind"] == "Pod":
            pods.append((item["spec"], 0))
        for key, specs in item.get("spec", {}).items():
            if key.endswith("ReplicaSpecs"):
                for spec in specs.values():
                    pods += [(spec["template"]["spec"], index) for index in range(spec["replicas"])]
    found = {}
    for pod, index in pods:
        if "command" not in pod["containers"][0]:
            continue  # the operator gives sshd to the workers of an MPIJob
        for path in start(pod, index, scenario.directory, index):
            dump = dict(entry.split("=", 1) for entry in os.fsdecode(path.read_bytes()).split("\0") if entry)
            assert dump["MYELIN_TASK"] not in found
            found[dump["MYELIN_TASK"]] = dump
    return found


def contract(scenario, file, task):
    ended = call(scenario, "plan", file, "--task", task, "--json")
    assert ended.status == 0, ended
    return json.loads(ended.out)["environment"]


def documented(backend, framework):
    """The variables that docs/kubernetes.md lets differ."""
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    rows = re.findall(r"^\| `([\w*]+)` \| (\w+) \| (\w+) \| ([\w ]+) \|", page, re.M)
    return {name: who for name, where, of, who in rows if where == backend and of.lower() == framework}


@pytest.mark.parametrize("backend", ["native", "kubeflow"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("manner", ["direct", "shell"])
def test_a_task_in_a_pod_sees_the_contract_but_for_the_documented_table(scenario, framework, backend, manner):
    cmd = scenario.script('cat /proc/$$/environ >"$DUMP/dump.$$"')
    file = job(scenario, framework, cmd if manner == "direct" else f"true && exec {cmd}")
    found = environments(scenario, objects(scenario, file, "--backend", backend))
    plan = json.loads(call(scenario, "plan", file, "--json").out)
    assert sorted(found) == sorted(task["name"] for task in plan["tasks"])
    table = documented(backend, framework)
    for task in plan["tasks"]:
        dump = found[task["name"]]
        expected = contract(scenario, file, task["name"])
        for name, value in expected.items():
            if name in table:
                assert (name in dump) == (table[name] == "pod"), (task["name"], name)
            elif "<" in value:
                assert dump[name] and "<" not in dump[name], (task["name"], name)
            else:
                assert dump[name] == value, (task["name"], name)
        ours = {name for name in dump if re.match("MYELIN_|POLYAXON_|DMLC_|HOROVOD_|TF_|MASTER_|.*RANK|WORLD", name)}
        extra = {name for name in ours - set(expected) if not name.startswith("OMPI_")}
        assert extra == {name for name, who in table.items() if who == "myelin"}, task["name"]


@pytest.mark.parametrize("backend", ["native", "kubeflow"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_yaml_is_read_by_another_reader_as_the_json(scenario, framework, backend):
    head = "build: {image: train:1}\nparams: {a: 'yes', b: 1e3, c: \"x: y # z\", d: \"\\u2028é\\n\\t'\\\"\", e: '$(A)'}"
    file = job(scenario, framework, "echo '#' \"a\" && true", head=head)
    written = render(scenario, file, "--backend", backend)
    assert list(yaml.safe_load_all(written.out)) == objects(scenario, file, "--backend", backend)


def test_the_same_file_gives_the_same_output_wherever_it_is(scenario):
    file = job(scenario, "pytorch")
    first = render(scenario, file).out
    copy = scenario.directory / "copy.yml"
    copy.write_bytes((scenario.directory / file).read_bytes())
    assert render(scenario, str(copy)).out == first
    assert render(scenario, file, "-P", "lr=0.1").out != first


def test_the_options_win_over_the_file_and_the_settings(scenario):
    scenario.home.mkdir()
    (scenario.home / "config.yml").write_text("kubernetes: {namespace: one, image: settings:1}\n")
    file = job(scenario, "pytorch", head="")
    assert "image: settings:1" in render(scenario, file).out
    assert "namespace: one" in render(scenario, file).out
    out = render(scenario, file, "--image", "mine:2", "--namespace", "two").out
    assert "image: mine:2" in out and "namespace: two" in out
    assert "settings:1" not in out and "namespace: one" not in out


def test_what_cannot_be_rendered_is_told_with_its_place_and_prints_nothing(scenario):
    file = job(scenario, "pytorch", head="backend: mpi\nbuild: {image: a}")
    ended = render(scenario, file, status=1)
    assert not ended.out and "there is no `backend: mpi` on a cluster" in ended.err and "= help: " in ended.err
    ended = render(scenario, job(scenario, "pytorch", head=""), status=1)
    assert not ended.out and "--image" in ended.err
    for option, value in [("--namespace", "a b"), ("--namespace", ""), ("--image", "a b"), ("--image", "")]:
        ended = render(scenario, job(scenario, "pytorch"), option, value, status=1)
        assert not ended.out and "is no name of " in ended.err
    scenario.home.mkdir()
    (scenario.home / "config.yml").write_text("kubernetes:\n  namespce: a\n")
    ended = render(scenario, job(scenario, "pytorch"), status=1)
    assert "config.yml:2:3: error: " in ended.err and "did you mean `namespace`?" in ended.err
    assert render(scenario, "a", "b", status=2)
    assert render(scenario, job(scenario, "pytorch"), "--on", "mars", status=2)


def test_the_difference_for_programs_has_the_documented_shape(scenario):
    file = job(scenario, "mxnet")
    told = json.loads(render(scenario, file, "--diff", "--json").out)
    assert_shape(told, "What differs")
    assert [task["name"] for task in told["tasks"]][:2] == ["master.0", "worker.0"]
    row = told["tasks"][1]["variables"]["DMLC_ROLE"]
    assert (row["local"], row["native"], row["kubeflow"]) == ("worker", "worker", "(operator)")
    assert row["reason"]
    assert "MYELIN_TASK" not in told["tasks"][1]["variables"]


def test_a_side_that_cannot_be_says_why(scenario):
    topology = "worker: [{index: 1, resources: {cpu: {limits: 2}}}]"
    file = job(scenario, "pytorch", topology=topology)
    told = json.loads(render(scenario, file, "--diff", "--json").out)
    assert "worker.1 is given other `cpu`" in told["refused"]["kubeflow"]
    assert "note: kubeflow cannot hold it: worker.1" in render(scenario, file, "--diff").out
