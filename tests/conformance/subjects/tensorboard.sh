# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Event files: what others write is tracked, and what myelin writes is read, to the same numbers as
# TensorBoard's own reader gives.
packages="python3-venv python3-torch"
venv=tensorboard

prepare() { make_venv tensorboard tensorboard.txt --system-site-packages; }

# A training that knows nothing of myelin: by tensorboardX, and by TensorBoard's own writer with tensors.
write_training() {
    cat >train.py <<'PY'
import os
import numpy as np
from tensorboardX import SummaryWriter
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util import tensor_util

out = os.environ["MYELIN_OUTPUTS_PATH"]
with SummaryWriter(os.path.join(out, "board", "train")) as writer:
    for step in range(500):
        writer.add_scalar("loss", 2.5 / (step + 1), step)
        writer.add_scalars("both", {"a": step * 0.1, "b": -step}, step)
        if step % 100 == 0:
            writer.add_histogram("weights", np.arange(100), step)
            writer.add_image("image", np.zeros((3, 64, 64)), step)
            writer.add_text("note", "step %d" % step, step)
    writer.add_scalar("odd", float("nan"), 1)
    writer.add_scalar("odd", float("inf"), 2)
writer = EventFileWriter(os.path.join(out, "board", "validation"))
for step in range(200):
    event = Event(wall_time=1.7e9 + step, step=step)
    for tag, kind in (("f", np.float32), ("d", np.float64), ("h", np.float16), ("i", np.int64)):
        value = event.summary.value.add(tag=tag)
        value.tensor.CopyFrom(tensor_util.make_tensor_proto(kind(step * 3)))
        value.metadata.plugin_data.plugin_name = "scalars"
    writer.add_event(event)
writer.close()
PY
}

# compare.py DIR JSON: the scalars that TensorBoard finds below DIR are the series of `metrics --json`.
write_comparison() {
    cat >compare.py <<'PY'
import json, math, os, sys
from datetime import datetime
from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.util import tensor_util

found = {}
for folder, _, files in os.walk(sys.argv[1]):
    if not any("tfevents" in name for name in files):
        continue
    # The newer reader makes tensors of all scalars; the older one has those of simple_value alone.
    new = plugin_event_accumulator.EventAccumulator(folder, size_guidance={"tensors": 0})
    old = event_accumulator.EventAccumulator(folder, size_guidance={"scalars": 0})
    new.Reload(), old.Reload()
    prefix = os.path.relpath(folder, sys.argv[1])
    prefix = "" if prefix == "." else prefix + "/"
    for tag in new.PluginTagToContent("scalars") if "scalars" in new.ActivePlugins() else []:
        found[prefix + tag] = [(e.step, e.wall_time, tensor_util.make_ndarray(e.tensor_proto).item())
                               for e in new.Tensors(tag)]
    for tag in old.Tags()["scalars"]:
        scalars = [(e.step, e.wall_time, e.value) for e in old.Scalars(tag)]
        assert str(scalars) == str(found[prefix + tag]), tag
found = {name: points for name, points in found.items() if not name.startswith("system/")}
ours = {}
for series in json.load(open(sys.argv[2])):
    if not series["name"].startswith("system/"):
        ours[series["name"]] = [(p["step"], datetime.fromisoformat(p["time"].replace("Z", "+00:00")).timestamp(),
                                 float(p["value"])) for p in series["points"]]
assert found and set(found) == set(ours), (sorted(found), sorted(ours))
for name, points in found.items():
    assert len(points) == len(ours[name]), (name, len(points), len(ours[name]))
    for (step, at, value), (our_step, our_at, our_value) in zip(points, ours[name]):
        assert step == our_step and abs(at - our_at) < 1e-6, (name, step, at, our_step, our_at)
        assert value == our_value or math.isnan(value) and math.isnan(our_value), (name, step, value, our_value)
print(sum(map(len, found.values())), "points of", len(found), "series are equal")
PY
}

# track WRITE: the training that WRITE writes, and its metrics.
track() {
    "$1"
    printf 'version: 1\nkind: experiment\nrun:\n  cmd: python3 train.py\n' >job.yml
    write_comparison
    myelin run job.yml
    expect_status 0
    myelin metrics @ '*' --json
    expect_status 0
    cp out metrics.json
}

test_what_others_write_is_tracked_to_the_numbers_that_tensorboard_reads() {
    track write_training
    python3 compare.py home/.myelin/runs/1/outputs metrics.json >out 2>err || fail "the numbers differ"
    expect_out '^2302 points of 8 series are equal$'
}

test_what_is_exported_is_read_by_tensorboard_to_the_same_numbers() {
    track write_training
    myelin export @ --tensorboard exported
    expect_status 0
    python3 compare.py exported metrics.json >out 2>err || fail "the numbers differ"
    expect_out '^2302 points of 8 series are equal$'
}

write_torch_training() {
    cat >train.py <<'PY'
import os
import torch
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(256, 4)
y = x @ torch.tensor([[1.0], [2.0], [3.0], [4.0]])
writer = SummaryWriter(os.environ["MYELIN_OUTPUTS_PATH"])
for step in range(100):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    writer.add_scalar("loss", loss, step)
    writer.add_scalar("norm", model.weight.norm(), step, new_style=True)
writer.close()
PY
}

test_a_pytorch_training_is_tracked_by_its_event_files_alone() {
    track write_torch_training
    python3 compare.py home/.myelin/runs/1/outputs metrics.json >out 2>err || fail "the numbers differ"
    expect_out '^200 points of 2 series are equal$'
}
