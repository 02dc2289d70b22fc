#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How slow this machine is at this moment, as a factor: 1 on two quiet cores, 4 where the same work takes four times as long.

Every limit of the tests is a number of seconds on a quiet machine times this factor, so that a busy
or small machine gets the time that it needs, and a test that hangs is still ended.

    tools/testing/pace.py     prints the factor
"""

import os
import subprocess
import threading
import time
import zlib

# What one round takes on a machine that does nothing else.
QUIET_S = 0.04
ROUNDS = 5
# A machine that is slower than this hangs.
MOST = 30.0
BLOCK = bytes(range(256)) * 4096


def round_s():
    """The seconds that one round of work takes: some computing, and some starts of processes, as tests do."""
    begun = time.monotonic()
    for _ in range(12):
        zlib.crc32(zlib.compress(BLOCK, 1))
    for _ in range(4):
        subprocess.run(["/bin/true"], check=False)
    return time.monotonic() - begun


def factor_of(seconds):
    """From the rounds that were measured. One round may be unlucky, so the middle one counts."""
    middle = sorted(seconds)[len(seconds) // 2]
    return min(MOST, max(1.0, middle / QUIET_S))


class Pace:
    """The factor, measured again as the tests run: others may begin or stop working on the machine."""

    def __init__(self, measure=round_s):
        self.measure = measure
        self.factor = factor_of([measure() for _ in range(ROUNDS)])
        self.lock = threading.Lock()

    def renew(self):
        """One more look. Rises at once, because a limit that is too short fails a good test; sinks slowly."""
        now = factor_of([self.measure()])
        with self.lock:
            self.factor = max(now, self.factor * 0.9, 1.0)

    def seconds(self, quiet_s):
        with self.lock:
            return quiet_s * self.factor


if __name__ == "__main__":
    print(f"{factor_of([round_s() for _ in range(ROUNDS)]):.1f}")
