# SPDX-License-Identifier: Apache-2.0
"""What `myelin schema` prints holds for editors what `myelin check` holds for users."""
import json
import subprocess
import textwrap

import jsonschema
import pytest
import yaml

from conftest import PROGRAM, ROOT

HEAD = "version: 1\nkind: experiment\n"


def myelin(*arguments):
    return subprocess.run([str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, timeout=20)


@pytest.fixture(scope="module")
def validator():
    schema = json.loads(myelin("schema").stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def polyaxonfiles():
    """Every file of the checkout that `myelin check` accepts."""
    found = sorted([*ROOT.glob("examples/**/*.yml"), *ROOT.glob("tests/golden/**/*.yml")])
    return [path for path in found if myelin("check", path).returncode == 0]


def test_a_valid_file_of_the_checkout_is_good_for_the_schema(validator):
    files = polyaxonfiles()
    assert len(files) >= 10
    for path in files:
        mistakes = [error.message for error in validator.iter_errors(yaml.safe_load(path.read_text()))]
        assert not mistakes, f"{path.relative_to(ROOT)}: {mistakes}"


GOOD = {
    "a template for a number": "params: {n: 2}\nframework: pytorch\nenvironment: {replicas: {n_workers: '{{ n }}'}}",
    "a template for a list": "params: {t: [a]}\ntags: '{{ t }}'",
    "a template for a mapping": "params: {r: {cpu: {limits: 1}}}\nenvironment: {resources: '{{ r }}'}",
    "a template for a choice": "params: {b: native}\nbackend: '{{ b }}'",
    "a template for a truth": "params: {m: true}\nframework: tensorflow\n"
                              "environment: {tensorflow: {master: '{{ m }}', n_workers: 1}}",
    "a number as text": "environment: {resources: {cpu: {requests: '0.5'}}}",
    "a key without a value": "environment:\nrun:\n  cmd: a",
    "another spelling": "environment: {resources: {gpu: {request: 1}}}",
    "labels of a selector": "framework: mxnet\nenvironment:\n  mxnet:\n    n_workers: 1\n"
                            "    worker_node_selectors: [{index: 0, disk: ssd}]",
    "an image with a registry": "build: {image: 'here:5000/a/b:1'}",
    "a field without effect": "framework: tensorflow\nenvironment: {tensorflow: {n_workers: 1, run_config: {a: 1}}}",
}
WRONG = {
    "an unknown field": "enviroment: {}",
    "an unknown field of a section": "run: {command: a}",
    "a number with a unit": "environment: {resources: {memory: {limits: 256Mi}}}",
    "a negative amount": "environment: {resources: {cpu: {requests: -1}}}",
    "a number beyond its bounds": "environment: {max_restarts: 1001}",
    "a fraction of a task": "framework: mxnet\nenvironment: {mxnet: {n_workers: 1.5}}",
    "no choice": "backend: kubernetes",
    "a text for a list": "tags: a",
    "a number in a list of texts": "tags: [1]",
    "a mapping for a list": "framework: mxnet\nenvironment: {mxnet: {n_workers: 1, worker: {index: 0}}}",
    "a number for a mapping": "environment: {resources: {cpu: 1}}",
    "two spellings at once": "environment: {resources: {gpu: {request: 1, requests: 1}}}",
    "a name with a blank": "name: my run",
    "an image with a blank": "build: {image: a b}",
    "a pair of three": "build: {image: a, env_vars: [[a, b, c]]}",
    "a template that nobody renders": "inputs: [{name: a, is_flag: '{{ b }}'}]",
    "a nameless input": "inputs: [{type: int}]",
    "another version": "version: 2",
    "another kind": "kind: group",
    "no kind": "kind:",
    "a job without a build": "kind: job\nrun: {cmd: a}",
    "a job with a topology": "kind: job\nbuild: {image: a}\nrun: {cmd: a}\nenvironment: {mxnet: {n_workers: 1}}",
}


def verdicts(scenario, validator, text):
    """What `check` says and what the schema says: whether each accepts the file."""
    document = {**yaml.safe_load(HEAD), **yaml.safe_load(textwrap.dedent(text))}
    path = scenario.write("file.yml", yaml.safe_dump(document))
    return myelin("check", path).returncode == 0, validator.is_valid(document)


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_check_and_schema_both_accept(scenario, validator, text):
    assert verdicts(scenario, validator, text) == (True, True)


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_check_and_schema_both_refuse(scenario, validator, text):
    assert verdicts(scenario, validator, text) == (False, False)


def test_every_field_is_described(validator):
    for name, definition in validator.schema["definitions"].items():
        assert definition["properties"]
        for key, field in definition["properties"].items():
            assert field["description"], f"{name}.{key}"
