# SPDX-License-Identifier: Apache-2.0
"""Five ways for a training to fail: docs/failures.md shows what launchers say of each. Three ranks reduce a tensor
over gloo again and again; rank 2 fails in its fourth step."""
import os
import signal
import sys

import torch
import torch.distributed as dist

FAILS_IN = 3


def step(how, number):
    if how == "exception" and number == FAILS_IN and dist.get_rank() == 2:
        raise ValueError("shapes do not match")
    dist.all_reduce(torch.ones(1000))


def main(how):
    dist.init_process_group("gloo")
    for number in range(1000):
        if number == FAILS_IN and dist.get_rank() == 2:
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "module":
                import tokenizers_fast  # noqa: F401, which nobody has
            if how == "silent":
                os._exit(3)
        step(how, number)


if __name__ == "__main__":
    main(sys.argv[1])
