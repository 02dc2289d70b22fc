# SPDX-License-Identifier: Apache-2.0
"""train.py as a program of Horovod: started by `horovodrun -np 3 --gloo`, or with `framework: horovod`."""
import os
import signal
import sys

import horovod.torch as hvd
import torch

FAILS_IN = 3


def step(how, number):
    if how == "exception" and number == FAILS_IN and hvd.rank() == 2:
        raise ValueError("shapes do not match")
    hvd.allreduce(torch.ones(1000), name="gradient")


def main(how):
    hvd.init()
    for number in range(1000):
        if number == FAILS_IN and hvd.rank() == 2:
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "module":
                import tokenizers_fast  # noqa: F401, which nobody has
            if how == "silent":
                os._exit(3)
        step(how, number)


if __name__ == "__main__":
    main(sys.argv[1])
