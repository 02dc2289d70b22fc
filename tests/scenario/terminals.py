# SPDX-License-Identifier: Apache-2.0
"""`myelin` on a terminal of its own, and what stands there."""
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata

from conftest import PROGRAM, SECONDS

COLOUR = re.compile("\x1b\\[[0-9;:]*m")


class Terminal:
    """A `myelin` that runs on a terminal."""

    def __init__(self, scenario, *arguments, columns=100, rows=30, environment=None):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            for number in (signal.SIGINT, signal.SIGQUIT):  # a shell's background job ignores them
                signal.signal(number, signal.SIG_DFL)
            os.chdir(scenario.directory)
            variables = {**scenario.environment, "TERM": "xterm", **(environment or {})}
            os.execve(PROGRAM, [str(PROGRAM), *map(str, arguments)], variables)
        self.out = b""

    def read(self):
        """Reads what has come; whether more can come."""
        if not select.select([self.master], [], [], 0.1)[0]:
            return True
        try:
            piece = os.read(self.master, 65536)
        except OSError as error:
            assert error.errno == errno.EIO  # the last one who had the terminal open is gone
            return False
        self.out += piece
        return bool(piece)

    def read_until(self, condition, seconds=SECONDS):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline and self.read(), self.out

    def press(self, keys):
        os.write(self.master, keys)

    def takes_lines(self):
        """Whether the terminal is set as a shell leaves it: lines, echoed."""
        flags = termios.tcgetattr(self.master)[3]
        return bool(flags & termios.ICANON and flags & termios.ECHO)

    def finish(self, seconds=SECONDS):
        """Waits for its end; gives its status and all that it wrote."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.read():
            pass
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), self.out.decode(errors="replace")


def on_terminal(scenario, *arguments, columns=100, keys=None, environment=None):
    """Runs `myelin` on a terminal; gives its status and all that it wrote there."""
    terminal = Terminal(scenario, *arguments, columns=columns, environment=environment)
    if keys:
        terminal.read_until(lambda: keys[0] in terminal.out)
        terminal.press(keys[1])
    return terminal.finish()


def visible(text):
    """What stands on the terminal in the end, line by line, without colours."""
    lines = []
    text = re.sub("\x1b\\[\\?7l[^\n]*\n[^\n]*?\x1b\\[A(?=\r*\x1b\\[J)", "", text)  # a line above the status, and that
    for line in text.replace("\r\n", "\n").split("\n"):
        line = re.split("\r*\x1b\\[J", line)[-1]
        lines.append(COLOUR.sub("", line))
    return lines


def columns_of(line):
    """Columns that a line takes, without its colours."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in COLOUR.sub("", line))
