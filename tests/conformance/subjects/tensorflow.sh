# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# TensorFlow 2: parameter servers, and all-reduce with and without a chief. TF_CONFIG is all it gets.
packages=python3-venv
venv=tensorflow
environments=sdk-3.11
once="without_a_chief_worker_0_is_the_chief the_better_of_two_trainings_is_found_compared_and_fetched"
limit=300

prepare() { make_venv tensorflow tensorflow.txt && sdk_venv 3.11; }

# tf_job REPLICAS CODE: a job of the Python lines of CODE, which know who they are (role, index), have
# serve(), and say by failing() that they are about to fail.
tf_job() {
    cat >job.py <<EOF
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
role, index = resolver.task_type, resolver.task_id

def failing():
    open("failed_at", "w").write(str(time.time()))

def serve():
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=role, task_index=index)
    print("serves", flush=True)
    return server
$2
EOF
    cat >job.yml <<EOF
version: 1
kind: experiment
framework: tensorflow
environment:
  replicas: $1
run:
  cmd: python3 job.py
EOF
}

test_parameter_servers_train_and_are_ended_after_the_chief() {
    can_track
    myelin run examples/tensorflow-ps/polyaxonfile.yml
    expect_status 0
    expect_out '^ps\.0 .*ps 0 serves$'
    expect_out '^worker\.0 .*batch 0 of this worker, loss'
    expect_out '^worker\.1 .*batch 0 of this worker, loss'
    expect_out '^master\.0 .*kept by /job:ps/'
    expect_out '^master\.0 .*result: .* 625 steps$'
    expect_learned
    expect_tracked master.0
    expect_nobody_left
}

test_chief_and_workers_train_one_model() {
    can_track
    myelin run examples/tensorflow-multiworker/polyaxonfile.yml
    expect_status 0
    expect_out '^master\.0 .*chief 0, one of 3: weights equal$'
    expect_out '^worker\.0 .*worker 0, one of 3: weights equal$'
    expect_out '^worker\.1 .*worker 1, one of 3: weights equal$'
    expect_out '^master\.0 .*result: loss'
    expect_learned
    expect_tracked master.0 worker.0 worker.1
    expect_nobody_left
}

test_the_better_of_two_trainings_is_found_compared_and_fetched() {
    can_track
    expect_found_again tensorflow-multiworker '
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf, train
network = train.Network(seed=0)
network.weights.assign(tf.io.parse_tensor(tf.io.read_file("best/weights"), tf.float32))
print("loss %.4f, accuracy %.4f" % train.evaluate(network, *train.make_spirals(1000, seed=2)))'
}

test_without_a_chief_worker_0_is_the_chief() {
    local index
    myelin run examples/tensorflow-masterless/polyaxonfile.yml
    expect_status 0
    for index in 0 1 2; do
        expect_out "^worker\.$index .*worker $index, one of 3: weights equal\$"
    done
    expect_out '^worker\.0 .*result: loss'
    expect_learned
    expect_nobody_left
}

test_a_worker_that_dies_under_parameter_servers_is_named() {
    # The chief by itself would wait for this worker to come back, for ever.
    tf_job '{n_workers: 2, n_ps: 1}' '
if role == "ps":
    serve().join()
elif role == "worker":
    server = serve()
    while index == 0 or not os.path.exists("chief_has_begun"):
        time.sleep(0.1)
    failing()
    sys.exit(41)
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    variable = tf.Variable(0.0)
step = tf.function(lambda: variable.assign_add(1.0))
while True:
    coordinator.schedule(step)
    coordinator.join()
    open("chief_has_begun", "w")'
    myelin run job.yml
    expect_status 41
    expect_blamed worker.1
    expect_over_soon
    expect_nobody_left
}

test_a_worker_that_raises_is_the_one_named() {
    tf_job '{n_workers: 2}' '
strategy = tf.distribute.MultiWorkerMirroredStrategy()
@tf.function
def meet():
    return strategy.reduce("SUM", strategy.run(lambda: tf.constant(1.0)), axis=None)
assert float(meet()) == 3
if role == "worker" and index == 0:
    failing()
    raise ValueError("the batch of worker 0 is rotten")
meet()'
    myelin run job.yml
    expect_status 1
    expect_blamed worker.0
    expect_err 'ValueError: the batch of worker 0 is rotten'
    expect_over_soon
    expect_nobody_left
}

# Keras writes for TensorBoard by a callback; TensorFlow reads it again by an iterator of its own.
test_a_keras_training_is_tracked_by_its_event_files_alone() {
    cat >train.py <<'EOF'
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
x = tf.random.normal((256, 4))
y = tf.reduce_sum(x, 1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
model.fit(x, y, epochs=12, validation_split=0.25, verbose=0, callbacks=[
    tf.keras.callbacks.TensorBoard(os.environ["MYELIN_OUTPUTS_PATH"], write_graph=True, histogram_freq=1)])
EOF
    cat >compare.py <<'EOF'
import glob, json, os, sys
import tensorflow as tf

found = {}
for path in glob.glob(sys.argv[1] + "/**/*tfevents*", recursive=True):
    folder = os.path.relpath(os.path.dirname(path), sys.argv[1])
    for event in tf.compat.v1.train.summary_iterator(path):
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == "scalars":
                found.setdefault(folder + "/" + value.tag, []).append(
                    [event.step, float(tf.make_ndarray(value.tensor))])
ours = {series["name"]: [[point["step"], point["value"]] for point in series["points"]]
        for series in json.load(open(sys.argv[2])) if not series["name"].startswith("system/")}
assert found and found == ours, (found, ours)
assert ours["train/epoch_loss"][-1][1] < ours["train/epoch_loss"][0][1] / 2
print(sum(map(len, found.values())), "points are equal, of", *sorted(found))
EOF
    printf 'version: 1\nkind: experiment\nrun:\n  cmd: python3 train.py\n' >job.yml
    myelin run job.yml
    expect_status 0
    myelin metrics @ '*' --json
    expect_status 0
    cp out metrics.json
    python3 compare.py home/.myelin/runs/1/outputs metrics.json >out 2>err || fail "the numbers differ"
    expect_out '^[0-9]+ points are equal, of .*train/epoch_loss.* validation/epoch_mae'
}
