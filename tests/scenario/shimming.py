# SPDX-License-Identifier: Apache-2.0
"""A supervisor's side of docs/shim.md, for scenarios: it starts a shim, and mirrors what that sends.

    MYELIN_SHIM   the shim under test (default: that of build/ of this checkout)
"""
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHIM = pathlib.Path(os.environ.get("MYELIN_SHIM", ROOT / "build" / "src" / "shim" / "shim-amd64")).resolve()
KEY = "0123456789abcdef0123456789ABCDEF"
DATA, STARTED, LOST, WHOLE, ENDED, IDLE, DONE = range(1, 8)
SECONDS = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(found, what, seconds=SECONDS):
    """Waits until `found` gives something true, and gives that."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, f"not {what} after {seconds} s"
        time.sleep(0.01)
    return value


class Shim:
    """One shim and its task."""

    def __init__(self, directory, environment):
        self.directory = directory / "volume"
        self.directory.mkdir(exist_ok=True)
        self.message_path = directory / "message"
        self.port = free_port()
        self.process = None
        self.environment = dict(
            environment,
            MYELIN_SHIM_KEY=KEY,
            MYELIN_SHIM_DIRECTORY=str(self.directory),
            MYELIN_SHIM_PORT=str(self.port),
            MYELIN_SHIM_MESSAGE=str(self.message_path),
            MYELIN_SPOOL=str(self.directory / "spool"),
        )
        (self.directory / "spool").mkdir(exist_ok=True)
        (self.directory / "outputs").mkdir(exist_ok=True)

    def start(self, *command, under=(), **options):
        options.setdefault("stdout", subprocess.DEVNULL)
        options.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen([*under, str(SHIM), *map(str, command)], env=self.environment, **options)
        return self

    def shell(self, script, **options):
        return self.start("/bin/sh", "-c", script, **options)

    def wait(self, seconds=SECONDS):
        return self.process.wait(timeout=seconds)

    @property
    def log(self):
        return (self.directory / "logs" / "log").read_bytes()

    def message(self):
        """The termination message; None before there is one."""
        with contextlib.suppress(OSError, ValueError):
            text = self.message_path.read_text()
            assert len(text) <= 4096
            return json.loads(text)

    def await_message(self):
        return eventually(self.message, "a termination message")

    # -- requests

    def connect(self):
        """A bare connection, once the shim listens."""

        def attempt():
            with contextlib.suppress(ConnectionRefusedError):
                return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

        return eventually(attempt, "listening")

    def ask(self, path, body="", key=KEY, method="POST", **headers):
        """The status of a request."""
        self.connect().close()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body.encode(), headers={**({"Myelin-Key": key} if key else {}), **headers})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()

    def end(self):
        """Has it end, once it may, and gives its exit code."""
        eventually(lambda: self.ask("/end") == 204, "allowed to end")
        return self.wait()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


class Stream:
    """The answer to /stream, frame by frame."""

    def __init__(self, shim, offsets=None, body=None):
        lines = body if body is not None else "".join(f"{name} {at}\n" for name, at in (offsets or {}).items())
        shim.connect().close()
        self.connection = http.client.HTTPConnection("127.0.0.1", shim.port, timeout=SECONDS)
        self.connection.request("POST", "/stream", lines.encode(), headers={"Myelin-Key": KEY})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.answer.close()
        self.connection.close()

    def _exactly(self, n):
        got = self.answer.read(n) if n else b""  # which would wait for the next chunk
        if len(got) < n:
            raise EOFError
        return got

    def read(self):
        """(kind, name, bytes, offset), or None at the end."""
        try:
            kind, zero, name_n, n, offset = struct.unpack("<BBHIQ", self._exactly(16))
            assert zero == 0 and name_n <= 4096 and n <= 65536 and DATA <= kind <= DONE
            return kind, self._exactly(name_n).decode(), self._exactly(n), offset
        except (EOFError, http.client.IncompleteRead, ConnectionResetError):
            return None


class Mirror:
    """What a supervisor has on its disk: the bytes of each file, which come in order and once."""

    def __init__(self):
        self.files, self.heads, self.sizes, self.lost = {}, {}, {}, 0
        self.pid = self.ending = None
        self.order = []
        self.is_done = False
        self.unread = None

    def offsets(self):
        """What there is of each file; of one that is whole, what WHOLE said."""
        return {name: self.sizes.get(name, len(held)) for name, held in self.files.items()}

    def take(self, frame):
        kind, name, held, offset = frame
        if kind == DATA and name.startswith("spool/") and offset == 0 and len(held) == 128:
            state = struct.unpack_from("<I", held, 72)[0]
            assert name in self.files or state == 1, "the first header says open"
            self.heads.setdefault(name, []).append(state)
            self.files.setdefault(name, bytearray(128))[:128] = held
        elif kind == DATA:
            file = self.files.setdefault(name, bytearray())
            assert offset == len(file), f"{name}: {offset} follows {len(file)}"
            assert name not in self.sizes
            file += held
        elif kind == WHOLE:
            self.files.setdefault(name, bytearray())
            self.sizes[name] = offset
            self.order.append(name)
        elif kind == STARTED:
            self.pid = offset
        elif kind == LOST:
            assert name == "log" and offset >= self.lost
            self.lost = offset
        elif kind == ENDED:
            self.ending = json.loads(held)
            self.order.append("ENDED")
        elif kind == DONE:
            assert self.ending is not None
            self.is_done = True
            self.unread = offset

    def file(self, name):
        """As it is on the disk of the reader. WHOLE of a segment gives one more than its size."""
        return bytes(self.files[name]).ljust(self.sizes.get(name, 0) - name.startswith("spool/"), b"\0")

    def follow(self, shim, until=lambda mirror: mirror.is_done, pause=0.0, acknowledges=False):
        """Mirrors over one stream until that holds, or the stream ends."""
        with Stream(shim, self.offsets()) as stream:
            while not until(self):
                frame = stream.read()
                if frame is None:
                    break
                self.take(frame)
                if acknowledges and frame[0] == WHOLE:
                    assert shim.ask("/ack", "".join(f"{n} {at}\n" for n, at in self.offsets().items())) == 204
                if pause:
                    time.sleep(pause)
        return self
