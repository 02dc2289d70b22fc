# SPDX-License-Identifier: Apache-2.0
"""Event files that tasks write become series of their run, and series become event files."""
import json
import pathlib
import struct
import textwrap
import time

import pytest
from conftest import kill_both
from shapes import assert_shape

# What a framework does, from the format alone: records with masked CRC-32C around messages of protocol buffers.
WRITER = '''
import os, socket, struct, sys, time

def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff

def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)

def varint(n):
    out = b""
    while n >= 0x80:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return out + bytes([n])

def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data

def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)

def scalar(tag, step, value):
    value = field(1, tag.encode()) + b"\\x15" + struct.pack("<f", value)
    return record(b"\\x09" + struct.pack("<d", 1.7e9 + step) + b"\\x10" + varint(step) + field(5, field(1, value)))

class Writer:
    def __init__(self, folder=""):
        folder = os.path.join(os.environ["MYELIN_OUTPUTS_PATH"], folder)
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.0"
        self.file = open(os.path.join(folder, name), "ab", buffering=0)
        self.file.write(record(b"\\x09" + struct.pack("<d", 1.7e9) + field(3, b"brain.Event:2")))

    def add(self, tag, step, value):
        self.file.write(scalar(tag, step, value))

def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.02)
'''


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Stage:
    def __init__(self, scenario):
        self.scenario, self.run = scenario, scenario.run

    def task(self, text, workers=0):
        command = self.scenario.python(WRITER + textwrap.dedent(text))
        self.scenario.job(command, framework="pytorch" if workers else None, workers=workers)

    def myelin(self, *arguments, status=0):
        process = self.scenario.start(*arguments)
        out, err = process.communicate(timeout=60)
        assert process.returncode == status, (out, err)
        return out.decode(), err.decode()

    def metrics(self, *arguments):
        return json.loads(self.myelin("metrics", *arguments, "--json")[0])


@pytest.fixture
def stage(scenario):
    return Stage(scenario)


def test_numbers_appear_while_the_file_grows_and_all_are_there_in_the_end(stage):
    stage.task(
        """
        writer = Writer("logs/train")
        for step in range(5):
            writer.add("loss", step, 1 / (step + 1))
        open("five", "w").close()
        wait_for("go")
        for step in range(5, 300):
            writer.add("loss", step, 1 / (step + 1))
        """
    )
    process = stage.scenario.start("run", "job.yml")
    try:
        stage.scenario.wait_for("five")
        deadline = time.monotonic() + 15
        while [entry["count"] for entry in stage.metrics("@", "logs/train/loss")] != [5]:
            assert time.monotonic() < deadline, "the numbers do not appear"
            time.sleep(0.1)
        assert process.poll() is None
    finally:
        (stage.scenario.directory / "go").touch()
        ended = stage.scenario.finish(process)
    assert ended.status == 0, ended
    (entry,) = stage.metrics("@", "*loss")
    assert entry["name"] == "logs/train/loss" and entry["task"] == "master.0"
    assert [point["step"] for point in entry["points"]] == list(range(300))
    assert [point["value"] for point in entry["points"]] == [float32(1 / (step + 1)) for step in range(300)]
    assert entry["first_time"] == "2023-11-14T22:13:20.000000Z"


def test_tasks_that_write_to_one_folder_are_told_apart_by_their_process(stage):
    stage.task("""Writer().add("loss", 1, int(os.environ["MYELIN_RANK"]))""", workers=2)
    assert stage.run("job.yml").status == 0
    assert {entry["rank"]: entry["last"] for entry in stage.metrics("@", "loss")} == {0: 0, 1: 1, 2: 2}


def test_a_damaged_and_a_cut_record_cost_nothing_else(stage):
    stage.task(
        """
        writer = Writer()
        for step in range(10):
            data = scalar("loss", step, step)
            if step == 4:
                data = data[:20] + bytes([data[20] ^ 1]) + data[21:]
            if step == 6:
                data = bytes([data[0] ^ 1]) + data[1:]
            writer.file.write(data[:-3] if step == 9 else data)
        """
    )
    ended = stage.run("job.yml")
    assert ended.status == 0
    (entry,) = stage.metrics("@", "loss")
    assert [point["step"] for point in entry["points"]] == [0, 1, 2, 3, 5, 7, 8]
    assert "damaged or cut records in event files of the outputs: 3; they were passed over" in ended.err


def test_a_killed_supervisor_loses_and_doubles_nothing(stage):
    stage.task(
        """
        writer = Writer()
        for step in range(400):
            writer.add("loss", step, step)
            if step == 200:
                open("half", "w").close()
                wait_for("go")
        open("all", "w").close()
        time.sleep(600)
        """
    )
    run = stage.myelin("run", "-d", "job.yml")[0].strip()
    stage.scenario.wait_for("half")
    while not stage.metrics(run, "loss"):
        time.sleep(0.1)
    directory = pathlib.Path(json.loads(stage.myelin("status", run, "--json")[0])["paths"]["run"])
    (stage.scenario.directory / "go").touch()
    stage.scenario.wait_for("all")
    kill_both(stage.scenario, run)
    deadline = time.monotonic() + 15
    while (steps := [point["step"] for entry in stage.metrics(run, "loss") for point in entry["points"]])[-1] < 399:
        assert time.monotonic() < deadline, "what was written before the kill does not appear"
    assert steps == list(range(400))
    assert not (directory / "spool").exists()


def test_a_run_that_resumes_another_does_not_take_its_numbers(stage):
    stage.task("""Writer().add("loss", 1, 1)""")
    assert stage.run("job.yml").status == 0
    stage.myelin("resume", "@")
    assert [entry["count"] for run in ("1", "2") for entry in stage.metrics(run, "loss")] == [1, 1]


def test_what_is_exported_is_tracked_to_the_same_numbers(stage):
    stage.task(
        """
        writer = Writer("b")
        for step in range(100):
            writer.add("loss", step, step / 8)
        """
    )
    assert stage.run("job.yml").status == 0
    out, _ = stage.myelin("export", "@", "--tensorboard", "board", "--json")
    (written,) = json.loads(out)
    assert_shape(written, "Event files")
    assert written["points"] == 100 and written["task"] == "master.0"
    assert pathlib.Path(written["path"]).parent.name == "board"
    _, err = stage.myelin("export", "@", "--tensorboard", "board", status=1)
    assert "board is not empty" in err and "--force" in err
    stage.myelin("export", "@", "--tensorboard", "board", "--force")
    assert len(list((stage.scenario.directory / "board").iterdir())) == 1
    stage.scenario.job('sh -c "cp board/* $MYELIN_OUTPUTS_PATH"')
    assert stage.run("job.yml").status == 0
    first, second = stage.metrics("1", "b/loss"), stage.metrics("2", "b/loss")
    assert first == second and first[0]["count"] == 100


def test_a_run_without_metrics_has_nothing_to_export(stage):
    stage.scenario.job("true")
    assert stage.run("job.yml").status == 0
    _, err = stage.myelin("export", "@", "--tensorboard", "board", status=1)
    assert err == "myelin: run 1 has logged no metrics\n"
    assert not (stage.scenario.directory / "board").exists()
