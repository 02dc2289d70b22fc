# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# The Python package on every Python that it is made for: installed as a user installs it, into an
# environment of its own, and put through its own tests there, with the extension and without.
packages="gcc libc6-dev python3-dev python3-venv python3-pip"
venv=tensorflow
limit=600
once="a_source_distribution_holds_all_that_it_needs without_a_compiler_it_is_installed_all_the_same"
environments="sdk-3.7 sdk-3.8 sdk-3.9 sdk-3.10 sdk-3.11 sdk-3.12 sdk-3.13"
sdk_versions="3.7 3.8 3.9 3.10 3.11 3.12 3.13"

prepare() {
    local version
    make_venv tensorflow tensorflow.txt || return 1
    for version in $sdk_versions; do sdk_venv "$version" || return 1; done
}

# on VERSION: the package's own tests.
on() {
    local folder
    folder=$(environment "sdk-$1") || skip "there is no Python $1 here"
    "$folder/bin/python" -c '' 2>/dev/null || skip "Python $1 is in a folder that is closed to this user"
    MYELIN_SDK_INSTALLED=1 "$folder/bin/python" -m pytest -q -p no:cacheprovider "$folder/tests" >out 2>err ||
        fail "the tests failed on Python $1"
}

test_python_3_7() { on 3.7; }
test_python_3_8() { on 3.8; }
test_python_3_9() { on 3.9; }
test_python_3_10() { on 3.10; }
test_python_3_11() { on 3.11; }
test_python_3_12() { on 3.12; }
test_python_3_13() { on 3.13; }

test_a_source_distribution_holds_all_that_it_needs() {
    local folder
    folder=$(environment sdk-3.11) || skip "there is no Python 3.11 here"
    cp -r "$folder/source" source
    (cd source/python && "$folder/bin/python" setup.py -q sdist -d "$SCRATCH/dist") >out 2>err || fail "no distribution"
    rm -rf source
    "$folder/bin/python" -m pip install --quiet --no-index --no-build-isolation --no-deps --target there dist/myelin-*.tar.gz \
        >out 2>err || fail "the distribution cannot be installed"
    PYTHONPATH=there "$folder/bin/python" -c "import myelin; assert myelin.implementation == 'native', myelin" >out 2>err ||
        fail "it has no extension"
}

test_without_a_compiler_it_is_installed_all_the_same() {
    local folder
    folder=$(environment sdk-3.11) || skip "there is no Python 3.11 here"
    cp -r "$folder/source" source
    CC=/nonexistent "$folder/bin/python" -m pip install --quiet --no-index --no-build-isolation --no-deps --target there \
        ./source/python >out 2>err || fail "it cannot be installed"
    PYTHONPATH=there "$folder/bin/python" -c "import myelin; assert myelin.implementation == 'python', myelin" >out 2>err ||
        fail "it does not log by its Python code"
}

test_the_callback_for_keras_logs_batches_and_epochs() {
    local folder
    folder=$(environment sdk-3.11) || skip "there is no Python 3.11 here"
    cat >fit.py <<END
import keras, myelin, numpy
from myelin.keras import MyelinCallback
model = keras.Sequential([keras.layers.Dense(1)])
model.compile(loss="mse", metrics=["mae"])
run = myelin.init()
model.fit(numpy.zeros((64, 4)), numpy.ones((64, 1)), batch_size=16, epochs=3, validation_split=0.25, verbose=0,
          callbacks=[MyelinCallback()])
END
    mkdir -p spool
    PYTHONPATH="$folder/source/python" MYELIN_SPOOL="$PWD/spool" MYELIN_RUN_ID=1 python3 fit.py >out 2>err || fail "fit failed"
    PYTHONPATH="$folder/tests" python3 - >out 2>err <<END || fail "not what was fitted"
import spools
spool = spools.Spool("spool")
for name in ("loss", "mae", "val_loss", "val_mae"):
    assert [step for step, _ in spool.series(name)] == [0, 1, 2], (name, spool.series(name))
assert [step for step, _ in spool.series("batch/loss")] == list(range(9)), spool.series("batch/loss")
END
}

test_arrays_tensors_and_images_of_pil_are_logged_as_they_are() {
    local folder
    folder=$(environment sdk-3.11) || skip "there is no Python 3.11 here"
    cat >images.py <<END
import myelin, numpy, PIL.Image, tensorflow
run = myelin.init()
levels = (numpy.arange(60) * 4).astype("uint8").reshape(4, 5, 3)
for image in (levels, levels / 255.0, tensorflow.constant(levels), PIL.Image.fromarray(levels), levels.transpose(2, 0, 1)):
    kept = PIL.Image.open(run.log_image("levels", image))
    assert (numpy.asarray(kept) == levels).all(), type(image)
assert run.dropped == 0, run.reason
END
    mkdir -p spool outputs
    PYTHONPATH="$folder/source/python" TF_CPP_MIN_LOG_LEVEL=3 MYELIN_SPOOL="$PWD/spool" MYELIN_OUTPUTS_PATH="$PWD/outputs" \
        MYELIN_RUN_ID=1 python3 images.py >out 2>err || fail "an image is not what was logged"
}
