# SPDX-License-Identifier: Apache-2.0
"""Images and texts that tasks log with a step are listed by name, step and task, and fetched."""
import json
import os

import pytest
from shapes import assert_run, assert_shape

PNG = b"\x89PNG\r\n\x1a\n"

# What an SDK does, from the page alone.
TASK = """
import os
rank, attempt = os.environ["MYELIN_RANK"], os.environ["MYELIN_ATTEMPT"]
def log(name, step, suffix, data):
    folder = os.path.join(os.environ["MYELIN_OUTPUTS_PATH"], "media", name)
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/{step:09d}-{rank}{'-' + attempt if attempt != '0' else ''}.{suffix}", "wb") as file:
        file.write(data)
for step in (0, 90, 1000):
    log("val/samples", step, "png", b"\\x89PNG\\r\\n\\x1a\\n" + str(step).encode())
if rank == "1":
    log("note", 5, "txt", "gr\\u00fc\\u00dfe \\x1b[31m\\nsecond line".encode())
    log("note", 6, "txt", b"\\xff\\xfe")
log("strange", 1, "exe", b"no media")
"""


@pytest.fixture
def stage(scenario):
    scenario.job(scenario.python(TASK), framework="pytorch", workers=1)
    ended = scenario.run("job.yml")
    assert ended.status == 0, ended

    def myelin(*arguments, status=0):
        process = scenario.start(*arguments)
        out, err = process.communicate(timeout=60)
        assert process.returncode == status, (out, err)
        return out.decode(), err.decode()

    scenario.myelin = myelin
    return scenario


def test_media_are_listed_by_name_step_and_task(stage):
    out, _ = stage.myelin("outputs", "@", "--media")
    head, *rows = [line.split() for line in out.splitlines()]
    assert head == ["MEDIA", "STEP", "TASK", "TYPE", "SIZE", "TIME", "PATH", "TEXT"]
    assert [tuple(row[:4]) for row in rows] == [("note", "5", "worker.0", "text"), ("note", "6", "worker.0", "text")] + [
        ("val/samples", step, task, "image") for step in ("0", "90", "1000") for task in ("master.0", "worker.0")]
    assert "grüße" in out and "\x1b[31m" not in out and "strange" not in out
    listed = json.loads(stage.myelin("outputs", "@", "--media", "--json")[0])
    for entry in listed:
        assert_shape(entry, "Images and texts")
    assert [(e["name"], e["type"], e["step"], e["task"], e["rank"], e["attempt"]) for e in listed[:3]] == [
        ("note", "text", 5, "worker.0", 1, 0), ("note", "text", 6, "worker.0", 1, 0), ("val/samples", "image", 0, "master.0", 0, 0)]


def test_names_are_chosen_by_patterns_and_the_files_are_fetched(stage):
    assert len(stage.myelin("outputs", "@", "--media", "val/*")[0].splitlines()) == 7
    assert len(stage.myelin("outputs", "@", "--media", "note", "nothing")[0].splitlines()) == 3
    out, err = stage.myelin("outputs", "@", "--media", "samples")
    assert out == "" and "has logged no images and texts of such a name" in err
    stage.myelin("outputs", "@", "media/val/samples", "--copy", "got")
    got = stage.directory / "got"
    (found,) = got.rglob("000001000-1.png")
    assert found.read_bytes() == PNG + b"1000"


def test_status_tells_how_many_there_are_and_up_to_which_step(stage):
    out, _ = stage.myelin("status", "@")
    assert "note (2 texts to step 6), val/samples (6 images to step 1000)" in out
    run = json.loads(stage.myelin("status", "@", "--json")[0])
    assert_run(run)
    assert run["media"] == [{"name": "note", "images": 0, "texts": 2, "last_step": 6},
                            {"name": "val/samples", "images": 6, "texts": 0, "last_step": 1000}]
    assert_shape(run["media"][0], "media")


def test_a_link_out_of_the_outputs_is_not_followed(stage):
    outputs = json.loads(stage.myelin("status", "@", "--json")[0])["paths"]["outputs"]
    os.symlink("/etc/passwd", os.path.join(outputs, "media", "note", "7-0.txt"))
    assert "root:" not in stage.myelin("outputs", "@", "--media", "note")[0]
    assert stage.myelin("outputs", "@", "--media", "--copy", "x", status=2)[1].startswith("myelin: of --copy")
