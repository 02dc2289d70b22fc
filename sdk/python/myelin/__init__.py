# SPDX-License-Identifier: Apache-2.0
"""Logs the metrics of a training, at the speed of memory.

    import myelin

    run = myelin.init()
    run.params(lr=0.1, batch=64)
    for step, batch in enumerate(data):
        run.log(loss=train(batch), step=step)

Inside a task of `myelin run` this is the task's run; elsewhere `init` makes a run of its own, which
`myelin ps`, `status` and `metrics` show like any other. docs/tracking.md has the whole.
"""
from ._run import Run, finish, init
from ._spool import implementation

__version__ = "0.1.0"
__all__ = ["Run", "finish", "implementation", "init"]
