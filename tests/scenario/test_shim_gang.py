# SPDX-License-Identifier: Apache-2.0
"""The shim among the other pods of a gang: names that it waits for, the rendezvous that it serves, the leader that it watches.

For arm64 it is the shim that `render` puts into the ConfigMap of pods, under an emulator."""
import base64
import concurrent.futures
import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from shimming import SHIM, free_port

KEY = "0123456789abcdef0123456789abcdef"
LOOSE = {"MYELIN_SHIM_LINGER": "0"}
QEMU = "qemu-aarch64"


def call(scenario, *arguments):
    ended = scenario.finish(scenario.start(*arguments))
    assert ended.status == 0, ended
    return ended.out


class Pod:
    """A directory, and the shim as it is started in one."""

    def __init__(self, scenario, words, name):
        self.scenario, self.words = scenario, words
        self.directory = scenario.directory / name
        self.directory.mkdir()
        self.message = self.directory / "message"
        self.process = None
        self.port = free_port()

    def start(self, *command, under=(), **variables):
        environment = dict(self.scenario.environment, MYELIN_SHIM_DIRECTORY=str(self.directory),
                           MYELIN_SHIM_MESSAGE=str(self.message), MYELIN_SHIM_PORT=str(self.port), **variables)
        self.process = subprocess.Popen([*under, *self.words, *command], env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.directory)
        return self

    def stop(self):
        """Has it end its task, and tells one that lingers that nobody wants what is left."""
        if not self.process or self.process.poll() is not None:
            return
        self.process.terminate()
        request = f"POST /end HTTP/1.1\r\nHost: x\r\nMyelin-Key: {KEY}\r\nContent-Length: 0\r\n\r\n".encode()
        deadline = time.monotonic() + 20
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "it does not end"
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(request)
                connection.recv(4096)
            time.sleep(0.05)

    def end(self, seconds=40):
        """Its exit code, what it said, and the cause that it gave."""
        out = self.process.communicate(timeout=seconds)[0].decode()
        return self.process.returncode, out, json.loads(self.message.read_text())


def emulated(scenario):
    """The shim of arm64, and what runs it here."""
    if "arm64" not in json.loads(call(scenario, "version", "--json"))["shims"]:
        pytest.skip("this build has no shim for arm64: tools/musl-arm64 says what it needs")
    if not shutil.which(QEMU):
        pytest.skip(f"there is no {QEMU} to run it")
    scenario.home.mkdir(exist_ok=True)
    (scenario.home / "config.yml").write_text("kubernetes: {architecture: arm64}\n")
    rendered = call(scenario, "render", scenario.job("true", head="build: {image: x}"))
    shim = scenario.directory / "shim-arm64"
    shim.write_bytes(base64.b64decode(re.search(r"shim-arm64: \"?([A-Za-z0-9+/=]+)", rendered)[1]))
    shim.chmod(0o555)
    return [QEMU, shim]


@pytest.fixture(params=["amd64", "arm64"])
def pod(request, scenario):
    """Makes pods of one processor."""
    words = [SHIM] if request.param == "amd64" else emulated(scenario)
    made = []

    def make(name="pod"):
        made.append(Pod(scenario, words, name))
        return made[-1]

    yield make
    for one in made:
        one.stop()


# -- names

# Names come from a file that stands in the place of /etc/hosts, in a namespace of its own.
HOSTS = ["unshare", "-rm", "sh", "-c", 'mount --bind hosts /etc/hosts && exec "$@"', "sh"]


def needs_namespace(pod):
    (pod.directory / "hosts").write_text("127.0.0.1 localhost\n")
    if subprocess.run([*HOSTS, "true"], cwd=pod.directory, check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody have a namespace of his own")
    return pod


def test_the_command_starts_when_every_name_resolves(pod):
    one = needs_namespace(pod()).start("echo", "started", under=HOSTS, MYELIN_SHIM_WAIT="a.example  b.example ", **LOOSE)
    time.sleep(0.5)
    assert one.process.poll() is None and not (one.directory / "logs/log").exists()
    with open(one.directory / "hosts", "a", encoding="utf-8") as hosts:
        hosts.write("127.0.0.2 a.example\n127.0.0.3 b.example\n")
    code, out, cause = one.end()
    assert (code, out) == (0, "started\n") and cause["exit"] == 0


def test_a_name_that_never_resolves_is_named_and_nothing_is_started(pod):
    one = needs_namespace(pod())
    one.start("touch", "started", under=HOSTS, MYELIN_SHIM_WAIT="localhost never.invalid", MYELIN_SHIM_PATIENCE="1", **LOOSE)
    code, out, cause = one.end()
    assert code == 125 and "never.invalid" in cause["error"] and "never.invalid" in out
    assert not (one.directory / "started").exists()


def test_who_waits_for_a_name_can_be_ended(pod):
    one = needs_namespace(pod()).start("touch", "started", under=HOSTS, MYELIN_SHIM_WAIT="never.invalid", **LOOSE)
    time.sleep(0.5)
    one.process.terminate()
    code, _, cause = one.end()
    assert code == 125 and "before it was started" in cause["error"]
    assert not (one.directory / "started").exists()


def children_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()
    return []


def test_who_was_ended_before_the_start_asks_for_no_names_while_it_lingers(pod):
    one = listening(pod().start("true", MYELIN_SHIM_WAIT="never.invalid", MYELIN_SHIM_KEY=KEY, MYELIN_SHIM_LINGER="60"))
    one.process.terminate()
    deadline = time.monotonic() + 20
    while not one.message.exists() or children_of(one.process.pid):
        assert time.monotonic() < deadline, "it asks on"
        time.sleep(0.01)
    deadline = time.monotonic() + 6  # the longest pause between two questions is 5 s
    while time.monotonic() < deadline:
        assert not children_of(one.process.pid)
        time.sleep(0.002)
    one.stop()


def test_who_has_ended_no_longer_asks_for_its_leader(pod):
    one = pod().start("sleep", "0.5", MYELIN_SHIM_KEY=KEY, MYELIN_SHIM_LEADER="never.invalid", MYELIN_SHIM_LINGER="60")
    deadline = time.monotonic() + 20
    while not one.message.exists() or children_of(one.process.pid):
        assert time.monotonic() < deadline, "it asks on"
        time.sleep(0.01)
    deadline = time.monotonic() + 3  # a connection is made every 2 s
    while time.monotonic() < deadline:
        assert not children_of(one.process.pid)
        time.sleep(0.002)
    one.stop()


@pytest.mark.parametrize("variable", ["PATIENCE", "RENDEZVOUS", "TASKS", "LEADER_GONE"])
def test_a_number_that_is_none_is_refused_with_its_name(pod, variable):
    name = "MYELIN_SHIM_" + variable
    code, out, cause = pod().start("touch", "started", **{name: "many"}, **LOOSE).end()
    assert code == 125 and name in cause["error"] and name in out


# -- the rendezvous


def ask(port, method, path, body=b"", host="127.0.0.1"):
    with socket.create_connection((host, port), timeout=20) as connection:
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        return answer_of(connection)


def answer_of(connection):
    answer = b""
    while piece := connection.recv(65536):
        answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head.split(b"\r\n"), head
    return int(head.split()[1]), body


def serving(pod, tasks):
    port = free_port()
    one = pod().start("sleep", "60", MYELIN_SHIM_RENDEZVOUS=str(port), MYELIN_SHIM_TASKS=str(tasks), **LOOSE)
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return one, port
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise AssertionError(one.end(1))


def test_ranks_meet_at_the_shim_of_the_master(pod):
    ranks, scopes = 12, ("global", "local_worker-0", "cross_0")
    address = b"%03d" + b"a" * 133
    _, port = serving(pod, ranks)

    def meet(rank):
        for scope in scopes:
            assert ask(port, "PUT", f"/{scope}/{rank}", (address % rank) * (ranks - 1)) == (200, b"")
            for peer in range(ranks):
                while (got := ask(port, "GET", f"/{scope}/{peer}"))[0] == 404:
                    time.sleep(0.01)
                assert got == (200, (address % peer) * (ranks - 1))
        return rank

    with concurrent.futures.ThreadPoolExecutor(ranks) as pool:
        assert list(pool.map(meet, range(ranks))) == list(range(ranks))
    assert all(ask(port, "DELETE", f"/{scope}/{rank}")[0] == 200 for scope in scopes for rank in range(ranks))
    assert ask(port, "GET", "/global/0")[0] == 404, "it was deleted"


def test_a_request_may_come_in_pieces_and_a_large_answer_go_slowly(pod):
    _, port = serving(pod, 4096)
    large = bytes(range(256)) * 2000
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        for piece in (b"PUT /s/large HT", b"TP/1.1\r\ncontent-length: ", b"%d\r\n\r" % len(large), b"\n", large[:9], large[9:]):
            connection.sendall(piece)
            time.sleep(0.05)
        assert answer_of(connection) == (200, b"")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(20)
        slow.connect(("127.0.0.1", port))
        slow.sendall(b"GET /s/large HTTP/1.1\r\n\r\n")
        time.sleep(0.2)
        assert ask(port, "GET", "/s/other")[0] == 404, "another is served meanwhile"
        assert answer_of(slow) == (200, large)


def test_what_a_rank_of_a_large_gang_leaves_finds_room(pod):
    _, port = serving(pod, 9000)
    addresses = b"a" * 136 * 8999
    assert ask(port, "PUT", "/global/0", addresses) == (200, b"")
    assert ask(port, "GET", "/global/0") == (200, addresses)


def test_what_is_no_request_or_over_the_bounds_is_refused_and_the_others_are_served(pod):
    _, port = serving(pod, 2)
    assert ask(port, "PUT", "/s/" + "k" * 600, b"x")[0] == 414
    assert ask(port, "POST", "/s/k", b"x")[0] == 405
    assert ask(port, "GET", "/s")[0] == 400
    for garbage in (b"\0\xff\r\n\r\n", b"GET\r\n\r\n", b"x" * 9000, b"PUT /s/k HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
                    b"PUT /s/k HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"PUT /s/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(garbage)
            try:
                assert 400 <= answer_of(connection)[0] < 500, garbage
            except ConnectionResetError:  # it hangs up on what it has not read
                assert len(garbage) > 8192
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    assert ask(port, "PUT", "/s/k", b"v")[0] == 200 and ask(port, "GET", "/s/k") == (200, b"v")
    for one in silent:
        one.close()


def test_more_visitors_than_the_gang_has_wait_their_turn(pod):
    _, port = serving(pod, 2)
    crowd = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(150)]
    for one in crowd:  # in order: those that stand behind are let in as others leave
        one.sendall(b"GET /s/k HTTP/1.1\r\n\r\n")
        assert answer_of(one)[0] == 404
        one.close()


def test_a_port_that_is_taken_is_the_cause_of_the_failure(pod):
    with socket.create_server(("", 0)) as taken:
        one = pod().start("touch", "started", MYELIN_SHIM_RENDEZVOUS=str(taken.getsockname()[1]), **LOOSE)
        code, _, cause = one.end()
    assert code == 125 and "rendezvous" in cause["error"]
    assert not (one.directory / "started").exists()


# -- the leader

UNTIL_ALONE = 'while kill -0 $PPID 2>/dev/null; do sleep 0.1; done'  # so that nothing is left of a shim that is killed


def listening(one):
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", one.port)).close()
            return one
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise AssertionError("nobody listens")


def leading(pod, command):
    return listening(pod("leader").start("sh", "-c", command, MYELIN_SHIM_KEY=KEY, MYELIN_SHIM_LINGER="60"))


def following(pod, leader, command="exec sleep 60", key=KEY, **seconds):
    times = {f"MYELIN_SHIM_LEADER_{name.upper()}": str(value) for name, value in seconds.items()}
    return pod("follower").start("sh", "-c", command, MYELIN_SHIM_KEY=key, MYELIN_SHIM_LEADER="127.0.0.1",
                                 MYELIN_SHIM_LEADER_PORT=str(leader.port), **times, **LOOSE)


def test_a_task_whose_leader_is_gone_is_ended(pod):
    leader = leading(pod, UNTIL_ALONE)
    follower = following(pod, leader, gone=2, failed=60)
    time.sleep(1)
    leader.process.kill()
    leader.process.wait()
    _, _, cause = follower.end()
    assert cause["signal"] == 15 and "cannot be reached" in cause["gave_up"]


def test_a_leader_that_does_not_know_the_gang_is_no_leader(pod):
    follower = following(pod, leading(pod, "exec sleep 60"), key=KEY[::-1], gone=2)
    assert "cannot be reached" in follower.end()[2]["gave_up"]


def test_a_task_whose_leader_failed_is_ended_soon(pod):
    follower = following(pod, leading(pod, "sleep 1; exit 3"), failed=1)
    _, _, cause = follower.end()
    assert cause["signal"] == 15 and "has failed" in cause["gave_up"]


def test_a_task_whose_leader_ended_well_has_its_time_to_end_by_itself(pod):
    leader = leading(pod, "true")
    assert "has ended" in following(pod, leader, ended=1, failed=60).end()[2]["gave_up"]
    code, out, cause = following(lambda name: pod(name + "-2"), leader, "sleep 2; echo done; exit 4", failed=1).end()
    assert (code, out) == (4, "done\n") and "gave_up" not in cause


def test_a_leader_that_runs_is_heard(pod):
    leader = leading(pod, "exec sleep 60")
    code, out, cause = following(pod, leader, "sleep 9; echo done", gone=7).end()
    assert (code, out) == (0, "done\n") and "gave_up" not in cause


def test_a_follower_that_stood_still_does_not_take_its_leader_for_gone(pod):
    leader = leading(pod, "exec sleep 60")
    follower = listening(following(pod, leader, "sleep 11; echo done", gone=7))
    time.sleep(1)
    follower.process.send_signal(signal.SIGSTOP)
    time.sleep(8)
    follower.process.send_signal(signal.SIGCONT)
    code, out, cause = follower.end()
    assert (code, out) == (0, "done\n") and "gave_up" not in cause


def test_while_a_supervisor_is_there_it_decides(pod):
    leader = leading(pod, "exit 3")
    follower = listening(following(pod, leader, failed=2))
    request = f"POST /stream HTTP/1.1\r\nHost: x\r\nMyelin-Key: {KEY}\r\nContent-Length: 0\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", follower.port), timeout=20) as stream:
        stream.sendall(request)
        assert stream.recv(4096).startswith(b"HTTP/1.1 200")
        time.sleep(4)
        assert follower.process.poll() is None, "nobody ended it"
    assert "has failed" in follower.end()[2]["gave_up"]
