# SPDX-License-Identifier: Apache-2.0
"""Attacks of one member of a shared home on another and on root. SECURITY.md has the laws that they hold."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

from sharing import DAEMON, NOBODY, NOGROUP, Person, shared_home, switch_to
from test_queue import UNTIL_GO, asking, events, statuses, wait_for_end, wait_for_status

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")

UUID = "0123456789abcdef0123456789abcdef"
LOOKS = [["ps"], ["ps", "-a"], ["runs"], ["why"], ["node"]]


@pytest.fixture
def stage(scenario):
    """The home, and root, ann (nobody) and mallory (daemon)."""
    with shared_home(scenario, 0o3770) as program:
        ann, mallory = (Person(scenario, program, switch_to(user), "022") for user in ("nobody", "daemon"))
        yield scenario, Person(scenario, program, [], "022"), ann, mallory


def boot_id():
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def created(uuid=UUID, **more):
    line = {"seq": 1, "time": "2026-01-01T00:00:00.000000Z", "elapsed": 0.1, "attempt": 0, "event": "created",
            "uuid": uuid, "name": "planted", "owner": "daemon", "host": socket.gethostname(), "boot_id": boot_id(),
            "framework": "pytorch", "command": "true", "directory": "/", "counts": {"master": 1}, **more}
    return json.dumps(line) + "\n"


def plant(scenario, number=66, journal=None, files=(), user=DAEMON):
    """A run of mallory's, as no program of ours would make it."""
    path = scenario.home / "runs" / str(number)
    for folder in (path, path / "logs", path / "outputs", path / "spool"):
        folder.mkdir()
    if journal is not None:
        (path / "events.jsonl").write_text(journal)
    (path / "lock").write_text("")
    for name, text in dict(files).items():
        (path / name).write_text(text)
    for entry in [path, *path.rglob("*")]:
        os.chown(entry, user, NOGROUP, follow_symlinks=False)
        entry.chmod(0o755 if entry.is_dir() else 0o644)
    return path


def link(path, target):
    if path.is_dir():
        path.rmdir()
    elif path.exists():
        path.unlink()
    path.symlink_to(target)
    os.chown(path, DAEMON, NOGROUP, follow_symlinks=False)


def look_with_everything(*people, run=66):
    for person in people:
        for words in [*LOOKS, ["status", run], ["logs", run], ["metrics", run], ["outputs", run], ["why", run],
                      ["compare", run, run], ["stop", run], ["kill", run], ["rm", run], ["rm", "--force", run],
                      ["attach", run], ["gc", "--keep", 0, "--yes"], ["reindex"], ["restart", run], ["resume", run]]:
            code, out, err = person.say(*words)
            assert code is not None and code >= 0, f"{words}: ended by signal {-code}\n{err}"


def trap(scenario):
    """A kubeconfig whose plugin leaves a proof that somebody has executed it."""
    proof = scenario.directory / "proof"
    plugin = scenario.write("plugin", f"#!/bin/sh\nid -u >>{proof}\n")
    plugin.chmod(0o755)
    kubeconfig = scenario.write("kubeconfig", f"""
        apiVersion: v1
        kind: Config
        current-context: c
        clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:9"}}}}]
        contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
        users: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {plugin}}}}}}}]
        """)
    return proof, kubeconfig


def test_settings_of_another_member_are_ignored(stage):
    scenario, root, ann, _ = stage
    proof, kubeconfig = trap(scenario)
    settings = scenario.home / "config.yml"
    settings.write_text(f"runs_on: kubernetes\nkubernetes: {{kubeconfig: {kubeconfig}, image: x}}\n")
    os.chown(settings, DAEMON, NOGROUP)
    for person in (root, ann):
        code, out, err = person.say("run", asking(scenario, "true"))
        assert code == 0 and "are ignored: they belong to daemon" in err, err
    assert not proof.exists()
    os.chown(settings, 0, NOGROUP)
    settings.chmod(0o664)
    code, out, err = ann.say("run", asking(scenario, "true"))
    assert code == 125 and "can be written by other users" in err and "chmod go-w" in err
    settings.write_text("runs_on: this-machine\n")
    settings.chmod(0o644)
    assert ann.say("run", asking(scenario, "true"))[0] == 0


@pytest.mark.parametrize("words", [["attach", 66], ["stop", 66], ["kill", 66], ["why", 66], ["restart", 66], ["rm", "--force", 66]])
def test_a_planted_run_on_a_cluster_executes_nothing(stage, words):
    scenario, root, ann, _ = stage
    proof, kubeconfig = trap(scenario)
    request = {"options": [{"name": "file", "value": "job.yml"}, {"name": "kubeconfig", "value": str(kubeconfig)},
                           {"name": "on", "value": "kubernetes"}], "environment": {}}
    job = "version: 1\nkind: experiment\nbuild: {image: x}\nrun: {cmd: 'true'}\n"
    plant(scenario, journal=created(backend="native", cluster="c", namespace="d", image="x"),
          files={"request.json": json.dumps(request), "job.yml": job})
    for person in (ann, root):
        code, out, err = person.say(*words)
        if code == 0 and words[0] == "rm":
            continue  # root removes it, which asks no cluster
        assert not proof.exists(), f"{words} executed what the planted run names: {err}"
        assert "belongs to daemon" in err or words[0] == "why", err


def test_links_in_a_planted_run_lead_nowhere(stage):
    scenario, root, ann, _ = stage
    victim = scenario.directory / "victim"
    victim.mkdir()
    (victim / "bashrc").write_text("precious\n")
    (victim / "series").mkdir()
    (victim / "series" / "data-1").write_text("precious\n")
    (victim / "spool" / "master.0").mkdir(parents=True)
    (victim / "spool" / "master.0" / "x-1-1.spool").write_text("precious\n")
    for entry in [victim, *victim.rglob("*")]:
        os.chown(entry, NOBODY, NOGROUP)

    def contents():
        return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(victim.rglob("*"))}

    before = contents()
    for name, target in [("events.jsonl", "bashrc"), ("lock", "new-file"), ("lock", "bashrc"), ("series", "series"),
                         ("spool", "spool"), ("logs", ""), ("outputs", ""), ("public.jsonl", "bashrc"),
                         ("request.json", "bashrc")]:
        path = plant(scenario, journal=created(), files={"request.json": "{}"})
        link(path / name, victim / target)
        look_with_everything(ann, root)
        assert contents() == before, f"something came through the link {name} -> {target}"
        subprocess.run(["rm", "-rf", path], check=True)


def test_a_living_run_is_not_ended_through_a_link_to_its_journal(stage):
    scenario, root, ann, _ = stage
    held = ann.detached(asking(scenario, scenario.script(UNTIL_GO)))
    scenario.wait_for("up")
    path = plant(scenario, journal=created())
    link(path / "events.jsonl", scenario.home / "runs" / str(held) / "events.jsonl")
    for person in (ann, root):
        for words in LOOKS:
            person.say(*words)
    assert statuses(scenario, held)[-1] == "running"
    (scenario.directory / "go").touch()
    assert wait_for_end(scenario, held) == "succeeded"


@pytest.mark.parametrize("uuid", ["../../../../init.scope", "..", "0123456789abcdef0123456789abcde/", "", "A" * 32])
def test_a_forged_uuid_is_no_run(stage, uuid):
    scenario, root, ann, _ = stage
    plant(scenario, journal=created(uuid))
    for person in (root, ann):
        assert person.json("ps", "-a") == []


def test_a_forged_lock_gets_nobody_signalled(stage):
    scenario, root, ann, mallory = stage
    sleeper = subprocess.Popen(["sleep", "60"])
    holder = None
    try:
        path = plant(scenario, journal=created())
        (path / "lock").write_text(f"{sleeper.pid}\n" + "\n" * 10)
        holder = subprocess.Popen([*switch_to("daemon"), "/usr/bin/python3", "-c", f"""if True:
            import fcntl, os, struct, time
            fd = os.open("{path}/lock", os.O_RDWR)
            fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
            print("held", flush=True)
            time.sleep(60)"""], stdout=subprocess.PIPE)
        assert holder.stdout.readline() == b"held\n"
        for person in (root, ann):
            for words in (["stop", 66], ["kill", 66]):
                code, out, err = person.say(*words)
                assert code != 0 and ("does not hold it" in err or "belongs to daemon" in err), err
        assert sleeper.poll() is None, "a process that has nothing to do with the run was signalled"
    finally:
        for process in (sleeper, holder):
            if process:
                process.kill()
                process.wait()


def test_a_lock_that_changes_while_root_waits_gets_no_process_of_root_signalled(stage):
    """Its real user lets root signal its own processes also while it acts as the owner of a run."""
    scenario, root, _, _ = stage
    # A keeper of root's own that somebody has suspended.
    keeper = subprocess.Popen(["/usr/bin/python3", "-c", """if True:
        import os, signal
        open("/proc/self/comm", "w").write("myelin-keeper")
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(7)"""])
    holder = None
    try:
        os.waitpid(keeper.pid, os.WUNTRACED)
        path = plant(scenario, journal=created())
        holder = subprocess.Popen([*switch_to("daemon"), "/usr/bin/python3", "-c", f"""if True:
            import fcntl, os, signal, struct, time
            fd = os.open("{path}/lock", os.O_RDWR)
            fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
            def name(pid): os.pwrite(fd, str(pid).encode().ljust(16, b"\\n"), 0)
            def deceive(*_):
                name({keeper.pid})
                time.sleep(1)
                os._exit(0)
            signal.signal(signal.SIGTERM, deceive)
            name(os.getpid())
            print("held", flush=True)
            time.sleep(60)"""], stdout=subprocess.PIPE)
        assert holder.stdout.readline() == b"held\n"
        root.say("stop", 66)
        assert holder.wait(timeout=60) == 0, "it was told to stop"
        assert pathlib.Path(f"/proc/{keeper.pid}/stat").read_text().rsplit(")")[-1].split()[0] == "T"
    finally:
        for process in (keeper, holder):
            if process:
                process.kill()
                process.wait()


@pytest.mark.parametrize("umask, allowed", [("077", 0), ("027", 0o50), ("022", 0o55)])
def test_what_root_adds_to_a_run_is_as_private_as_the_run(stage, umask, allowed):
    scenario, root, _, _ = stage
    path = plant(scenario, journal=created())
    (path / "spool" / "master.0").mkdir()
    os.chown(path / "spool" / "master.0", DAEMON, NOGROUP)
    (path / "logs").chmod(0o777 & ~int(umask, 8))
    code, _, err = root.say("reindex")
    assert code == 0, err
    assert statuses(scenario, 66)[-1] == "failed"
    made = [path / "series", *(path / "series").rglob("*")]
    assert len(made) > 1 and all(entry.stat().st_uid == DAEMON for entry in made)
    assert (path / "series").stat().st_mode & 0o77 == allowed
    assert all(entry.stat().st_mode & 0o77 & ~allowed == 0 for entry in made)


def test_the_exit_status_of_a_private_run_is_private(stage):
    scenario, root, ann, mallory = stage
    ann.umask = "077"
    code, _, err = ann.say("run", asking(scenario, scenario.script("exit 41")))
    assert code == 41, err
    for words in (["ps", "-a", "--json"], ["status", 1, "--json"], ["status", 1], ["runs", "--json"], ["attach", 1]):
        code, out, err = mallory.say(*words)
        assert code != 41 and not re.search(r'exit_status": 41|(code|status) 41', out + err), f"{words}: {out}"
    assert mallory.json("status", 1)["status"] == "failed"
    assert root.json("status", 1)["exit_status"] == 41


def test_who_goes_on_writing_does_not_keep_root_for_ever(stage):
    scenario, root, _, _ = stage
    path = plant(scenario, journal=created())
    writer = subprocess.Popen([*switch_to("daemon"), "/usr/bin/python3", "-c", f"""if True:
        import contextlib, itertools, os
        for i in itertools.count():
            with contextlib.suppress(OSError):
                os.makedirs("{path}/%d/b/c/d" % (i % 50))
            if i == 50:
                print("writes", flush=True)"""], stdout=subprocess.PIPE)
    try:
        assert writer.stdout.readline() == b"writes\n"
        code, _, err = root.say("rm", 66)
        assert code == 0 or "something still writes to run 66" in err, err
    finally:
        writer.kill()
        writer.wait()
    root.say("rm", "--force", 66)
    assert not path.exists()


def test_locks_of_many_runs_do_not_keep_a_reindex_of_root(stage):
    """Each is waited for some seconds: without a limit for all of them this takes minutes."""
    scenario, root, _, _ = stage
    locks = [str(plant(scenario, number, created(f"{number:032x}")) / "lock") for number in range(100, 124)]
    holder = subprocess.Popen([*switch_to("daemon"), "/usr/bin/python3", "-c", """if True:
        import fcntl, os, struct, sys, time
        for path in sys.argv[1:]:
            part = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1, 0, 0)  # of one that only passes by
            fcntl.fcntl(os.open(path, os.O_RDWR), 37, part)
        print("held", flush=True)
        time.sleep(600)""", *locks], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        code, _, err = root.say("reindex")
        assert code == 0, err
    finally:
        holder.kill()
        holder.wait()


def test_fifos_and_devices_block_nobody(stage):
    scenario, root, ann, _ = stage
    for name in ("lock", "events.jsonl", "public.jsonl", "logs/master.0.log", "logs/master.0.idx", "request.json", "series", "outputs/x"):
        path = plant(scenario, journal=created())
        target = path / name
        if target.exists():
            target.unlink()
        os.mkfifo(target)
        os.chown(target, DAEMON, NOGROUP)
        look_with_everything(ann, root)
        subprocess.run(["rm", "-rf", path], check=True)
    (scenario.home / "last-run").unlink(missing_ok=True)
    os.mkfifo(scenario.home / "last-run")
    os.chown(scenario.home / "last-run", DAEMON, NOGROUP)
    assert ann.say("run", asking(scenario, "true"))[0] == 0
    assert ann.say("rm", "@")[0] == 0


def test_the_journal_of_another_is_read_to_a_bound(stage):
    scenario, root, ann, _ = stage
    path = plant(scenario, journal=created())
    with open(path / "events.jsonl", "a") as file:
        file.truncate(1 << 40)  # nothing but a hole
    look_with_everything(ann, root)
    assert ann.say("run", asking(scenario, "true"))[0] == 0


@pytest.mark.parametrize("number", [999999999, 999999998])
def test_a_planted_number_does_not_use_up_the_home(stage, number):
    scenario, root, ann, _ = stage
    plant(scenario, number=number)
    for _ in range(3):
        assert ann.say("run", asking(scenario, "true", cpu=1))[0] == 0
    assert [run["status"] for run in ann.json("ps", "-a")] == ["succeeded"] * 3


def test_root_stops_and_removes_with_the_rights_of_the_owner(stage):
    scenario, root, ann, mallory = stage
    held = mallory.detached(asking(scenario, scenario.script(UNTIL_GO)))
    scenario.wait_for("up")
    assert ann.say("stop", held)[0] != 0 and ann.say("rm", "--force", held)[0] != 0
    code, out, err = root.say("stop", held)
    assert code == 0, err
    assert statuses(scenario, held)[-1] == "stopped"
    path = scenario.home / "runs" / str(held)
    assert {entry.stat().st_uid for entry in [path, *path.rglob("*")]} == {DAEMON}, "root left nothing of its own"
    victim = scenario.directory / "precious"
    victim.mkdir(mode=0o755)
    (victim / "file").write_text("precious\n")
    (path / "outputs" / "link").symlink_to(victim)
    assert root.say("rm", held)[0] == 0
    assert not path.exists() and (victim / "file").exists()


def test_looking_at_a_dead_run_of_another_settles_nothing(stage):
    scenario, root, ann, mallory = stage
    path = plant(scenario, journal=created())
    before = {entry: entry.stat().st_mtime_ns for entry in [path, *path.rglob("*")]}
    for person in (ann, root):
        for words in [*LOOKS, ["status", 66], ["logs", 66], ["metrics", 66], ["outputs", 66], ["why", 66]]:
            person.say(*words)
        (run,) = person.json("ps", "-a")
        assert run["status"] == "failed" and "supervisor is gone" in run["reason"]
    assert {entry: entry.stat().st_mtime_ns for entry in [path, *path.rglob("*")]} == before
    assert mallory.json("ps", "-a")[0]["status"] == "failed"
    assert statuses(scenario, 66) == ["failed"], "its owner's look settles it"


def test_gc_of_a_member_leaves_the_runs_of_others(stage):
    scenario, root, ann, mallory = stage
    for person in (ann, mallory, ann):
        assert person.say("run", asking(scenario, "true"))[0] == 0
    code, out, err = ann.say("gc", "--keep", 0, "--yes")
    assert code == 0, err
    assert [path.name for path in (scenario.home / "runs").iterdir()] == ["2"]
    code, out, err = root.say("gc", "--keep", 0, "--yes")
    assert code == 0 and not list((scenario.home / "runs").iterdir()), err


def test_a_claim_on_the_outputs_of_another_does_not_keep_them(stage):
    scenario, root, ann, _ = stage
    assert ann.say("run", asking(scenario, "true"))[0] == 0
    path = plant(scenario, journal=created(origin={"manner": "resumed", "id": 1, "uuid": events(scenario, 1)[0]["uuid"]}))
    link(path / "outputs", "../1/outputs")
    code, out, err = ann.say("rm", 1)
    assert code == 0, err


def test_a_umask_hides_the_run_and_not_what_it_holds(stage):
    scenario, root, ann, mallory = stage
    ann.umask = "077"
    n = root.json("node")["resources"]["cpu"]["total"]
    job = asking(scenario, scenario.script(UNTIL_GO + "\necho the-secret >&2; exit 3"), cpu=n)
    job.write_text(job.read_text().replace("kind: experiment", "kind: experiment\nname: secret-name\nparams: {key: secret-value}"))
    held = ann.detached(job)
    scenario.wait_for("up")
    waits = mallory.detached(asking(scenario, "true", name="second.yml", cpu=1))
    wait_for_status(scenario, waits, "scheduled")
    said = ""
    for words in [*LOOKS, ["status", held], ["logs", held], ["why", waits], ["why", held], ["runs", "-c", "param.key"], ["compare", held, waits]]:
        code, out, err = mallory.say(*words)
        said += out + err
    (why,) = mallory.json("why", waits)
    assert why["starts_after"] == held
    assert {run["id"] for run in mallory.json("ps")} == {held, waits}
    assert [row["run"] for row in mallory.json("node")["reservations"]] == [held]
    for path in scenario.home.glob("myelin.db*"):
        path.unlink()
    code, out, err = mallory.say("reindex")
    assert code == 0, err
    (why,) = mallory.json("why", waits)
    assert why["starts_after"] == held, "the ledger is made again without the private journal"
    assert ann.say("runs", "-c", "param.key")[0] == 0
    (scenario.directory / "go").touch()
    wait_for_end(scenario, held)
    wait_for_end(scenario, waits)
    for words in [*LOOKS, ["ps", "-a"], ["status", held], ["runs"]]:
        code, out, err = mallory.say(*words)
        said += out + err
    readable = subprocess.run([*switch_to("daemon"), "grep", "-rc", "secret", str(scenario.home)], capture_output=True, text=True)
    leaks = [line for line in readable.stdout.splitlines() if not line.endswith(":0")]
    assert "secret" not in said, said
    assert not leaks, leaks


def test_a_home_in_which_members_can_replace_each_others_runs_is_refused(stage):
    scenario, root, ann, _ = stage
    for path, mode, owner in [(scenario.home, 0o2770, 0), (scenario.home / "runs", 0o2770, 0), (scenario.home / "runs", 0o3770, DAEMON)]:
        path.chmod(mode)
        os.chown(path, owner, NOGROUP)
        path.chmod(mode)
        code, out, err = ann.say("run", asking(scenario, "true"))
        assert code == 125 and re.search(r"`(chmod \+t|chown root) ", err), err
        os.chown(path, 0, NOGROUP)
        path.chmod(0o3770)
    (scenario.home / "runs").rmdir()
    code, out, err = ann.say("run", asking(scenario, "true"))
    assert code == 125 and f"install -d -m 3770 -g nogroup {scenario.home}/runs" in err, err


def test_locks_of_other_members_on_what_they_can_read_change_nothing(stage):
    scenario, root, ann, mallory = stage
    assert ann.say("run", asking(scenario, "true", cpu=1))[0] == 0
    script = f"""if True:
        import fcntl, os, struct, time
        for name in ("", "lock", "public.jsonl", "events.jsonl", "logs", "outputs"):
            try:
                fd = os.open(os.path.join("{scenario.home}/runs/1", name), os.O_RDONLY)
                fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
            except OSError:
                pass
            try:
                fcntl.flock(fd, fcntl.LOCK_SH)
            except (OSError, NameError):
                pass
        print("held", flush=True)
        time.sleep(60)"""
    holder = subprocess.Popen([*switch_to("daemon"), "/usr/bin/python3", "-c", script], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        assert ann.json("ps") == [] and mallory.json("ps") == [] and root.json("ps") == []
        code, out, err = ann.say("restart", 1)
        assert code == 0, err
        code, out, err = ann.say("rm", 1)
        assert code == 0, err
    finally:
        holder.kill()
        holder.wait()
