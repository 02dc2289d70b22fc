# SPDX-License-Identifier: Apache-2.0
"""Horovod's meeting place at the size of a large gang: every rank finds every other, whatever else goes on."""

RANKS = 64

# What Horovod's Gloo context does with the store, without Gloo: a connection for each request, a poll each 10 ms.
CLIENT = """
    import os, socket, subprocess, time

    rank, size = int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"])
    store = os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
    address = b"%03d:" % rank + b"a" * 132  # of one peer, in Horovod's size


    def ask(method, path, body=b""):
        with socket.create_connection(store, timeout=60) as connection:
            head = f"{method} {path} HTTP/1.1\\r\\nHost: {store[0]}\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
            connection.sendall(head.encode() + body)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        head, _, body = answer.partition(b"\\r\\n\\r\\n")
        lengths = [line for line in head.split(b"\\r\\n") if line.startswith(b"Content-Length: ")]
        assert lengths == [b"Content-Length: %d" % len(body)], head
        return int(head.split()[1]), body


    def meet(scope):
        assert ask("PUT", f"/{scope}/rank_{rank}", os.uname().nodename.encode()) == (200, b"")
        for peer in range(rank):
            assert ask("GET", f"/{scope}/rank_{peer}")[0] in (200, 404)
        assert ask("PUT", f"/{scope}/{rank}", address * (size - 1))[0] == 200
        for peer in range(size):
            while peer != rank and ask("GET", f"/{scope}/{peer}")[0] != 200:
                time.sleep(0.01)
            status, body = ask("GET", f"/{scope}/{peer}")
            assert status == 200 and body == (b"%03d:" % peer + b"a" * 132) * (size - 1), (peer, status)


    if rank == 5:
        flood = subprocess.Popen(["yes", "x" * 200])
    scopes = ["global", "cross_0_process_set_hash_1f"]
    for scope in scopes:
        meet(scope)
    print("met", size, flush=True)
    if rank == 5:
        flood.kill()
        flood.wait()
        print()
"""

# Rank 0 stays when the others have done what they came for, and asks for more than is its share.
GREEDY = """
    if rank == 0:
        for peer in range(1, size):  # each says so, behind its last PUT
            while ask("GET", f"/done/{peer}")[0] != 200:
                time.sleep(0.01)
        most, kept, answers = size * 136 + 4096, 0, []
        print("long", *(ask("PUT", "/" + "s" * n + "/k", b"x")[0] for n in (400, 600)))
        print("large", ask("PUT", "/big/1", b"x" * most)[0])
        try:
            print("larger", ask("PUT", "/big/2", b"x" * (most + 1))[0])
        except OSError:  # it may hang up before all is sent
            print("larger 413")
        for i in range(4000):
            status = ask("PUT", f"/greed/{i}", b"x" * most)[0]
            kept += most if status == 200 else 0
            answers.append(status)
        print("kept", kept, *sorted(set(answers)))
        for i in range(5000):
            if ask("PUT", f"/names/{i}", b"")[0] != 200:
                break
        print("names", i)
        assert ask("GET", f"/{scopes[0]}/{rank}")[0] == 200  # what is there stays
    else:
        ask("PUT", f"/done/{rank}")
"""


def run(scenario, client, *arguments, ranks=RANKS):
    job = scenario.job(scenario.python(client), "horovod", workers=ranks - 1)
    return scenario.run(job, "--log-limit", "8M", *arguments, seconds=120)


def test_64_ranks_meet_while_one_of_them_floods_its_log(scenario):
    ended = run(scenario, CLIENT, "--json")
    assert ended.status == 0, ended
    logs = scenario.home / "runs/1/logs"
    met = [path.name for path in logs.glob("*.log") if f"met {RANKS}\n" in path.read_text()]
    flooded = logs / "worker.4.log"  # its own word may have come behind what is kept
    assert len({*met, flooded.name}) == RANKS, sorted(met)
    assert flooded.stat().st_size > 1 << 20, "it flooded while the others met"


def test_a_rank_gets_no_more_of_the_store_than_its_bounds(scenario):
    ranks = 16  # so many that the bytes end before the names
    ended = run(scenario, CLIENT.replace("rank == 5", "False") + GREEDY, ranks=ranks)
    assert ended.status == 0, ended
    said = {line.split()[0]: line.split()[1:] for line in ended.lines_of("master.0")}
    assert said["long"] == ["200", "414"] and said["large"] == ["200"] and said["larger"] == ["413"], said
    assert said["kept"][1:] == ["200", "507"], said
    assert int(said["kept"][0]) < ranks * ranks * 136 * 12 + (16 << 20), said
    assert int(said["names"][0]) < 5000 - 1, said
